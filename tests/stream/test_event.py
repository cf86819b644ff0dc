from __future__ import annotations

import copy
import enum
import math
import os
import pickle
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Optional

import pytest

from streamtight.errors import EventError, FieldError, KindError
from streamtight.stream.event import Event, Kind, Map, type_name, without_none

GPS = Kind("GPS", taxi_id=int, x=float, y=float)
ONE_OF_EACH: list[tuple[Any, Any]] = [
    (int, 7),
    (float, 0.5),
    (str, "é"),
    (bool, True),
    (bytes, b"\x00\xff"),
    (date, date(2024, 2, 29)),
    (datetime, datetime(2024, 2, 29, 12, tzinfo=UTC)),
    (timedelta, timedelta(seconds=-1)),
    (Decimal, Decimal("1.50")),
    (object, ("anything", 1)),
    (GPS, GPS(1, 0.0, 0.0)),
    (tuple[int, ...], (1, 2)),
    (dict[str, int], {"a": 1}),
    (Annotated[int, "smallint"], 7),
]


def repickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


# -- kinds -----------------------------------------------------------------------------------------------------------


def test_kinds_of_the_same_name_and_fields_are_one_object():
    assert Kind("Tip", ride=int, cents=int | None) is Kind("Tip", ride=int, cents=Optional[int])  # noqa: UP045


@pytest.mark.parametrize(
    "other",
    [Kind("Tip", ride=int), Kind("Tap", ride=int, cents=int), Kind("Tip", ride=int, cents=float)],
)
def test_kinds_of_other_names_or_fields_are_other_kinds(other: Kind):
    assert Kind("Tip", ride=int, cents=int) is not other


def test_the_order_of_the_fields_belongs_to_the_kind():
    assert Kind("P", x=int, y=int) is not Kind("P", y=int, x=int)


def test_a_kind_knows_its_name_and_fields():
    assert (GPS.name, GPS.names, dict(GPS.fields)) == (
        "GPS",
        ("taxi_id", "x", "y"),
        {"taxi_id": int, "x": float, "y": float},
    )


def test_the_fields_of_a_kind_cannot_be_changed():
    with pytest.raises(TypeError):
        GPS.fields["z"] = int  # type: ignore[index]


def test_a_kind_reads_as_it_was_written():
    kind = Kind("Ride", gps=GPS, tip=Decimal | None, stops=tuple[str, ...], at=datetime)

    assert repr(kind) == "Ride(gps: GPS, tip: Decimal | None, stops: tuple[str, ...], at: datetime)"


def test_a_kind_may_have_no_fields():
    assert Kind("End")() == Kind("End")()
    assert repr(Kind("End")()) == "End()"


def test_a_kind_survives_pickling_and_copying():
    kind = Kind("Ride", gps=GPS | None, stops=tuple[GPS, ...], by=dict[str, float], small=Annotated[int, "smallint"])

    assert repickled(kind) is kind
    assert copy.deepcopy(kind) is kind


def test_a_kind_that_only_another_process_made_arrives_as_the_same_kind():
    program = (
        "import pickle, sys; from streamtight.stream.event import Kind; "
        "kind = Kind('Far', n=int, m=dict[str, float]); "
        "sys.stdout.buffer.write(pickle.dumps((kind, kind(1, {'a': float('nan'), 'b': 2.0}))))"
    )
    env = {"PYTHONPATH": os.pathsep.join(sys.path)}
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, env=env)

    kind, event = pickle.loads(output.stdout)

    assert kind is Kind("Far", n=int, m=dict[str, float])
    assert {event: 1}[kind(1, {"b": 2.0, "a": math.nan})] == 1


def test_a_closure_that_holds_a_kind_survives_cloudpickle():
    from pyspark import cloudpickle

    kind = Kind("Closed", n=int, inner=GPS | None)

    make = pickle.loads(cloudpickle.dumps(lambda n: kind(n, None)))

    assert make(3) == kind(3, None)
    assert make(3).kind is kind


@pytest.mark.parametrize(
    ("declared", "written"),
    [
        (int, "int"),
        (GPS, "GPS"),
        (int | None, "int | None"),
        (tuple[str, ...], "tuple[str, ...]"),
        (dict[str, Decimal], "dict[str, Decimal]"),
        (datetime | None, "datetime | None"),
    ],
)
def test_type_names_are_what_users_write(declared: Any, written: str):
    assert type_name(declared) == written


@pytest.mark.parametrize(
    ("declared", "apart"),
    [
        (int, (int, False)),
        (int | None, (int, True)),
        (Optional[GPS], (GPS, True)),  # noqa: UP045
        (GPS | None, (GPS, True)),
        (int | str, (int | str, False)),
        (int | str | None, (int | str | None, True)),
    ],
)
def test_none_is_taken_apart_from_a_type(declared: Any, apart: tuple[Any, bool]):
    assert without_none(declared) == apart


