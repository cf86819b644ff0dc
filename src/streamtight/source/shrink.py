"""The smallest failing schedule: leave out what a failure does not need."""

from __future__ import annotations

from collections.abc import Callable

from streamtight.stream.dependence import Dependence
from streamtight.stream.schedule import Schedule, find_race


def smallest_failing(
    schedule: Schedule, fails: Callable[[Schedule], bool], *, promise: Dependence, limit: int = 500
) -> Schedule:
    """A schedule from which nothing can be left out without the failure going away; at most `limit` are tried.

    `promise` is the order that the source keeps. A simpler schedule that breaks it is not tried: a job cannot be
    blamed for an order that it was not given.

    >>> from streamtight.stream.dependence import unordered
    >>> from streamtight.stream.event import Kind
    >>> N = Kind("N", n=int)
    >>> found = Schedule.of([N(1), N(7), N(2), N(9)], cuts=[1, 2], partitions=2)
    >>> print(smallest_failing(found, lambda s: any(e.n > 5 for e in s.events), promise=unordered))
    batch 0
      partition 0: N(n=9)
    """
    tried = 0
    shrinking = True
    while shrinking:
        shrinking = False
        for simpler in schedule.simpler():
            if find_race(simpler.batches, promise) is not None:
                continue
            if tried == limit:
                return schedule
            tried += 1
            if fails(simpler):
                schedule, shrinking = simpler, True
                break
    return schedule
