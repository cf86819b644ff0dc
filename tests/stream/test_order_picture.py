"""Pictures of partial orders: what is drawn is the order, and what is marked is what differs."""

from __future__ import annotations

import itertools
import random
import re
from xml.etree import ElementTree

import pytest

from streamtight.stream.dependence import Dependence, barrier, depends, ordered, same, unordered
from streamtight.stream.event import Event, Kind
from streamtight.stream.order_picture import MOST_EVENTS, order_picture
from streamtight.stream.trace import Trace

GPS, Hour = Kind("GPS", taxi=int, x=int), Kind("Hour", n=int)
BY_TAXI = same("taxi", of=GPS) | barrier(Hour)


def texts(picture: str) -> list[str]:
    root = ElementTree.fromstring(picture)  # noqa: S314 - we made it
    return ["".join(each.itertext()) for each in root.iter() if each.tag.endswith("}text")]


def marked(picture: str) -> list[str]:
    """The titles of what is marked."""
    return re.findall(r'<g class="tight-mark"><title>(.*?)</title>', picture)


def covering_pairs(events: list[Event], upto: Dependence) -> int:
    """The slow and obvious way: all pairs of the transitive closure with nothing between them."""
    below = {(i, j) for i, j in itertools.combinations(range(len(events)), 2) if upto.depends(events[i], events[j])}
    grown = True
    while grown:
        more = {(i, k) for i, j in below for j2, k in below if j == j2} - below
        grown, below = bool(more), below | more
    return sum(not any((i, k) in below and (k, j) in below for k in range(len(events))) for i, j in below)


@pytest.mark.parametrize("upto", [ordered, unordered, BY_TAXI, same("taxi", of=GPS)], ids=repr)
@pytest.mark.parametrize("seed", range(8))
def test_only_covering_pairs_are_joined(upto, seed):
    chance = random.Random(seed)
    events = [GPS(chance.randint(1, 3), n) if chance.random() < 0.8 else Hour(n) for n in range(MOST_EVENTS)]

    picture = Trace(events, upto).picture()

    assert picture.count('stroke-opacity="0.55"') == covering_pairs(events, upto)


def test_two_events_that_changed_places_are_marked_on_both_sides():
    expected, actual = [GPS(1, 0), GPS(2, 5), GPS(1, 1)], [GPS(1, 1), GPS(2, 5), GPS(1, 0)]

    picture = order_picture(expected, actual, same("taxi"))

    assert marked(picture) == [
        "expected 1: GPS(taxi=1, x=0)",
        "expected 3: GPS(taxi=1, x=1)",
        "came 1: GPS(taxi=1, x=1), too early",
        "came 3: GPS(taxi=1, x=0)",
    ]


def test_what_one_side_lacks_is_marked_there():
    picture = order_picture([GPS(1, 0), GPS(2, 0)], [GPS(1, 0), GPS(3, 0)], unordered)

    assert marked(picture) == ["expected 2: GPS(taxi=2, x=0), missing", "came 2: GPS(taxi=3, x=0), extra"]


def test_equal_events_are_tied_once_each():
    same_ones = [GPS(1, 0), GPS(1, 0), GPS(2, 0)]

    picture = order_picture(same_ones, same_ones[::-1], unordered, marks=({}, {}))

    assert picture.count('stroke-opacity="0.3"') == 3


@pytest.mark.parametrize("count", [13, 1_000, 10_000])
def test_a_long_stream_is_cut_to_what_is_near_the_difference_and_says_so(count):
    events = [GPS(n % 3, n) for n in range(count)]
    other = list(events)
    middle = count // 2
    other[middle], other[middle + 3] = other[middle + 3], other[middle]

    picture = order_picture(events, other, same("taxi"))

    shown = [text for text in texts(picture) if text.startswith("GPS")]
    assert len(shown) == 2 * MOST_EVENTS
    assert len(marked(picture)) == 4
    left_out = [int(n.replace(",", "")) for n in re.findall(r"⋮ ([\d,]+) events? left out", picture)]
    assert sum(left_out) == 2 * (count - MOST_EVENTS)
    assert f"expected: {MOST_EVENTS} of {count:,} events" in texts(picture)


def test_what_is_near_a_missing_event_is_drawn_on_the_other_side_too():
    events = [GPS(1, n) for n in range(1_000)]

    picture = order_picture(events, [*events[:700], *events[701:]], same("taxi"))

    assert marked(picture) == ["expected 701: GPS(taxi=1, x=700), missing"]
    assert "came 700: GPS(taxi=1, x=699)" in picture
    assert "came 701: GPS(taxi=1, x=701)" in picture


ODD = Kind("Odd", text=str | None, number=float, big=int, many=tuple[str, ...])


@pytest.mark.parametrize(
    "event",
    [
        ODD(None, float("nan"), 10**6_000, ()),
        ODD("", float("inf"), -(10**6_000), ("", "\x00")),
        ODD("<script>\"'&\x00\x1b\u202e\ud800\n🎉", 0.0, 0, ("a" * 1_000,)),
        ODD("x" * 5_000_000, 0.0, 0, ()),
    ],
    ids=["nothing", "empty", "script", "long"],
)
def test_odd_values_make_a_picture_that_is_xml(event):
    picture = order_picture([event], [], ordered)

    assert len(picture) < 20_000
    assert "<script" not in picture
    assert marked(picture)
    texts(picture)


@pytest.mark.parametrize(("expected", "actual"), [([], []), ([], [GPS(1, 1)]), (None, [GPS(1, 1)]), (None, [])])
def test_sides_may_be_empty(expected, actual):
    assert ("nothing" in texts(order_picture(expected, actual, ordered))) == (
        (not expected and expected is not None) or not actual
    )


def test_a_function_that_raises_on_a_pair_draws_no_line():
    upto = depends(lambda a, b: 1 / (a.x - b.x) > 0 or True)

    picture = order_picture(None, [GPS(1, 1), GPS(2, 1)], upto)

    assert picture.count('stroke-opacity="0.55"') == 0


def test_notebooks_show_a_trace():
    trace = Trace([GPS(1, 1)], ordered)

    assert trace._repr_html_() == trace.picture()
