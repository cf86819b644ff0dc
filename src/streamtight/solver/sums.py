"""What is known about sums: which are equal, which are multiples and sums of others, which are not negative.

A total is the sum, over all choices of rows, of what its terms make of them. So what holds of the summands for every
choice of rows holds of the totals: equations, linear combinations, and inequalities. Linear combinations are guessed
from samples, proved by Z3, and guessed anew with the model if the proof fails.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import z3

from streamtight.errors import UnsupportedError
from streamtight.program.relation import Function
from streamtight.solver.ask import Budget, prove
from streamtight.solver.bags import choices, instances, key_of
from streamtight.solver.symbolic.values import SymbolicFloat, SymbolicInt, term_of
from streamtight.solver.terms import Meaning, Term, Variable
from streamtight.solver.values import (
    Maybe,
    Truth,
    conjunction,
    constants,
    constants_in,
    number,
    renamed,
    variable,
)

SAMPLES = 12
MOST_COMPARED = 8
"""Of so many totals at most, each is compared with each."""
ROUNDS = 20


@dataclass(frozen=True, slots=True, eq=False)
class Sum:
    """A total: the term that stands for it, and what it is the sum of: the rows of these terms are numbers."""

    value: Any
    terms: tuple[Term, ...]


def valued(meaning: Meaning, terms: Sequence[Term], of: Function) -> tuple[Term, ...]:
    """The terms, whose rows are pairs, with a number of the second instead of it. Where it raises there is none."""
    found: list[Term] = []
    for term in terms:
        for guard, result, raised in meaning.applied(of, (term.row[1],), term.guard):
            if raised is not None:
                continue
            if result is None or isinstance(result, Maybe | tuple):
                raise UnsupportedError("a sum", needed="a number of each row", came=repr(result), hint="0")
            made = as_number(term_of(result))
            found.append(Term(term.over, conjunction((term.guard, guard)), (term.row[0], made)))
    return tuple(found)


def as_number(term: Any) -> SymbolicInt | SymbolicFloat:
    """A number as the row of a term."""
    made = number(term)
    return SymbolicInt(made) if z3.is_int(made) else SymbolicFloat(made)


def facts(sums: Sequence[Sum], *, given: Sequence[Truth] = (), budget: Budget) -> Iterator[list[Truth]]:
    """What is proved about these totals: first what they are equal to, then what they are compared to each other."""
    comparison = _Comparison([*sums, *_products(sums)], given, budget)
    yield list(comparison.equations())
    if len(sums) <= MOST_COMPARED:
        yield list(comparison.inequalities(sums))


def _products(sums: Sequence[Sum]) -> Iterator[Sum]:
    """Products of two totals, which are totals over pairs, where another total is one over the same pairs."""
    pairs = {key_of(term) for one in sums for term in one.terms if len(term.over) > 1}
    for one, other in itertools.combinations_with_replacement(sums, 2):
        terms = []
        for mine, theirs in itertools.product(one.terms, map(_apart, other.terms)):
            product = as_number(term_of(mine.row) * term_of(theirs.row))
            terms.append(Term(mine.over + theirs.over, conjunction((mine.guard, theirs.guard)), product))
        if terms and all(key_of(term) in pairs for term in terms):
            yield Sum(one.value * other.value, tuple(terms))


def _apart(term: Term) -> Term:
    """The same term of other variables."""
    over = tuple(Variable(one.atom, variable(one.atom.type, f"{one.atom.name}*{n}")) for n, one in enumerate(term.over))
    pairs = [
        pair
        for mine, other in zip(term.over, over, strict=True)
        for pair in zip(constants(mine.row), constants(other.row), strict=True)
    ]
    return Term(over, z3.substitute(term.guard, *pairs), renamed(term.row, pairs)) if pairs else term


class _Comparison:
    def __init__(self, sums: Sequence[Sum], given: Sequence[Truth], budget: Budget) -> None:
        self.sums, self.given, self.budget = sums, list(given), budget
        terms = [term for one in sums for term in one.terms]
        # What is given may speak of rows, which are not the rows that are summed.
        taken = "".join(constant.decl().name() for constant in constants_in(given))
        mark = next(mark for mark in map("#sum{}.".format, itertools.count()) if mark not in taken)
        self.choices = {tuple(v.atom.name for v in over): over for over in choices(terms, (), mark)}
        self.summands = {(id(one), key): _summand(one, over) for one in sums for key, over in self.choices.items()}
        self.names = {key: constants_in(self._summand(one, key) for one in sums) for key in self.choices}
        self.vectors: dict[int, list[Fraction | None]] = {}
        chance = random.Random(0)
        self.samples = [(key, self._sample(key, chance)) for key in self.choices for _ in range(SAMPLES)]

    def _sample(self, key: tuple[str, ...], chance: random.Random) -> list[tuple[Any, Any]]:
        most = chance.choice([1, 9])  # of few values, some are equal
        return [(one, _some_value(one, most, chance)) for one in self.names[key]]

    def _summand(self, one: Sum, key: tuple[str, ...]) -> Any:
        return self.summands[id(one), key]

    def _vector(self, one: Sum) -> list[Fraction | None]:
        known = self.vectors.setdefault(id(one), [])
        known += [_number_at(self._summand(one, key), sample) for key, sample in self.samples[len(known) :]]
        return known

    def _always(self, claim: Any) -> dict[tuple[str, ...], Any] | None:
        """None if the claim, a function of a bag of atoms, holds for every choice; else a model for one."""
        for key, over in self.choices.items():
            known = [*self.given, *(fact for one in over for fact in one.atom.facts(one.row))]
            answer = prove(claim(key), given=known, seconds=self.budget.left)
            if not answer.proved:
                return {key: answer.model}
        return None

    def equations(self) -> Iterator[Truth]:
        """Each total that is a combination of those before it."""
        basis: list[Sum] = []
        for one in self.sums:
            for _ in range(ROUNDS):
                factors = self._combination(one, basis)
                if factors is None:
                    basis.append(one)
                    break
                refuted = self._always(
                    lambda key, s=one, f=factors: self._summand(s, key) == self._combined(f, basis, key)
                )
                if refuted is None:
                    values = [_times(f, other.value) for f, other in zip(factors, basis, strict=True) if f]
                    yield one.value == (z3.Sum(*values) if values else 0)
                    break
                [(key, model)] = refuted.items()
                if model is None:
                    basis.append(one)
                    break
                self.samples.append((key, self._in_model(key, model)))
            else:
                basis.append(one)

    def _in_model(self, key: tuple[str, ...], model: Any) -> list[tuple[Any, Any]]:
        return [(one, model.eval(one, model_completion=True)) for one in self.names[key]]

    def _combination(self, one: Sum, basis: Sequence[Sum]) -> list[Fraction] | None:
        vectors = [self._vector(other) for other in basis]
        return _solution(vectors, self._vector(one))

    def _combined(self, factors: Sequence[Fraction], basis: Sequence[Sum], key: tuple[str, ...]) -> Any:
        parts = [_times(f, self._summand(other, key)) for f, other in zip(factors, basis, strict=True) if f]
        return z3.Sum(*parts) if parts else z3.IntVal(0)

    def inequalities(self, sums: Sequence[Sum]) -> Iterator[Truth]:
        """Which totals are not negative, not above another one, or nothing without another one."""
        counts = []
        for one in sums:
            if self._always(lambda key, s=one: self._summand(s, key) >= 0) is None:
                yield one.value >= 0
                counts.append(one)
            elif self._always(lambda key, s=one: self._summand(s, key) <= 0) is None:
                yield one.value <= 0
        for one, other in itertools.permutations(sums, 2):
            if self._always(lambda key, s=one, t=other: self._summand(s, key) <= self._summand(t, key)) is None:
                yield one.value <= other.value
        for count in counts:
            for one in sums:
                if one is not count and self._always(lambda key, s=one, c=count: self._counted(s, c, key)) is None:
                    yield z3.Implies(count.value == 0, one.value == 0)

    def _counted(self, one: Sum, count: Sum, key: tuple[str, ...]) -> Truth:
        return z3.Implies(self._summand(one, key) != 0, self._summand(count, key) >= 1)


def _summand(one: Sum, over: tuple[Variable, ...]) -> Any:
    """What a choice of rows adds to a total."""
    key = tuple(variable.atom.name for variable in over)
    parts = [
        z3.If(guard, term_of(row), 0)
        for term in one.terms
        if key_of(term) == key
        for guard, row in instances(term, over)
    ]
    return z3.Sum(*parts) if parts else z3.IntVal(0)


def _times(factor: Fraction, term: Any) -> Any:
    if factor.denominator == 1:
        return term if factor == 1 else term * factor.numerator
    return z3.RealVal(f"{factor.numerator}/{factor.denominator}") * (z3.ToReal(term) if z3.is_int(term) else term)


def _some_value(constant: Any, most: int, chance: random.Random) -> Any:
    if z3.is_bool(constant):
        return z3.BoolVal(chance.random() < 0.5)
    if z3.is_string(constant):
        return z3.StringVal(chance.choice(["", "a", "b"]))
    value = chance.randint(-most, most)
    return z3.IntVal(value) if z3.is_int(constant) else z3.RealVal(value)


def _number_at(term: Any, sample: Sequence[tuple[Any, Any]]) -> Fraction | None:
    value = z3.simplify(z3.substitute(term, *sample)) if sample else z3.simplify(term)
    if z3.is_int_value(value):
        return Fraction(value.as_long())
    return Fraction(value.numerator_as_long(), value.denominator_as_long()) if z3.is_rational_value(value) else None


def _solution(vectors: Sequence[Sequence[Fraction | None]], wanted: Sequence[Fraction | None]) -> list[Fraction] | None:
    """The factors with which the vectors make the wanted one, in every place that has a number; None if none do."""
    rows = [
        [*(vector[place] for vector in vectors), wanted[place]]
        for place in range(len(wanted))
        if wanted[place] is not None and all(vector[place] is not None for vector in vectors)
    ]
    matrix: list[list[Fraction]] = [[value for value in row if value is not None] for row in rows]
    width = len(vectors)
    pivots: list[int] = []
    for column in range(width):
        pivot = next((row for row in matrix[len(pivots) :] if row[column]), None)
        if pivot is None:
            continue
        place = len(pivots)
        index = matrix.index(pivot, place)
        matrix[place], matrix[index] = matrix[index], matrix[place]
        matrix[place] = [value / matrix[place][column] for value in matrix[place]]
        for other in range(len(matrix)):
            if other != place and matrix[other][column]:
                factor = matrix[other][column]
                matrix[other] = [a - factor * b for a, b in zip(matrix[other], matrix[place], strict=True)]
        pivots.append(column)
    if any(row[-1] for row in matrix[len(pivots) :]):
        return None
    factors = [Fraction(0)] * width
    for place, column in enumerate(pivots):
        factors[column] = matrix[place][-1]
    return factors
