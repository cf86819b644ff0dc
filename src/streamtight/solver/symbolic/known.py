"""Builtins that know symbolic values, and those that need not."""

from __future__ import annotations

import builtins
import dataclasses
import functools
import itertools
import math
import operator
import sys
import types
import typing
from collections.abc import Callable
from typing import Any

import z3

from streamtight.errors import StreamtightError
from streamtight.solver.symbolic.groups import group_over
from streamtight.solver.symbolic.paths import assume, exploring, last_frame, python_raises, refuse
from streamtight.solver.symbolic.values import (
    REAL_NUMBERS,
    Counted,
    Symbolic,
    SymbolicBool,
    SymbolicFloat,
    SymbolicInt,
    SymbolicNumber,
    SymbolicStr,
    number_term,
    to_real,
    truth_term,
    type_name,
)

_LONGEST_RANGE = 10_000


def with_known_len(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with a `len` that knows symbolic values, for a program that is run as it is.

    Other builtins work through the operators of their arguments, or are classes that a program may use as such.
    """
    if not isinstance(function, types.FunctionType):
        return function
    names = {**function.__globals__, "__builtins__": {**vars(builtins), "len": _len}}
    made = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def names_in(text: str) -> frozenset[str]:
    """The names that are listed in a text."""
    return frozenset(text.split())


def _real(function: Callable[..., Any], *arguments: object, **words: object) -> Any:
    """Python's own function; what it raises counts as raised where the user called it."""
    try:
        return function(*arguments, **words)
    except StreamtightError:
        raise
    except Exception as error:
        if exploring and last_frame(error).tb_frame is sys._getframe():
            exploring[-1].error_of_builtin = error
        raise


def _len(value: object, /) -> Any:
    if type(value) is SymbolicStr:
        return SymbolicInt(z3.Length(value._term))
    if isinstance(value, Counted):
        return value.length()
    if isinstance(value, Symbolic):
        python_raises(TypeError(f"object of type '{type_name(value)}' has no len()"))
    return _real(len, value)


def _bool(*values: object) -> Any:
    if len(values) == 1 and isinstance(values[0], Symbolic):
        return SymbolicBool(truth_term(values[0]))
    return _real(bool, *values)


def _int(*values: object, **words: object) -> Any:
    if not words and len(values) == 1 and isinstance(values[0], SymbolicNumber):
        return values[0].__trunc__()
    if any(isinstance(value, Symbolic) for value in values):
        refuse("uses int() of a symbolic str")
    return _real(int, *values, **words)


def _float(*values: object) -> Any:
    if len(values) == 1 and isinstance(values[0], SymbolicNumber):
        assume(REAL_NUMBERS)
        return SymbolicFloat(to_real(*typing.cast("tuple[int, Any]", number_term(values[0]))))
    if any(isinstance(value, Symbolic) for value in values):
        refuse("uses float() of a symbolic str")
    return _real(float, *values)


def _str(*values: object, **words: object) -> Any:
    if not words and len(values) == 1 and type(values[0]) is SymbolicStr:
        return values[0]
    return _real(str, *values, **words)


def _range(*limits: object) -> Any:
    if any(isinstance(limit, Symbolic) for limit in limits):
        refuse("uses range() of a symbolic number")
    steps: range = _real(range, *limits)
    if steps and abs(steps[-1] - steps[0]) // abs(steps.step) >= _LONGEST_RANGE:
        refuse(f"uses a range() of more than {_LONGEST_RANGE} numbers")
    return steps


def _sum(items: Any, /, start: object = 0) -> Any:
    group = group_over(items)
    if group is not None:
        return group.total(start)
    if type(start) is SymbolicStr:
        python_raises(TypeError("sum() can't sum strings [use ''.join(seq) instead]"))
    return _real(sum, items, start)


def _min(*values: Any, **words: Any) -> Any:
    return _extreme(min, operator.lt, values, words)


def _max(*values: Any, **words: Any) -> Any:
    return _extreme(max, operator.gt, values, words)


def _extreme(function: Callable[..., Any], better: Callable[[Any, Any], Any], values: Any, words: Any) -> Any:
    group = group_over(values[0]) if len(values) == 1 else None
    if group is not None:
        name, key = function.__name__, words.pop("key", None)
        if key is None:
            return group.extreme(name, **words)
        written, known = group.original(key, f"{name}()")
        return group.reduced_by(_better(better, written), (name, known), name, **words)
    if words or not values:
        return _real(function, *values, **words)
    items = _real(list, values[0]) if len(values) == 1 else list(values)
    kinds = {type(item) for item in items}
    if kinds <= {int, SymbolicInt} and SymbolicInt in kinds:
        numbers = [number_term(item)[1] for item in items]  # type: ignore[index]
        # One term instead of a path for every order; which of two equal ints it is cannot be told.
        return SymbolicInt(functools.reduce(lambda a, b: z3.If(better(b, a), b, a), numbers))
    return _real(function, items)


def _better(better: Callable[[Any, Any], Any], key: Callable[..., Any]) -> Callable[..., Any]:
    """The function of two values that gives the better one, and the first if none is."""

    def chosen(one: Any, other: Any) -> Any:
        return other if better(key(other), key(one)) else one

    return chosen


def _any(items: Any, /) -> Any:
    group = group_over(items, all_of_it=False)
    return _real(any, items) if group is None else group.holds_for("any")


def _all(items: Any, /) -> Any:
    group = group_over(items, all_of_it=False)
    return _real(all, items) if group is None else group.holds_for("all")


def _sorted(items: Any, /, **words: Any) -> Any:
    group = group_over(items)
    if group is None:
        return _real(sorted, items, **words)
    if set(words) - {"reverse"} or type(words.get("reverse", False)) is not bool:
        refuse("uses sorted() of a group with a key, where several values may be the first")
    return group.listed("reversed" if words.get("reverse") else "sorted")


def _list(*items: Any) -> Any:
    return _listed(list, items)


def _tuple(*items: Any) -> Any:
    return _listed(tuple, items)


def _listed(kind: type, items: tuple[Any, ...]) -> Any:
    group = group_over(items[0]) if len(items) == 1 else None
    return _real(kind, *items) if group is None else group.listed("list")


def _set(*items: Any) -> Any:
    group = group_over(items[0]) if len(items) == 1 else None
    return refuse("uses set()") if group is None else group.listed("set")


def _map(function: Any, *items: Any) -> Any:
    group = group_over(items[0]) if len(items) == 1 else None
    if group is None:
        return _real(map, function, *items)
    written, key = group.original(function, "map()")
    return group.made(_mapped(written), ("map", key), lambda values: map(function, values), "iterator")


def _mapped(function: Callable[..., Any]) -> Callable[..., Any]:
    def mapped(values: Any) -> Any:
        return map(function, values)

    return mapped


def _filter(function: Any, items: Any, /) -> Any:
    group = group_over(items)
    if group is None:
        return _real(filter, function, items)
    written, key = group.original(function, "filter()")
    return group.made(_filtered(written), ("filter", key), lambda values: filter(function, values), "iterator")


def _filtered(function: Callable[..., Any]) -> Callable[..., Any]:
    def filtered(values: Any) -> Any:
        return filter(function, values)

    return filtered


def _reduce(function: Any, items: Any, /, *start: Any) -> Any:
    group = group_over(items)
    return _real(functools.reduce, function, items, *start) if group is None else group.reduced(function, *start)


def _attrgetter(*names: object) -> Any:
    if any(not isinstance(name, str) or "_" in {part[:1] for part in name.split(".")} for name in names):
        refuse("uses operator.attrgetter of a private attribute")
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
        id(any): _any,
        id(all): _all,
        id(sorted): _sorted,
        id(list): _list,
        id(tuple): _tuple,
        id(set): _set,
        id(frozenset): _set,
        id(map): _map,
        id(filter): _filter,
        id(functools.reduce): _reduce,
        id(operator.attrgetter): _attrgetter,
    }
    as_they_are = [
        *(abs, divmod, round, pow, dict, zip, enumerate, reversed, iter, next),
        *(functools.partial, operator.itemgetter, dataclasses.replace),
        *(itertools.chain, itertools.product, itertools.combinations, itertools.permutations, itertools.accumulate),
        *(itertools.zip_longest, itertools.pairwise, itertools.takewhile, itertools.dropwhile, itertools.starmap),
        # Functions of math ask for the value of what they cannot calculate exactly, and that is refused.
        *(part for part in vars(math).values() if isinstance(part, types.BuiltinFunctionType)),
        *(part for name, part in vars(operator).items() if name in _OPERATORS),
    ]
    return known | {id(_len): _len} | {id(part): part for part in as_they_are}


_OPERATORS = names_in(
    """
    abs add and_ contains countOf eq floordiv ge getitem gt iadd imul indexOf inv invert isub le lshift lt mod
    mul ne neg not_ or_ pos pow rshift sub truediv truth xor
    """
)
KNOWN = _known_builtins()
"""What is used in the place of a builtin, by the id of the builtin."""
