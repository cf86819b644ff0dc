"""Generators of batches: the records of one micro-batch.

>>> from streamtight.stream.event import Kind
>>> User = Kind("User", id=int, good=bool)
>>> good = batch(User, size=2, id=range(1, 9), good=[True])
>>> bad = batch_of([User(15, False)])
>>> good + bad
batch(User, size=2, id=range(1, 9), good=[True]) + batch_of([User(id=15, good=False)])
>>> (good + bad).examples(1)
[(User(id=1, good=True), User(id=1, good=True), User(id=15, good=False))]

A record is drawn as a few bytes, one or more for each field, which are places in the pools of values; zeros stand for
the simplest record. Hypothesis needs as long for one byte as for ten, and makes a failing example small in fewer steps
if it has fewer choices. What is done to records later (times, nulls, duplicates) is decided by more bytes of the same
record, so that a record that is left out takes all of it along.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast

from hypothesis import reject
from hypothesis import strategies as st

from streamtight.errors import EventError, SourceError
from streamtight.source.generate import (
    SAMPLE_SIZE,
    Predicate,
    drawn,
    fitted,
    is_strategy,
    kinds_of,
    may_come,
    names,
    require_fields,
    require_predicate,
    shown,
)
from streamtight.source.values import simplicity, values_of
from streamtight.stream.event import Event, FieldType, Kind

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

    from streamtight.source.generate import FieldValues

Batch = tuple[Event, ...]
Record = tuple[Event, bytes]
"""An event with the bytes that were drawn for it and are not yet used."""
Size = int | tuple[int, int]
"""Exactly so many, or from so many to so many."""

USUAL_SIZE = (1, 5)
MOST_BYTES = 8_000
"""Hypothesis gives up on longer draws."""
WITNESSES = 100
"""So many events that satisfy a `where` are kept, for draws that do not."""
LONG_POOL = 1_000
"""A longer range is used as it is, without being written out and sorted."""

T = TypeVar("T")


@dataclass(frozen=True, eq=False, repr=False)
class BatchGenerator:
    """Where batches come from. Make one with the functions of `gen`; `+` joins the records, `|` chooses."""

    kinds: tuple[Kind, ...]
    """Every kind that may come."""
    text: str
    make: Callable[[int], SearchStrategy[tuple[Record, ...]]]
    """The strategy, if so many more bytes are wanted for each record."""
    is_compound: bool = field(default=False, kw_only=True)
    """Whether its text needs parentheses inside a larger one."""

    @functools.cached_property
    def strategy(self) -> SearchStrategy[Batch]:
        """The Hypothesis strategy: of tuples of events."""
        return self.make(0).map(lambda records: tuple([event for event, _ in records]))

    def examples(self, count: int = 5, *, seed: int = 0) -> list[Batch]:
        """At most so many batches, the simplest first; the same for the same seed in every process."""
        return cast("list[Batch]", drawn(self.strategy, count, seed, repr(self)))

    def __bool__(self) -> bool:
        raise SourceError(
            repr(self),
            needed="an operator of generators",
            came="and, or, not or if",
            hint="+, | and &, or gen.one_of(...)",
        )

    def __add__(self, other: BatchGenerator) -> BatchGenerator:
        """One batch with the records of both."""
        require_batch(other, "batch + ...")

        def make(more: int) -> SearchStrategy[tuple[Record, ...]]:
            return st.tuples(self.make(more), other.make(more)).map(lambda both: both[0] + both[1])

        text = f"{self.inner_text} + {other.inner_text}"
        return BatchGenerator(all_kinds(self, other), text, make, is_compound=True)

    def __or__(self, other: BatchGenerator) -> BatchGenerator:
        """A batch of the one or of the other."""
        if not isinstance(other, BatchGenerator) and hasattr(other, "strategy"):
            return NotImplemented  # a generator of streams knows what to do
        require_batch(other, "batch | ...")

        def make(more: int) -> SearchStrategy[tuple[Record, ...]]:
            return st.one_of(self.make(more), other.make(more))

        text = f"{self.inner_text} | {other.inner_text}"
        return BatchGenerator(all_kinds(self, other), text, make, is_compound=True)

    @property
    def inner_text(self) -> str:
        """Its text inside a larger one."""
        return f"({self.text})" if self.is_compound else self.text

    def __repr__(self) -> str:
        return self.text


def all_kinds(*generators: Any) -> tuple[Kind, ...]:
    """The kinds of all of these generators."""
    return tuple(dict.fromkeys(kind for generator in generators for kind in generator.kinds))


# -- what users write ------------------------------------------------------------------------------------------------


def batch(
    what: Kind | Iterable[Kind],
    /,
    *,
    size: Size = USUAL_SIZE,
    where: Predicate | None = None,
    extremes: bool = False,
    **fields: FieldValues,
) -> BatchGenerator:
    """Batches of records of a kind, or of several kinds mixed.

    `size` is how many: exactly 20, or from (0, 5). By name, a field gets the values to draw from, as a sequence or as
    a Hypothesis strategy, in every kind that has it; a field without gets small values that often collide. `where` says
    which records may come. `extremes` adds the ends of the types, where most arithmetic overflows.

    >>> Ride = Kind("Ride", taxi=int, cents=int)
    >>> rides = batch(Ride, size=(0, 2), cents=range(100, 1000, 50), where=lambda ride: ride.taxi > 0)
    >>> {len(one) for one in rides.examples(50)} == {0, 1, 2}
    True
    """
    if isinstance(what, BatchGenerator) or is_strategy(what):
        raise SourceError(
            "gen.batch(...)",
            needed="a Kind, or several",
            came=f"a generator, {shown(what)}",
            hint="the generator itself" if isinstance(what, BatchGenerator) else "gen.elements_of(strategy, size=5)",
        )
    if not isinstance(what, Kind) and hasattr(what, "fieldNames"):  # a schema of Spark
        raise SourceError("gen.batch(...)", needed="a Kind", came=shown(what), hint='kind_of("User", schema)')
    kinds = kinds_of(what, "gen.batch(...)")
    least, most = sizes(size, "gen.batch(size=...)", 0)
    require_predicate(where, "gen.batch")
    require_fields(fields, kinds, "gen.batch", "size, where, extremes")
    recipe = _recipe(kinds, fields, where, extremes)
    if least * max(recipe.width, 1) > MOST_BYTES:
        raise SourceError(
            "gen.batch(size=...)",
            needed=f"at most {MOST_BYTES // max(recipe.width, 1)} records of {names(kinds)}: Hypothesis draws no more",
            came=shown(size),
            hint="a smaller size; a bug that needs so many records shows more easily with smaller windows or limits",
        )
    told = "" if size == USUAL_SIZE else f", size={size}"
    told += "".join(f", {name}={brief(values)}" for name, values in fields.items())
    told += ", where=..." if where is not None else ""
    told += ", extremes=True" if extremes else ""
    called = names(kinds) if len(kinds) == 1 else f"[{names(kinds)}]"
    return BatchGenerator(kinds, f"batch({called}{told})", lambda more: recipe.batches(least, most, more))


def batch_of(
    events: Iterable[Event] | SearchStrategy[Iterable[Event]], /, *, kinds: Iterable[Kind] = ()
) -> BatchGenerator:
    """Exactly these records; or what a Hypothesis strategy of lists of events draws.

    Which kinds a strategy yields is known only from a sample: `kinds` names those that come seldom.

    >>> N = Kind("N", n=int)
    >>> batch_of([N(1), N(2)]).examples()
    [(N(n=1), N(n=2))]
    """
    where = "gen.batch_of(...)"
    if not is_strategy(events):
        told = events_in(events, where)
        text = f"batch_of({brief(list(told))})"
        return BatchGenerator(kinds_among(told, kinds), text, lambda more: with_bytes((told,), more).map(_first))
    strategy = cast("SearchStrategy[Iterable[Event]]", events)
    known = kinds_among((e for made in drawn(strategy, SAMPLE_SIZE, 0, where) for e in events_in(made, where)), kinds)

    def make(more: int) -> SearchStrategy[tuple[Record, ...]]:
        read = strategy.map(lambda made: (known_events(events_in(made, where), known, where),))
        return read.flatmap(lambda batches: with_bytes(batches, more)).map(_first)

    return BatchGenerator(known, f"batch_of({brief(strategy)})", make)


def elements_of(
    events: Iterable[Event] | SearchStrategy[Event], /, *, size: Size = USUAL_SIZE, kinds: Iterable[Kind] = ()
) -> BatchGenerator:
    """Batches of records out of these, or of those that a Hypothesis strategy of events draws; some may come twice.

    >>> N = Kind("N", n=int)
    >>> {record.n for one in elements_of([N(1), N(2)], size=3).examples(9) for record in one}
    {1, 2}
    """
    where = "gen.elements_of(...)"
    least, most = sizes(size, "gen.elements_of(size=...)", 0)
    told = "" if size == USUAL_SIZE else f", size={size}"
    if is_strategy(events):
        strategy = cast("SearchStrategy[Event]", events)
        known = kinds_among(events_in(drawn(strategy, SAMPLE_SIZE, 0, where), where), kinds)
        recipe = _Recipe(0, lambda _, __, made: known_events(made, known, where)[0], strategies=(strategy,))
        text = f"elements_of({brief(strategy)}{told})"
        return BatchGenerator(known, text, lambda more: recipe.batches(least, most, more))
    pool = _Pool.of(sorted(events_in(events, where), key=simplicity))
    if not pool.values:
        raise SourceError(where, needed="an event or more", came=shown(events), hint="gen.empty, for an empty batch")
    recipe = _Recipe(pool.width, lambda raw, _, __: cast(Event, chosen(pool.values, raw)))
    text = f"elements_of({brief(list(pool.values))}{told})"
    known = kinds_among(cast("Sequence[Event]", pool.values), kinds)
    return BatchGenerator(known, text, lambda more: recipe.batches(least, most, more))


empty = BatchGenerator((), "empty", lambda more: st.just(()))
"""The empty batch."""


# -- records from bytes ----------------------------------------------------------------------------------------------

SLOTS = 4
SHARES = 15
"""So many times more likely than the simplest value are the others of a selection."""
FEW = (SLOTS, 3, 2, 2, 1, 0, 0, 0)
"""How many values of a pool the records of a stream have, all equally likely; 0 for as many as there are.

