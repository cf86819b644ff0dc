"""What is known of the values that rows are summed up to: sums, folds, least and greatest values, for given keys.

Values are terms, `total(key)`, and what is found are formulas about them. Sums of sums are sums over the rows of all
groups, and the greatest of the greatest is that of all rows; so nested groups are taken apart first.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import z3

from streamtight.errors import UnsupportedError
from streamtight.program.relation import Extreme, Fold, Function, Summary, Total
from streamtight.solver import machines, sums
from streamtight.solver.ask import Budget, prove
from streamtight.solver.normal import apart, conjuncts
from streamtight.solver.symbolic.values import SymbolicInt, term_of
from streamtight.solver.terms import Bag, Group, Meaning, Term, Variable
from streamtight.solver.values import (
    YES,
    Row,
    Truth,
    conjunction,
    constants,
    either,
    fitted,
    leaves,
    negation,
    same,
    terms_in,
    type_of,
    variable,
)

MOST_NESTED = 4
"""So deep groups of groups are taken apart."""
MOST_PARTS = 6
"""A number that depends on conditions is taken apart into so many at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Application:
    """A group at a key: the terms that its functions are applied to."""

    group: Group
    key: tuple[Any, ...]

    @property
    def values(self) -> tuple[Row, ...]:
        """What its rows are summed up to."""
        return self.group.at(self.key)

    @property
    def count(self) -> Any:
        """How many rows it has."""
        return self.group.count_at(self.key)

    @property
    def bag(self) -> Bag:
        """Its rows."""
        return Bag(tuple(map(self.here, self.group.keyed.terms)))

    def here(self, term: Term) -> Term:
        """A term whose rows are pairs, for this key as the first: only the second is left."""
        mine = fitted(term.row[0], self.group.key)
        met = conjunction(part == other for part, other in zip(mine, self.key, strict=True))
        return Term(term.over, conjunction((term.guard, met)), term.row[1])


def applications(terms: Sequence[Any], groups: dict[str, Group]) -> list[Application]:
    """The groups of which these terms speak, each with its key; not those inside of quantifiers."""
    found: dict[tuple[int, ...], Application] = {}
    waiting, seen = list(terms), set()
    while waiting:
        term = waiting.pop()
        if term.get_id() in seen or z3.is_quantifier(term):
            continue
        seen.add(term.get_id())
        waiting += term.children()
        group = groups.get(term.decl().name()) if z3.is_app(term) else None
        if group is not None:
            key = tuple(term.children())
            found.setdefault((id(group), *(part.get_id() for part in key)), Application(group, key))
    return list(found.values())


