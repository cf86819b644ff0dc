"""Which plan is best for a program and its streams?

A plan is found in four steps (4.4.3 of the paper is the greedy one):

1. *Cut*, only if a number of workers is asked for: keys into buckets, and tags that are independent of themselves
   into lanes.
2. *Group*: what is dependent is taken apart by what connects it. The shares are a graph; those that are removed until
   two components are left belong to a worker above them, and so on below. Greedy removes the rarest first.
3. *Match* the groups with the branches of the program: which type of state each worker has, who is left and right.
4. *Place*: each worker on a machine, so that as few messages as possible go from one to another.

What is best is one number, `Cost.total`: the events on the busiest way from the root to a leaf, since these wait for
each other, and a bit for each message: `NEAR` between workers, `FAR` between places. An event of an inner worker
costs three messages for each worker below it; an event that arrives elsewhere than it is handled costs one.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from streamtight.errors import PlanError
from streamtight.program.fork_join import ForkJoin, StateType
from streamtight.program.plan import (
    MESSAGES,
    InputStream,
    Plan,
    Share,
    Worker,
    require_streams,
    tree_cost,
)
from streamtight.program.tags import Bucket, Tags, TagSet, has_buckets, why_dependent

Optimizer = Literal["best", "greedy", "sequential"]
STEPS = 3_000
"""So many ways to take shares apart are compared before the first one found is taken."""
WIDTH, ORDERS = 4, 8
"""Of one group, so many ways are followed further, and so many random orders of removal are tried."""
MOST_STATES = 5_000
"""The greedy match looks at all orders of children if there are not more than this, as far as they differ."""
MOST_IN_CHAIN = 100
"""More children than this are not split off one by one."""
FEW_LANES = 256
"""So many lanes in all are few enough to cut each tag into one for each worker."""
MOST_SWAPPED = 40
"""More components than this fill bins evenly without swaps."""
SMALL = 0.05
"""A tag is not cut if it has less than this part of the events of an average leaf."""


def plan(
    program: ForkJoin,
    streams: Sequence[InputStream],
    *,
    workers: int | None = None,
    places: Mapping[str, int | None] | None = None,
    seconds: float = 1.0,
    optimizer: Optimizer = "best",
    seed: int = 0,
) -> Plan:
    """A valid plan for a program and its streams; `remarks` of it say why it has one worker only, if so.

    workers     how many leaves there may be; streams are cut if they are too few. None: one for each share that can be
                alone, and nothing is cut
    places      the machines where workers may run, each with the number of leaves that it has room for (None: any);
                if not given, where streams arrive
    seconds     for the search. It is bounded by its steps first, so that the same seed gives the same plan
    optimizer   "best"; "greedy", the one of the paper; "sequential", one worker

    Without a number of workers, "best" never has fewer events at leaves than "greedy" has, if that has several workers.

    >>> from streamtight.program.tags import tags
    >>> from streamtight.stream.dependence import barrier, same
    >>> from streamtight.stream.event import Kind
    >>> Add, Read = Kind("Add", time=int, key=int), Kind("Read", time=int, key=int)
    >>> class Counters(ForkJoin):
    ...     takes, depends = (Add, Read), barrier(Read) & same("key")
    ...     def fork(self, counts, left, right): ...
    ...     def join(self, left, right): ...
    >>> print(plan(Counters(), [InputStream("adds", Add, rate=90), InputStream("reads", Read)], workers=2).show())
    state: -
    ├─ state: adds Add(key=#0/2), reads Read(key=#0/2)
    └─ state: adds Add(key=#1/2), reads Read(key=#1/2)
    >>> one_key = [InputStream("adds", tags(Add, key=1), rate=90), InputStream("reads", tags(Read, key=1))]
    >>> print(plan(Counters(), one_key, workers=2).show())
    state: reads Read(key=1)
    ├─ state: adds 1/2 Add(key=1)
    └─ state: adds 2/2 Add(key=1)
    """
    room = _required(program, streams, workers, places, seconds, optimizer)
    asked = _Asked(optimizer, workers, min(workers or math.inf, sum(room.values()) if places else math.inf))
    most = asked.most
    shares = [share for stream in streams for share in stream.shares]
    match = _Matcher(program, [stream.place for stream in streams])
    alone = Worker(program.state_types[0], shares)

    if optimizer == "sequential" or most == 1 or not program.all_branches:
        return _finished(program, streams, _placed_by_rate(alone, _heaviest_first(streams, room)), asked)

    graph = _Graph(program, shares)
    by_greed = graph.by_greed(graph.everything)
    if optimizer == "greedy":
        tree = match.one_by_one(_at_most(by_greed, most))
        has_limits = any(math.isfinite(each) for each in room.values())
        placed = _placed_by_messages(tree, room) if has_limits else _placed_by_rate(tree, list(room))
        return _finished(program, streams, placed, asked)

    deadline = time.monotonic() + seconds
    greedy_tree = match.one_by_one(by_greed)
    at_least = tree_cost(greedy_tree, streams).share_at_leaves if workers is None and greedy_tree.children else 0.0
    found: list[tuple[float, Worker]] = []

    def consider(trees: Iterable[Worker]) -> None:
        for tree in trees:
            placed = _placed_by_messages(tree, room)
            cost = tree_cost(placed, streams)
            if cost.share_at_leaves >= at_least - 1e-12:
                found.append((cost.total, placed))

    limited = _at_most(by_greed, most)
    consider([*match.balanced(limited), match.one_by_one(limited)])
    for cut in _cuts(program, shares, None if workers is None else int(most)):
        if cut is not shares and time.monotonic() > deadline:
            break
        for group in _Search(_Graph(program, cut), match.takers, deadline, seed).groups(most):
            consider(match.balanced(group))
    if workers is not None:
        again = _cut_again(_first_of_best(found), streams)
        for group in _Search(_Graph(program, again), match.takers, deadline, seed).groups(most):
            consider(match.balanced(group))
    return _finished(program, streams, _put_together(_first_of_best(found), streams), asked)


def _first_of_best(found: Sequence[tuple[float, Worker]]) -> Worker:
    """Of trees that cost alike, the first: it has fewer shares."""
    least = min(total for total, _ in found)
    return next(tree for total, tree in found if total <= least * (1 + 1e-9))


# -- what is said about it -------------------------------------------------------------------------------------------


def _why_one_worker(program: ForkJoin, shares: list[Share], asked: _Asked) -> str:
    if asked.optimizer == "sequential" or asked.workers == 1:
        return "one was asked for"
    if asked.most == 1:
        return "places have room for one only"
    if not program.all_branches:
        return f"{program.name} has no fork and join"
    if asked.optimizer == "greedy" and _can_be_parallel(program, shares):
        return 'greed found no way to take the streams apart; optimizer="best" tries more'
    may_cut = asked.workers is not None and asked.optimizer == "best"
    in_two = any(_can_be_parallel(program, cut) for cut in _cuts(program, shares, 2))
    if _can_be_parallel(program, shares) or (may_cut and in_two):
        return "more would cost more than they save, since they would wait for each other too often"
    hint = "; streams are cut if a number of workers is asked for" if in_two else ""
    return f"{_what_binds(program, shares)}{hint}"


def _can_be_parallel(program: ForkJoin, shares: list[Share]) -> bool:
    matcher = _Matcher(program, [share.place for share in shares])
    groups = _Search(_Graph(program, shares), matcher.takers, math.inf, 0).groups(math.inf)
    return any(tree.children for group in groups for tree in matcher.balanced(group))


def _what_binds(program: ForkJoin, shares: list[Share]) -> str:
    """Why shares that cannot be apart cannot."""
    graph = _Graph(program, shares)
    for one, other in itertools.combinations(range(len(shares)), 2):
        if graph.independent(one, other):
            apart = " and ".join(f"{shares[each]}, {shares[each].tags}," for each in (one, other))
            return f"{apart} are independent, but no branch of {program.name} has types that carry them apart"
    if len(shares) == 1:
        return f"{shares[0]} is all there is"
    second, first = sorted(shares, key=lambda share: share.rate)[-2:]
    why = why_dependent(program.depends, TagSet([first.tags]), TagSet([second.tags]))
    others = "" if len(shares) == 2 else ", and so do every two others"
    return f"{first} (rate {first.rate:g}) and {second} (rate {second.rate:g}) depend on each other{others}: {why}"


# -- the question ----------------------------------------------------------------------------------------------------


def _required(
    program: ForkJoin,
    streams: Sequence[InputStream],
    workers: int | None,
    places: Mapping[str, int | None] | None,
    seconds: float,
    optimizer: str,
) -> dict[str, float]:
    """The room of each place. Raises `PlanError` if the question is wrong."""
    where = "plan(...)"
    if not isinstance(program, ForkJoin):
        raise PlanError(where, needed="a ForkJoin program", came=repr(program)[:200], hint="plan(Windows(), streams)")
    require_streams(program, streams)
    if optimizer not in ("best", "greedy", "sequential"):
        raise PlanError(
            where, needed='optimizer="best", "greedy" or "sequential"', came=repr(optimizer), hint='optimizer="best"'
        )
    if workers is not None and (type(workers) is not int or workers < 1):
        raise PlanError(where, needed="workers=, a number from 1", came=repr(workers), hint="workers=4")
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not seconds >= 0:
        raise PlanError(where, needed="seconds=, a number from 0", came=repr(seconds), hint="seconds=1.0")
    if places is None:
        return {stream.place: math.inf for stream in streams if stream.place is not None}
    if not isinstance(places, Mapping) or not places:
        raise PlanError(where, needed="places=, names and room", came=repr(places), hint='places={"east": 4}')
    for name, room in places.items():
        if not isinstance(name, str) or not (room is None or (type(room) is int and room >= 0)):
            raise PlanError(
                where, needed="a place with its number of leaves", came=f"{name!r}: {room!r}", hint='{"east": 4}'
            )
    rooms = {name: math.inf if room is None else float(room) for name, room in places.items() if room != 0}
    if not rooms:
        raise PlanError(where, needed="room for a worker", came=repr(dict(places)), hint='places={"east": 4}')
    return rooms


@dataclass(frozen=True, slots=True)
class _Asked:
    """What was asked for; `most` leaves have room."""

    optimizer: str
    workers: int | None
    most: float


def _finished(program: ForkJoin, streams: Sequence[InputStream], tree: Worker, asked: _Asked) -> Plan:
    leaves, remarks = len(tree.leaves), []
    if leaves == 1:
        shares = [share for stream in streams for share in stream.shares]
        remarks.append(f"one worker: {_why_one_worker(program, shares, asked)}")
    elif asked.workers is not None and leaves < asked.workers:
        why = "places have no room for more" if leaves == asked.most else "no better plan with more was found"
        remarks.append(f"{leaves} leaves instead of {asked.workers}: {why}")
    return Plan(program, streams, tree, remarks=remarks)


# -- cut -------------------------------------------------------------------------------------------------------------


def _cuts(program: ForkJoin, shares: list[Share], workers: int | None) -> Iterator[list[Share]]:
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


def _cut_again(root: Worker, streams: Sequence[InputStream]) -> list[Share]:
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


def _put_together(root: Worker, streams: Sequence[InputStream]) -> Worker:
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


# -- group -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Group:
    """Shares of one worker, and the groups that are independent of each other without them."""

    shares: tuple[Share, ...]
    below: tuple[_Group, ...] = ()

    @property
    def rate(self) -> float:
        return math.fsum(share.rate for share in self.shares)

    @property
    def all_shares(self) -> tuple[Share, ...]:
        return (*self.shares, *(share for group in self.below for share in group.all_shares))

    @property
    def leaves(self) -> int:
        return sum(group.leaves for group in self.below) if self.below else 1

    @property
    def busiest(self) -> float:
        return self.rate + max((group.busiest for group in self.below), default=0.0)

    @property
    def inner_rate(self) -> float:
        return self.rate + math.fsum(group.inner_rate for group in self.below) if self.below else 0.0


class _Graph:
    """The dependence of shares. Sets of them are the bits of a number."""

    def __init__(self, program: ForkJoin, shares: Sequence[Share]) -> None:
        self.shares, self.rates = shares, [share.rate for share in shares]
        self.everything, self._known_rates = (1 << len(shares)) - 1, dict[int, float]()
        places_of: dict[Tags, int] = {}
        for place, share in enumerate(shares):
            places_of[share.tags] = places_of.get(share.tags, 0) | 1 << place
        around = dict.fromkeys(places_of, 0)
        for one, other in itertools.combinations_with_replacement(places_of, 2):
            if why_dependent(program.depends, TagSet([one]), TagSet([other])) is not None:
                around[one] |= places_of[other]
                around[other] |= places_of[one]
        self.around = [around[share.tags] & ~(1 << place) for place, share in enumerate(shares)]

    def independent(self, one: int, other: int) -> bool:
        return not self.around[one] >> other & 1

    def rate(self, some: int) -> float:
        known = self._known_rates.get(some)
        if known is None:
            known = self._known_rates[some] = math.fsum(self.rates[each] for each in _bits(some))
        return known

    def leaf(self, some: int) -> _Group:
        return _Group(tuple(self.shares[each] for each in _bits(some)))

    def components(self, some: int) -> list[int]:
        found = []
        while some:
            component = fresh = some & -some
            while fresh:
                reached = 0
                for each in _bits(fresh):
                    reached |= self.around[each]
                fresh = reached & some & ~component
                component |= fresh
            found.append(component)
            some &= ~component
        return found

    def removed(self, some: int, order: Iterable[int]) -> int:
        """What is removed in this order until two components are left; 0 if that never happens."""
        gone = 0
        for each in order:
            gone |= 1 << each
            if len(self.components(some & ~gone)) > 1:
                return gone
        return 0

    def by_greed(self, some: int) -> _Group:
        """The rarest removed first, until two components are left, and so on."""
        gone, parts = 0, self.components(some)
        if len(parts) < 2:
            gone = self.removed(some, sorted(_bits(some), key=self.rates.__getitem__))
            if not gone:
                return self.leaf(some)
            parts = self.components(some & ~gone)
        return _Group(self.leaf(gone).shares, tuple(self.by_greed(part) for part in parts))


_Takers = Callable[[Share], frozenset[str]]


class _Search:
    """Looks for groups that are better than the greedy ones."""

    def __init__(self, graph: _Graph, takers: _Takers, deadline: float, seed: int) -> None:
        self._graph, self._deadline, self._rng = graph, deadline, random.Random(seed)
        self._takers = [takers(share) for share in graph.shares]
        self._steps = 0

    def groups(self, most: float) -> Iterator[_Group]:
        """Those with the least events on the busiest way, and those with the least events above leaves.

        If types differ in what they take, then also those where what only some types take is not put together with
        what others take, since there may be no type for both.
        """
        for worth in (_least_busy, _least_inner):
            for by_type in (False, True) if len(set(self._takers)) > 1 and math.isfinite(most) else (False,):
                self._worth, self._by_type, self._known = worth, by_type, dict[tuple[int, float], _Group]()
                yield self._best(self._graph.everything, most)

    def _best(self, some: int, most: float) -> _Group:
        known = self._known.get((some, most))
        if known is None:
            known = self._known[some, most] = self._apart(some, most)
        return known

    def _apart(self, some: int, most: float) -> _Group:
        graph = self._graph
        if most < 2:
            return graph.leaf(some)
        parts = graph.components(some)
        if len(parts) > 1:
            return _Group((), tuple(self._shared_out(parts, most)))
        ways = [
            _Group(graph.leaf(gone).shares, tuple(self._shared_out(graph.components(some & ~gone), most)))
            for gone in self._separators(some, most)
        ]
        return min(ways, key=self._worth, default=graph.leaf(some))

    def _separators(self, some: int, most: float) -> list[int]:
        """The most promising sets without which the others are not connected, none of which has one to spare."""
        graph = self._graph
        places = list(_bits(some))
        degree = {each: (graph.around[each] & some).bit_count() for each in places}
        if all(each == len(places) - 1 for each in degree.values()):
            return []
        found = {graph.around[each] & some for each in places if degree[each] < len(places) - 1}
        orders = [
            sorted(places, key=graph.rates.__getitem__),
            sorted(places, key=lambda each: graph.rates[each] / (degree[each] or 1)),
            sorted(places, key=lambda each: -degree[each]),
        ]
        if self._has_time():
            orders += [self._rng.sample(places, len(places)) for _ in range(ORDERS)]
        found |= {graph.removed(some, order) for order in orders}
        self._steps += len(found)
        ranked = sorted(
            {self._thinned(some, gone) for gone in found if gone}, key=lambda gone: (self._hope(some, gone, most), gone)
        )
        return ranked[: WIDTH if self._has_time() else 1]

    def _has_time(self) -> bool:
        return self._steps < STEPS and time.monotonic() < self._deadline

    def _thinned(self, some: int, gone: int) -> int:
        """Without those that connect nothing when they come back; the most frequent come back first."""
        for each in sorted(_bits(gone), key=lambda each: (-self._graph.rates[each], each)):
            fewer = gone & ~(1 << each)
            if len(self._graph.components(some & ~fewer)) > 1:
                gone = fewer
        return gone

    def _hope(self, some: int, gone: int, most: float) -> float:
        rest = self._graph.components(some & ~gone)
        if self._worth is _least_inner:
            return self._graph.rate(gone)
        return self._graph.rate(gone) + max(self._graph.rate(part) / min(most, part.bit_count()) for part in rest)

    def _shared_out(self, parts: list[int], most: float) -> Iterator[_Group]:
        """The groups of these components with so many leaves at most: some put together, some taken apart further."""
        for part, leaves in self._bins(parts, most):
            group = self._best(part, leaves)
            yield from [group] if group.shares or not group.below else group.below

    def _bins(self, parts: list[int], most: float) -> list[tuple[int, float]]:
        """Components put together, with the number of leaves that they get."""
        sizes = {part: self._best(part, math.inf).leaves for part in parts}
        if sum(sizes.values()) <= most:
            return [(part, math.inf) for part in parts]
        alike: dict[frozenset[str], list[int]] = {}
        for part in parts:
            takers = (
                frozenset.intersection(*(self._takers[each] for each in _bits(part))) if self._by_type else frozenset()
            )
            alike.setdefault(takers, []).append(part)
        if not 1 < len(alike) <= most:
            return self._evenly(parts, sizes, int(most))
        classes = list(alike.values())
        shared = self._with_leaves([(sum(some), sum(sizes[part] for part in some)) for some in classes], int(most))
        return [
            bin_
            for some, (_, leaves) in zip(classes, shared, strict=True)
            for bin_ in self._evenly(some, sizes, leaves)
        ]

    def _evenly(self, parts: list[int], sizes: dict[int, int], most: int) -> list[tuple[int, float]]:
        if sum(sizes[part] for part in parts) <= most:
            return [(part, math.inf) for part in parts]
        if most == 1:
            return [(sum(parts), 1)]
        tried = (self._packed(parts, sizes, count, most) for count in range(min(len(parts), most), 1, -1))
        whole = [(sum(parts), float(most))]  # of one component
        return min(tried, key=lambda bins: max(self._graph.rate(part) / leaves for part, leaves in bins), default=whole)

    def _packed(self, parts: list[int], sizes: dict[int, int], count: int, most: int) -> list[tuple[int, float]]:
        """Components in so many bins with rates that are alike."""
        bins = _packed_bins([self._graph.rate(part) for part in parts], count)
        some = [[parts[each] for each in places] for places in bins]
        return list(self._with_leaves([(sum(inside), sum(sizes[part] for part in inside)) for inside in some], most))

    def _with_leaves(self, bins: Sequence[tuple[int, int]], most: int) -> list[tuple[int, int]]:
        """Bins, given with the most leaves that they can have, each with its number of leaves, so many in all."""
        waiting = [(-self._graph.rate(inside), place) for place, (inside, _) in enumerate(bins)]
        heapq.heapify(waiting)
        leaves, spare = [1] * len(bins), most - len(bins)
        while waiting and spare:
            load, place = heapq.heappop(waiting)
            if leaves[place] < bins[place][1]:
                leaves[place], spare = leaves[place] + 1, spare - 1
                heapq.heappush(waiting, (load * (leaves[place] - 1) / leaves[place], place))
        return [(inside, count) for (inside, _), count in zip(bins, leaves, strict=True)]


def _packed_bins(rates: Sequence[float], count: int) -> list[list[int]]:
    """The places of these rates in so many bins with sums that are alike; no bin is empty."""
    bins: list[list[int]] = [[] for _ in range(count)]
    emptiest = [(0.0, 0, place) for place in range(count)]
    for each in sorted(range(len(rates)), key=lambda each: (-rates[each], each)):
        total, size, place = heapq.heappop(emptiest)
        bins[place].append(each)
        heapq.heappush(emptiest, (total + rates[each], size + 1, place))
    if len(rates) <= MOST_SWAPPED:
        _swapped(rates, bins)
    return bins


def _swapped(rates: Sequence[float], bins: list[list[int]]) -> None:
    """Makes the fullest bin less full, as long as a swap with another one does."""
    for _ in range(len(rates)):
        sums = [math.fsum(rates[each] for each in inside) for inside in bins]
        full = max(range(len(bins)), key=sums.__getitem__)
        swaps = (
            (max(sums[full] - rates[one] + rates[two], sums[other] + rates[one] - rates[two]), other, one, two)
            for other in range(len(bins))
            if other != full
            for one in bins[full]
            for two in bins[other]
        )
        best = min(swaps, default=None)
        if best is None or not best[0] < sums[full] * (1 - 1e-9):
            return
        _, other, one, two = best
        bins[full][bins[full].index(one)], bins[other][bins[other].index(two)] = two, one


def _least_busy(group: _Group) -> tuple[float, ...]:
    return group.busiest, group.inner_rate, -group.leaves


def _least_inner(group: _Group) -> tuple[float, ...]:
    return group.inner_rate, group.busiest, -group.leaves


def _at_most(group: _Group, most: float) -> _Group:
    """The group with so many leaves at most: the rarest leaves put together."""
    while group.leaves > most:
        group = _fewer(group)[1]
    return group


def _fewer(group: _Group) -> tuple[float, _Group]:
    """The group with two of its leaves put together, and the rate of the leaf that they make."""
    ways = []
    leaves = sorted((each for each in group.below if not each.below), key=lambda each: each.rate)
    if len(leaves) > 1:
        one, other = leaves[:2]
        both = _Group(one.shares + other.shares)
        kept = tuple(each for each in group.below if each is not one and each is not other)
        alone = _Group(group.all_shares)
        ways.append((both.rate, _Group(group.shares, (*kept, both))) if kept else (alone.rate, alone))
    for place, each in enumerate(group.below):
        if each.below:
            rate, fewer = _fewer(each)
            ways.append((rate, replace(group, below=(*group.below[:place], fewer, *group.below[place + 1 :]))))
    return min(ways, key=lambda way: way[0])


def _bits(some: int) -> Iterator[int]:
    while some:
        lowest = some & -some
        yield lowest.bit_length() - 1
        some ^= lowest


# -- match -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Match:
    """A worker with a type for a group, those below it, and how good they are."""

    type_: StateType
    shares: tuple[Share, ...]
    children: tuple[_Match, ...]
    busiest: float
    leaves: int
    height: int

    @property
    def worth(self) -> tuple[float, int, int]:
        return self.busiest, -self.leaves, self.height

    def worker(self) -> Worker:
        return Worker(self.type_, self.shares, *(child.worker() for child in self.children))


class _Matcher:
    """Matches groups with the branches of a program: binary trees of workers that have types.

    Where no branch fits, groups are put together in one worker; the type of the root takes everything.
    """

    def __init__(self, program: ForkJoin, places: Iterable[str | None]) -> None:
        self._types, self._places = program.state_types, list(dict.fromkeys(places))
        self._takes = functools.cache(lambda type_, part: type_.handles.covers(TagSet([part])))
        self._forks = {type_: [each for each in program.all_branches if each.of is type_] for type_ in self._types}

    def takers(self, share: Share) -> frozenset[str]:
        """The names of the types that take a share."""
        return frozenset(type_.name for type_ in self._types if self._takes(type_, share.tags))

    def one_by_one(self, group: _Group) -> Worker:
        """The lowest of all trees where children are split off one by one, as the paper's optimizer does."""
        return self._best(group, self._chains)

    def balanced(self, group: _Group) -> list[Worker]:
        """Low trees: groups split in the middle, those of one place together or the frequent ones together."""
        found = []
        for order in (self._by_place, _by_rate):
            tree = self._best(group, functools.partial(self._halves, order, False))
            if len(tree.leaves) < group.leaves:
                tree = self._best(group, functools.partial(self._halves, order, True))
            found.append(tree)
        return found

    def _best(self, group: _Group, divide: _Divide) -> Worker:
        found = self._matched(group, self._types[0], divide, {})
        return cast(_Match, found).worker()  # the first type of a program takes everything

    def _matched(self, group: _Group, type_: StateType, divide: _Divide, known: _Known) -> _Match | None:
        """The best match with a worker of this type; None if the type does not take all that the group has."""
        key = (id(group), type_)
        if key not in known:
            known[key] = None
            if all(self._takes(type_, share.tags) for share in group.all_shares):
                matches = {
                    each: [self._matched(child, each, divide, known) for child in group.below] for each in self._types
                }
                apart = divide(group, type_, matches) if group.below else None
                known[key] = apart or _alone([group], type_)
        return known[key]

    def _chains(self, group: _Group, type_: StateType, matches: _Matches) -> _Match | None:
        """The lowest tree where one child after the other is split off; those that match alike are not told apart."""
        if len(group.below) > MOST_IN_CHAIN:
            return self._halves(_by_rate, False, group, type_, matches)
        alike: dict[object, list[int]] = {}
        for place in range(len(group.below)):
            found = (matches[each][place] for each in self._types)
            alike.setdefault(tuple(match and match.worth[1:] for match in found), []).append(place)
        classes = list(alike.values())
        exhaustive = math.prod(len(some) + 1 for some in classes) <= MOST_STATES

        @functools.cache
        def rest(left: tuple[int, ...], of: StateType) -> _Match | None:
            places = sorted(
                each for some, count in zip(classes, left, strict=True) for each in some[len(some) - count :]
            )
            if len(places) == 1:
                return matches[of][places[0]]
            if any(matches[of][place] is None for place in places):
                return None
            return _lowest(split(left, of, ())) or _alone([group.below[place] for place in places], of)

        def split(left: tuple[int, ...], of: StateType, own: tuple[Share, ...]) -> Iterator[_Match | None]:
            choices = [each for each, count in enumerate(left) if count]
            for branch, chosen in itertools.product(self._forks[of], choices if exhaustive else choices[:1]):
                one = classes[chosen][len(classes[chosen]) - left[chosen]]
                others = (*left[:chosen], left[chosen] - 1, *left[chosen + 1 :])
                yield _forked(of, own, matches[branch.left][one], rest(others, branch.right))
                yield _forked(of, own, rest(others, branch.left), matches[branch.right][one])

        return _lowest(split(tuple(map(len, classes)), type_, group.shares))

    def _halves(
        self, order: _Order, thorough: bool, group: _Group, type_: StateType, matches: _Matches
    ) -> _Match | None:
        """A low tree: in an order in which children that match alike stand together, cut in the middle or between them.

        thorough   also one child after the other from both ends
        """

        def shape(place: int) -> tuple[object, ...]:
            return tuple(matches[each][place] is not None for each in self._types)

        count = len(group.below)
        places = sorted(range(count), key=lambda place: (shape(place), order(group.below[place]), place))
        borders = [place for place in range(1, count) if shape(places[place]) != shape(places[place - 1])]
        missing = {
            each: [0, *itertools.accumulate(matches[each][place] is None for place in places)] for each in self._types
        }
        step_by_step = thorough and count <= MOST_IN_CHAIN

        @functools.cache
        def some(begin: int, end: int, of: StateType) -> _Match | None:
            if missing[of][begin] < missing[of][end]:
                return None
            if end - begin == 1:
                return matches[of][places[begin]]
            return _lowest(split(begin, end, of, ())) or _alone([group.below[place] for place in places[begin:end]], of)

        def split(begin: int, end: int, of: StateType, own: tuple[Share, ...]) -> Iterator[_Match | None]:
            cuts = {(begin + end) // 2, (begin + end + 1) // 2, *(each for each in borders if begin < each < end)}
            if step_by_step:
                cuts |= {begin + 1, end - 1}
            for branch, cut in itertools.product(self._forks[of], sorted(cuts)):
                yield _forked(of, own, some(begin, cut, branch.left), some(cut, end, branch.right))
                if branch.left is not branch.right:
                    yield _forked(of, own, some(cut, end, branch.left), some(begin, cut, branch.right))

        return _lowest(split(0, count, type_, group.shares))

    def _by_place(self, group: _Group) -> tuple[Any, ...]:
        rates: dict[str | None, float] = {}
        for share in group.all_shares:
            rates[share.place] = rates.get(share.place, 0.0) + share.rate
        return (self._places.index(max(rates, key=rates.__getitem__)),)


_Known = dict[tuple[int, StateType], _Match | None]
_Matches = Mapping[StateType, Sequence[_Match | None]]
_Divide = Callable[[_Group, StateType, _Matches], _Match | None]
_Order = Callable[[_Group], tuple[Any, ...]]


def _by_rate(group: _Group) -> tuple[Any, ...]:
    return (-group.busiest,)


def _alone(groups: Sequence[_Group], type_: StateType) -> _Match:
    shares = tuple(share for group in groups for share in group.all_shares)
    return _Match(type_, shares, (), math.fsum(share.rate for share in shares), 1, 0)


def _forked(type_: StateType, own: tuple[Share, ...], left: _Match | None, right: _Match | None) -> _Match | None:
    if left is None or right is None:
        return None
    busiest = math.fsum(share.rate for share in own) + max(left.busiest, right.busiest)
    return _Match(type_, own, (left, right), busiest, left.leaves + right.leaves, 1 + max(left.height, right.height))


def _lowest(ways: Iterable[_Match | None]) -> _Match | None:
    return min((way for way in ways if way is not None), key=lambda way: way.worth, default=None)


# -- place -----------------------------------------------------------------------------------------------------------


def _with_place(worker: Worker, place: str | None, children: Sequence[Worker]) -> Worker:
    return Worker(worker.state_name, worker.shares, *children, place=place)


def _heaviest_first(streams: Sequence[InputStream], room: Mapping[str, float]) -> list[str]:
    rates = dict.fromkeys(room, 0.0)
    for stream in streams:
        if stream.place in rates:
            rates[stream.place] += math.fsum(stream.rates.values())
    return sorted(rates, key=lambda place: -rates[place])


def _placed_by_rate(worker: Worker, places: Sequence[str]) -> Worker:
    """Each worker where most of its own events arrive; one without events in the first place."""
    rates = dict.fromkeys(places, 0.0)
    for share in worker.shares:
        if share.place in rates:
            rates[share.place] += share.rate
    place = max(rates, key=rates.__getitem__, default=None)
    return _with_place(worker, place, [_placed_by_rate(child, places) for child in worker.children])


def _placed_by_messages(root: Worker, room: Mapping[str, float]) -> Worker:
    """The workers so that as few messages as possible go from one place to another, and leaves have room.

    What a worker and those below it cost depends only on where it is: a dynamic program over the tree. Where leaves
    have no room, the one that loses least goes elsewhere, and the others are placed again.
    """
    if not room:
        return root
    names = list(room)
    fixed: dict[int, int] = {}

    def costs(worker: Worker, waits: float) -> _Costs:
        waits += worker.rate
        below = [costs(child, waits) for child in worker.children]
        here = [
            math.fsum(share.rate for share in worker.shares if share.place not in (None, name))
            + math.fsum(min(_moved(each.here, place, waits)) for each in below)
            for place, name in enumerate(names)
        ]
        if id(worker) in fixed:
            here = [cost if place == fixed[id(worker)] else math.inf for place, cost in enumerate(here)]
        return _Costs(worker, waits, here, below)

    def placed(solved: _Costs, above: int | None, waits: float) -> Worker:
        offers = solved.here if above is None else _moved(solved.here, above, waits)
        place = offers.index(min(offers))
        spots[id(solved.worker)] = (place, offers)
        return _with_place(solved.worker, names[place], [placed(each, place, solved.waits) for each in solved.below])

    while True:
        spots: dict[int, tuple[int, list[float]]] = {}
        tree = placed(costs(root, 0.0), None, 0.0)
        used = [0] * len(names)
        for leaf in root.leaves:
            used[spots[id(leaf)][0]] += 1
        full = [place for place, name in enumerate(names) if used[place] > room[name]]
        if not full:
            return tree
        free = [place for place, name in enumerate(names) if used[place] < room[name]]
        moves = (
            (spots[id(leaf)][1][place] - spots[id(leaf)][1][full[0]], number, place)
            for number, leaf in enumerate(root.leaves)
            if spots[id(leaf)][0] == full[0] and id(leaf) not in fixed
            for place in free
        )
        _, number, place = min(moves)
        fixed[id(root.leaves[number])] = place


@dataclass(frozen=True, slots=True)
class _Costs:
    """What a worker and those below it cost, for each place where it may be."""

    worker: Worker
    waits: float
    here: list[float]
    below: list[_Costs]


def _moved(costs: Sequence[float], above: int, waits: float) -> list[float]:
    return [cost + (MESSAGES * waits if place != above else 0.0) for place, cost in enumerate(costs)]