First comes what counts as the simplest: in a small example records may differ, and yet a key is simplified in all.
"""


@dataclass(frozen=True, slots=True)
class _Pool:
    """Values, the simplest first, and how many bytes choose one of them about evenly."""

    values: Sequence[object]
    width: int

    @classmethod
    def of(cls, values: Sequence[object]) -> _Pool:
        # At least two numbers for each value, so that none comes much more often than the others.
        return cls(values, ((2 * len(values) - 1).bit_length() + 7) // 8 if len(values) > 1 else 0)

    @property
    def selection(self) -> SearchStrategy[bytes]:
        """The bytes that choose a few values of it."""
        return raw_bytes(1 + SLOTS * self.width if self.width else 0)

    def selected(self, raw: bytes) -> Sequence[object]:
        """The values that these bytes choose, each as often as it is likely; or all."""
        width = self.width
        few = FEW[raw[0] * len(FEW) >> 8] if width else 0
        slots = [chosen(self.values, raw[1 + slot * width :][:width]) for slot in range(few)]
        # The simplest comes first, or else every record of a small example would have the one value that matters.
        return [self.values[0], *(slots[share * few // SHARES] for share in range(SHARES))] if few else self.values


def chosen(values: Sequence[T], raw: bytes) -> T:
    """The value that these bytes choose: the greater they are, the less simple it is."""
    return values[int.from_bytes(raw) * len(values) >> 8 * len(raw)]


def raw_bytes(width: int) -> SearchStrategy[bytes]:
    """So many bytes; without any, nothing is drawn."""
    return st.binary(min_size=width, max_size=width) if width else st.just(b"")


Selections = tuple[Sequence[object], ...]
"""The values that the records of one stream may have, for each of the fields that have a pool."""


@dataclass(frozen=True, slots=True)
class _Recipe:
    """How a record is made of so many bytes, of values of the pools, and of one value of each strategy."""

    width: int
    make: Callable[[bytes, Selections, tuple[Any, ...]], Event]
    pools: tuple[tuple[str, _Pool], ...] = ()
    """Of fields, by name."""
    strategies: tuple[SearchStrategy[Any], ...] = ()
    where: Predicate | None = None
    """Which records may come, if that is not yet seen to in `make`."""

    def batches(self, least: int, most: int, more: int) -> SearchStrategy[tuple[Record, ...]]:
        """Batches of so many records, each with more bytes."""
        width, make, strategies = self.width, self.make, self.strategies
        raw: SearchStrategy[Any] = raw_bytes(width + more)
        if strategies:
            raw = st.tuples(raw, st.tuples(*strategies))

        def record(selections: Selections, drawn: Any) -> Record:
            raw, values = drawn if strategies else (drawn, ())
            return make(raw[:width], selections, values), raw[width:]

        if self.where is not None:
            each = st.tuples(self._selections(), raw).map(lambda drawn: record(*drawn))
            return st.lists(_passing(each, self.where), min_size=least, max_size=most).map(tuple)
        both = st.tuples(self._selections(), st.lists(raw, min_size=least, max_size=most))
        return both.map(lambda drawn: tuple([record(drawn[0], one) for one in drawn[1]]))

    def _selections(self) -> SearchStrategy[Selections]:
        """Drawn once for all batches, and for all fields of one name and with the same values.

        So keys meet: in later batches, and in batches of other generators. And where a key has become simpler in one
        record, it has in all.
        """
        pools = [pool for _, pool in self.pools]
        drawn_once = (st.shared(pool.selection, key=(name, repr(pool.values))) for name, pool in self.pools)
        return st.tuples(*drawn_once).map(
            lambda raws: tuple([pool.selected(raw) for pool, raw in zip(pools, raws, strict=True)])
        )


@st.composite
def _passing(draw: DrawFn, records: SearchStrategy[Record], where: Predicate) -> Record:
    """A record that satisfies `where`. Hypothesis' own filter gives up after three, and with it the whole stream."""
    for _ in range(100):
        record = draw(records)
        if may_come(record[0], where, "gen.batch"):
            break
    else:
        reject()
    return record


