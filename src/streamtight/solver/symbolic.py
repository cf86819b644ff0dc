"""A Python function read as a formula: it is run on symbolic values, once for each path that it can take.

    lambda x: x // 2 if x > 0 else -x           x > 0  ->  x div 2
                                          not x > 0  ->  -x

Symbolic values do what Python's values do and build Z3 terms on the way. Only `bool` has to give a real answer: there
the function is run twice, once for each answer that is possible (`explore`). So early returns, locals, helpers,
unpacking and loops have Python's meaning because Python runs them.

What could see through a symbolic value must not be in the function, and that is asked before it runs
(`require_readable`): its bytecode is compared with a list of harmless instructions, and what it reaches by name is
replaced by a twin: helpers by functions that were read the same way, builtins by versions that know symbolic values,
captured lists by copies, captured dicts and sets by ones that can be asked for a symbolic key. What is not on a list is
refused with its line (`NotReadable`). Afterwards the reading is compared with the function itself on concrete values
(`check_reading`).

>>> x, _ = fresh(int, "x")
>>> for path in read(lambda x: x // 2 if x > 0 else -x, [x], budget=Budget(5)):
...     print(path.guard, "->", path.result)
x <= 0 -> -x
Not(x <= 0) -> x/2

Integers are exact and unbounded. Floats are taken for real numbers; a path on which that was used says so in `assumes`.
Not for several threads: Z3's default context is not, and what is being explored is kept in this module.
"""

from __future__ import annotations

import collections
import ctypes
import dataclasses
import dis
import functools
import itertools
import math
import operator
import os
import random
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import z3

from streamtight.errors import EncodingError, StreamtightError, UnsupportedError
from streamtight.solver.ask import Budget, check

REAL_NUMBERS = "floats are real numbers"
"""What a path assumes on which floats were calculated with."""

_OWN_FILES = (__file__, os.path.dirname(z3.__file__))
_LARGEST_POWER = 8
_LONGEST_RANGE = 10_000
_LARGEST_INT_BITS = 10_000
"""Beyond that, Python refuses to write an integer down in decimal, which is how Z3 gets it."""


_BUILTINS_OF = operator.attrgetter("__builtins__")
"""Of a function; not every checker of types knows the attribute."""


class NotReadable(UnsupportedError):
    """A function that cannot be read exactly. `line` says where in `file`, `what` says why: "uses random.random()"."""

    def __init__(self, what: str, *, line: int | None, file: str | None = None) -> None:
        place = "a function without source" if line is None else f"line {line}" + (f" of {file}" if file else "")
        super().__init__(
            place,
            needed="a function that can be run on symbolic values",
            came=f"one that {what}",
            hint="rewrite that line with arithmetic, comparisons and tuples, or compare on generated inputs instead",
        )
        self.line = line
        self.file = file
        self.what = what


# -- symbolic values -------------------------------------------------------------------------------------------------

_BOOL, _INT, _FLOAT = 0, 1, 2
_OF_BUILTIN = (type(None), str, bytes, tuple, list, dict, set, frozenset, range)


class Symbolic:
    """A value that is not known yet. What Python's own value can do and this one cannot is refused, never guessed."""

    __slots__ = ("_term",)
    python: type = object

    def __init__(self, term: z3.ExprRef) -> None:
        self._term = term

    def __bool__(self) -> bool:
        return _decide(_truth(self))

    def __hash__(self) -> int:
        _refuse("uses a symbolic value as a key of a dict or an element of a set")

    def __getattr__(self, name: str) -> NoReturn:
        if hasattr(self.python, name):
            _refuse(f"uses .{name} of a symbolic {self.python.__name__}")
        _raise(AttributeError(f"'{self.python.__name__}' object has no attribute '{name}'"))

    def __repr__(self) -> str:
        return self._shown("repr()") if _exploring else str(self._term)

    def __str__(self) -> str:
        return self._shown("str()") if _exploring else str(self._term)

    def __format__(self, spec: str) -> str:
        return self._shown("an f-string or format()") if _exploring else format(str(self._term), spec)

    def _shown(self, how: str) -> NoReturn:
        _refuse(f"makes text of a symbolic {self.python.__name__} with {how}")

    def _not_concrete(self, *_: object) -> Any:
        _refuse(f"needs the value of a symbolic {self.python.__name__} (as an index, a length or in C code)")

    def _not_known(self, *_: object) -> NoReturn:
        _refuse(f"does something with a symbolic {self.python.__name__} that has no exact formula")

    __index__ = __int__ = __float__ = __complex__ = __len__ = __length_hint__ = _not_concrete


def _both_ways(sign: str) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """The method of an operator, and the one for when the other operand stands on the left."""
    return (
        lambda self, other: _arithmetic(sign, self, other, other),
        lambda self, other: _arithmetic(sign, other, self, other),
    )


