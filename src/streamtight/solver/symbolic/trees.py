"""Trees of symbolic values: what functions take and give, and the values that they have in a model."""

from __future__ import annotations

import ctypes
import dataclasses
import itertools
import math
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import z3

from streamtight.errors import UnsupportedError
from streamtight.solver.symbolic.paths import refuse
from streamtight.solver.symbolic.values import (
    Symbolic,
    SymbolicBool,
    SymbolicFloat,
    SymbolicInt,
    SymbolicStr,
    is_namedtuple,
)


def settled(value: object) -> object:
    """The result of a run, as long as every leaf of it is known to be exact."""
    kind = type(value)
    if value is None or kind in (int, bool, str) or isinstance(value, Symbolic):
        return value
    if kind is float:
        if not math.isfinite(typing.cast(float, value)):
            refuse(f"gives {value}")
        return value
    if kind is tuple or kind is list:
        return kind(settled(item) for item in value)  # type: ignore[attr-defined]
    if is_namedtuple(kind):
        return kind._make(settled(item) for item in value)  # type: ignore[attr-defined]
    if dataclasses.is_dataclass(kind):
        for field in dataclasses.fields(kind):
            settled(getattr(value, field.name))
        return value
    return refuse(f"gives a {_OWN_NAMES.get(kind.__name__, kind.__name__)}")


_OWN_NAMES = {"Table": "dict", "Members": "set", "_View": "view of a dict", "_Namespace": "module or class"}


def with_leaves(tree: Any, leaf: Callable[[Symbolic], object]) -> Any:
    """The same tree with something else for each symbolic value."""
    if isinstance(tree, Symbolic):
        return leaf(tree)
    kind = type(tree)
    if kind is tuple or kind is list:
        return kind(with_leaves(item, leaf) for item in tree)
    if is_namedtuple(kind):
        return kind._make(with_leaves(item, leaf) for item in tree)
    if dataclasses.is_dataclass(kind):
        copy = object.__new__(kind)
        for field in dataclasses.fields(kind):
            object.__setattr__(copy, field.name, with_leaves(getattr(tree, field.name), leaf))
        return copy
    return tree


def value_in(tree: object, model: z3.ModelRef) -> object:
    """The Python value that a tree has in a model. Constants that the model leaves open are chosen."""
    return with_leaves(tree, lambda leaf: python_value(model.eval(leaf._term, model_completion=True)))


def python_value(term: Any, *, simple: bool = False) -> Any:
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
        raise NoValue(str(term))
    return python_value(again, simple=True)


def python_argument(term: Any, i: int) -> Any:
    """`python_value(term.arg(i))`, without the objects that Z3's Python side makes on the way: they take the time."""
    context = term.ctx_ref()
    argument = z3.Z3_get_app_arg(context, term.as_ast(), i)
    if z3.Z3_get_ast_kind(context, argument) == z3.Z3_NUMERAL_AST:
        if z3.Z3_get_sort_kind(context, z3.Z3_get_sort(context, argument)) == z3.Z3_INT_SORT:
            return int(z3.Z3_get_numeral_string(context, argument))
    elif truth := z3.Z3_get_bool_value(context, argument):
        return bool(truth == z3.Z3_L_TRUE)
    return python_value(term.arg(i))


class NoValue(Exception):
    """A term that does not come down to a value."""


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
    if isinstance(type_, type) and is_namedtuple(type_):
        hints = typing.get_type_hints(type_)
        if set(hints) >= set(type_._fields):  # type: ignore[attr-defined]
            return [hints[field] for field in type_._fields], type_._make  # type: ignore[attr-defined]
    raise UnsupportedError(
        name,
        needed="int, bool, str, float, None, T | None, or a tuple of these",
        came=repr(type_),
        hint="(int, (str, int))",
    )


def leaves(tree: Any) -> list[Symbolic]:
    """The symbolic values of a tree, from left to right."""
    found: list[Symbolic] = []

    def keep(leaf: Symbolic) -> Symbolic:
        found.append(leaf)
        return leaf

    with_leaves(tree, keep)
    return found
