"""Terms: what a query computes from values, as something that can be read, run and compiled.

A term is made of constants, of the current item (`cur`, or `cur.price` of an item that is a record), of the values that
an operation is given, and of operations. Users write operations as Python functions: one that only calculates is read
by calling it with terms, any other stays a function that is called.

>>> str(term_of(lambda x, y: x + 2 * y, 2))
'x0 + 2 * x1'
>>> str(term_of(max, 2)), str(term_of(cur.price / 100, 0))
('max(x0, x1)', 'cur.price / 100')

Whether a result is defined must not depend on values (Theorem 5.2), so an operation gives a value or raises: dividing
by zero raises, and the answer says at which item.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from streamtight.errors import QueryError

Value = Any
"""What a query is about: numbers mostly, but any value will do."""


class Term:
    """How a value is calculated. Arithmetic and comparisons of terms are terms."""

    __slots__ = ()
    __hash__ = object.__hash__  # `==` makes a term, so terms are told apart by who they are

    def __add__(self, other: object) -> Term:
        return apply(ADD, self, other)

    def __radd__(self, other: object) -> Term:
        return apply(ADD, other, self)

    def __sub__(self, other: object) -> Term:
        return apply(SUBTRACT, self, other)

    def __rsub__(self, other: object) -> Term:
        return apply(SUBTRACT, other, self)

    def __mul__(self, other: object) -> Term:
        return apply(MULTIPLY, self, other)

    def __rmul__(self, other: object) -> Term:
        return apply(MULTIPLY, other, self)

    def __truediv__(self, other: object) -> Term:
        return apply(DIVIDE, self, other)

    def __rtruediv__(self, other: object) -> Term:
        return apply(DIVIDE, other, self)

    def __floordiv__(self, other: object) -> Term:
        return apply(FLOOR_DIVIDE, self, other)

    def __rfloordiv__(self, other: object) -> Term:
        return apply(FLOOR_DIVIDE, other, self)

    def __mod__(self, other: object) -> Term:
        return apply(MODULO, self, other)

    def __rmod__(self, other: object) -> Term:
        return apply(MODULO, other, self)

    def __neg__(self) -> Term:
        return apply(NEGATE, self)

    def __abs__(self) -> Term:
        return apply(ABSOLUTE, self)

    def __lt__(self, other: object) -> Term:
        return apply(LESS, self, other)

    def __le__(self, other: object) -> Term:
        return apply(AT_MOST, self, other)

    def __gt__(self, other: object) -> Term:
        return apply(MORE, self, other)

    def __ge__(self, other: object) -> Term:
        return apply(AT_LEAST, self, other)

    def __eq__(self, other: object) -> Term:  # type: ignore[override]
        return apply(EQUAL, self, other)

    def __ne__(self, other: object) -> Term:  # type: ignore[override]
        return apply(UNEQUAL, self, other)

    def __and__(self, other: object) -> Term:
        return apply(AND, self, other)

    def __rand__(self, other: object) -> Term:
        return apply(AND, other, self)

    def __or__(self, other: object) -> Term:
        return apply(OR, self, other)

    def __ror__(self, other: object) -> Term:
        return apply(OR, other, self)

    def __invert__(self) -> Term:
        return apply(NOT, self)

    def __bool__(self) -> bool:
        raise QueryError(
            str(self),
            needed="values, before it is true or false",
            came="a term where True or False was wanted",
            hint="&, | and ~ instead of and, or and not; choose(condition, one, other) instead of if",
        )

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Constant(Term):
    """Always the same value."""

    value: Value

    def __str__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Slot(Term):
    """The value that an operation, or a rule, is given at this place."""

    place: int

    def __str__(self) -> str:
        return f"x{self.place}"


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Current(Term):
    """The value of the current item, or a field of it: `cur`, `cur.price`, `cur["unit price"]`.

    It has no public attributes of its own, so that every field can be written.
    """

    _field: str | None = None

    def __getattr__(self, name: str) -> Current:
        if name.startswith("_") or self._field is not None:
            raise AttributeError(f"{self} has no {name!r}: an item has fields, and these have none")
        return Current(name)

    def __getitem__(self, name: str) -> Current:
        if not isinstance(name, str) or self._field is not None:
            raise QueryError(
                f"{self}[{name!r}]", needed="the name of a field of an item", came=repr(name), hint="cur['x']"
            )
        return Current(name)

    def __iter__(self) -> Iterator[Term]:
        raise TypeError(f"{self} cannot be gone through")

    def __str__(self) -> str:
        if self._field is None:
            return "cur"
        return f"cur.{self._field}" if self._field.isidentifier() else f"cur[{self._field!r}]"


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation on values.

    code     how it is written in Python, with `{0}`, `{1}` for its arguments; None if it is only called
    symbol   how people write it, if not as a function
    """

    name: str
    arity: int
    function: Callable[..., Value]
    code: str | None = None
    symbol: str | None = None
    strength: int = 0
    """Which of two binds more: `*` more than `+`."""

    @property
    def repeats(self) -> bool:
        """Whether the code has an argument more than once."""
        return self.code is not None and any(self.code.count(f"{{{place}}}") > 1 for place in range(self.arity))

    def __reduce__(self) -> Any:
        if OPERATIONS.get(self.name) is self:  # one of ours travels by its name
            return _known_operation, (self.name,)
        return Operation, (self.name, self.arity, self.function, self.code, self.symbol, self.strength)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Apply(Term):
    """The result of an operation."""

    operation: Operation
    arguments: tuple[Term, ...]

    def __str__(self) -> str:
        symbol, mine = self.operation.symbol, self.operation.strength
        if symbol is None:
            return f"{self.operation.name}({', '.join(map(str, self.arguments))})"
        texts = []
        for place, each in enumerate(self.arguments):
            theirs = each.operation.strength if isinstance(each, Apply) and each.operation.symbol else 99
            texts.append(f"({each})" if theirs < mine or (theirs == mine and (place or mine in (2, 5))) else str(each))
        return f"{symbol}{texts[0]}" if len(texts) == 1 else f" {symbol} ".join(texts)


