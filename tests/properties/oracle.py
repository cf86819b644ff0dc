"""What a formula means, by its definition: slow, and obvious. The code must agree with it.

Positions after the end of the word exist, but nothing is known of them: an atom there has no value.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from streamtight.properties.temporal import (
    Always,
    And,
    Constant,
    Eventually,
    Formula,
    Historically,
    Implies,
    Next,
    Not,
    Now,
    Once,
    Or,
    Previously,
    Quantified,
    Release,
    Since,
    Timed,
    Until,
)

Truth = bool | None


def negated(value: Truth) -> Truth:
    return None if value is None else not value


def all_of(values: Sequence[Truth]) -> Truth:
    return False if False in values else None if None in values else True


def one_of(values: Sequence[Truth]) -> Truth:
    return negated(all_of([negated(value) for value in values]))


def value_at(
    formula: Formula,
    word: Sequence[Any],
    i: int,
    times: Sequence[Any] | None = None,
    known: Collection[int] | None = None,
) -> Truth:
    """The value of a formula at position i of a word, counted from 0; of the letters, only these may be known."""

    def at(part: Formula, k: int) -> Truth:
        return value_at(part, word, k, times, known)

    match formula:
        case Constant(value):
            return value
        case Not(body):
            return negated(at(body, i))
        case And(parts):
            return all_of([at(part, i) for part in parts])
        case Or(parts):
            return one_of([at(part, i) for part in parts])
        case Implies(left, right):
            return one_of([negated(at(left, i)), at(right, i)])
        case Next(body, n):
            return at(body, i + n)
        case Eventually(body):
            return one_of([both(inside, at(body, k)) for k, inside in window(formula, word, i, times)])
        case Always(body):
            return all_of([either(negated(inside), at(body, k)) for k, inside in window(formula, word, i, times)])
        case Until(left, right):
            return one_of(
                [
                    all_of([inside, at(right, k), *(at(left, j) for j in range(i, k))])
                    for k, inside in window(formula, word, i, times)
                ]
            )
        case Release(left, right):
            return all_of(
                [
                    one_of([negated(inside), at(right, k), *(at(left, j) for j in range(i, k))])
                    for k, inside in window(formula, word, i, times)
                ]
            )
    if i >= len(word):
        return None
    match formula:
        case Now() | Quantified() if known is not None and i not in known:
            return None
        case Now():
            said = formula.test(word[i])
            return at(said, i) if isinstance(said, Formula) else bool(said)
        case Quantified():
            made = [formula.body(record) for record in formula.records(word[i])]
            values = [at(one, i) if isinstance(one, Formula) else bool(one) for one in made]
            return all_of(values) if formula.every else one_of(values)
        case Previously(body):
            return at(body, i - 1) if i else False
        case Once(body):
            return one_of([at(body, k) for k in behind(formula.within, i, times)])
        case Historically(body):
            return all_of([at(body, k) for k in behind(formula.within, i, times)])
        case Since(left, right):
            starts = behind(formula.within, i, times)
            return one_of([all_of([at(right, k), *(at(left, j) for j in range(k + 1, i + 1))]) for k in starts])
    raise AssertionError(formula)


def both(one: Truth, other: Truth) -> Truth:
    return all_of([one, other])


def either(one: Truth, other: Truth) -> Truth:
    return one_of([one, other])


def window(formula: Timed, word: Sequence[Any], i: int, times: Sequence[Any] | None) -> list[tuple[int, Truth]]:
    """The positions of a window, each with whether it is inside: not known of those after the end, by time."""
    end = len(word)
    if isinstance(formula.within, int):
        return [(k, True) for k in range(i, i + formula.within)]
    positions = [*range(i, end), max(i, end)]  # all positions after the end are alike, so one stands for them
    if formula.within is None:
        return [(k, True) for k in positions]
    assert times is not None
    if i >= end:
        return [(i, True), (i + 1, None)]  # its own position is in it; nothing is known of the others
    inside: list[tuple[int, Truth]] = [(k, times[k] <= times[i] + formula.within) for k in range(i, end)]
    if all(known for _, known in inside):
        inside.append((end, None))
    return inside


def behind(within: Any, i: int, times: Sequence[Any] | None) -> list[int]:
    if within is None:
        return list(range(i + 1))
    if isinstance(within, int):
        return list(range(max(0, i - within + 1), i + 1))
    assert times is not None
    return [k for k in range(i + 1) if times[k] >= times[i] - within]
