"""Are two bag programs equal on every input? By comparing what they make of arbitrary rows.

Two sums of terms are equal if they are equal for every choice of rows: for each choice of variables, every output row
comes as often on one side as on the other. Where several variables range over the same atom, all orders of them are
counted together. (Grossman and others, "Verifying Equivalence of Spark Programs", Theorem 1, for programs without
aggregates; here with unions, flatMaps, self products and several terms.)
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import z3

from streamtight.errors import UnsupportedError
from streamtight.solver.ask import Answer
from streamtight.solver.terms import Atom, Bag, Term, Variable
from streamtight.solver.values import (
    Row,
    Truth,
    conjunction,
    constants,
    either,
    negation,
    renamed,
    same,
    values_in,
    variable,
)

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


Ask = Callable[[Truth, Sequence[Truth]], Answer]
"""Is a claim true wherever what is given is?"""


def same_bags(left: Bag, right: Bag, ask: Ask) -> Difference | None:
    """None if the bags are proved to be equal; else why they are not."""
    for over in choices(left.terms, right.terms):
        difference = _same_counts(over, left, right, ask)
        if difference is not None:
            return difference
    return None


def same_failures(left: Sequence[Term], right: Sequence[Term], ask: Ask) -> Difference | None:
    """None if it is proved that one fails whenever the other does."""
    one, other = (Bag(tuple(replace(term, row=()) for term in terms)) for terms in (left, right))
    found = same_sets(one, other, ask)
    return found if found is None else replace(found, reason="one of them raises where the other does not")


def choices(left: Sequence[Term], right: Sequence[Term], mark: str = "#") -> Iterator[tuple[Variable, ...]]:
    """The variables of all terms, one choice for each bag of atoms that some term ranges over.

    `mark` is in their names: it keeps them apart from variables that something is known of.
    """
    seen: dict[tuple[str, ...], tuple[Variable, ...]] = {}
    for term in (*left, *right):
        key = key_of(term)
        if key not in seen:
            counted = itertools.count()
            ordered = sorted(term.over, key=lambda one: one.atom.name)
            seen[key] = tuple(
                Variable(one.atom, variable(one.atom.type, f"{one.atom.name}{mark}{next(counted)}")) for one in ordered
            )
    yield from seen.values()


def key_of(term: Term) -> tuple[str, ...]:
    """What its variables range over, in a fixed order."""
    return tuple(sorted(one.atom.name for one in term.over))


def _same_counts(over: tuple[Variable, ...], left: Bag, right: Bag, ask: Ask) -> Difference | None:
    key = tuple(one.atom.name for one in over)
    mine = [made for term in left.terms if key_of(term) == key for made in instances(term, over)]
    others = [made for term in right.terms if key_of(term) == key for made in instances(term, over)]
    known = [*facts_of(over), *_no_failures(over, (*left.failures, *right.failures))]
    for guard, row in (*mine, *others):
        answer = ask(_count(mine, row) == _count(others, row), [*known, guard])
        if not answer.proved:
            return _difference(answer, over)
    return None


def facts_of(over: Sequence[Variable]) -> list[Truth]:
    """What is known of these rows: where they are, and that no two rows share what is unique."""
    known = [fact for one in over for fact in one.atom.facts(one.row)]
    for one, other in itertools.combinations(over, 2):
        if one.atom.name == other.atom.name and not one.atom.is_distinct:
            for mine, theirs in zip(one.atom.unique(one.row), one.atom.unique(other.row), strict=True):
                known.append(z3.Implies(same(mine, theirs), same(one.row, other.row)))
    return known


def _no_failures(over: Sequence[Variable], failures: Sequence[Term]) -> Iterator[Truth]:
    """That none of these fails on these rows: where one does, the other does, and nothing else matters."""
    for term in failures:
        for guard, _ in _assigned(term, over):
            yield negation(guard)


def _assigned(term: Term, over: Sequence[Variable]) -> Iterator[tuple[Truth, Row]]:
    """The guard and the row of a term, for each choice of its variables among these."""
    choices = [[one for one in over if one.atom.name == wanted.atom.name] for wanted in term.over]
    for chosen in itertools.product(*choices):
        renaming = [
            pair
            for mine, theirs in zip(term.over, chosen, strict=True)
            for pair in zip(constants(mine.row), constants(theirs.row), strict=True)
        ]
        if renaming:
            yield z3.substitute(term.guard, *renaming), renamed(term.row, renaming)
        else:
            yield term.guard, term.row


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
        if len(found) > MOST_ORDERS:
            raise UnsupportedError(
                "a product", needed="an input at most four times", came=f"{len(mine)} variables", hint="fewer joins"
            )
    return found


def same_sets(left: Bag, right: Bag, ask: Ask) -> Difference | None:
    """None if the bags are proved to have the same rows, however often."""
    return _within(left, right, ask) or _within(right, left, ask)


def _within(inner: Bag, outer: Bag, ask: Ask) -> Difference | None:
    """None if each row of the inner bag is proved to be in the outer one: some term makes it.

    From the same rows; or from some rows, of which the guard may say that they exist.
    """
    for term in inner.terms:
        known = [*facts_of(term.over), *_no_failures(term.over, (*inner.failures, *outer.failures)), term.guard]
        found = [
            conjunction((guard, same(row, term.row)))
            for other in outer.terms
            for guard, row in _assigned(other, term.over)
        ]
        answer = ask(either(*found), known)
        if not answer.proved:
            some = [_exists(other, term.row) for other in outer.terms]
            if not ask(either(*found, *some), known).proved:
                return _difference(answer, term.over)
    return None


def _exists(term: Term, row: Row) -> Truth:
    """Whether a term makes this row, from whatever rows. The row may be made of variables that the term has, too."""
    bound = [constant for one in term.over for constant in constants(one.row)]
    pairs = [(constant, z3.FreshConst(constant.sort(), "some")) for constant in bound]
    there = conjunction((*facts_of(term.over), term.guard))
    made = renamed(term.row, pairs) if pairs else term.row
    there = conjunction((z3.substitute(there, *pairs) if pairs else there, same(made, row)))
    return z3.Exists([fresh for _, fresh in pairs], there) if pairs else there
