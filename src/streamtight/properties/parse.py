"""Formulas as text, for files and command lines; the syntax is the one in which formulas print.

>>> shop = {"order": lambda letter: bool(letter["orders"]), "shipped": lambda letter: bool(letter["shipped"])}
>>> formula = parse("always(order >> eventually(shipped, within=2), during=3)", shop)
>>> formula
always(order >> eventually(shipped, within=2), during=3)
>>> parse(repr(formula), shop) == formula
True

A name is an atom that the caller gives; a quoted name is an atom of letters that are sets of names. Timeouts are
letters, or durations such as 5s, 10min, 2h, 1d or 1h30min. The connectives are written `&`, `|`, `~` and `>>`, or
`and`, `or`, `not` and `->`; `!` is a `~`. A comment runs from `#` to the end of its line.

Where Python and logic would read a text differently, parentheses are asked for: where an implication meets `&`, `|` or
another implication, and where `&`, `|` or `>>` meets `and`, `or` or `not`.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, NoReturn

from streamtight.errors import FormulaError
from streamtight.properties.temporal import (
    FALSE,
    TRUE,
    UNITS,
    Formula,
    Operand,
    always,
    conjunction,
    disjunction,
    eventually,
    formula_of,
    historically,
    implication,
    negation,
    next_,
    now,
    once,
    previously,
    release,
    since,
    until,
)

MOST_NESTED = 100
"""Parentheses deeper than this are refused: they are no formula that a person wrote."""


def parse(text: str, atoms: Mapping[str, Operand] | None = None) -> Formula:
    """The formula that this text means, where each name is one of the atoms: a function of a letter, or a formula."""
    if not isinstance(text, str):
        raise FormulaError("parse(text)", needed="a text", came=repr(text), hint='parse("always(ok)", {"ok": test})')
    return _Parser(text, _named(atoms or {})).whole()


def _named(atoms: Mapping[str, Operand]) -> dict[str, Formula]:
    named = {}
    for name, given in atoms.items():
        if not isinstance(name, str) or not name.isidentifier() or name in _WORDS:
            raise FormulaError(
                "parse(atoms=...)",
                needed="names of letters, digits and _, which have no meaning of their own",
                came=repr(name),
                hint='{"is_empty": lambda letter: ...}',
            )
        is_test = callable(given) and not isinstance(given, Formula | type)
        named[name] = now(given, name=name) if is_test else formula_of(given, f"the atom {name}")  # type: ignore[arg-type]
    return named


class _Operator(NamedTuple):
    """What stands before a parenthesis."""

    make: Callable[..., Formula]
    bodies: tuple[str, ...]
    option: str | None = None
    """The name of its last argument, which can be left out."""

    def text(self, name: str) -> str:
        """How it is written."""
        option = [] if self.option is None else [f"{self.option}=..."]
        return f"{name}({', '.join([*self.bodies, *option])})"


_OPERATORS = {
    "next": _Operator(next_, ("formula",), "n"),
    "eventually": _Operator(eventually, ("formula",), "within"),
    "always": _Operator(always, ("formula",), "during"),
    "until": _Operator(until, ("left", "right"), "within"),
    "release": _Operator(release, ("left", "right"), "within"),
    "previously": _Operator(previously, ("formula",)),
    "once": _Operator(once, ("formula",), "within"),
    "historically": _Operator(historically, ("formula",), "during"),
    "since": _Operator(since, ("left", "right"), "within"),
}
_CONSTANTS = {"TRUE": TRUE, "FALSE": FALSE, "True": TRUE, "False": FALSE}
_NEGATIONS = ("~", "!", "not")
_IMPLICATIONS = (">>", "->")
_CONJUNCTIONS = ("&", "and")
_DISJUNCTIONS = ("|", "or")
_CONNECTIVES = (*_IMPLICATIONS, *_CONJUNCTIONS, *_DISJUNCTIONS)
_PYTHON_WORDS = ("and", "or", "not")
_PYTHON_SIGNS = ("&", "|", ">>")
_WORDS = frozenset({*_PYTHON_WORDS, *_CONSTANTS, *_OPERATORS, "now", "forall", "exists"})

_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
    |(?P<name>[^\W\d]\w*)
    |(?P<number>\d[\w.]*)
    |(?P<quoted>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")
    |(?P<sign>>>|->|&(?!&)|\|(?!\|)|=(?![=>])|!(?!=)|[~(),])""",
    re.VERBOSE,
)
_OTHERWISE = {"&&": "&", "||": "|", "=>": ">>"}
"""What somebody may write, and how it is written here."""
_COUNT = re.compile(r"\d{1,18}|\d{1,3}(_\d{3}){1,5}")
_DURATION = re.compile(r"(\d{1,18})(\.\d{1,6})?([^\W\d_]+)")


