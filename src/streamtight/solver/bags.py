"""Are two bag programs equal on every input? By comparing what they make of arbitrary rows.

Two sums of terms are equal if they are equal for every choice of rows: for each choice of variables, every output row
comes as often on one side as on the other. Where several variables range over the same atom, all orders of them are
counted together. (Grossman and others, "Verifying Equivalence of Spark Programs", Theorem 1, for programs without
aggregates; here with unions, flatMaps, self products and several terms.)
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import z3

from streamtight.solver.ask import Answer, Budget, prove
from streamtight.solver.terms import Atom, Bag, Term, Variable
from streamtight.solver.values import Row, Truth, conjunction, constants, either, renamed, same, values_in, variable

MOST_ORDERS = 24
"""So many orders of variables over one atom are counted together at most: four variables."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Why a proof failed: a model, and the rows of the inputs in it; or only a reason."""

    reason: str
    rows: tuple[tuple[Atom, Row], ...] = ()
    model: Any = None

    def values(self) -> list[tuple[str, Any]]:
        """The rows of inputs in the model, each with the name of its input."""
        if self.model is None:
            return []
        return [(atom.name, values_in(row, self.model)) for atom, row in self.rows if atom.of is None]


def same_bags(left: Bag, right: Bag, *, given: Sequence[Truth] = (), budget: Budget) -> Difference | None:
    """None if the bags are proved to be equal; else why they are not."""
    for one, other in ((left.failures, right.failures), (left.terms, right.terms)):
        for over in choices(one, other):
            difference = _same_counts(over, one, other, given, budget)
            if difference is not None:
                return difference
    return None


def choices(left: Sequence[Term], right: Sequence[Term]) -> Iterator[tuple[Variable, ...]]:
    """The variables of all terms, one choice for each bag of atoms that some term ranges over."""
    seen: dict[tuple[str, ...], tuple[Variable, ...]] = {}
    for term in (*left, *right):
        key = key_of(term)
        if key not in seen:
            counted = itertools.count()
            ordered = sorted(term.over, key=lambda one: one.atom.name)
            seen[key] = tuple(
                Variable(one.atom, variable(one.atom.type, f"{one.atom.name}#{next(counted)}")) for one in ordered
            )
    yield from seen.values()


def key_of(term: Term) -> tuple[str, ...]:
    """What its variables range over, in a fixed order."""
    return tuple(sorted(one.atom.name for one in term.over))


def _same_counts(
    over: tuple[Variable, ...], left: Sequence[Term], right: Sequence[Term], given: Sequence[Truth], budget: Budget
) -> Difference | None:
    key = tuple(one.atom.name for one in over)
    mine = [made for term in left if key_of(term) == key for made in instances(term, over)]
    others = [made for term in right if key_of(term) == key for made in instances(term, over)]
    facts = [*given, *(fact for one in over for fact in one.atom.facts(one.row))]
    for guard, row in (*mine, *others):
        claim = z3.Implies(guard, _count(mine, row) == _count(others, row))
        answer = prove(claim, given=facts, seconds=budget.left)
        if not answer.proved:
            return _difference(answer, over)
    return None


def _count(rows: Sequence[tuple[Truth, Row]], wanted: Row) -> Any:
    """How many of these are this row."""
    ones = [z3.If(conjunction((guard, same(row, wanted))), z3.IntVal(1), z3.IntVal(0)) for guard, row in rows]
    return z3.Sum(*ones) if ones else z3.IntVal(0)


def _difference(answer: Answer, over: tuple[Variable, ...]) -> Difference:
    if answer.refuted:
        return Difference("they differ on some rows", tuple((one.atom, one.row) for one in over), answer.model)
    return Difference(answer.reason or "the solver does not know")


def instances(term: Term, over: Sequence[Variable]) -> list[tuple[Truth, Row]]:
    """The guard and the row of a term, for each way in which its variables can be these."""
    made = []
    for order in orders(term.over, over):
        renaming = [
            pair
            for mine, theirs in zip(term.over, order, strict=True)
            for pair in zip(constants(mine.row), constants(theirs.row), strict=True)
        ]
        if renaming:
            made.append((z3.substitute(term.guard, *renaming), renamed(term.row, renaming)))
        else:
            made.append((term.guard, term.row))
    return made


def orders(mine: Sequence[Variable], theirs: Sequence[Variable]) -> list[tuple[Variable, ...]]:
    """The ways in which the first can stand for the second, each once, each over its own atom."""
    found: list[tuple[Variable, ...]] = [()]
    for one in mine:
        found = [
            (*chosen, other)
            for chosen in found
            for other in theirs
            if other.atom.name == one.atom.name and not any(other is before for before in chosen)
        ]
    return found


def same_sets(left: Bag, right: Bag, *, given: Sequence[Truth] = (), budget: Budget) -> Difference | None:
    """None if the bags are proved to have the same rows, however often."""
    return _within(left, right, given, budget) or _within(right, left, given, budget)


def _within(inner: Bag, outer: Bag, given: Sequence[Truth], budget: Budget) -> Difference | None:
    """None if each row of the inner bag is proved to be in the outer one: some term makes it from the same rows."""
    for term in inner.terms:
        found = []
        for other in outer.terms:
            choices = [[one for one in term.over if one.atom.name == wanted.atom.name] for wanted in other.over]
            for chosen in itertools.product(*choices):
                renaming = [
                    pair
                    for mine, theirs in zip(other.over, chosen, strict=True)
                    for pair in zip(constants(mine.row), constants(theirs.row), strict=True)
                ]
                guard = z3.substitute(other.guard, *renaming) if renaming else other.guard
                row = renamed(other.row, renaming) if renaming else other.row
                found.append(conjunction((guard, same(row, term.row))))
        facts = [*given, *(fact for one in term.over for fact in one.atom.facts(one.row))]
        answer = prove(z3.Implies(term.guard, either(*found)), given=facts, seconds=budget.left)
        if not answer.proved:
            return _difference(answer, term.over)
    return None
