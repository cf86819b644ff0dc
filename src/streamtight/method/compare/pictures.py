"""What a person looks at when two outputs differ: the order of their events, or the run batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from streamtight.method.compare.outputs import Equal, Finding, alike
from streamtight.program.timeline_picture import columns_of_run, key_of, timeline_picture
from streamtight.stream.dependence import Dependence
from streamtight.stream.equality import Equality
from streamtight.stream.event import Event
from streamtight.stream.order_picture import Marks, order_picture
from streamtight.stream.schedule import Schedule

MOST_ALIKE = 1_000
"""Up to so many events, a function of two events is asked which of them are equal, each with each."""


def picture_of_order(finding: Finding, upto: Dependence, equal: Equal) -> str:
    """What was expected beside what came, with the order of both, and where they differ."""
    both = _standing(finding.expected or (), finding.actual, equal)
    marks: tuple[Marks, Marks] | None = None
    if finding.race is not None:
        side = 0 if finding.name == "RACE_IN_REFERENCE" else 1
        pair = (finding.race.first, finding.race.second)
        found = {place: "in no order" for place, event in enumerate(both[side]) if event in pair}
        marks = (found, {}) if side == 0 else ({}, found)
    return order_picture(finding.expected, finding.actual, upto, alike=both, marks=marks)


def picture_of_streams(
    expected: Sequence[Event] | None,
    actual: Sequence[Event],
    upto: Dependence,
    equal: Equal,
    *,
    marks: tuple[Marks, Marks] | None = None,
    names: tuple[str, str] = ("expected", "came"),
) -> str:
    """Two streams and their order; what counts as equal is tied."""
    both = _standing(expected or (), actual, equal)
    return order_picture(expected, actual, upto, alike=both, marks=marks, names=names)


def _standing(
    expected: Sequence[Event], actual: Sequence[Event], equal: Equal
) -> tuple[Sequence[Event], Sequence[Event]]:
    """The same streams, with one event for all that count as equal."""
    if equal is None or (not isinstance(equal, Equality) and len(expected) + len(actual) > MOST_ALIKE):
        return expected, actual
    wanted, came = alike(((tuple(expected),), (tuple(actual),)), equal)
    return wanted[0], came[0]


def picture_of_run(finding: Finding, schedule: Schedule, key: Sequence[str], *dependences: Dependence) -> str:
    """The run that differs, batch by batch: what went in, what came out, and which rows should or should not be there.

    key   the columns that tell rows apart, where that is known; else the dependences say it
    """
    if finding.run is None:
        return ""
    missing = Counter(finding.expected or ()) - Counter(finding.actual)
    extra = Counter(finding.actual) - Counter(finding.expected or ())
    columns = columns_of_run(finding.run, schedule, extra.elements())
    given = dict.fromkeys(event.kind for event in schedule.events)
    came = dict.fromkeys(event.kind for event in (*finding.actual, *(finding.expected or ())))
    chosen = tuple(key) or key_of(given, came, *dependences)
    return timeline_picture(columns, key=chosen, never=tuple(missing.elements()))