@pytest.mark.parametrize("reserved", ["kind", "as_dict", "replace"])
def test_a_field_is_not_called_like_a_method_of_events(reserved: str):
    with pytest.raises(KindError, match=reserved):
        Kind("Bad", **{reserved: int})


@pytest.mark.parametrize("bad", [list[int], set, None, 3, int | str, tuple[int, str], complex, [int], "int", tuple])
def test_a_field_type_that_is_not_known_is_refused(bad: Any):
    with pytest.raises(KindError, match="a field type"):
        Kind("Bad", x=bad)


def test_a_refused_kind_is_not_remembered():
    for _ in range(2):
        with pytest.raises(KindError):
            Kind("Bad", x=complex)


# -- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("declared", "value"), ONE_OF_EACH)
def test_a_field_gives_back_what_it_was_given(declared: Any, value: Any):
    event = Kind("One", it=declared)(value)

    assert event.it == value
    assert event == Kind("One", it=declared)(it=value)


@pytest.mark.parametrize(("declared", "value"), ONE_OF_EACH)
def test_an_optional_field_takes_none_and_values(declared: Any, value: Any):
    kind = Kind("One", it=declared | None)

    assert kind(None).it is None
    assert kind(value).it == value


@pytest.mark.parametrize(
    ("declared", "value"), [pair for pair in ONE_OF_EACH if pair[0] is not object], ids=lambda v: str(v)
)
def test_a_field_that_is_not_optional_refuses_none(declared: Any, value: Any):
    with pytest.raises(EventError, match=r"\| None"):
        Kind("One", it=declared)(None)


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        (int, True),
        (int, 1.0),
        (int, "1"),
        (float, True),
        (float, "1"),
        (float, 10**400),
        (str, 1),
        (str, b"a"),
        (bool, 1),
        (bytes, "a"),
        (date, datetime(2024, 1, 1)),
        (date, "2024-01-01"),
        (datetime, date(2024, 1, 1)),
        (timedelta, 1),
        (Decimal, 1.5),
        (Decimal, True),
        (Decimal, Decimal("NaN")),
        (Decimal, Decimal("Infinity")),
        (object, bytearray(b"a")),
        (object, [bytearray(b"a")]),
        (GPS, Kind("Other", taxi_id=int, x=float, y=float)(1, 0.0, 0.0)),
        (GPS, (1, 0.0, 0.0)),
        (GPS, {"taxi_id": 1}),
        (tuple[int, ...], "ab"),
        (tuple[int, ...], (1, "a")),
        (tuple[int, ...], (None,)),
        (tuple[object, ...], GPS(1, 0.0, 0.0)),
        (dict[str, int], [("a", 1)]),
        (dict[str, int], {1: 1}),
        (dict[str, int], {"a": True}),
        (int | None, "x"),
        (Annotated[int, "smallint"], 1.5),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_value_of_a_wrong_type_is_refused(declared: Any, value: Any):
    with pytest.raises(EventError) as caught:
        Kind("One", it=declared)(value)

    assert caught.value.where.startswith(("One.it", "GPS"))


def test_an_int_becomes_a_float_in_a_float_field():
    event = GPS(1, 2, 3)

    assert (type(event.x), event.x) == (float, 2.0)


def test_an_int_becomes_a_decimal_in_a_decimal_field():
    assert type(Kind("D", d=Decimal)(3).d) is Decimal


def test_huge_ints_stay_exact():
    assert Kind("Big", n=int)(2**200 + 1).n == 2**200 + 1
    assert Kind("Big", n=int)(2**200 + 1) != Kind("Big", n=int)(2**200)


def test_negative_zero_is_zero_and_keeps_its_sign():
    positive, negative = GPS(1, 0.0, 0.0), GPS(1, -0.0, 0.0)

    assert positive == negative
    assert hash(positive) == hash(negative)
    assert math.copysign(1, negative.x) == -1


def test_decimals_are_equal_by_value():
    kind = Kind("D", d=Decimal)

    assert kind(Decimal("1.0")) == kind(Decimal("1.00"))
    assert hash(kind(Decimal("1.0"))) == hash(kind(Decimal("1.00")))


class Level(enum.IntEnum):
    LOW = 1


class Colour(str, enum.Enum):  # noqa: UP042 - the old way to write it, which is still common
    RED = "red"


class Shout(str):
    __slots__ = ()


def test_values_of_subclasses_become_plain_values():
    event = Kind("Sub", n=int, s=str)(Level.LOW, Shout("a"))

    assert (type(event.n), type(event.s)) == (int, str)
    assert event == Kind("Sub", n=int, s=str)(1, "a")


def test_a_string_enum_becomes_its_value():
    assert Kind("Sub", s=str)(Colour.RED).s == "red"


