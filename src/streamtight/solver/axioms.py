"""What relations and values are, for every row and key, as far as that can be said without counting.

A row is in a distinct relation if it is made; a count is above 0 if there is something to count; a greatest value is
that of a row, and no row has a greater one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import z3

from streamtight.errors import UnsupportedError
from streamtight.program.relation import Extreme, Fold, Function
from streamtight.solver.ask import Answer, Budget, prove
from streamtight.solver.normal import is_duplicate_free
from streamtight.solver.summaries import Addition, Application, subterms
from streamtight.solver.symbolic.values import KNOWN_CHARACTERS, SymbolicStr, term_of
from streamtight.solver.terms import Atom, Bag, Group, Meaning, Term
from streamtight.solver.values import (
    YES,
    Maybe,
    Row,
    Truth,
    conjunction,
    constants,
    either,
    fitted,
    leaves,
    negation,
    normal,
    same,
    variable,
)


class Axioms:
    """Says what the predicates and functions in formulas mean."""

    def __init__(self, meaning: Meaning, budget: Budget, additions: Callable[[Group], list[Addition]]) -> None:
        self.meaning, self.budget = meaning, budget
        self._additions = additions

    def about(self, formulas: Sequence[Truth]) -> list[Truth]:
        """What these formulas speak of."""
        found: list[Truth] = []
        waiting, seen = list(formulas), set()
        while waiting:
            for term in subterms([waiting.pop()]):
                name = term.decl().name() if z3.is_app(term) else ""
                thing = self.meaning.members.get(name) or self.meaning.groups.get(name)
                if thing is not None and thing.name not in seen:
                    seen.add(thing.name)
                    made = list(self._of_atom(thing) if isinstance(thing, Atom) else self._of_group(thing))
                    found += made
                    waiting += made
        return found

    def _of_atom(self, atom: Atom) -> Iterator[Truth]:
        if atom.of is None:
            return
        row = variable(atom.type, "?row")
        if atom.is_distinct:
            for term in atom.inner.terms:
                yield _for_all(_bound(term), z3.Implies(_there(term), atom.contains(term.row)))
        made = either(
            *(_some(_bound(term), conjunction((_there(term), same(term.row, row)))) for term in atom.inner.terms)
        )
        yield _for_all(constants(row), z3.Implies(atom.is_row(row), made))

    def _of_group(self, group: Group) -> Iterator[Truth]:
        key = variable(group.key, "?key")
        here = Application(group, tuple(constants(key)))
        for addition in self._additions(group):
            if not self._is_never_negative(addition.terms):
                continue
            some = []
            for term in addition.terms:
                there = conjunction((_there(term), term_of(term.row[1]) > 0))
                own = Application(group, tuple(fitted(term.row[0], group.key)))
                yield _for_all(_bound(term), z3.Implies(there, addition.value(own) > 0))
                met = conjunction(a == b for a, b in zip(own.key, here.key, strict=True))
                some.append(_some(_bound(term), conjunction((there, met))))
            yield _for_all(here.key, addition.value(here) >= 0)
            yield _for_all(here.key, z3.Implies(conjunction((normal(key), addition.value(here) > 0)), either(*some)))
        for place, summary in enumerate(group.summaries):
            if isinstance(summary, Extreme) and not _has_maybe(here.values[place]):
                self.meaning.assumptions |= order_assumptions(here.values[place])
                yield from self._of_extreme(group, place, summary, here)
        keys = Bag(tuple(replace(term, row=term.row[0]) for term in group.keyed.terms))
        if is_duplicate_free(keys, self.meaning, self._quick):
            yield from self._of_single_rows(group)

    def _quick(self, claim: Truth, given: Sequence[Truth]) -> Answer:
        return prove(claim, given=given, seconds=min(0.5, self.budget.left))

    def _of_single_rows(self, group: Group) -> Iterator[Truth]:
        """What the values are if no two rows share a key."""
        for addition in self._additions(group):
            for term in addition.terms:
                if all(one.atom.name.startswith(f"{group.name}.things") for one in term.over):
                    continue
                own = Application(group, tuple(fitted(term.row[0], group.key)))
                yield _for_all(_bound(term), z3.Implies(_there(term), addition.value(own) == term_of(term.row[1])))
        for place, summary in enumerate(group.summaries):
            if isinstance(summary, Extreme) or (isinstance(summary, Fold) and summary.needs_row):
                for term in group.keyed.terms:
                    value = Application(group, tuple(fitted(term.row[0], group.key))).values[place]
                    for guard, result in self._valued(summary.value, term):
                        there = conjunction((_there(term), guard))
                        yield _for_all(_bound(term), z3.Implies(there, same(value, result)))

    def _valued(self, function: Function | None, term: Term) -> Iterator[tuple[Truth, Row]]:
        if function is None:
            yield YES, term.row[1]
            return
        for guard, result, raised in self.meaning.applied(function, (term.row[1],), term.guard):
            if raised is None:
                yield guard, result

    def _is_never_negative(self, terms: Sequence[Term]) -> bool:
        return all(
            z3.is_int(term_of(term.row[1]))
            and prove(term_of(term.row[1]) >= 0, given=[term.guard], seconds=min(0.5, self.budget.left)).proved
            for term in terms
        )

    def _of_extreme(self, group: Group, place: int, summary: Extreme, here: Application) -> Iterator[Truth]:
        attained = []
        for term in group.keyed.terms:
            own = Application(group, tuple(fitted(term.row[0], group.key)))
            met = conjunction(a == b for a, b in zip(own.key, here.key, strict=True))
            for guard, result, raised in self.meaning.applied(summary.value, (term.row[1],), term.guard):
                if raised is None:
                    value = own.values[place]
                    order = at_most(result, value) if summary.greatest else at_most(value, result)
                    there = conjunction((_there(term), guard))
                    yield _for_all(_bound(term), z3.Implies(there, order))
                    attained.append(_some(_bound(term), conjunction((there, met, same(result, here.values[place])))))
        yield _for_all(here.key, z3.Implies(here.count >= 1, either(*attained)))


def _bound(term: Term) -> list[Any]:
    return [constant for one in term.over for constant in constants(one.row)]


def _there(term: Term) -> Truth:
    """That the rows of a term are there, and its guard is true."""
    return conjunction((*(one.atom.is_row(one.row) for one in term.over), term.guard))


def _for_all(bound: Sequence[Any], formula: Truth) -> Truth:
    return z3.ForAll(list(bound), formula) if bound else formula


def _some(bound: Sequence[Any], formula: Truth) -> Truth:
    return z3.Exists(list(bound), formula) if bound else formula


def at_most(one: Row, other: Row) -> Truth:
    """Whether a row is not after another one, in Python's order."""
    if not isinstance(one, tuple):
        if isinstance(one, Maybe) or isinstance(other, Maybe) or one is None or other is None:
            raise UnsupportedError("an order", needed="values", came="some that may be None", hint="a filter before")
        mine, theirs = term_of(one), term_of(other)
        return z3.Implies(mine, theirs) if z3.is_bool(mine) else mine <= theirs
    if not one:
        return YES
    mine, theirs = one[0], other[0]
    return either(
        conjunction((at_most(mine, theirs), negation(same(mine, theirs)))),
        conjunction((same(mine, theirs), at_most(one[1:], other[1:]))),
    )


def order_assumptions(row: Row) -> set[str]:
    """What is assumed if rows like this are ordered."""
    return {KNOWN_CHARACTERS} if any(isinstance(leaf, SymbolicStr) for leaf in leaves(row)) else set()


def _has_maybe(row: Row) -> bool:
    return any(leaf is None or isinstance(leaf, Maybe) for leaf in leaves(row))