def _compared(sign: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: _comparison(sign, self, other)


class _Number(Symbolic):
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
            _refuse("uses pow() with three arguments")
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
            _raise(TypeError("bad operand type for unary ~: 'float'"))
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


class SymbolicInt(_Number):
    """An int that is not known; unbounded, as Python's."""

    __slots__ = ()
    python = int


class SymbolicBool(_Number):
    """A bool that is not known. It is 0 or 1 in arithmetic, as Python's."""

    __slots__ = ()
    python = bool

    def _decided(self, *_: object) -> Any:
        return int(bool(self))  # ("no", "yes")[x > 3]: two paths

    __index__ = __int__ = _decided


class SymbolicFloat(_Number):
    """A float that is not known, taken for a real number: no rounding, no infinity, no NaN."""

    __slots__ = ()
    python = float


class SymbolicStr(Symbolic):
    """A str that is not known: comparisons, concatenation, length, substrings, prefixes and suffixes."""

    __slots__ = ()
    python = str

    def __add__(self, other: object) -> Any:
        return self._with(other, lambda a, b: SymbolicStr(z3.Concat(a, b)), "+")

    def __radd__(self, other: object) -> Any:
        return self._with(other, lambda a, b: SymbolicStr(z3.Concat(b, a)), "+")

    def __lt__(self, other: object) -> Any:
        return self._with(other, lambda a, b: SymbolicBool(a < b), "<")

    def __le__(self, other: object) -> Any:
        return self._with(other, lambda a, b: SymbolicBool(a <= b), "<=")

    def __gt__(self, other: object) -> Any:
        return self._with(other, lambda a, b: SymbolicBool(b < a), ">")

    def __ge__(self, other: object) -> Any:
        return self._with(other, lambda a, b: SymbolicBool(b <= a), ">=")

    def __eq__(self, other: object) -> Any:
        text = _text(other)
        return _never_equal(other) if text is None else SymbolicBool(self._term == text)

    def __ne__(self, other: object) -> Any:
        text = _text(other)
        return _never_equal(other) if text is None else SymbolicBool(self._term != text)

    __hash__ = Symbolic.__hash__

    def __contains__(self, other: object) -> bool:
        text = _text(other)
        if text is None:
            _raise(TypeError(f"'in <string>' requires string as left operand, not {_type_name(other)}"))
        return bool(SymbolicBool(z3.Contains(self._term, text)))

    def startswith(self, prefix: object, *limits: object) -> Any:
        """Does it begin so?"""
        return self._affix(z3.PrefixOf, prefix, limits, "startswith")

    def endswith(self, suffix: object, *limits: object) -> Any:
        """Does it end so?"""
        return self._affix(z3.SuffixOf, suffix, limits, "endswith")

    def _affix(self, relation: Callable[..., Any], affix: object, limits: tuple[object, ...], name: str) -> Any:
        texts = [_text(one) for one in (affix if type(affix) is tuple else (affix,))]
        if limits:
            _refuse(f"uses .{name} of a symbolic str with a start or an end")
        if any(text is None for text in texts):
            _raise(TypeError(f"{name} first arg must be str or a tuple of str, not {_type_name(affix)}"))
        return SymbolicBool(z3.Or([relation(text, self._term) for text in texts]))

    def _with(self, other: object, made: Callable[[Any, Any], Any], sign: str) -> Any:
        text = _text(other)
        if text is not None:
            return made(self._term, text)
        if isinstance(other, Symbolic) or type(other) in _OF_BUILTIN or type(other) in (int, bool, float):
            _raise(TypeError(f"unsupported operand type(s) for {sign}: 'str' and '{_type_name(other)}'"))
        return NotImplemented

    __iter__ = __getitem__ = Symbolic._not_known
    __mul__ = __rmul__ = __mod__ = __rmod__ = Symbolic._not_known


def _type_name(value: object) -> str:
    return value.python.__name__ if isinstance(value, Symbolic) else type(value).__name__


def _text(value: object) -> Any:
    """The term of a string, or None."""
    if type(value) is SymbolicStr:
        return value._term
    return _string(value) if type(value) is str else None


def _string(text: str) -> Any:
    # Z3 reads \u{..} in a literal as one character, so that a backslash has to be written that way too.
    if any(ord(character) > 0x2FFFF for character in text):
        _refuse("uses a character that the solver's strings do not have")
    return z3.StringVal(
        "".join(c if " " <= c <= "~" and c != "\\" else f"\\u{{{ord(c):x}}}" for c in text),
    )


@functools.lru_cache(maxsize=1024)
def _numeral(value: int) -> Any:
    if value.bit_length() > _LARGEST_INT_BITS:
        _refuse("uses a number of more than three thousand digits")
    return z3.IntVal(value)


def _number(value: object) -> tuple[int, Any] | None:
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
            _assume(REAL_NUMBERS)
            return _FLOAT, value._term  # type: ignore[attr-defined]
        case t if t is float:
            _assume(REAL_NUMBERS)
            if math.isnan(value):  # type: ignore[arg-type]
                _refuse("uses nan")
            if math.isinf(value):  # type: ignore[arg-type]
                return _FLOAT, None
            above, below = value.as_integer_ratio()  # type: ignore[attr-defined]
            return _FLOAT, z3.RealVal(f"{above}/{below}")
    return None


def _to_int(kind: int, term: Any) -> Any:
    if kind == _INT:
        return term
    return z3.IntVal(int(z3.is_true(term))) if z3.is_true(term) or z3.is_false(term) else z3.If(term, 1, 0)


def _to_real(kind: int, term: Any) -> Any:
    return term if kind == _FLOAT else z3.ToReal(_to_int(kind, term))


def _signed(value: _Number) -> tuple[int, Any]:
    kind, term = _number(value)  # type: ignore[misc]
    return (_FLOAT, term) if kind == _FLOAT else (_INT, _to_int(kind, term))


def _value(kind: int, term: Any) -> Symbolic:
    return (SymbolicBool, SymbolicInt, SymbolicFloat)[kind](term)


def _truth(value: Symbolic) -> Any:
    if type(value) is SymbolicBool:
        return value._term
    if type(value) is SymbolicStr:
        return value._term != z3.StringVal("")
    _, term = _signed(typing.cast(_Number, value))
    return term != 0


def _arithmetic(sign: str, left: object, right: object, other: object) -> Any:
    one, two = _number(left), _number(right)
    if one is None or two is None:
        if isinstance(other, Symbolic):  # a str, and never the left operand of %: then its own method was called
            if sign == "*":
                _refuse("repeats a string")
            _raise(TypeError(f"unsupported operand type(s) for {sign}: '{_type_name(left)}' and '{_type_name(right)}'"))
        repeats = sign == "*" and type(other) in (str, bytes, tuple, list)
        formats = sign == "%" and type(left) in (str, bytes)
        if repeats or formats:
            _refuse("repeats a sequence a symbolic number of times" if repeats else "formats a symbolic value with %")
        if type(other) in _OF_BUILTIN:
            _raise(TypeError(f"unsupported operand type(s) for {sign}: '{_type_name(left)}' and '{_type_name(right)}'"))
        if not _is_record(other):
            _refuse(f"calculates with a {_type_name(other)}")
        return NotImplemented  # its class may know what to do, as with a real number
    if sign in ("&", "|", "^", "<<", ">>"):
        return _bitwise(sign, one, two)
    if sign == "**":
        return _power(one, right)
    if one[1] is None or two[1] is None:
        _refuse("calculates with an infinite float")
    if sign == "/" or _FLOAT in (one[0], two[0]):
        return _real_arithmetic(sign, _to_real(*one), _to_real(*two))
    return _integer_arithmetic(sign, _to_int(*one), _to_int(*two))


def _integer_arithmetic(sign: str, a: Any, b: Any) -> SymbolicInt:
    if sign == "+":
        return SymbolicInt(a + b)
    if sign == "-":
        return SymbolicInt(a - b)
    if sign == "*":
        return SymbolicInt(a * b)
    if _decide(b == 0):
        _raise(ZeroDivisionError("integer division or modulo by zero"))
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
    _assume(REAL_NUMBERS)
    match sign:
        case "+":
            return SymbolicFloat(a + b)
        case "-":
            return SymbolicFloat(a - b)
        case "*":
            return SymbolicFloat(a * b)
        case "/":
            if _decide(b == 0):
                _raise(ZeroDivisionError("division by zero"))
            return SymbolicFloat(a / b)
    return _refuse(f"uses {sign} on floats")


def _power(one: tuple[int, Any], exponent: object) -> Symbolic:
    if type(exponent) not in (int, bool) or not 0 <= exponent <= _LARGEST_POWER:  # type: ignore[operator]
        _refuse(f"uses ** with an exponent other than 0 to {_LARGEST_POWER}")
    kind, base = one
    if base is None:
        _refuse("calculates with an infinite float")
    kind, base = (_FLOAT, base) if kind == _FLOAT else (_INT, _to_int(kind, base))
    unit = z3.RealVal(1) if kind == _FLOAT else z3.IntVal(1)
    times = int(exponent)  # type: ignore[call-overload]
    return _value(kind, functools.reduce(operator.mul, [base] * times) if times else unit)


def _bitwise(sign: str, one: tuple[int, Any], two: tuple[int, Any]) -> Symbolic:
    if _FLOAT in (one[0], two[0]):
        _raise(TypeError(f"unsupported operand type(s) for {sign}: float"))
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
                _raise(ValueError("negative shift count"))
            if number <= _LARGEST_INT_BITS:
                return SymbolicInt(a * 2**number if sign == "<<" else a / 2**number)
    return _refuse(f"uses {sign} on integers other than a mask of low bits or a shift by a constant")


def _comparison(sign: str, left: _Number, right: object) -> Any:
    other = _number(right)
    if other is None:
        if sign in ("==", "!="):
            return _never_equal(right)
        if isinstance(right, Symbolic) or type(right) in _OF_BUILTIN:
            _raise(TypeError(f"'{sign}' not supported between '{_type_name(left)}' and '{_type_name(right)}'"))
        if not _is_record(right):
            _refuse(f"compares a symbolic number with a {_type_name(right)}")
        return NotImplemented
    one = typing.cast("tuple[int, Any]", _number(left))
    if other[1] is None:
        return bool(_COMPARE[sign](0.0, right))  # every number is on the same side of an infinite one
    if one[0] == other[0]:
        a, b = one[1], other[1]
        if one[0] == _BOOL and sign not in ("==", "!="):
            a, b = _to_int(*one), _to_int(*other)
    elif _FLOAT in (one[0], other[0]):
        a, b = _to_real(*one), _to_real(*other)
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
    if _is_record(other) or isinstance(other, (_Table, _Members, types.FunctionType)):
        return NotImplemented
    return _refuse(f"compares a symbolic value with a {_type_name(other)}")


def _is_record(value: object) -> bool:
    return _is_namedtuple(type(value)) or dataclasses.is_dataclass(type(value))


def _is_namedtuple(cls: type) -> bool:
    return issubclass(cls, tuple) and hasattr(cls, "_fields") and hasattr(cls, "_make")


# -- one run and all runs --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Path:
    """Where `guard` is true, the function gives `result`, or raises `raised`.

    The result is a tree of tuples, lists, namedtuples and dataclasses; its leaves are None, int, bool, str, float and
    symbolic values. `assumes` holds what is assumed on this path.
    """

    guard: z3.BoolRef
    result: object = None
    raised: Exception | None = None
    assumes: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Step:
    """One decision of the current run. It is forced if the other answer is impossible."""

    condition: Any
    taken: bool
    forced: bool
    other_is_open: bool
    other_model: Any

    @property
    def literal(self) -> Any:
        return self.condition if self.taken else z3.Not(self.condition)


_exploring: list[_Exploration] = []


class _Exploration:
    """Depth first over the answers that `bool` may give. The solver's stack holds the decisions of the current run."""

    def __init__(self, given: Sequence[z3.BoolRef], budget: Budget, most: int) -> None:
        self.given = list(given)
        self.budget = budget
        self.most = most
        self.solver = z3.Solver()
        self.solver.add(*self.given)
        self.model: Any = None
        self.trail: list[_Step] = []
        self.depth = 0
        self.finished = 0
        self.known: dict[int, bool] = {}
        self.simple: dict[int, tuple[Any, bool]] = {}
        self.kept: list[Any] = []
        self.assumes: set[str] = set()
        self.refusal: NotReadable | None = None
        self.own_error: Exception | None = None
        self.error_of_builtin: Exception | None = None
        self.function: _Twin | None = None

    def start(self) -> bool:
        if not self.given:
            self.model = z3.Model()
            return True
        status, _ = check(self.solver, self.budget.left)
        self.model = self.solver.model() if status == z3.sat else None
        return bool(status != z3.unsat)

    def decide(self, condition: Any) -> bool:
        condition, turned = self._simple(condition)
        if condition is None:
            return turned
        answer = self.known.get(condition.get_id())
        if answer is None:
            answer = self.known[condition.get_id()] = self._next(condition).taken
        return answer != turned

    def _simple(self, condition: Any) -> tuple[Any, bool]:
        """A simpler condition and whether its answer is to be turned; or None and the answer."""
        key = condition.get_id()  # equal terms have one id, as long as one of them lives
        if key not in self.simple:
            self.kept.append(condition)
            simple, turned = z3.simplify(condition), False
            while z3.is_not(simple):
                simple, turned = simple.arg(0), not turned
            decided = z3.is_true(simple) or z3.is_false(simple)
            self.simple[key] = (None, bool(z3.is_true(simple)) != turned) if decided else (simple, turned)
        return self.simple[key]

    def _next(self, condition: Any) -> _Step:
        if self.depth == len(self.trail):
            self.trail.append(self._branch(condition))
        step = self.trail[self.depth]
        self.depth += 1
        if step.condition.get_id() != condition.get_id():
            _refuse("does not take the same decisions when it is run again")
        return step

    def _branch(self, condition: Any) -> _Step:
        if self.budget.left <= 0:
            _refuse(f"has paths that were not all followed in {self.budget.seconds:g} s")
        in_model = None if self.model is None else self.model.eval(condition, model_completion=True)
        models: dict[bool, Any] = {}
        for answer in (True, False):
            if in_model is not None and (z3.is_true if answer else z3.is_false)(in_model):
                models[answer] = self.model
                continue
            self.solver.push()
            self.solver.add(condition if answer else z3.Not(condition))
            status, _ = check(self.solver, min(self.budget.left, 2.0))
            if status != z3.unsat:
                models[answer] = self.solver.model() if status == z3.sat else None
            self.solver.pop()
        if not models:
            _refuse("cannot be followed: the solver contradicts itself")
        taken = True in models
        step = _Step(condition, taken, len(models) == 1, len(models) == 2, models.get(False))
        self.model = models[taken]
        if not step.forced:
            if self.finished + 1 + sum(step.other_is_open for step in self.trail) >= self.most:
                _refuse(f"has more than {self.most} paths")
            self.solver.push()
            self.solver.add(step.literal)
        return step

    def run(self, call: Callable[[], object], replay: Callable[[Any], object] | None) -> Path:
        self.depth = 0
        self.known = {}
        self.assumes = set()
        self.own_error = self.error_of_builtin = None
        result, raised = None, None
        _exploring.append(self)
        try:
            try:
                result = _settled(call())
            except StreamtightError:
                raise
            except Exception as error:
                raised = error
            if self.refusal is not None:
                raise self.refusal  # C code swallowed it
            if self.function is not None:
                self.function.require_unchanged()
            if raised is not None:
                if not self._is_of_python(raised, replay):
                    _refuse(f"raises {type(raised).__name__} on a symbolic value: {raised}", raised)
                raised = raised.with_traceback(None)
        finally:
            _exploring.pop()
        self.finished += 1
        # Decisions that follow from earlier ones say nothing new, unless they follow from what is given.
        literals = [step.literal for step in self.trail if self.given or not step.forced]
        guard = z3.And(literals) if len(literals) > 1 else literals[0] if literals else z3.BoolVal(True)
        return Path(guard, result, raised, frozenset(self.assumes))

    def _is_of_python(self, error: Exception, replay: Callable[[Any], object] | None) -> bool:
        """Would real values of these types raise it too, or is it C code that does not know symbolic values?"""
        if error is self.own_error:
            return True
        if isinstance(error, (RecursionError, MemoryError)):  # when depends on more than the function
            return False
        frame = _last_frame(error)
        if frame.tb_frame.f_code.co_filename.startswith(_OWN_FILES) and error is not self.error_of_builtin:
            return False
        if not isinstance(error, (TypeError, AttributeError, SystemError)):
            return True
        if dis.opname[frame.tb_frame.f_code.co_code[frame.tb_lasti]] == "RAISE_VARARGS":
            return True
        if replay is None or self.model is None:
            return False
        try:
            replay(self.model)
        except Exception as real:
            # Whether types fit depends on types, which are the same for all values of this path.
            return type(real) is type(error) and _last_line(real) == _last_line(error)
        return False

    def backtrack(self) -> bool:
        while self.trail:
            step = self.trail.pop()
            if step.forced:
                continue
            self.solver.pop()
            if step.other_is_open:
                self.trail.append(_Step(step.condition, not step.taken, False, False, None))
                self.solver.push()
                self.solver.add(self.trail[-1].literal)
                self.model = step.other_model
                return True
        return False


def _last_frame(error: BaseException) -> types.TracebackType:
    frame = typing.cast(types.TracebackType, error.__traceback__)
    while frame.tb_next is not None:
        frame = frame.tb_next
    return frame


def _decide(condition: Any) -> bool:
    if not _exploring:
        simple = z3.simplify(condition)
        if z3.is_true(simple) or z3.is_false(simple):
            return bool(z3.is_true(simple))
        _refuse("asks for the truth of a symbolic value while nothing is explored")
    return _exploring[-1].decide(condition)


def _assume(what: str) -> None:
    if _exploring:
        _exploring[-1].assumes.add(what)


def _raise(error: Exception) -> NoReturn:
    """Raise what Python raises for values of these types."""
    if _exploring:
        _exploring[-1].own_error = error
    raise error


def _refuse(what: str, cause: BaseException | None = None) -> NoReturn:
    """Refuse at the line that is being run, or at the one where `cause` came from."""
    exploration = _exploring[-1] if _exploring else None
    twin = exploration.function if exploration else None
    frames = _frames_of(cause) if cause else _frames_now()
    places = [(line, code.co_filename) for code, line in frames if twin is None or id(code) in twin.codes]
    line, file = places[-1] if places else twin.place if twin else (None, None)
    refusal = NotReadable(what, line=line, file=file)
    if exploration is not None and exploration.refusal is None:
        exploration.refusal = refusal
    raise refusal from cause


def _frames_now() -> list[tuple[types.CodeType, int]]:
    """The frames of the run that is being made, innermost last."""
    frames: list[tuple[types.CodeType, int]] = []
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code is not _Exploration.run.__code__:
        if not frame.f_code.co_filename.startswith(_OWN_FILES):
            frames.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return frames[::-1] if frame is not None else []


def _frames_of(error: BaseException) -> list[tuple[types.CodeType, int]]:
    frames: list[tuple[types.CodeType, int]] = []
    trace = error.__traceback__
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(_OWN_FILES):
            frames.append((trace.tb_frame.f_code, trace.tb_lineno))
        trace = trace.tb_next
    return frames


def _last_line(error: BaseException) -> int | None:
    frames = _frames_of(error)
    return frames[-1][1] if frames else None


def _settled(value: object) -> object:
    """The result of a run, as long as every leaf of it is known to be exact."""
    kind = type(value)
    if value is None or kind in (int, bool, str) or isinstance(value, Symbolic):
        return value
    if kind is float:
        if not math.isfinite(typing.cast(float, value)):
            _refuse(f"gives {value}")
        return value
    if kind is tuple or kind is list:
        return kind(_settled(item) for item in value)  # type: ignore[attr-defined]
    if _is_namedtuple(kind):
        return kind._make(_settled(item) for item in value)  # type: ignore[attr-defined]
    if dataclasses.is_dataclass(kind):
        for field in dataclasses.fields(kind):
            _settled(getattr(value, field.name))
        return value
    return _refuse(f"gives a {_OWN_NAMES.get(kind.__name__, kind.__name__)}")


_OWN_NAMES = {"_Table": "dict", "_Members": "set", "_View": "view of a dict", "_Namespace": "module or class"}


def explore(
    call: Callable[[], object],
    *,
    given: Sequence[z3.BoolRef] = (),
    budget: Budget,
    most: int = 200,
    replay: Callable[[z3.ModelRef], object] | None = None,
) -> list[Path]:
    """All paths of `call`. Their guards exclude each other, and where everything `given` is true one of them is.

    `call` is run once for each path and must do the same each time. An exception is a path that raises. A TypeError or
    AttributeError may also come from code that does not know symbolic values: it is refused, unless `replay`, which
    runs the same on the values of a model, raises it at the same line.
    """
    return _explore(_Exploration(given, budget, most), call, replay)


def _explore(
    exploration: _Exploration, call: Callable[[], object], replay: Callable[[Any], object] | None
) -> list[Path]:
    if not exploration.start():
        return []
    paths = [exploration.run(call, replay)]
    while exploration.backtrack():
        paths.append(exploration.run(call, replay))
    return paths


# -- which functions can be run on symbolic values -------------------------------------------------------------------


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Instructions that move values, jump, calculate through the operators of the values, or build local containers.
_HARMLESS = _words(
    """
    CACHE NOP RESUME EXTENDED_ARG COPY SWAP POP_TOP PUSH_NULL LOAD_CONST LOAD_FAST STORE_FAST DELETE_FAST
    LOAD_GLOBAL LOAD_DEREF STORE_DEREF LOAD_CLOSURE MAKE_CELL COPY_FREE_VARS MAKE_FUNCTION LOAD_ATTR LOAD_METHOD
    PRECALL CALL KW_NAMES CALL_FUNCTION_EX RETURN_VALUE BINARY_OP COMPARE_OP CONTAINS_OP IS_OP UNARY_NEGATIVE
    UNARY_POSITIVE UNARY_NOT UNARY_INVERT BINARY_SUBSCR STORE_SUBSCR DELETE_SUBSCR BUILD_TUPLE BUILD_LIST BUILD_MAP
    BUILD_SLICE BUILD_STRING BUILD_CONST_KEY_MAP LIST_EXTEND LIST_APPEND MAP_ADD DICT_UPDATE
    DICT_MERGE LIST_TO_TUPLE UNPACK_SEQUENCE UNPACK_EX GET_ITER FOR_ITER FORMAT_VALUE RAISE_VARARGS
    LOAD_ASSERTION_ERROR GET_LEN MATCH_SEQUENCE JUMP_FORWARD JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT
    JUMP_IF_TRUE_OR_POP JUMP_IF_FALSE_OR_POP POP_JUMP_FORWARD_IF_TRUE POP_JUMP_FORWARD_IF_FALSE
    POP_JUMP_FORWARD_IF_NONE POP_JUMP_FORWARD_IF_NOT_NONE POP_JUMP_BACKWARD_IF_TRUE POP_JUMP_BACKWARD_IF_FALSE
    POP_JUMP_BACKWARD_IF_NONE POP_JUMP_BACKWARD_IF_NOT_NONE
    POP_JUMP_IF_TRUE POP_JUMP_IF_FALSE POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE RETURN_CONST LOAD_FAST_CHECK
    LOAD_FAST_AND_CLEAR END_FOR BINARY_SLICE STORE_SLICE RERAISE CALL_KW TO_BOOL LOAD_FAST_LOAD_FAST
    STORE_FAST_LOAD_FAST STORE_FAST_STORE_FAST SET_FUNCTION_ATTRIBUTE CONVERT_VALUE FORMAT_SIMPLE FORMAT_WITH_SPEC
    """
)
# Only in generator expressions; a function that yields is refused by its flags.
_IN_GENERATORS = frozenset({"RETURN_GENERATOR", "YIELD_VALUE"})
_HARMLESS_INTRINSICS = {"INTRINSIC_UNARY_POSITIVE", "INTRINSIC_LIST_TO_TUPLE", "INTRINSIC_STOPITERATION_ERROR"}
_REFUSED = {
    "STORE_GLOBAL": "changes the global variable {}",
    "DELETE_GLOBAL": "deletes the global variable {}",
    "STORE_ATTR": "sets the attribute {}",
    "DELETE_ATTR": "deletes the attribute {}",
    "IMPORT_NAME": "imports {}",
    "IMPORT_FROM": "imports {}",
    "PUSH_EXC_INFO": "uses try or with",
    "CHECK_EXC_MATCH": "uses try",
    "CHECK_EG_MATCH": "uses try",
    "BEFORE_WITH": "uses with",
    "LOAD_BUILD_CLASS": "defines a class",
    "MATCH_CLASS": "matches a class",
    "MATCH_MAPPING": "matches a mapping",
    "MATCH_KEYS": "matches a mapping",
    "BUILD_SET": "builds a set",
    "SEND": "yields from an iterator",
    "GET_YIELD_FROM_ITER": "yields from an iterator",
    "LOAD_SUPER_ATTR": "uses super()",
}
_PRIVATE_BUT_HARMLESS = frozenset({"_replace", "_asdict", "_fields", "_make"})
# Attributes through which a function could look behind values.
_REVEALING = _words("format format_map gi_frame gi_code gi_yieldfrom gi_running gi_suspended")


def require_readable(function: Callable[..., object]) -> None:
    """Raise `NotReadable`, with the line, if the function could do what symbolic values cannot show."""
    _Twin(function)


class _Twin:
    """A function made of the same code, in which everything that is reached by name is safe for symbolic values."""

    def __init__(
        self,
        function: object,
        arguments: Iterable[object] = (),
        instead: Callable[[Symbolic], object] | None = None,
    ) -> None:
        self.codes: dict[int, types.CodeType] = {}
        self.constants: dict[object, None] = {}
        self.captures: list[Symbolic] = []
        self.loops = False
        self._instead = instead
        self._twins: dict[int, object] = {}
        self._kept: list[object] = []  # an id is only unique while its object lives
        self._lists: list[tuple[list[object], list[object]]] = []
        self._fields: set[str] = set()
        code = getattr(function, "__code__", None)
        self.place: tuple[int | None, str | None] = (code.co_firstlineno, code.co_filename) if code else (None, None)
        self._place = self.place
        self.arguments = tuple(arguments)
        for argument in self.arguments:  # first, since their classes say which attributes there are
            self._watch(argument)
        name = getattr(function, "__qualname__", None) or type(function).__name__
        self.call = typing.cast("Callable[..., object]", self.admit(function, name))
        if not callable(self.call):
            self._refuse(f"is a {type(function).__name__}, not a function")
        if isinstance(self.call, _Namespace):
            self._refuse(f"uses {name}()")

    def _refuse(self, what: str) -> NoReturn:
        if _exploring and _exploring[-1].function is self:
            _refuse(what)
        raise NotReadable(what, line=self._place[0], file=self._place[1])

    def require_unchanged(self) -> None:
        for copy, before in self._lists:
            if len(copy) != len(before) or any(now is not then for now, then in zip(copy, before, strict=True)):
                _refuse("changes a list that is not its own")

    def _watch(self, value: object) -> None:
        """Arguments: their classes must be known, their lists must stay as they are."""
        if type(value) is list:
            self._lists.append((value, list(value)))
        elif dataclasses.is_dataclass(type(value)) or _is_namedtuple(type(value)):
            self._record_class(type(value))
        if dataclasses.is_dataclass(type(value)):
            for field in dataclasses.fields(typing.cast(Any, value)):
                self._watch(getattr(value, field.name))
        elif isinstance(value, (tuple, list)):
            for item in value:
                self._watch(item)
        elif not isinstance(value, Symbolic) and type(value) not in (int, bool, str, float, type(None)):
            self._refuse(f"takes a {type(value).__name__}")

    # -- values ----------------------------------------------------------------------------------------------------

    def admit(self, value: Any, name: str) -> Any:
        """What stands for a value that the function reaches under this name."""
        if isinstance(value, Symbolic):
            self.captures.append(value)
            return self._instead(value) if self._instead else value
        kind = type(value)
        if value is None or kind in (bool, int, float, str, bytes, range):
            if kind is float and math.isnan(value):
                self._refuse(f"uses {name}, which is nan")
            if kind in (int, float, str):
                self.constants[value] = None
            return value
        if id(value) in self._twins:
            return self._twins[id(value)]
        self._kept.append(value)
        twin = self._admit_object(value, kind, name)
        self._twins[id(value)] = twin
        return twin

    def _admit_object(self, value: Any, kind: type, name: str) -> Any:
        if id(value) in _KNOWN:
            return _KNOWN[id(value)]
        if kind is types.FunctionType:
            return self._function(value, name)
        if kind is tuple:
            return tuple(self.admit(item, name) for item in value)
        if kind is list:
            copy: list[object] = []
            self._twins[id(value)] = copy
            copy.extend(self.admit(item, name) for item in value)
            self._lists.append((copy, list(copy)))
            return copy
        if kind is dict:
            for key in value:
                self.admit(key, name)
            return _Table({key: self.admit(item, name) for key, item in value.items()})
        if kind in (set, frozenset):
            for item in value:
                self.admit(item, name)
            return _Members(frozenset(value))
        if kind is functools.partial:
            words = {word: self.admit(item, name) for word, item in value.keywords.items()}
            called = self.admit(value.func, getattr(value.func, "__name__", name))
            return functools.partial(called, *[self.admit(a, name) for a in value.args], **words)
        if kind in (operator.itemgetter, operator.attrgetter):
            for part in value.__reduce__()[1]:
                if kind is operator.attrgetter:
                    for attribute in part.split("."):
                        self._attribute(attribute)
            return value
        if kind is types.MethodType:
            return self._method(value, name)
        if kind is types.ModuleType:
            return _Namespace(value, name, self)
        if isinstance(value, type):
            return self._class(value, name)
        if _is_namedtuple(kind):
            self._record_class(kind)
            return kind._make(self.admit(item, name) for item in value)  # type: ignore[attr-defined]
        if dataclasses.is_dataclass(kind):
            return self._record(value, kind, name)
        if kind in (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType):
            self._refuse(f"uses {name}()")
        return self._refuse(f"uses {name}, a {kind.__name__}")

    def _record(self, value: Any, kind: type, name: str) -> Any:
        self._record_class(kind)
        for field in dataclasses.fields(kind):
            inside = getattr(value, field.name)
            if self.admit(inside, f"{name}.{field.name}") is not inside:
                self._refuse(f"uses {name}.{field.name}, a {type(inside).__name__} inside a captured {kind.__name__}")
        return value

    def _method(self, value: types.MethodType, name: str) -> Any:
        if not _is_record(value.__self__) or type(value.__func__) is not types.FunctionType:
            self._refuse(f"uses {name}, a method of a {type(value.__self__).__name__}")
        owner = self.admit(value.__self__, name)
        return functools.partial(self._function(value.__func__, name), owner)

    # -- classes ---------------------------------------------------------------------------------------------------

    def _class(self, cls: type, name: str) -> Any:
        if _is_namedtuple(cls) or dataclasses.is_dataclass(cls):
            self._record_class(cls)
            return cls
        if issubclass(cls, Exception) and not issubclass(cls, StreamtightError):
            for base in cls.__mro__[: cls.__mro__.index(Exception)]:
                if base.__module__ != "builtins" and any(callable(part) for part in vars(base).values()):
                    self._refuse(f"uses {name}, an exception with methods of its own")
            return cls
        if cls.__module__ == "builtins" or type(cls) is not type:
            self._refuse(f"uses {name}()" if cls.__module__ == "builtins" else f"uses {name}, a {type(cls).__name__}")
        return _Namespace(cls, name, self)

    def _record_class(self, cls: type) -> None:
        """A namedtuple or dataclass is used as it is, so its methods run among the real builtins and captures."""
        if id(cls) in self._twins:
            return
        self._twins[id(cls)] = cls
        self._kept.append(cls)
        place = self._place
        if type(cls) is not type:
            self._refuse(f"uses {cls.__name__}, whose class is a {type(cls).__name__}")
        for base in cls.__mro__:
            if base in (tuple, object, typing.Generic):
                continue
            for name, part in vars(base).items():
                self._fields.add(name)
                self._class_part(cls, name, part)
        if dataclasses.is_dataclass(cls):
            for field in dataclasses.fields(cls):
                self._fields.add(field.name)
                made = field.default_factory
                if made is not dataclasses.MISSING and made not in (list, dict, set, tuple):
                    self._refuse(f"uses {cls.__name__}, whose field {field.name} has a default_factory")
        self._place = place

    def _class_part(self, cls: type, name: str, part: object) -> None:
        if isinstance(part, (staticmethod, classmethod)):
            part = part.__func__
        for function in (part.fget, part.fset) if isinstance(part, property) else (part,):
            if type(function) is types.FunctionType:
                if function.__code__.co_filename in ("<string>", collections.__file__, dataclasses.__file__):
                    continue  # made by namedtuple or dataclass
                if name in _MAKING:
                    self._refuse(f"uses {cls.__name__}, which defines {name}")
                self._function(function, f"{cls.__name__}.{name}", as_it_is=True)
            elif not isinstance(function, type) and type(function).__name__ not in _PLAIN_DESCRIPTORS:
                changeable = isinstance(function, (list, dict, set)) and not name.startswith("_")
                if changeable or hasattr(function, "__get__"):
                    self._refuse(f"uses {cls.__name__}, whose {name} is a {type(function).__name__}")

    # -- functions -------------------------------------------------------------------------------------------------

    def _function(self, function: types.FunctionType, name: str, *, as_it_is: bool = False) -> Any:
        module = (function.__module__ or "").split(".")[0]
        if module in sys.stdlib_module_names and module != "__main__":
            self._refuse(f"uses {name}()")
        place = self._place
        code = function.__code__
        self._place = (code.co_firstlineno, code.co_filename)
        if code.co_flags & (_GENERATOR | _ASYNC):
            self._refuse("yields" if code.co_flags & _GENERATOR else "is async")
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        captured: dict[str, Any] = {}
        for free, cell in cells.items():
            try:
                captured[free] = cell.cell_contents
            except ValueError:
                self._refuse(f"uses {free} before it has a value")
        known = _Names(function.__globals__, _BUILTINS_OF(function), captured)
        if as_it_is:
            self.codes[id(code)] = code
            twin = function
            self._twins[id(function)] = twin
            inside: dict[str, Any] = {}
            self._scan(code, known, inside)
            inside.update({free: self.admit(item, free) for free, item in captured.items()})
            for word, item in inside.items():
                if isinstance(item, (list, _Table, _Members)):
                    self._refuse(f"uses {word} in a method of a namedtuple or dataclass")
        else:
            names: dict[str, Any] = {"__builtins__": {}, "__name__": function.__module__}
            new_cells = {free: types.CellType() for free in cells}
            twin = types.FunctionType(code, names, function.__name__, None, tuple(new_cells.values()))
            self._twins[id(function)] = twin  # before anything else, since functions may call themselves
            self._kept.append(function)
            twin.__code__ = self._scan(code, known, names)
            for free, cell in new_cells.items():
                cell.cell_contents = self.admit(captured[free], free)
            if function.__defaults__:
                twin.__defaults__ = tuple(self.admit(value, "a default") for value in function.__defaults__)
            if function.__kwdefaults__:
                twin.__kwdefaults__ = {k: self.admit(value, k) for k, value in function.__kwdefaults__.items()}
        self._place = place
        return twin

    def _scan(self, code: types.CodeType, known: _Names, names: dict[str, Any]) -> types.CodeType:
        """Refuse what is not harmless, and collect into `names` what the code reaches by name.

        Gives the same code back, in which the constants of `x in {1, 2}` and `x in (1, 2)` are `_Members`.
        """
        for constant in code.co_consts:
            self._constant(constant)
        try_line = 0
        loaded: dict[int, bool] = {}  # a constant, and whether it is only looked into
        plain = code.co_name not in _COMPREHENSIONS
        before: dis.Instruction | None = None
        space: object = None  # the module or class that the instruction before has loaded
        for instruction in dis.get_instructions(code):
            opname = instruction.opname
            if opname in ("CACHE", "EXTENDED_ARG"):
                continue
            if instruction.positions is not None and instruction.positions.lineno is not None:
                self._place = (instruction.positions.lineno, code.co_filename)
            if opname == "NOP":  # where `try` stands
                try_line = try_line or self._place[0] or 0
            if opname not in _HARMLESS:
                if opname == "PUSH_EXC_INFO" and try_line:
                    self._place = (try_line, code.co_filename)
                self._questionable(instruction, code)
            if instruction.is_jump_target:  # then the value may also come from elsewhere
                before = space = None
            reached: object = None
            if opname == "LOAD_GLOBAL":
                reached = self._global(instruction.argval, known, names)
            elif opname == "LOAD_DEREF" and instruction.argval in known.captured:
                reached = known.captured[instruction.argval]
            elif opname in ("LOAD_ATTR", "LOAD_METHOD"):
                reached = self._load_attribute(instruction.argval, space)
            elif opname == "STORE_DEREF" and instruction.argval in code.co_freevars:
                self._refuse(f"changes the nonlocal variable {instruction.argval}")
            elif opname == "IS_OP" and not (before and before.opname in _LOAD_CONSTANT and before.argval is None):
                self._refuse("uses 'is' with something other than None")
            elif plain and "JUMP_BACKWARD" in opname:
                self.loops = True
            if before is not None and before.opname == "LOAD_CONST" and before.arg is not None:
                loaded[before.arg] = loaded.get(before.arg, True) and opname == "CONTAINS_OP"
            space = reached if isinstance(reached, (types.ModuleType, type)) else None
            before = instruction
        constants: list[Any] = list(code.co_consts)
        for i, constant in enumerate(constants):
            if isinstance(constant, types.CodeType):
                constants[i] = self._nested(constant, known, names)
            elif type(constant) is frozenset or (type(constant) is tuple and loaded.get(i)):
                constants[i] = _Members(constant)
        new = code.replace(co_consts=tuple(constants))
        self.codes[id(new)] = new
        return new

    def _constant(self, constant: object) -> None:
        if type(constant) is complex or constant is ...:
            self._refuse(f"uses {constant!r}")
        for item in constant if isinstance(constant, (tuple, frozenset)) else (constant,):
            if type(item) in (int, str, float):
                self.constants[item] = None

    def _nested(self, code: types.CodeType, known: _Names, names: dict[str, Any]) -> types.CodeType:
        place = self._place
        self._place = (code.co_firstlineno, code.co_filename)
        if code.co_flags & _ASYNC or (code.co_flags & _GENERATOR and code.co_name != "<genexpr>"):
            self._refuse("is async" if code.co_flags & _ASYNC else "yields")
        # A variable of the function around it may hide a captured one of the same name.
        new = self._scan(code, _Names(known.globals, known.builtins, {}), names)
        self._place = place
        return new

    def _questionable(self, instruction: dis.Instruction, code: types.CodeType) -> None:
        opname = instruction.opname
        if opname in _IN_GENERATORS and code.co_name == "<genexpr>":
            return
        if opname == "CALL_INTRINSIC_1" and instruction.argrepr in _HARMLESS_INTRINSICS:
            return
        self._refuse(_REFUSED.get(opname, "uses the instruction " + opname).format(instruction.argval))

    def _global(self, name: str, known: _Names, names: dict[str, Any]) -> object:
        if name in known.globals:
            value = known.globals[name]
        elif name in known.builtins:
            value = known.builtins[name]
        else:
            self._refuse(f"uses {name}, which is not defined")
        if name not in names:
            names[name] = self.admit(value, name)
        return value

    def _load_attribute(self, name: str, space: object) -> object:
        if space is None:
            self._attribute(name)
            return None
        if _is_record_class(space):
            self._attribute(name)
            return None
        owner = getattr(space, "__name__", "it")
        if name not in dir(space):
            self._refuse(f"uses {owner}.{name}, which is not defined")
        value = getattr(space, name)
        self.admit(value, f"{owner}.{name}")
        return value

    def _attribute(self, name: str) -> None:
        private = name.startswith("_") and name not in _PRIVATE_BUT_HARMLESS
        if name not in self._fields and (private or name in _REVEALING):
            self._refuse(f"uses the attribute {name}")
        if name.startswith("__") and name.endswith("__"):
            self._refuse(f"uses the attribute {name}")


@dataclass(frozen=True, slots=True)
class _Names:
    """Where the names of a function are looked up."""

    globals: dict[str, Any]
    builtins: dict[str, Any]
    captured: dict[str, Any]


def _is_record_class(value: object) -> bool:
    return isinstance(value, type) and (_is_namedtuple(value) or dataclasses.is_dataclass(value))


_MAKING = ("__new__", "__init__", "__getattr__", "__getattribute__", "__setattr__", "__init_subclass__", "__hash__")
_PLAIN_DESCRIPTORS = ("member_descriptor", "getset_descriptor", "_tuplegetter", "wrapper_descriptor")
_GENERATOR = 0x20
_ASYNC = 0x80 | 0x100 | 0x200
_COMPREHENSIONS = ("<listcomp>", "<genexpr>", "<setcomp>", "<dictcomp>")
_LOAD_CONSTANT = ("LOAD_CONST", "RETURN_CONST")


class _Namespace:
    """A module or class of which only attributes are used, each admitted when it is reached."""

    def __init__(self, space: object, name: str, twin: _Twin) -> None:
        self._space, self._name, self._twin = space, name, twin

    def __getattr__(self, attribute: str) -> Any:
        if attribute not in dir(self._space):
            _refuse(f"uses {self._name}.{attribute}, which is not defined")
        return self._twin.admit(getattr(self._space, attribute), f"{self._name}.{attribute}")

    def __call__(self, *_: object, **__: object) -> NoReturn:
        _refuse(f"uses {self._name}()")


class _Members:
    """A captured set, or the constant of `x in {1, 2}`: one question about a symbolic value, not one for each."""

    def __init__(self, members: frozenset[object] | tuple[object, ...]) -> None:
        self._members = members

    def __contains__(self, item: object) -> bool:
        return _is_among(item, self._members) if _has_symbol(item) else item in self._members

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[object]:
        if len(self._members) > 1 and any(isinstance(member, (str, bytes, tuple)) for member in self._members):
            _refuse("depends on the order of a set")
        return iter(self._members)

    def __getattr__(self, name: str) -> NoReturn:
        _refuse(f"uses .{name} of a set that is not its own")

    def __eq__(self, other: object) -> NoReturn:
        _refuse("compares a set that is not its own")

    __hash__ = object.__hash__
    __lt__ = __le__ = __gt__ = __ge__ = __and__ = __or__ = __sub__ = __xor__ = __eq__
    __rand__ = __ror__ = __rsub__ = __rxor__ = __eq__


class _Table:
    """A captured dict, which can be looked into with a symbolic key and cannot be changed."""

    def __init__(self, table: dict[object, object]) -> None:
        self._table = table

    def _found(self, key: object) -> list[object]:
        if not _has_symbol(key):
            return [self._table[key]] if key in self._table else []
        return next(([value] for known, value in self._table.items() if key == known), [])

    def __getitem__(self, key: object) -> object:
        found = self._found(key)
        if not found:
            _raise(KeyError(key))
        return found[0]

    def get(self, key: object, default: object = None) -> object:
        """The value at the key, or the default."""
        return next(iter(self._found(key)), default)

    def __contains__(self, key: object) -> bool:
        return _is_among(key, self._table) if _has_symbol(key) else key in self._table

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[object]:
        return iter(self._table)

    def keys(self) -> object:
        """The keys, in order."""
        return _View(tuple(self._table))

    def values(self) -> object:
        """The values, in order."""
        return _View(tuple(self._table.values()))

    def items(self) -> object:
        """The pairs, in order."""
        return _View(tuple(self._table.items()))

    def __getattr__(self, name: str) -> NoReturn:
        _refuse(f"uses .{name} of a dict that is not its own")

    def __eq__(self, other: object) -> NoReturn:
        _refuse("compares or changes a dict that is not its own")

    def __setitem__(self, key: object, value: object) -> NoReturn:
        _refuse("changes a dict that is not its own")

    __hash__ = object.__hash__
    __delitem__ = __or__ = __ror__ = __ior__ = __eq__


def _is_among(item: object, members: Iterable[object]) -> bool:
    equal = [item == member for member in members]  # type: list[Any]
    return _decide(z3.Or([one._term if isinstance(one, Symbolic) else z3.BoolVal(one) for one in equal]))


class _View:
    """Keys, values or items of a captured dict."""

    def __init__(self, items: tuple[object, ...]) -> None:
        self._items = items

    def __contains__(self, item: object) -> bool:
        return _is_among(item, self._items) if _has_symbol(item) else item in self._items

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[object]:
        return iter(self._items)

    def __getattr__(self, name: str) -> NoReturn:
        _refuse(f"uses .{name} of a dict that is not its own")

    def __eq__(self, other: object) -> NoReturn:
        _refuse("compares the keys or values of a dict that is not its own")

    __hash__ = object.__hash__
    __lt__ = __le__ = __gt__ = __ge__ = __and__ = __or__ = __sub__ = __xor__ = __eq__
    __rand__ = __ror__ = __rsub__ = __rxor__ = __eq__


def _has_symbol(value: object) -> bool:
    return isinstance(value, Symbolic) or (isinstance(value, tuple) and any(_has_symbol(item) for item in value))


# -- builtins that know symbolic values ------------------------------------------------------------------------------


def _real(function: Callable[..., Any], *arguments: object, **words: object) -> Any:
    """Python's own function; what it raises counts as raised where the user called it."""
    try:
        return function(*arguments, **words)
    except StreamtightError:
        raise
    except Exception as error:
        if _exploring and _last_frame(error).tb_frame is sys._getframe():
            _exploring[-1].error_of_builtin = error
        raise


def _len(value: object, /) -> Any:
    if type(value) is SymbolicStr:
        return SymbolicInt(z3.Length(value._term))
    if isinstance(value, Symbolic):
        _raise(TypeError(f"object of type '{_type_name(value)}' has no len()"))
    return _real(len, value)


def _bool(*values: object) -> Any:
    if len(values) == 1 and isinstance(values[0], Symbolic):
        return SymbolicBool(_truth(values[0]))
    return _real(bool, *values)


def _int(*values: object, **words: object) -> Any:
    if not words and len(values) == 1 and isinstance(values[0], _Number):
        return values[0].__trunc__()
    if any(isinstance(value, Symbolic) for value in values):
        _refuse("uses int() of a symbolic str")
    return _real(int, *values, **words)


def _float(*values: object) -> Any:
    if len(values) == 1 and isinstance(values[0], _Number):
        _assume(REAL_NUMBERS)
        return SymbolicFloat(_to_real(*typing.cast("tuple[int, Any]", _number(values[0]))))
    if any(isinstance(value, Symbolic) for value in values):
        _refuse("uses float() of a symbolic str")
    return _real(float, *values)


def _str(*values: object, **words: object) -> Any:
    if not words and len(values) == 1 and type(values[0]) is SymbolicStr:
        return values[0]
    return _real(str, *values, **words)


def _range(*limits: object) -> Any:
    if any(isinstance(limit, Symbolic) for limit in limits):
        _refuse("uses range() of a symbolic number")
    steps: range = _real(range, *limits)
    if steps and abs(steps[-1] - steps[0]) // abs(steps.step) >= _LONGEST_RANGE:
        _refuse(f"uses a range() of more than {_LONGEST_RANGE} numbers")
    return steps


def _sum(items: Any, /, start: object = 0) -> Any:
    if type(start) is SymbolicStr:
        _raise(TypeError("sum() can't sum strings [use ''.join(seq) instead]"))
    return _real(sum, items, start)


def _min(*values: Any, **words: Any) -> Any:
    return _extreme(min, operator.lt, values, words)


def _max(*values: Any, **words: Any) -> Any:
    return _extreme(max, operator.gt, values, words)


def _extreme(function: Callable[..., Any], better: Callable[[Any, Any], Any], values: Any, words: Any) -> Any:
    if words or not values:
        return _real(function, *values, **words)
    items = _real(list, values[0]) if len(values) == 1 else list(values)
    kinds = {type(item) for item in items}
    if kinds <= {int, SymbolicInt} and SymbolicInt in kinds:
        numbers = [_number(item)[1] for item in items]  # type: ignore[index]
        # One term instead of a path for every order; which of two equal ints it is cannot be told.
        return SymbolicInt(functools.reduce(lambda a, b: z3.If(better(b, a), b, a), numbers))
    return _real(function, items)


def _attrgetter(*names: object) -> Any:
    if any(not isinstance(name, str) or "_" in {part[:1] for part in name.split(".")} for name in names):
        _refuse("uses operator.attrgetter of a private attribute")
    return _real(operator.attrgetter, *names)


def _known_builtins() -> dict[int, object]:
    """What may be used under any name, by its id: as it is if it works through the operators of its arguments."""
    known: dict[int, object] = {
        id(len): _len,
        id(bool): _bool,
        id(int): _int,
        id(float): _float,
        id(str): _str,
        id(range): _range,
        id(sum): _sum,
        id(min): _min,
        id(max): _max,
        id(operator.attrgetter): _attrgetter,
    }
    as_they_are = [
        *(abs, any, all, divmod, round, pow, tuple, list, dict, zip, enumerate, reversed, sorted),
        *(map, filter, iter, next, functools.partial, functools.reduce, operator.itemgetter, dataclasses.replace),
        *(itertools.chain, itertools.product, itertools.combinations, itertools.permutations, itertools.accumulate),
        *(itertools.zip_longest, itertools.pairwise, itertools.takewhile, itertools.dropwhile, itertools.starmap),
        # Functions of math ask for the value of what they cannot calculate exactly, and that is refused.
        *(part for part in vars(math).values() if isinstance(part, types.BuiltinFunctionType)),
        *(part for name, part in vars(operator).items() if name in _OPERATORS),
    ]
    return known | {id(part): part for part in as_they_are}


_OPERATORS = _words(
    """
    abs add and_ contains countOf eq floordiv ge getitem gt iadd imul indexOf inv invert isub le lshift lt mod
    mul ne neg not_ or_ pos pow rshift sub truediv truth xor
    """
)
_KNOWN = _known_builtins()


# -- reading ---------------------------------------------------------------------------------------------------------


def read(
    function: Callable[..., object],
    arguments: Sequence[object],
    *,
    given: Sequence[z3.BoolRef] = (),
    budget: Budget,
    most: int = 200,
    then: Callable[[Any], object] | None = None,
) -> list[Path]:
    """All paths of the function on these arguments, which may hold symbolic values anywhere.

    `then` is applied to what the function gives while it is still being explored, such as `list` to what a flatMap
    gives.
    """
    twin = _Twin(function, arguments)

    def call() -> object:
        if not twin.loops:
            return _finish(twin.call(*arguments), then)
        before = sys.gettrace()
        sys.settrace(_clock(twin, budget))
        try:
            return _finish(twin.call(*arguments), then)
        finally:
            sys.settrace(before)

    def replay(model: Any) -> object:
        def value(leaf: Symbolic) -> object:
            return _python(model.eval(leaf._term, model_completion=True))

        return _finish(_on_values(function, twin, value)(*[_with_leaves(each, value) for each in arguments]), then)

    exploration = _Exploration(given, budget, most)
    exploration.function = twin
    return _explore(exploration, call, replay)


def _finish(result: object, then: Callable[[Any], object] | None) -> object:
    return then(result) if then else result


def _clock(twin: _Twin, budget: Budget) -> Callable[..., Any]:
    """A trace function that ends a loop which would go on for ever: loops on known values take no decisions."""
    instructions = 0

    def trace(frame: types.FrameType, _event: str, _argument: object) -> Any:
        nonlocal instructions
        if id(frame.f_code) not in twin.codes:
            return None
        frame.f_trace_opcodes = True  # `while True: pass` never reaches another line
        frame.f_trace_lines = False
        instructions += 1
        if instructions % 1024 == 0 and budget.left <= 0:
            _refuse(f"loops for more than {budget.seconds:g} s")
        return trace

    return trace


def _on_values(
    function: Callable[..., object], twin: _Twin, value: Callable[[Symbolic], object]
) -> Callable[..., object]:
    """The function itself; if it captures symbolic values, its twin that captures their values instead."""
    return _Twin(function, twin.arguments, value).call if twin.captures else function


def _with_leaves(tree: Any, leaf: Callable[[Symbolic], object]) -> Any:
    if isinstance(tree, Symbolic):
        return leaf(tree)
    kind = type(tree)
    if kind is tuple or kind is list:
        return kind(_with_leaves(item, leaf) for item in tree)
    if _is_namedtuple(kind):
        return kind._make(_with_leaves(item, leaf) for item in tree)
    if dataclasses.is_dataclass(kind):
        copy = object.__new__(kind)
        for field in dataclasses.fields(kind):
            object.__setattr__(copy, field.name, _with_leaves(getattr(tree, field.name), leaf))
        return copy
    return tree


def value_in(tree: object, model: z3.ModelRef) -> object:
    """The Python value that a tree has in a model. Constants that the model leaves open are chosen."""
    return _with_leaves(tree, lambda leaf: _python(model.eval(leaf._term, model_completion=True)))


def term_of(leaf: object) -> z3.ExprRef:
    """The Z3 term of a leaf: of a symbolic value, or of an int, bool, str or float."""
    term = _text(leaf)
    if term is None:
        number = _number(leaf)
        term = number[1] if number else None
    if term is None:
        raise UnsupportedError(
            "term_of", needed="an int, bool, str or finite float", came=repr(leaf), hint="None is a flag"
        )
    return term


def _python(term: Any, *, simple: bool = False) -> Any:
    """The Python value of a Z3 value."""
    if type(term) is z3.IntNumRef:
        return int(z3.Z3_get_numeral_string(term.ctx_ref(), term.as_ast()))
    if z3.is_true(term) or z3.is_false(term):
        return bool(z3.is_true(term))
    if type(term) is z3.RatNumRef:
        return float(term.as_fraction())
    if z3.is_algebraic_value(term):
        return float(term.approx(20).as_fraction())
    if z3.is_string_value(term):
        length = z3.Z3_get_string_length(term.ctx_ref(), term.as_ast())
        characters = (ctypes.c_uint * length)()
        z3.Z3_get_string_contents(term.ctx_ref(), term.as_ast(), length, characters)
        return "".join(map(chr, characters))
    # What Z3 has simplified may still be as simple as "" == "b".
    again = z3.simplify(term)
    if simple and again.eq(term):
        raise _NoValue(str(term))
    return _python(again, simple=True)


def _python_argument(term: Any, i: int) -> Any:
    """`_python(term.arg(i))`, without the objects that Z3's Python side makes on the way: they take the time."""
    context = term.ctx_ref()
    argument = z3.Z3_get_app_arg(context, term.as_ast(), i)
    if z3.Z3_get_ast_kind(context, argument) == z3.Z3_NUMERAL_AST:
        if z3.Z3_get_sort_kind(context, z3.Z3_get_sort(context, argument)) == z3.Z3_INT_SORT:
            return int(z3.Z3_get_numeral_string(context, argument))
    elif truth := z3.Z3_get_bool_value(context, argument):
        return bool(truth == z3.Z3_L_TRUE)
    return _python(term.arg(i))


class _NoValue(Exception):
    """A term that does not come down to a value."""


# -- symbolic values of a type ---------------------------------------------------------------------------------------


def fresh(type_: object, name: str) -> tuple[object, list[z3.BoolRef]]:
    """A symbolic value of a type without None, and what holds of it.

    >>> fresh((int, (str, int)), "x")
    ((x.0, (x.1.0, x.1.1)), [])
    """
    options = list(_options(type_, name))
    if len(options) != 1:
        raise UnsupportedError(
            name, needed="a type without None", came=repr(type_), hint="cases() has one value for each"
        )
    tree, constraints = options[0]
    return tree, constraints


def cases(type_: object, name: str) -> Iterator[tuple[object, z3.BoolRef]]:
    """A symbolic value for each way in which its optional parts may be None, and the formula that says which.

    >>> for value, where in cases((int, str | None), "x"):
    ...     print(value, where)
    (x.0, None) x.1.null
    (x.0, x.1) Not(x.1.null)
    """
    for tree, constraints in _options(type_, name):
        yield tree, z3.And(constraints) if len(constraints) > 1 else constraints[0] if constraints else z3.BoolVal(True)


def _options(type_: Any, name: str) -> Iterator[tuple[object, list[Any]]]:
    if isinstance(type_, type) and type_ in _LEAF_TYPES:
        stand_in, constant = _LEAF_TYPES[type_]
        yield stand_in(constant(name)), []
    elif type_ is None or type_ is type(None):
        yield None, []
    elif typing.get_origin(type_) in (typing.Union, types.UnionType):
        others = [part for part in typing.get_args(type_) if part is not type(None)]
        if len(others) != 1 or len(typing.get_args(type_)) != 2:
            raise UnsupportedError(name, needed="T | None", came=repr(type_), hint="only None may be the other type")
        null = z3.Bool(f"{name}.null")
        yield None, [null]
        for tree, constraints in _options(others[0], name):
            yield tree, [z3.Not(null), *constraints]
    else:
        parts, make = _parts(type_, name)
        children = [list(_options(part, f"{name}.{i}")) for i, part in enumerate(parts)]
        for chosen in itertools.product(*children):
            yield make([tree for tree, _ in chosen]), [one for _, constraints in chosen for one in constraints]


_LEAF_TYPES: dict[Any, tuple[type[Symbolic], Callable[[str], Any]]] = {
    int: (SymbolicInt, z3.Int),
    bool: (SymbolicBool, z3.Bool),
    str: (SymbolicStr, z3.String),
    float: (SymbolicFloat, z3.Real),
}


def _parts(type_: Any, name: str) -> tuple[Sequence[Any], Callable[[list[object]], object]]:
    if isinstance(type_, tuple):
        return type_, tuple
    if typing.get_origin(type_) is tuple and ... not in typing.get_args(type_):
        return typing.get_args(type_), tuple
    if isinstance(type_, type) and _is_namedtuple(type_):
        hints = typing.get_type_hints(type_)
        if set(hints) >= set(type_._fields):  # type: ignore[attr-defined]
            return [hints[field] for field in type_._fields], type_._make  # type: ignore[attr-defined]
    raise UnsupportedError(
        name,
        needed="int, bool, str, float, None, T | None, or a tuple of these",
        came=repr(type_),
        hint="(int, (str, int))",
    )


# -- is the reading right? -------------------------------------------------------------------------------------------


def check_reading(
    function: Callable[..., object],
    paths: Sequence[Path],
    arguments: Sequence[object],
    *,
    given: Sequence[z3.BoolRef] = (),
    then: Callable[[Any], object] | None = None,
    samples: int = 100,
    seed: int = 0,
) -> None:
    """Compare what was read with the function itself: on values near its constants, and on values of every path.

    A difference is our own bug (`EncodingError`), unless floats are involved: then rounding shows, and the function
    is not readable under the assumption that floats are real numbers.
    """
    twin = _Twin(function, arguments)
    inputs: list[Symbolic] = [*_leaves(list(arguments)), *twin.captures]
    outputs = [_leaves(path.result) for path in paths]
    # The number of the path that is taken; below zero if there is none, or more than one.
    guards = [path.guard for path in paths]
    several = z3.Not(z3.AtMost(*guards, 1)) if len(guards) > 1 else z3.BoolVal(False)
    which = functools.reduce(lambda rest, i: z3.If(guards[i], i, rest), range(len(paths)), z3.IntVal(-1))
    terms = [
        z3.If(several, -2, which),
        z3.And(*given, True),
        *(leaf._term for leaf in itertools.chain(inputs, *outputs)),
    ]
    together = z3.Function("together", *[term.sort() for term in terms], z3.BoolSort())(*terms)
    starts = list(itertools.accumulate([2, len(inputs), *map(len, outputs)]))
    chance = random.Random(seed)
    for sample in _samples(_constants(terms), twin, [[*given, guard] for guard in guards], samples, chance):
        values = z3.simplify(z3.substitute(together, *sample))
        try:
            if given and not _python_argument(values, 1):
                continue
            known = {id(leaf): _python_argument(values, 2 + i) for i, leaf in enumerate(inputs)}
            taken = _python_argument(values, 0)
            read_as: object = _NEITHER[taken] if taken < 0 else None
            if taken >= 0:
                start = starts[taken + 1]
                found = {id(leaf): _python_argument(values, start + i) for i, leaf in enumerate(outputs[taken])}
                read_as = _read_outcome(paths[taken], found)
        except _NoValue as error:
            what = f"has no value for {dict(sample)}: {error}"
            raise NotReadable(what, line=twin.place[0], file=twin.place[1]) from None
        concrete = [_with_leaves(each, lambda leaf: known[id(leaf)]) for each in arguments]  # noqa: B023
        real = _outcome(_on_values(function, twin, lambda leaf: known[id(leaf)]), concrete, then)  # noqa: B023
        if taken >= 0 and _same(read_as, real):
            continue
        shown = f"{getattr(function, '__name__', 'the function')}({', '.join(map(repr, concrete))})"
        if any(REAL_NUMBERS in path.assumes for path in paths):
            what = f"depends on how floats are rounded: {shown} is {real!r}, with real numbers {read_as!r}"
            raise NotReadable(what, line=twin.place[0], file=twin.place[1])
        came = f"{read_as!r} from its formula"
        raise EncodingError(shown, needed=f"{real!r}, as Python gives", came=came, hint="report this function")


_NEITHER = {-1: "no path", -2: "several paths"}


def _outcome(function: Callable[..., object], arguments: list[object], then: Callable[[Any], object] | None) -> object:
    try:
        return _finish(function(*arguments), then)
    except Exception as error:  # the user's own; what it is, is the answer
        return _Raised(type(error))


def _read_outcome(path: Path, values: dict[int, Any]) -> object:
    if path.raised is not None:
        return _Raised(type(path.raised))
    return _with_leaves(path.result, lambda leaf: values[id(leaf)])


@dataclass(frozen=True, slots=True)
class _Raised:
    kind: type[Exception]

    def __repr__(self) -> str:
        return f"an exception {self.kind.__name__}"


def _same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if type(one) is float:
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(_same, one, other))
    if dataclasses.is_dataclass(one) and type(one) is not _Raised:
        return all(_same(getattr(one, f.name), getattr(other, f.name)) for f in dataclasses.fields(one))
    return bool(one == other)