def test_bytearrays_become_bytes():
    source = bytearray(b"ab")
    event = Kind("B", b=bytes)(source)
    source[0] = 0

    assert event.b == b"ab"


def test_lists_sets_and_dicts_become_their_immutable_twins():
    event = Kind("Any", a=object, t=tuple[int, ...])({"k": [1, {2}]}, [1, 2])

    assert event.a == {"k": (1, frozenset({2}))}
    assert event.t == (1, 2)
    assert isinstance(hash(event), int)


def test_a_dict_makes_an_event_of_a_nested_kind():
    kind = Kind("Ride", at=GPS)

    assert kind({"taxi_id": 1, "x": 0, "y": 0}) == kind(GPS(1, 0.0, 0.0))


def test_an_event_of_a_nested_kind_in_an_object_field_stays_an_event():
    assert Kind("Any", a=object)(GPS(1, 0.0, 0.0)).a.kind is GPS


def test_kinds_nest_in_tuples_and_maps():
    kind = Kind("Deep", many=tuple[GPS, ...], by=dict[str, tuple[GPS | None, ...]])
    event = kind([GPS(1, 0.0, 0.0)], {"a": [None, GPS(2, 0.0, 0.0)]})

    assert event.many[0].taxi_id == 1
    assert event.by["a"][1].taxi_id == 2
    assert repickled(event) == event


def test_an_error_in_a_nested_value_says_where():
    with pytest.raises(EventError) as caught:
        Kind("Deep", by=dict[str, tuple[int, ...]])({"a": (1, "x")})

    assert caught.value.where == "Deep.by value[...]"


# -- NaN -------------------------------------------------------------------------------------------------------------

NAN_INSIDE = [
    (float, math.nan),
    (float | None, math.nan),
    (tuple[float, ...], (1.0, math.nan)),
    (dict[str, float], {"a": math.nan}),
    (dict[float, str], {math.nan: "a"}),
    (object, math.nan),
    (object, [math.nan, {"a": math.nan}]),
    (object, frozenset({math.nan})),
    (GPS, GPS(1, math.nan, 0.0)),
    (tuple[GPS, ...], (GPS(1, math.nan, 0.0),)),
]


@pytest.mark.parametrize(("declared", "value"), NAN_INSIDE, ids=lambda v: str(v))
def test_nan_is_equal_to_nan(declared: Any, value: Any):
    kind = Kind("N", it=declared)
    event = kind(value)

    for other in (kind(_with_other_nans(value)), repickled(event), copy.deepcopy(event)):
        assert other == event
        assert hash(other) == hash(event)
        assert {event: 1}[other] == 1


def _with_other_nans(value: Any) -> Any:
    match value:
        case float():
            return float("nan") if value != value else value
        case Event():
            return value.kind(**{name: _with_other_nans(v) for name, v in value.as_dict().items()})
        case frozenset():
            return frozenset(map(_with_other_nans, value))
        case tuple() | list():
            return [_with_other_nans(v) for v in value]
        case dict():
            return {_with_other_nans(k): _with_other_nans(v) for k, v in value.items()}
    return value


def test_nan_is_not_equal_to_a_number():
    assert GPS(1, math.nan, 0.0) != GPS(1, 0.0, 0.0)


# -- names -----------------------------------------------------------------------------------------------------------

ODD_NAMES = [
    "count",
    "index",
    "count(1)",
    "a b",
    "class",
    "self",
    "name",
    "fields",
    "_hidden",
    "__index_level_0__",
    "_0",
    "_values",
    "größe",
    "a'b",
    "a\nb",
]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_field_may_have_an_odd_name(name: str):
    kind = Kind("Odd", **{name: int, "other": int})
    event = kind(1, 2)

    assert getattr(event, name) == 1
    assert event.as_dict() == {name: 1, "other": 2}
    assert repickled(event) == event


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_field_with_an_odd_name_may_be_given_and_replaced_by_name(name: str):
    kind = Kind("Odd", **{name: int, "other": int})

    assert kind(**{name: 1, "other": 2}) == kind(1, 2)
    assert kind(1, 2).replace(**{name: 3}) == kind(3, 2)


def test_a_name_that_python_would_spell_otherwise_stays_as_it_is():
    micro = "\N{MICRO SIGN}"  # as an identifier, Python turns it into a Greek mu

    assert Kind("Odd", **{micro: int})(**{micro: 1}).as_dict() == {micro: 1}


@pytest.mark.parametrize("name", ["__slots__", "__class__", "__hash__", "__eq__", "__reduce__", "__len__"])
def test_a_field_named_like_a_part_of_python_is_a_field_or_refused(name: str):
    try:
        event = Kind("Odd", **{name: int})(1)
    except KindError:
        return
    assert {event: 1}[repickled(event)] == 1
    assert event.as_dict() == {name: 1}
    assert isinstance(event, Event)