def _known_operation(name: str) -> Operation:
    return OPERATIONS[name]


def _sqrt(value: Value) -> Value:
    return math.sqrt(value) if value >= 0 else math.nan


ADD = Operation("add", 2, operator.add, "({0} + {1})", "+", 6)
SUBTRACT = Operation("subtract", 2, operator.sub, "({0} - {1})", "-", 6)
MULTIPLY = Operation("multiply", 2, operator.mul, "({0} * {1})", "*", 7)
DIVIDE = Operation("divide", 2, operator.truediv, "({0} / {1})", "/", 7)
FLOOR_DIVIDE = Operation("floor_divide", 2, operator.floordiv, "({0} // {1})", "//", 7)
MODULO = Operation("modulo", 2, operator.mod, "({0} % {1})", "%", 7)
NEGATE = Operation("negate", 1, operator.neg, "(-{0})", "-", 8)
ABSOLUTE = Operation("abs", 1, operator.abs, "abs({0})")
# As Python's own: the first of two that are neither less nor more, which matters for NaN.
MINIMUM = Operation("min", 2, min, "({1} if {1} < {0} else {0})")
MAXIMUM = Operation("max", 2, max, "({1} if {1} > {0} else {0})")
SQRT = Operation("sqrt", 1, _sqrt, "(sqrt({0}) if {0} >= 0 else nan)")
LESS = Operation("less", 2, operator.lt, "({0} < {1})", "<", 5)
AT_MOST = Operation("at_most", 2, operator.le, "({0} <= {1})", "<=", 5)
MORE = Operation("more", 2, operator.gt, "({0} > {1})", ">", 5)
AT_LEAST = Operation("at_least", 2, operator.ge, "({0} >= {1})", ">=", 5)
EQUAL = Operation("equal", 2, operator.eq, "({0} == {1})", "==", 5)
UNEQUAL = Operation("unequal", 2, operator.ne, "({0} != {1})", "!=", 5)
# What is not 0 is true.
NOT = Operation("not", 1, operator.not_, "(not {0})", "~", 8)
AND = Operation("and", 2, lambda a, b: bool(a) and bool(b), "(bool({0}) and bool({1}))", "&", 4)
OR = Operation("or", 2, lambda a, b: bool(a) or bool(b), "(bool({0}) or bool({1}))", "|", 3)
IMPLIES = Operation("implies", 2, lambda a, b: not a or bool(b), "((not {0}) or bool({1}))", "->", 2)
IFF = Operation("iff", 2, lambda a, b: bool(a) == bool(b), "(bool({0}) == bool({1}))", "<->", 2)
CHOOSE = Operation("choose", 3, lambda c, a, b: a if c else b, "({1} if {0} else {2})")

