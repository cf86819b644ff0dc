"""The values of generated fields fit their types, in Python and in Spark."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated

import pytest

from streamtight.source.values import simplicity, values_of
from streamtight.spark.rows import _SPARK_NAMES, Table
from streamtight.stream.event import Kind, type_name

Inner = Kind("Inner", a=int | None, b=Annotated[float, "float"])

PLAIN = [int, float, str, bool, bytes, date, datetime, timedelta, Decimal, Inner]
ANNOTATED = [Annotated[python, name] for python, names in _SPARK_NAMES.items() for name in names] + [
    Annotated[int, "bigint"],
    Annotated[int, "int"],
    Annotated[int, "smallint"],
    Annotated[int, "tinyint"],
    Annotated[float, "real"],
    Annotated[Decimal, "decimal(10,2)"],
    Annotated[Decimal, "decimal(3,3)"],
    Annotated[Decimal, "decimal(38,0)"],
    Annotated[Decimal, "decimal(1,0)"],
    Annotated[str, "string collate UNICODE_CI"],
]
COMPOSED = [
    tuple[int, ...],
    tuple[float | None, ...],
    tuple[Inner, ...],
    tuple[tuple[str, ...], ...],
    dict[str, int],
    dict[int, float | None],
    dict[str, tuple[Inner, ...]],
    dict[float, str],
    dict[Annotated[int, "tinyint"], Annotated[Decimal, "decimal(4,1)"]],
    Kind("Outer", inner=Inner | None, many=tuple[Inner, ...], named=dict[str, Inner]),
    Kind("Empty"),
]
OPTIONAL = [
    int | None,
    str | None,
    Inner | None,
    tuple[int | None, ...] | None,
    Annotated[int, "smallint"] | None,
    Annotated[int | None, "smallint"],
]
ALL = PLAIN + ANNOTATED + COMPOSED + OPTIONAL


def everything(declared: object) -> list[object]:
    return values_of(declared).pool(extremes=True)


@pytest.mark.parametrize("declared", [*ALL, object], ids=type_name)
def test_a_kind_takes_its_values_as_they_are(declared):
    kind = Kind("K", field=declared)

    for value in everything(declared):
        stored = kind(value).field
        assert repr(stored) == repr(value)
        assert type(stored) is type(value)


@pytest.fixture(params=["UTC", "EST5EDT,M3.2.0,M11.1.0", "<+1245>-12:45", "CET-1CEST,M3.5.0,M10.5.0/3"])
def _in_any_time_zone(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = request.param
    time.tzset()
    yield
    os.environ.pop("TZ")
    if before is not None:
        os.environ["TZ"] = before
    time.tzset()


@pytest.mark.usefixtures("_in_any_time_zone")
@pytest.mark.parametrize("declared", ALL, ids=type_name)
def test_spark_takes_its_values(declared):
    kind = Kind("K", field=declared)
    table = Table([kind])

    for value in everything(declared):
        row = table.to_row(kind(value))
        assert row[0] is not None or value is None


@pytest.mark.parametrize("declared", [*ALL, object], ids=type_name)
def test_most_draws_are_common_values_and_every_value_is_drawn_sometimes(declared):
    values = values_of(declared)

    pool = values.pool(extremes=False)

    assert len(values.rare) <= len(pool) / 9
    assert all(any(value is one for one in pool) for value in values.common + values.rare)


@pytest.mark.parametrize("declared", OPTIONAL, ids=type_name)
def test_none_comes_where_it_is_admitted(declared):
    assert None in values_of(declared).common


@pytest.mark.parametrize("declared", PLAIN + ANNOTATED, ids=type_name)
def test_none_does_not_come_elsewhere(declared):
    assert None not in everything(declared)


def test_none_comes_inside_arrays_and_maps():
    assert (None,) in values_of(tuple[int | None, ...]).rare
    assert {"a": None} in values_of(dict[str, int | None]).rare


@pytest.mark.parametrize(
    ("name", "ends"), [("tinyint", (127, -128)), ("short", (32767, -32768)), ("long", (2**63 - 1, -(2**63)))]
)
def test_the_ends_of_an_integer_type_are_extremes(name, ends):
    values = values_of(Annotated[int, name])

    assert values.extreme == ends
    assert not set(ends) & set(values.pool(extremes=False))


def test_the_ends_of_a_decimal_keep_all_their_digits():
    assert str(values_of(Annotated[Decimal, "decimal(38,2)"]).extreme[0]) == "9" * 36 + ".99"


def test_common_floats_sum_up_exactly():
    common = values_of(float).common

    assert sum(common) == sum(reversed(common)) == math.fsum(common)


@pytest.mark.parametrize(
    ("declared", "odd"),
    [
        (str, lambda value: value == ""),
        (str, lambda value: not value.isascii()),
        (float, lambda value: value != value),
        (float, math.isinf),
        (float, lambda value: value == 0 and math.copysign(1, value) < 0),
        (int, lambda value: value >= 2**31),
        (bytes, lambda value: value == b""),
        (datetime, lambda value: value.microsecond > 0),
    ],
)
def test_what_jobs_forget_is_rare(declared, odd):
    values = values_of(declared)

    assert any(map(odd, values.rare))
    assert not any(map(odd, values.common))


@pytest.mark.parametrize(
    "rising",
    [
        [None, 0, 1, -1, 2, 10, 0.5, math.inf, -math.inf, math.nan],
        [0.0, -0.0, 1.0],
        [False, True],
        ["", "a", "b", "é", "ab"],
        [b"", b"a", b"aa"],
        [timedelta(0), timedelta(seconds=1), timedelta(seconds=-1), timedelta(days=1)],
        [
            datetime(2024, 1, 15, 12),
            datetime(2024, 1, 15, 15),
            datetime(2024, 1, 15, 12, 5),
            datetime(2024, 1, 15, 12, 0, 1),
        ],
        [date(2024, 1, 15), date(2024, 1, 16), date(2024, 1, 14), date(1970, 1, 1)],
        [(), (0,), (5,), (0, 0)],
        [Decimal(0), Decimal(3), Decimal("0.5")],
        [Inner(None, 0.0), Inner(0, 0.0), Inner(0, 1.0), Inner(1, 0.0)],
        [None, 5, "a", (1, "a")],
    ],
    ids=str,
)
def test_simpler_values_sort_first(rising):
    falling = rising[::-1]

    assert list(map(repr, sorted(falling, key=simplicity))) == list(map(repr, rising))


def test_values_of_unknown_classes_keep_their_order():
    class Colour:
        pass

    colours = [Colour() for _ in range(5)]

    assert sorted(colours, key=simplicity) == colours
