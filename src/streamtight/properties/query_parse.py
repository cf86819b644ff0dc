"""Queries as text, for files and command lines; the syntax is the one in which queries print.

>>> query = parse_query("once(fill_with(iter(atom(v, cur), 0, add), 0) > 100)")
>>> query.run([("v", 70), ("v", 50), ("w", 0)], tags=("v", "w"))
[False, False, True, True]
>>> str(parse_query(str(query))) == str(query)
True

Queries are put together by `&`, `|`, `~`, `->` and `<->`, compared, and calculated with; a number among them is a query
that always has this value. What is in an atom is about the current item: `cur`, `cur.price`, `cur["unit price"]`. What
puts values together is an operation by its name, as `add`, `max`, `first` or `second`, or a term over these values,
which are called x0, x1, x2 or x, y, z. The queries of the library have their names here, too.

>>> parse_query("count() >= 2 -> abs(change(cur.price)) < 10")
((iter(any(1), 0, add) >= iter(any(0), 2, first)) -> \
(combine(or(eps(0), split(iter(any(cur.price), 0, second), any(cur.price), x1 - x0)), abs) < iter(any(0), 10, first)))

A comment runs from `#` to the end of its line. Where two comparisons or two implications meet, parentheses are asked
for.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, NoReturn

from streamtight.errors import QueryError
from streamtight.properties import query as combinators
from streamtight.properties import query_library as library
from streamtight.properties.query import Boolean, Combine, Comparison, Query, query_of
from streamtight.properties.term import (
    AND,
    AT_LEAST,
    AT_MOST,
    CHOOSE,
    EQUAL,
    IFF,
    IMPLIES,
    LESS,
    MORE,
    NEGATE,
    NOT,
    OPERATIONS,
    OR,
    UNEQUAL,
    Apply,
    Constant,
    Operation,
    Slot,
    Term,
    cur,
)

MOST_NESTED = 150
"""Parentheses deeper than this are refused, before they are too deep for Python."""


def parse_query(text: str) -> Query:
    """The query that this text means."""
    if not isinstance(text, str):
        raise QueryError("parse_query(text)", needed="a text", came=repr(text), hint='parse_query("count() > 3")')
    return _Parser(text).whole()


class _Kind(Enum):
    """What an argument is."""

    QUERY = "a query"
    ITEM = "a term over cur"
    PLAIN = "a value"
    OPERATION = "an operation"
    TAG = "a tag"
    TAGS = "tags in parentheses"
    COUNT = "a number of items"


_KINDS = {
    **dict.fromkeys(("one", "other", "query"), _Kind.QUERY),
    **dict.fromkeys(("term", "condition", "where"), _Kind.ITEM),
    **dict.fromkeys(("start", "before", "value", "distance"), _Kind.PLAIN),
    **dict.fromkeys(("tag", "marker", "opens", "closes"), _Kind.TAG),
    "op": _Kind.OPERATION,
    "but": _Kind.TAGS,
    "n": _Kind.COUNT,
}
"""What an argument is, by the name that it has in Python."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A function that makes a query."""

    make: Callable[..., Query]
    places: tuple[str, ...]
    """The arguments that need no name."""
    names: tuple[str, ...]
    """All arguments."""
    required: tuple[str, ...]

    def text(self, name: str) -> str:
        """How it is written."""
        others = [each for each in self.names if each not in self.places]
        return f"{name}({', '.join([*self.places, *(f'{each}=...' for each in others)])})"


def _call(make: Callable[..., Query]) -> _Call:
    parameters = inspect.signature(make).parameters.values()
    return _Call(
        make,
        tuple(each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD),
        tuple(each.name for each in parameters),
        tuple(each.name for each in parameters if each.default is each.empty),
    )


