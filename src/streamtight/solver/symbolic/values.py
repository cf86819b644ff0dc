"""Symbolic values: they do what Python's values do, and build terms of Z3 on the way."""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
import types
import typing
from collections.abc import Callable
from typing import Any, NoReturn

import z3

from streamtight.errors import UnsupportedError
from streamtight.solver.symbolic.paths import assume, decide, exploring, python_raises, refuse

REAL_NUMBERS = "floats are real numbers"
"""What a path assumes on which floats were calculated with."""
KNOWN_CHARACTERS = "texts have no characters beyond U+2FFFF"
"""What is assumed where texts are ordered: Z3 knows no others."""


_LARGEST_POWER = 8


_LARGEST_INT_BITS = 10_000
"""Beyond that, Python refuses to write an integer down in decimal, which is how Z3 gets it."""


_BOOL, _INT, _FLOAT = 0, 1, 2
_OF_BUILTIN = (type(None), str, bytes, tuple, list, dict, set, frozenset, range)


class StandIn:
    """What takes the place of a value that a function reaches, and is no symbolic value itself."""

    def __repr__(self) -> str:
        return self._shown() if exploring else object.__repr__(self)

    def __str__(self) -> str:
        return self._shown() if exploring else object.__repr__(self)

    def __format__(self, spec: str) -> str:
        return self._shown() if exploring else format(object.__repr__(self), spec)

    def _shown(self) -> NoReturn:
        refuse("makes text of what is not known while it is read")


class Counted(StandIn):
    """What takes the place of a list, of which the length is known."""

    def length(self) -> Any:
        """What `len` gives."""
        raise NotImplementedError


class Symbolic:
    """A value that is not known yet. What Python's own value can do and this one cannot is refused, never guessed."""

    __slots__ = ("_term",)
    python: type = object

    def __init__(self, term: z3.ExprRef) -> None:
        self._term = term

    def __bool__(self) -> bool:
        return decide(truth_term(self))

    def __hash__(self) -> int:
        refuse("uses a symbolic value as a key of a dict or an element of a set")

    def __getattr__(self, name: str) -> NoReturn:
        if hasattr(self.python, name):
            refuse(f"uses .{name} of a symbolic {self.python.__name__}")
        python_raises(AttributeError(f"'{self.python.__name__}' object has no attribute '{name}'"))

    def __repr__(self) -> str:
        return self._shown("repr()") if exploring else str(self._term)

    def __str__(self) -> str:
        return self._shown("str()") if exploring else str(self._term)

    def __format__(self, spec: str) -> str:
        return self._shown("an f-string or format()") if exploring else format(str(self._term), spec)

    def _shown(self, how: str) -> NoReturn:
        refuse(f"makes text of a symbolic {self.python.__name__} with {how}")

    def _not_concrete(self, *_: object) -> Any:
        refuse(f"needs the value of a symbolic {self.python.__name__} (as an index, a length or in C code)")

    def _not_known(self, *_: object) -> NoReturn:
        refuse(f"does something with a symbolic {self.python.__name__} that has no exact formula")

    __index__ = __int__ = __float__ = __complex__ = __len__ = __length_hint__ = _not_concrete


def _both_ways(sign: str) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """The method of an operator, and the one for when the other operand stands on the left."""
    return (
        lambda self, other: _arithmetic(sign, self, other, other),
        lambda self, other: _arithmetic(sign, other, self, other),
    )