def test_the_methods_of_tuples_give_way_to_fields():
    event = Kind("Agg", count=int, index=str)(3, "a")

    assert (event.count, event.index) == (3, "a")


@pytest.mark.parametrize("name", ["n", "count", "count(1)", "a b", "class"])
def test_an_event_reads_as_python_that_makes_it(name: str):
    kind = Kind("Odd", **{name: int})

    assert eval(repr(kind(1)), {"Odd": kind}) == kind(1)  # noqa: S307


# -- making ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [GPS, Kind("Odd", **{"taxi id": int, "x": float, "y": float})], ids=["plain", "odd"])
@pytest.mark.parametrize(
    ("values", "fields"),
    [
        ((), {}),
        ((1, 0.0), {}),
        ((1, 0.0, 0.0, 0.0), {}),
        ((1, 0.0, 0.0), {"z": 1}),
        ((1, 0.0, 0.0), {"y": 1.0}),
        ((), {"self": 1}),
    ],
    ids=["nothing", "too few", "too many", "unknown", "twice", "self"],
)
def test_the_fields_given_must_be_the_fields_of_the_kind(kind: Kind, values: tuple[Any, ...], fields: dict[str, Any]):
    with pytest.raises(EventError):
        kind(*values, **fields)


def test_fields_may_be_given_by_name_in_any_order():
    assert GPS(y=2.0, taxi_id=1, x=0.5) == GPS(1, 0.5, 2.0)


def test_replace_makes_a_new_event():
    event = GPS(1, 0.5, 2.0)

    assert event.replace(x=1) == GPS(1, 1.0, 2.0)
    assert event == GPS(1, 0.5, 2.0)


def test_replace_checks_as_the_kind_does():
    with pytest.raises(EventError):
        GPS(1, 0.5, 2.0).replace(x="far")
    with pytest.raises(EventError):
        GPS(1, 0.5, 2.0).replace(z=1)


# -- events ----------------------------------------------------------------------------------------------------------


def test_events_of_different_kinds_are_never_equal():
    one, other = Kind("One", n=int), Kind("Other", n=int)

    assert one(1) != other(1)
    assert len({one(1), other(1)}) == 2
    assert Kind("One")() != Kind("Other")()


def test_kinds_that_differ_only_in_their_fields_make_different_events():
    assert Kind("One", n=int)(1) != Kind("One", m=int)(1)
    assert Kind("One", n=int)(1) != Kind("One", n=float)(1)


def test_equal_events_have_equal_hashes():
    assert hash(GPS(1, 0.5, 2.0)) == hash(GPS(1, 0.5, 2))
    assert len({GPS(1, 0.5, 2.0), GPS(1, 0.5, 2), GPS(2, 0.5, 2)}) == 2


def test_an_event_never_changes():
    event = GPS(1, 0.5, 2.0)

    with pytest.raises(FieldError, match="replace"):
        event.x = 1.0
    with pytest.raises(FieldError):
        event.z = 1.0
    with pytest.raises(AttributeError):
        del event.x
    with pytest.raises(TypeError):
        event[1] = 2  # type: ignore[index]
    assert event == GPS(1, 0.5, 2.0)


def test_a_field_that_is_not_there_is_an_attribute_error():
    assert not hasattr(GPS(1, 0.5, 2.0), "z")
    assert getattr(GPS(1, 0.5, 2.0), "z", "none") == "none"


def test_the_fields_of_an_event_come_in_the_order_of_its_kind():
    assert list(GPS(y=2.0, x=0.5, taxi_id=1).as_dict().items()) == [("taxi_id", 1), ("x", 0.5), ("y", 2.0)]


# -- maps ------------------------------------------------------------------------------------------------------------


def test_a_map_is_equal_to_the_dict_it_was_made_of():
    made = Map({"a": 1, "b": 2})

    assert made == {"b": 2, "a": 1} == dict(made)
    assert made == Map({"b": 2, "a": 1})
    assert made != Map({"a": 1})
    assert (made["a"], len(made), list(made), repr(made)) == (1, 2, ["a", "b"], "{'a': 1, 'b': 2}")


def test_equal_maps_have_equal_hashes_whatever_the_order():
    assert hash(Map({"a": 1, "b": 2})) == hash(Map({"b": 2, "a": 1}))
    assert hash(repickled(Map({"a": 1}))) == hash(Map({"a": 1}))


def test_a_map_does_not_follow_the_dict_it_was_made_of():
    source = {"a": 1}
    made = Map(source)
    source["a"] = 2

    assert made["a"] == 1


def test_a_map_cannot_be_changed():
    with pytest.raises(TypeError):
        Map({"a": 1})["a"] = 2  # type: ignore[index]