_CALLS = {
    **{
        make.__name__.rstrip("_"): _call(make)
        for make in (
            *(combinators.atom, combinators.any_, combinators.eps, combinators.split, combinators.iter_),
            *(combinators.prefix_sum, combinators.fill, combinators.fill_with, combinators.constant, combinators.agree),
            *(combinators.previously, combinators.once, combinators.historically),
            *(combinators.since, combinators.weak_since),
            *(library.current, library.holds, library.change, library.count, library.total, library.mean),
            *(library.variance, library.deviation, library.least, library.greatest, library.drawdown),
            *(library.window, library.mean_of_last, library.always_within),
            *(library.per, library.each, library.top, library.sessions),
            *(library.once_within, library.historically_within, library.since_within),
        )
    },
}
_MANY = {"or": "or(one, other, ...)", "combine": "combine(one, other, ..., op)"}
"""Functions of any number of queries."""
_COMPARISONS = (LESS, AT_MOST, MORE, AT_LEAST, EQUAL, UNEQUAL)
_CONNECTIVES = (NOT, AND, OR, IMPLIES, IFF)
_BETWEEN = {each.symbol: each for each in OPERATIONS.values() if each.symbol is not None and each.arity == 2}
_BEFORE = {each.symbol: each for each in OPERATIONS.values() if each.symbol is not None and each.arity == 1}
_NEEDS_PARENTHESES = {
    LESS.strength: ("comparisons", "a < b & b < c, or (a < b) == (b < c)"),
    IMPLIES.strength: ("implications", "a -> (b -> c), or (a -> b) -> c"),
}
"""Strengths at which two that meet can be read in two ways."""
_CONSTANTS = {"True": True, "False": False, "None": None, "inf": math.inf, "nan": math.nan}
_CHOICES: dict[str, Term] = {"first": Slot(0), "second": Slot(1)}
_LETTERS = {"x": 0, "y": 1, "z": 2}
_SLOT = re.compile(r"x(\d{1,3})")

