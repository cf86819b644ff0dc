"""When two results are the same."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from streamtight.errors import UnsupportedError
from streamtight.method.prove.results import IN_ORDER, Result, is_close, result_of, run, same_rows

NAN = float("nan")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1, 2, 2], [2, 1, 2]),
        ([0.1 + 0.2], [0.3]),
        ([(1, 1e-12)], [(1, 0.0)]),
        ([NAN, 1.0], [1.0, float("nan")]),
        ([-0.0], [0.0]),
        ([1e300], [1e300 * (1 + 1e-12)]),
        ({"a": 0.3}, {"a": 0.1 + 0.2}),
        ((1, [2.0]), (1.0, [2])),
        ([None, 1], [1, None]),
        ([Decimal("1.50")], [Decimal("1.5")]),
    ],
)
def test_results_that_are_the_same(one: Any, other: Any):
    assert result_of(one).is_same(result_of(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1, 2], [1, 2, 2]),
        ([1, 1, 2], [1, 2, 2]),
        ([1.0], [1.0001]),
        ([NAN], [None]),
        ([NAN], [0.0]),
        ([math.inf], [-math.inf]),
        ([10**400], [1.0]),
        ({"a": 1}, [("a", 1)]),
        (1, [1]),
        (["1"], [1]),
        ([(1, 2)], [(1, 2, 3)]),
    ],
)
def test_results_that_differ(one: Any, other: Any):
    assert not result_of(one).is_same(result_of(other))


def test_to_raise_is_to_raise():
    assert Result.raised(ValueError("a")).is_same(Result.raised(KeyError("b")))
    assert not Result.raised(ValueError("a")).is_same(result_of([]))
    assert str(Result.raised(ValueError("a"))) == "raises ValueError"


def test_an_order_matters_only_between_results_that_have_one():
    up, down, bag = Result(IN_ORDER, (1, 2)), Result(IN_ORDER, (2, 1)), Result("rows", (1, 2))

    assert not up.is_same(down)
    assert down.is_same(bag)
    assert bag.is_same(down)


def test_close_rows_find_each_other_in_any_order():
    assert same_rows([1.0, 1.0 + 1e-10, 5.0], [5.0, 1.0 + 2e-10, 1.0])
    assert not is_close(1.0, "1")


@pytest.mark.parametrize("given", [None, object(), lambda: 1, iter([1])])
def test_what_cannot_be_compared_is_refused(given: Any):
    with pytest.raises(UnsupportedError, match="the result"):
        run(lambda: given)


def test_what_a_program_raises_is_its_result():
    assert str(run(lambda: 1 // 0)) == "raises ZeroDivisionError"
