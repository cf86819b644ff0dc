"""What a bag program means: a finite sum of terms.

    the sum over x in R and y in S of [guard(x, y)] row(x, y)

A filter is a guard, a map is another row, a product has the variables of both, a union has the terms of both; and each
path through a Python function is a term of its own. A row is in the result as often as the terms say.

Of a distinct relation only the rows are known, not where they come from: a variable ranges over it as it does over an
input. A grouped relation is its distinct keys, and functions of the key for what its rows are summed up to.
"""

from __future__ import annotations

import functools
import itertools
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import z3

from streamtight.errors import UnsupportedError
from streamtight.program.expression import SqlError, SqlFunction, SqlValue
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
    Rows,
    Summary,
    Total,
    Union,
)
from streamtight.solver.ask import Budget, prove
from streamtight.solver.sql import Reading, ranges, row_type
from streamtight.solver.symbolic.read import check_reading, read
from streamtight.solver.symbolic.values import REAL_NUMBERS, Symbolic, SymbolicBool, SymbolicFloat, term_of
from streamtight.solver.values import (
    YES,
    Maybe,
    Row,
    Truth,
    cases,
    conjunction,
    constants,
    either,
    fitted,
    joined,
    leaves,
    negation,
    normal,
    renamed,
    type_of,
    variable,
)


@dataclass(frozen=True, slots=True, eq=False)
class Atom:
    """What variables range over: an input, or a relation of which only the rows are known."""

    name: str
    type: Any
    relation: Relation
    of: Bag | None = None
    """What a distinct relation is made of."""
    member: Any = None
    """The predicate of Z3 that says whether a row is in it; of the number 0, if rows have no values."""
    groups: tuple[Group, ...] = ()
    """What is summed up for its rows, which are keys."""
    asked: tuple[Callable[[Row], Truth], ...] = ()
    """What is true of all its rows."""

    @property
    def inner(self) -> Bag:
        """What it is made of; nothing for an input."""
        return Bag(()) if self.of is None else self.of

    @property
    def is_distinct(self) -> bool:
        """Whether it holds each row once, and is known by what it is made of."""
        return self.of is not None and not isinstance(self.relation, First)

    def contains(self, row: Row) -> Truth:
        """Whether this row is in it."""
        return self.member(*(fitted(row, self.type) or [z3.IntVal(0)]))

    def is_row(self, row: Row) -> Truth:
        """Whether a variable is a row of it, and its values those that stand for such a row."""
        return conjunction((self.contains(row), normal(row)))

    def facts(self, row: Row) -> list[Truth]:
        """What is known of a variable that ranges over it."""
        counts = (group.count_at(constants(row)) >= 1 for group in self.groups)
        return [self.contains(row), normal(row), *counts, *(is_asked(row) for is_asked in self.asked)]

    def unique(self, row: Row) -> list[Row]:
        """The parts of a row, each of which no other row of it shares."""
        if self.is_distinct:
            return [row]
        keys = self.relation.keys if isinstance(self.relation, Input) else ()
        return [tuple(row[place] for place in key) for key in keys]


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Rows that are summed up for each key: the values are functions of the key.

    For a key without rows a sum is 0, and other values are whatever they are.
    """

    name: str
    keyed: Bag
    """The rows, each with its key before it."""
    key: Any
    """The type of a key."""
    summaries: tuple[Summary, ...]
    types: tuple[Any, ...]
    """The type of the value of each summary."""

    def values(self, key: Row) -> tuple[Row, ...]:
        """What the rows with this key are summed up to."""
        return self.at(fitted(key, self.key))

    def at(self, key: Sequence[Any]) -> tuple[Row, ...]:
        """The same, for a key as terms."""
        return tuple(_of_key(variable(type_, f"{self.name}.{n}"), key) for n, type_ in enumerate(self.types))

    def count(self, key: Row) -> Any:
        """How many rows have this key."""
        return self.count_at(fitted(key, self.key))

    def count_at(self, key: Sequence[Any]) -> Any:
        """The same, for a key as terms."""
        return term_of(_of_key(variable(int, f"{self.name}.rows"), key))


def _of_key(value: Row, key: Sequence[Any]) -> Row:
    """A value as a function of a key: each of its constants is one."""
    if not key:
        return value
    sorts = [part.sort() for part in key]
    return renamed(value, [(c, z3.Function(c.decl().name(), *sorts, c.sort())(*key)) for c in constants(value)])


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """An arbitrary row of an atom."""

    atom: Atom
    row: Row


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A row for every choice of the variables that the guard lets pass."""

    over: tuple[Variable, ...]
    guard: Truth
    row: Row


