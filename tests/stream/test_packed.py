"""Events of known kinds as JSON, column by column, and back; dataclasses by the types of their fields."""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamtight.errors import TraceError
from streamtight.stream.event import Event, Kind
from streamtight.stream.packed import pack, unpack
from streamtight.stream.records import record_data, record_from
from streamtight.stream.schedule import Schedule

Inner = Kind("Inner", x=int | None, tags=tuple[str, ...])
Same = Kind("Inner", x=str)  # another kind of that name: columns are read by their types, not by names
Odd = Kind(
    "Odd",
    n=int | None,
    real=float | None,
    text=str | None,
    yes=bool | None,
    blob=bytes | None,
    day=date | None,
    at=datetime | None,
    long=timedelta | None,
    price=Annotated[Decimal, "decimal(10,2)"] | None,
    inner=Inner | None,
    same=Same | None,
    many=tuple[Inner | None, ...] | None,
    counts=dict[str, int | None] | None,
    anything=object,
)
Nothing = Kind("Nothing")
KINDS = [Odd, Inner, Nothing]

integers = st.integers() | st.sampled_from([2**63 - 1, -(2**63), 10**5000, -(10**5000)])
texts = st.text(st.characters(), max_size=5)  # halves of letters too
inners = st.builds(Inner, st.none() | integers, st.lists(texts, max_size=2).map(tuple))
decimals = st.decimals(allow_nan=False, allow_infinity=False)
odds = st.builds(
    Odd,
    st.none() | integers,
    st.none() | st.floats(),
    st.none() | texts,
    st.none() | st.booleans(),
    st.none() | st.binary(max_size=5),
    st.none() | st.dates(),
    st.none() | st.datetimes() | st.datetimes(timezones=st.just(UTC)),
    st.none() | st.timedeltas(),
    st.none() | decimals,
    st.none() | inners,
    st.none() | st.builds(Same, texts),
    st.none() | st.lists(st.none() | inners, max_size=3).map(tuple),
    st.none() | st.dictionaries(texts, st.none() | integers, max_size=3),
    st.none()
    | integers
    | st.floats()
    | texts
    | st.binary(max_size=3)
    | decimals
    | st.tuples(st.dates(), st.booleans()),
)
events = st.lists(odds | inners | st.just(Nothing()), max_size=6)


def exactly(value: Any) -> Any:
    """A value with all that == overlooks: types, the sign of zero, the digits of decimals; by hand, one by one."""
    if isinstance(value, Event):
        return (value.kind.name, [exactly(inner) for inner in value[1:]])
    if isinstance(value, float):
        return ("float", "nan" if math.isnan(value) else struct.pack("<d", value))
    if isinstance(value, tuple):
        return [exactly(inner) for inner in value]
    if hasattr(value, "items"):
        return {key: exactly(inner) for key, inner in value.items()}
    if isinstance(value, Decimal):
        return value.as_tuple()
    return (type(value).__name__, value)


@settings(max_examples=150, deadline=None)
@given(events)
def test_events_of_any_values_come_back_exactly(some: list[Event]) -> None:
    back = unpack(json.loads(json.dumps(pack(some, KINDS))), KINDS)

    assert list(map(exactly, back)) == list(map(exactly, some))
    assert back == some


def test_nan_infinities_and_the_sign_of_zero_come_back() -> None:
    values = [math.nan, math.inf, -math.inf, -0.0, 0.0, 5e-324]
    Number = Kind("Number", x=float)  # noqa: N806

    back = unpack(json.loads(json.dumps(pack(map(Number, values), [Number]))), [Number])

    assert [repr(event.x) for event in back] == [repr(value) for value in values]


GOOD = pack([Inner(1, ("a",)), Inner(None, ()), Nothing()], KINDS)


def spoiled() -> list[Any]:
    wrong: list[Any] = [None, 3, [], {}, "x", {"kinds": [0]}, {**GOOD, "kinds": [1]}, {**GOOD, "kinds": [1, 1, 7]}]
    wrong += [{**GOOD, "kinds": [1, 1, -1]}, {**GOOD, "kinds": [1, 1, "2"]}, {**GOOD, "kinds": [1, 1, [2]]}]
    wrong += [
        {**GOOD, "columns": GOOD["columns"][:2]},
        {**GOOD, "columns": [[], [], []]},
        {**GOOD, "columns": [1, 2, 3]},
    ]
    columns = GOOD["columns"]
    wrong += [
        {**GOOD, "columns": [columns[0], one, columns[2]]} for one in ([[1, 2]], [["a", 2], [[], []]], [[1, 2], [3, 4]])
    ]
    wrong += [{**GOOD, "columns": [columns[0], [[1, 2], ["ab", "cd"]], columns[2]]}]  # texts where lists are needed
    return wrong


@pytest.mark.parametrize("data", spoiled(), ids=lambda data: repr(data)[:40])
def test_anything_else_is_refused(data: Any) -> None:
    with pytest.raises(TraceError):
        unpack(data, KINDS)


# -- records ---------------------------------------------------------------------------------------------------------


class Corner(NamedTuple):
    x: float
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Everything:
    count: int
    is_good: bool
    when: datetime
    corner: Corner | None = None
    corners: list[Corner] = field(default_factory=list)
    by_place: dict[tuple[int, str], Corner | None] = field(default_factory=dict)
    pair: tuple[int, str] = (0, "")
    event: Event | None = None
    rows: tuple[Event, ...] | None = None
    schedule: Schedule | None = None


corners = st.builds(Corner, st.floats(allow_nan=False), st.lists(texts, max_size=2).map(tuple))
everything = st.builds(
    Everything,
    st.integers(),
    st.booleans(),
    st.datetimes() | st.datetimes(timezones=st.just(UTC)),
    st.none() | corners,
    st.lists(corners, max_size=2),
    st.dictionaries(st.tuples(st.integers(), texts), st.none() | corners, max_size=2),
    st.tuples(st.integers(), texts),
    st.none() | inners,
    st.none() | st.lists(odds | inners, max_size=2).map(tuple),
    st.none() | st.lists(inners, max_size=2).map(Schedule.of),
)


@settings(max_examples=100, deadline=None)
@given(everything)
def test_dataclasses_come_back_as_they_were(value: Everything) -> None:
    data = json.loads(json.dumps(record_data(value, Everything, KINDS)))

    assert record_from(data, Everything, KINDS) == value


def test_of_a_dataclass_nothing_else_is_read() -> None:
    good = record_data(Everything(1, True, datetime(2024, 5, 1)), Everything, KINDS)
    changes: list[dict[str, Any]] = [
        {"count": "1"}, {"count": True}, {"count": 1.0}, {"is_good": 1}, {"when": 5}, {"when": "now"}, {"corner": []},
        {"corner": {"x": 1}}, {"corner": {"x": 1, "names": "ab"}}, {"corners": {}}, {"pair": [1]},
        {"pair": [1, "a", 2]}, {"by_place": {}}, {"by_place": [[1, 2, 3]]}, {"by_place": [[[1], None]]},
        {"event": {}}, {"rows": [1]},
        {"schedule": {"batches": 1}}, {"__class__": "os.system"}, {"more": 1},
    ]  # fmt: skip

    for change in changes:
        with pytest.raises(TraceError):
            record_from({**good, **change}, Everything, KINDS)
    for other in (None, [], 1, {name: value for name, value in good.items() if name != "pair"}):
        with pytest.raises(TraceError):
            record_from(other, Everything, KINDS)