def _recipe(
    kinds: tuple[Kind, ...], fields: dict[str, FieldValues], where: Predicate | None, extremes: bool
) -> _Recipe:
    for name, values in fields.items():
        for kind in kinds:
            if name in kind.fields:
                fitted(kind, name, _sample(name, values), "gen.batch")
    strategies = {name: values for name, values in fields.items() if is_strategy(values)}
    pools: dict[tuple[str, object], _Pool] = {}
    for kind in kinds:
        for name, declared in kind.fields.items():
            if name not in strategies:
                pools[name, declared] = _Pool.of(
                    _simplest_first(fields[name]) if name in fields else _usual_first(declared, extremes)
                )
    places = {key: place for place, key in enumerate(pools)}
    makers = [_maker(kind, pools, places, list(strategies)) for kind in kinds]
    kind_width = _Pool.of(kinds).width
    width = kind_width + max(width for width, _ in makers)
    named = tuple((name, pool) for (name, _), pool in pools.items())

    def make(raw: bytes, selections: Selections, values: tuple[Any, ...]) -> Event:
        return chosen(makers, raw[:kind_width])[1](raw[kind_width:], selections, values)

    if where is None or strategies:
        return _Recipe(width, make, named, tuple(strategies.values()), where)
    every: Selections = tuple(pool.values for pool in pools.values())
    witnesses = _witnesses(width, lambda raw: make(raw, every, ()), where)

    def make_where(raw: bytes, selections: Selections, values: tuple[Any, ...]) -> Event:
        event = make(raw, selections, values)
        return event if may_come(event, where, "gen.batch") else chosen(witnesses, raw)

    return _Recipe(width, make_where, named)


