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

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import z3

from streamtight.errors import UnsupportedError
from streamtight.program.relation import Fold
from streamtight.solver.ask import Answer, Budget, check, prove
from streamtight.solver.machines import has_predicate
from streamtight.solver.terms import Meaning, Term
from streamtight.solver.values import YES, Row, Truth, conjunction, constants, constants_in, fitted, same, variable

Function = Callable[..., Any]


def is_associative(function: Function, type_: Any, *, budget: Budget) -> Answer:
    """Whether f(f(a, b), c) is f(a, f(b, c)) for all values of the type."""
    law = Law(budget)
    a, b, c = (variable(type_, name) for name in "abc")
    return law.same(lambda: law.nested((a, b), c, function), lambda: law.right(a, (b, c), function))


def is_commutative(function: Function, type_: Any, *, budget: Budget) -> Answer:
    """Whether f(a, b) is f(b, a) for all values of the type."""
    law = Law(budget)
    a, b = (variable(type_, name) for name in "ab")
    return law.same(lambda: law.of(function, a, b), lambda: law.of(function, b, a))


def is_neutral(value: Any, function: Function, type_: Any, *, budget: Budget) -> Answer:
    """Whether f(value, a) is a, and f(a, value) too, for all values of the type."""
    law = Law(budget)
    a = variable(type_, "a")
    left = law.same(lambda: law.of(function, value, a), lambda: iter([(YES, a)]))
    return law.same(lambda: law.of(function, a, value), lambda: iter([(YES, a)])) if left.proved else left


def is_well_defined(fold: Fold, state: Any, values: Sequence[Term], *, budget: Budget) -> Answer:
    """Whether the result is the same however the rows are spread over partitions, and in whatever order they merge.

    `state` is the type of a state; `values` are what may be added: rows of terms. It is, if merging is associative and
    commutative, the start is neutral, and to add a value is to merge with the state of that value alone. That must be
    so of states that can come about: to start with 1000 is neutral for a minimum that is never above it.
    """
    law = Law(budget)
    laws = [*law.of_merging(fold, state), *([] if fold.needs_row else law.of_starting(fold, state, values))]
    for _, claim in reversed(laws):
        answer = prove(claim, seconds=budget.left)
        if not answer.proved:
            return Answer() if law.reachable(fold, state, values, laws) else answer
    return Answer()


def any_value(type_: Any) -> Term:
    """Any value of a type, as what may be added to a fold."""
    return Term((), YES, variable(type_, "?value"))


class Law:
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

    def merged(self, fold: Fold, state: Row, value: Row, given: Truth) -> Iterator[tuple[Truth, Row]]:
        for guard, alone in self.of(fold.add, fold.start, value, given=given):
            yield from self.of(fold.merge, state, alone, given=guard)

    def same(self, one: Callable[[], Results], other: Callable[[], Results]) -> Answer:
        return prove(_equal(one(), other()), seconds=self.budget.left)

    # -- folds: each law with the states that it speaks of -------------------------------------------------------------

    def of_merging(self, fold: Fold, state: Any) -> Iterator[tuple[list[Row], Truth]]:
        a, b, c = (variable(state, f"?{name}") for name in "abc")
        merge = fold.merge
        yield [a, b, c], _equal(self.nested((a, b), c, merge), self.right(a, (b, c), merge))
        yield [a, b], _equal(self.of(merge, a, b), self.of(merge, b, a))

    def of_starting(self, fold: Fold, state: Any, values: Sequence[Term]) -> Iterator[tuple[list[Row], Truth]]:
        a = variable(state, "?a")
        yield [a], _equal(self.of(fold.merge, fold.start, a), [(YES, a)])
        for term in values:
            yield (
                [a],
                _equal(self.of(fold.add, a, term.row, given=term.guard), self.merged(fold, a, term.row, term.guard)),
            )

    def reachable(
        self, fold: Fold, state: Any, values: Sequence[Term], laws: Sequence[tuple[list[Row], Truth]]
    ) -> bool:
        """Whether the laws hold of all states that can come about, which Z3's Horn solver finds out."""
        a, b = (variable(state, f"?{name}") for name in "ab")
        names = constants(a)
        if not names:
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
                continue
            for guard, after in self.of(fold.add, a, term.row, given=term.guard):
                rule([is_reached(a), guard], is_reached(after))
        for guard, after in self.of(fold.merge, a, b):
            rule([is_reached(a), is_reached(b), guard], is_reached(after))
        told = [*(term.guard for term in values), *(claim for _, claim in laws)]
        if any(map(has_predicate, told)):
            return False
        for states, claim in laws:
            rule([*map(is_reached, states), z3.Not(claim)], z3.BoolVal(False))
        return bool(check(solver, min(self.budget.left, 2.0))[0] == z3.sat)


Results = Iterable[tuple[Truth, Row]]


def _equal(one: Results, other: Results) -> Truth:
    """Whether two functions give the same, path by path."""
    left, right = list(one), list(other)
    return conjunction(
        z3.Implies(conjunction((guard, other_guard)), same(mine, theirs))
        for guard, mine in left
        for other_guard, theirs in right
    )