def _duration(text: str) -> timedelta | None:
    """The duration that this text means, if it means one."""
    total, place = timedelta(0), 0
    while place < len(text):
        found = _DURATION.match(text, place)
        if found is None or found[3] not in UNITS:
            return None
        total += int(found[1]) * UNITS[found[3]] + float(found[2] or 0) * UNITS[found[3]]
        place = found.end()
    return total


class _Token(NamedTuple):
    kind: str
    text: str
    place: int

    @property
    def told(self) -> str:
        return "the end of the text" if self.kind == "end" else repr(self.text)


class _Parser:
    """Reads a text from left to right, one method for each kind of phrase."""

    def __init__(self, text: str, atoms: Mapping[str, Formula]) -> None:
        self.text = text
        self.atoms = atoms
        self.depth = 0
        self.tokens = self._read_tokens()
        self.at = 0

    def _read_tokens(self) -> list[_Token]:
        tokens, place = [], 0
        while place < len(self.text):
            found = _TOKEN.match(self.text, place)
            if found is None:
                self._refuse_sign(place)
            if found.lastgroup != "space":
                tokens.append(_Token(str(found.lastgroup), found.group(), place))
            place = found.end()
        return [*tokens, _Token("end", "", len(self.text))]

    # -- phrases -----------------------------------------------------------------------------------------------------

    def whole(self) -> Formula:
        """The whole text."""
        formula = self._formula()
        if self._next.kind != "end":
            self._refuse(self._next, "an operator, or the end", "&, | or >> between two formulas")
        return formula

    def _formula(self) -> Formula:
        """A formula up to the end of its parentheses."""
        self.depth += 1
        if self.depth > MOST_NESTED:
            self._refuse(self._next, f"parentheses not deeper than {MOST_NESTED}", "names for parts of the formula")
        negations: list[_Token] = []
        signs: list[_Token] = []
        parts = [self._negation(negations)]
        while self._next.kind != "quoted" and self._next.text in _CONNECTIVES:
            signs.append(self._take())
            parts.append(self._negation(negations))
        self.depth -= 1
        self._require_one_reading(signs, negations)
        if signs and signs[0].text in _IMPLICATIONS:
            return implication(*parts)
        choices = [[parts[0]]]
        for sign, part in zip(signs, parts[1:], strict=True):
            if sign.text in _DISJUNCTIONS:
                choices.append([])
            choices[-1].append(part)
        return disjunction(conjunction(choice) for choice in choices)

    def _require_one_reading(self, signs: Sequence[_Token], negations: Sequence[_Token]) -> None:
        arrows = [sign for sign in signs if sign.text in _IMPLICATIONS]
        if len(arrows) > 1:
            self._refuse(arrows[1], "parentheses around one of two implications", "a >> (b >> c)")
        if arrows and len(signs) > 1:
            arrow = arrows[0].text
            other = next(sign for sign in signs if sign is not arrows[0])
            hint = f"(a {other.text} b) {arrow} c, or a {other.text} (b {arrow} c)"
            self._refuse(other, f"parentheses where {arrow!r} and {other.text!r} meet", hint)
        # Python's `not a & b` is not(a & b), and its `a and b | c` is a and (b | c).
        words = [sign for sign in (*negations, *signs) if sign.text in _PYTHON_WORDS]
        others = [sign for sign in signs if sign.text in _PYTHON_SIGNS]
        if words and others:
            needed = f"parentheses where {words[0].text!r} and {others[0].text!r} meet"
            self._refuse(max(words[0], others[0], key=lambda sign: sign.place), needed, "& | ~ >>, or and or not ->")

    def _negation(self, negations: list[_Token]) -> Formula:
        count = 0
        while self._next.kind != "quoted" and self._next.text in _NEGATIONS:
            negations.append(self._take())
            count += 1
        formula = self._single()
        return negation(formula) if count % 2 else formula

    def _single(self) -> Formula:
        token = self._take()
        if token.kind == "quoted":
            return now(self._unquoted(token))
        if token.text == "(":
            formula = self._formula()
            self._expect(")")
            return formula
        if token.kind != "name" or token.text in _PYTHON_WORDS:
            self._refuse(token, "a formula", "a name, or an operator such as always(name, during=5)")
        is_call = self._next.kind == "sign" and self._next.text == "("
        if token.text in _CONSTANTS:
            return _CONSTANTS[token.text]
        if is_call and token.text == "now":
            return self._now()
        if is_call and token.text in _OPERATORS:
            return self._operator(token)
        if is_call or token.text not in self.atoms:
            self._refuse_name(token, is_call)
        return self.atoms[token.text]

    def _now(self) -> Formula:
        self._expect("(")
        token = self._take()
        if token.kind == "quoted":
            formula = now(self._unquoted(token))
        elif token.text in self.atoms:
            formula = self.atoms[token.text]
        elif token.kind == "name":
            self._refuse_name(token, False)
        else:
            self._refuse(token, "the name of an atom", "now(name), or now('name') for letters that are sets of names")
        self._expect(")")
        return formula

    def _operator(self, name: _Token) -> Formula:
        operator = _OPERATORS[name.text]
        written = operator.text(name.text)
        self._expect("(")
        bodies: list[Formula] = []
        options: dict[str, Any] = {}
        while True:
            token = self._next
            if token.kind == "name" and self.tokens[self.at + 1].text == "=":
                option = self._option(operator, written)
                options[option] = self._timeout(is_count=option == "n")
                break
            if len(bodies) == len(operator.bodies):
                self._refuse(token, f"{len(operator.bodies)} formula{'s'[: len(bodies) - 1]} and no more", written)
            bodies.append(self._formula())
            if self._next.text != ",":
                break
            self._take()
        if len(bodies) < len(operator.bodies):
            self._refuse(self._next, f"{_formulas(len(operator.bodies))} for {name.text}", written)
        self._expect(")", written)
        try:
            return operator.make(*bodies, **options)
        except FormulaError as error:
            self._refuse(name, error.needed, error.hint, came=error.came)

    def _option(self, operator: _Operator, written: str) -> str:
        token = self._take()
        if token.text != operator.option:
            needed = f"{operator.option}=" if operator.option else "no further argument"
            self._refuse(token, needed, written)
        self._take()
        return token.text

    def _timeout(self, *, is_count: bool) -> int | timedelta:
        """A number of letters, or a duration."""
        token = self._take()
        if is_count:
            if token.kind != "number" or not _COUNT.fullmatch(token.text):
                self._refuse(token, "a number of letters", "n=2")
            return int(token.text)
        try:
            within = int(token.text) if _COUNT.fullmatch(token.text) else _duration(token.text)
        except OverflowError:
            within = None
        if token.kind != "number" or not within:
            units = ", ".join(UNITS)
            self._refuse(token, f"a timeout above 0: letters, or a duration in {units}", "5, 10s, 2min or 1h30min")
        return within

    # -- tokens ------------------------------------------------------------------------------------------------------

    @property
    def _next(self) -> _Token:
        return self.tokens[self.at]

    def _take(self) -> _Token:
        token = self._next
        self.at += token.kind != "end"
        return token

    def _expect(self, sign: str, written: str | None = None) -> None:
        token = self._take()
        if token.text != sign or token.kind != "sign":
            self._refuse(token, repr(sign), written or f"{sign!r} here")

    def _unquoted(self, token: _Token) -> str:
        try:
            return str(ast.literal_eval(token.text))
        except (SyntaxError, ValueError):
            self._refuse(token, "a quoted name", r"'name'; a backslash is written \\")

    # -- refusals ----------------------------------------------------------------------------------------------------

    def _refuse_sign(self, place: int) -> NoReturn:
        sign = self.text[place]
        if sign in "'\"":
            self._refuse(_Token("sign", sign, place), "a quoted name that ends on its line", "a closing quotation mark")
        for wrong, right in _OTHERWISE.items():
            if self.text.startswith(wrong, place):
                self._refuse(_Token("sign", wrong, place), "a sign that formulas have", right)
        needed = "a name, a number, a connective or parentheses"
        self._refuse(_Token("sign", sign, place), needed, "a name for what you mean, as one of the atoms")

    def _refuse_name(self, token: _Token, is_call: bool) -> NoReturn:
        name = token.text
        if is_call and name in self.atoms:
            self._refuse(self._next, f"nothing in parentheses after the atom {name}", name)
        if name in ("forall", "exists"):
            hint = f'parse("every_order", {{"every_order": {name}(...)}})'
            self._refuse(token, "a formula without functions: a quantifier has a name, as one of the atoms", hint)
        if not is_call and (name in _OPERATORS or name == "now"):
            text = _OPERATORS[name].text(name) if name in _OPERATORS else "now(name)"
            self._refuse(self._next, f"'(' after {name}", text)
        known = [*_OPERATORS, "now"] if is_call else [*self.atoms, *_CONSTANTS]
        close = difflib.get_close_matches(name, known, n=3)
        given = ", ".join(self.atoms) or "none were given"
        hint = " or ".join(close) or (f"one of {', '.join(known)}" if is_call else f"one of the atoms: {given}")
        self._refuse(token, "an operator" if is_call else "an atom", hint)

    def _refuse(self, token: _Token, needed: str, hint: str, *, came: str | None = None) -> NoReturn:
        before = self.text[: token.place]
        line, column = before.count("\n"), token.place - (before.rfind("\n") + 1)
        where = f"column {column + 1} of the formula"
        if "\n" in self.text:
            where = f"line {line + 1}, {where}"
        shown = self.text.split("\n")[line].replace("\t", " ")
        where = f"{where}\n    {shown}\n    {' ' * column}^"
        raise FormulaError(where, needed=needed, came=came or token.told, hint=hint)


def _formulas(count: int) -> str:
    return "1 formula" if count == 1 else f"{count} formulas"
