"""Terms in simpler forms, which mean the same.

A variable over distinct rows that others determine is no choice: it says that there is such a row. What only speaks of
a distinct row can be asked before the rows are made distinct. If only the rows of a bag matter, and not how often they
come, a variable over distinct rows is as good as the variables that these are made of.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import z3

from streamtight.solver.bags import Ask, facts_of
from streamtight.solver.symbolic.values import SymbolicBool, SymbolicFloat, SymbolicInt, SymbolicStr
from streamtight.solver.terms import Atom, Bag, Meaning, Term, Variable
from streamtight.solver.values import (
    NO,
    Maybe,
    Row,
    Truth,
    conjunction,
    constants,
    constants_in,
    either,
    fitted,
    leaves,
    renamed,
    same,
    terms_in,
    type_of,
)

MOST_CANDIDATES = 12
"""So many values are tried for one that a variable is determined by."""


# -- variables that are no choice --------------------------------------------------------------------------------------


def without_determined(term: Term, meaning: Meaning, ask: Ask) -> Term:
    """The same term without variables that the guard ties to others."""
    for one in term.over:
        if not one.atom.unique(one.row) or not _is_used(one, [term.guard]):
            continue
        made = _merged(term, one, ask) or _as_condition(term, one, meaning, ask)
        if made is not None:
            return without_determined(made, meaning, ask)
    return term


def _merged(term: Term, one: Variable, ask: Ask) -> Term | None:
    """The term, where the variable is another one over the same atom, if they agree in what is unique."""
    for other in term.over:
        if other is one or other.atom.name != one.atom.name:
            continue
        keys = zip(one.atom.unique(one.row), one.atom.unique(other.row), strict=True)
        if any(ask(same(mine, theirs), [term.guard]).proved for mine, theirs in keys):
            pairs = list(zip(constants(one.row), constants(other.row), strict=True))
            return _without(term, one, z3.substitute(term.guard, *pairs), renamed(term.row, pairs))
    return None


def _as_condition(term: Term, one: Variable, meaning: Meaning, ask: Ask) -> Term | None:
    """The term, where the variable is a condition: that there is such a row. At most one row is."""
    for key in one.atom.unique(one.row):
        pairs = _determined(key, one, term, ask)
        if pairs is None:
            continue
        row = renamed(term.row, pairs) if pairs else term.row
        if _is_used(one, terms_in(row)):
            continue
        parts = conjuncts(term.guard)
        inside = [part for part in parts if _is_used(one, [part])]
        rest = [part for part in parts if not any(part is other for other in inside)]
        some = exists(one, conjunction(inside), meaning)
        return _without(term, one, conjunction((*rest, some)), row)
    return None


def _determined(key: Row, one: Variable, term: Term, ask: Ask) -> list[tuple[Any, Any]] | None:
    """The terms that the constants of a key are equal to, where the guard is true; None if it does not say."""
    pairs: list[tuple[Any, Any]] = []
    candidates = list(_candidates(one, term))
    for leaf in leaves(key):
        if not constants(leaf):
            continue
        fitting = [each for each in candidates if _kind(each) is _kind(leaf)][:MOST_CANDIDATES]
        found = next((each for each in (*fitting, None) if ask(same(leaf, each), [term.guard]).proved), _NOTHING)
        if found is _NOTHING:
            return None
        pairs += zip(constants(leaf), fitted(found, type_of(leaf)), strict=True)
    return pairs


_NOTHING = object()
_OF_SORT = {
    z3.Z3_INT_SORT: SymbolicInt,
    z3.Z3_BOOL_SORT: SymbolicBool,
    z3.Z3_REAL_SORT: SymbolicFloat,
    z3.Z3_SEQ_SORT: SymbolicStr,
}


def _kind(leaf: Any) -> type:
    return type(leaf.value) if isinstance(leaf, Maybe) else type(leaf)


def _candidates(one: Variable, term: Term) -> Iterator[Any]:
    """What a value of a variable may be equal to: values of other variables, and what the guard compares it with."""
    names = {constant.get_id() for constant in constants(one.row)}
    waiting, seen = [term.guard], set()
    while waiting:
        part = waiting.pop()
        if part.get_id() in seen or z3.is_quantifier(part):
            continue
        seen.add(part.get_id())
        waiting += part.children()
        if z3.is_eq(part):
            for mine, other in itertools.permutations(part.children()):
                if mine.get_id() in names and not _is_used(one, [other]) and other.sort().kind() in _OF_SORT:
                    yield _OF_SORT[other.sort().kind()](other)
    for other in term.over:
        if other is not one:
            yield from leaves(other.row)


def exists(one: Variable, condition: Truth, meaning: Meaning) -> Truth:
    """Whether there is a row for which the condition, which speaks of the variable, is true."""
    if not one.atom.is_distinct:
        bound = constants(one.row)
        there = conjunction((one.atom.is_row(one.row), condition))
        return z3.Exists(bound, there) if bound else there
    found = []
    for term in flat(Bag((Term((one,), condition, ()),)), meaning).terms:
        bound = [constant for each in term.over for constant in constants(each.row)]
        there = conjunction((*(each.atom.is_row(each.row) for each in term.over), term.guard))
        found.append(z3.Exists(bound, there) if bound else there)
    return either(*found)


# -- distinct rows -----------------------------------------------------------------------------------------------------


def flat(bag: Bag, meaning: Meaning) -> Bag:
    """A bag with the same rows, perhaps more often: a variable over distinct rows is those that these are made of."""
    done: list[Term] = []
    waiting = list(bag.terms)
    while waiting:
        term = waiting.pop(0)
        one = next((each for each in term.over if each.atom.is_distinct), None)
        if one is None:
            done.append(term)
        else:
            waiting += unfolded(term, one, meaning)
    return replace(bag, terms=tuple(done))


def unfolded(term: Term, one: Variable, meaning: Meaning) -> Iterator[Term]:
    """The terms of what a variable ranges over in its place."""
    others = tuple(each for each in term.over if each is not one)
    for inner in one.atom.inner.terms:
        made = apart(inner, meaning)
        pairs = list(zip(constants(one.row), fitted(made.row, one.atom.type), strict=True))
        guard = z3.substitute(term.guard, *pairs) if pairs else term.guard
        row = renamed(term.row, pairs) if pairs else term.row
        yield Term((*others, *made.over), conjunction((guard, made.guard)), row)


def apart(term: Term, meaning: Meaning) -> Term:
    """The same term, of variables that no other term has."""
    over = tuple(meaning.variable(one.atom) for one in term.over)
    pairs = [
        pair
        for mine, other in zip(term.over, over, strict=True)
        for pair in zip(constants(mine.row), constants(other.row), strict=True)
    ]
    return (
        Term(over, z3.substitute(term.guard, *pairs), renamed(term.row, pairs)) if pairs else replace(term, over=over)
    )


def is_duplicate_free(bag: Bag, meaning: Meaning, ask: Ask) -> bool:
    """Whether no row comes twice: a row tells from which rows it is made, and each of these is there once."""
    if not all(one.atom.unique(one.row) for term in bag.terms for one in term.over):
        return False
    for place, term in enumerate(bag.terms):
        for number, other in enumerate(bag.terms[: place + 1]):
            twin = apart(other, meaning)
            known = [*facts_of((*term.over, *twin.over)), term.guard, twin.guard, same(term.row, twin.row)]
            claim = NO if number != place else conjunction(map(_is_same_row, term.over, twin.over))
            if not ask(claim, known).proved:
                return False
    return True


def _is_same_row(one: Variable, other: Variable) -> Truth:
    return either(*map(same, one.atom.unique(one.row), one.atom.unique(other.row)))


class Narrowing:
    """Asks before rows are made distinct what only speaks of them."""

    def __init__(self, meaning: Meaning) -> None:
        self.meaning = meaning
        self._made: dict[tuple[str, str], Atom] = {}

    def term(self, term: Term) -> Term:
        """The term over narrower atoms. The guard stays: it is true of every row of these."""
        for one in term.over:
            asked = [part for part in conjuncts(term.guard) if _speaks_only_of(one, part)]
            if one.atom.is_distinct and asked and not one.atom.name.endswith("'"):
                term = self._over(term, one, self._narrow(one, conjunction(asked)))
        return term

    def _narrow(self, one: Variable, asked: Truth) -> Atom:
        plain = [(c, z3.Const(f"?{n}", c.sort())) for n, c in enumerate(constants(one.row))]
        name = (one.atom.name, z3.substitute(asked, *plain).sexpr())
        if name not in self._made:
            kept = []
            for inner in (apart(each, self.meaning) for each in one.atom.inner.terms):
                pairs = list(zip(constants(one.row), fitted(inner.row, one.atom.type), strict=True))
                kept.append(replace(inner, guard=conjunction((inner.guard, z3.substitute(asked, *pairs)))))
            made = self.meaning.atom(name, one.atom.name, one.atom.type, one.atom.relation, Bag(tuple(kept)))
            names = constants(one.row)

            def is_asked(row: Row) -> Truth:
                return z3.substitute(asked, *zip(names, constants(row), strict=True))

            self._made[name] = replace(made, name=f"{made.name}'", groups=one.atom.groups, asked=(is_asked,))
        return self._made[name]

    def _over(self, term: Term, one: Variable, atom: Atom) -> Term:
        over = tuple(Variable(atom, each.row) if each is one else each for each in term.over)
        return replace(term, over=over)


def with_atom(term: Term, old: Atom, new: Atom, meaning: Meaning) -> Term:
    """The term, where variables over an atom range over another one, that has the same rows."""
    groups = {group.name: group for group in (*new.groups, *old.groups)}
    new = replace(new, groups=tuple(groups.values()), asked=(*new.asked, *old.asked))
    for one in term.over:
        if one.atom.name == old.name:
            other = meaning.variable(new)
            pairs = list(zip(constants(one.row), constants(other.row), strict=True))
            over = tuple(other if each is one else each for each in term.over)
            term = Term(over, z3.substitute(term.guard, *pairs) if pairs else term.guard, renamed(term.row, pairs))
    return term


def with_asked(terms: Sequence[Term], atoms: Mapping[str, Atom]) -> list[Term]:
    """The terms, whose guards also say what is known to be true of the rows of these atoms."""
    made = []
    for term in terms:
        known = {part.get_id() for part in conjuncts(term.guard)}
        told = [ask(one.row) for one in term.over for ask in getattr(atoms.get(one.atom.name), "asked", ())]
        more = [part for ask in told for part in conjuncts(ask) if part.get_id() not in known]
        made.append(replace(term, guard=conjunction((term.guard, *more))) if more else term)
    return made


# -- small things ------------------------------------------------------------------------------------------------------


def conjuncts(guard: Truth) -> list[Truth]:
    """The parts that must all be true."""
    return [inner for part in guard.children() for inner in conjuncts(part)] if z3.is_and(guard) else [guard]


def _without(term: Term, one: Variable, guard: Truth, row: Row) -> Term:
    return Term(tuple(each for each in term.over if each is not one), guard, row)


def _is_used(one: Variable, terms: Sequence[Any]) -> bool:
    names = {constant.get_id() for constant in constants(one.row)}
    return any(constant.get_id() in names for constant in constants_in(terms))


def _speaks_only_of(one: Variable, part: Truth) -> bool:
    names = {constant.get_id() for constant in constants(one.row)}
    used = {constant.get_id() for constant in constants_in([part])}
    return bool(used) and used <= names