OPERATIONS = {
    each.name: each
    for each in (
        *(ADD, SUBTRACT, MULTIPLY, DIVIDE, FLOOR_DIVIDE, MODULO, NEGATE, ABSOLUTE, MINIMUM, MAXIMUM, SQRT),
        *(LESS, AT_MOST, MORE, AT_LEAST, EQUAL, UNEQUAL, NOT, AND, OR, IMPLIES, IFF, CHOOSE),
    )
}
_KNOWN: tuple[tuple[Any, Operation], ...] = ((min, MINIMUM), (max, MAXIMUM), (abs, ABSOLUTE), (operator.not_, NOT))

cur = Current()
"""The value of the current item; `cur.price` is a field of it."""


def apply(operation: Operation, *arguments: object) -> Term:
    """The result of an operation on terms and plain values."""
    return Apply(operation, tuple(map(as_term, arguments)))


def walk(term: Term) -> Iterator[Term]:
    """A term and all terms in it."""
    yield term
    for part in term.arguments if isinstance(term, Apply) else ():
        yield from walk(part)


def size_of(term: Term) -> int:
    """How many constants, values and operations a term has."""
    return sum(1 for _ in walk(term))


def is_code(term: Term) -> bool:
    """Whether a term can be compiled: no function that is only called, and numbers as constants."""
    return all(
        type(each.value) in (int, float, bool)
        if isinstance(each, Constant)
        else not isinstance(each, Apply) or each.operation.code is not None
        for each in walk(term)
    )


def replaced(term: Term, by: Callable[[Term], Term | None]) -> Term:
    """The term with each part for which `by` gives a term replaced by that."""
    found = by(term)
    if found is None and isinstance(term, Apply):
        return Apply(term.operation, tuple(replaced(each, by) for each in term.arguments))
    return term if found is None else found


def as_term(value: object) -> Term:
    """A term as it is, and anything else as a constant."""
    return value if isinstance(value, Term) else Constant(value)


def choose(condition: object, one: object, other: object) -> Value:
    """One if the condition is true, else the other, which is not calculated then; of plain values, the value itself."""
    if any(isinstance(each, Term) for each in (condition, one, other)):
        return apply(CHOOSE, condition, one, other)
    return one if condition else other


def _calculated(operation: Operation, *arguments: object) -> Value:
    """The term of an operation; of plain values, the value itself."""
    if any(isinstance(each, Term) for each in arguments):
        return apply(operation, *arguments)
    return operation.function(*arguments)


def smaller(one: object, other: object) -> Value:
    """The smaller of two."""
    return _calculated(MINIMUM, one, other)


def larger(one: object, other: object) -> Value:
    """The larger of two."""
    return _calculated(MAXIMUM, one, other)


def sqrt(value: object) -> Value:
    """The square root; NaN of what is below 0."""
    return _calculated(SQRT, value)


def term_of(given: object, arity: int, *, with_current: bool = False) -> Term:
    """What a user gave as an operation on so many values, as a term: a function, a term, or a constant.

    A function gets the values, or the current item if `with_current`. It is called with terms to see what it
    calculates; if that does not say it all, it stays a function.
    """
    if isinstance(given, Term) or not callable(given):
        return as_term(given)
    slots: list[Term] = [cur] if with_current else [Slot(place) for place in range(arity)]
    known = next((operation for function, operation in _KNOWN if function is given), None)
    if known is not None and known.arity == len(slots):
        return Apply(known, tuple(slots))
    try:
        traced = given(*slots)
    except Exception:  # whatever it wants to do with its values, terms cannot do it
        traced = None
    if isinstance(traced, Term) and _agrees(given, traced, slots):
        return traced
    name = getattr(given, "__name__", type(given).__name__)
    return Apply(Operation("function" if name == "<lambda>" else name, len(slots), given), tuple(slots))