@dataclass(frozen=True, slots=True, eq=False)
class Bag:
    """A sum of terms; and when one of its functions raises: terms whose row is the name of the exception."""

    terms: tuple[Term, ...]
    failures: tuple[Term, ...] = ()

    @property
    def type(self) -> Any:
        """The type of its rows."""
        return joined(type_of(term.row) for term in self.terms)


MOST_WIDENED = 3
"""So often the type of the state of a fold is widened: from int to float, for example."""


class Meaning:
    """Finds out what relations mean. Inputs and relations that are taken as a whole have one atom each."""

    def __init__(self, budget: Budget, name: str = "", *, overflows: bool = False) -> None:
        self.budget = budget
        self.overflows = overflows
        """Whether integers of SQL that do not fit into their type raise; else none is taken to be so large."""
        self.assumptions: set[str] = set()
        self._name = name
        self._numbers = itertools.count()
        self._atoms: dict[object, Atom] = {}
        self.groups: dict[str, Group] = {}
        """By the names of the functions that stand for their values."""
        self.members: dict[str, Atom] = {}
        """By the names of the predicates that say what is in them."""
        self._checked: dict[tuple[int, str], object] = {}
        self.paths: dict[int, Term] = {}
        """Each way that rows of inputs take through functions, by the guard."""

    # -- relations ---------------------------------------------------------------------------------------------------

    def bag(self, relation: Relation) -> Bag:
        """Its terms, over variables that no other bag has."""
        match relation:
            case Input(name, type_):
                atom = self.atom(("input", name), name, row_type(type_), relation)
                if row_type(type_) is type_ and _holds_float(type_):
                    self.assumptions.add(REAL_NUMBERS)
                if self.overflows and row_type(type_) is not type_:
                    atom = replace(atom, asked=(functools.partial(ranges, type_),))
                return self._whole(atom)
            case Rows(rows):
                return Bag(tuple(Term((), YES, row) for row in rows))
            case Each(of, function, how):
                return self._each(self.bag(of), function, how)
            case Product(left, right):
                return self._product(self.bag(left), self.bag(right))
            case Union(left, right):
                one, other = self.bag(left), self.bag(right)
                return Bag(one.terms + other.terms, one.failures + other.failures)
            case Distinct(of):
                return self._taken_whole(relation, "distinct", self.bag(of))
            case Matching(left, right, matches, some):
                return self._matching(self.bag(left), self.bag(right), matches, some)
            case Grouped(of, key, summaries):
                return self._grouped(relation, self.bag(of), key, summaries)
            case First(of):
                return self._taken_whole(relation, "first", self.bag(of))
        raise UnsupportedError(str(relation.place), needed="an operation", came=repr(relation), hint="map")

    def atom(self, key: object, name: str, type_: Any, relation: Relation, of: Bag | None = None) -> Atom:
        """The atom of an input, or of a relation that is taken as a whole."""
        if key not in self._atoms:
            full = name if of is None else f"{self._name}{name}{next(self._numbers)}"
            sorts = [constant.sort() for constant in constants(variable(type_, "?"))]
            member = z3.Function(f"in {full}", *(sorts or [z3.IntSort()]), z3.BoolSort())
            self._atoms[key] = self.members[f"in {full}"] = Atom(full, type_, relation, of, member)
        return self._atoms[key]

    def variable(self, atom: Atom) -> Variable:
        """An arbitrary row of it, apart from all others."""
        return Variable(atom, variable(atom.type, f"{self._name}{atom.name}!{next(self._numbers)}"))

    def _whole(self, atom: Atom) -> Bag:
        one = self.variable(atom)
        return Bag((Term((one,), YES, one.row),))

    def _taken_whole(self, relation: Relation, name: str, inner: Bag) -> Bag:
        if not inner.terms:
            return inner
        return replace(self._whole(self.atom(relation, name, inner.type, relation, inner)), failures=inner.failures)

    def _each(self, bag: Bag, function: Callable[..., Any], how: How) -> Bag:
        terms: list[Term] = []
        failures = list(bag.failures)
        then = list if how is How.FLAT_MAP else None
        for term in bag.terms:
            for guard, result, raised in self.applied(function, (term.row,), term.guard, then=then):
                here = conjunction((term.guard, guard))
                self.paths.setdefault(here.get_id(), Term(term.over, here, term.row))
                if raised is not None:
                    failures.append(Term(term.over, here, type(raised).__name__))
                elif how is How.MAP:
                    terms.append(Term(term.over, here, result))
                elif how is How.FILTER:
                    terms.append(Term(term.over, conjunction((here, truth_of(result))), term.row))
                else:
                    terms += [Term(term.over, here, row) for row in result]
        return Bag(tuple(term for term in terms if not z3.is_false(term.guard)), tuple(failures))

    def _product(self, left: Bag, right: Bag) -> Bag:
        terms = tuple(
            Term(one.over + other.over, conjunction((one.guard, other.guard)), (one.row, other.row))
            for one in left.terms
            for other in right.terms
        )
        return Bag(terms, left.failures + right.failures)

    def _matching(self, left: Bag, right: Bag, matches: Callable[..., Any], some: bool) -> Bag:
        terms = []
        for term in left.terms:
            found = []
            for other in right.terms:
                here = conjunction((term.guard, other.guard))
                met = self._truth(matches, (term.row, other.row), here, "the condition of a join")
                there = conjunction((*(one.atom.is_row(one.row) for one in other.over), other.guard, met))
                bound = [constant for one in other.over for constant in constants(one.row)]
                found.append(z3.Exists(bound, there) if bound else there)
            is_met = either(*found)
            terms.append(replace(term, guard=conjunction((term.guard, is_met if some else negation(is_met)))))
        return Bag(tuple(terms), left.failures + right.failures)

    def _grouped(self, relation: Grouped, bag: Bag, key: Callable[..., Any], summaries: Sequence[Summary]) -> Bag:
        keyed = self._keyed(bag, key)
        if not keyed.terms:
            return keyed
        atom = self._atoms.get(relation)
        if atom is None:
            group = self.group(f"{self._name}group{next(self._numbers)}", keyed, tuple(summaries))
            keys = Bag(tuple(replace(term, row=term.row[0]) for term in keyed.terms))
            atom = replace(self.atom(relation, "keys", group.key, relation, keys), groups=(group,))
            self._atoms[relation] = atom
        one = self.variable(atom)
        row = (one.row, *atom.groups[0].values(one.row))
        failures = [*keyed.failures, *self.failing(keyed, summaries)]
        return Bag((Term((one,), YES, row),), tuple(failures))

    def group(self, name: str, keyed: Bag, summaries: tuple[Summary, ...]) -> Group:
        """Rows, each with its key before it, that are summed up for each key."""
        key = joined(type_of(term.row[0]) for term in keyed.terms)
        types = tuple(self.type_of_summary(summary, keyed) for summary in summaries)
        plain = tuple(map(self._plain, summaries, types))
        made = Group(name, keyed, key, plain, types)
        self.enter(made)
        return made

    def _plain(self, summary: Summary, type_: Any) -> Summary:
        """The same summary; one that keeps the greater of two values, or the smaller, as such."""
        if not isinstance(summary, Fold) or not summary.needs_row or type_ not in (int, float, str):
            return summary
        a, b = variable(type_, "?a"), variable(type_, "?b")
        paths = list(self.applied(summary.merge, (a, b), YES))
        for greatest in (True, False):
            most = z3.If((term_of(a) >= term_of(b)) if greatest else (term_of(a) <= term_of(b)), term_of(a), term_of(b))
            if all(
                raised is None and prove(z3.Implies(guard, term_of(result) == most), seconds=self.budget.left).proved
                for guard, result, raised in paths
            ):
                return Extreme(summary.value or _itself, greatest, summary.name)
        return summary

    def enter(self, group: Group) -> None:
        """From now on its names mean this group."""
        values = enumerate(group.types)
        names = [c.decl().name() for n, type_ in values for c in constants(variable(type_, f"{group.name}.{n}"))]
        self.groups.update(dict.fromkeys([*names, f"{group.name}.rows"], group))

    def failing(self, keyed: Bag, summaries: Sequence[Summary]) -> Iterator[Term]:
        """When what is added to a summary cannot be found for a row."""
        for summary in summaries:
            function = summary.number if isinstance(summary, Total) else summary.value
            if function is None:
                continue
            for term in keyed.terms:
                for guard, _, raised in self.applied(function, (term.row[1],), term.guard):
                    if raised is not None:
                        yield Term(term.over, conjunction((term.guard, guard)), type(raised).__name__)

    def _keyed(self, bag: Bag, key: Callable[..., Any]) -> Bag:
        """Each row with its key before it."""
        terms, failures = [], list(bag.failures)
        for term in bag.terms:
            for guard, result, raised in self.applied(key, (term.row,), term.guard):
                here = conjunction((term.guard, guard))
                if raised is not None:
                    failures.append(Term(term.over, here, type(raised).__name__))
                else:
                    terms.append(Term(term.over, here, (result, term.row)))
        return Bag(tuple(terms), tuple(failures))

    def type_of_summary(self, summary: Summary, keyed: Bag) -> Any:
        """The type of what a summary gives; the rows of the bag have their keys before them."""
        match summary:
            case Total(number):
                found = list(self._results(number, keyed))
                return float if float in found else int if set(found) <= {int, bool} else joined(found)
            case Extreme(value):
                return joined(self._results(value, keyed))
        return self._type_of_state(summary, keyed)

    def _type_of_state(self, fold: Fold, keyed: Bag) -> Any:
        """The type of a state: of what it starts with, and of what is made of it."""
        if not keyed.terms:
            return type_of(fold.start)
        values = joined(
            (type_of(term.row[1]) for term in keyed.terms) if fold.value is None else self._results(fold.value, keyed)
        )
        state = values if fold.needs_row else type_of(fold.start)
        for _ in range(MOST_WIDENED):
            a, b, value = variable(state, "?a"), variable(state, "?b"), variable(values, "?v")
            steps = [*self.applied(fold.add, (a, value), YES), *self.applied(fold.merge, (a, b), YES)]
            wider = joined([state, *(type_of(result) for _, result, raised in steps if raised is None)])
            if wider == state:
                return state
            state = wider
        raise UnsupportedError(
            fold.name, needed="a state whose type stays the same", came=repr(state), hint="start with a value like it"
        )

    def _results(self, function: Callable[..., Any], keyed: Bag) -> Iterator[Any]:
        for term in keyed.terms:
            for _, result, raised in self.applied(function, (term.row[1],), term.guard):
                if raised is None:
                    yield type_of(result)

    # -- functions ---------------------------------------------------------------------------------------------------

    def applied(
        self,
        function: Callable[..., Any],
        rows: Sequence[Row],
        given: Truth,
        then: Callable[[Any], object] | None = None,
    ) -> Iterator[tuple[Truth, Row, Exception | None]]:
        """What a function gives for these rows, path by path: when, what, and what it raises instead."""
        if isinstance(function, SqlFunction | SqlValue):
            yield from self._sql(function, rows)
            return
        for null, arguments in cases(tuple(rows)):
            if z3.is_false(null):
                continue
            known = conjunction((given, null))
            paths = read(function, arguments, given=[known], budget=self.budget, then=then)
            shape = repr([type_of(argument) for argument in arguments])
            if (id(function), shape) not in self._checked:
                self._checked[id(function), shape] = function  # which keeps the id its own
                fresh = tuple(variable(type_of(argument), f"?{place}") for place, argument in enumerate(arguments))
                check_reading(function, read(function, fresh, budget=self.budget, then=then), fresh, then=then)
            if any(isinstance(leaf, SymbolicFloat) for row in arguments for leaf in leaves(row)):
                self.assumptions.add(REAL_NUMBERS)  # also if it is only handed on: it may be NaN
            for path in paths:
                self.assumptions |= path.assumes
                yield conjunction((null, path.guard)), path.result, path.raised

    def _sql(
        self, function: SqlFunction | SqlValue, rows: Sequence[Row]
    ) -> Iterator[tuple[Truth, Row, Exception | None]]:
        """The same for expressions of SQL, which have one path, and one on which they raise."""
        row = rows[0] if len(rows) == 1 else tuple(rows)
        reading = Reading(self.applied, overflows=self.overflows)
        expressions = (function.expression,) if isinstance(function, SqlValue) else function.expressions
        cells = [reading.cell(expression, row) for expression in expressions]
        self.assumptions |= reading.assumptions
        fails = either(*(cell.fails for cell in cells), *reading.fails_anyway)
        result: Row
        if isinstance(function, SqlValue):
            result = cells[0].leaf(expressions[0].type)
        elif function.how is How.FILTER:
            result = SymbolicBool(conjunction((negation(cells[0].null), cells[0].value)))
        else:
            result = tuple(cell.leaf(part.type) for cell, part in zip(cells, expressions, strict=True))
        yield negation(fails), result, None
        if not z3.is_false(z3.simplify(fails)):
            yield fails, None, SqlError("an error of SQL")

    def _truth(self, function: Callable[..., Any], rows: Sequence[Row], given: Truth, where: str) -> Truth:
        """When a function says yes. It must not raise."""
        met = []
        for guard, result, raised in self.applied(function, rows, given):
            if raised is not None:
                raise UnsupportedError(
                    where, needed="a function that never raises", came=repr(raised), hint="a condition before it"
                )
            met.append(conjunction((guard, truth_of(result))))
        return either(*met)


def _itself(row: Any) -> Any:
    return row


def truth_of(result: Any) -> Truth:
    """Whether Python takes a value for true."""
    if isinstance(result, Maybe):
        return conjunction((negation(result.null), truth_of(result.value)))
    if isinstance(result, Symbolic):
        term: Any = result._term
        if z3.is_bool(term):
            return term
        return z3.Length(term) > 0 if z3.is_string(term) else term != 0
    return z3.BoolVal(bool(result))


def _holds_float(type_: Any) -> bool:
    """Whether there is a float in rows of this type."""
    if isinstance(type_, tuple):
        return any(map(_holds_float, type_))
    return float in (type_, *typing.get_args(type_))
