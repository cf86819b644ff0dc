"""Compiled code for blocks: the same steps as in Python, on arrays, by numba.

The code must give what Python gives. So numbers have types: whole numbers that fit 64 bits, floating-point numbers, and
truth values; what Python does with them is spelled out where machines do otherwise. If a result leaves its type (a sum
beyond 64 bits, a comparison that would round) or an operation raises, the kernel raises, and the block is done again in
Python. Programs that mix whole and floating-point numbers in one register are not compiled.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import stat
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from streamtight.properties.code import body, compiled, indented, registers, used_fields
from streamtight.properties.straight import Step, Straight, Temporary
from streamtight.properties.term import Apply, Constant, Current, Slot, Term, Value
from streamtight.properties.transducer import Nothing, status_of

BOOL, SMALL, INT, FLOAT, MIXED = "b", "c", "i", "f", "m"
"""Types of values: truth values, constants that are whole numbers and may become either, whole numbers, floats; and
floats that may be such constants in Python: where both give the same, they need no telling apart."""
UNKNOWN = "?"
"""The type of a field of which nothing is known."""
DTYPES = {BOOL: np.bool_, SMALL: np.int64, INT: np.int64, FLOAT: np.float64, MIXED: np.float64}
RAISED = (ZeroDivisionError, OverflowError)
"""What a kernel raises if the block must be done in Python."""

_ORDER = ("", BOOL, SMALL, INT)
_FLOATS = {FLOAT, MIXED}
EXACT = 2**53
"""Whole numbers up to this are floats, too."""


class NotTyped(Exception):
    """This program has no types that would give what Python gives."""


def both(one: str, other: str) -> str:
    """The type of something that is the one or the other."""
    if UNKNOWN in (one, other):
        raise NotTyped("values of which nothing is known")
    if one == other or not one or not other:  # nothing is known yet
        return one or other
    if not {one, other} & _FLOATS:
        return max(one, other, key=_ORDER.index)
    if INT in (one, other):
        raise NotTyped("whole and floating-point numbers in one place")
    return MIXED


def column_type(dtype: np.dtype[Any]) -> str:
    """The type of the values of an array."""
    if dtype.kind == "b":
        return BOOL
    if dtype.kind == "i" or (dtype.kind == "u" and dtype.itemsize < 8):
        return INT
    if dtype.kind == "f" and dtype.itemsize <= 8:
        return FLOAT
    raise NotTyped(f"values of {dtype}")


_Typed = tuple[str, str]
"""A text and its type."""


def _as(given: _Typed, wanted: str) -> str:
    text, its = given
    if wanted in _FLOATS:
        if its in _FLOATS:
            return text
        return f"float64({text})" if wanted == FLOAT or its == BOOL else f"exact_f({text})"
    if wanted in (INT, SMALL):
        return f"int64({text})" if its == BOOL else text
    return text


def _true(given: _Typed) -> str:
    return given[0] if given[1] == BOOL else f"({given[0]} != 0)"


def _calculated(name: str) -> Callable[[_Typed, _Typed], _Typed]:
    def made(one: _Typed, other: _Typed) -> _Typed:
        kind = _common(one, other)
        plain = {"add": "+", "sub": "-", "mul": "*"}.get(name) if kind in _FLOATS else None
        a, b = _as(one, kind), _as(other, kind)
        if plain:
            return (f"({a} {plain} {b})" if kind == FLOAT else f"mixed({a} {plain} {b}, {a}, {b})"), kind
        return f"{name}_{'i' if kind == INT else 'f'}({a}, {b})", kind

    return made


def _divided(one: _Typed, other: _Typed) -> _Typed:
    kind = _common(one, other)
    if kind == INT:
        return f"div_i({_as(one, INT)}, {_as(other, INT)})", FLOAT
    return f"div_f({_as(one, kind)}, {_as(other, kind)})", FLOAT


def _common(one: _Typed, other: _Typed) -> str:
    """As what two are calculated with: one float makes both floats."""
    kinds = {one[1], other[1]}
    if UNKNOWN in kinds:
        raise NotTyped("values of which nothing is known")
    return FLOAT if FLOAT in kinds else MIXED if MIXED in kinds else INT


def _compared(symbol: str) -> Callable[[_Typed, _Typed], _Typed]:
    def made(one: _Typed, other: _Typed) -> _Typed:
        if UNKNOWN in (one[1], other[1]):
            return "", BOOL
        # Python compares a whole number with a float exactly.
        kind = INT if _common(one, other) == INT else MIXED
        sides = [_as(one, kind), _as(other, kind)]
        return f"({sides[0]} {symbol} {sides[1]})", BOOL

    return made


def _extreme(name: str) -> Callable[[_Typed, _Typed], _Typed]:
    def made(one: _Typed, other: _Typed) -> _Typed:
        kind = both(one[1], other[1])
        return f"{name}({_as(one, kind)}, {_as(other, kind)})", kind

    return made


def _signed(name: str) -> Callable[[_Typed], _Typed]:
    def made(one: _Typed) -> _Typed:
        kind = _common(one, one)
        return f"{name}_{'i' if kind == INT else 'f'}({_as(one, kind)})", kind

    return made


def _chosen(condition: _Typed, one: _Typed, other: _Typed) -> _Typed:
    kind = both(one[1], other[1])
    return f"({_as(one, kind)} if {_true(condition)} else {_as(other, kind)})", kind


_WRITTEN: dict[str, Callable[..., _Typed]] = {
    "add": _calculated("add"),
    "subtract": _calculated("sub"),
    "multiply": _calculated("mul"),
    "floor_divide": _calculated("floordiv"),
    "modulo": _calculated("mod"),
    "divide": _divided,
    "negate": _signed("neg"),
    "abs": _signed("abs"),
    "min": _extreme("min_"),
    "max": _extreme("max_"),
    "sqrt": lambda one: (f"sqrt_({_as(one, FLOAT)})", FLOAT),
    "less": _compared("<"),
    "at_most": _compared("<="),
    "more": _compared(">"),
    "at_least": _compared(">="),
    "equal": _compared("=="),
    "unequal": _compared("!="),
    "not": lambda one: (f"(not {_true(one)})", BOOL),
    "and": lambda one, other: (f"({_true(one)} and {_true(other)})", BOOL),
    "or": lambda one, other: (f"({_true(one)} or {_true(other)})", BOOL),
    "implies": lambda one, other: (f"((not {_true(one)}) or {_true(other)})", BOOL),
    "iff": lambda one, other: (f"({_true(one)} == {_true(other)})", BOOL),
    "choose": _chosen,
}

_HEAD = f"""\
from math import copysign, inf, nan, sqrt
from numba import njit
from numpy import float64, floor, fmod, int64, uint64

