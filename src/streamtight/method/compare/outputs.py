"""What a consumer ends up with, and how two such outputs differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field

from streamtight.errors import TraceError
from streamtight.method.compare.validate import Validator
from streamtight.program.run import Run
from streamtight.stream.dependence import Dependence
from streamtight.stream.equality import Equality
from streamtight.stream.event import Event
from streamtight.stream.schedule import Batches, Race, delivered, find_race
from streamtight.stream.trace import Trace

Equal = Equality | Callable[[Event, Event], bool] | None


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with an output: its name, a sentence, what was expected and what came."""

    name: str
    explanation: str
    expected: tuple[Event, ...] | None
    actual: tuple[Event, ...]
    race: Race | None = None
    """Two rows that must keep their order and have none, if that is what is wrong."""
    run: Run | None = field(default=None, repr=False, compare=False)
    """The run that it was found in, where a person should see it batch by batch."""


@dataclass(frozen=True, slots=True)
class Consumer:
    """How a consumer reads the output of a job, by its output mode.

    append (and batch, rdd)   every row, each batch once
    complete                  the last table
    update                    the last row of each key
    """

    mode: str
    key: tuple[str, ...] = ()

    def reads(self, run: Run) -> Batches:
        """What it ends up with."""
        batches = run.committed
        if self.mode == "complete":
            return batches[-1:]
        if self.mode == "update":
            last = {self._key(event): event for event in delivered(batches)}
            return ((tuple(last.values()),),)
        return batches

    def _key(self, event: Event) -> Hashable:
        for name in self.key:
            if name not in event.kind.fields:
                raise TraceError(
                    "key=...",
                    needed=f"columns of the output: {', '.join(event.kind.names)}",
                    came=repr(name),
                    hint=f"key={event.kind.names[:1]!r}",
                )
        return tuple(getattr(event, name) for name in self.key)


def difference(
    expected: Batches,
    actual: Batches,
    *,
    upto: Dependence,
    equal: Equal = None,
    here: str = "in the reference",
    there: str = "in the candidate",
) -> Finding | None:
    """How the second output differs from the first, up to the order that matters; None if it does not.

    All deliveries are judged at once: if two events must keep their order and yet come in different partitions of a
    batch, some consumer sees them the other way round.
    """
    shown = tuple(delivered(expected)), tuple(delivered(actual))
    if equal is not None:
        validator = Validator(upto, equal)
        for event in (*shown[0], *shown[1]):
            validator.see(event)
        both = alike((*expected, *actual), equal)
        expected, actual = both[: len(expected)], both[len(expected) :]
    for output, name, where in ((expected, "RACE_IN_REFERENCE", here), (actual, "RACE", there)):
        race = find_race(output, upto)
        if race is not None:
            return Finding(name, f"{where}, {race}", *shown, race=race)
    wanted, came = Trace(delivered(expected), upto), Trace(delivered(actual), upto)
    explanation = wanted.why_not_equal(came, here=here, there=there)
    if explanation is None:
        return None
    missing, extra = Counter(wanted.events) - Counter(came.events), Counter(came.events) - Counter(wanted.events)
    name = "WRONG_ROWS" if missing and extra else "MISSING_ROWS" if missing else "EXTRA_ROWS" if extra else "ORDER_LOST"
    if name == "WRONG_ROWS" and _differ_in_last_digits(missing, extra):
        explanation += "; they differ in the last digits of a float only, which equal=equality(places=...) forgives"
    return Finding(name, explanation, *shown)


def _differ_in_last_digits(missing: Counter[Event], extra: Counter[Event]) -> bool:
    """Would these be the same rows, if floats were compared to nine digits?"""

    def to_nine_digits(value: object) -> object:
        return f"{value:.9g}" if isinstance(value, float) else value

    both = [Counter(tuple(map(to_nine_digits, event)) for event in side.elements()) for side in (missing, extra)]
    return both[0] == both[1]


def alike(batches: Batches, equal: Equality | Callable[[Event, Event], bool]) -> Batches:
    """The same with, for each event, the first one that is equal to it: equal events are then identical."""
    known: dict[Event, Event] = {}
    first: dict[Hashable, Event] = {}

    def stand_in(event: Event) -> Event:
        if isinstance(equal, Equality):
            return first.setdefault(equal.canonical(event), event)
        if event not in known:
            known[event] = next((other for other in known.values() if equal(other, event)), event)
        return known[event]

    return tuple(tuple(tuple(map(stand_in, partition)) for partition in batch) for batch in batches)


def rows(batches: Batches) -> int:
    """How many rows it has."""
    return sum(len(partition) for batch in batches for partition in batch)


def listed(events: Iterable[Event]) -> Batches:
    """These events in this order, as an output."""
    return ((tuple(events),),)
