"""SQL expressions as data, and what they mean on concrete rows: Spark's rules, to the letter.

An expression is given a row, and columns are found in it by their positions, one for each level: a row of a table is
a tuple, a pair of rows is a tuple of tuples. Null is None. What ANSI mode forbids raises `SqlError`.

>>> v = Column((0,), "long")
>>> half = Arithmetic(Operation.DIV, v, Literal(2, "long"), "long", Mode.ANSI)
>>> half.value((-3,)), half.value((None,))
(-1, None)
>>> is_small = Compare(Comparison.LESS, v, Literal(2, "long"))
>>> [SqlFunction((is_small,), How.FILTER)((n,)) for n in (1, 2, None)]
[True, False, False]

The nodes are few; what else SQL has is put together from them: `a > b` is `b < a`, `a != b` is `not a = b`,
`a IN (b, c)` is `a = b OR a = c`, `-a` is `0 - a`, `isnan(a)` is `a <=> NaN`.

Types are written as in Spark's JSON schemas: "long", "integer", "decimal(10,2)". One more is `WHOLE`.
"""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from streamtight.errors import UnsupportedError
from streamtight.program.relation import How

Row = Any
"""A tuple of values, or a tuple of rows."""

WHOLE = "whole"
"""Not a type of Spark: an integer of any size, such as a total before it is put into a long."""
INTEGER_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
NAN = float("nan")
"""The only NaN that expressions give, so that Python finds it equal to itself in tuples, dicts and sets."""

_EXACT = Context(prec=100)  # more digits than any two decimals of Spark can need together
_PYTHON_TYPES: dict[str, type] = {
    **dict.fromkeys((*INTEGER_BITS, WHOLE), int),
    "boolean": bool,
    "double": float,
    "string": str,
    "date": date,
    "timestamp": datetime,
    "timestamp_ntz": datetime,
}
_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")


class SqlError(ArithmeticError):
    """What Spark raises for a row: an overflow, a division by zero, a cast that fails, what Python raised."""


class Field(NamedTuple):
    """A column of a table: its name, its Spark type as text, and whether it may be null."""

    name: str
    type: str
    nullable: bool = True


class Mode(enum.Enum):
    """What happens when there is no result that fits."""

    ANSI = "it raises"
    LEGACY = "integers wrap around, the rest is null"
    TRY = "it is null"