def _compared(sign: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: _comparison(sign, self, other)


class SymbolicNumber(Symbolic):
    """A number that is not known."""

    __slots__ = ()

    __add__, __radd__ = _both_ways("+")
    __sub__, __rsub__ = _both_ways("-")
    __mul__, __rmul__ = _both_ways("*")
    __truediv__, __rtruediv__ = _both_ways("/")
    __floordiv__, __rfloordiv__ = _both_ways("//")
    __mod__, __rmod__ = _both_ways("%")
    __and__, __rand__ = _both_ways("&")
    __or__, __ror__ = _both_ways("|")
    __xor__, __rxor__ = _both_ways("^")
    __lshift__, __rlshift__ = _both_ways("<<")
    __rshift__, __rrshift__ = _both_ways(">>")

    def __divmod__(self, other: object) -> Any:
        quotient = _arithmetic("//", self, other, other)
        return quotient if quotient is NotImplemented else (quotient, _arithmetic("%", self, other, other))

    def __rdivmod__(self, other: object) -> Any:
        quotient = _arithmetic("//", other, self, other)
        return quotient if quotient is NotImplemented else (quotient, _arithmetic("%", other, self, other))

    def __pow__(self, other: object, modulus: object = None) -> Any:
        if modulus is not None:
            refuse("uses pow() with three arguments")
        return _arithmetic("**", self, other, other)

    def __rpow__(self, other: object, modulus: object = None) -> Any:
        return _arithmetic("**", other, self, other)

    __lt__, __le__, __gt__, __ge__ = (_compared(sign) for sign in ("<", "<=", ">", ">="))
    __eq__, __ne__ = _compared("=="), _compared("!=")
    __hash__ = Symbolic.__hash__

    def __neg__(self) -> Any:
        kind, term = _signed(self)
        return _value(kind, -term)

    def __pos__(self) -> Any:
        return _value(*_signed(self))

    def __abs__(self) -> Any:
        kind, term = _signed(self)
        return _value(kind, z3.If(term < 0, -term, term))

    def __invert__(self) -> Any:
        kind, term = _signed(self)
        if kind == _FLOAT:
            python_raises(TypeError("bad operand type for unary ~: 'float'"))
        return SymbolicInt(-term - 1)

    def __round__(self, digits: object = None) -> Any:
        kind, term = _signed(self)
        if kind == _INT and (digits is None or (type(digits) is int and digits >= 0)):
            return SymbolicInt(term)
        return self._not_known()

    def __floor__(self) -> SymbolicInt:
        kind, term = _signed(self)
        return SymbolicInt(term if kind == _INT else z3.ToInt(term))

    def __ceil__(self) -> SymbolicInt:
        kind, term = _signed(self)
        return SymbolicInt(term if kind == _INT else -z3.ToInt(-term))

    def __trunc__(self) -> SymbolicInt:
        kind, term = _signed(self)
        return SymbolicInt(term if kind == _INT else z3.If(term >= 0, z3.ToInt(term), -z3.ToInt(-term)))


class SymbolicInt(SymbolicNumber):
    """An int that is not known; unbounded, as Python's."""

    __slots__ = ()
    python = int


class SymbolicBool(SymbolicNumber):
    """A bool that is not known. It is 0 or 1 in arithmetic, as Python's."""

    __slots__ = ()
    python = bool

    def _decided(self, *_: object) -> Any:
        return int(bool(self))  # ("no", "yes")[x > 3]: two paths

    __index__ = __int__ = _decided


class SymbolicFloat(SymbolicNumber):
    """A float that is not known, taken for a real number: no rounding, no infinity, no NaN."""

    __slots__ = ()
    python = float


def _in_order(term: Any) -> SymbolicBool:
    assume(KNOWN_CHARACTERS)
    return SymbolicBool(term)


class SymbolicStr(Symbolic):
    """A str that is not known: comparisons, concatenation, length, substrings, prefixes and suffixes."""

    __slots__ = ()
    python = str

    def __add__(self, other: object) -> Any:
        return self._with(other, lambda a, b: SymbolicStr(z3.Concat(a, b)), "+")

    def __radd__(self, other: object) -> Any:
        return self._with(other, lambda a, b: SymbolicStr(z3.Concat(b, a)), "+")

    def __lt__(self, other: object) -> Any:
        return self._with(other, lambda a, b: _in_order(a < b), "<")

    def __le__(self, other: object) -> Any:
        return self._with(other, lambda a, b: _in_order(a <= b), "<=")

    def __gt__(self, other: object) -> Any:
        return self._with(other, lambda a, b: _in_order(b < a), ">")

    def __ge__(self, other: object) -> Any:
        return self._with(other, lambda a, b: _in_order(b <= a), ">=")

    def __eq__(self, other: object) -> Any:
        text = text_term(other)
        return _never_equal(other) if text is None else SymbolicBool(self._term == text)

    def __ne__(self, other: object) -> Any:
        text = text_term(other)
        return _never_equal(other) if text is None else SymbolicBool(self._term != text)

    __hash__ = Symbolic.__hash__

    def __contains__(self, other: object) -> bool:
        text = text_term(other)
        if text is None:
            python_raises(TypeError(f"'in <string>' requires string as left operand, not {type_name(other)}"))
        return bool(SymbolicBool(z3.Contains(self._term, text)))

    def startswith(self, prefix: object, *limits: object) -> Any:
        """Does it begin so?"""
        return self._affix(z3.PrefixOf, prefix, limits, "startswith")

    def endswith(self, suffix: object, *limits: object) -> Any:
        """Does it end so?"""
        return self._affix(z3.SuffixOf, suffix, limits, "endswith")

    def _affix(self, relation: Callable[..., Any], affix: object, limits: tuple[object, ...], name: str) -> Any:
        texts = [text_term(one) for one in (affix if type(affix) is tuple else (affix,))]
        if limits:
            refuse(f"uses .{name} of a symbolic str with a start or an end")
        if any(text is None for text in texts):
            python_raises(TypeError(f"{name} first arg must be str or a tuple of str, not {type_name(affix)}"))
        return SymbolicBool(z3.Or([relation(text, self._term) for text in texts]))

    def _with(self, other: object, made: Callable[[Any, Any], Any], sign: str) -> Any:
        text = text_term(other)
        if text is not None:
            return made(self._term, text)
        if isinstance(other, Symbolic) or type(other) in _OF_BUILTIN or type(other) in (int, bool, float):
            python_raises(TypeError(f"unsupported operand type(s) for {sign}: 'str' and '{type_name(other)}'"))
        return NotImplemented

    __iter__ = __getitem__ = Symbolic._not_known
    __mul__ = __rmul__ = __mod__ = __rmod__ = Symbolic._not_known


def type_name(value: object) -> str:
    """The name of the type that Python's own value would have."""
    return value.python.__name__ if isinstance(value, Symbolic) else type(value).__name__


def text_term(value: object) -> Any:
    """The term of a string, or None."""
    if type(value) is SymbolicStr:
        return value._term
    return _string(value) if type(value) is str else None


def _string(text: str) -> Any:
    # Z3 reads \u{..} in a literal as one character, so that a backslash has to be written that way too.
    if any(ord(character) > 0x2FFFF for character in text):
        refuse("uses a character that the solver's strings do not have")
    return z3.StringVal(
        "".join(c if " " <= c <= "~" and c != "\\" else f"\\u{{{ord(c):x}}}" for c in text),
    )


@functools.lru_cache(maxsize=1024)
def _numeral(value: int) -> Any:
    if value.bit_length() > _LARGEST_INT_BITS:
        refuse("uses a number of more than three thousand digits")
    return z3.IntVal(value)


def number_term(value: object) -> tuple[int, Any] | None:
    """Kind and term of a number, or None if it is none. An infinite float has kind _FLOAT and no term."""
    match type(value):
        case t if t is SymbolicInt:
            return _INT, value._term  # type: ignore[attr-defined]
        case t if t is int:
            return _INT, _numeral(value)
        case t if t is SymbolicBool:
            return _BOOL, value._term  # type: ignore[attr-defined]
        case t if t is bool:
            return _BOOL, z3.BoolVal(value)
        case t if t is SymbolicFloat:
            assume(REAL_NUMBERS)
            return _FLOAT, value._term  # type: ignore[attr-defined]
        case t if t is float:
            assume(REAL_NUMBERS)
            if math.isnan(value):  # type: ignore[arg-type]
                refuse("uses nan")
            if math.isinf(value):  # type: ignore[arg-type]
                return _FLOAT, None
            above, below = value.as_integer_ratio()  # type: ignore[attr-defined]
            return _FLOAT, z3.RealVal(f"{above}/{below}")
    return None


def _to_int(kind: int, term: Any) -> Any:
    if kind == _INT:
        return term
    return z3.IntVal(int(z3.is_true(term))) if z3.is_true(term) or z3.is_false(term) else z3.If(term, 1, 0)


def to_real(kind: int, term: Any) -> Any:
    """The term of a number as one of a real number."""
    return term if kind == _FLOAT else z3.ToReal(_to_int(kind, term))


def _signed(value: SymbolicNumber) -> tuple[int, Any]:
    kind, term = number_term(value)  # type: ignore[misc]
    return (_FLOAT, term) if kind == _FLOAT else (_INT, _to_int(kind, term))


def _value(kind: int, term: Any) -> Symbolic:
    return (SymbolicBool, SymbolicInt, SymbolicFloat)[kind](term)


def truth_term(value: Symbolic) -> Any:
    """Whether Python takes it for true."""
    if type(value) is SymbolicBool:
        return value._term
    if type(value) is SymbolicStr:
        return value._term != z3.StringVal("")
    _, term = _signed(typing.cast(SymbolicNumber, value))
    return term != 0


def _arithmetic(sign: str, left: object, right: object, other: object) -> Any:
    one, two = number_term(left), number_term(right)
    if one is None or two is None:
        if isinstance(other, Symbolic):  # a str, and never the left operand of %: then its own method was called
            if sign == "*":
                refuse("repeats a string")
            python_raises(
                TypeError(f"unsupported operand type(s) for {sign}: '{type_name(left)}' and '{type_name(right)}'")
            )
        repeats = sign == "*" and type(other) in (str, bytes, tuple, list)
        formats = sign == "%" and type(left) in (str, bytes)
        if repeats or formats:
            refuse("repeats a sequence a symbolic number of times" if repeats else "formats a symbolic value with %")
        if type(other) in _OF_BUILTIN:
            python_raises(
                TypeError(f"unsupported operand type(s) for {sign}: '{type_name(left)}' and '{type_name(right)}'")
            )
        if not is_record(other):
            refuse(f"calculates with a {type_name(other)}")
        return NotImplemented  # its class may know what to do, as with a real number
    if sign in ("&", "|", "^", "<<", ">>"):
        return _bitwise(sign, one, two)
    if sign == "**":
        return _power(one, right)
    if one[1] is None or two[1] is None:
        refuse("calculates with an infinite float")
    if sign == "/" or _FLOAT in (one[0], two[0]):
        return _real_arithmetic(sign, to_real(*one), to_real(*two))
    return _integer_arithmetic(sign, _to_int(*one), _to_int(*two))


def _integer_arithmetic(sign: str, a: Any, b: Any) -> SymbolicInt:
    if sign == "+":
        return SymbolicInt(a + b)
    if sign == "-":
        return SymbolicInt(a - b)
    if sign == "*":
        return SymbolicInt(a * b)
    if decide(b == 0):
        python_raises(ZeroDivisionError("integer division or modulo by zero"))
    # Z3 rounds so that the remainder is never negative, Python so that it has the sign of the divisor. They agree on
    # positive divisors, and a // b is (-a) // (-b).
    known = z3.simplify(b > 0)
    if z3.is_true(known):
        return SymbolicInt(a / b if sign == "//" else a % b)
    turned = (-a) / (-b) if sign == "//" else -((-a) % (-b))
    if z3.is_false(known):
        return SymbolicInt(turned)
    return SymbolicInt(z3.If(b > 0, a / b if sign == "//" else a % b, turned))


def _real_arithmetic(sign: str, a: Any, b: Any) -> SymbolicFloat:
    assume(REAL_NUMBERS)
    match sign:
        case "+":
            return SymbolicFloat(a + b)
        case "-":
            return SymbolicFloat(a - b)
        case "*":
            return SymbolicFloat(a * b)
        case "/":
            if decide(b == 0):
                python_raises(ZeroDivisionError("division by zero"))
            return SymbolicFloat(a / b)
    return refuse(f"uses {sign} on floats")


def _power(one: tuple[int, Any], exponent: object) -> Symbolic:
    if type(exponent) not in (int, bool) or not 0 <= exponent <= _LARGEST_POWER:  # type: ignore[operator]
        refuse(f"uses ** with an exponent other than 0 to {_LARGEST_POWER}")
    kind, base = one
    if base is None:
        refuse("calculates with an infinite float")
    kind, base = (_FLOAT, base) if kind == _FLOAT else (_INT, _to_int(kind, base))
    unit = z3.RealVal(1) if kind == _FLOAT else z3.IntVal(1)
    times = int(exponent)  # type: ignore[call-overload]
    return _value(kind, functools.reduce(operator.mul, [base] * times) if times else unit)


def _bitwise(sign: str, one: tuple[int, Any], two: tuple[int, Any]) -> Symbolic:
    if _FLOAT in (one[0], two[0]):
        python_raises(TypeError(f"unsupported operand type(s) for {sign}: float"))
    if one[0] == two[0] == _BOOL and sign in "&|^":
        a, b = one[1], two[1]
        return SymbolicBool(z3.And(a, b) if sign == "&" else z3.Or(a, b) if sign == "|" else z3.Xor(a, b))
    a, b = _to_int(*one), _to_int(*two)
    if sign == "&" and z3.is_int_value(a):
        a, b = b, a
    if z3.is_int_value(b):
        number = b.as_long()
        if sign == "&" and number >= 0 and number & (number + 1) == 0:
            return SymbolicInt(a % (number + 1))  # the low bits, also of a negative number
        if sign in ("<<", ">>"):
            if number < 0:
                python_raises(ValueError("negative shift count"))
            if number <= _LARGEST_INT_BITS:
                return SymbolicInt(a * 2**number if sign == "<<" else a / 2**number)
    return refuse(f"uses {sign} on integers other than a mask of low bits or a shift by a constant")


def _comparison(sign: str, left: SymbolicNumber, right: object) -> Any:
    other = number_term(right)
    if other is None:
        if sign in ("==", "!="):
            return _never_equal(right)
        if isinstance(right, Symbolic) or type(right) in _OF_BUILTIN:
            python_raises(TypeError(f"'{sign}' not supported between '{type_name(left)}' and '{type_name(right)}'"))
        if not is_record(right):
            refuse(f"compares a symbolic number with a {type_name(right)}")
        return NotImplemented
    one = typing.cast("tuple[int, Any]", number_term(left))
    if other[1] is None:
        return bool(_COMPARE[sign](0.0, right))  # every number is on the same side of an infinite one
    if one[0] == other[0]:
        a, b = one[1], other[1]
        if one[0] == _BOOL and sign not in ("==", "!="):
            a, b = _to_int(*one), _to_int(*other)
    elif _FLOAT in (one[0], other[0]):
        a, b = to_real(*one), to_real(*other)
    else:
        a, b = _to_int(*one), _to_int(*other)
    return SymbolicBool(_COMPARE[sign](a, b))


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def _never_equal(other: object) -> Any:
    """What int.__eq__ says to a value that is no number; the other side may still know better."""
    if isinstance(other, Symbolic) or type(other) in _OF_BUILTIN or type(other) in (int, float, bool):
        return NotImplemented
    if is_record(other) or isinstance(other, (StandIn, types.FunctionType)):
        return NotImplemented
    return refuse(f"compares a symbolic value with a {type_name(other)}")


def is_record(value: object) -> bool:
    """Whether it is a namedtuple or an instance of a dataclass."""
    return is_namedtuple(type(value)) or dataclasses.is_dataclass(type(value))


def is_namedtuple(cls: type) -> bool:
    """Whether it is a class of namedtuples."""
    return issubclass(cls, tuple) and hasattr(cls, "_fields") and hasattr(cls, "_make")


def term_of(leaf: object) -> z3.ExprRef:
    """The Z3 term of a leaf: of a symbolic value, or of an int, bool, str or float."""
    term = text_term(leaf)
    if term is None:
        number = number_term(leaf)
        term = number[1] if number else None
    if term is None:
        raise UnsupportedError(
            "term_of", needed="an int, bool, str or finite float", came=repr(leaf), hint="None is a flag"
        )
    return term