LOWEST = int64(-2**63)

@njit(inline="always", error_model="numpy")
def add_i(a, b):
    r = int64(uint64(a) + uint64(b))  # which wraps; of signed ones, compilers assume that they never do
    if ((a ^ r) & (b ^ r)) < 0:
        raise OverflowError
    return r

@njit(inline="always", error_model="numpy")
def sub_i(a, b):
    r = int64(uint64(a) - uint64(b))
    if ((a ^ b) & (a ^ r)) < 0:
        raise OverflowError
    return r

@njit(inline="always", error_model="numpy")
def mul_i(a, b):
    if abs(float64(a) * float64(b)) > 9.2e18:  # 2**63 is more
        raise OverflowError
    return a * b

@njit(error_model="numpy")
def floordiv_i(a, b):
    if b == 0:
        raise ZeroDivisionError
    if b == -1:
        return neg_i(a)
    return a // b

@njit(error_model="numpy")
def mod_i(a, b):
    if b == 0:
        raise ZeroDivisionError
    return int64(0) if b == -1 else a % b

@njit(error_model="numpy")
def floordiv_f(a, b):
    if b == 0:
        raise ZeroDivisionError
    mod = fmod(a, b)
    div = (a - mod) / b
    if mod != 0 and (b < 0) != (mod < 0):
        div -= 1.0
    if div == 0:
        return copysign(0.0, a / b)
    whole = floor(div)
    return whole + 1.0 if div - whole > 0.5 else whole