class Operation(enum.Enum):
    """Arithmetic on two numbers of the same type."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    DIV = "div"
    """Rounds towards zero."""
    REMAINDER = "%"
    """Has the sign of the dividend."""
    PMOD = "pmod"
    """The remainder, plus the divisor if it was negative."""


class Comparison(enum.Enum):
    """Comparisons; the other ones are these with the sides swapped, or negated."""

    EQUAL = "="
    SAME = "<=>"
    """Equal, or both null; never null itself."""
    LESS = "<"
    AT_MOST = "<="


class Expression:
    """A value for each row."""

    __slots__ = ()

    if TYPE_CHECKING:  # at run time, a dataclass would take a property of this class for the default of its field

        @property
        def type(self) -> str:
            """Its Spark type."""

        @property
        def parts(self) -> tuple[Expression, ...]:
            """The expressions that it is made of."""

    @property
    def may_be_null(self) -> bool:
        """False only if it is never null."""
        return any(part.may_be_null for part in self.parts)

    def value(self, row: Row) -> Any:
        """Its value for this row; None for null."""
        raise NotImplementedError  # pragma: no cover


class Truth(Expression):
    """True, false or null for each row."""

    __slots__ = ()

    @property
    def type(self) -> str:
        return "boolean"


@dataclass(frozen=True, slots=True)
class Column(Expression):
    """What stands in the row, at these positions from the outside in."""

    path: tuple[int, ...]
    type: str
    nullable: bool = field(default=True, compare=False)

    @property
    def parts(self) -> tuple[Expression, ...]:
        return ()

    @property
    def may_be_null(self) -> bool:
        return self.nullable

    def value(self, row: Row) -> Any:
        for position in self.path:
            row = row[position]
        return NAN if isinstance(row, float) and row != row else row


@dataclass(frozen=True, slots=True)
class Literal(Expression):
    """Always this value."""

    constant: Any
    type: str

    @property
    def parts(self) -> tuple[Expression, ...]:
        return ()

    @property
    def may_be_null(self) -> bool:
        return self.constant is None

    def value(self, row: Row) -> Any:
        return self.constant


TRUE, FALSE = Literal(True, "boolean"), Literal(False, "boolean")


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    """The value as one of another type; `can_cast` says between which."""

    of: Expression
    type: str
    mode: Mode

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.of,)

    @property
    def may_be_null(self) -> bool:
        return self.of.may_be_null or not (self.mode is Mode.ANSI or _is_wider(self.of.type, self.type))

    def value(self, row: Row) -> Any:
        given = self.of.value(row)
        if given is None:
            return None
        try:
            return _cast(given, self.of.type, self.type, legacy=self.mode is Mode.LEGACY)
        except SqlError:
            if self.mode is Mode.ANSI:
                raise
            return None


@dataclass(frozen=True, slots=True)
class Arithmetic(Expression):
    """An operation on two numbers of one type. Null if one of them is null, also if the divisor is zero."""

    operation: Operation
    left: Expression
    right: Expression
    type: str
    mode: Mode

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.left, self.right)

    @property
    def may_be_null(self) -> bool:
        divides = self.operation not in (Operation.ADD, Operation.SUBTRACT, Operation.MULTIPLY)
        never_fails = self.mode is Mode.ANSI or (self.mode is Mode.LEGACY and not divides)
        return self.left.may_be_null or self.right.may_be_null or not never_fails

    def value(self, row: Row) -> Any:
        left, right = self.left.value(row), self.right.value(row)
        if left is None or right is None:
            return None
        try:
            return _fit(_calculate(self.operation, left, right, self.type), self.type, wraps=self.mode is Mode.LEGACY)
        except SqlError:
            if self.mode is Mode.ANSI:
                raise
            return None


@dataclass(frozen=True, slots=True)
class Compare(Truth):
    """A comparison. NaN is equal to itself and greater than all other numbers; -0.0 is 0.0."""

    comparison: Comparison
    left: Expression
    right: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.left, self.right)

    @property
    def may_be_null(self) -> bool:
        return self.comparison is not Comparison.SAME and (self.left.may_be_null or self.right.may_be_null)

    def value(self, row: Row) -> bool | None:
        left, right = self.left.value(row), self.right.value(row)
        if left is None or right is None:
            return left is right if self.comparison is Comparison.SAME else None
        match self.comparison:
            case Comparison.LESS:
                return _is_less(left, right)
            case Comparison.AT_MOST:
                return not _is_less(right, left)
        return not _is_less(left, right) and not _is_less(right, left)


# Spark may evaluate the sides of AND and OR in any order, and all of them. So which error is raised, and whether one
# is, if a side alone decides, is not determined. Here they are evaluated from the left, until one decides.


@dataclass(frozen=True, slots=True)
class And(Truth):
    """False if a part is false, else null if one is null, else true."""

    parts: tuple[Expression, ...]

    def value(self, row: Row) -> bool | None:
        return _decided((part.value(row) for part in self.parts), by=False)


@dataclass(frozen=True, slots=True)
class Or(Truth):
    """True if a part is true, else null if one is null, else false."""

    parts: tuple[Expression, ...]

    def value(self, row: Row) -> bool | None:
        return _decided((part.value(row) for part in self.parts), by=True)


@dataclass(frozen=True, slots=True)
class Not(Truth):
    """Null stays null."""

    of: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.of,)

    def value(self, row: Row) -> bool | None:
        given = self.of.value(row)
        return None if given is None else not given


@dataclass(frozen=True, slots=True)
class IsNull(Truth):
    """Is there no value? Never null."""

    of: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.of,)

    @property
    def may_be_null(self) -> bool:
        return False

    def value(self, row: Row) -> bool:
        return self.of.value(row) is None


@dataclass(frozen=True, slots=True)
class Coalesce(Expression):
    """The first part that is not null; those behind it are not evaluated."""

    parts: tuple[Expression, ...]

    @property
    def type(self) -> str:
        return _common_type(self.parts)

    @property
    def may_be_null(self) -> bool:
        return all(part.may_be_null for part in self.parts)

    def value(self, row: Row) -> Any:
        return next((value for part in self.parts if (value := part.value(row)) is not None), None)


@dataclass(frozen=True, slots=True)
class Case(Expression):
    """The value of the first branch whose condition is true, not null; no other value is evaluated."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression

    @property
    def values(self) -> tuple[Expression, ...]:
        """What it can give."""
        return (*(value for _, value in self.branches), self.otherwise)

    @property
    def type(self) -> str:
        return _common_type(self.values)

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (*(part for branch in self.branches for part in branch), self.otherwise)

    @property
    def may_be_null(self) -> bool:
        return any(value.may_be_null for value in self.values)

    def value(self, row: Row) -> Any:
        for condition, value in self.branches:
            if condition.value(row):
                return value.value(row)
        return self.otherwise.value(row)


