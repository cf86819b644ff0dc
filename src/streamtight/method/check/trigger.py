"""Did a formula that holds say anything? Which of its triggers never came true.

"If a user is bad, he is banned" holds of every run without a bad user. So each trigger of a formula gives a stronger
formula, in which what the trigger demands is impossible. If that one holds too, the trigger was never pulled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from streamtight.properties.records import without_trigger
from streamtight.properties.temporal import (
    FALSE,
    Always,
    And,
    Eventually,
    Formula,
    Implies,
    Named,
    Next,
    Now,
    Or,
    Quantified,
    Release,
    Timed,
    Until,
    conjunction,
    disjunction,
    implication,
    negation,
    next_,
)


def triggers(formula: Formula) -> Iterator[tuple[str, Formula]]:
    """What each trigger is called, and the formula that holds only if it is never pulled.

    >>> from streamtight.properties.temporal import always, eventually, now
    >>> for name, silent in triggers(always(now("order") >> eventually("shipment", within=3), during=9)):
    ...     print(name, "|", silent)
    now('order') | always(~now('order'), during=9)
    """
    match formula:
        case Implies(left, right):
            yield repr(left), negation(left)
            for name, silent in triggers(right):
                yield name, implication(left, silent)
        case And(parts) | Or(parts):
            combined: Callable[..., Formula] = conjunction if isinstance(formula, And) else disjunction
            for place, part in enumerate(parts):
                for name, silent in triggers(part):
                    yield name, combined((*parts[:place], silent, *parts[place + 1 :]))
        case Named(body):
            yield from triggers(body)
        case Next(body, n):
            for name, silent in triggers(body):
                yield name, next_(silent, n)
        case Always(body) | Eventually(body):
            for name, silent in triggers(body):
                yield name, _rebuilt(formula, [silent])
        case Until(left, right) | Release(left, right):
            for name, silent in triggers(left):
                yield name, _rebuilt(formula, [silent, right])
            for name, silent in triggers(right):
                yield name, _rebuilt(formula, [left, silent])
        case Quantified() if formula.every:
            yield f"a record of {formula.name}", Quantified(formula.records, _nothing, True, formula.name, "FALSE")
        case Now():
            no_record = without_trigger(formula)
            if no_record is not None:
                yield f"a record for {formula!r}", no_record


def _nothing(record: Any) -> Formula:
    return FALSE


def _rebuilt(formula: Timed, parts: list[Formula]) -> Formula:
    return formula._with(parts, formula.within, formula.deadline)