@njit(error_model="numpy")
def mod_f(a, b):
    if b == 0:
        raise ZeroDivisionError
    mod = fmod(a, b)
    if mod == 0:
        return copysign(0.0, b)
    return mod + b if (b < 0) != (mod < 0) else mod

@njit(error_model="numpy")
def div_f(a, b):
    if b == 0:
        raise ZeroDivisionError
    return a / b

@njit(error_model="numpy")
def exact_f(a):
    if a > {EXACT} or a < -{EXACT}:
        raise OverflowError
    return float64(a)

@njit(error_model="numpy")
def mixed(r, a, b):
    if abs(r) > {EXACT} and abs(a) <= {EXACT} and abs(b) <= {EXACT} and a == floor(a) and b == floor(b):
        raise OverflowError  # as whole numbers, it would be exact
    return r

@njit(error_model="numpy")
def div_i(a, b):
    if b == 0:
        raise ZeroDivisionError
    return exact_f(a) / exact_f(b)

@njit(error_model="numpy")
def neg_i(a):
    if a == LOWEST:
        raise OverflowError
    return -a

@njit(error_model="numpy")
def neg_f(a):
    return -a

@njit(error_model="numpy")
def abs_i(a):
    return neg_i(a) if a < 0 else a

@njit(error_model="numpy")
def abs_f(a):
    return abs(a)

@njit(error_model="numpy")
def min_(a, b):
    return b if b < a else a

@njit(error_model="numpy")
def max_(a, b):
    return b if b > a else a

@njit(error_model="numpy")
def sqrt_(a):
    return sqrt(a) if a >= 0 else nan
