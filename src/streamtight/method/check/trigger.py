"""Did a formula that holds say anything? Which of its triggers never came true.

"If a user is bad, he is banned" holds of every run without a bad user. So each trigger of a formula gives a stronger
formula, in which what the trigger demands is impossible. If that one holds too, the trigger was never pulled.

A trigger below an `eventually`, an `until` or an `or` may come and yet decide nothing, since something else made the
formula true; those are not looked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamtight.properties.records import without_trigger
from streamtight.properties.temporal import (
    FALSE,
    Always,
    And,
    Formula,
    Historically,
    Implies,
    Named,
    Next,
    Not,
    Now,
    Or,
    Quantified,
    Release,
    always,
    conjunction,
    denied,
    disjunction,
    formula_of,
    historically,
    implication,
    negation,
    next_,
    release,
)


def triggers(formula: Formula) -> Iterator[tuple[object, Formula]]:
    """What each trigger is called, and the formula that holds only if it is never pulled. Outer ones come first.

    >>> from streamtight.properties.temporal import eventually, now
    >>> for name, silent in triggers(always(now("order") >> eventually("shipment", within=3), during=9)):
    ...     print(name, "|", silent)
    now('order') | always(~now('order'), during=9)
    """
    match formula:
        case Implies(left, right):
            yield repr(left), negation(left)
            for name, silent in triggers(right):
                yield name, implication(left, silent)
        case And(parts):
            for place, part in enumerate(parts):
                for name, silent in triggers(part):
                    yield name, conjunction((*parts[:place], silent, *parts[place + 1 :]))
        case Or(parts):
            conditions = [part.body for part in parts if isinstance(part, Not)]
            others = [part for part in parts if not isinstance(part, Not)]
            if conditions and others:  # an implication in other words
                yield from triggers(implication(conjunction(conditions), disjunction(others)))
        case Named(body):
            yield from triggers(body)
        case Next(body, n):
            yield from ((name, next_(silent, n)) for name, silent in triggers(body))
        case Always(body, within):
            yield from ((name, always(silent, during=within)) for name, silent in triggers(body))
        case Historically(body, within):
            yield from ((name, historically(silent, during=within)) for name, silent in triggers(body))
        case Release(left, right, within):
            yield from ((name, release(left, silent, within=within)) for name, silent in triggers(right))
        case Quantified(every=True):
            yield f"a record of {formula.name}", _for_each(formula, lambda record: FALSE)
            inside = _Inside(formula)
            yield inside, _for_each(formula, inside.never_asked)
        case Now():
            nothing = without_trigger(formula)
            if nothing is not None:
                yield f"a record for {formula!r}", nothing
        case Not(body):
            pushed = denied(body)
            if pushed is not None:
                yield from triggers(pushed)


def _for_each(formula: Quantified, body: Any) -> Formula:
    return Quantified(formula.records, body, True, formula.name, "...")


class _Inside:
    """The triggers of the formulas that a quantifier makes: they are known when it has made one."""

    def __init__(self, formula: Quantified) -> None:
        self._formula = formula
        self._name: object = "a condition"

    def never_asked(self, record: Any) -> Formula:
        """No trigger of this record's formula is ever pulled. False if it has none, so that it is asked at once."""
        made = list(triggers(formula_of(self._formula.body(record), repr(self._formula))))
        if not made:
            return FALSE
        self._name = made[0][0]
        return conjunction(silent for _, silent in made)

    def __str__(self) -> str:
        return f"{self._name}, for a record of {self._formula.name},"