@dataclass(frozen=True, slots=True)
class Most(Expression):
    """The greatest or the least of its parts, nulls left out; null if all are null."""

    parts: tuple[Expression, ...]
    greatest: bool

    @property
    def type(self) -> str:
        return _common_type(self.parts)

    @property
    def may_be_null(self) -> bool:
        return all(part.may_be_null for part in self.parts)

    def value(self, row: Row) -> Any:
        most = None
        for part in self.parts:
            value = part.value(row)
            if value is None:
                continue
            if most is None or (_is_less(most, value) if self.greatest else _is_less(value, most)):
                most = value
        return most


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """A function of strings, one of `FUNCTIONS`. Null if an argument is null."""

    name: str
    arguments: tuple[Expression, ...]

    @property
    def type(self) -> str:
        return FUNCTIONS[self.name].type

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.arguments

    def value(self, row: Row) -> Any:
        given = [argument.value(row) for argument in self.arguments]
        return None if None in given else FUNCTIONS[self.name].meaning(*given)


@dataclass(frozen=True, slots=True)
class PythonUDF(Expression):
    """A function of Python, called with None for null.

    Spark calls it for every row, also in a branch of CASE that is not taken.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Expression, ...]
    type: str

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.arguments

    @property
    def may_be_null(self) -> bool:
        return True

    def value(self, row: Row) -> Any:
        given = [argument.value(row) for argument in self.arguments]
        try:
            result = self.function(*given)
        except Exception as error:  # the border of user code
            raise SqlError(f"{self.name}{tuple(given)!r} raised {type(error).__name__}: {error}") from error
        if result is None or _is_of(result, self.type):
            return NAN if isinstance(result, float) and result != result else result
        raise UnsupportedError(
            f"the Python function {self.name}",
            needed=f"a result of its declared type, {self.type}, or None",
            came=repr(result),
            hint="convert the result in the function; what Spark makes of it depends on its version and settings",
        )


@dataclass(frozen=True, slots=True)
class SqlFunction:
    """A function of rows: the tuple of the values, or whether the only expression is true, which null is not.

    Of two rows, as `Matching` gives them, it sees the pair.
    """

    expressions: tuple[Expression, ...]
    how: How

    def __call__(self, *rows: Row) -> Any:
        row = rows[0] if len(rows) == 1 else rows
        if self.how is How.FILTER:
            return self.expressions[0].value(row) is True
        return tuple([expression.value(row) for expression in self.expressions])


@dataclass(frozen=True, slots=True)
class SqlValue:
    """A function of a row: the value of an expression, as a total or an extreme needs it."""

    expression: Expression

    def __call__(self, row: Row) -> Any:
        return self.expression.value(row)


# -- types -----------------------------------------------------------------------------------------------------------


def is_known(type_: str) -> bool:
    """Are values of this type understood?"""
    return type_ in _PYTHON_TYPES or type_ == "void" or digits(type_) is not None


def digits(type_: str) -> tuple[int, int] | None:
    """How many digits a decimal type has, and how many of them behind the point; None for other types.

    >>> digits("decimal(10,2)")
    (10, 2)
    """
    found = _DECIMAL.fullmatch(type_)
    return (int(found[1]), int(found[2])) if found else None


def can_cast(source: str, target: str) -> bool:
    """Is this cast understood exactly?

    Doubles are not written as text nor read from it, decimals only widened or cut to an integer, and dates not changed.
    """
    if source == target or source == "void":
        return is_known(target)
    from_digits, to_digits = digits(source), digits(target)
    if to_digits is not None:
        if from_digits is not None:
            return from_digits[1] <= to_digits[1]  # no digit is rounded away
        return source in INTEGER_BITS and to_digits[1] >= 0
    if from_digits is not None:
        # Below 16 digits a double is the nearest one whichever way it is calculated.
        return target in INTEGER_BITS or target == "boolean" or (target == "double" and from_digits[0] <= 15)
    numbers = {*INTEGER_BITS, "boolean", "double"}
    if source == WHOLE:
        return target in INTEGER_BITS or target == "double"
    if target == WHOLE:
        return source in INTEGER_BITS
    if source == "string":
        return target in INTEGER_BITS or target == "boolean"
    if target == "string":
        return source in INTEGER_BITS or source in ("boolean", "date")
    return source in numbers and target in numbers


def _is_wider(source: str, target: str) -> bool:
    """Does every value of the source have one of the target?"""
    if source == target or (source in INTEGER_BITS and target in ("double", WHOLE, "string", "boolean")):
        return True
    return INTEGER_BITS.get(source, 99) <= INTEGER_BITS.get(target, 0)


def _common_type(parts: Iterable[Expression]) -> str:
    return next((part.type for part in parts if part.type != "void"), "void")


def _is_of(value: Any, type_: str) -> bool:
    """Is this Python value one of this type, without any conversion?"""
    if (precision := digits(type_)) is not None:
        return type(value) is Decimal and value.is_finite() and _has_digits(value, *precision, exactly=True)
    if (bits := INTEGER_BITS.get(type_)) is not None:
        return type(value) is int and _wrapped(value, bits) == value
    return type(value) is _PYTHON_TYPES.get(type_)


def _has_digits(value: Decimal, precision: int, scale: int, *, exactly: bool = False) -> bool:
    fits = abs(value) < Decimal(1).scaleb(precision - scale)
    return fits and not (exactly and value != value.quantize(Decimal(1).scaleb(-scale), context=_EXACT))


# -- what the nodes do with values -----------------------------------------------------------------------------------


def _decided(values: Iterator[bool | None], *, by: bool) -> bool | None:
    is_known_so_far = True
    for value in values:
        if value is by:
            return by
        is_known_so_far &= value is not None
    return (not by) if is_known_so_far else None


def _is_less(left: Any, right: Any) -> bool:
    if isinstance(left, float) and left != left:
        return False
    if isinstance(right, float) and right != right:
        return True
    return bool(left < right)


def _wrapped(number: int, bits: int) -> int:
    return (number + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def _fit(result: Any, type_: str, *, wraps: bool) -> Any:
    """The result as a value of this type; SqlError if it is none."""
    if (bits := INTEGER_BITS.get(type_)) is not None:
        kept = _wrapped(result, bits)
        if kept != result and not wraps:
            raise SqlError(f"{result} does not fit into {type_}")
        return kept
    if (precision := digits(type_)) is not None:
        if not _has_digits(result, *precision):
            raise SqlError(f"{result} does not fit into {type_}")
        return result.quantize(Decimal(1).scaleb(-precision[1]), context=_EXACT)
    return NAN if isinstance(result, float) and result != result else result


def _calculate(operation: Operation, left: Any, right: Any, type_: str) -> Any:
    match operation:
        case Operation.ADD:
            return _EXACT.add(left, right) if isinstance(left, Decimal) else left + right
        case Operation.SUBTRACT:
            return _EXACT.subtract(left, right) if isinstance(left, Decimal) else left - right
        case Operation.MULTIPLY:
            return _EXACT.multiply(left, right) if isinstance(left, Decimal) else left * right
    if right == 0:
        raise SqlError(f"{left} {operation.value} 0: division by zero")
    match operation:
        case Operation.DIVIDE:
            return left / right
        case Operation.DIV:
            quotient = abs(left) // abs(right)
            return quotient if (left < 0) == (right < 0) else -quotient
        case Operation.REMAINDER:
            return _remainder(left, right)
    remainder = _remainder(left, right)
    if remainder >= 0 or remainder != remainder:
        return remainder
    # Spark adds the divisor in the JVM's own arithmetic, which wraps around in any mode.
    moved = remainder + right
    return _remainder(moved if isinstance(moved, float) else _wrapped(moved, max(32, INTEGER_BITS[type_])), right)


def _remainder(left: Any, right: Any) -> Any:
    if isinstance(left, float):
        return NAN if math.isinf(left) or left != left or right != right else math.fmod(left, right)
    remainder = abs(left) % abs(right)
    return -remainder if left < 0 else remainder


# What Spark cuts off text before it reads it: the space and the control characters of ASCII.
_AROUND = "".join(map(chr, range(0x21))) + "\x7f"
_INTEGER_TEXT = re.compile(r"[+-]?[0-9]+")
_CUT_TEXT = re.compile(r"([+-]?[0-9]*)(\.[0-9]*)?")  # without ANSI, digits behind a point are cut off
_TRUE_TEXTS, _FALSE_TEXTS = {"t", "true", "y", "yes", "1"}, {"f", "false", "n", "no", "0"}


def _cast(value: Any, source: str, target: str, *, legacy: bool) -> Any:
    if source == target:
        return value
    if (bits := INTEGER_BITS.get(target)) is not None:
        return _cast_to_integer(value, bits, target, legacy=legacy)
    if digits(target) is not None:
        return _fit(Decimal(value), target, wraps=False)
    match target:
        case "double":
            return float(value)
        case "boolean":
            return _read_boolean(value) if isinstance(value, str) else value != 0
        case "string":
            return str(value).lower() if isinstance(value, bool) else str(value)
    return int(value)


def _cast_to_integer(value: Any, bits: int, target: str, *, legacy: bool) -> int:
    if isinstance(value, str):
        number = _read_integer(value, cuts=legacy)
        return _fit(number, target, wraps=False)  # type: ignore[no-any-return]
    if isinstance(value, float):
        return _cut_double(value, bits, target, legacy=legacy)
    return _fit(int(value), target, wraps=legacy)  # type: ignore[no-any-return]


def _cut_double(value: float, bits: int, target: str, *, legacy: bool) -> int:
    width = max(bits, 32)
    low, high = -(1 << width - 1), (1 << width - 1) - 1
    if value != value:
        if legacy:
            return 0
        raise SqlError(f"NaN does not fit into {target}")
    # Spark compares with the ends of the type as doubles; so 2**63, which is no long, is taken for the greatest one.
    is_inside = math.isfinite(value) and math.floor(value) <= float(high) and math.ceil(value) >= float(low)
    if not is_inside and not legacy:
        raise SqlError(f"{value} does not fit into {target}")
    cut = (low if value < 0 else high) if math.isinf(value) else min(max(int(value), low), high)
    return _fit(cut, target, wraps=legacy)  # type: ignore[no-any-return]


def _read_integer(text: str, *, cuts: bool) -> int:
    bare = text.strip(_AROUND)
    if _INTEGER_TEXT.fullmatch(bare):
        return int(bare)
    if cuts and (found := _CUT_TEXT.fullmatch(bare)) and bare not in ("", "+", "-"):
        return int(found[1]) if found[1] not in ("", "+", "-") else 0
    raise SqlError(f"{text!r} is no integer")


def _read_boolean(text: str) -> bool:
    word = text.strip(_AROUND).lower()
    if word in _TRUE_TEXTS or word in _FALSE_TEXTS:
        return word in _TRUE_TEXTS
    raise SqlError(f"{text!r} is no boolean")


# -- functions of strings --------------------------------------------------------------------------------------------


class Function(NamedTuple):
    """A function of strings: the type of its result, and what it gives."""

    type: str
    meaning: Callable[..., Any]


def _in_ascii(change: Callable[[str], str]) -> Callable[[str], str]:
    def changed(text: str) -> str:
        if not text.isascii():
            raise UnsupportedError(
                f"{change.__name__}({text!r})",
                needed="letters of ASCII, which change case the same way everywhere",
                came="other letters",
                hint="compare on generated inputs instead",
            )
        return change(text)

    return changed


def _like(text: str, pattern: str, escape: str) -> bool:
    regex, letters = "", iter(pattern)
    for letter in letters:
        if letter == escape:
            escaped = next(letters, None)
            if escaped not in ("_", "%", escape):
                raise SqlError(f"LIKE {pattern!r}: {escape} must stand before _, % or {escape}")
            regex += re.escape(escaped)
        else:
            regex += {"%": ".*", "_": "."}.get(letter) or re.escape(letter)
    return re.fullmatch(regex, text, re.DOTALL) is not None


FUNCTIONS = {
    "concat": Function("string", lambda *texts: "".join(texts)),
    "length": Function("integer", len),
    "upper": Function("string", _in_ascii(str.upper)),
    "lower": Function("string", _in_ascii(str.lower)),
    "startswith": Function("boolean", str.startswith),
    "endswith": Function("boolean", str.endswith),
    "contains": Function("boolean", str.__contains__),
    "like": Function("boolean", _like),
}
"""The functions that `Call` knows; the third argument of `like` is its escape character."""
