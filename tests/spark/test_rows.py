"""Kinds as Spark types and events as Spark rows, there and back, really through Spark."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampNTZType, TimestampType

import streamtight as tight
from streamtight import Bag, Event, Kind, Schedule
from streamtight.errors import RowError
from streamtight.spark.rows import Table, arrow_values, is_as_given, kind_of, kinds_of, struct_of

pytestmark = pytest.mark.usefixtures("spark")

A, B, N = Kind("A", x=int, y=str | None), Kind("B", x=int, z=float), Kind("N", n=int)
Point = Kind("Point", x=int, label=str | None)
Deep = Kind("Deep", at=Point, day=date, when=datetime, path=tuple[Point | None, ...])
deep = Deep(Point(1, None), date(2024, 2, 29), datetime(2024, 1, 1, 12), (Point(2, "a"), None))

# What a field is declared as, what Spark calls that, and values that must come back as they went in.
FIELDS: dict[str, tuple[Any, str, list[Any]]] = {
    "int": (int, "bigint", [0, 2**63 - 1, -(2**63)]),
    "int of 32 bits": (Annotated[int, "integer"], "int", [2**31 - 1, -(2**31)]),
    "int of 16 bits": (Annotated[int, "short"], "smallint", [2**15 - 1, -(2**15)]),
    "int of 8 bits": (Annotated[int, "byte"], "tinyint", [127, -128]),
    "float": (float, "double", [0.1, 1.7976931348623157e308, 5e-324, math.inf, -math.inf, math.nan]),
    "float of 32 bits": (Annotated[float, "float"], "float", [1.5, -math.inf, math.nan]),
    "str": (str, "string", ["", "a\nb\0", "Zürich", "日本", "\N{TAXI}"]),
    "bool": (bool, "boolean", [True, False]),
    "bytes": (bytes, "binary", [b"", b"\x00\xff"]),
    "date": (date, "date", [date.min, date(1969, 12, 31), date.max]),
    "datetime": (datetime, "timestamp", [datetime(1900, 1, 1), datetime(2024, 1, 1, 1, 2, 3, 456789), datetime.max]),
    "datetime without zone": (Annotated[datetime, "timestamp_ntz"], "timestamp_ntz", [datetime.min, datetime.max]),
    "timedelta": (timedelta, "interval day to second", [timedelta(microseconds=-1), timedelta(days=10**8)]),
    "Decimal": (Decimal, "decimal(38,18)", [Decimal(0), Decimal("0.000000000000000001"), Decimal("-1E+9")]),
    "Decimal of money": (Annotated[Decimal, "decimal(10,2)"], "decimal(10,2)", [Decimal("-99999999.99")]),
    "a kind": (Point, "struct<x:bigint,label:string>", [Point(1, "a"), Point(2, None)]),
    "a kind in a kind": (
        Deep,
        "struct<at:struct<x:bigint,label:string>,day:date,when:timestamp,path:array<struct<x:bigint,label:string>>>",
        [deep],
    ),
    "array": (tuple[int, ...], "array<bigint>", [(), (1, 2)]),
    "array with nulls": (tuple[int | None, ...], "array<bigint>", [(None,), (1, None)]),
    "array of kinds": (tuple[Point, ...], "array<struct<x:bigint,label:string>>", [(), (Point(1, None),)]),
    "array of arrays": (tuple[tuple[date, ...], ...], "array<array<date>>", [(), ((), (date.min,))]),
    "map": (dict[str, int | None], "map<string,bigint>", [{}, {"": 1, "b": None}]),
    "map of dates": (dict[date, datetime], "map<date,timestamp>", [{date.min: datetime(2024, 1, 1)}]),
    "map of kinds": (dict[str, Point], "map<string,struct<x:bigint,label:string>>", [{"a": Point(1, None)}]),
    "map by kinds": (dict[Point, int], "map<struct<x:bigint,label:string>,bigint>", [{Point(1, "a"): 1}]),
}


def through_spark(events: list[Event], kind: Kind, mode: str = "append") -> list[Event]:
    return list(tight.run(as_it_is, Schedule.of(events), takes=kind, gives=kind, mode=mode).events)


def as_it_is(rows: DataFrame) -> DataFrame:
    return rows


def made_by(sql: str, gives: Kind | None = None) -> tuple[Event, ...]:
    """What comes of one row with these columns."""
    return tight.run(lambda rows: rows.selectExpr(sql), Schedule.of([N(1)]), takes=N, gives=gives).events


# -- types -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_has_its_type_in_spark(name: str) -> None:
    declared, spark_name, _ = FIELDS[name]

    struct = struct_of(Kind("K", must=declared, may=declared | None))

    assert [field.dataType.simpleString() for field in struct.fields] == [spark_name, spark_name]
    assert [field.nullable for field in struct.fields] == [False, True]


@pytest.mark.parametrize("name", FIELDS)
def test_a_type_in_spark_gives_the_field_again(name: str) -> None:
    struct = struct_of(Kind("K", must=FIELDS[name][0], may=FIELDS[name][0] | None))

    assert struct_of(kind_of("K", struct)) == struct


def test_a_flat_kind_comes_back_as_the_same_kind() -> None:
    flat = Kind("F", a=int, b=str | None, c=Annotated[int, "short"], d=tuple[float | None, ...], e=dict[str, bool])

    assert kind_of("F", struct_of(flat)) is flat


def test_a_column_keeps_whether_its_items_may_be_null() -> None:
    struct = struct_of(Kind("K", a=tuple[int | None, ...], b=tuple[int, ...], m=dict[str, int | None]))

    assert [struct["a"].dataType.containsNull, struct["b"].dataType.containsNull] == [True, False]
    assert struct["m"].dataType.valueContainsNull


def test_a_type_may_be_named_as_in_sql() -> None:
    """As the docstring of stream/event.py has it."""
    assert struct_of(Kind("K", v=Annotated[int, "smallint"])).simpleString() == "struct<v:smallint>"


def test_a_name_that_is_no_spark_type_is_refused() -> None:
    with pytest.raises(RowError, match="nonsense"):
        struct_of(Kind("K", v=Annotated[int, "nonsense"]))


def test_a_spark_type_that_is_not_of_the_python_type_is_refused() -> None:
    with pytest.raises(RowError, match="string"):
        struct_of(Kind("K", v=Annotated[int, "string"]))


def test_a_field_of_any_type_has_no_spark_type() -> None:
    with pytest.raises(RowError, match=r"K\.v.*object"):
        struct_of(Kind("K", v=object))


# -- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FIELDS)
def test_values_come_back_from_a_stream_as_they_went_in(name: str) -> None:
    declared, _, values = FIELDS[name]
    kind = Kind("K", v=declared | None)
    events = [kind(value) for value in [*values, None]]

    assert through_spark(events, kind) == events


def test_values_come_back_from_a_static_frame_as_they_went_in() -> None:
    columns = {f"column {place}": declared | None for place, (declared, _, _) in enumerate(FIELDS.values())}
    wide = Kind("Wide", **columns)
    events = [wide(*(None for _ in columns))]
    for place, (_, _, values) in enumerate(FIELDS.values()):
        events += [events[0].replace(**{f"column {place}": value}) for value in values]

    assert through_spark(events, wide, mode="batch") == events


@pytest.mark.parametrize("mode", ["append", "batch"])
def test_a_negative_zero_stays_negative(mode: str) -> None:
    kind = Kind("K", v=float, w=Annotated[float, "float"])

    [event] = through_spark([kind(-0.0, -0.0)], kind, mode)

    assert [math.copysign(1, event.v), math.copysign(1, event.w)] == [-1, -1]


def test_a_time_that_pyspark_cannot_carry_is_refused() -> None:
    kind = Kind("K", v=datetime)

    with pytest.raises(RowError, match="a time that exists"):
        through_spark([kind(datetime.min)], kind)


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        (Decimal, "12345678901234567890.123456789012345678"),
        (Decimal, "-99999999999999999999.999999999999999999"),
        (Annotated[Decimal, "decimal(38,0)"], "9" * 38),
        (Annotated[Decimal, "decimal(38,38)"], "0." + "9" * 38),
        (Annotated[Decimal, "decimal(2,2)"], "0"),
        (Annotated[Decimal, "decimal(2,2)"], "0.99"),
    ],
)
def test_the_largest_and_the_smallest_decimals_come_back(declared: Any, value: str) -> None:
    kind = Kind("K", v=declared)

    assert through_spark([kind(Decimal(value))], kind) == [kind(Decimal(value))]


def test_a_map_by_arrays_is_refused() -> None:
    """PySpark makes lists of arrays, and no list can be a key."""
    with pytest.raises(RowError, match=r"K\.v"):
        struct_of(Kind("K", v=dict[tuple[int, ...], int]))


def test_events_without_fields_are_rows_without_columns() -> None:
    tick = Kind("Tick")

    assert through_spark([tick(), tick()], tick) == [tick(), tick()]


UNFIT: dict[str, tuple[Any, Any]] = {
    "an int of 65 bits": (int, 2**63),
    "a negative int of 65 bits": (int, -(2**63) - 1),
    "an int of 33 bits": (Annotated[int, "integer"], 2**31),
    "an int of 17 bits": (Annotated[int, "short"], -(2**15) - 1),
    "an int of 9 bits": (Annotated[int, "byte"], 128),
    "a double beyond float": (Annotated[float, "float"], 1e300),
    "a decimal that is too large": (Decimal, Decimal("1E+20")),
    "a decimal that is too fine": (Decimal, Decimal("1E-19")),
    "a long decimal that is too fine": (Annotated[Decimal, "decimal(38,0)"], Decimal("9" * 30 + ".5")),
    "an amount of millicents": (Annotated[Decimal, "decimal(10,2)"], Decimal("0.001")),
    "a datetime with a zone": (datetime, datetime(2024, 1, 1, tzinfo=UTC)),
    "half a character": (str, "\ud800"),
    "an interval of centuries": (timedelta, timedelta.max),
    "inside an array": (tuple[Annotated[int, "byte"], ...], (1, 128)),
    "a key of a map": (dict[Annotated[int, "byte"], str], {128: "a"}),
    "a value of a map": (dict[str, int], {"a": 2**63}),
    "inside a kind": (Point, Point(2**63, None)),
}


@pytest.mark.parametrize("name", UNFIT)
def test_a_value_that_does_not_fit_is_refused_and_never_null(name: str) -> None:
    declared, value = UNFIT[name]
    kind = Kind("K", v=declared | None)

    with pytest.raises(RowError, match=r"^K\(v="):
        through_spark([kind(value)], kind)


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("in_berlin")
@pytest.mark.parametrize("mode", ["append", "batch"])
def test_times_come_back_in_another_time_zone(mode: str) -> None:
    kind = Kind("K", v=datetime, w=Annotated[datetime, "timestamp_ntz"])
    times = [datetime(1900, 1, 1), datetime(2024, 7, 1, 12, 0, 0, 1), datetime(2024, 10, 27, 3, 30)]
    events = [kind(moment, moment) for moment in times]

    assert through_spark(events, kind, mode) == events


@pytest.mark.usefixtures("in_berlin")
def test_a_time_that_the_clocks_leave_out_is_refused() -> None:
    """At 2 in the morning the clocks go to 3: Spark would make it half past three."""
    kind = Kind("K", v=datetime)

    with pytest.raises(RowError, match="2024"):
        through_spark([kind(datetime(2024, 3, 31, 2, 30))], kind)


@pytest.mark.usefixtures("in_berlin")
def test_a_time_that_the_clocks_show_twice_is_refused_going_in() -> None:
    """At 3 in the morning the clocks go back to 2: two rows an hour apart would be one event."""
    kind = Kind("K", v=datetime)

    with pytest.raises(RowError, match="exists once"):
        through_spark([kind(datetime(2024, 10, 27, 2, 30))], kind)


@pytest.mark.usefixtures("in_berlin")
def test_a_time_that_the_clocks_show_twice_is_refused_coming_out() -> None:
    def job(rows: DataFrame) -> DataFrame:
        return rows.selectExpr("timestamp_seconds(1729992600) AS v")

    with pytest.raises(RowError, match="shows twice"):
        tight.run(job, Schedule.of([Kind("N", n=int)(1)]), takes=Kind("N", n=int))


@pytest.mark.parametrize(("declared", "value"), [(date, date(1582, 10, 10)), (datetime, datetime(1582, 10, 10, 1))])
def test_a_day_that_the_old_calendar_skips_is_refused(declared: Any, value: Any) -> None:
    """The JVM would make the 15th of it."""
    kind = Kind("K", v=declared)

    with pytest.raises(RowError, match="a day that the JVM knows"):
        through_spark([kind(value)], kind)


def _fields(declared: Any, values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, st.SearchStrategy[Any]]]:
    return st.just((declared, values))


def _fitting_decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    digits = st.integers(-(10**precision) + 1, 10**precision - 1)
    return digits.map(lambda number: Decimal(f"{number}E-{scale}"))


def _maybe(inner: tuple[Any, st.SearchStrategy[Any]]) -> tuple[Any, st.SearchStrategy[Any]]:
    return inner[0] | None, st.none() | inner[1]


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
SCALARS = st.one_of(
    _fields(int, st.integers(-(2**63), 2**63 - 1)),
    _fields(Annotated[int, "short"], st.integers(-(2**15), 2**15 - 1)),
    _fields(float, st.floats()),
    _fields(Annotated[float, "float"], st.floats(width=32)),
    _fields(str, TEXT),
    _fields(bool, st.booleans()),
    _fields(bytes, st.binary(max_size=4)),
    _fields(date, st.dates()),
    _fields(datetime, st.datetimes(min_value=datetime(1900, 1, 1))),
    _fields(Annotated[datetime, "timestamp_ntz"], st.datetimes()),
    _fields(timedelta, st.timedeltas(timedelta(days=-(10**8)), timedelta(days=10**8))),
    _fields(Decimal, _fitting_decimals(38, 18)),
    _fields(Annotated[Decimal, "decimal(7,3)"], _fitting_decimals(7, 3)),
)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    arrays = inner.map(_maybe).map(lambda item: (tuple[item[0], ...], st.lists(item[1], max_size=3)))
    maps = inner.map(_maybe).map(lambda item: (dict[str, item[0]], st.dictionaries(TEXT, item[1], max_size=2)))
    kinds = st.lists(inner, min_size=1, max_size=3).map(_kind_and_events)
    return arrays | maps | kinds


def _kind_and_events(fields: list[tuple[Any, st.SearchStrategy[Any]]]) -> tuple[Kind, st.SearchStrategy[Event]]:
    columns = [_maybe(field) for field in fields]
    kind = Kind("K", **{f"f{place}": declared for place, (declared, _) in enumerate(columns)})
    return kind, st.tuples(*(values for _, values in columns)).map(lambda values: kind(*values))


KINDS = st.lists(st.recursive(SCALARS, _nested, max_leaves=4), min_size=3, max_size=8).map(_kind_and_events)


@given(kind_and_events=KINDS, data=st.data(), mode=st.sampled_from(["append", "batch"]))
@settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],  # every example is a run on Spark: no time to shrink
    suppress_health_check=list(HealthCheck),
)
def test_random_events_of_random_kinds_come_back(
    kind_and_events: tuple[Kind, st.SearchStrategy[Event]], data: st.DataObject, mode: str
) -> None:
    kind, events = kind_and_events
    some = data.draw(st.lists(events, min_size=10, max_size=10))

    assert through_spark(some, kind, mode) == some


# -- several kinds in one table --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["append", "batch"])
def test_events_of_several_kinds_come_back_from_one_frame(mode: str) -> None:
    end = Kind("End")
    events = [A(1, "a"), B(2, 0.5), end(), A(3, None)]

    run = tight.run(as_it_is, Schedule.of(events), takes=[A, B, end], gives=[end, A, B], mode=mode)

    assert list(run.events) == events


def test_a_table_of_several_kinds_has_a_column_for_the_kind_and_one_for_each_field() -> None:
    table = Table([A, B])

    assert table.struct.simpleString() == "struct<kind:string,x:bigint,y:string,z:double>"
    assert [field.nullable for field in table.struct.fields] == [False, True, True, True]
    assert table.to_row(B(1, 0.5)) == ("B", 1, None, 0.5)


def test_a_job_sees_the_kind_of_each_row() -> None:
    run = tight.run(
        lambda rows: rows.filter("kind = 'B'").select("z"), Schedule.of([A(1, "a"), B(2, 0.5)]), takes=[A, B]
    )

    assert [event.z for event in run.events] == [0.5]


def test_a_schema_names_the_kinds_of_a_table() -> None:
    run = tight.run(as_it_is, Schedule.of([B(2, 0.5), A(1, "a")]), takes=Bag(A, B), gives=Bag(A, B))

    assert run.events == (B(2, 0.5), A(1, "a"))


def test_a_column_of_two_kinds_has_one_type() -> None:
    with pytest.raises(RowError, match=r"C\.x: needed the same type .* bigint; came string"):
        Table([A, Kind("C", x=str)])


def test_two_kinds_of_a_table_have_different_names() -> None:
    with pytest.raises(RowError, match="different names"):
        Table([A, Kind("A", q=int)])


def test_an_event_of_no_kind_of_a_table_is_no_row_of_it() -> None:
    with pytest.raises(RowError, match=r"N\(n=1\)"):
        Table([A, B]).to_row(N(1))


def test_an_output_row_of_an_unknown_kind_is_refused() -> None:
    schedule = Schedule.of([A(1, "a"), B(2, 0.5)])

    with pytest.raises(RowError, match=r"one of A, B; came 'C'"):
        tight.run(
            lambda rows: rows.selectExpr("replace(kind, 'B', 'C') AS kind", "x", "y", "z"),
            schedule,
            takes=[A, B],
            gives=[A, B],
        )


def test_an_output_row_without_a_kind_is_refused() -> None:
    with pytest.raises(RowError, match="came None"):
        tight.run(
            lambda rows: rows.selectExpr("nullif(kind, 'A') AS kind", "x", "y", "z"),
            Schedule.of([A(1, "a")]),
            takes=[A, B],
            gives=[A, B],
        )


def test_an_output_row_with_values_of_another_kind_is_refused() -> None:
    with pytest.raises(RowError, match=r"null in the columns that A does not have; came z=1\.5"):
        tight.run(
            lambda rows: rows.selectExpr("kind", "x", "y", "1.5D AS z"),
            Schedule.of([A(1, "a")]),
            takes=[A, B],
            gives=[A, B],
        )


@pytest.mark.parametrize("given", ["A", 3, [], ["A"], [A, "B"], None])
def test_what_a_table_holds_is_said_with_kinds(given: Any) -> None:
    with pytest.raises(RowError, match="takes"):
        kinds_of(given, "takes")


# -- the columns of the output ---------------------------------------------------------------------------------------


def test_output_columns_may_be_in_another_order() -> None:
    run = tight.run(lambda rows: rows.select("y", "x"), Schedule.of([A(1, "a")]), takes=A, gives=A)

    assert run.events == (A(1, "a"),)


def test_output_columns_of_several_kinds_may_be_in_another_order() -> None:
    run = tight.run(
        lambda rows: rows.select("z", "y", "kind", "x"), Schedule.of([B(1, 0.5)]), takes=[A, B], gives=[A, B]
    )

    assert run.events == (B(1, 0.5),)


def test_widths_of_output_columns_do_not_matter() -> None:
    assert made_by("CAST(n AS SMALLINT) AS n", gives=N) == (N(1),)


def test_an_output_that_nobody_described_is_a_kind_named_after_the_job() -> None:
    def doubled(rows: DataFrame) -> DataFrame:
        return rows.selectExpr("2 * n AS twice", "CAST(null AS STRING) AS nothing")

    run = tight.run(doubled, Schedule.of([N(1)]), takes=N)

    assert run.events == (Kind("doubled", twice=int, nothing=str | None)(2, None),)


def test_an_output_column_may_have_a_name_that_python_cannot_have() -> None:
    [event] = made_by("n + 1")

    assert event.as_dict() == {"(n + 1)": 2}


REFUSED: dict[str, tuple[Callable[[DataFrame], DataFrame], str]] = {
    "missing": (lambda rows: rows.select("x"), "needed the columns x, y; came x"),
    "surplus": (lambda rows: rows.selectExpr("*", "1 AS z"), "needed the columns x, y; came x, y, z"),
    "named otherwise": (lambda rows: rows.selectExpr("x", "y AS Y"), "needed the columns x, y; came x, Y"),
    "twice": (lambda rows: rows.select("x", "y", "x"), "came x, y, x"),
    "of another type": (lambda rows: rows.selectExpr("CAST(x AS STRING) AS x", "y"), "'x': needed bigint; came string"),
    "null": (lambda rows: rows.selectExpr("CAST(null AS BIGINT) AS x", "y"), "came None"),
}


@pytest.mark.parametrize("how", REFUSED)
def test_output_columns_that_are_not_those_of_the_kind_are_refused(how: str) -> None:
    job, words = REFUSED[how]

    with pytest.raises(RowError, match=words):
        tight.run(job, Schedule.of([A(1, "a")]), takes=A, gives=A)


def test_columns_twice_are_refused_without_a_kind_as_well() -> None:
    with pytest.raises(RowError, match="n, n"):
        tight.run(lambda rows: rows.select("n", "n"), Schedule.of([N(1)]), takes=N)


def test_a_null_inside_an_output_value_is_refused_like_any_other() -> None:
    outer = Kind("Outer", s=Kind("Inner", a=int))

    with pytest.raises(RowError, match="None"):
        made_by("named_struct('a', CAST(null AS BIGINT)) AS s", gives=outer)


def test_an_output_column_called_kind_needs_another_name() -> None:
    with pytest.raises(RowError, match="withColumnRenamed"):
        made_by("n AS kind")


@pytest.mark.parametrize(
    ("sql", "type_name"),
    [
        ("parse_json('1') AS v", "variant"),
        ("INTERVAL '1' YEAR AS v", "interval year"),
        ("null AS v", "void"),
        ("array(parse_json('1')) AS v", "variant"),
        ("map(array(n), 1) AS v", "array<bigint> as the type of its keys"),
    ],
)
def test_a_column_that_is_no_python_value_is_refused(sql: str, type_name: str) -> None:
    with pytest.raises(RowError, match=f"came {type_name}"):
        made_by(sql)


def test_the_days_between_two_dates_are_a_timedelta() -> None:
    [event] = made_by("DATE'2024-01-03' - DATE'2024-01-01' AS days")

    assert event.days == timedelta(days=2)


def test_nested_columns_of_another_order_are_another_type() -> None:
    outer = Kind("Outer", s=Kind("Inner", a=int, b=int))

    with pytest.raises(RowError, match="'s'"):
        made_by("named_struct('b', n, 'a', n) AS s", gives=outer)


def test_order_of_takes_the_same_columns_only() -> None:
    columns = StructType([StructField("y", StringType()), StructField("x", LongType())])

    assert Table([A]).order_of(columns) == ["x", "y"]


# -- values that Arrow gives ------------------------------------------------------------------------------------------


@pytest.fixture(params=["UTC", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Abidjan"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with monkeypatch.context() as changed:
        changed.setenv("TZ", request.param)
        time.tzset()
        yield request.param
    time.tzset()


SOME_TIMES = [0, 1, -1, None, 1_700_000_000_123_456, -12_219_292_800_000_000, -62_135_500_000_000_000, 10**17]


@pytest.mark.parametrize("session_zone", ["UTC", "Asia/Tokyo"])
def test_times_of_arrow_are_those_of_the_local_clock(zone: str, session_zone: str) -> None:
    column = pa.array(SOME_TIMES, pa.timestamp("us", session_zone))

    times = arrow_values(column, TimestampType())

    assert times == [each and each.astimezone().replace(tzinfo=None) for each in column.to_pylist()]
    assert is_as_given(TimestampType()) == (zone == "UTC")


@pytest.mark.usefixtures("zone")
def test_times_of_arrow_without_a_zone_are_as_they_are() -> None:
    column = pa.array(SOME_TIMES, pa.timestamp("us"))

    assert arrow_values(column, TimestampNTZType()) == column.to_pylist()
    assert is_as_given(TimestampNTZType())


@pytest.mark.usefixtures("zone")
def test_a_time_beyond_the_calendar_is_refused() -> None:
    with pytest.raises((ValueError, OverflowError)):
        arrow_values(pa.array([10**18], pa.timestamp("us", "UTC")), TimestampType())
