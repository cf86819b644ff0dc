"""Shares of streams, cut into smaller ones so that more workers have something to do: by keys, and into lanes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from streamtight.program.fork_join import ForkJoin
from streamtight.program.plan import InputStream, Share, Worker
from streamtight.program.tags import Bucket, Tags, TagSet, has_buckets, why_dependent

FEW_LANES = 256
"""So many lanes in all are few enough to cut each tag into one for each worker."""
SMALL = 0.05
"""A tag is not cut if it has less than this part of the events of an average leaf."""


def cuts(program: ForkJoin, shares: list[Share], workers: int | None) -> Iterator[list[Share]]:
    """The shares as they are, and cut: by keys, which need not wait for each other then; into lanes; both."""
    yield shares
    if workers is None:
        return
    keys = dict.fromkeys(field for share in shares for field in program.tag_fields(share.tags.kind))
    by_key = [cut for key in keys if (cut := _by_key(program, shares, key, workers)) != shares]
    yield from by_key
    for cut in (shares, *by_key):
        in_lanes = _in_lanes(program, cut, workers)
        if in_lanes != cut:
            yield in_lanes


def _by_key(program: ForkJoin, shares: list[Share], key: str, count: int) -> list[Share]:
    """Shares of some keys each. The same keys go together in all of them."""
    with_key = {share for share in shares if key in program.tag_fields(share.tags.kind)}
    listed = [values for share in with_key if isinstance(values := share.tags.values(key), frozenset)]
    if len(listed) < len(with_key):
        with_key = {share for share in with_key if has_buckets(share.tags.kind, key)}
        groups: list[Any] = [Bucket(index, count) for index in range(count)]
    else:
        every = sorted(frozenset().union(*listed), key=repr)
        groups = [frozenset(every[index::count]) for index in range(count)] if len(every) > 2 * count else every
        groups = [group if isinstance(group, frozenset) else frozenset([group]) for group in groups]
    return [piece for share in shares for piece in (_pieces(share, key, groups) if share in with_key else [share])]


def _pieces(share: Share, key: str, groups: list[Any]) -> list[Share]:
    values = share.tags.values(key)
    if isinstance(values, frozenset):
        found = [frozenset(value for value in values if value in group) for group in groups]
        return [_piece(share, key, each, len(each) / len(values)) for each in found if each]
    buckets = [group for group in groups if isinstance(group, Bucket)]
    if isinstance(values, Bucket):
        buckets = [bucket for bucket in buckets if bucket.index % values.of == values.index]
        if not buckets or buckets[0].of % values.of:
            return [share]
    return [_piece(share, key, bucket, 1 / len(buckets)) for bucket in buckets]


def _piece(share: Share, key: str, values: Any, part: float) -> Share:
    return replace(share, tags=share.tags.with_values(key, values), rate=share.rate * part)


def _in_lanes(program: ForkJoin, shares: list[Share], count: int) -> list[Share]:
    """Shares of some lanes each, where events need not keep an order among themselves."""
    total = math.fsum(share.rate for share in shares)
    together: dict[tuple[str, Tags], list[Share]] = {}
    for share in shares:
        together.setdefault((share.stream, share.tags), []).append(share)
    cut: list[Share] = []
    for (_, some), lanes in together.items():
        rate = math.fsum(share.rate for share in lanes)
        few = len(together) * count <= FEW_LANES or not total
        wanted = count if few else min(count, math.ceil(2 * count * rate / total))
        small = rate * count < SMALL * total
        itself = TagSet([some])
        if small or wanted <= lanes[0].lanes or why_dependent(program.depends, itself, itself) is not None:
            cut += lanes
        else:
            cut += [replace(lanes[0], lane=lane, lanes=wanted, rate=rate / wanted) for lane in range(wanted)]
    return cut


def cut_again(root: Worker, streams: Sequence[InputStream]) -> list[Share]:
    """The shares of a plan, where each tag that was cut into lanes has as many as workers got some of them."""
    before = {stream.name: stream.lanes for stream in streams}
    together: dict[tuple[str, Tags], list[tuple[Share, int]]] = {}
    for number, worker in enumerate(root.walk()):
        for share in worker.shares:
            together.setdefault((share.stream, share.tags), []).append((share, number))
    again: list[Share] = []
    for some in together.values():
        first, lanes = some[0][0], len({number for _, number in some})
        if first.lanes > before[first.stream] <= lanes:
            rate = math.fsum(share.rate for share, _ in some) / lanes
            again += [replace(first, lane=lane, lanes=lanes, rate=rate) for lane in range(lanes)]
        else:
            again += [share for share, _ in some]
    return again


def put_together(root: Worker, streams: Sequence[InputStream]) -> Worker:
    """The same plan, told shorter: pieces of one share that ended up with one worker are one again."""
    counts: dict[tuple[str, Tags, int], list[int]] = {}
    for worker in root.walk():
        for lanes, count in Counter((share.stream, share.tags, share.lanes) for share in worker.shares).items():
            counts.setdefault(lanes, []).append(count)
    before = {stream.name: stream.lanes for stream in streams}
    fewer = {lanes: _coarser(lanes[2], before[lanes[0]], each) for lanes, each in counts.items()}
    given = dict.fromkeys(counts, 0)
    parts = {stream.name: tuple(stream.rates) for stream in streams}

    def rebuilt(worker: Worker) -> Worker:
        shares: list[Share] = []
        for lanes, count in Counter((share.stream, share.tags, share.lanes) for share in worker.shares).items():
            some = [share for share in worker.shares if (share.stream, share.tags, share.lanes) == lanes]
            if fewer[lanes] < lanes[2]:
                rate, first, count = (
                    some[0].rate * lanes[2] / fewer[lanes],
                    given[lanes],
                    count * fewer[lanes] // lanes[2],
                )
                some = [replace(some[0], lane=first + each, lanes=fewer[lanes], rate=rate) for each in range(count)]
                given[lanes] += count
            shares += some
        for name in dict.fromkeys(name for share in shares for name, _ in share.tags.fields):
            shares = _whole_values(shares, name, parts)
        return Worker(worker.state_name, shares, *map(rebuilt, worker.children), place=worker.place)

    return rebuilt(root)


def _coarser(lanes: int, before: int, counts: Sequence[int]) -> int:
    """Into how few lanes a tag may be cut instead, if workers have so many of its lanes each."""
    if lanes <= before:
        return lanes
    fewer = lanes // math.gcd(*counts)
    return fewer if fewer >= before else (before if len(counts) == 1 else lanes)


def _whole_values(shares: Iterable[Share], name: str, parts: Mapping[str, Sequence[Tags]]) -> list[Share]:
    alike: dict[Any, list[Share]] = {}
    for share in shares:
        piece_of = next(part for part in parts[share.stream] if share.tags.within(part))
        rest = (share.stream, piece_of, share.lane, share.lanes, share.tags.with_values(name, None))
        alike.setdefault((rest, type(share.tags.values(name))), []).append(share)
    whole: list[Share] = []
    for some in alike.values():
        values = [share.tags.values(name) for share in some]
        rate = math.fsum(share.rate for share in some)
        if len(some) > 1 and all(isinstance(each, frozenset) for each in values):
            every = frozenset[Any]().union(*cast(list[frozenset[Any]], values))
            some = [replace(some[0], tags=some[0].tags.with_values(name, every), rate=rate)]
        whole += some
    return whole