def _leaves(tree: Any) -> list[Symbolic]:
    found: list[Symbolic] = []

    def keep(leaf: Symbolic) -> Symbolic:
        found.append(leaf)
        return leaf

    _with_leaves(tree, keep)
    return found


def _constants(terms: Iterable[Any]) -> list[Any]:
    """The constants without a value that occur in the terms, in the order in which they are met."""
    found: dict[int, Any] = {}
    seen: set[int] = set()
    waiting = list(terms)[::-1]
    while waiting:
        term = waiting.pop()
        if term.get_id() in seen:
            continue
        seen.add(term.get_id())
        if z3.is_const(term) and term.decl().kind() == z3.Z3_OP_UNINTERPRETED:
            found[term.get_id()] = term
        waiting.extend(term.children()[::-1])
    return list(found.values())


def _samples(
    constants: list[Any], twin: _Twin, guards: list[list[Any]], count: int, chance: random.Random
) -> Iterator[list[tuple[Any, Any]]]:
    """Values for the constants: one for each guard, then values near the numbers and strings of the function."""
    for guard in guards[:20]:
        solver = z3.Solver()
        solver.add(*guard)
        if check(solver, 0.2)[0] == z3.sat:
            model = solver.model()
            yield [(constant, model.eval(constant, model_completion=True)) for constant in constants]
    pools = [_pool(constant.sort(), twin.constants) for constant in constants]
    # First each value for all constants at once, then mixed.
    alike = min(max(map(len, pools), default=0), count // 3)
    for turn in range(count if constants else 1):
        chosen = [pool[turn % len(pool)] if turn < alike else chance.choice(pool) for pool in pools]
        yield list(zip(constants, chosen, strict=True))


def _pool(sort: Any, constants: Iterable[object]) -> list[Any]:
    """Values near these constants, and those that are always worth a try."""
    known = list(constants)[:40]
    numbers = [value for value in known if type(value) is int and value.bit_length() < 200]
    values: list[Any]
    if sort == z3.BoolSort():
        values = [False, True]
    elif sort == z3.IntSort():
        values = [0, 1, -1, *(n + d for n in numbers for d in (0, 1, -1)), *(-n for n in numbers)]
        values += [2, -2, 3, 7, -7, 2**31, -(2**63) - 1, 10**20]
    elif sort == z3.RealSort():
        floats = [value for value in known if type(value) is float and abs(value) < 1e15]
        near = [float(n + d) for n in [*numbers, *floats] if abs(n) < 1e15 for d in (0, 1, -0.5)]
        values = [0.0, 1.0, -1.0, *near, 0.5, -2.25, 7.0, 1024.0]
    elif sort == z3.StringSort():
        words = [
            value for value in known if type(value) is str and len(value) < 100 and all(c < "\U00030000" for c in value)
        ]
        near_words = [text for word in words for text in (word, word + "a", word[:-1], "a" + word)]
        values = ["", "a", *near_words, "b", "ab", "A", " ", "0", "\u00e9"]
    else:
        raise UnsupportedError(
            "check_reading", needed="int, bool, str or float", came=str(sort), hint="check its parts"
        )
    return [term_of(value) for value in dict.fromkeys(values)]
