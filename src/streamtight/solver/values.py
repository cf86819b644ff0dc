"""Rows of which the values are not known: trees of symbolic values, some of which may be None.

>>> row = variable((int, int | None), "x")
>>> type_of(row)
(<class 'int'>, int | None)
>>> row[1].null
x.1.null
"""

from __future__ import annotations

import functools
import itertools
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import z3

from streamtight.errors import UnsupportedError
from streamtight.solver.symbolic.trees import value_in
from streamtight.solver.symbolic.values import (
    Symbolic,
    SymbolicBool,
    SymbolicFloat,
    SymbolicInt,
    SymbolicStr,
    term_of,
)

Row = Any
"""A tree of tuples; its leaves are None, constants, symbolic values, and those that may be None."""
Truth: TypeAlias = Any
"""A formula of Z3."""

_OF_TYPE: dict[type, tuple[type[Symbolic], Any]] = {
    int: (SymbolicInt, z3.Int),
    bool: (SymbolicBool, z3.Bool),
    float: (SymbolicFloat, z3.Real),
    str: (SymbolicStr, z3.String),
}
YES, NO = z3.BoolVal(True), z3.BoolVal(False)


@dataclass(frozen=True, slots=True)
class Maybe:
    """A value, or None where `null` is true."""

    null: Truth
    value: Symbolic


def variable(type_: Any, name: str) -> Row:
    """A row of this type, all of whose values are free: int, bool, float, str, tuples of types, and `T | None`."""
    if isinstance(type_, tuple):
        return tuple(variable(part, f"{name}.{place}") for place, part in enumerate(type_))
    if type_ in _OF_TYPE:
        make, constant = _OF_TYPE[type_]
        return make(constant(name))
    if type_ is None or type_ is type(None):
        return None
    parts = typing.get_args(type_) if isinstance(type_, types.UnionType) or typing.get_origin(type_) else ()
    inner = [part for part in parts if part is not type(None)]
    if len(inner) == 1 and len(parts) == 2 and inner[0] in _OF_TYPE:
        return Maybe(z3.Bool(f"{name}.null"), variable(inner[0], name))
    raise UnsupportedError(
        f"the type {type_!r}",
        needed="int, bool, float, str, a tuple of types, or one of the four or None",
        came=repr(type_),
        hint="(int, str | None)",
    )


def same(one: Row, other: Row) -> Truth:
    """Whether two rows are equal, as Python has it, where None is equal to None."""
    if isinstance(one, tuple) or isinstance(other, tuple):
        if not isinstance(one, tuple) or not isinstance(other, tuple) or len(one) != len(other):
            return NO
        return conjunction(same(mine, others) for mine, others in zip(one, other, strict=True))
    (null, value), (other_null, other_value) = _split(one), _split(other)
    if value is None or other_value is None:
        return conjunction((null, other_null))
    return either(
        conjunction((null, other_null)), conjunction((negation(null), negation(other_null), _equal(value, other_value)))
    )


def _split(leaf: Any) -> tuple[Truth, Any]:
    """When it is None, and what it is if not."""
    if leaf is None:
        return YES, None
    return (leaf.null, term_of(leaf.value)) if isinstance(leaf, Maybe) else (NO, term_of(leaf))


def _equal(one: Any, other: Any) -> Truth:
    if z3.is_string(one) or z3.is_string(other):
        return one == other if z3.is_string(one) and z3.is_string(other) else NO
    return number(one) == number(other) if one.sort() != other.sort() else one == other


def number(term: Any) -> Any:
    """A truth value as the number that Python takes it for."""
    return z3.If(term, z3.IntVal(1), z3.IntVal(0)) if z3.is_bool(term) else term


def cases(row: Row) -> Iterator[tuple[Truth, Row]]:
    """The row for each way in which its values can be None or not, and when that is so."""
    leaves = list(_maybes(row))
    for nulls in itertools.product((False, True), repeat=len(leaves)):
        chosen = dict(zip(map(id, leaves), nulls, strict=True))
        guard = conjunction(
            leaf.null if null else negation(leaf.null) for leaf, null in zip(leaves, nulls, strict=True)
        )
        yield guard, _chosen(row, chosen)


def _maybes(row: Row) -> Iterator[Maybe]:
    if isinstance(row, Maybe):
        yield row
    elif isinstance(row, tuple):
        for part in row:
            yield from _maybes(part)


def _chosen(row: Row, nulls: Mapping[int, bool]) -> Row:
    if isinstance(row, Maybe):
        return None if nulls[id(row)] else row.value
    return tuple(_chosen(part, nulls) for part in row) if isinstance(row, tuple) else row


# -- types -----------------------------------------------------------------------------------------------------------


def type_of(row: Row) -> Any:
    """The type of a row, as `variable` takes it."""
    if isinstance(row, tuple):
        return tuple(type_of(part) for part in row)
    if row is None:
        return type(None)
    if isinstance(row, Maybe):
        return type_of(row.value) | None
    return row.python if isinstance(row, Symbolic) else type(row)


def joined(types_: Iterable[Any]) -> Any:
    """The narrowest type that has the values of all these; NoneType if there are none."""
    listed = list(types_)
    return functools.reduce(_join, listed) if listed else type(None)


def _join(one: Any, other: Any) -> Any:
    if one == other:
        return other
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return tuple(map(_join, one, other))
    if not isinstance(one, tuple) and not isinstance(other, tuple):
        parts = {part for each in (one, other) for part in (typing.get_args(each) or (each,))}
        plain = parts - {type(None)}
        numbers = [kind for kind in (float, int, bool) if kind in plain]
        if numbers and plain <= {float, int, bool}:
            plain = {numbers[0]}
        if len(plain) == 1:
            [kind] = plain
            return kind | None if type(None) in parts else kind
    raise UnsupportedError(
        "rows", needed="one shape and type", came=f"{one!r} and {other!r}", hint="tuples of one length"
    )


