from __future__ import annotations

import pytest

from streamtight.errors import DependenceError, TraceError
from streamtight.method.compare.outputs import Consumer, difference
from streamtight.program.run import Cause, Run, Step
from streamtight.stream.dependence import ordered, same, unordered
from streamtight.stream.equality import equality
from streamtight.stream.event import Kind

Row = Kind("Row", key=str, x=float)
NAN = float("nan")


def one_partition(*rows):
    return ((rows,),)


@pytest.mark.parametrize(
    ("expected", "actual", "finding"),
    [
        ([Row("a", 1), Row("a", 2)], [Row("a", 2), Row("a", 1)], "ORDER_LOST"),
        ([Row("a", 1)], [], "MISSING_ROWS"),
        ([Row("a", 1)], [Row("a", 1), Row("a", 1)], "EXTRA_ROWS"),
        ([Row("a", 1)], [Row("a", 2)], "WRONG_ROWS"),
        ([Row("a", NAN)], [Row("a", NAN)], None),
        ([Row("a", 0.0)], [Row("a", -0.0)], None),
        ([], [], None),
    ],
)
def test_a_difference_has_a_name(expected, actual, finding):
    found = difference(one_partition(*expected), one_partition(*actual), upto=same("key"))

    assert (None if found is None else found.name) == finding


def test_what_the_equality_ignores_is_no_difference():
    found = difference(
        one_partition(Row("a", 1.001), Row("a", 2.0)),
        one_partition(Row("a", 1.0), Row("a", 2.002)),
        upto=ordered,
        equal=equality(places={"x": 1}),
    )

    assert found is None


def test_the_rows_are_shown_as_they_came_though_they_are_compared_otherwise():
    found = difference(
        one_partition(Row("a", 1.001)),
        one_partition(Row("b", 1.0)),
        upto=unordered,
        equal=equality(places={"x": 1}),
    )

    assert found.expected == (Row("a", 1.001),)
    assert found.actual == (Row("b", 1.0),)


@pytest.mark.parametrize("equal", [equality(only="key"), lambda a, b: a.key == b.key], ids=["fields", "function"])
def test_rows_that_count_as_equal_do_not_race(equal):
    apart = (((Row("a", 1),), (Row("a", 2),)),)

    assert difference(apart, apart, upto=same("key")).name == "RACE_IN_REFERENCE"
    assert difference(apart, apart, upto=same("key"), equal=equal) is None


def test_a_tolerance_is_no_equality():
    rows = one_partition(Row("a", 0.0), Row("a", 0.9), Row("a", 1.8))

    with pytest.raises(DependenceError, match="not transitive"):
        difference(rows, rows, upto=unordered, equal=lambda a, b: abs(a.x - b.x) < 1)


def test_an_update_needs_columns_that_are_there():
    run = Run((Step(0, Cause.DATA, ((),), ((Row("a", 1),),)),))

    with pytest.raises(TraceError, match="columns of the output: key, x"):
        Consumer("update", ("user",)).reads(run)


def test_a_batch_that_comes_again_is_read_once():
    first = Step(0, Cause.DATA, ((),), ((Row("a", 1),),))
    again = Step(0, Cause.REPLAY, ((),), ((Row("a", 2),),))

    assert Consumer("append").reads(Run((first, again))) == (((Row("a", 2),),),)


def test_rows_that_differ_in_the_last_digits_only_are_told_so():
    mean = Kind("Mean", key=str, mean=float)

    last_digits = difference((((mean("a", 0.1 + 0.2),),),), (((mean("a", 0.3),),),), upto=unordered)
    other_number = difference((((mean("a", 0.3),),),), (((mean("a", 0.4),),),), upto=unordered)
    other_key = difference((((mean("a", 0.1 + 0.2),),),), (((mean("b", 0.3),),),), upto=unordered)

    assert "equality(places=...) forgives" in last_digits.explanation
    assert "forgives" not in other_number.explanation
    assert "forgives" not in other_key.explanation
