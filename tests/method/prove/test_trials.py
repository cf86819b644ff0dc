"""The inputs on which programs are tried: always of their types, and such that common mistakes show."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamtight.errors import SourceError, UnsupportedError
from streamtight.method.prove.draw import is_row_of, smaller, some_rows, some_tables
from streamtight.method.prove.inputs import RDDInput, rdd, require_settings, table
from streamtight.method.prove.programs import Difference
from streamtight.method.prove.search import Question, search
from streamtight.method.prove.watchdog import Watchdog
from streamtight.program.expression import Field
from streamtight.verdict import Verdict

Program = Callable[..., Any]


def ask(left: Program, right: Program, *types: Any, seconds: float = 10.0, seed: int = 0) -> Verdict:
    inputs = tuple(each if isinstance(each, RDDInput) else rdd(each) for each in types)

    def believed(found: Difference) -> Difference:
        return found

    return search(Question("equal", left, right, inputs, believed, lambda _: "", seconds=seconds, seed=seed))


# -- types -----------------------------------------------------------------------------------------------------------

ENDS = [
    ("date", [date.min, date.max]),
    ("timestamp", [datetime.min, datetime.max, datetime(9999, 12, 31, 23, 59, 59)]),
    ("decimal(38,2)", [10**30, 10**40, Decimal("1e35"), float("inf"), 1e300]),
    ("decimal(38,38)", [1, 0.5]),
    ("byte", [128, -128, 127, 10**20]),
    ("long", [2**63 - 1, -(2**63), 1e300, float("nan")]),
    ("double", [10**400, float("-inf")]),
]


def is_of_spark(value: Any, type_: str) -> bool:
    """The same as is_row_of says, written once more: a value of this type that is not null."""
    low = {"byte": -128, "long": -(2**63)}
    if type_ in low:
        return type(value) is int and low[type_] <= value < -low[type_]
    if type_.startswith("decimal"):
        whole, scale = map(int, type_.removeprefix("decimal(").removesuffix(")").split(","))
        _, numbers, exponent = value.as_tuple()
        return exponent == -scale and len(numbers) <= whole
    return type(value) is {"date": date, "timestamp": datetime, "double": float}[type_]


@pytest.mark.parametrize(("type_", "near"), ENDS, ids=[type_ for type_, _ in ENDS])
def test_rows_near_the_ends_of_a_type_are_of_this_type(type_: str, near: list[Any]):
    rows = some_rows((Field("c", type_, False),), near, random.Random(7), most=500, least=500)

    assert len(rows) == 500
    assert all(is_of_spark(row[0], type_) for row in rows)


@given(st.integers(-(10**6), 10**6) | st.decimals(-(10**6), 10**6) | st.booleans() | st.none())
def test_a_value_is_of_a_type_or_not(value: Any):
    for type_ in ("byte", "decimal(4,2)"):
        expected = value is not None and type(value) is (int if type_ == "byte" else Decimal)
        if expected and type_ == "byte":
            expected = value in range(-128, 128)
        if expected and type_ == "decimal(4,2)":
            expected = Fraction(value) * 100 in range(-9999, 10000)
        of = table(c=type_)
        assert is_row_of((value,), of) is expected


def test_the_least_number_of_a_type_has_no_opposite():
    of = table(c="tinyint")
    tried = [tables[0] for tables in smaller((((-128,),),)) if tables[0]]

    assert (128,) in [row for rows in tried for row in rows]  # so it must be asked for
    assert not is_row_of((128,), of)
    assert is_row_of((-128,), of)


# -- what shows more -------------------------------------------------------------------------------------------------

MISTAKES: list[tuple[str, Program, Program, tuple[Any, ...]]] = [
    ("blanks around", lambda r: r.map(lambda s: s.strip()), lambda r: r, (str,)),
    ("small letters", lambda r: r.map(lambda s: s.lower()), lambda r: r, (str,)),
    (
        "other letters of a word",
        lambda r: r.filter(lambda s: s.lower() == "paid"),
        lambda r: r.filter(lambda s: s == "paid"),
        (str,),
    ),
    ("ten rows", lambda r: r.count() > 10, lambda r: r.count() >= 10, (int,)),
    ("halves", lambda r: r.map(lambda x: round(x)), lambda r: r.map(lambda x: int(x)), (float,)),
    ("one key, two values", lambda r: r.reduceByKey(max), lambda r: r.reduceByKey(min), ((str, int),)),
    (
        "one key, two values behind a bound",
        lambda r: r.reduceByKey(max).filter(lambda kv: kv[1] > 3),
        lambda r: r.filter(lambda kv: kv[1] > 3).reduceByKey(min),
        ((str, int),),
    ),
]


@pytest.mark.parametrize(
    ("left", "right", "types"), [each[1:] for each in MISTAKES], ids=[each[0] for each in MISTAKES]
)
def test_a_mistake_shows_on_small_inputs(left: Program, right: Program, types: tuple[Any, ...]):
    assert any(ask(left, right, *types, seed=seed).fails for seed in (0, 1))


@pytest.mark.parametrize(
    ("type_", "near", "wanted"),
    [
        ("timestamp", [datetime(2024, 1, 31, 23, 59, 59)], lambda t: t.microsecond and t.day == 31),
        ("timestamp", [], lambda t: t.microsecond),
        ("date", [1987], lambda d: d.year == 1987),
        ("decimal(6,2)", [Decimal("1.55")], lambda p: p == Decimal("1.55")),
        ("long", [4], lambda n: n > 8),
        ("string", ["Paid"], lambda s: s in ("PAID", "paid", " Paid ")),
    ],
    ids=["fraction of a named second", "fraction of a second", "year", "digits", "far", "letters"],
)
def test_values_that_show_more_are_among_a_hundred(type_: str, near: list[Any], wanted: Callable[[Any], bool]):
    rows = some_rows((Field("c", type_, False),), near, random.Random(2), most=100, least=100)

    assert any(wanted(row[0]) for row in rows)


def test_as_many_rows_as_are_asked_for():
    inputs = [rdd(int), table(k=int)]
    drawn = some_tables(inputs, [], random.Random(1), 11, lambda place, rows: True, least=11)

    assert [len(rows) for rows in drawn] == [11, 11]


# -- what was really run ---------------------------------------------------------------------------------------------


def test_only_inputs_on_which_both_were_run_are_counted():
    verdict = ask(lambda r: r.glom(), lambda r: r, int)

    assert verdict.scope.count == 0
    assert "could not be run" in (verdict.reason or "")


def test_no_proof_does_not_read_like_a_difference():
    verdict = ask(lambda r: r.distinct().count() <= r.count(), lambda r: r.count() >= 0, int)

    assert verdict.undecided
    assert (verdict.reason or "").startswith("no proof was found (")
    assert f"no difference on {verdict.scope.count} inputs" in (verdict.reason or "")


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda s: s.strip(), "the function uses .strip, whose result is not known for every text"),
        (lambda s: f"{s}", "the function makes text of a text that is not known with"),
    ],
    ids=["a method", "an f-string"],
)
def test_a_reason_has_a_subject_and_no_jargon(function: Any, reason: str):
    verdict = ask(lambda r: r.map(function), lambda r: r.map(lambda s: function(s) + ""), str)

    assert reason in (verdict.reason or "")
    assert "symbolic" not in (verdict.reason or "")


remembered: list[int] = []


def remembers(r: Any) -> Any:
    return r.map(lambda x: (remembered.append(x), x)[1])


def test_what_a_program_changes_is_told_once():
    verdict = ask(remembers, lambda r: r, int)

    assert (verdict.reason or "").startswith("remembers: the program changes remembered, which it has from outside")
    assert verdict.claim not in (verdict.reason or "")


# -- proofs about nothing --------------------------------------------------------------------------------------------


def test_equal_on_no_rows_is_not_decided():
    verdict = ask(lambda r: r, lambda r: r.map(lambda x: x + 1), rdd(int).where(lambda x: x > 0 and x < 0))

    assert verdict.undecided
    assert "no row was found that input 1 may have" in (verdict.reason or "")


def test_a_condition_that_rows_satisfy_is_proved():
    of = rdd(int).where(lambda x: x > 5000 and x % 97 == 5)

    assert ask(lambda r: r.map(lambda x: x + 1), lambda r: r.map(lambda x: 1 + x), of).holds


def test_programs_that_always_raise_are_not_called_equal():
    verdict = ask(lambda r: r.map(lambda x: x[5]), lambda r: r.map(lambda x: x[7]), (int, int))

    assert verdict.undecided
    assert "both raise on every input with rows" in (verdict.reason or "")


def test_programs_that_raise_on_some_rows_are_proved():
    assert ask(lambda r: r.map(lambda x: 1 // x), lambda r: r.map(lambda x: 1 // (0 + x)), int).holds


# -- wrong questions, and the clock ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", ["x", None, float("nan"), 0, -1, True], ids=str)
def test_seconds_are_a_number_above_0(seconds: Any):
    with pytest.raises(SourceError, match="a number above 0"):
        require_settings("prove", seconds, 0)


@pytest.mark.parametrize("seed", ["x", None, 0.5], ids=str)
def test_a_seed_is_a_whole_number(seed: Any):
    with pytest.raises(SourceError, match="a whole number"):
        require_settings("prove", 10, seed)


def test_what_catches_everything_is_stopped_as_well():
    def stubborn() -> None:
        for _ in range(3):
            try:
                while True:
                    pass
            except BaseException:  # noqa: S110
                pass
        while True:
            pass

    started = time.monotonic()
    with Watchdog() as watchdog, pytest.raises(UnsupportedError, match="no end within"), watchdog.within(0.1):
        stubborn()

    assert watchdog.has_stopped
    assert time.monotonic() - started < 10


def test_what_ends_in_time_is_not_stopped():
    with Watchdog() as watchdog:
        for _ in range(50):
            with watchdog.within(5):
                pass
        assert not watchdog.has_stopped
