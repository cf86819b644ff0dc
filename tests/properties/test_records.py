"""Tests of the rows of a letter."""

from __future__ import annotations

from typing import Any

import pytest

from streamtight.errors import FormulaError, PredicateError
from streamtight.program.letter import Letter
from streamtight.properties.records import all_records, asserts, count, detail, same_rows, some_record
from streamtight.stream.event import Kind

K = Kind("K", a=int, b=str)
Point = Kind("Point", x=int, y=int)
Placed = Kind("Placed", at=Point, k=int)
Path = Kind("Path", points=tuple[Point, ...])
Real = Kind("Real", x=float | None)
Text = Kind("Text", x=str)


def same(came: list[Any], expected: list[Any], **options: Any) -> bool | None:
    return same_rows("output", lambda letter: expected, **options).evaluate([Letter({}, {"output": tuple(came)})])


@pytest.mark.parametrize(
    ("came", "expected"),
    [
        ([K(1, "x")], [K(1, "x")]),
        ([K(1, "x")], [(1, "x")]),
        ([K(1, "x")], [{"a": 1, "b": "x"}]),
        ([K(1, "x")], [{"b": "x", "a": 1}]),
        ([K(1, "x"), K(2, "y")], [(2, "y"), (1, "x")]),
        ([Placed(Point(1, 2), 3)], [((1, 2), 3)]),
        ([Placed(Point(1, 2), 3)], [{"k": 3, "at": {"y": 2, "x": 1}}]),
        ([Path((Point(1, 2), Point(3, 4)))], [([(1, 2), {"y": 4, "x": 3}],)]),
        ([Real(float("nan"))], [(float("nan"),)]),
        ([Real(None)], [(None,)]),
        ([], []),
    ],
)
def test_rows_are_the_same_however_they_are_written(came: list[Any], expected: list[Any]):
    assert same(came, expected) is True


@pytest.mark.parametrize(
    ("came", "expected"),
    [
        ([K(1, "x")], [(1, "y")]),
        ([K(1, "x")], [{"a": 1}]),
        ([K(1, "x")], [{"a": 1, "b": "x", "c": 2}]),
        ([K(1, "x")], [(1, "x"), (1, "x")]),
        ([K(1, "x")], []),
        ([], [(1, "x")]),
        ([Placed(Point(1, 2), 3)], [((2, 1), 3)]),
        ([Real(None)], [(0.0,)]),
        ([Real(float("nan"))], [(None,)]),
        ([Text("NaN")], [(float("nan"),)]),
    ],
)
def test_rows_that_differ_are_not_the_same(came: list[Any], expected: list[Any]):
    assert same(came, expected) is False


def test_columns_may_be_left_out_of_both_sides():
    assert same([K(1, "x")], [(1, "other")], ignore="b") is True
    assert same([K(1, "x")], [(1,)], ignore=["b"]) is True
    assert same([K(1, "x")], [(2,)], ignore=["b"]) is False


def test_numbers_may_be_rounded():
    assert same([Real(0.1 + 0.2)], [(0.3,)], places=6) is True
    assert same([Real(0.1 + 0.2)], [(0.3,)]) is False
    with pytest.raises(FormulaError, match="whole number"):
        same_rows("output", lambda letter: [], places="2")  # type: ignore[arg-type]


def test_rows_are_shown_side_by_side():
    letter = Letter({}, {"output": (K(1, "x"), K(2, "y"))})
    formula = same_rows("output", lambda letter: [{"b": "x", "a": 1}, (2, "z"), (3, "w")])

    assert detail(formula, letter).splitlines() == [
        "  came         expected",
        "  a=1, b='x'   a=1, b='x'",
        "* a=2, b='y'   a=2, b='z'",
        "* -            a=3, b='w'",
    ]


def test_a_check_that_returns_false_was_not_written_with_assert():
    letter = Letter({}, {"output": ()})

    assert asserts(lambda letter: None).evaluate([letter]) is True
    with pytest.raises(PredicateError, match="returns True or False"):
        asserts(lambda letter: False).evaluate([letter])


def test_a_row_that_a_test_cannot_be_asked_about_is_left_out_of_what_is_told():
    letter = Letter({}, {"output": (Real(1.0), Real(None))})

    assert detail(~some_record("output", lambda row: row.x > 0), letter) == ""
    assert detail(some_record("output", lambda row: row.x > 0), letter) == "row.x > 0 is true of Real(x=1.0)"
    assert detail(all_records("output", lambda row: row.x > 1), letter) == "row.x > 1 is false of Real(x=1.0)"


def test_counts_are_compared_with_numbers_only():
    with pytest.raises(FormulaError, match="a number of rows"):
        _ = count("output") == True  # noqa: E712