"""


# -- the types of a program ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Types:
    """The types of the registers and of the answer, for certain types of the fields of items."""

    fields: tuple[str, ...]
    registers: tuple[str, ...]
    answer: str

    @classmethod
    def of(cls, program: Straight, fields: tuple[str, ...]) -> Types:
        """Raises `NotTyped` if there are none."""
        kinds = ["" if value is None else _type_of(value) for value in program.start]
        while True:  # types only grow
            found = list(kinds)
            answer = ""
            for step in program.steps.values():
                texts = _Texts(program, fields, kinds)
                for term in step.values:
                    texts.note(term)
                for place, term in step.updates:
                    found[place] = both(found[place], texts.term(term)[1])
                if isinstance(step.answer, Term):
                    answer = both(answer, texts.term(step.answer)[1])
            if found == kinds:
                return cls(fields, tuple(kind or BOOL for kind in kinds), answer or BOOL)
            kinds = found


def _type_of(value: Value) -> str:
    if type(value) is bool:
        return BOOL
    if type(value) is float:
        return FLOAT
    if type(value) is int and -(2**63) <= value < 2**63:
        return SMALL
    raise NotTyped(f"the constant {value!r}")


class _Texts:
    """Terms as typed texts."""

    def __init__(self, program: Straight, fields: Sequence[str], kinds: Sequence[str]) -> None:
        self._fields = {name: (f"f{n}", fields[n]) for n, name in enumerate(used_fields(program))}
        self._registers = kinds
        self._noted: list[str] = []

    def note(self, term: Term) -> _Typed:
        """A temporary of this term."""
        found = self.term(term)
        self._noted.append(found[1])
        return found

    def term(self, term: Term) -> _Typed:
        match term:
            case Constant(value):
                kind = _type_of(value)
                if kind == FLOAT and value != value:
                    return "nan", kind
                text = f"int64({value})" if kind == SMALL else repr(value)
                return f"({text})", kind
            case Slot(place):
                return f"r{place}", self._registers[place] or BOOL
            case Temporary(number):
                return f"t{number}", self._noted[number]
            case Current(name):
                return self._fields[name]
            case Apply(operation, arguments):
                if operation.name not in _WRITTEN or operation.code is None:
                    raise NotTyped(f"the function {operation.name}")
                return _WRITTEN[operation.name](*map(self.term, arguments))
        raise NotTyped(f"not a term: {term!r}")


# -- the code --------------------------------------------------------------------------------------------------------


def kernel_text(program: Straight, types: Types, *, is_keyed: bool) -> str:
    """The code of a kernel.

    Its arguments: tags, with keys the keys, the fields, the control state and the registers (with keys, arrays of
    them), and the arrays for the statuses and values of answers. Without keys it gives control state and registers.
    """
    names = registers(program)
    columns = [f"f{number}" for number in range(len(types.fields))]

    def lines_of(step: Step, control: int) -> list[str]:
        texts = _Texts(program, types.fields, types.registers)
        lines = [f"t{number} = {texts.note(term)[0]}" for number, term in enumerate(step.values)]
        if step.status is not None:
            lines.append(f"status[i] = {texts.term(step.status)[0]}")
        elif isinstance(step.answer, Nothing):
            lines.append(f"status[i] = {int(status_of(step.answer))}")
        if isinstance(step.answer, Term):
            lines.append(f"values[i] = {_as(texts.term(step.answer), types.answer)}")
        if step.updates:
            given = ", ".join(_as(texts.term(term), types.registers[place]) for place, term in step.updates)
            lines.append(f"{', '.join(f'r{place}' for place, _ in step.updates)} = {given}")
        if step.then != control:
            lines.append(f"control = {step.then}")
        if is_keyed:
            lines += [f"all_r{place}[key] = r{place}" for place, _ in step.updates]
            lines += [f"controls[key] = {step.then}"] if step.then != control else []
        return lines or ["pass"]

    steps = body(program, lines_of, [str(number) for number in range(len(program.tags))], None)
    has_tags, has_control = len(program.tags) > 1, program.controls > 1
    loads = ["tag = tags[i]"] if has_tags else []
    loads += [f"{name} = all_{name}[i]" for name in columns]
    if is_keyed:
        loads += ["key = keys[i]", *(["control = controls[key]"] if has_control else [])]
        loads += [f"{name} = all_{name}[key]" for name in names]
    given = ["tags", *(["keys"] if is_keyed else []), *(f"all_{name}" for name in columns)]
    given += ["controls", *(f"all_{name}" for name in names)] if is_keyed else ["control", *names]
    lines = [
        '@njit(cache=CACHE, error_model="numpy", nogil=True)',
        f"def kernel({', '.join(given)}, status, values):",
        "    for i in range(len(status)):",
        *indented(indented([*loads, *steps])),
        *([] if is_keyed else [f"    return {', '.join(['control', *names])},"]),
    ]
    return "\n".join(lines) + "\n"


@cache
def is_available() -> bool:
    """Whether numba is installed."""
    return importlib.util.find_spec("numba") is not None


@cache
def kernel(text: str) -> Callable[..., Any]:
    """The compiled function of such a text; what it compiles to is kept on disk for the next process."""
    folder = _folder()
    whole = f"CACHE = {folder is not None}\n{_HEAD}\n{text}"
    if folder is None:
        return compiled(whole.splitlines(), "kernel", {})
    name = f"streamtight_kernel_{hashlib.sha256(whole.encode()).hexdigest()[:24]}"
    path = folder / f"{name}.py"
    if not path.is_file() or path.read_text() != whole:
        aside = folder / f".{name}.{os.getpid()}"
        aside.write_text(whole)
        aside.replace(path)  # whole or not there
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise AssertionError(path)  # pragma: no cover
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name].kernel  # type: ignore[no-any-return]


def _folder() -> Path | None:
    """Where compiled kernels are kept: a folder that nobody else can write to; None if there is no such place."""
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(root) / "streamtight" / f"kernels-{sys.implementation.cache_tag}"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        known = folder.stat()
    except OSError:
        return None
    if not os.access(folder, os.W_OK) or known.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return None
    return folder if not hasattr(os, "getuid") or known.st_uid == os.getuid() else None