class Summaries:
    """Finds what is known of values. `common` makes atoms that have the same rows one, in several lists of terms."""

    def __init__(
        self,
        meaning: Meaning,
        budget: Budget,
        simple: Callable[[Term], Term],
        common: Callable[[Sequence[Sequence[Term]]], list[list[Term]]],
    ) -> None:
        self.meaning, self.budget = meaning, budget
        self._simple, self._common = simple, common
        self._known: dict[str, tuple[Group, list[Addition]]] = {}

    def facts(self, of: Sequence[Application], given: Sequence[Truth]) -> Iterator[list[Truth]]:
        """What is proved of the values of these groups, where what is given is true; the cheapest first."""
        yield from self._sums(of, given)
        for one, other in itertools.combinations(self._folds(of), 2):
            yield self._same_folds(one, other)

    # -- sums --------------------------------------------------------------------------------------------------------

    def _sums(self, of: Sequence[Application], given: Sequence[Truth]) -> Iterator[list[Truth]]:
        values, terms = [], []
        for one in of:
            for addition in self.additions(one.group):
                values.append(addition.value(one))
                numbers = [one.here(term) for term in addition.terms]
                flat = [made for term in numbers for made in self._flat(term, MOST_NESTED)]
                terms.append([self._simple(part) for term in flat for part in _parts(term)])
        shared = self._common(terms)
        known = [sums.Sum(value, tuple(numbers)) for value, numbers in zip(values, shared, strict=True)]
        yield from sums.facts(known, given=given, budget=self.budget)

    def additions(self, group: Group) -> list[Addition]:
        """The sums that the values of a group are made of, and how many rows it has."""
        if group.name not in self._known:
            terms = group.keyed.terms
            ones = tuple(replace(term, row=(term.row[0], sums.as_number(z3.IntVal(1)))) for term in terms)
            found = [Addition(None, (), ones)]
            for place, (summary, type_) in enumerate(zip(group.summaries, group.types, strict=True)):
                match summary:
                    case Total(number, None):
                        found.append(Addition(place, (), sums.valued(self.meaning, terms, number)))
                    case Total():
                        found.append(Addition(place, (), self._once(group, summary)))
                    case Fold() if self._is_additive(summary, type_):
                        for part in _places(type_):
                            numbers = sums.valued(self.meaning, terms, _added_by(summary, part))
                            found.append(Addition(place, part, numbers))
            self._known[group.name] = (group, found)
        kept, found = self._known[group.name]
        if kept is not group:  # another path of a program has used the name
            del self._known[group.name]
            return self.additions(group)
        return found

    def _is_additive(self, fold: Fold, type_: Any) -> bool:
        """Whether to add a row is to add numbers of this row to numbers that start with zero."""
        if not all(part in (int, float) for part in leaves(type_)):
            return False
        if not fold.needs_row and any(_at(fold.start, place) != 0 for place in _places(type_)):
            return False
        a, b = variable(type_, "a"), variable(type_, "b")
        results = list(self.meaning.applied(fold.merge, (a, b), YES))
        if len(results) != 1 or results[0][2] is not None:
            return False
        merged = results[0][1]
        claim = conjunction(
            term_of(_at(merged, place)) == term_of(_at(a, place)) + term_of(_at(b, place)) for place in _places(type_)
        )
        return prove(claim, seconds=self.budget.left).proved

    def _once(self, group: Group, total: Total) -> tuple[Term, ...]:
        """The numbers of a count to which rows that agree in something add once: a distinct such thing adds one."""
        counted = []
        for term in group.keyed.terms:
            row = term.row[1]
            for guard, thing, raised in self.meaning.applied(total.once_for, (row,), term.guard):  # type: ignore[arg-type]
                here = conjunction((term.guard, guard))
                numbers = () if raised is not None else self.meaning.applied(total.number, (row,), here)
                for when, result, _ in numbers:
                    for met, number in _branches(z3.simplify(term_of(result))):
                        if not z3.is_int_value(number) or number.as_long() not in (0, 1):
                            raise UnsupportedError(
                                f"{total.name} of distinct values", needed="a count", came=str(number), hint="count"
                            )
                        if number.as_long():
                            counted.append(Term(term.over, conjunction((here, when, met)), (term.row[0], thing)))
        if not counted:
            return ()
        inner = Bag(tuple(counted))
        atom = self.meaning.atom((group, total), f"{group.name}.things", inner.type, _NO_RELATION, inner)
        thing = self.meaning.variable(atom)
        return (Term((thing,), YES, (thing.row[0], sums.as_number(z3.IntVal(1)))),)

    # -- groups of groups --------------------------------------------------------------------------------------------

    def _flat(self, term: Term, depth: int) -> list[Term]:
        """The same sum, where a sum over groups of their sums is one over the rows of the groups."""
        for one in term.over:
            for group in one.atom.groups if depth else ():
                made = self._taken_apart(term, one, group)
                if made is not None:
                    return [each for part in made for each in self._flat(part, depth - 1)]
        return [term]

    def _taken_apart(self, term: Term, one: Variable, group: Group) -> list[Term] | None:
        """A sum over keys as one over rows, if what is added is linear in sums of the rows of each key."""
        here = Application(group, tuple(constants(one.row)))
        number = term_of(term.row)
        names = {part.get_id() for part in subterms([number, term.guard])}
        used = [each for each in self.additions(group) if each.value(here).get_id() in names]
        if not used:
            return None
        values = {each.value(here).get_id() for each in used}
        inside = [part for part in conjuncts(term.guard) if any(t.get_id() in values for t in subterms([part]))]
        rest = conjunction(part for part in conjuncts(term.guard) if not any(part is other for other in inside))
        free = [(each.value(here), z3.Const(f"?sum{n}", each.value(here).sort())) for n, each in enumerate(used)]
        facts = [fact for found in self._sums([here], []) for fact in found]
        known = [z3.substitute(fact, *free) for fact in (*facts, here.count >= 1)]
        varied = z3.substitute(z3.If(conjunction(inside), number, 0) if inside else number, *free)
        base = [(name, _number(1, name)) for _, name in free]  # of no rows it may be something else
        start = z3.substitute(varied, *base)
        factors = []
        for place, (_, name) in enumerate(free):
            more = [*base[:place], (name, _number(2, name)), *base[place + 1 :]]
            factors.append(z3.simplify(z3.substitute(varied, *more) - start))
        constant = z3.simplify(start - z3.Sum(*factors))
        linear = z3.Sum(constant, *(factor * name for factor, (_, name) in zip(factors, free, strict=True)))
        if not prove(z3.Implies(rest, varied == linear), given=known, seconds=min(1.0, self.budget.left)).proved:
            return None
        made = [] if _is_zero(constant) else [replace(term, guard=rest, row=sums.as_number(constant))]
        others = tuple(each for each in term.over if each is not one)
        for factor, addition in zip(factors, used, strict=True):
            for inner in () if _is_zero(factor) else addition.terms:
                row = apart(inner, self.meaning)
                pairs = list(zip(constants(one.row), fitted(row.row[0], group.key), strict=True))
                guard = conjunction((z3.substitute(rest, *pairs) if pairs else rest, row.guard))
                times = z3.substitute(factor, *pairs) if pairs else factor
                product = sums.as_number(z3.simplify(times * term_of(row.row[1])))
                made.append(Term((*others, *row.over), guard, product))
        return made

    # -- folds, least and greatest values ----------------------------------------------------------------------------

    def _folds(self, of: Sequence[Application]) -> list[_Value]:
        """The values that are no sums."""
        return [
            _Value(one, summary, value)
            for one in of
            for summary, value in zip(one.group.summaries, one.values, strict=True)
            if isinstance(summary, Extreme | Fold) and constants(value)
        ]

    def always(self, of: Sequence[Application], claim: Truth, given: Sequence[Truth]) -> bool | None:
        """Whether a claim about values holds whatever the rows are; None if that is not known."""
        made: list[machines.Machine] = []
        pairs: list[tuple[Any, Any]] = []
        spoken_of = {term.get_id() for term in subterms([claim, *given])}
        for one in of:
            values = [
                _Value(one, summary, value) for summary, value in zip(one.group.summaries, one.values, strict=True)
            ]
            for each in (*values, _Value(one, _COUNT, SymbolicInt(one.count))):
                if any(term.get_id() in spoken_of for term in terms_in(each.value)):
                    made.append(self.machine(each, f"?state{len(made)}"))
                    state = made[-1].state[1] if each.needs_row else made[-1].state
                    pairs += zip(terms_in(each.value), terms_in(state), strict=True)
        known = [z3.substitute(fact, *pairs) if pairs else fact for fact in given]
        kept = [fact for fact in known if not machines.has_predicate(fact)]
        told = z3.Implies(conjunction(kept), z3.substitute(claim, *pairs) if pairs else claim)
        shared, holds = self._with_common_atoms(made), None
        for order in (shared, shared[::-1]):  # the Horn solver may find an invariant for one order and not for another
            holds = machines.always(order, told, budget=self.budget.part(1.5)) if holds is None else holds
        return holds

    def machine_of(self, one: Application, name: str) -> machines.Machine:
        """The machine of a group with one value."""
        return self.machine(_Value(one, one.group.summaries[0], one.values[0]), name)

    def machine(self, one: _Value, name: str) -> machines.Machine:
        """The machine of a value, whose state has names of its own."""
        summary, bag = one.summary, one.of.bag
        type_ = type_of(one.value)
        match summary:
            case Extreme(value, greatest):
                if nested := self._flat_extreme(bag, summary):
                    return self._of_rows(name, nested, _greater if greatest else _smaller, type_, None)
                return self._of_rows(name, bag, _greater if greatest else _smaller, type_, value)
            case Fold(needs_row=True):
                return self._of_rows(name, bag, summary.add, type_, summary.value)
            case Fold():
                start = summary.start
                return machines.machine(self.meaning, name, bag, start, summary.add, type_, summary.value)
            case Total(number, None):
                return machines.machine(self.meaning, name, bag, 0, _plus, type_, number)
        raise UnsupportedError("a fold", needed="a sum, a fold, a least or greatest value", came=summary.name, hint="")

    def _of_rows(self, name: str, bag: Bag, add: Callable[..., Any], type_: Any, value: Any) -> machines.Machine:
        """A machine whose first state is its first value: before that it only knows that there was none."""
        start = (False, _some_value(type_))
        return machines.machine(self.meaning, name, bag, start, _first_or(add), (bool, type_), value)

    def _flat_extreme(self, bag: Bag, summary: Extreme) -> Bag | None:
        """The rows of all groups, if it is the greatest of the greatest of each group that is asked for."""
        found: list[Term] = []
        for term in bag.terms:
            one = next((each for each in term.over if each.atom.groups), None)
            if one is None:
                return None
            group = one.atom.groups[0]
            key = tuple(constants(one.row))
            results = [
                (conjunction((term.guard, guard)), result)
                for guard, result, raised in self.meaning.applied(summary.value, (term.row,), term.guard)
                if raised is None
            ]
            inner = next(
                (
                    one_summary
                    for one_summary, value in zip(group.summaries, group.at(key), strict=True)
                    if isinstance(one_summary, Extreme)
                    and one_summary.greatest is summary.greatest
                    and type_of(value) == type_of(results[0][1])
                    and all(
                        prove(z3.Implies(guard, same(result, value)), seconds=self.budget.left).proved
                        for guard, result in results
                    )
                ),
                None,
            )
            own = [c.decl().name() for value in group.at(key) for c in terms_in(value)]
            if inner is None or any(t.decl().name() in own for t in subterms([term.guard]) if z3.is_app(t)):
                return None
            others = tuple(each for each in term.over if each is not one)
            for each in group.keyed.terms:
                made = apart(each, self.meaning)
                pairs = list(zip(constants(one.row), fitted(made.row[0], group.key), strict=True))
                guard = conjunction((z3.substitute(term.guard, *pairs) if pairs else term.guard, made.guard))
                for when, value, raised in self.meaning.applied(inner.value, (made.row[1],), guard):
                    if raised is None:
                        found.append(Term((*others, *made.over), conjunction((guard, when)), value))
        return Bag(tuple(found))

    def _same_folds(self, one: _Value, other: _Value) -> list[Truth]:
        """That two values are equal for groups that have rows, if it is so."""
        if type_of(one.value) != type_of(other.value) or (
            isinstance(one.summary, Extreme) is not isinstance(other.summary, Extreme) and not one.of.bag.terms
        ):
            return []
        try:
            pair = [self.machine(one, "?one"), self.machine(other, "?other")]
            pair = self._with_common_atoms(pair)
            empty = [
                negation(term_of(each.state[0])) for each, own in zip(pair, (one, other), strict=True) if own.needs_row
            ]
            states = [
                each.state[1] if own.needs_row else each.state for each, own in zip(pair, (one, other), strict=True)
            ]
            claim = either(*empty, same(*states))
            if machines.always(pair, claim, budget=self.budget.part(2.0)) is not True:
                return []
        except UnsupportedError:
            return []
        some = [value.of.count >= 1 for value in (one, other) if value.needs_row]
        return [z3.Implies(conjunction(some), same(one.value, other.value))]

    def _with_common_atoms(self, pair: Sequence[machines.Machine]) -> list[machines.Machine]:
        shared = self._common([each.bag.terms for each in pair])
        return [replace(each, bag=Bag(tuple(terms))) for each, terms in zip(pair, shared, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class Addition:
    """A sum that is a value of a group, or a part of one; or the number of its rows."""

    place: int | None
    part: tuple[int, ...]
    terms: tuple[Term, ...]
    """Of each row its key, and the number that is added."""

    def value(self, of: Application) -> Any:
        """The term that stands for the sum."""
        return of.count if self.place is None else term_of(_at(of.values[self.place], self.part))


@dataclass(frozen=True, slots=True, eq=False)
class _Value:
    """One value of a group at a key."""

    of: Application
    summary: Summary
    value: Row

    @property
    def needs_row(self) -> bool:
        return isinstance(self.summary, Extreme) or (isinstance(self.summary, Fold) and self.summary.needs_row)


_NO_RELATION: Any = None
_COUNT = Total(lambda row: 1, name="count")


def _plus(total: Any, number: Any) -> Any:
    return total + number


def _greater(best: Any, value: Any) -> Any:
    return value if value > best else best


def _smaller(best: Any, value: Any) -> Any:
    return value if value < best else best


def _first_or(add: Callable[..., Any]) -> Callable[..., Any]:
    return lambda state, value: (True, add(state[1], value) if state[0] else value)


def _some_value(type_: Any) -> Any:
    """Any value of a type: it stands where there is none yet."""
    if isinstance(type_, tuple):
        return tuple(map(_some_value, type_))
    return type_() if isinstance(type_, type) and type_ is not type(None) else None


def _places(row: Row) -> list[tuple[int, ...]]:
    """Where the leaves of a row are."""
    if not isinstance(row, tuple):
        return [()]
    return [(place, *inner) for place, part in enumerate(row) for inner in _places(part)]


def _at(row: Row, place: tuple[int, ...]) -> Any:
    for step in place:
        row = row[step]
    return row


def _added_by(fold: Fold, place: tuple[int, ...]) -> Function:
    """The number that a row adds to a part of the state."""
    add, start, value = fold.add, fold.start, fold.value

    def added(row: Any) -> Any:
        part = row if value is None else value(row)
        state = part if start is None else add(start, part)
        for step in place:
            state = state[step]
        return state

    return added


def _branches(term: Any) -> Iterator[tuple[Truth, Any]]:
    """The values that a choice has, and when."""
    if z3.is_app(term) and term.decl().kind() == z3.Z3_OP_ITE:
        condition, one, other = term.children()
        for met, value in _branches(one):
            yield conjunction((condition, met)), value
        for met, value in _branches(other):
            yield conjunction((negation(condition), met)), value
    else:
        yield YES, term


def _parts(term: Term) -> Iterator[Term]:
    """The same sum, where what is added under a condition has it in its guard."""
    branches = list(_branches(z3.simplify(term_of(term.row))))
    for met, number in branches if len(branches) <= MOST_PARTS else [(YES, term_of(term.row))]:
        if not _is_zero(number):
            yield Term(term.over, conjunction((term.guard, met)), sums.as_number(number))


def _number(value: int, like: Any) -> Any:
    return z3.IntVal(value) if z3.is_int(like) else z3.RealVal(value)


def _is_zero(term: Any) -> bool:
    return bool(z3.is_int_value(term) and term.as_long() == 0) or bool(
        z3.is_rational_value(term) and term.numerator_as_long() == 0
    )


def subterms(terms: Sequence[Any]) -> Iterator[Any]:
    """All terms in these, each once."""
    waiting, seen = list(terms), set()
    while waiting:
        term = waiting.pop()
        if term.get_id() not in seen:
            seen.add(term.get_id())
            yield term
            waiting += term.children()
