"""The matcher: do two streams still agree, up to the reorderings that a dependence forgives? Online, event by event.

>>> from streamtight.stream.dependence import same
>>> from streamtight.stream.event import Kind
>>> GPS = Kind("GPS", taxi_id=int, x=int)
>>> m = Matcher(upto=same("taxi_id"))
>>> m.left(GPS(1, 0)), m.left(GPS(1, 5)), m.right(GPS(2, 7)), m.right(GPS(1, 0))
(True, True, True, True)
>>> m.unmatched
Sides(left=(GPS(taxi_id=1, x=5),), right=(GPS(taxi_id=2, x=7),))
>>> m.right(GPS(1, 9))
False
>>> print(m.difference)
right event 3 is GPS(taxi_id=1, x=9), but left event 2, GPS(taxi_id=1, x=5), has not come on the right, and \
same('taxi_id') keeps their order; expected GPS(taxi_id=1, x=5)

The answer is False at the first event after which no continuation can make the streams equivalent, and not one event
earlier or later (DiffStream, Theorem 4.8); nothing is kept but the unmatched events (Theorem 4.9).
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from streamtight.errors import TraceError
from streamtight.method.compare import engines
from streamtight.method.compare.pictures import picture_of_streams
from streamtight.method.compare.validate import Validator
from streamtight.stream.dependence import Dependence
from streamtight.stream.equality import Equality, equality_of
from streamtight.stream.event import Event, Kind
from streamtight.stream.order_picture import Marks
from streamtight.verdict import Counterexample, Outcome, Scope, Verdict

if TYPE_CHECKING:
    from streamtight.method.compare.columnar import Columnar

SIDES = ("left", "right")
SHOWN = 10
"""How many events an explanation lists."""


class Sides(NamedTuple):
    """Something of the left stream and of the right one."""

    left: tuple[Event, ...]
    right: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """An event of one of the streams, and its position there, counted from 1."""

    side: str
    position: int
    """Below 0 in a bag that keeps no positions: a number that tells this event from others, and nothing else."""
    event: Event

    def __str__(self) -> str:
        return f"{self.side} event {self.position}" if self.position >= 0 else f"a {self.side} event"


@dataclass(frozen=True, slots=True)
class Difference:
    """Why two streams are not equivalent, as data."""

    came: Place | None
    """The event after which no continuation can make them equivalent; None if both just ended with events left over."""
    against: tuple[Place, ...] = ()
    """Unmatched events of the other side that must come before it, the oldest first."""
    clause: str | None = None
    """What orders it with the first of these, as it was written."""
    expected: tuple[Event, ...] = ()
    """What could have come instead: those of the other side's events that wait for nothing else."""
    left_over: tuple[Place, ...] = ()
    """What is unmatched at the end, if there was no conflict."""
    left_over_count: int = 0

    def __str__(self) -> str:
        if self.came is None:
            shown = "; ".join(f"{place}, {place.event}, has no match" for place in self.left_over[:3])
            more = self.left_over_count - 3
            return shown + (f"; and {more} more" if more > 0 else "")
        first = self.against[0]
        instead = " or ".join(map(repr, self.expected[:3]))
        return (
            f"{self.came} is {self.came.event}, but {first}, {first.event}, has not come on the {self.came.side}, "
            f"and {self.clause} keeps their order; expected {instead}"
        )


@dataclass(frozen=True, slots=True)
class State:
    """What a matcher has to remember, to go on in another process: how much it has seen, and what is unmatched."""

    seen: tuple[int, int] = (0, 0)
    unmatched: tuple[tuple[tuple[int, Event], ...], tuple[tuple[int, Event], ...]] = ((), ())


