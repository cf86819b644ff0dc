"""The slow, obvious twins: each definition of the paper as it is written, without an index and without cleverness."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from streamtight.stream.event import Event, Kind
from streamtight.stream.schedule import Batch
from streamtight.stream.schema import Bag, Par, PartitionBy, Schema, Sync

Relation = Callable[[Event, Event], bool]
Word = tuple[Event, ...]


def alike(one: object, other: object) -> bool:
    """Whether two values are equal, as Spark sees it: NaN is equal to NaN, None to None."""
    return one == other or (one != one and other != other)


def schema_depends(schema: Schema, a: Event, b: Event) -> bool:
    """Definition 2.13."""
    match schema:
        case Bag():
            return False
        case Sync():
            if a.kind in schema.markers or b.kind in schema.markers:
                return a.kind in schema.kinds and b.kind in schema.kinds
            return schema_depends(schema.between, a, b)
        case PartitionBy():
            inside = schema_depends(schema.each, a, b)
            return inside and all(alike(getattr(a, field), getattr(b, field)) for field in schema.fields)
        case Par():
            return any(schema_depends(part, a, b) for part in schema.parts)
    raise AssertionError(schema)


def reachable(events: Iterable[Event], depends: Relation) -> set[Word]:
    """Definition 2.14: all that swapping independent neighbours, again and again, makes of these events."""
    listed = tuple(events)
    distinct = list(dict.fromkeys(listed))
    free = [[not depends(a, b) for b in distinct] for a in distinct]
    start = tuple(distinct.index(event) for event in listed)
    seen, waiting = {start}, [start]
    while waiting:
        word = waiting.pop()
        for place in range(len(word) - 1):
            a, b = word[place : place + 2]
            if a != b and free[a][b]:
                swapped = (*word[:place], b, a, *word[place + 2 :])
                if swapped not in seen:
                    seen.add(swapped)
                    waiting.append(swapped)
    return {tuple(distinct[number] for number in word) for word in seen}


def linearizations(events: Sequence[Event], depends: Relation) -> set[Word]:
    """The permutations in which every two dependent events stand as they stood."""
    places = range(len(events))
    tied = [(i, j) for i, j in itertools.combinations(places, 2) if depends(events[i], events[j])]
    found = set()
    for order in itertools.permutations(places):
        rank = {place: number for number, place in enumerate(order)}
        if all(rank[i] < rank[j] for i, j in tied):
            found.add(tuple(events[place] for place in order))
    return found


def is_prefix(one: Sequence[Event], other: Sequence[Event], depends: Relation) -> bool:
    """Section 2.1: some reordering of the one begins some reordering of the other."""
    begins = reachable(one, depends)
    return any(word[: len(one)] in begins for word in reachable(other, depends))


def chances(events: Word, depends: Relation) -> dict[Word, float]:
    """How likely each reordering is if, at every place, each event that may come next is as likely as any other."""
    if not events:
        return {(): 1.0}
    first = [i for i, event in enumerate(events) if not any(depends(earlier, event) for earlier in events[:i])]
    found: Counter[Word] = Counter()
    for place in first:
        for rest, chance in chances(events[:place] + events[place + 1 :], depends).items():
            found[events[place], *rest] += chance / len(first)
    return dict(found)


def shuffles(batch: Batch) -> set[Word]:
    """Every order in which a consumer may see the partitions of one batch."""
    if not any(batch):
        return {()}
    found = set()
    for place, partition in enumerate(batch):
        if partition:
            left = (*batch[:place], partition[1:], *batch[place + 1 :])
            found |= {(partition[0], *rest) for rest in shuffles(left)}
    return found


# -- series-parallel streams ---------------------------------------------------------------------------------------


def structure(schema: Schema, events: Sequence[Event]) -> object:
    """Definition 2.9: what a sequence is as a value of the schema, in plain dicts, lists and tuples."""
    match schema:
        case Bag():
            return dict(Counter(events))
        case Sync():
            chunks, markers = _chunks(schema, events)
            return [[structure(schema.between, chunk) for chunk in chunks], markers]
        case PartitionBy():
            return {key: structure(schema.each, part) for key, part in _parts(schema, events).items()}
        case Par():
            return tuple(structure(part, [e for e in events if e.kind in part.kinds]) for part in schema.parts)
    raise AssertionError(schema)


def flattenings(schema: Schema, events: Sequence[Event]) -> set[Word]:
    """Definition 2.18: every flattening of the stream that these events are a flattening of."""
    match schema:
        case Bag():
            return set(itertools.permutations(events))
        case Sync():
            chunks, markers = _chunks(schema, events)
            found = flattenings(schema.between, chunks[0])
            for marker, chunk in zip(markers, chunks[1:], strict=True):
                found = {(*word, marker, *rest) for word in found for rest in flattenings(schema.between, chunk)}
            return found
        case PartitionBy():
            return _all_shuffles(flattenings(schema.each, part) for part in _parts(schema, events).values())
        case Par():
            parts = ([e for e in events if e.kind in part.kinds] for part in schema.parts)
            return _all_shuffles(flattenings(*pair) for pair in zip(schema.parts, parts, strict=True))
    raise AssertionError(schema)


def _chunks(schema: Sync, events: Sequence[Event]) -> tuple[list[list[Event]], list[Event]]:
    chunks: list[list[Event]] = [[]]
    for event in events:
        if event.kind in schema.markers:
            chunks.append([])
        else:
            chunks[-1].append(event)
    return chunks, [event for event in events if event.kind in schema.markers]


def _parts(schema: PartitionBy, events: Sequence[Event]) -> dict[tuple[object, ...], list[Event]]:
    parts: dict[tuple[object, ...], list[Event]] = {}
    for event in events:
        parts.setdefault(tuple(getattr(event, field) for field in schema.fields), []).append(event)
    return parts


def _all_shuffles(languages: Iterable[set[Word]]) -> set[Word]:
    return {word for chosen in itertools.product(*languages) for word in shuffles(chosen)}


# -- relations on kinds --------------------------------------------------------------------------------------------

Edges = frozenset[frozenset[Kind]]
"""A symmetric relation on kinds: the sets {a, b} that are related, {a} where a is related with itself."""


def representable(kinds: frozenset[Kind]) -> set[Edges]:
    """The relation of every schema without keys that has exactly these kinds (Definitions 2.6 and 2.13)."""
    found: set[Edges] = {frozenset()}
    for size in range(1, len(kinds) + 1):
        for some in itertools.combinations(sorted(kinds, key=lambda kind: kind.name), size):
            markers, rest = frozenset(some), kinds - frozenset(some)
            ties = frozenset(frozenset({a, b}) for a in markers for b in kinds)
            found |= {ties | inside for inside in representable(rest)}  # Sync
            if rest:  # Par
                found |= {one | other for one in representable(markers) for other in representable(rest)}
    return found


def four_in_a_row(kinds: Iterable[Kind], depends: Callable[[Kind, Kind], bool]) -> tuple[Kind, ...] | None:
    """Four kinds on which the relation is exactly a path or a cycle (P4 or C4), loops aside."""
    for a, b, c, d in itertools.permutations(kinds, 4):
        if depends(a, b) and depends(b, c) and depends(c, d) and not depends(a, c) and not depends(b, d):
            return (a, b, c, d)
    return None


def subsets(items: Sequence[frozenset[Kind]]) -> Iterator[Edges]:
    """Every relation with these pairs."""
    for size in range(len(items) + 1):
        for chosen in itertools.combinations(items, size):
            yield frozenset(chosen)
