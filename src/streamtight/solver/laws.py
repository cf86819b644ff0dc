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

from collections.abc import Callable, Iterator
from typing import Any

import z3

from streamtight.errors import UnsupportedError
from streamtight.program.relation import Fold
from streamtight.solver.ask import Answer, Budget, prove
from streamtight.solver.terms import Meaning
from streamtight.solver.values import YES, Row, Truth, conjunction, same, variable

Function = Callable[..., Any]


def is_associative(function: Function, type_: Any, *, budget: Budget) -> Answer:
    """Whether f(f(a, b), c) is f(a, f(b, c)) for all values of the type."""
    law = _Law(budget)
    a, b, c = (variable(type_, name) for name in "abc")
    return law.same(lambda: law.nested((a, b), c, function), lambda: law.right(a, (b, c), function))


def is_commutative(function: Function, type_: Any, *, budget: Budget) -> Answer:
    """Whether f(a, b) is f(b, a) for all values of the type."""
    law = _Law(budget)
    a, b = (variable(type_, name) for name in "ab")
    return law.same(lambda: law.of(function, a, b), lambda: law.of(function, b, a))


def is_neutral(value: Any, function: Function, type_: Any, *, budget: Budget) -> Answer:
    """Whether f(value, a) is a, and f(a, value) too, for all values of the type."""
    law = _Law(budget)
    a = variable(type_, "a")
    left = law.same(lambda: law.of(function, value, a), lambda: iter([(YES, a)]))
    return law.same(lambda: law.of(function, a, value), lambda: iter([(YES, a)])) if left.proved else left


def is_well_defined(fold: Fold, state: Any, value: Any, *, budget: Budget) -> Answer:
    """Whether the result is the same however the rows are spread over partitions, and in whatever order they merge.

    `state` and `value` are the types of a state and of what is added. It is, if merging is associative and commutative,
    the start is neutral, and to add a value is to merge with the state of that value alone.
    """
    law = _Law(budget)
    if fold.needs_row:
        answer = is_associative(fold.merge, state, budget=budget)
        return is_commutative(fold.merge, state, budget=budget) if answer.proved else answer
    for answer in (
        is_associative(fold.merge, state, budget=budget),
        is_commutative(fold.merge, state, budget=budget),
        is_neutral(fold.start, fold.merge, state, budget=budget),
    ):
        if not answer.proved:
            return answer
    s, v = variable(state, "s"), variable(value, "v")
    return law.same(lambda: law.of(fold.add, s, v), lambda: law.merged(fold, s, v))


class _Law:
    """Compares what two ways of calling functions give, path by path."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.meaning = Meaning(budget)

    def of(self, function: Function, *rows: Row, given: Truth = YES) -> Iterator[tuple[Truth, Row]]:
        for guard, result, raised in self.meaning.applied(function, rows, given):
            if raised is not None:
                raise UnsupportedError("a law", needed="a function that never raises", came=repr(raised), hint="a test")
            yield conjunction((given, guard)), result

    def nested(self, first: tuple[Row, Row], last: Row, function: Function) -> Iterator[tuple[Truth, Row]]:
        for guard, inner in self.of(function, *first):
            yield from self.of(function, inner, last, given=guard)

    def right(self, first: Row, last: tuple[Row, Row], function: Function) -> Iterator[tuple[Truth, Row]]:
        for guard, inner in self.of(function, *last):
            yield from self.of(function, first, inner, given=guard)

    def merged(self, fold: Fold, state: Row, value: Row) -> Iterator[tuple[Truth, Row]]:
        for guard, alone in self.of(fold.add, fold.start, value):
            yield from self.of(fold.merge, state, alone, given=guard)

    def same(
        self, one: Callable[[], Iterator[tuple[Truth, Row]]], other: Callable[[], Iterator[tuple[Truth, Row]]]
    ) -> Answer:
        left, right = list(one()), list(other())
        claim = conjunction(
            z3.Implies(conjunction((guard, other_guard)), same(mine, theirs))
            for guard, mine in left
            for other_guard, theirs in right
        )
        return prove(claim, seconds=self.budget.left)