def _sample(name: str, values: FieldValues) -> Iterable[object]:
    """Values that show whether all of them fit."""
    if is_strategy(values):
        return drawn(values, SAMPLE_SIZE, 0, f"gen.batch({name}=...)")
    told = cast("Sequence[object]", values)
    return (told[0], told[-1]) if isinstance(told, range) else told


def _simplest_first(values: FieldValues) -> Sequence[object]:
    told = cast("Sequence[object]", values)
    if isinstance(told, range) and len(told) > LONG_POOL:
        return told
    # None last: where a small example still has one, it matters.
    return sorted(told, key=lambda value: (value is None, simplicity(value)))


def _usual_first(declared: FieldType, extremes: bool) -> Sequence[object]:
    """The values of a type. Those that jobs forget, such as the empty text, come after the usual ones, as None does."""
    values = values_of(declared)
    pool = values.pool(extremes=extremes)
    usual = len(pool) - len(values.rare) - (len(values.extreme) if extremes else 0)
    ordered = sorted(enumerate(pool), key=lambda at: (at[1] is None, at[0] >= usual, simplicity(at[1])))
    return [value for _, value in ordered]


def _maker(
    kind: Kind, pools: dict[tuple[str, object], _Pool], places: dict[tuple[str, object], int], strategies: list[str]
) -> tuple[int, Callable[[bytes, Selections, tuple[Any, ...]], Event]]:
    """Makes events of this kind out of so many bytes, of values of pools, and of values that strategies drew."""
    parts: list[tuple[bool, int, int, int]] = []
    end = 0
    for key in kind.fields.items():
        if key in pools:
            parts.append((True, places[key], end, end + pools[key].width))
            end += pools[key].width
        else:
            parts.append((False, strategies.index(key[0]), 0, 0))

    def make(raw: bytes, selections: Selections, values: tuple[Any, ...]) -> Event:
        try:
            return kind(
                *[
                    chosen(selections[place], raw[start:end]) if is_pool else values[place]
                    for is_pool, place, start, end in parts
                ]
            )
        except EventError as error:  # of a strategy, of which only a sample was tried
            needed = f"values that fit {error.where}: {error.needed}"
            raise SourceError("gen.batch(...)", needed=needed, came=error.came, hint=error.hint) from None

    return end, make


