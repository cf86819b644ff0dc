"""Formulas as automata that read words without end: which ways are there to keep a formula?

A state of the automaton is what is still owed; reading a letter is one way to pay for now and to owe for later. A word
keeps the formula if there is a way that postpones nothing for ever. Nothing owed means that all words do from here on.

>>> from streamtight.properties.temporal import always, eventually
>>> keeping = automaton(always(eventually("a")))
>>> keeping.atoms
(now('a'),)
>>> for move in keeping.moves(keeping.first):
...     print(f"true {move.true:b}, false {move.false:b}, then {len(move.owed)} owed, postponed {set(move.postponed)}")
true 1, false 0, then 1 owed, postponed set()
true 0, false 0, then 2 owed, postponed {0}

The tableau of Gerth, Peled, Vardi and Wolper, with what is postponed on the moves (Couvreur). Timeouts count down
in what is owed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from streamtight.errors import FormulaError
from streamtight.properties.temporal import (
    Always,
    And,
    Constant,
    Eventually,
    Formula,
    Implies,
    Named,
    Next,
    Not,
    Now,
    Or,
    Release,
    Until,
)

Owed = tuple[Any, ...]
"""A formula whose negations are at its atoms: ("atom", place, value), ("and", a, b), ("until", a, b, within), ..."""
Debts = frozenset[Owed]

TRUE: Owed = ("true",)
FALSE: Owed = ("false",)


@dataclass(frozen=True, slots=True)
class Move:
    """One way to read a letter: which atoms must be true and which false, what is owed then, what was postponed."""

    true: int
    false: int
    owed: Debts
    postponed: frozenset[int]

    def reads(self, letter: int) -> bool:
        """Whether it is a way to read this letter, given as the bits of the atoms that are true."""
        return letter & self.true == self.true and not letter & self.false


@dataclass
class Automaton:
    """The ways to keep a formula. `postponable` is how many things can be put off."""

    atoms: tuple[Now, ...]
    first: Debts
    postponable: int = 0
    _untils: dict[Owed, int] = field(default_factory=dict)
    _moves: dict[Debts, tuple[Move, ...]] = field(default_factory=dict)

    def moves(self, owed: Debts) -> tuple[Move, ...]:
        """All ways to read a letter when this is owed."""
        known = self._moves.get(owed)
        if known is None:
            found = list(dict.fromkeys(self._expanded(list(owed), 0, 0, frozenset(), frozenset())))
            known = self._moves[owed] = tuple(
                move for move in found if not any(_is_better(other, move) for other in found if other != move)
            )
        return known

    def _expanded(
        self, todo: list[Owed], true: int, false: int, owed: Debts, postponed: frozenset[int]
    ) -> Iterator[Move]:
        todo = list(todo)
        while todo:
            part = todo.pop()
            match part[0]:
                case "true":
                    continue
                case "false":
                    return
                case "atom":
                    bit = 1 << part[1]
                    true, false = (true | bit, false) if part[2] else (true, false | bit)
                    if true & false:
                        return
                case "and":
                    todo += part[1:]
                case "or":
                    for each in part[1:]:
                        yield from self._expanded([*todo, each], true, false, owed, postponed)
                    return
                case "next":
                    owed |= {part[1] if part[2] == 1 else ("next", part[1], part[2] - 1)}
                case "until":
                    _, left, right, within = part
                    yield from self._expanded([*todo, right], true, false, owed, postponed)
                    if within == 1:
                        return
                    later = part if within is None else ("until", left, right, within - 1)
                    if within is None:
                        postponed |= {self._untils[part]}
                    owed |= {later}
                    todo.append(left)
                case "release":
                    _, left, right, within = part
                    todo.append(right)
                    if within == 1:
                        continue
                    yield from self._expanded([*todo, left], true, false, owed, postponed)
                    owed |= {part if within is None else ("release", left, right, within - 1)}
        yield Move(true, false, owed, postponed)


def _is_better(one: Move, other: Move) -> bool:
    """Whether a way asks for no more than another, so that the other is not needed."""
    return (
        one.true & other.true == one.true
        and one.false & other.false == one.false
        and one.owed <= other.owed
        and one.postponed <= other.postponed
    )


def is_safe(formula: Formula, *, is_kept: bool = True) -> bool:
    """Whether a run that breaks a formula has broken it after finitely many letters: it promises nothing without end.

    >>> from streamtight.properties.temporal import always, eventually
    >>> is_safe(always(eventually("a", within=3))), is_safe(always(eventually("a")))
    (True, False)
    """
    match formula:
        case Not():
            return is_safe(formula.body, is_kept=not is_kept)
        case Implies():
            return is_safe(formula.left, is_kept=not is_kept) and is_safe(formula.right, is_kept=is_kept)
        case Eventually() | Until() if formula.within is None and is_kept:
            return False
        case Always() | Release() if formula.within is None and not is_kept:
            return False
    return all(is_safe(part, is_kept=is_kept) for part in formula.parts)


def automaton(formula: Formula, *, denied: bool = False) -> Automaton:
    """The automaton of a formula, or of what it is to break it."""
    atoms: dict[Now, int] = {}
    first = _normal(formula, not denied, atoms)
    made = Automaton(tuple(atoms), frozenset([first]) - {TRUE})
    _collect(first, made._untils)
    made.postponable = len(made._untils)
    return made


def _collect(part: Owed, untils: dict[Owed, int]) -> None:
    if part[0] == "until" and part[3] is None:
        untils.setdefault(part, len(untils))
    for each in part[1:]:
        if isinstance(each, tuple):
            _collect(each, untils)


def _normal(formula: Formula, is_kept: bool, atoms: dict[Now, int]) -> Owed:
    """The formula, or its denial, with negations only at atoms."""

    def part(each: Formula, kept: bool = is_kept) -> Owed:
        return _normal(each, kept, atoms)

    match formula:
        case Constant():
            return TRUE if formula.value == is_kept else FALSE
        case Named():
            return part(formula.body)
        case Not():
            return part(formula.body, not is_kept)
        case And() | Or():
            is_and = isinstance(formula, And) == is_kept
            return _joined("and" if is_and else "or", [part(each) for each in formula.parts])
        case Implies():
            left, right = part(formula.left, not is_kept), part(formula.right)
            return _joined("or" if is_kept else "and", [left, right])
        case Next():
            return ("next", part(formula.body), formula.n)
        case Eventually() | Always() | Until() | Release() if formula.reads_time:
            pass
        case Eventually() | Always():
            is_until = isinstance(formula, Eventually) == is_kept
            return ("until" if is_until else "release", TRUE if is_until else FALSE, part(formula.body), formula.within)
        case Until() | Release():
            is_until = isinstance(formula, Until) == is_kept
            return ("until" if is_until else "release", part(formula.left), part(formula.right), formula.within)
        case Now():
            return ("atom", atoms.setdefault(formula, len(atoms)), is_kept)
    raise FormulaError(
        repr(formula),
        needed="operators of the future with timeouts in steps",
        came=type(formula).__name__.lower(),
        hint="always, eventually, until, release, next; a pipeline or a query for what was before",
    )


def _joined(op: str, parts: list[Owed]) -> Owed:
    neutral, absorbing = (TRUE, FALSE) if op == "and" else (FALSE, TRUE)
    kept = [each for each in dict.fromkeys(parts) if each != neutral]
    if absorbing in kept:
        return absorbing
    return neutral if not kept else kept[0] if len(kept) == 1 else (op, *kept)
