"""Events and schedules as JSON, and back."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from streamtight.errors import TraceError
from streamtight.stream.event import Kind
from streamtight.stream.plain import from_plain, plain, schedule_data, schedule_from
from streamtight.stream.schedule import Restart, Schedule

Place = Kind("Place", x=int)
Odd = Kind(
    "Odd",
    text=str,
    number=float | None,
    blob=bytes,
    day=date,
    at=datetime,
    long=timedelta,
    price=Decimal,
    places=tuple[Place, ...],
    counts=dict[str, int],
)
ODD = Odd(
    "\u202e<script>\n\x00\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
    float("nan"),
    b"\x00\xff",
    date(1, 1, 1),
    datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    timedelta(days=-3, microseconds=1),
    Decimal("-0E+5"),
    (Place(10**30), Place(-1)),
    {"": 0, "a": 2**70},
)


def through_json(data: object) -> object:
    return json.loads(json.dumps(data))


def test_an_event_of_odd_values_comes_back_as_it_was():
    assert from_plain(through_json(plain(ODD)), [Odd]) == ODD


@pytest.mark.parametrize("value", [float("inf"), -float("inf"), None, 2.5])
def test_numbers_that_json_lacks_come_back(value):
    event = ODD.replace(number=value)

    assert from_plain(through_json(plain(event)), [Odd]) == event


def test_a_schedule_comes_back_with_its_restarts():
    schedule = Schedule(((((Place(1)), Place(2)), ()), ((Place(3),),)), 3, (Restart(after=0, replay=True),))

    assert schedule_from(through_json(schedule_data(schedule)), [Place]) == schedule


@pytest.mark.parametrize(
    "data",
    [
        {"kind": "Elsewhere", "fields": {}},
        {"kind": "Place", "fields": {"y": 1}},
        {"kind": "Place", "fields": {"x": "one"}},
        {"code": "1 + 1"},
        {"float": "many"},
        {"datetime": 5},
        {"bytes": "xyz"},
        {"microseconds": "5"},
        {"a": 1, "b": 2},
        {"map": [1]},
        {"map": [[[{"map": []}], 1, 2]]},
        {"Decimal": "x"},
    ],
)
def test_what_was_not_written_so_is_refused(data):
    with pytest.raises(TraceError, match="a stored schedule"):
        from_plain(data, [Place])


@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        [],
        {"batches": [], "shuffle_partitions": "2", "restarts": []},
        {"batches": [[1]], "shuffle_partitions": 1, "restarts": []},
        {"batches": [[[]]], "shuffle_partitions": 0, "restarts": []},
        {"batches": [[[]]], "shuffle_partitions": 1, "restarts": [1]},
        {"batches": [[[]]], "shuffle_partitions": 1, "restarts": [{"after": 7, "replay": False}]},
    ],
)
def test_a_schedule_that_cannot_be_is_refused(data):
    with pytest.raises(TraceError):
        schedule_from(data, [Place])