def _witnesses(width: int, make: Callable[[bytes], Event], where: Predicate) -> list[Event]:
    """Events that satisfy `where`, the simplest first."""
    rng = random.Random(0)  # any: the same events every time
    candidates = (make(rng.randbytes(width)) for _ in range(5_000))
    found = dict.fromkeys(itertools.islice((e for e in candidates if may_come(e, where, "gen.batch")), WITNESSES))
    if not found:
        raise SourceError(
            "gen.batch(where=...)",
            needed="a predicate that some generated events satisfy",
            came=f"none in 5,000 events, such as {make(bytes(width))!r}",
            hint="values that satisfy it for the fields that it reads, such as taxi_id=[1, 2, 3]",
        )
    return sorted(found, key=simplicity)


def with_bytes(batches: tuple[Batch, ...], more: int) -> SearchStrategy[tuple[tuple[Record, ...], ...]]:
    """These batches, with so many bytes for each record."""
    total = sum(map(len, batches)) * more

    def cut(raw: bytes) -> tuple[tuple[Record, ...], ...]:
        pieces = (raw[start : start + more] for start in itertools.count(step=more))
        return tuple(tuple([(event, next(pieces)) for event in batch]) for batch in batches)

    return raw_bytes(total).map(cut)


def _first(batches: tuple[T, ...]) -> T:
    return batches[0]


# -- wrong questions -------------------------------------------------------------------------------------------------


def require_batch(given: object, where: str) -> BatchGenerator:
    """The generator of batches that was wanted here."""
    if isinstance(given, BatchGenerator):
        return given
    raise SourceError(where, needed="a generator of batches", came=shown(given), hint=hint_of_generator(given))


def hint_of_generator(given: object) -> str:
    """How to make a generator of what was given instead of one."""
    if isinstance(given, Kind):
        return f"gen.batch({given.name})"
    if is_strategy(given):
        return "gen.batch_of(strategy), for one of lists of events"
    if isinstance(given, (list, tuple)) and not isinstance(given, Event):
        return "gen.batch_of([...])"
    return "gen.batch(User)"


def events_in(given: object, where: str) -> Batch:
    """The events of a batch as a user writes it."""
    if isinstance(given, Iterable) and not isinstance(given, (Event, str, bytes, dict)):
        events = tuple(given)
        if all(isinstance(event, Event) for event in events):
            return events
        given = next(event for event in events if not isinstance(event, Event))
    raise SourceError(where, needed="a list of events", came=shown(given), hint=_hint_of_events(given))


def _hint_of_events(given: object) -> str:
    if isinstance(given, Kind):
        return f"gen.batch({given.name}), for generated events"
    if isinstance(given, Event):
        return f"[{shown(given)}]"
    return "[User(1, True), User(2, False)]"


def known_events(events: Iterable[Event], known: tuple[Kind, ...], where: str) -> Batch:
    """The events, if they are of these kinds; a strategy was only sampled."""
    told = events_in(events, where)
    for event in told:
        if event.kind not in known:
            raise SourceError(
                where,
                needed=f"events of {names(known)}, as in its first {SAMPLE_SIZE} draws",
                came=repr(event),
                hint=f"kinds=[{names((*known, event.kind))}]",
            )
    return told


def kinds_among(events: Iterable[Event], kinds: Iterable[Kind]) -> tuple[Kind, ...]:
    """The kinds that are named, and those of these events."""
    named = kinds_of(kinds, "kinds=") if kinds else ()
    return tuple(dict.fromkeys((*named, *(event.kind for event in events))))


def sizes(given: object, where: str, smallest: int) -> tuple[int, int]:
    """The least and the most of a size."""
    match given:
        case bool():
            pass
        case int() if given >= smallest:
            return given, given
        case [int() as least, int() as most] if smallest <= least <= most:
            return least, most
    raise SourceError(
        where,
        needed=f"a number from {smallest}, or the least and the most",
        came=shown(given),
        hint=f"{max(smallest, 1)}, or ({smallest}, 5)",
    )


def brief(value: object) -> str:
    """A value as a generator shows it."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:50]}..."
