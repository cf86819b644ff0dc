"""Which functions may merge the results of partitions."""

from __future__ import annotations

from typing import Any

import pytest

from streamtight.program.relation import Fold
from streamtight.solver.ask import Budget
from streamtight.solver.laws import any_value, is_associative, is_commutative, is_neutral, is_well_defined


def plus(a: Any, b: Any) -> Any:
    return a + b


@pytest.mark.parametrize(
    ("function", "type_", "associative", "commutative"),
    [
        (plus, int, True, True),
        (plus, str, True, False),
        (lambda a, b: a - b, int, False, False),
        (lambda a, b: max(a, b), int, True, True),
        (lambda a, b: a, int, True, False),
        (lambda a, b: (a[0] + b[0], max(a[1], b[1])), (int, int), True, True),
        (lambda a, b: a * b + 1, int, False, True),
        (lambda a, b: a and b, bool, True, True),
    ],
)
def test_a_function_is_associative_or_commutative_or_not(
    function: Any, type_: Any, associative: bool, commutative: bool
):
    one, other = is_associative(function, type_, budget=Budget(5)), is_commutative(function, type_, budget=Budget(5))

    assert one.proved is associative
    assert other.proved is commutative


def test_a_neutral_value_changes_nothing():
    assert is_neutral(0, plus, int, budget=Budget(5)).proved
    assert is_neutral(1, plus, int, budget=Budget(5)).refuted
    assert is_neutral("", plus, str, budget=Budget(5)).proved


@pytest.mark.parametrize(
    ("fold", "state", "expected"),
    [
        (Fold(0, plus, plus), int, True),
        (Fold(1, plus, plus), int, False),
        (Fold(0, lambda a, x: a + 1, plus), int, True),
        (Fold(0, lambda a, x: a + 1, lambda a, x: a + 1), int, False),  # counts partitions
        (Fold(0, lambda a, x: a - x, lambda a, x: a - x), int, False),
        (Fold(0, lambda a, x: 3 * a + x, plus), int, False),
        # Of all states these laws do not hold, but of those that can come about:
        (Fold(1000, min, min), int, True),
        (Fold(0, lambda a, x: (a + x) % 5, lambda a, b: (a + b) % 5), int, True),
        (Fold(0, lambda a, x: max(a, x), lambda a, b: max(a, b)), int, True),
        (Fold(0, lambda a, x: max(a, x), lambda a, b: a + b), int, False),
        (Fold((0, 0), lambda s, x: (s[0] + x, s[1] + 1), lambda s, t: (s[0] + t[0], s[1] + t[1])), (int, int), True),
        (Fold(None, plus, plus, needs_row=True), int, True),
        (Fold(None, lambda a, b: a - b, lambda a, b: a - b, needs_row=True), int, False),
    ],
)
def test_an_aggregate_is_independent_of_partitions_or_not(fold: Fold, state: Any, expected: bool):
    assert is_well_defined(fold, state, [any_value(int)], budget=Budget(5)).proved is expected