_SAMPLES: tuple[Value, ...] = (0, 1, -3, 2.5, -0.5, 7, None, True, "", "ab", (), math.nan)
_MOST_SAMPLES = 400


class _Record:
    """An item with these fields, to try a function on."""

    def __init__(self, fields: dict[str, Value]) -> None:
        self.__dict__.update(fields)

    def __getitem__(self, name: str) -> Value:
        return self.__dict__[name]


def _agrees(function: Callable[..., Value], term: Term, slots: Sequence[Term]) -> bool:
    """Whether the term gives what the function does on some values: a function may ask what it was given.

    Constants must be plain: a list, or a text with the name of a slot in it, is made of the terms themselves.
    """
    if not all(_is_plain(each.value, slots) for each in walk(term) if isinstance(each, Constant)):
        return False
    fields = sorted(name for name in fields_of([term]) if name is not None)
    tried: list[tuple[Value, ...]] = _samples(len(slots))
    if fields:
        records = [_Record(dict(zip(fields, values, strict=True))) for values in _samples(len(fields))]
        tried = [(record,) for record in (*records, _Record({}))]
    calculated = function_of(term, with_current=bool(slots) and isinstance(slots[0], Current))
    is_lazy = any(isinstance(each, Apply) and each.operation is CHOOSE for each in walk(term))
    has_value = False
    for values in tried:
        mine, theirs = _outcome(function, values), _outcome(calculated, values)
        has_value |= theirs is not None
        # A function calculates also what it does not choose, and may raise there.
        if mine != theirs and not (is_lazy and mine is None):
            return False
    return has_value


def _is_plain(value: Value, slots: Sequence[Term]) -> bool:
    if isinstance(value, str):
        return not any(str(each) in value for each in slots)
    return value is None or type(value) in (int, float, bool)


def _samples(count: int) -> list[tuple[Value, ...]]:
    """Values for so many places: all combinations for a few places; else each place has each value, beside others."""
    if len(_SAMPLES) ** count <= _MOST_SAMPLES:
        return list(itertools.product(_SAMPLES, repeat=count))
    steps = range(_MOST_SAMPLES)
    some = len(_SAMPLES)
    return [
        tuple(_SAMPLES[(step * (place + 1) + step // some * (place + 2)) % some] for place in range(count))
        for step in steps
    ]


def _outcome(function: Callable[..., Value], values: Sequence[Value]) -> str | None:
    """What it gives, as text; None if it raises."""
    try:
        return repr(function(*values))
    except Exception:  # the border of user code: whatever it raises, there is no value
        return None


def evaluate(term: Term, slots: Sequence[Value], current: Value = None) -> Value:
    """The value of a term."""
    if isinstance(term, Constant):
        return term.value
    if isinstance(term, Slot):
        return slots[term.place]
    if isinstance(term, Current):
        return current if term._field is None else field_of(current, term._field)
    if isinstance(term, Apply):
        if term.operation is CHOOSE:  # only what is chosen is calculated
            condition, one, other = term.arguments
            return evaluate(one if evaluate(condition, slots, current) else other, slots, current)
        return term.operation.function(*(evaluate(each, slots, current) for each in term.arguments))
    raise TypeError(f"not a term: {term!r}")


def field_of(item: Value, name: str) -> Value:
    """A field of an item: of an event, a dict or any object."""
    return item[name] if isinstance(item, dict) else getattr(item, name)


def function_of(term: Term, *, with_current: bool = False) -> Callable[..., Value]:
    """The term as a function of its slots, or of the current item."""
    if with_current:
        return lambda item: evaluate(term, (), item)
    return lambda *values: evaluate(term, values)


def fields_of(terms: Iterable[Term]) -> set[str | None]:
    """The fields of the current item that are asked for; None stands for the item itself."""
    return {each._field for term in terms for each in walk(term) if isinstance(each, Current)}
