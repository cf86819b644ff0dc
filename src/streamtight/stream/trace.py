"""Traces: finite streams that are equal exactly up to the reorderings that a dependence forgives.

>>> from streamtight.stream.dependence import same
>>> from streamtight.stream.event import Kind
>>> GPS = Kind("GPS", taxi_id=int, x=float)
>>> one = Trace([GPS(1, 0.0), GPS(2, 5.0), GPS(1, 1.0)], same("taxi_id"))
>>> one == Trace([GPS(2, 5.0), GPS(1, 0.0), GPS(1, 1.0)], same("taxi_id"))
True
>>> one == Trace([GPS(1, 1.0), GPS(2, 5.0), GPS(1, 0.0)], same("taxi_id"))
False

Equality is decided by a normal form, without search. The *height* of an event is one more than the largest height of an
earlier event that it depends on. Events of one height are independent of each other, and a trace is equal to its events
sorted by height; so two traces are equal exactly if they have the same events, counted, at every height (Foata's normal
form). The same heights with random steps instead of ones give a random reordering.
"""

from __future__ import annotations

import functools
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from streamtight.errors import TraceError
from streamtight.stream.dependence import Dependence, Frontier
from streamtight.stream.event import Event


class Trace:
    """Events, and which of them must keep their order. `==` and `<=` forgive the order of all others."""

    __slots__ = ("__dict__", "events", "upto")

    def __init__(self, events: Iterable[Event], upto: Dependence) -> None:
        if not isinstance(upto, Dependence):
            raise TraceError(
                "Trace(events, upto)",
                needed="a dependence or a schema",
                came=repr(upto),
                hint="ordered, unordered, same('taxi_id'), or a schema",
            )
        self.events = tuple(events)
        self.upto = upto
        for event in self.events:
            if not isinstance(event, Event):
                raise TraceError(
                    "Trace(events, upto)", needed="events", came=repr(event), hint="make events with a Kind"
                )
            upto.require_known(event)

    @functools.cached_property
    def levels(self) -> tuple[dict[Event, int], ...]:
        """The normal form: how often each event occurs at height 1, at height 2, and so on."""
        levels: list[dict[Event, int]] = []
        for event, height in zip(self.events, _heights(self, _one_step), strict=True):
            if height > len(levels):
                levels.append({})
            level = levels[int(height) - 1]
            level[event] = level.get(event, 0) + 1
        return tuple(levels)

    @property
    def minimal(self) -> tuple[Event, ...]:
        """The events that may come first: those that depend on no earlier one."""
        return tuple(Counter(self.levels[0]).elements()) if self.levels else ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trace):
            return NotImplemented
        self._require_same_dependence(other, "==")
        if self.events == other.events:
            return True
        # The cheap necessary condition first: most unequal traces differ in their events.
        return len(self.events) == len(other.events) and self.levels == other.levels

    def why_not_equal(self, other: Trace, *, here: str = "here", there: str = "there") -> str | None:
        """The difference in a sentence: an event that only one has, or two that came in another order; None if equal.

        `here` and `there` are what the sentence calls this trace and the other.

        >>> from streamtight.stream.dependence import ordered
        >>> from streamtight.stream.event import Kind
        >>> A = Kind("A", n=int)
        >>> Trace([A(1), A(2)], ordered).why_not_equal(Trace([A(2), A(1)], ordered))
        'A(n=1) comes before A(n=2) here, after it there, but ordered keeps their order'
        """
        if self == other:
            return None
        mine, others = Counter(self.events), Counter(other.events)
        for event in dict.fromkeys(self.events + other.events):
            if mine[event] != others[event]:
                return f"{event} comes {_times(mine[event])} {here} and {_times(others[event])} {there}"
        swap = self.swapped(other)
        if swap is None:
            raise AssertionError("unequal traces of the same events have two that are swapped")  # pragma: no cover
        first, second, clause = swap
        return (
            f"{self.events[first]} comes before {self.events[second]} {here}, after it {there}, "
            f"but {clause} keeps their order"
        )

    def swapped(self, other: Trace) -> tuple[int, int, str] | None:
        """The places here of two events that come the other way round there, and what keeps their order; None if none.

        Both traces must have the same events.
        """
        places: dict[Event, list[int]] = {}
        for place, event in enumerate(other.events):
            places.setdefault(event, []).append(place)
        # Of equal events the first here is the first there, and so on: they cannot be told apart.
        taken: Counter[Event] = Counter()
        so_far: list[int] = []
        latest_there = Frontier(self.upto)
        for here, event in enumerate(self.events):
            place = places[event][taken[event]]
            taken[event] += 1
            if latest_there.highest_below(event) > place + 1:
                for earlier in range(here - 1, -1, -1):
                    if so_far[earlier] > place and (clause := self.upto.explain(self.events[earlier], event)):
                        return earlier, here, clause
            latest_there.add(event, place + 1)
            so_far.append(place)
        return None

    def __hash__(self) -> int:
        return hash(tuple(frozenset(level.items()) for level in self.levels))

    def __le__(self, other: Trace) -> bool:
        """Is this a prefix of the other: is there a trace that, put after this one, gives the other?

        Of equal events in the other, the earliest have the fewest predecessors, so the prefix must have those.
        It is one if nothing that is left over comes before something taken that depends on it.
        """
        self._require_same_dependence(other, "<=")
        wanted = Counter(self.events)
        taken: list[Event] = []
        left_over = Frontier(self.upto)
        for event in other.events:
            if wanted[event] > 0:
                wanted[event] -= 1
                if left_over.highest_below(event) > 0:
                    return False
                taken.append(event)
            else:
                left_over.add(event, 1.0)
        return len(taken) == len(self.events) and Trace(taken, self.upto) == self

    def __add__(self, other: Trace) -> Trace:
        self._require_same_dependence(other, "+")
        return Trace(self.events + other.events, self.upto)

    def __len__(self) -> int:
        return len(self.events)

    def reordered(self, rng: random.Random) -> Trace:
        """An equal trace in a random order: at every place, each event that may come next is as likely as any other.

        >>> from streamtight.stream.dependence import ordered, unordered
        >>> from streamtight.stream.event import Kind
        >>> A = Kind("A", n=int)
        >>> [e.n for e in Trace([A(i) for i in range(6)], unordered).reordered(random.Random(1)).events]
        [0, 3, 5, 4, 2, 1]
        """
        # Every event waits an exponential time from when it may come; as that has no memory, the next to come is any of
        # those that wait, all equally likely.
        times = _heights(self, lambda: rng.expovariate(1.0))
        order = sorted(range(len(self.events)), key=times.__getitem__)
        return Trace((self.events[place] for place in order), self.upto)

    def reorderings(self) -> Iterator[tuple[Event, ...]]:
        """Every order of an equal trace, once each. There can be very many: only for small traces."""
        yield from _orders(self.events, self.upto)

    def picture(self) -> str:
        """The events and their order as an SVG picture: a Hasse diagram; notebooks show it."""
        from streamtight.stream.order_picture import order_picture

        return order_picture(None, self.events, self.upto, names=("", "events"))

    def _repr_html_(self) -> str:
        return self.picture()

    def __repr__(self) -> str:
        return f"Trace([{', '.join(map(repr, self.events))}], {self.upto!r})"

    def _require_same_dependence(self, other: Trace, operator: str) -> None:
        if not isinstance(other, Trace) or other.upto != self.upto:
            raise TraceError(
                f"trace {operator} trace",
                needed=f"two traces up to {self.upto!r}",
                came=f"one up to {other.upto!r}" if isinstance(other, Trace) else repr(other),
                hint="make both traces with the same dependence",
            )


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


def _one_step() -> float:
    return 1.0


def _heights(trace: Trace, step: Callable[[], float]) -> list[float]:
    """For each event, a step more than the largest height of an earlier event that it depends on."""
    frontier = Frontier(trace.upto)
    return [frontier.place(event, step()) for event in trace.events]


def _orders(events: tuple[Event, ...], upto: Dependence) -> Iterator[tuple[Event, ...]]:
    if not events:
        yield ()
        return
    first_places: dict[Event, int] = {}
    for place, event in enumerate(events):
        if event not in first_places and not any(upto.depends(earlier, event) for earlier in events[:place]):
            first_places[event] = place
    for event, place in first_places.items():
        for rest in _orders(events[:place] + events[place + 1 :], upto):
            yield (event, *rest)
