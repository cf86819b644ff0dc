"""CTL: what every run, or some run, does from here. And formulas of both kinds in the notation of the textbooks.

>>> always_again = formula_of_text("AG EF out")
>>> always_again
AG EF 'out'
>>> formula_of_text("G (in -> F out)")
always(now('in') >> eventually('out'))
>>> formula_of_text("AG (out >= 2 -> AX !out)")
AG (out >= 2 -> AX ~now('out'))

A name is a pipe, and stands for "it carries an event now"; `out >= 2` for an event that is so. The LTL operators G, F,
X, U and R give the formulas of `temporal`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from streamtight.errors import FormulaError
from streamtight.program.processor import NOTHING
from streamtight.properties.temporal import (
    FALSE,
    TRUE,
    Formula,
    always,
    conjunction,
    disjunction,
    eventually,
    implication,
    negation,
    next_,
    now,
    release,
    until,
)


class Branching:
    """What should hold of the tree of all runs. Combine with `&`, `|`, `~` and `>>`."""

    __slots__ = ()

    def __and__(self, other: object) -> Branching:
        return Joined("&", (self, branching(other)))

    def __or__(self, other: object) -> Branching:
        return Joined("|", (self, branching(other)))

    def __rshift__(self, other: object) -> Branching:
        return Joined("->", (self, branching(other)))

    def __invert__(self) -> Branching:
        return Denied(self)


@dataclass(frozen=True, slots=True)
class State(Branching):
    """A test of the current step."""

    test: Formula

    def __repr__(self) -> str:
        text = repr(self.test)
        return text[4:-1] if text.startswith("now(") else text


@dataclass(frozen=True, slots=True)
class Denied(Branching):
    """Not so."""

    body: Branching

    def __repr__(self) -> str:
        return f"!{_in(self.body)}"


@dataclass(frozen=True, slots=True)
class Joined(Branching):
    """Several with `&`, `|` or `->` between them."""

    sign: str
    parts: tuple[Branching, ...]

    def __repr__(self) -> str:
        return f" {self.sign} ".join(map(_in, self.parts))


@dataclass(frozen=True, slots=True)
class Path(Branching):
    """On all runs (A) or some run (E) from here: next (X), eventually (F), always (G), until (U)."""

    runs: str
    op: str
    parts: tuple[Branching, ...]

    def __repr__(self) -> str:
        if self.op == "U":
            return f"{self.runs}[{self.parts[0]!r} U {self.parts[1]!r}]"
        return f"{self.runs}{self.op} {_in(self.parts[0])}"


def _in(part: Branching) -> str:
    return f"({part!r})" if isinstance(part, Joined) else repr(part)


def branching(given: object) -> Branching:
    """What a user means as a part of a CTL formula: one, or a test of the current step."""
    if isinstance(given, Branching):
        return given
    if isinstance(given, (bool, str, Formula)) or callable(given):
        from streamtight.properties.temporal import formula_of

        formula = formula_of(given, "a CTL formula")
        if not formula.has_future and not formula.has_past:
            return State(formula)
    raise FormulaError(
        repr(given), needed="CTL operators, or a test of one step", came="something else", hint="AG(EF('out'))"
    )


def _path(runs: str, op: str) -> Callable[..., Branching]:
    def made(body: object) -> Branching:
        return Path(runs, op, (branching(body),))

    made.__name__ = made.__qualname__ = runs + op
    made.__doc__ = (
        f"On {'all runs' if runs == 'A' else 'some run'} from here, "
        f"{'at the next step' if op == 'X' else 'at some step' if op == 'F' else 'at every step'}."
    )
    return made


AX, AF, AG = _path("A", "X"), _path("A", "F"), _path("A", "G")
EX, EF, EG = _path("E", "X"), _path("E", "F"), _path("E", "G")


def AU(left: object, right: object) -> Branching:  # noqa: N802 - the textbooks' name
    """On all runs from here, the right at some step, and the left until then."""
    return Path("A", "U", (branching(left), branching(right)))


def EU(left: object, right: object) -> Branching:  # noqa: N802
    """On some run from here, the right at some step, and the left until then."""
    return Path("E", "U", (branching(left), branching(right)))


# -- tests of what pipes carry ---------------------------------------------------------------------------------------

_SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Carried:
    """What a pipe carries, in a comparison."""

    pipe: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """How many events wait in a queue, in a comparison."""

    queue: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """A test of one step: a comparison of what pipes carry, of lengths of queues, and of values.

    It is false where a pipe that it asks for carries nothing.
    """

    left: Any
    sign: str
    right: Any

    @property
    def pipes(self) -> tuple[str, ...]:
        """The pipes that it asks for."""
        return tuple(side.pipe for side in (self.left, self.right) if isinstance(side, Carried))

    @property
    def waits(self) -> bool:
        """Whether it asks how many events wait in a queue."""
        return isinstance(self.left, Waiting) or isinstance(self.right, Waiting)

    def __call__(self, push: Any) -> bool:
        values = [_side(side, push) for side in (self.left, self.right)]
        return NOTHING not in values and bool(_SIGNS[self.sign](*values))

    def __str__(self) -> str:
        return f"{_shown(self.left)} {self.sign} {_shown(self.right)}"


def _side(side: Any, push: Any) -> Any:
    if isinstance(side, Carried):
        return push[side.pipe]
    return len(push.queues[side.queue]) if isinstance(side, Waiting) else side


def _shown(side: Any) -> str:
    return side.pipe if isinstance(side, Carried) else f"#{side.queue}" if isinstance(side, Waiting) else repr(side)


class pipe:  # noqa: N801 - it is written as a function
    """What a pipe carries, to write tests of: `pipe("out") >= 2`. False where it carries nothing."""

    __hash__ = object.__hash__

    def __init__(self, name: str) -> None:
        self._side: Carried | Waiting = Carried(name)

    @property
    def present(self) -> Formula:
        """It carries an event."""
        return now(self._side.pipe) if isinstance(self._side, Carried) else self._compared(">", 0)

    def _compared(self, sign: str, other: object) -> Formula:
        side = other._side if isinstance(other, pipe) else other
        test = Comparison(self._side, sign, side)
        return now(test, name=str(test))

    def __eq__(self, other: object) -> Formula:  # type: ignore[override]
        return self._compared("==", other)

    def __ne__(self, other: object) -> Formula:  # type: ignore[override]
        return self._compared("!=", other)

    def __lt__(self, other: object) -> Formula:
        return self._compared("<", other)

    def __le__(self, other: object) -> Formula:
        return self._compared("<=", other)

    def __gt__(self, other: object) -> Formula:
        return self._compared(">", other)

    def __ge__(self, other: object) -> Formula:
        return self._compared(">=", other)

    def __bool__(self) -> bool:
        raise FormulaError(
            str(self._side), needed="a comparison", came="a pipe as True or False", hint="pipe('out') == True"
        )


class queue(pipe):  # noqa: N801
    """How many events wait in a queue, to write tests of: `queue("C.1") < 3`."""

    def __init__(self, name: str) -> None:
        self._side = Waiting(name)


# -- texts -----------------------------------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"""\s*(?:(?P<name>[^\W\d]\w*(?:\.\d+)?)|(?P<queue>\#[^\W\d]\w*(?:\.\w+)*)|(?P<number>-?\d+)"""
    r"""|(?P<quoted>'[^']*'|"[^"]*")|(?P<sign><->|->|==|!=|<=|>=|[=<>!~&|()\[\]]))"""
)
_UNARY: dict[str, Callable[..., Any]] = {
    "G": always,
    "F": eventually,
    "X": next_,
    "AG": AG,
    "AF": AF,
    "AX": AX,
    "EG": EG,
    "EF": EF,
    "EX": EX,
}
_CONSTANTS = {"TRUE": True, "FALSE": False, "true": True, "false": False, "True": True, "False": False}
_BINARY = ("U", "R")
_EXAMPLE = "AG EF out, or G (in -> F out)"
_MOST_NESTED = 100
_MOST_DIGITS = 4_000
"""Python reads no numbers that are much longer."""


class _Token(NamedTuple):
    kind: str
    text: str
    place: int


def formula_of_text(text: str) -> Formula | Branching:
    """The LTL or CTL formula that a text means."""
    try:
        return _Parser(text).whole()
    except RecursionError:
        raise FormulaError(
            f"{text[:20]!r}...", needed="a formula of a few hundred operators", came="a deeper one", hint=_EXAMPLE
        ) from None


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[_Token] = []
        place = 0
        while text[place:].strip():
            found = _TOKEN.match(text, place)
            if found is None:
                raise self.wrong("a name, a number, an operator or a parenthesis", text[place:].strip()[:10], place)
            self.tokens.append(
                _Token(found.lastgroup or "", found[found.lastgroup or 0], found.start(found.lastgroup or 0))
            )
            place = found.end()
        self.at = 0
        self.depth = 0
        self.is_in_brackets = False
        """Whether a U belongs to the A[ or E[ before it."""

    def wrong(self, needed: str, came: str, place: int) -> FormulaError:
        text = self.text if len(self.text) < 200 else f"{self.text[:200]}..."
        return FormulaError(f"{text!r} at {place}", needed=needed, came=repr(came), hint=_EXAMPLE)

    def peek(self) -> _Token:
        return self.tokens[self.at] if self.at < len(self.tokens) else _Token("end", "the end", len(self.text))

    def take(self, *texts: str) -> _Token | None:
        token = self.peek()
        if token.text not in texts or token.kind == "quoted":
            return None
        self.at += 1
        return token

    def expect(self, text: str) -> None:
        token = self.peek()
        if self.take(text) is None:
            raise self.wrong(f"'{text}'", token.text, token.place)

    def whole(self) -> Formula | Branching:
        found: Formula | Branching = self.equivalence()
        token = self.peek()
        if token.kind != "end":
            raise self.wrong("an operator, or the end", token.text, token.place)
        return found

    def equivalence(self) -> Any:
        left = self.implied()
        while self.take("<->"):
            right = self.implied()
            left = self.joined("&", self.joined("->", left, right), self.joined("->", right, left))
        return left

    def implied(self) -> Any:
        left = self.either()
        return self.joined("->", left, self.implied()) if self.take("->") else left

    def either(self) -> Any:
        left = self.both()
        while self.take("|"):
            left = self.joined("|", left, self.both())
        return left

    def both(self) -> Any:
        left = self.binary()
        while self.take("&"):
            left = self.joined("&", left, self.binary())
        return left

    def binary(self) -> Any:
        left = self.unary()
        token = self.take(*(_BINARY if not self.is_in_brackets else ("R",)))
        if token is None:
            return left
        right = self.unary()
        self.no_ctl(token, left, right)
        return (until if token.text == "U" else release)(left, right)

    def unary(self) -> Any:
        self.depth += 1
        if self.depth > _MOST_NESTED:
            raise self.wrong(f"at most {_MOST_NESTED} operators inside each other", "more", self.peek().place)
        found = self.operated()
        self.depth -= 1
        return found

    def operated(self) -> Any:
        token = self.peek()
        if self.take("!", "~"):
            body = self.unary()
            return Denied(body) if isinstance(body, Branching) else negation(body)
        if token.kind == "name" and token.text in _UNARY:
            self.at += 1
            body = self.unary()
            if len(token.text) == 1:
                self.no_ctl(token, body)
                return _UNARY[token.text](body)
            return self.ctl(token, lambda: _UNARY[token.text](body))
        if (
            token.text in ("A", "E")
            and self.tokens[self.at + 1 : self.at + 2][:1]
            and self.tokens[self.at + 1].text == "["
        ):
            self.at += 2
            before, self.is_in_brackets = self.is_in_brackets, True
            left = self.equivalence()
            self.expect("U")
            right = self.equivalence()
            self.is_in_brackets = before
            self.expect("]")
            return self.ctl(token, lambda: (AU if token.text == "A" else EU)(left, right))
        if self.take("("):
            before, self.is_in_brackets = self.is_in_brackets, False
            found = self.equivalence()
            self.is_in_brackets = before
            self.expect(")")
            return found
        return self.atom()

    def ctl(self, token: _Token, made: Callable[[], Branching]) -> Branching:
        try:
            return made()
        except FormulaError:
            raise self.wrong(
                "CTL operators or tests of one step inside", f"{token.text} of an LTL formula", token.place
            ) from None

    def no_ctl(self, token: _Token, *parts: object) -> None:
        if any(isinstance(part, Branching) for part in parts):
            raise self.wrong("A or E before each operator around CTL", token.text, token.place)

    def joined(self, sign: str, left: Any, right: Any) -> Any:
        if isinstance(left, Branching) or isinstance(right, Branching):
            return self.ctl(self.peek(), lambda: Joined(sign, (branching(left), branching(right))))
        if sign == "->":
            return implication(left, right)
        return (conjunction if sign == "&" else disjunction)((left, right))

    def atom(self) -> Formula:
        left = self.side()
        token = self.take("==", "=", "!=", "<=", ">=", "<", ">")
        if token is None:
            if isinstance(left, Carried):
                return now(left.pipe)
            if isinstance(left, bool):
                return TRUE if left else FALSE
            raise self.wrong("a comparison", self.peek().text, self.peek().place)
        test = Comparison(left, "==" if token.text == "=" else token.text, self.side())
        return now(test, name=str(test))

    def side(self) -> Any:
        token = self.peek()
        self.at += 1
        match token.kind:
            case "name" if token.text in _CONSTANTS:
                return _CONSTANTS[token.text]
            case "name":
                return Carried(token.text)
            case "queue":
                return Waiting(token.text[1:])
            case "number" if len(token.text) < _MOST_DIGITS:
                return int(token.text)
            case "quoted":
                return token.text[1:-1]
        raise self.wrong("a pipe, a value or a formula", token.text, token.place)
