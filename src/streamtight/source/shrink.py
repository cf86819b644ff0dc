"""The smallest failing schedule: leave out what a failure does not need, and make simple what is left."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from streamtight.errors import SourceError
from streamtight.stream.dependence import Dependence
from streamtight.stream.event import Event
from streamtight.stream.schedule import Schedule, find_race

Fails = Callable[[Schedule], bool]
FirstFailing = Callable[[Sequence[Schedule]], Schedule | None]
Simplify = Callable[[Event], Iterable[Event]]


def smallest_failing(
    schedule: Schedule,
    fails: Fails | None = None,
    *,
    promise: Dependence,
    limit: int = 500,
    simpler_events: Simplify | None = None,
    first_failing: FirstFailing | None = None,
    at_once: int = 8,
) -> Schedule:
    """A schedule from which nothing can be left out without the failure going away; at most `limit` are tried.

    `promise` is the order that the source keeps. A simpler schedule that breaks it is not tried: a job cannot be
    blamed for an order that it was not given. None is tried twice.

    >>> from streamtight.stream.dependence import unordered
    >>> from streamtight.stream.event import Kind
    >>> N = Kind("N", n=int)
    >>> found = Schedule.of([N(1), N(7), N(2), N(9)], cuts=[1, 2], partitions=2)
    >>> print(smallest_failing(found, lambda s: any(e.n > 5 for e in s.events), promise=unordered))
    batch 0
      partition 0: N(n=9)

    With `simpler_events`, such as a source's, the values of what is left are made simpler too: first a value wherever
    it stands, so that events that agree go on to agree, then in single events. Where one run can judge many schedules,
    give `first_failing` instead of `fails`: it gets up to `at_once` of them and returns the first that fails, or None.

    >>> def down(event):
    ...     return [event.replace(n=event.n - 1)]
    >>> print(smallest_failing(found, lambda s: any(e.n > 5 for e in s.events), promise=unordered, simpler_events=down))
    batch 0
      partition 0: N(n=6)
    """
    for name, given, least in (("limit", limit, 0), ("at_once", at_once, 1)):
        if not isinstance(given, int) or given < least:
            raise SourceError(
                f"smallest_failing({name}=...)",
                needed=f"a whole number from {least}",
                came=repr(given),
                hint=f"{name}=8",
            )
    search = _Search(_judge(fails, first_failing), promise, limit, 1 if first_failing is None else at_once)
    search.tried.add(schedule)
    before = None
    while schedule != before:
        before = schedule
        schedule = search.smaller(schedule)
        if simpler_events is not None:
            schedule = search.plainer(schedule, simpler_events)
    return schedule


def _judge(fails: Fails | None, first_failing: FirstFailing | None) -> FirstFailing:
    if first_failing is not None and fails is None:
        return first_failing
    if fails is not None and first_failing is None:
        return lambda schedules: next((schedule for schedule in schedules if fails(schedule)), None)
    raise SourceError(
        "smallest_failing(...)",
        needed="either fails or first_failing",
        came="neither" if fails is None else "both",
        hint="smallest_failing(schedule, fails, promise=same('taxi_id'))",
    )


class _Search:
    """What was tried so far, and how more is tried."""

    def __init__(self, first_failing: FirstFailing, promise: Dependence, limit: int, at_once: int) -> None:
        self.first_failing = first_failing
        self.promise = promise
        self.left = limit
        self.at_once = at_once
        self.tried: set[Schedule] = set()

    def smaller(self, schedule: Schedule) -> Schedule:
        """A failing schedule out of which nothing more can be left."""
        while (found := self.first_of(schedule.simpler())) is not None:
            schedule = found
        return schedule

    def plainer(self, schedule: Schedule, simplify: Simplify) -> Schedule:
        """A failing schedule with simpler values, after one pass over them all."""
        start, groups = 0, dict[Schedule, int]()
        while (found := self.first_of(_numbered(schedule, simplify, start, groups))) is not None:
            # On from here, not from the beginning: what did not fail before will seldom fail now.
            schedule, start = found, groups[found]
        return schedule

    def first_of(self, candidates: Iterable[Schedule]) -> Schedule | None:
        """The first of these that fails."""
        worth = (candidate for candidate in candidates if self._is_worth_trying(candidate))
        # Those of a chunk behind the first that fails are not tried again: a later schedule never leads to them, since
        # it keeps the first one's step and every step goes down.
        while chunk := list(itertools.islice(worth, min(self.at_once, self.left))):
            self.left -= len(chunk)
            found = self.first_failing(chunk)
            if found is not None and found not in chunk:
                raise SourceError(
                    "smallest_failing(first_failing=...)",
                    needed="one of the given schedules, or None",
                    came=repr(found),
                    hint="return next((s for s in schedules if fails(s)), None)",
                )
            if found is not None:
                return found
        return None

    def _is_worth_trying(self, schedule: Schedule) -> bool:
        # Other values may depend on each other where the old ones did not, so the promise is asked about every one.
        if schedule in self.tried or find_race(schedule.batches, self.promise) is not None:
            return False
        self.tried.add(schedule)
        return True


# -- simpler values ------------------------------------------------------------------------------------------------


def _numbered(schedule: Schedule, simplify: Simplify, start: int, groups: dict[Schedule, int]) -> Iterator[Schedule]:
    """The schedules with simpler values from group `start` on; `groups` is told where each one stands."""
    for number, group in enumerate(_with_simpler_values(schedule, simplify)):
        if number >= start:
            for candidate in group:
                groups[candidate] = number
                yield candidate


def _with_simpler_values(schedule: Schedule, simplify: Simplify) -> Iterator[Iterator[Schedule]]:
    """A group for each value of each field, replaced wherever it stands; then one for each event, replaced alone."""
    events = schedule.events
    options = {event: list(simplify(event)) for event in dict.fromkeys(events)}
    holders: dict[tuple[str, object], list[Event]] = {}
    for event in options:
        for name, value in event.as_dict().items():
            holders.setdefault((name, value), []).append(event)
    for (name, _), affected in holders.items():
        yield _everywhere(schedule, name, {event: options[event] for event in affected})
    for event, simpler in options.items():
        yield _in_one_event(schedule, event, simpler)


def _everywhere(schedule: Schedule, name: str, options: Mapping[Event, Sequence[Event]]) -> Iterator[Schedule]:
    """One value of one field made simpler in all events that have it, where all of them may have the simpler one."""
    by_value = [
        {getattr(simpler, name): simpler for simpler in several if _changed(event, simpler) == [name]}
        for event, several in options.items()
    ]
    for value in by_value[0]:
        if all(value in simpler for simpler in by_value):
            changes = {event: simpler[value] for event, simpler in zip(options, by_value, strict=True)}
            yield _replaced(schedule, changes, range(len(schedule.events)))


def _in_one_event(schedule: Schedule, event: Event, options: Sequence[Event]) -> Iterator[Schedule]:
    """One event made simpler wherever it stands, and then at single places."""
    places = [place for place, other in enumerate(schedule.events) if other == event]
    for chosen in (places, *([place] for place in places)):
        for simpler in options:
            yield _replaced(schedule, {event: simpler}, chosen)


def _changed(event: Event, other: Event) -> list[str]:
    if event.kind is not other.kind:
        return []
    return [name for name, a, b in zip(event.kind.names, event[1:], other[1:], strict=True) if (a,) != (b,)]


def _replaced(schedule: Schedule, changes: Mapping[Event, Event], places: Sequence[int]) -> Schedule:
    """The schedule with the events at these places changed; places are counted as events are delivered."""
    number = itertools.count()
    batches = tuple(
        tuple(
            tuple(changes.get(event, event) if next(number) in places else event for event in partition)
            for partition in batch
        )
        for batch in schedule.batches
    )
    return replace(schedule, batches=batches)
