"""What is proved about sums, and what is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import z3

from streamtight.program.relation import Each, How, Input, Product, Relation
from streamtight.solver.ask import Budget, prove
from streamtight.solver.sums import Sum, facts, valued
from streamtight.solver.terms import Meaning, Term

R, S = Input("r", int), Input("s", int)
POSITIVE = Each(R, lambda x: x > 0, How.FILTER)


def known(**totals: tuple[Relation, Any]) -> list[Any]:
    budget = Budget(10)
    meaning = Meaning(budget)

    def numbers(of: Relation, number: Any) -> tuple[Term, ...]:
        pairs = [replace(term, row=((), term.row)) for term in meaning.bag(of).terms]
        return tuple(replace(term, row=term.row[1]) for term in valued(meaning, pairs, number))

    sums = [Sum(z3.Int(name), numbers(*total)) for name, total in totals.items()]
    return [fact for found in facts(sums, budget=budget) for fact in found]


def follows(claim: Any, given: list[Any]) -> bool:
    return prove(claim, given=given, seconds=5).proved


a, b, c = z3.Ints("a b c")


@pytest.mark.parametrize(
    ("totals", "claim"),
    [
        ({"a": (R, lambda x: 2 * x), "b": (R, lambda x: x)}, a == 2 * b),
        ({"a": (R, lambda x: x), "b": (R, lambda x: 1), "c": (R, lambda x: 3 * x + 2)}, c == 3 * a + 2 * b),
        ({"a": (R, lambda x: 1)}, a >= 0),
        ({"a": (R, lambda x: 1), "b": (POSITIVE, lambda x: 1)}, b <= a),
        ({"a": (R, lambda x: 1), "b": (R, lambda x: x)}, z3.Implies(a == 0, b == 0)),
        ({"a": (Product(R, S), lambda p: p[0] * p[1]), "b": (Product(S, R), lambda p: p[0] * p[1])}, a == b),
        ({"a": (Product(R, R), lambda p: p[0] - p[1])}, a == 0),
        ({"a": (Product(R, R), lambda p: p[0]), "b": (Product(R, R), lambda p: p[1])}, a == b),
        ({"a": (R, lambda x: x), "b": (S, lambda x: x), "c": (Product(R, S), lambda p: p[0] * p[1])}, c == a * b),
        ({"a": (R, lambda x: x), "c": (Product(R, R), lambda p: p[0] * p[1])}, c == a * a),
    ],
)
def test_what_holds_of_every_row_holds_of_the_sums(totals: Any, claim: Any):
    assert follows(claim, known(**totals))


@pytest.mark.parametrize(
    ("totals", "claim"),
    [
        ({"a": (R, lambda x: x)}, a >= 0),
        ({"a": (R, lambda x: x * x), "b": (R, lambda x: x)}, a >= b + 1),
        ({"a": (R, lambda x: 1), "b": (S, lambda x: 1)}, a == b),
        ({"a": (R, lambda x: x), "b": (POSITIVE, lambda x: x)}, a == b),
        ({"a": (R, lambda x: x % 1000 // 999), "b": (R, lambda x: 0)}, a == b),
    ],
)
def test_what_does_not_hold_is_not_said(totals: Any, claim: Any):
    assert not follows(claim, known(**totals))
