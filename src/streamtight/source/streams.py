"""Generators of streams: batches over time, put together by temporal operators.

>>> from streamtight.source.batches import batch, batch_of
>>> from streamtight.stream.event import Kind
>>> User = Kind("User", id=int, good=bool)
>>> good, bad = batch(User, size=1, id=range(1, 9), good=[True]), batch_of([User(15, False)])
>>> stream = until(good, bad, within=3) + always(good | bad, during=2)
>>> stream
until(batch(User, size=1, id=range(1, 9), good=[True]), batch_of([User(id=15, good=False)]), within=3) + \
always(batch(User, size=1, id=range(1, 9), good=[True]) | batch_of([User(id=15, good=False)]), during=2)
>>> for batch_of_users in stream.examples(1)[0]:
...     print(batch_of_users)
(User(id=15, good=False),)
(User(id=1, good=True),)
(User(id=1, good=True),)

A stream is a tuple of batches, one or more; a batch is a tuple of events. Each operator yields the shortest streams
that satisfy the formula of the same name, if a batch satisfies what its generator stands for, also after other records
have joined it. Operators on generators of streams are like operators on formulas: `always(s, during=3)` begins an s at
each of three batches, and batches that meet are joined. After Riesco and Rodriguez-Hortala, "A Lightweight Tool for
Random Testing of Stream Processing Systems", section 3.2.

Hypothesis makes a failing stream small within these shapes: fewer batches where the operators permit it, fewer records
where the sizes do, and simpler values.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, cast, overload

from hypothesis import strategies as st

from streamtight.errors import EventError, SourceError, StreamtightError
from streamtight.source.batches import (
    Batch,
    BatchGenerator,
    Record,
    Size,
    all_kinds,
    brief,
    events_in,
    hint_of_generator,
    kinds_among,
    known_events,
    require_batch,
    sizes,
    with_bytes,
)
from streamtight.source.generate import SAMPLE_SIZE, drawn, is_strategy, names, plain_event, shown
from streamtight.source.values import NOON
from streamtight.stream.event import Event, Kind

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

Stream = tuple[Batch, ...]
Records = tuple[tuple[Record, ...], ...]
"""A stream as it is drawn: each record still has bytes that were drawn for it."""

USUAL_LENGTH = 10
"""The timeout of an operator that was given none."""
MINUTE = timedelta(minutes=1)
SHARE_BYTES = 2
"""So many bytes decide whether something that is the case for a share of the records is so for this one."""


@dataclass(frozen=True, eq=False, repr=False)
class StreamGenerator:
    """Where streams come from. Make one with the functions of `gen`.

    `a + b` is b after a, `a & b` joins them batch by batch, `a | b` chooses, `a * 3` is three of a in a row.
    """

    kinds: tuple[Kind, ...]
    """Every kind that may come."""
    text: str
    make: Callable[[int], SearchStrategy[Records]]
    """The strategy, if so many more bytes are wanted for each record."""
    is_compound: bool = field(default=False, kw_only=True)
    """Whether its text needs parentheses inside a larger one."""

    @functools.cached_property
    def strategy(self) -> SearchStrategy[Stream]:
        """The Hypothesis strategy: of tuples of batches, which are tuples of events."""
        return self.make(0).map(_events)

    def examples(self, count: int = 5, *, seed: int = 0) -> list[Stream]:
        """At most so many streams, the simplest first; the same for the same seed in every process."""
        return cast("list[Stream]", drawn(self.strategy, count, seed, repr(self)))

    # -- operators -----------------------------------------------------------------------------------------------------

    def __bool__(self) -> bool:
        raise SourceError(
            repr(self),
            needed="an operator of generators",
            came="and, or, not or if",
            hint="+, | and &, or gen.one_of(...)",
        )

    def __add__(self, other: StreamGenerator) -> StreamGenerator:
        """The one, and then the other."""
        _require_stream(other, "stream + ...")
        return self._with(other, "+", lambda first, second: first + second)

    def __and__(self, other: StreamGenerator) -> StreamGenerator:
        """Both at once: the batches joined, one by one; the shorter one goes on with empty batches."""
        _require_stream(other, "stream & ...")
        return self._with(other, "&", lambda first, second: _joined([(0, first), (0, second)]))

    def __or__(self, other: AnyGenerator) -> StreamGenerator:
        """The one or the other."""
        return cast(StreamGenerator, one_of(self, other))

    def __ror__(self, other: AnyGenerator) -> StreamGenerator:
        return cast(StreamGenerator, one_of(other, self))

    def __mul__(self, times: int) -> StreamGenerator:
        """So many, one after the other."""
        _require_count(times, "stream * ...", 1, "stream * 3")

        def make(more: int) -> SearchStrategy[Records]:
            several = st.lists(self.make(more), min_size=times, max_size=times)
            return several.map(lambda streams: tuple(itertools.chain.from_iterable(streams)))

        return StreamGenerator(self.kinds, f"{self.inner_text} * {times}", make, is_compound=True)

    def where(self, test: Callable[[Stream], object]) -> StreamGenerator:
        """Only the streams of which the test says yes. If these are few, say it with operators instead."""
        if not callable(test) or isinstance(test, (Kind, type)):
            raise SourceError(
                "stream.where(...)",
                needed="a function of a stream, which is a tuple of batches",
                came=shown(test),
                hint="where(lambda batches: any(batches))",
            )

        def passes(records: Records) -> bool:
            stream = _events(records)
            try:
                return bool(test(stream))
            except StreamtightError:
                raise
            except Exception as error:
                raise SourceError(
                    "stream.where(...)",
                    needed="a test of every stream",
                    came=f"{type(error).__name__}: {error}, for {shown(stream)}",
                    hint="a test that expects empty batches",
                ) from error

        return StreamGenerator(self.kinds, f"{self.inner_text}.where(...)", lambda more: self.make(more).filter(passes))

    def _with(
        self, other: StreamGenerator, sign: str, combined: Callable[[Records, Records], Records]
    ) -> StreamGenerator:
        def make(more: int) -> SearchStrategy[Records]:
            return st.tuples(self.make(more), other.make(more)).map(lambda both: combined(*both))

        text = f"{self.inner_text} {sign} {other.inner_text}"
        return StreamGenerator(all_kinds(self, other), text, make, is_compound=True)

    # -- what happens to records ---------------------------------------------------------------------------------------

    def timed(
        self,
        time: str,
        *,
        start: datetime = NOON,
        every: timedelta = MINUTE,
        out_of_order: timedelta = timedelta(0),
        late: float = 0.0,
        late_by: timedelta | None = None,
    ) -> StreamGenerator:
        """The same streams with times in the field `time` of the records that have it.

        Batch k comes at start + k * every, and its records are of the time from then until the next batch, in order.
        Some are up to `out_of_order` older. A share `late` of them is late: more than `late_by` older than the
        batch, up to twice that.
        """
        clock = _Clock.of(start, every, out_of_order, late, late_by)
        told = repr(time) + (f", start={start!r}" if start != NOON else "")
        told += f", every={every!r}" if every != MINUTE else ""
        told += f", out_of_order={out_of_order!r}" if out_of_order else ""
        told += f", late={late!r}, late_by={late_by!r}" if late else ""
        told = told.replace("datetime.", "")
        fits = self._kinds_with(time, f"timed({time!r})", start, "a field that holds a datetime", "datetime")
        return self._changed(
            f"timed({told})", clock.width, lambda stream, raws: clock.set_times(stream, raws, time, fits)
        )

    def with_nulls(self, field: str, share: float) -> StreamGenerator:
        """The same streams with None in this field, in about this share of the records that have it."""
        where = f"with_nulls({field!r})"
        _require_share(share, f"with_nulls({field!r}, {shown(share)})")
        fits = self._kinds_with(field, where, None, "a field that admits None", "... | None")

        def with_nulls(stream: Stream, raws: Raws) -> Stream:
            return tuple(
                tuple(
                    event.replace(**{field: None}) if event.kind in fits and _happens(share, raw) else event
                    for event, raw in zip(batch, of, strict=True)
                )
                for batch, of in zip(stream, raws, strict=True)
            )

        return self._changed(f"with_nulls({field!r}, {share!r})", SHARE_BYTES, with_nulls)

    def duplicated(self, share: float, *, within: int = USUAL_LENGTH) -> StreamGenerator:
        """The same streams, in which about this share of the records comes again.

        They come again at the end of one of the next so many batches, their own included; at the latest in the last.
        """
        _require_share(share, f"duplicated({shown(share)})")
        _require_count(within, "duplicated(within=...)", 1, "within=3")

        def make(more: int) -> SearchStrategy[Records]:
            return self.make(SHARE_BYTES + 1 + more).map(again)

        def again(records: Records) -> Records:
            batches = [[(event, raw[SHARE_BYTES + 1 :]) for event, raw in batch] for batch in records]
            for number, batch in enumerate(records):
                for event, raw in batch:
                    if _happens(share, raw[:SHARE_BYTES]):
                        place = number + (raw[SHARE_BYTES] * within >> 8)
                        batches[min(place, len(batches) - 1)].append((event, raw[SHARE_BYTES + 1 :]))
            return tuple(map(tuple, batches))

        return StreamGenerator(self.kinds, f"{self.inner_text}.duplicated({share!r}, within={within})", make)

    def _changed(self, text: str, width: int, change: Callable[[Stream, Raws], Stream]) -> StreamGenerator:
        """The same streams with other events in the same places, as the first so many bytes of each record say."""

        def changed(records: Records) -> Records:
            raws = [[raw[:width] for _, raw in batch] for batch in records]
            rests = [[raw[width:] for _, raw in batch] for batch in records]
            events = change(_events(records), raws)
            return tuple(tuple(zip(batch, rest, strict=True)) for batch, rest in zip(events, rests, strict=True))

        return StreamGenerator(
            self.kinds, f"{self.inner_text}.{text}", lambda more: self.make(width + more).map(changed)
        )

    def _kinds_with(self, field: str, where: str, value: object, needed: str, declared: str) -> frozenset[Kind]:
        """The kinds whose field of this name takes this value."""
        having = [kind for kind in self.kinds if field in kind.fields]
        if not having:
            known = ", ".join(dict.fromkeys(name for kind in self.kinds for name in kind.names))
            raise SourceError(
                where, needed=f"a field of {names(self.kinds)}", came=repr(field), hint=f"one of {known or '(none)'}"
            )
        fits = frozenset(kind for kind in having if _fits(kind, field, value))
        if not fits:
            kind = having[0]
            hint = f"Kind({kind.name!r}, {field}={declared}, ...)"
            raise SourceError(where, needed=needed, came=f"{kind!r}", hint=hint)
        return fits

    @property
    def inner_text(self) -> str:
        """Its text inside a larger one."""
        return f"({self.text})" if self.is_compound else self.text

    def __repr__(self) -> str:
        return self.text


AnyGenerator = BatchGenerator | StreamGenerator
Raws = list[list[bytes]]
"""Bytes for each record of a stream."""


def _events(records: Records) -> Stream:
    return tuple([tuple([event for event, _ in batch]) for batch in records])


def _fits(kind: Kind, field: str, value: object) -> bool:
    try:
        plain_event(kind).replace(**{field: value})
    except EventError:
        return False
    return True


def _happens(share: float, raw: bytes) -> bool:
    """Whether what a share of the records has is drawn for this one; zeros say no, so that the simplest has it not."""
    return int.from_bytes(raw) >= round((1 - share) * (1 << 8 * len(raw)))


# -- what users write ------------------------------------------------------------------------------------------------


@overload
def one_of(first: BatchGenerator, /, *others: BatchGenerator) -> BatchGenerator: ...
@overload
def one_of(first: AnyGenerator, /, *others: AnyGenerator) -> AnyGenerator: ...
def one_of(first: AnyGenerator, /, *others: AnyGenerator) -> AnyGenerator:
    """What one of these yields; the first counts as the simplest. Of batches and streams together: streams."""
    every = (first, *others)
    if all(isinstance(one, BatchGenerator) for one in every):
        return functools.reduce(lambda a, b: a | b, cast("tuple[BatchGenerator, ...]", every))
    streams = [_as_stream(one, "gen.one_of(...)") for one in every]
    return StreamGenerator(
        all_kinds(*every),
        " | ".join(one.inner_text for one in every),
        lambda more: st.one_of([one.make(more) for one in streams]),
        is_compound=True,
    )


def now(what: BatchGenerator, /) -> StreamGenerator:
    """Streams of one batch."""
    generator = require_batch(what, "gen.now(...)")
    return StreamGenerator(generator.kinds, f"now({generator})", _as_stream(generator, "gen.now(...)").make)


def next_(what: AnyGenerator, n: int = 1) -> StreamGenerator:
    """The same, after n empty batches."""
    inner = _as_stream(what, "gen.next(...)")
    _require_count(n, "gen.next(n=...)", 0, "gen.next(batch, n=2)")
    told = "" if n == 1 else f", n={n}"
    return StreamGenerator(
        what.kinds, f"next({what}{told})", lambda more: inner.make(more).map(lambda stream: _joined([(n, stream)]))
    )


def always(what: AnyGenerator, *, during: int = USUAL_LENGTH) -> StreamGenerator:
    """One that begins at each of so many batches; of a generator of batches, exactly so many batches."""
    inner = _as_stream(what, "gen.always(...)")
    _require_timeout(during, "gen.always(during=...)", "during")

    def make(more: int) -> SearchStrategy[Records]:
        return st.lists(inner.make(more), min_size=during, max_size=during).map(lambda all_: _joined(enumerate(all_)))

    return StreamGenerator(what.kinds, f"always({what}, during={during})", make)


def eventually(what: AnyGenerator, *, within: int = USUAL_LENGTH) -> StreamGenerator:
    """One that begins at one of so many batches, and empty batches before."""
    inner = _as_stream(what, "gen.eventually(...)")
    _require_timeout(within, "gen.eventually(within=...)", "within")

    def make(more: int) -> SearchStrategy[Records]:
        both = st.tuples(inner.make(more), st.integers(0, within - 1))
        return both.map(lambda found: _joined([(found[1], found[0])]))

    return StreamGenerator(what.kinds, f"eventually({what}, within={within})", make)


def until(left: AnyGenerator, right: AnyGenerator, *, within: int = USUAL_LENGTH) -> StreamGenerator:
    """A right that begins at one of so many batches, and a left that begins at each batch before that."""
    first, second = _as_stream(left, "gen.until(left, ...)"), _as_stream(right, "gen.until(..., right)")
    _require_timeout(within, "gen.until(within=...)", "within")

    def make(more: int) -> SearchStrategy[Records]:
        return _until(first.make(more), second.make(more), within)

    return StreamGenerator(all_kinds(left, right), f"until({left}, {right}, within={within})", make)


def release(left: AnyGenerator, right: AnyGenerator, *, within: int = USUAL_LENGTH) -> StreamGenerator:
    """A right that begins at each of so many batches; or only up to one of them, at which a left begins too."""
    first, second = _as_stream(left, "gen.release(left, ...)"), _as_stream(right, "gen.release(..., right)")
    _require_timeout(within, "gen.release(within=...)", "within")

    def make(more: int) -> SearchStrategy[Records]:
        return _release(first.make(more), second.make(more), within)

    return StreamGenerator(all_kinds(left, right), f"release({left}, {right}, within={within})", make)


def streams(what: BatchGenerator, *, length: Size = (1, USUAL_LENGTH)) -> StreamGenerator:
    """So many batches, or from so many to so many."""
    generator = require_batch(what, "gen.streams(...)")
    least, most = sizes(length, "gen.streams(length=...)", 1)
    return StreamGenerator(
        generator.kinds,
        f"streams({generator}, length={length})",
        lambda more: st.lists(generator.make(more), min_size=least, max_size=most).map(tuple),
    )


def stream(
    batches: Iterable[Iterable[Event]] | SearchStrategy[Iterable[Iterable[Event]]], /, *, kinds: Iterable[Kind] = ()
) -> StreamGenerator:
    """Exactly these batches; or what a Hypothesis strategy of lists of batches draws.

    Which kinds a strategy yields is known only from a sample: `kinds` names those that come seldom.

    >>> N = Kind("N", n=int)
    >>> stream([[N(1), N(2)], [], [N(3)]]).examples()
    [((N(n=1), N(n=2)), (), (N(n=3),))]
    """
    where = "gen.stream(...)"
    if not is_strategy(batches):
        told = _batches_in(batches, where)
        text = f"stream({brief([list(batch) for batch in told])})"
        known = kinds_among(itertools.chain.from_iterable(told), kinds)
        return StreamGenerator(known, text, lambda more: with_bytes(told, more))
    strategy = cast("SearchStrategy[Iterable[Iterable[Event]]]", batches)
    sample = [_batches_in(made, where) for made in drawn(strategy, SAMPLE_SIZE, 0, where)]
    known = kinds_among((event for made in sample for batch in made for event in batch), kinds)

    def read(made: object) -> Stream:
        return tuple(known_events(batch, known, where) for batch in _batches_in(made, where))

    return StreamGenerator(
        known,
        f"stream({brief(strategy)})",
        lambda more: strategy.map(read).flatmap(lambda told: with_bytes(told, more)),
    )


# -- the shapes of streams -------------------------------------------------------------------------------------------


def _joined(parts: Iterable[tuple[int, Records]]) -> Records:
    """Streams that begin at these batches, batch by batch in one."""
    batches: list[list[Record]] = []
    for start, stream in parts:
        batches += [[] for _ in range(start + len(stream) - len(batches))]
        for batch, records in zip(batches[start:], stream, strict=False):
            batch += records
    return tuple(map(tuple, batches))


@st.composite
def _until(draw: DrawFn, left: SearchStrategy[Records], right: SearchStrategy[Records], within: int) -> Records:
    # The witness first: then a smaller number of batches before it leaves out what was drawn last.
    witness, before = draw(right), draw(st.integers(0, within - 1))
    return _joined([*((start, draw(left)) for start in range(before)), (before, witness)])


@st.composite
def _release(draw: DrawFn, left: SearchStrategy[Records], right: SearchStrategy[Records], within: int) -> Records:
    if draw(st.booleans()):
        return _joined((start, draw(right)) for start in range(within))
    released, last = draw(left), draw(st.integers(0, within - 1))
    return _joined([*((start, draw(right)) for start in range(last + 1)), (last, released)])


# -- times -----------------------------------------------------------------------------------------------------------

STEPS = 60
"""Times are drawn in so many steps, since a minute and an hour have so many parts."""


@dataclass(frozen=True, slots=True)
class _Clock:
    """When the records of a batch are from. Of the bytes of a record, zeros say: from the begin of its batch."""

    start: datetime
    every: timedelta
    out_of_order: timedelta
    late: float
    late_by: timedelta
    width = 2 + SHARE_BYTES

    @classmethod
    def of(cls, start: object, every: object, out_of_order: object, late: object, late_by: object) -> _Clock:
        if not isinstance(start, datetime) or start.tzinfo is not None:
            raise SourceError(
                "timed(start=...)",
                needed="a datetime without a time zone",
                came=shown(start),
                hint="start=datetime(2024, 1, 15, 12)",
            )
        zero = timedelta(0)
        for name, given, may_be_zero in (("every", every, False), ("out_of_order", out_of_order, True)):
            if not isinstance(given, timedelta) or given < zero or (given == zero and not may_be_zero):
                needed = "a timedelta from 0" if may_be_zero else "a timedelta greater than 0"
                raise SourceError(
                    f"timed({name}=...)", needed=needed, came=shown(given), hint=f"{name}=timedelta(minutes=1)"
                )
        _require_share(late, f"timed(late={shown(late)})")
        if not late and late_by is None:
            late_by = out_of_order
        if not isinstance(late_by, timedelta) or late_by < cast(timedelta, out_of_order):
            raise SourceError(
                "timed(late_by=...)",
                needed="how much older a late record is: a timedelta, and not less than out_of_order",
                came=shown(late_by),
                hint="late=0.1, late_by=timedelta(minutes=10)",
            )
        return cls(start, cast(timedelta, every), cast(timedelta, out_of_order), cast(float, late), late_by)

    def set_times(self, stream: Stream, raws: Raws, field: str, kinds: frozenset[Kind]) -> Stream:
        """The stream with these times in this field."""
        return tuple(
            tuple(
                event.replace(**{field: time}) if event.kind in kinds else event
                for event, time in zip(batch, self._times(number, raws[number]), strict=True)
            )
            for number, batch in enumerate(stream)
        )

    def _times(self, number: int, raws: list[bytes]) -> list[datetime]:
        begin = self.start + number * self.every
        in_order = sorted(raw[0] * STEPS >> 8 for raw in raws)
        return [self._time(begin, step, raw) for step, raw in zip(in_order, raws, strict=True)]

    def _time(self, begin: datetime, step: int, raw: bytes) -> datetime:
        if _happens(self.late, raw[2:]):
            return begin - self.late_by - _steps(self.late_by, 1 + (raw[1] * STEPS >> 8))
        return begin + _steps(self.every, step) - _steps(self.out_of_order, raw[1] * (STEPS + 1) >> 8)


def _steps(span: timedelta, count: int) -> timedelta:
    """So many steps of a span; in whole seconds where these are short beside it, since people read them."""
    part = span * count / STEPS
    second = timedelta(seconds=1)
    return part if span < 30 * second or span % second else -(-part // second) * second


# -- wrong questions -------------------------------------------------------------------------------------------------


def _as_stream(given: object, where: str) -> StreamGenerator:
    """The generator of streams that is meant: one of batches is one of streams of one batch."""
    if isinstance(given, BatchGenerator):
        make = given.make
        return StreamGenerator(given.kinds, given.text, lambda more: make(more).map(lambda batch: (batch,)))
    if isinstance(given, StreamGenerator):
        return given
    raise SourceError(
        where, needed="a generator of batches or of streams", came=shown(given), hint=hint_of_generator(given)
    )


def _require_stream(given: object, where: str) -> None:
    if not isinstance(given, StreamGenerator):
        hint = "gen.now(batch)" if isinstance(given, BatchGenerator) else f"gen.now({hint_of_generator(given)})"
        raise SourceError(where, needed="a generator of streams", came=shown(given), hint=hint)


def _require_timeout(given: object, where: str, name: str) -> None:
    _require_count(given, where, 1, f"{name}={USUAL_LENGTH}")


def _require_count(given: object, where: str, least: int, hint: str) -> None:
    if not isinstance(given, int) or isinstance(given, bool) or given < least:
        raise SourceError(where, needed=f"a number of batches from {least}", came=shown(given), hint=hint)


def _require_share(given: object, where: str) -> None:
    if not isinstance(given, (int, float)) or isinstance(given, bool) or not 0 <= given <= 1:
        raise SourceError(where, needed="a share, from 0 to 1", came=shown(given), hint="0.1, for one in ten")


def _batches_in(given: object, where: str) -> Stream:
    """The batches of a stream as a user writes it."""
    if not isinstance(given, Iterable) or isinstance(given, (Event, str, bytes, dict)):
        raise SourceError(
            where, needed="a list of batches, which are lists of events", came=shown(given), hint="[[User(1, True)]]"
        )
    told = tuple(events_in(batch, where) for batch in given)
    if not told:
        raise SourceError(where, needed="a batch or more", came=shown(given), hint="[[]], for one empty batch")
    return told
