"""Claims about folds, by invariants (sections 1.1 and 3.2 of the paper of SparkLite)."""

from __future__ import annotations

from typing import Any

import pytest

from streamtight.program.relation import Each, How, Input, Relation
from streamtight.solver.ask import Budget
from streamtight.solver.machines import always, machine
from streamtight.solver.symbolic.values import term_of
from streamtight.solver.terms import Meaning

R, PRICED = Input("r", int), Input("p", (int, int))
INFINITE = 10**9
DISCOUNTED = Each(PRICED, lambda product: (product[0], product[1] - 20), How.MAP)


def least(best: Any, product: Any) -> Any:
    return best if best < product[1] else product[1]


MINIMA = [(PRICED, INFINITE, least, int), (DISCOUNTED, INFINITE - 20, least, int)]


@pytest.mark.parametrize(
    ("folds", "claim", "holds"),
    [
        (MINIMA, lambda m, n: (m >= 100) == (n >= 80), True),  # Figure 2
        (MINIMA, lambda m, n: (m == 100) == (n == 80), True),  # Figure 3, which plain induction does not prove
        (MINIMA, lambda m, n: (m == 100) == (n == 81), False),
        (
            [(R, 0, lambda a, x: a + 1, int), (R, 0, lambda a, x: (a + 1) % 5, int)],
            lambda m, n: (m % 5 == 0) == (n == 0),
            True,
        ),
        (
            [(R, 0, lambda a, x: a + 1, int), (R, 0, lambda a, x: (a + 1) % 5, int)],
            lambda m, n: (m % 5 == 1) == (n == 0),
            False,
        ),
    ],
)
def test_a_claim_about_two_folds(folds: list[tuple[Relation, Any, Any, Any]], claim: Any, holds: bool):
    budget = Budget(20)
    meaning = Meaning(budget)
    made = [
        machine(meaning, f"a{place}", meaning.bag(of), start, add, type_)
        for place, (of, start, add, type_) in enumerate(folds)
    ]

    assert always(made, claim(*[term_of(each.state) for each in made]), budget=budget) is holds