_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
    |(?P<name>[^\W\d]\w*)
    |(?P<number>(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?!\w))
    |(?P<quoted>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")
    |(?P<sign><->|->|<=(?!>)|>=|==|!=|//|<(?!>)|>(?!>)|&(?!&)|\|(?!\|)|\*(?!\*)|=(?!>)|[~+\-/%().,\[\]{}:])""",
    re.VERBOSE,
)
_OTHERWISE = {"&&": "&", "||": "|", "=>": "->", ">>": "->", "<=>": "<->", "<>": "!=", "**": "x * x", "!": "~"}
"""What somebody may write, and how it is written here."""
_WORDS = {"and": "&", "or": "|", "not": "~"}


class _Token(NamedTuple):
    kind: str
    text: str
    place: int

    @property
    def told(self) -> str:
        return "the end of the text" if self.kind == "end" else repr(self.text)

    def is_sign(self, text: str) -> bool:
        return self.kind == "sign" and self.text == text


class _Parser:
    """Reads a text from left to right.

    One method reads queries and terms, as they are put together by the same signs; `about` says what may be in them: a
    query, a term over the current item, a value, or a term over so many values.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.depth = 0
        self.arity = 0
        """How many values the operation that is read is about."""
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

    def whole(self) -> Query:
        """The whole text."""
        query = self._as_query(self._phrase(_Kind.QUERY))
        token = self._next
        if token.kind == "name" and token.text in _WORDS:
            self._refuse(token, "a sign between two queries", _WORDS[token.text])
        if token.kind != "end":
            hint = "==" if token.is_sign("=") else "&, | or -> between them"
            self._refuse(token, "a sign between two queries, or the end", hint)
        return query

    def _phrase(self, about: _Kind, weakest: int = 0) -> Query | Term:
        """A query or a term, as far as signs go that bind at least so much."""
        self.depth += 1
        if self.depth > MOST_NESTED:
            self._refuse(self._next, f"parentheses not deeper than {MOST_NESTED}", "a query with fewer parts")
        found = self._operand(about)
        is_open = 99  # signs that bind more than this were read already
        while self._next.kind == "sign" and self._next.text in _BETWEEN:
            operation = _BETWEEN[self._next.text]
            strength = operation.strength
            if strength < weakest:
                break
            if strength == is_open and strength in _NEEDS_PARENTHESES:
                those, hint = _NEEDS_PARENTHESES[strength]
                self._refuse(self._next, f"parentheses where two {those} meet", hint)
            sign = self._take()
            found = self._made(sign, operation, [found, self._phrase(about, strength + 1)], about)
            is_open = strength
        self.depth -= 1
        return found

    def _operand(self, about: _Kind) -> Query | Term:
        token = self._take()
        if token.kind == "number" or token.text in _CONSTANTS:
            return Constant(self._number(token))
        if token.kind == "quoted":
            return Constant(self._unquoted(token))
        if token.kind == "sign" and token.text in _BEFORE:
            return self._prefixed(token, about)
        if token.kind == "sign" and token.text in "([{":
            return self._parenthesized(token, about)
        if token.kind != "name":
            self._refuse(token, about.value, _HINTS[about])
        if token.text in _WORDS and not self._next.is_sign("("):
            self._refuse(token, about.value, f"{_WORDS[token.text]} instead of {token.text}")
        if about is _Kind.QUERY:
            return self._named_query(token)
        return self._named_term(token, about)

    def _prefixed(self, sign: _Token, about: _Kind) -> Query | Term:
        operation = _BEFORE[sign.text]
        if operation is NEGATE and (self._next.kind == "number" or self._next.text == "inf"):
            value = self._number(self._take())
            if value != 0 or isinstance(value, float):  # -0 is no number of its own
                return Constant(-value)
            return Apply(NEGATE, (Constant(value),)) if about is not _Kind.QUERY else Constant(value)
        return self._made(sign, operation, [self._phrase(about, operation.strength)], about)

    def _parenthesized(self, opening: _Token, about: _Kind) -> Query | Term:
        """What is in parentheses, or a tuple, list, set or dict of plain values."""
        begin = self.at
        if opening.text == "(" and not self._next.is_sign(")"):
            inner = self._phrase(about)
            if not self._next.is_sign(","):
                self._expect(")")
                return inner
        self.at = begin
        depth = 1
        while depth:
            token = self._take()
            if token.kind == "end":
                self._refuse(token, f"{')]}'['([{'.index(opening.text)]!r}", "as many closing as opening ones")
            depth += (token.kind == "sign") * ((token.text in "([{") - (token.text in ")]}"))
        try:
            return Constant(ast.literal_eval(self.text[opening.place : token.place + 1]))
        except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
            self._refuse(opening, about.value, _HINTS[about])

    def _made(self, sign: _Token, operation: Operation, those: Sequence[Query | Term], about: _Kind) -> Query | Term:
        if about is not _Kind.QUERY:
            return Apply(operation, tuple(each for each in those if isinstance(each, Term)))
        try:
            values = [each.value for each in those if isinstance(each, Constant)]
            if len(values) == len(those) and all(isinstance(each, int | float) for each in values):
                return Constant(operation.function(*values))
            queries = tuple(map(self._as_query, those))
            if operation in _COMPARISONS:
                return Comparison(operation, *queries)
            if operation in _CONNECTIVES:
                return Boolean(operation, queries)
            return Combine(queries, Apply(operation, tuple(map(Slot, range(len(queries))))))
        except QueryError as error:
            self._refuse(sign, error.needed, error.hint, came=error.came)
        except (ArithmeticError, TypeError, ValueError) as error:
            self._refuse(sign, "values that can be calculated with", "another value", came=str(error))

    def _as_query(self, found: Query | Term) -> Query:
        return query_of(found.value if isinstance(found, Constant) else found)

    # -- names -------------------------------------------------------------------------------------------------------

    def _named_query(self, name: _Token) -> Query | Term:
        text = name.text if name.text in _CALLS else name.text.rstrip("_")
        if not self._next.is_sign("("):
            if text in _CALLS or text in _MANY:
                written = _MANY[text] if text in _MANY else _CALLS[text].text(text)
                self._refuse(self._next, f"'(' after {name.text}", written)
            self._refuse_name(name, [*_CALLS, *_MANY], "a query")
        try:
            if text in _MANY:
                return self._made_of_many(text)
            if text in _CALLS:
                return self._called(_CALLS[text], text)
        except QueryError as error:
            if error.where.startswith(_WHERE):
                raise
            self._refuse(name, error.needed, error.hint, came=error.came)
        if name.text not in OPERATIONS:
            self._refuse_name(name, [*_CALLS, *_MANY, *OPERATIONS], "a query")
        return self._applied(name, _Kind.QUERY)

    def _made_of_many(self, name: str) -> Query:
        """A query of any number of queries, after which an operation may come."""
        self._expect("(")
        count = self._count_arguments()
        with_operation = name == "combine"
        those: list[Query] = []
        while len(those) < count - with_operation:
            those.append(self._as_query(self._phrase(_Kind.QUERY)))
            if len(those) < count:
                self._expect(",")
        if not with_operation:
            self._expect(")", _MANY[name])
            return combinators.or_(*those)
        if not those:
            self._refuse(self._next, "queries, and an operation on their values", _MANY[name])
        operation = self._operation(len(those))
        self._expect(")", _MANY[name])
        return combinators.combine(*those, operation)

    def _count_arguments(self) -> int:
        """How many arguments come before the parenthesis is closed."""
        depth, count, at = 1, 1, self.at
        while self.tokens[at].kind != "end":
            token = self.tokens[at]
            if token.kind == "sign":
                depth += (token.text in "([{") - (token.text in ")]}")
                if not depth:
                    break
                count += depth == 1 and token.text == ","
            at += 1
        return 0 if at == self.at else count

    def _called(self, call: _Call, name: str) -> Query:
        written = call.text(name)
        self._expect("(")
        given: dict[str, Any] = {}
        while not self._next.is_sign(")"):
            token = self._next
            if token.kind == "name" and self.tokens[self.at + 1].is_sign("="):
                if token.text not in call.names or token.text in given:
                    needed = "each argument once" if token.text in given else "an argument that it has"
                    self._refuse(token, needed, written)
                argument = token.text
                self.at += 2
            elif len(given) < len(call.places) and call.places[len(given)] not in given:
                argument = call.places[len(given)]
            else:
                self._refuse(token, f"no more for {name}", written)
            given[argument] = self._argument(_KINDS[argument])
            if not self._next.is_sign(","):
                break
            self._take()
        missing = [each for each in call.required if each not in given]
        if missing:
            self._refuse(self._next, f"{_KINDS[missing[0]].value}: {missing[0]} of {name}", written)
        self._expect(")", written)
        return call.make(**given)

    def _argument(self, kind: _Kind) -> object:
        if kind is _Kind.QUERY:
            return self._as_query(self._phrase(kind))
        if kind is _Kind.ITEM:
            return self._phrase(kind)
        if kind is _Kind.PLAIN:
            value = self._phrase(kind)
            return value.value if isinstance(value, Constant) else value
        if kind is _Kind.OPERATION:
            return self._operation(2)
        if kind is _Kind.TAGS:
            return self._tags()
        token = self._take()
        if kind is _Kind.TAG:
            return self._tag(token)
        if token.kind != "number" or not isinstance(count := self._number(token), int):
            self._refuse(token, kind.value, _HINTS[kind])
        return count

    def _tag(self, token: _Token) -> str:
        if token.kind == "quoted":
            return self._unquoted(token)
        if token.kind != "name":
            self._refuse(token, "a tag", _HINTS[_Kind.TAG])
        return token.text

    def _tags(self) -> tuple[str, ...]:
        self._expect("(", _HINTS[_Kind.TAGS])
        found: list[str] = []
        while not self._next.is_sign(")"):
            found.append(self._tag(self._take()))
            if not self._next.is_sign(","):
                break
            self._take()
        self._expect(")", _HINTS[_Kind.TAGS])
        return tuple(found)

    def _operation(self, arity: int) -> Term:
        """An operation on so many values: its name, or a term over them."""
        before, self.arity = self.arity, arity
        name = self._next
        is_alone = name.kind == "name" and self.tokens[self.at + 1].text in (",", ")", "")
        if is_alone and name.text in OPERATIONS:
            self._take()
            operation = OPERATIONS[name.text]
            if operation.arity > arity:
                self._refuse(name, f"an operation on {arity} values", f"a term over {_slots(arity)}")
            found: Query | Term = Apply(operation, tuple(map(Slot, range(operation.arity))))
        elif is_alone and name.text in _CHOICES:
            self._take()
            found = _CHOICES[name.text]
            if isinstance(found, Slot) and found.place >= arity:
                self._refuse(name, f"an operation on {arity} values", f"a term over {_slots(arity)}")
        else:
            found = self._phrase(_Kind.OPERATION)
        self.arity = before
        if not isinstance(found, Term):
            raise TypeError(f"not a term: {found!r}")
        return found

    def _named_term(self, name: _Token, about: _Kind) -> Query | Term:
        if self._next.is_sign("("):
            if name.text not in OPERATIONS:
                self._refuse_name(name, [*OPERATIONS], "an operation")
            return self._applied(name, about)
        if name.text == "cur":
            if about is not _Kind.ITEM:
                self._refuse(name, f"{about.value}, which is not about the current item", _HINTS[about])
            return self._current()
        found = _SLOT.fullmatch(name.text)
        place = int(found[1]) if found else _LETTERS.get(name.text)
        if place is None:
            values = f"an operation that has a name, or a term over {_slots(self.arity)}"
            known = [*OPERATIONS, *(_CHOICES if about is _Kind.OPERATION else ["cur", *_CONSTANTS])]
            self._refuse_name(name, known, values if about is _Kind.OPERATION else about.value)
        if about is not _Kind.OPERATION:
            self._refuse(name, about.value, _HINTS[about])
        if place >= self.arity:
            self._refuse(name, f"one of {self.arity} values", f"a term over {_slots(self.arity)}")
        return Slot(place)

    def _current(self) -> Term:
        """The current item, or a field of it."""
        if self._next.is_sign("."):
            self._take()
            field = self._take()
            if field.kind != "name":
                self._refuse(field, "the name of a field", "cur.price, cur['unit price']")
            return cur[field.text]
        if self._next.is_sign("["):
            self._take()
            field = self._take()
            if field.kind != "quoted":
                self._refuse(field, "the name of a field in quotation marks", "cur['unit price']")
            self._expect("]")
            return cur[self._unquoted(field)]
        return cur

    def _applied(self, name: _Token, about: _Kind) -> Query | Term:
        """An operation, written as a function."""
        operation = OPERATIONS[name.text]
        self._expect("(")
        arguments: list[Query | Term] = []
        while not self._next.is_sign(")"):
            arguments.append(self._phrase(about))
            if not self._next.is_sign(","):
                break
            self._take()
        if len(arguments) != operation.arity:
            wanted = "(condition, one, other)" if operation is CHOOSE else f"({_slots(operation.arity)})"
            self._refuse(self._next, f"{operation.arity} for {name.text}", f"{name.text}{wanted}")
        self._expect(")")
        return self._made(name, operation, arguments, about)

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
        if not token.is_sign(sign):
            self._refuse(token, repr(sign), written or f"{sign!r} here")

    def _number(self, token: _Token) -> Any:
        if token.text in _CONSTANTS:
            return _CONSTANTS[token.text]
        try:
            return float(token.text) if set(token.text) & set(".eE") else int(token.text)
        except ValueError:  # int() has a limit, and _ is only for between two digits
            self._refuse(token, "a number", "5, 0.5, 1e-3 or 10_000")

    def _unquoted(self, token: _Token) -> str:
        try:
            return str(ast.literal_eval(token.text))
        except (SyntaxError, ValueError):
            self._refuse(token, "a text in quotation marks", r"'text'; a backslash is written \\")

    # -- refusals ----------------------------------------------------------------------------------------------------

    def _refuse_sign(self, place: int) -> NoReturn:
        sign = self.text[place]
        if sign in "'\"":
            self._refuse(_Token("sign", sign, place), "a text that ends on its line", "a closing quotation mark")
        for wrong, right in _OTHERWISE.items():
            if self.text.startswith(wrong, place):
                self._refuse(_Token("sign", wrong, place), "a sign that queries have", right)
        found = re.compile(r"\w+").match(self.text, place)
        word = found.group() if found else sign
        self._refuse(_Token("sign", word, place), "a name, a number, a sign or parentheses", "count() > 3")

    def _refuse_name(self, name: _Token, known: Sequence[str], needed: str) -> NoReturn:
        if needed == "a query" and name.text == "cur":
            self._refuse(name, needed, "current(cur), or cur in an atom: atom(v, cur)")
        close = difflib.get_close_matches(name.text, known, n=3)
        self._refuse(name, needed, " or ".join(close) or f"one of {', '.join(known)}")

    def _refuse(self, token: _Token, needed: str, hint: str, *, came: str | None = None) -> NoReturn:
        before = self.text[: token.place]
        line, column = before.count("\n"), token.place - (before.rfind("\n") + 1)
        where = f"{_WHERE} column {column + 1}"
        if "\n" in self.text:
            where = f"{_WHERE} line {line + 1}, column {column + 1}"
        shown = self.text.split("\n")[line].replace("\t", " ")
        where = f"{where}\n    {shown}\n    {' ' * column}^"
        raise QueryError(where, needed=needed, came=came or token.told, hint=hint)


_WHERE = "the query at"
_HINTS = {
    _Kind.QUERY: "count(v) > 3, or once(holds(cur > 5))",
    _Kind.ITEM: "cur, cur.price or cur['unit price'], and what can be calculated with them",
    _Kind.PLAIN: "0, or another plain value",
    _Kind.OPERATION: "add, max, first, or x0 + 2 * x1",
    _Kind.TAG: "v, or 'v w' for a tag that is no name",
    _Kind.TAGS: "but=(v, w)",
    _Kind.COUNT: "n=5",
}


def _slots(arity: int) -> str:
    return ", ".join(f"x{place}" for place in range(arity)) or "nothing"
