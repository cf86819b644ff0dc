"""Which relations are proved to be equal, rule by rule; and which are not, since they differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from streamtight.program.relation import (
    Distinct,
    Each,
    Extreme,
    First,
    Fold,
    Grouped,
    How,
    Input,
    Matching,
    Product,
    Relation,
    Summary,
    Total,
    Union,
)
from streamtight.solver.ask import Budget
from streamtight.solver.equivalence import Equivalence

R, S = Input("r", (int, int)), Input("s", (int, int))
KEYED = Input("keyed", (int, int), keys=((0,),))
MAYBE = Input("maybe", (int | None, int | None))
COUNT, SUM = Total(lambda row: 1), Total(lambda row: row[1])
GREATEST = Extreme(lambda row: row[1], True)


def mapped(of: Relation, function: Callable[..., Any]) -> Relation:
    return Each(of, function, How.MAP)


def kept(of: Relation, function: Callable[..., Any]) -> Relation:
    return Each(of, function, How.FILTER)


def joined(left: Relation, right: Relation) -> Relation:
    return kept(Product(left, right), lambda pair: pair[0][0] == pair[1][0])


def grouped(of: Relation, *summaries: Summary, key: Callable[..., Any] = lambda row: row[0]) -> Relation:
    return Grouped(of, key, summaries)


def key(row: Any) -> Any:
    return row[0]


def same_key(one: Any, other: Any) -> Any:
    return one[0] == other[0]


def proof(left: Relation, right: Relation) -> str | None:
    equivalence = Equivalence(Budget(10))
    return equivalence.proof if equivalence.same_relations(left, right, []) is None else None


EQUAL: dict[str, tuple[Relation, Relation]] = {
    "a row that a distinct one determines": (
        mapped(joined(R, mapped(Distinct(mapped(S, key)), lambda k: (k, 0))), lambda pair: pair[0]),
        Matching(R, S, same_key, some=True),
    ),
    "a product of a keyed input with itself": (
        mapped(joined(KEYED, KEYED), lambda pair: (pair[0][0], pair[0][1], pair[1][1])),
        mapped(KEYED, lambda row: (row[0], row[1], row[1])),
    ),
    "a join to look something up that is not used": (
        Union(
            mapped(joined(R, KEYED), lambda pair: pair[0]),
            Matching(R, KEYED, same_key, some=False),
        ),
        R,
    ),
    "distinct rows of a keyed input": (Distinct(KEYED), KEYED),
    "groups of one row": (
        grouped(KEYED, COUNT, SUM, GREATEST),
        mapped(KEYED, lambda row: (row[0], 1, row[1], row[1])),
    ),
    "distinct below an injective map": (
        Distinct(mapped(R, lambda row: (row[0] + 1, row[1]))),
        mapped(Distinct(R), lambda row: (row[0] + 1, row[1])),
    ),
    "a condition before and after distinct": (
        kept(Distinct(R), lambda row: row[0] > 3),
        Distinct(kept(R, lambda row: row[0] > 3)),
    ),
    "keys of groups": (mapped(grouped(R, COUNT), key), Distinct(mapped(R, key))),
    "a condition on the key before and after a sum": (
        kept(grouped(R, SUM), lambda row: row[0] > 3),
        grouped(kept(R, lambda row: row[0] > 3), SUM),
    ),
    "groups whose greatest value is above a bound": (
        mapped(kept(grouped(R, GREATEST), lambda row: row[1] > 3), key),
        Distinct(mapped(kept(R, lambda row: row[1] > 3), key)),
    ),
    "groups that have a row": (kept(grouped(R, COUNT, SUM), lambda row: row[1] > 0), grouped(R, COUNT, SUM)),
    "a sum of sums": (
        grouped(grouped(R, SUM, key=lambda row: row), SUM, key=lambda row: row[0][0]),
        grouped(R, SUM),
    ),
    "a greatest of greatest": (
        grouped(
            mapped(grouped(R, GREATEST, key=lambda row: row), lambda row: (row[0][0], row[1])),
            GREATEST,
        ),
        grouped(R, GREATEST),
    ),
    "sums before a join": (
        mapped(grouped(joined(R, S), Total(lambda pair: pair[0][1]), key=lambda pair: pair[0][0]), lambda row: row),
        grouped(
            mapped(joined(grouped(R, SUM), S), lambda pair: (pair[0][0], pair[0][1])),
            SUM,
        ),
    ),
    "distinct values counted": (
        grouped(R, Total(lambda row: 1, once_for=lambda row: row[1])),
        grouped(Distinct(R), COUNT),
    ),
    "a reduction by max": (
        grouped(R, Fold(None, max, max, lambda row: row[1], needs_row=True)),
        grouped(R, GREATEST),
    ),
    "a fold that is a sum": (
        grouped(R, Fold(0, lambda a, v: a + 2 * v, lambda a, b: a + b, lambda row: row[1])),
        mapped(grouped(R, SUM), lambda row: (row[0], row[1] * 2)),
    ),
    "None is a key like others": (
        mapped(grouped(MAYBE, COUNT), key),
        Distinct(mapped(MAYBE, key)),
    ),
    "the first rows of equal rows": (
        First(kept(R, lambda row: row[0] > 0), 2, lambda row: row),
        First(kept(R, lambda row: row[0] >= 1), 2, lambda row: (row[0], row[1])),
    ),
}

DIFFERENT: dict[str, tuple[Relation, Relation]] = {
    "a product of an input with itself": (mapped(joined(R, R), lambda pair: pair[0]), R),
    "a join that multiplies rows": (mapped(joined(R, S), lambda pair: pair[0]), Matching(R, S, same_key, some=True)),
    "distinct rows of an input": (Distinct(R), R),
    "groups of several rows": (grouped(R, COUNT), mapped(R, lambda row: (row[0], 1))),
    "groups by something else than the key": (
        grouped(KEYED, COUNT, key=lambda row: row[1]),
        mapped(KEYED, lambda row: (row[1], 1)),
    ),
    "distinct below a map that is not injective": (
        Distinct(mapped(R, lambda row: (0, row[1]))),
        mapped(Distinct(R), lambda row: (0, row[1])),
    ),
    "a condition on the value before and after a sum": (
        kept(grouped(R, SUM), lambda row: row[1] > 3),
        grouped(kept(R, lambda row: row[1] > 3), SUM),
    ),
    "a count of counts": (
        grouped(grouped(R, COUNT, key=lambda row: row), COUNT, key=lambda row: row[0][0]),
        grouped(R, COUNT),
    ),
    "a sum of sums that forgets rows": (
        grouped(grouped(Distinct(R), SUM, key=lambda row: row), SUM, key=lambda row: row[0][0]),
        grouped(R, SUM),
    ),
    "sums before a join that multiplies": (
        grouped(joined(R, S), Total(lambda pair: pair[0][1]), key=lambda pair: pair[0][0]),
        mapped(joined(grouped(R, SUM), grouped(S, COUNT)), lambda pair: (pair[0][0], pair[0][1])),
    ),
    "a sum over everything is not one for each key": (grouped(R, SUM, key=lambda row: 0), grouped(R, SUM)),
    "the first rows by a key that leaves a choice": (First(R, 1, key), First(R, 1, lambda row: row[0])),
    "different numbers of first rows": (First(R, 1, lambda row: row), First(R, 2, lambda row: row)),
    "None as 0": (
        mapped(grouped(MAYBE, COUNT), key),
        mapped(grouped(mapped(MAYBE, lambda row: (row[0] or 0, row[1])), COUNT), key),
    ),
}


@pytest.mark.parametrize("name", EQUAL)
def test_equal(name: str):
    assert proof(*EQUAL[name]) is not None


@pytest.mark.parametrize("name", DIFFERENT)
def test_not_equal(name: str):
    assert proof(*DIFFERENT[name]) is None


def test_a_proof_says_how():
    assert proof(kept(R, key), kept(R, lambda row: row[0] != 0)) == "NoAgg: rows compared one by one"
    assert proof(grouped(R, COUNT), grouped(R, Total(lambda row: 1))) == (
        "rows compared one by one; what comes once at most compared as sets; groups compared for an arbitrary key"
    )


def test_a_function_that_raises_on_one_side_only_is_a_difference():
    divided = mapped(R, lambda row: (row[0], 10 // row[1]))
    guarded = mapped(R, lambda row: (row[0], 10 // row[1] if row[1] else 0))
    found = Equivalence(Budget(5)).same_relations(divided, guarded, [])
    assert found is not None
    assert found.reason == "one of them raises where the other does not"
    assert proof(divided, mapped(R, lambda row: (row[0], 20 // 2 // row[1]))) is not None