class Matcher:
    """Reads two streams and says whether they can still be equivalent.

    `upto` is the dependence; `equal` an equality, if two events may count as the same without being identical.
    `left(event)` and `right(event)` are True while the streams can still agree, False from the first event at which
    they cannot. `resume` is the `state` of an earlier matcher, to go on where it was.
    """

    left: engines.Offer
    right: engines.Offer

    def __init__(
        self,
        *,
        upto: Dependence,
        equal: Equality | Callable[[Event, Event], bool] | None = None,
        resume: State | None = None,
    ) -> None:
        if not isinstance(upto, Dependence):
            raise TraceError(
                "Matcher(upto=...)",
                needed="a dependence or a schema",
                came=repr(upto),
                hint="ordered, unordered, same('taxi_id'), or a schema",
            )
        self.upto = upto
        self.equal = equality_of(equal, "Matcher")
        self._counts = [itertools.count(seen + 1) for seen in (resume or State()).seen]
        positions: list[Iterator[int]] = [*self._counts]
        if resume is not None:
            # First those of the events that are offered again, then on from where it was.
            again = ([position for position, _ in places] for places in resume.unmatched)
            positions = [itertools.chain(*pair) for pair in zip(again, self._counts, strict=True)]
        self._desk = engines.Desk(self._require_known, positions)
        self._plan = self._planned()
        self._engine = self._plan.make()
        self._columnar: Columnar | None = None
        self._rows: Kind | None = None  # what the rows of tables are
        self._validator = self._validator_if_needed()
        self.left, self.right = (self._offer(side) for side in (0, 1))
        for side, places in enumerate(resume.unmatched if resume is not None else ()):
            for _, event in places:
                self._engine.offers[side](event)

    def _planned(self) -> engines.Plan:
        clauses = self.upto.clauses
        if self.equal is None:
            return engines.plan(self._desk, clauses, self.upto.domain)
        if isinstance(self.equal, Equality) and all(engines.can_be_indexed(clause, clauses) for clause in clauses):
            return engines.Plan("index", engines.index(self._desk, clauses, self.equal.canonical))
        return engines.Plan("scan", engines.scan(self._desk, clauses, self.equal))

    def _validator_if_needed(self) -> Validator | None:
        """Relations and equalities that users write as functions may not be what they must be."""
        opaque = any(not engines.can_be_indexed(clause, self.upto.clauses) for clause in self.upto.clauses)
        return Validator(self.upto, self.equal) if opaque or self.equal is not None else None

    def _offer(self, side: int) -> engines.Offer:
        offer, validator = self._engine.offers[side], self._validator
        if validator is None:
            return offer

        def validated(event: Event) -> bool:
            if isinstance(event, Event):
                validator.see(event)
            return offer(event)

        return validated

    def _require_known(self, event: object) -> None:
        if not isinstance(event, Event):
            raise TraceError(
                "Matcher",
                needed="an event",
                came=repr(event),
                hint="make events with a Kind; whole batches go in by feed(side, batch)",
            )
        if self._columnar is not None:
            self._from_tables_to_events()
        self.upto.require_known(event)
        if isinstance(self.equal, Equality):
            self.equal.canonical(event)  # raises if the equality cannot compare events of this kind

    def _from_tables_to_events(self) -> None:
        """Let the engine have what the tables left unmatched, each at its position; from here on events are offered."""
        state, self._columnar = self.state, None
        for side, (seen, places) in enumerate(zip(state.seen, state.unmatched, strict=True)):
            for position, event in places:
                self._skip(side, position - 1)
                self._engine.offers[side](event)
            self._skip(side, seen)

    def _skip(self, side: int, seen: int) -> None:
        """Count up to here, without events."""
        deque(itertools.islice(self._counts[side], seen - self._seen(side)), maxlen=0)

    # -- batches -------------------------------------------------------------------------------------------------------

    def feed(self, side: str, batch: Iterable[Event] | Any, *, kind: Kind | None = None) -> bool:
        """Take a batch of this side: events, or a pyarrow table or record batch. True while the streams can agree.

        A table is matched without making events of its rows where the relation is a bag, one order or an order for each
        key. `kind` says what its rows are, if that is not the only kind of the schema; without both, its columns do.
        """
        if side not in SIDES:
            raise TraceError("Matcher.feed(side, ...)", needed="'left' or 'right'", came=repr(side), hint="'left'")
        if type(batch).__module__.partition(".")[0] == "pyarrow":
            return self._feed_table(SIDES.index(side), batch, kind)
        offer = self.left if side == "left" else self.right
        agrees = self.agrees
        for event in batch:
            agrees = offer(event)
            if not agrees:
                break
        return agrees

    def _feed_table(self, side: int, table: Any, kind: Kind | None) -> bool:
        from streamtight.method.compare import tables
        from streamtight.method.compare.columnar import Columnar, supports

        rows = tables.kind_of_table(table.schema, self.upto, kind)
        if kind is None and self._rows is not None and rows is not self._rows:
            raise TraceError(
                "Matcher.feed(side, table)",
                needed=f"the columns of the tables before, {self._rows!r}",
                came=repr(rows),
                hint="a cast or a select, or kind=... if these are other events",
            )
        is_first = self._columnar is None and not any(self.seen)
        by_columns = self._plan.way in ("bag", "total", "keyed") and self.equal is None
        if not by_columns or supports(table.schema) or not (is_first or (self._columnar and rows is self._rows)):
            return self.feed(SIDES[side], tables.events_of(table, rows))
        if not self.agrees:
            return False
        if self._columnar is None:
            for event in tables.events_of(table.slice(0, 1), rows):
                self.upto.require_known(event)
            self._columnar, self._rows = Columnar(self._plan.way, key=self._plan.key), rows  # type: ignore[arg-type]
        tables.require_no_null(table, rows)
        if not self._columnar.feed(side, table):
            conflict = self._columnar.conflict
            if conflict is None:
                raise AssertionError("a refutation without a conflict")  # pragma: no cover
            (event,) = tables.events_of(conflict.row, rows)
            return self._desk.refute(side, event, conflict.position)
        return True

    # -- what is known -------------------------------------------------------------------------------------------------

    @property
    def agrees(self) -> bool:
        """Can the streams still be equivalent?"""
        return self._desk.refuted_by is None

    @property
    def way(self) -> str:
        """How the relation is matched, such as "keyed by taxi_id"; "scan" has to look through what is unmatched."""
        return str(self._plan)

    @property
    def seen(self) -> tuple[int, int]:
        """How many events of either side came."""
        left, right = (self._seen(side) for side in (0, 1))
        return left, right

    def _seen(self, side: int) -> int:
        if self._columnar is not None:
            return self._columnar.seen[side]
        # Reading the text is the one way to look at a count without moving it on.
        return int(repr(self._counts[side])[6:-1]) - 1

    @property
    def unmatched(self) -> Sides:
        """The events of either side that have found no match so far, in order of arrival."""
        left, right = ([event for _, event in self._waiting(side)] for side in (0, 1))
        return Sides(tuple(left), tuple(right))

    @property
    def state(self) -> State:
        """What another matcher needs to go on from here: `Matcher(upto=..., resume=state)`."""
        return State(self.seen, (tuple(self._waiting(0)), tuple(self._waiting(1))))

    def _waiting(self, side: int) -> list[tuple[int, Event]]:
        """The unmatched events of a side, by position, without the one that refuted."""
        if self._columnar is not None and self._rows is not None:
            from streamtight.method.compare.tables import events_of

            table, positions = self._columnar.unmatched(side)
            waiting = list(zip(positions, events_of(table, self._rows), strict=True))
        else:
            waiting = sorted(self._engine.unmatched(side), key=lambda place: place[0])
        refuted = self._desk.refuted_by
        if refuted is not None and refuted[0] == side:
            waiting = [place for place in waiting if place[0] != refuted[2]]
        return waiting

    @property
    def difference(self) -> Difference | None:
        """Why the streams cannot be equivalent any more; None while they can."""
        if self._desk.refuted_by is None:
            return None
        side, event, position = self._desk.refuted_by
        others = [other for other in self._waiting(1 - side) if self.upto.depends(event, other[1])]
        against = tuple(Place(SIDES[1 - side], *other) for other in others[:SHOWN])
        return Difference(
            Place(SIDES[side], position, event),
            against,
            self.upto.explain(event, against[0].event),
            _minimal([place.event for place in against], self.upto),
        )

    def finish(self, *, claim: str | None = None) -> Verdict:
        """Are the streams equivalent, if both end here? More events may come nevertheless."""
        claim = claim or f"left and right give the same stream up to {self.upto!r}"
        scope = Scope.observed(sum(self.seen))
        difference = self.difference or self._leftovers()
        if difference is not None:
            return Verdict(claim, Outcome.FAILS, scope, self._counterexample(difference))
        if not any(self.seen):
            return Verdict(claim, Outcome.UNDECIDED, scope, reason="vacuous: neither stream had an event")
        return Verdict(claim, Outcome.HOLDS, scope)

    def _leftovers(self) -> Difference | None:
        places = [Place(SIDES[side], *place) for side in (0, 1) for place in self._waiting(side)]
        return Difference(None, left_over=tuple(places[:SHOWN]), left_over_count=len(places)) if places else None

    def _counterexample(self, difference: Difference) -> Counterexample:
        """The unmatched events alone differ in the same way as the streams do, so they are what a person replays."""
        left, right = self.unmatched
        last = difference.came
        if last is not None:
            left, right = (left, (*right, last.event)) if last.side == "right" else ((*left, last.event), right)
        again = Matcher(upto=self.upto, equal=self.equal)
        first, second = ("left", "right") if last is None or last.side == "right" else ("right", "left")
        for side in (first, second):
            again.feed(side, left if side == "left" else right)
        fails = not again.agrees or any(again.unmatched)
        picture = picture_of_streams(
            left, right, self.upto, self.equal, marks=_marks(difference, left, right), names=SIDES
        )
        return Counterexample(
            finding="DIVERGED" if last is not None else "LEFT_OVER",
            explanation=str(difference),
            schedule=None,
            expected=left,
            actual=right,
            replay=(
                "import streamtight as tight\nfrom streamtight import *\n"
                f"m = tight.Matcher(upto={self.upto!r}{'' if self.equal is None else f', equal={self.equal!r}'})\n"
                f"m.feed({first!r}, {list(left if first == 'left' else right)!r})\n"
                f"m.feed({second!r}, {list(left if second == 'left' else right)!r})\n"
                "m.finish().require()"
            ),
            picture=picture,
            reruns=1,
            failing_reruns=int(fails),
        )


