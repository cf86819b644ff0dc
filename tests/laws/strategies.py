"""What the laws are tried on: few kinds, few fields, few values, so that events collide all the time."""

from __future__ import annotations

import functools
import itertools
import math
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from twins import Relation, alike, schema_depends

from streamtight.stream.dependence import Dependence, barrier, between, depends, ordered, same, unordered
from streamtight.stream.event import Event, Kind
from streamtight.stream.schedule import Batches, Restart, Schedule
from streamtight.stream.schema import Bag, Par, PartitionBy, Schema, Seq, Sync

EXAMPLES = 50
lawful = settings(max_examples=EXAMPLES, deadline=None)
"""For laws whose twin is quick."""
lawful_slow = settings(max_examples=EXAMPLES // 2, deadline=None)
"""For laws whose twin looks at every permutation."""

# One type for a name, so that any two kinds may be split by it together. None and NaN are keys like any other.
TYPES = {"k": int | None, "j": str, "x": float, "n": int}
VALUES = {"k": (1, None), "j": ("a", "b"), "x": (0.0, math.nan), "n": (0, 1)}
SHAPES = (("x", "n"), ("k", "n"), ("k", "x", "n"), ("k", "x"), ("k", "j"), ("k",), ())


@functools.cache
def kinds(*, least: int = 1, most: int = 3) -> st.SearchStrategy[tuple[Kind, ...]]:
    """Kinds A, B, ... with some of the fields."""
    return st.lists(st.sampled_from(SHAPES), min_size=least, max_size=most).map(
        lambda shapes: tuple(
            Kind(name, **{field: TYPES[field] for field in shape}) for name, shape in zip("ABCD", shapes, strict=False)
        )
    )


def universe(of: Iterable[Kind]) -> list[Event]:
    """Every event of these kinds over the small domains."""
    return [kind(*values) for kind in of for values in itertools.product(*(VALUES[field] for field in kind.names))]


@functools.cache
def pools(of: tuple[Kind, ...]) -> st.SearchStrategy[list[Event]]:
    """A few different events of these kinds."""
    return st.lists(st.sampled_from(universe(of)), min_size=min(3, len(universe(of))), max_size=4, unique=True)


@st.composite
def events(draw: st.DrawFn, of: tuple[Kind, ...], *, most: int = 6) -> list[Event]:
    """Lists of events, with few different ones."""
    return draw(_lists(draw(pools(of)), most))


def _lists(pool: list[Event], most: int) -> st.SearchStrategy[list[Event]]:
    # Left alone, Hypothesis draws an empty list or a single event half of the time, and those obey every law.
    sizes = st.sampled_from([size for size in (3, 2, 4, 5, 6, 7, 8, 9, 10, 1, 0) if size <= most])
    return sizes.flatmap(lambda size: st.lists(st.sampled_from(pool), min_size=size, max_size=size))


# -- schemas -----------------------------------------------------------------------------------------------------


@st.composite
def schemas(draw: st.DrawFn, of: tuple[Kind, ...], *, used: frozenset[str] = frozenset(), depth: int = 4) -> Schema:
    """Well-formed schemas of exactly these kinds, split by none of the `used` keys."""
    keys = sorted(set(TYPES).intersection(*(kind.names for kind in of)) - used) if of else []
    forms = ["seq", "bag"]
    if depth and of:
        forms = ["split", "split", *forms]
    if depth and keys:
        forms = ["partition", "partition", *forms]
    match draw(st.sampled_from(forms)):
        case "bag":
            return Bag(of)
        case "seq":
            return Seq(of)
        case "partition":
            most = draw(st.sampled_from([1, 2]))
            chosen = draw(st.lists(st.sampled_from(keys), min_size=1, max_size=most, unique=True))
            return PartitionBy(chosen, draw(schemas(of, used=used | set(chosen), depth=depth - 1)))
    inside = [draw(st.booleans()) for _ in of]
    one = tuple(kind for kind, here in zip(of, inside, strict=True) if here)
    other = tuple(kind for kind, here in zip(of, inside, strict=True) if not here)
    if draw(st.booleans()):
        return Sync(one, draw(schemas(other, used=used, depth=depth - 1)))
    return Par(draw(schemas(one, used=used, depth=depth - 1)), draw(schemas(other, used=used, depth=depth - 1)))


@st.composite
def relaxations(draw: st.DrawFn, schema: Schema, *, used: frozenset[str] = frozenset()) -> Schema:
    """Schemas that order no more than this one: markers may be let loose or be split by a key of their own."""
    match schema:
        case Sync():
            between_them = draw(relaxations(schema.between, used=used))
            markers = sorted(schema.markers, key=lambda kind: kind.name)
            keys = sorted(set(TYPES).intersection(*(kind.names for kind in markers)) - used) if markers else []
            match draw(st.sampled_from(["keep", "loose", "split"] if keys else ["keep", "loose"])):
                case "keep":
                    return Sync(markers, between_them)
                case "split":
                    return Par(PartitionBy(draw(st.sampled_from(keys)), Seq(markers)), between_them)
            return Par(Bag(markers), between_them)
        case PartitionBy():
            return PartitionBy(schema.fields, draw(relaxations(schema.each, used=used | set(schema.fields))))
        case Par():
            return Par(*[draw(relaxations(part, used=used)) for part in schema.parts])
    return draw(st.sampled_from([schema, Par(*(Bag(kind) for kind in sorted(schema.kinds, key=lambda k: k.name)))]))


class Typed(NamedTuple):
    """A schema and streams of it, flat."""

    schema: Schema
    streams: list[list[Event]]


@st.composite
def typed(draw: st.DrawFn, *, streams: int = 1, most: int = 6, kinds_most: int = 3) -> Typed:
    """A schema, and so many lists of events out of one small pool."""
    of = draw(kinds(most=kinds_most))
    schema = draw(schemas(of))
    pool = draw(pools(of))
    return Typed(schema, [draw(_lists(pool, most)) for _ in range(streams)])


# -- dependences ---------------------------------------------------------------------------------------------------


class Meant(NamedTuple):
    """A dependence, and what it means: a function of two events that knows nothing of clauses."""

    dependence: Dependence
    meaning: Relation


class _Odd:
    """A predicate that reads the values of an event: whether the number of its falsy fields is odd."""

    def __init__(self, of: Iterable[Kind] | None = None) -> None:
        self.of = None if of is None else frozenset(of)

    def __call__(self, event: Event) -> bool:
        return (self.of is None or event.kind in self.of) and sum(not value for value in event[1:]) % 2 == 1

    def __repr__(self) -> str:
        return "odd"


class _Opaque:
    """A symmetric function of two events that no algebra explains: about every third pair is dependent."""

    __name__ = "opaque"

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __call__(self, a: Event, b: Event) -> bool:
        return zlib.crc32(f"{self.seed}{sorted([repr(a), repr(b)])}".encode()) % 3 == 0

    def __repr__(self) -> str:
        return f"opaque {self.seed}"


Chosen = Callable[[Event], bool]


@functools.cache
def _selections(of: tuple[Kind, ...]) -> st.SearchStrategy[tuple[object, Chosen]]:
    """What goes into barrier(...) and between(...), and which events it selects."""
    some = st.lists(st.sampled_from(of), min_size=1, max_size=2, unique=True)
    return st.one_of(
        st.sampled_from(of).map(lambda kind: (kind, lambda event: event.kind is kind)),
        some.map(lambda several: (several, lambda event: event.kind in several)),
        st.just((_Odd(), _Odd())),
    )


@st.composite
def _leaf(draw: st.DrawFn, of: tuple[Kind, ...]) -> Meant:
    forms = ["barrier", "between", "depends", "schema", "schema", "ordered", "unordered"]
    fields = sorted({field for kind in of for field in kind.names})
    if fields:
        forms = ["same", "same", "same", *forms]
    match draw(st.sampled_from(forms)):
        case "unordered":
            return Meant(unordered, lambda a, b: False)
        case "ordered":
            return Meant(ordered, lambda a, b: True)
        case "barrier":
            given, chosen = draw(_selections(of))
            return Meant(barrier(given), lambda a, b: chosen(a) or chosen(b))
        case "between":
            (one, is_one), (other, is_other) = draw(_selections(of)), draw(_selections(of))
            meaning = lambda a, b: (is_one(a) and is_other(b)) or (is_other(a) and is_one(b))  # noqa: E731
            return Meant(between(one, other), meaning)
        case "depends":
            fn = _Opaque(draw(st.integers(0, 5)))
            return Meant(depends(fn), fn)
        case "schema":
            schema = draw(schemas(of, depth=2))
            return Meant(schema, lambda a, b: schema_depends(schema, a, b))
    return draw(_same(of, fields))


@st.composite
def _same(draw: st.DrawFn, of: tuple[Kind, ...], fields: list[str]) -> Meant:
    chosen = [draw(st.sampled_from(fields))]
    second = draw(st.sampled_from([None, None, *fields]))
    chosen += [second] if second not in (None, *chosen) else []
    having = [kind for kind in of if set(chosen) <= set(kind.names)]
    if not having:
        chosen, having = chosen[:1], [kind for kind in of if chosen[0] in kind.names]

    def agree(a: Event, b: Event) -> bool:
        return all(alike(getattr(a, field), getattr(b, field)) for field in chosen)

    if draw(st.booleans()):
        odd = _Odd(having)
        return Meant(same(*chosen, of=odd), lambda a, b: odd(a) and odd(b) and agree(a, b))
    if len(having) == len(of) and draw(st.booleans()):
        return Meant(same(*chosen), agree)
    return Meant(same(*chosen, of=having), lambda a, b: a.kind in having and b.kind in having and agree(a, b))


@st.composite
def dependences(draw: st.DrawFn, of: tuple[Kind, ...]) -> Meant:
    """Everything that users can write about these kinds, with its meaning."""
    parts = [draw(_leaf(of)) for _ in range(draw(st.sampled_from([1, 2, 1, 2, 3, 4])))]
    while len(parts) > 1:
        one, other = parts.pop(draw(st.sampled_from([0, -1]))), parts.pop()
        parts.insert(0, _either(one, other) if draw(st.booleans()) else _both(one, other))
    return parts[0]


def _either(one: Meant, other: Meant) -> Meant:
    return Meant(one.dependence | other.dependence, lambda a, b: one.meaning(a, b) or other.meaning(a, b))


def _both(one: Meant, other: Meant) -> Meant:
    return Meant(one.dependence & other.dependence, lambda a, b: one.meaning(a, b) and other.meaning(a, b))


class Drawn(NamedTuple):
    """A dependence with its meaning, the kinds that it is about, and a list of events of these."""

    kinds: tuple[Kind, ...]
    upto: Dependence
    meaning: Relation
    events: list[Event]


@st.composite
def drawn(draw: st.DrawFn, *, most: int = 6) -> Drawn:
    """Any dependence on a few kinds, and a list of events of these."""
    of = draw(kinds())
    meant = draw(dependences(of))
    return Drawn(of, meant.dependence, meant.meaning, draw(events(of, most=most)))


# -- schedules -----------------------------------------------------------------------------------------------------


@st.composite
def batches(draw: st.DrawFn, listed: Sequence[Event], *, most: int = 3, width: int = 3) -> Batches:
    """These events in batches and partitions, in any way at all."""
    count = draw(st.integers(1, most))
    shape = [[[] for _ in range(draw(st.integers(1, width)))] for _ in range(count)]
    for event in listed:
        batch = shape[draw(st.integers(0, count - 1))]
        batch[draw(st.integers(0, len(batch) - 1))].append(event)
    return tuple(tuple(tuple(partition) for partition in batch) for batch in shape)


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """Schedules with everything that one can have."""
    listed = draw(kinds().flatmap(events))
    chosen = draw(batches(listed))
    places = draw(st.sets(st.integers(0, len(chosen) - 1)))
    restarts = tuple(Restart(place, draw(st.booleans())) for place in sorted(places))
    return Schedule(chosen, draw(st.integers(1, 4)), restarts)
