"""Laws of functions: associative, commutative, neutral; and whether an aggregate depends on how its rows are spread.

>>> from streamtight.solver.ask import Budget
>>> is_associative(lambda a, b: a + b, int, budget=Budget(5)).proved
True
>>> is_commutative(lambda a, b: a - b, int, budget=Budget(5)).refuted
True
>>> is_neutral(0, lambda a, b: max(a, b), int, budget=Budget(5)).refuted
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import z3

from streamtight.errors import UnsupportedError
from streamtight.program.relation import Fold
from streamtight.solver.ask import Answer, Budget, check, prove
from streamtight.solver.machines import chosen, has_predicate
from streamtight.solver.terms import Meaning, Term
from streamtight.solver.values import (
    YES,
    Row,
    Truth,
    conjunction,
    constants,
    constants_in,
    fitted,
    joined,
    renamed,
    same,
    type_of,
    variable,
)

Function = Callable[..., Any]
Law = tuple[list[Row], Truth]
"""A claim, and the states that it speaks of."""


def is_associative(function: Function, type_: Any, *, budget: Budget) -> Answer:
    """Whether f(f(a, b), c) is f(a, f(b, c)) for all values of the type."""
    merge = as_rows(function, (type_, type_), budget)
    a, b, c = (variable(type_, name) for name in "abc")
    return prove(same(merge(merge(a, b), c), merge(a, merge(b, c))), seconds=budget.left)


def is_commutative(function: Function, type_: Any, *, budget: Budget) -> Answer:
    """Whether f(a, b) is f(b, a) for all values of the type."""
    merge = as_rows(function, (type_, type_), budget)
    a, b = (variable(type_, name) for name in "ab")
    return prove(same(merge(a, b), merge(b, a)), seconds=budget.left)


def is_neutral(value: Any, function: Function, type_: Any, *, budget: Budget) -> Answer:
    """Whether f(value, a) is a, and f(a, value) too, for all values of the type."""
    merge = as_rows(function, (type_, type_), budget)
    a = variable(type_, "a")
    return prove(conjunction((same(merge(value, a), a), same(merge(a, value), a))), seconds=budget.left)


def is_well_defined(fold: Fold, state: Any, values: Sequence[Term], *, budget: Budget) -> Answer:
    """Whether the result is the same however the rows are spread over partitions, and in whatever order they merge.

    `state` is the type of a state; `values` are what may be added: rows of terms. It is, if merging is associative and
    commutative, the start is neutral, and to add a value is to merge with the state of that value alone. That must be
    so of states that can come about: to start with 1000 is neutral for a minimum that is never above it.
    """
    merge = as_rows(fold.merge, (state, state), budget)
    add = as_rows(fold.add, (state, joined(type_of(term.row) for term in values)), budget)
    laws = list(_laws(fold, state, values, merge, add))
    for _, claim in laws:
        answer = prove(claim, seconds=budget.left)
        if not answer.proved:
            return Answer() if _hold_where_reached(fold, state, values, merge, add, laws, budget) else answer
    return Answer()


def any_value(type_: Any) -> Term:
    """Any value of a type, as what may be added to a fold."""
    return Term((), YES, variable(type_, "?value"))


def as_rows(function: Function, types: Sequence[Any], budget: Budget) -> Callable[..., Row]:
    """The function of rows that a Python function or an expression is, on values of these types. It must not raise."""
    arguments = [variable(type_, f"?{place}") for place, type_ in enumerate(types)]
    result: Row = None
    for place, (guard, made, raised) in enumerate(Meaning(budget).applied(function, arguments, YES)):
        if raised is not None:
            raise UnsupportedError("a law", needed="a function that never raises", came=repr(raised), hint="a test")
        result = made if place == 0 else chosen(guard, made, result)
    names = [name for argument in arguments for name in constants(argument)]

    def applied(*rows: Row) -> Row:
        terms = [term for row, type_ in zip(rows, types, strict=True) for term in fitted(row, type_)]
        return renamed(result, list(zip(names, terms, strict=True)))

    return applied


def _laws(
    fold: Fold, state: Any, values: Sequence[Term], merge: Callable[..., Row], add: Callable[..., Row]
) -> Iterator[Law]:
    a, b, c = (variable(state, f"?{name}") for name in "abc")
    if not fold.needs_row:
        yield [a], same(merge(fold.start, a), a)
        for term in values:
            alone = add(fold.start, term.row)
            yield [a], z3.Implies(term.guard, same(add(a, term.row), merge(a, alone)))
    yield [a, b], same(merge(a, b), merge(b, a))
    yield [a, b, c], same(merge(merge(a, b), c), merge(a, merge(b, c)))


def _hold_where_reached(
    fold: Fold,
    state: Any,
    values: Sequence[Term],
    merge: Callable[..., Row],
    add: Callable[..., Row],
    laws: Sequence[Law],
    budget: Budget,
) -> bool:
    """Whether the laws hold of all states that can come about, which Z3's Horn solver finds out."""
    a, b = (variable(state, f"?{name}") for name in "ab")
    names = constants(a)
    if not names or any(map(has_predicate, [*(term.guard for term in values), *(claim for _, claim in laws)])):
        return False
    reached = z3.Function("reached", *[name.sort() for name in names], z3.BoolSort())
    solver = z3.SolverFor("HORN")

    def rule(body: Sequence[Truth], head: Truth) -> None:
        implied = z3.Implies(conjunction(body), head)
        bound = constants_in([implied])
        solver.add(z3.ForAll(bound, implied) if bound else implied)

    def is_reached(row: Row) -> Truth:
        return reached(*fitted(row, state))

    if not fold.needs_row:
        rule([], is_reached(fold.start))
    for term in values:
        if fold.needs_row:
            rule([term.guard], is_reached(term.row))
        else:
            rule([is_reached(a), term.guard], is_reached(add(a, term.row)))
    rule([is_reached(a), is_reached(b)], is_reached(merge(a, b)))
    for states, claim in laws:
        rule([*map(is_reached, states), z3.Not(claim)], z3.BoolVal(False))
    return bool(check(solver, min(budget.left, 2.0))[0] == z3.sat)