def _marks(difference: Difference, left: Sequence[Event], right: Sequence[Event]) -> tuple[Marks, Marks] | None:
    """What a picture of the unmatched events says about them: the event that came, and the one that it must follow."""
    marks: tuple[dict[int, str], dict[int, str]] = ({}, {})
    if difference.came is None:
        for side, events in enumerate((left, right)):
            marks[side].update(dict.fromkeys(range(len(events)), "unmatched"))
        return marks
    came, other = SIDES.index(difference.came.side), 1 - SIDES.index(difference.came.side)
    sides = (left, right)
    marks[came][len(sides[came]) - 1] = "too early"
    marks[other][sides[other].index(difference.against[0].event)] = "has not come"
    return marks


def _minimal(events: Sequence[Event], upto: Dependence) -> tuple[Event, ...]:
    """Those of these events that depend on none before them."""
    return tuple(
        event
        for place, event in enumerate(events)
        if not any(upto.depends(earlier, event) for earlier in events[:place])
    )


def match(left: Iterator[Event] | Iterable[Event], right: Iterable[Event], *, upto: Dependence) -> Matcher:
    """A matcher that has read both streams, in turn."""
    matcher = Matcher(upto=upto)
    for pair in itertools.zip_longest(left, right):
        for offer, event in zip((matcher.left, matcher.right), pair, strict=True):
            if event is not None and not offer(event):
                return matcher
    return matcher