# -- truth -----------------------------------------------------------------------------------------------------------


def conjunction(parts: Any) -> Truth:
    """All of them, without what says nothing."""
    kept = [part for part in parts if not z3.is_true(part)]
    if any(z3.is_false(part) for part in kept):
        return NO
    return YES if not kept else kept[0] if len(kept) == 1 else z3.And(*kept)


def either(*parts: Truth) -> Truth:
    """One of them, without those that cannot be."""
    kept = [part for part in parts if not z3.is_false(part)]
    if any(z3.is_true(part) for part in kept):
        return YES
    return NO if not kept else kept[0] if len(kept) == 1 else z3.Or(*kept)


def negation(part: Truth) -> Truth:
    """Not so."""
    return NO if z3.is_true(part) else YES if z3.is_false(part) else z3.Not(part)


# -- other variables -------------------------------------------------------------------------------------------------

Renaming = Sequence[tuple[Any, Any]]
"""Constants, and the terms that take their place."""


def renamed(row: Row, renaming: Renaming) -> Row:
    """The same row, of other variables."""
    if isinstance(row, tuple):
        return tuple(renamed(part, renaming) for part in row)
    if isinstance(row, Maybe):
        return Maybe(z3.substitute(row.null, *renaming), renamed(row.value, renaming))
    return type(row)(z3.substitute(row._term, *renaming)) if isinstance(row, Symbolic) else row


def values_in(row: Row, model: z3.ModelRef) -> Any:
    """The Python values that a row has in a model."""
    if isinstance(row, tuple):
        return tuple(values_in(part, model) for part in row)
    if isinstance(row, Maybe):
        return None if z3.is_true(model.eval(row.null, model_completion=True)) else value_in(row.value, model)
    return value_in(row, model)


def leaves(row: Row) -> list[Any]:
    """The leaves of a tree, from left to right."""
    return [leaf for part in row for leaf in leaves(part)] if isinstance(row, tuple) else [row]


def terms_in(row: Row) -> list[Any]:
    """The terms of a row, and of when its values are None."""
    found = []
    for leaf in leaves(row):
        if isinstance(leaf, Maybe):
            found += [leaf.null, leaf.value._term]
        elif leaf is not None:
            found.append(term_of(leaf))
    return found


def constants(row: Row) -> list[Any]:
    """The constants of a variable, in a fixed order."""
    if isinstance(row, tuple):
        return [constant for part in row for constant in constants(part)]
    if isinstance(row, Maybe):
        return [row.null, row.value._term]
    return [row._term] if isinstance(row, Symbolic) else []


def fitted(row: Row, type_: Any) -> list[Any]:
    """The terms of a row, one for each constant of a variable of this type; what is None has one and the same value.

    >>> fitted((None, 3), (int | None, int | None))
    [True, 0, False, 3]
    """
    if isinstance(type_, tuple):
        if not isinstance(row, tuple) or len(row) != len(type_):
            raise UnsupportedError("a row", needed=f"one like {type_!r}", came=repr(row), hint="rows of one shape")
        return [term for part, kind in zip(row, type_, strict=True) for term in fitted(part, kind)]
    like = constants(variable(type_, "?"))
    if not like:
        return []
    if isinstance(row, Maybe) and z3.is_const(row.null) and z3.is_const(row.value._term) and len(like) == 2:
        return [row.null, row.value._term]  # of a variable: see `normal`
    null, value = _split(row)
    sort = like[-1].sort()
    default = _DEFAULTS[sort.kind()]
    term = default if value is None else _as_sort(value, sort)
    if len(like) == 1:
        if not z3.is_false(null):
            raise UnsupportedError("a row", needed=f"one like {type_!r}", came=repr(row), hint="no None")
        return [term]
    return [null, term if z3.is_false(null) else default if z3.is_true(null) else z3.If(null, default, term)]


def normal(row: Row) -> Truth:
    """That what is None in a variable has one and the same value, which says nothing about the row."""
    if isinstance(row, tuple):
        return conjunction(map(normal, row))
    if isinstance(row, Maybe):
        return z3.Implies(row.null, row.value._term == _DEFAULTS[row.value._term.sort().kind()])
    return YES


_DEFAULTS = {
    z3.Z3_INT_SORT: z3.IntVal(0),
    z3.Z3_BOOL_SORT: NO,
    z3.Z3_REAL_SORT: z3.RealVal(0),
    z3.Z3_SEQ_SORT: z3.StringVal(""),
}


def _as_sort(term: Any, sort: Any) -> Any:
    if term.sort() == sort:
        return term
    if sort.kind() == z3.Z3_INT_SORT and z3.is_bool(term):
        return number(term)
    if sort.kind() == z3.Z3_REAL_SORT and (z3.is_bool(term) or z3.is_int(term)):
        return z3.ToReal(number(term))
    raise UnsupportedError("a row", needed=str(sort), came=str(term.sort()), hint="rows of one type")


def constants_in(terms: Iterable[Any]) -> list[Any]:
    """The uninterpreted constants in these terms, each once."""
    found: dict[int, Any] = {}
    waiting, seen = list(terms), set()
    while waiting:
        term = waiting.pop()
        if term.get_id() in seen:
            continue
        seen.add(term.get_id())
        if z3.is_const(term) and term.decl().kind() == z3.Z3_OP_UNINTERPRETED:
            found[term.get_id()] = term
        waiting += term.children()
    return list(found.values())
