"""Rows that are namedtuples or dataclasses: relations have them as plain tuples, functions see what they are.

A namedtuple is equal to a plain tuple, and becomes one. A dataclass is equal to its own kind only, and becomes a tuple
that begins with the name of its class.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import types
import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from streamtight.errors import UnsupportedError
from streamtight.method.prove.typed import SECONDS, known
from streamtight.program.relation import Function, How, Place, Relation
from streamtight.solver.ask import Budget
from streamtight.solver.symbolic.admit import Composed, Twin
from streamtight.solver.symbolic.paths import refuse
from streamtight.solver.symbolic.values import is_namedtuple, is_record
from streamtight.solver.terms import Meaning


@dataclass(frozen=True, slots=True)
class Record:
    """A namedtuple or dataclass, and what its fields are."""

    cls: type
    fields: tuple[Shape, ...]


Shape: TypeAlias = "tuple[Shape, ...] | Record | None"
"""Where in a row there are records. None: nowhere."""


def shape_of(tree: Any) -> Shape:
    """Where in this row there are records."""
    if is_record(tree):
        return Record(type(tree), tuple(map(shape_of, _fields(tree))))
    if isinstance(tree, tuple):
        parts = tuple(map(shape_of, tree))
        return parts if any(part is not None for part in parts) else None
    return None


def part(shape: Shape, place: int) -> Shape:
    """Where in a part of a row there are records."""
    if isinstance(shape, Record):
        return shape.fields[place] if is_namedtuple(shape.cls) and place < len(shape.fields) else None
    return shape[place] if shape is not None and place < len(shape) else None


def together(*shapes: Shape) -> Shape:
    """The shape of a tuple of rows."""
    return shapes if any(shape is not None for shape in shapes) else None


def is_dataclass(shape: Shape) -> bool:
    """Whether a row is a dataclass, which has no parts by number."""
    return isinstance(shape, Record) and not is_namedtuple(shape.cls)


def holds_dataclass(shape: Shape) -> bool:
    """Whether there is a dataclass in a row."""
    if isinstance(shape, Record):
        return is_dataclass(shape) or any(map(holds_dataclass, shape.fields))
    return shape is not None and any(map(holds_dataclass, shape))


def _fields(record: Any) -> Iterator[Any]:
    if isinstance(record, tuple):
        return iter(record)
    return (getattr(record, field.name) for field in dataclasses.fields(record))


def flattened(tree: Any) -> Any:
    """The row with plain tuples for its records."""
    if is_record(tree):
        parts = tuple(map(flattened, _fields(tree)))
        return parts if isinstance(tree, tuple) else (_name(type(tree)), *parts)
    return tuple(map(flattened, tree)) if type(tree) is tuple else tree


_named_alike: dict[str, list[type]] = {}


def _name(cls: type) -> str:
    """A name that no other class has; a function may make many of one name."""
    name = f"{cls.__module__}.{cls.__qualname__}"
    known = _named_alike.setdefault(name, [])
    if cls not in known:
        known.append(cls)
    return f"{name}#{known.index(cls)}"


def rebuilt(row: Any, shape: Shape) -> Any:
    """The row with its records."""
    if shape is None or row is None:
        return row
    if not isinstance(shape, Record):
        return tuple(rebuilt(inner, each) for inner, each in zip(row, shape, strict=True))
    cls: Any = shape.cls
    if is_namedtuple(cls):
        return tuple.__new__(cls, [rebuilt(inner, each) for inner, each in zip(row, shape.fields, strict=True)])
    record = object.__new__(cls)
    for field, inner, each in zip(dataclasses.fields(cls), row[1:], shape.fields, strict=True):
        object.__setattr__(record, field.name, rebuilt(inner, each))
    return record


def require_keys(shape: Shape, place: Place) -> None:
    """Raise if a key has no hash: Spark raises then, as soon as there are rows."""
    for cls in classes_in(shape):
        if cls.__hash__ is None:
            _refuse(place, f"keys that are {cls.__name__}, which is not frozen and has no hash")


def require_same(one: Shape, other: Shape, place: Place) -> Shape:
    """Raise if rows that come together are not of one kind."""
    if one != other:
        _refuse(place, f"rows that are now {_told(one)}, now {_told(other)}")
    return one


def classes_in(shape: Shape) -> Iterator[type]:
    """The classes of the records of a row."""
    if isinstance(shape, Record):
        yield shape.cls
    for inner in shape.fields if isinstance(shape, Record) else shape or ():
        yield from classes_in(inner)


# -- functions -------------------------------------------------------------------------------------------------------


_ANY: Any = object()


def on_records(
    function: Function, shapes: Sequence[Shape], *, many: bool = False, gives: Shape | object = _ANY
) -> Function:
    """The function, which is given records and gives plain tuples; itself if there are no records.

    `many` says that it gives rows, not a row. `gives` is what it must give, if only one shape is possible.
    """
    if all(shape is None for shape in shapes) and not may_make_records(function):
        return function
    classes = [cls for shape in shapes for cls in classes_in(shape)]

    def around(called: Function) -> Function:
        def on_rows(*rows: Any) -> Any:
            result = called(*[rebuilt(row, shape) for row, shape in zip(rows, shapes, strict=True)])
            if many:
                return (flattened(row) for row in result)
            if gives is not _ANY and shape_of(result) != gives:
                refuse(f"gives {_told(shape_of(result))} rows where it is given {_told(gives)} ones")
            return flattened(result)

        return on_rows

    def make(twin: Twin, *admitted: Any) -> Function:
        return around(admitted[-1])

    besides = (repr(shapes), many, repr(gives), *classes)
    return Composed(make, *classes, function, besides=besides, real=around(function))


def at_value(shape: Shape) -> Function:
    """The function that gives the value of a pair, with its records."""
    if shape is None:
        return _second

    def value(pair: Any) -> Any:
        return rebuilt(pair[1], shape)

    return Composed(lambda twin, *_: value, *classes_in(shape), besides=(repr(shape),), real=value)


def _second(pair: Any) -> Any:
    return pair[1]


def shape_after(relation: Relation, shape: Shape, function: Function, how: How, place: Place) -> Shape:
    """Where there are records in what a function gives for the rows of a relation."""
    if how is How.FILTER or (shape is None and not may_make_records(function)):
        return shape
    return _one_shape(relation, (shape,), function, place, how)


def _one_shape(relation: Relation, shapes: tuple[Shape, ...], function: Function, place: Place, how: How) -> Shape:
    classes = [cls for shape in shapes for cls in classes_in(shape)]

    def around(called: Function) -> Function:
        return lambda *rows: called(*[rebuilt(row, shape) for row, shape in zip(rows, shapes, strict=True)])

    def find() -> list[Shape]:
        meaning = Meaning(Budget(SECONDS))
        given = around(function)
        raw = Composed(lambda twin, *admitted: around(admitted[-1]), *classes, function, besides=(given,), real=given)
        found: list[Shape] = []
        then = list if how is How.FLAT_MAP else None
        for term in meaning.bag(relation).terms:
            for _, result, raised in meaning.applied(raw, (term.row,), term.guard, then=then):
                if raised is None:
                    found += map(shape_of, result if how is How.FLAT_MAP else [result])
        return found

    found = known(f"records: {how} {shapes!r}", (relation, function, tuple(classes)), find)
    for shape in found:
        _require_plain(shape, place)
    if any(shape != found[0] for shape in found):
        _refuse(place, f"rows that are now {_told(found[0])}, now {_told(next(s for s in found if s != found[0]))}")
    return found[0] if found else None


def _require_plain(shape: Shape, place: Place) -> None:
    """Records must be equal if their fields are."""
    for cls in classes_in(shape):
        if own := _own_special_method(cls):
            _refuse(place, f"rows of {cls.__name__}, which has a {own} of its own")
        if is_namedtuple(cls):
            continue
        if "__eq__" not in vars(cls) or not all(field.compare for field in dataclasses.fields(cls)):
            _refuse(place, f"rows of {cls.__name__}, which are not equal if their fields are")


def _own_special_method(cls: type) -> str | None:
    """A method that Python calls by itself, to compare rows or to ask for their truth, and that the user wrote."""
    made = ("<string>", dataclasses.__file__, collections.__file__, typing.__file__)
    for base in cls.__mro__:
        for name, part in vars(base).items() if base not in (tuple, object, typing.Generic) else ():
            code = getattr(part, "__code__", None)
            if name.startswith("__") and name.endswith("__") and code is not None and code.co_filename not in made:
                return name
    return None


def _told(shape: Any) -> str:
    if isinstance(shape, Record):
        return shape.cls.__name__
    return "plain" if shape is None else f"({', '.join(map(_told, shape))})"


def _refuse(place: Place, came: str) -> NoReturn:
    raise UnsupportedError(
        str(place), needed="rows of one kind, equal if their fields are", came=came, hint="tuples, or one class"
    )


_MOST_REACHED = 5000
"""What reaches more is taken for something that may make records."""


def may_make_records(function: Any) -> bool:
    """Whether a function reaches a class of records, or one of them, by name."""
    return _reaches_record(function, set())


def _reaches_record(value: Any, seen: set[int]) -> bool:
    if len(seen) > _MOST_REACHED:
        return True
    if id(value) in seen:
        return False
    seen.add(id(value))
    if isinstance(value, type):
        return is_namedtuple(value) or dataclasses.is_dataclass(value)
    if is_record(value):
        return True
    if isinstance(value, tuple | list | set | frozenset):
        return any(_reaches_record(item, seen) for item in value)
    if isinstance(value, dict):
        return any(_reaches_record(item, seen) for item in value.values())
    if isinstance(value, types.MethodType):
        return True
    if isinstance(value, functools.partial):
        return any(_reaches_record(item, seen) for item in (value.func, value.args, value.keywords))
    if isinstance(value, Composed):
        return any(_reaches_record(item, seen) for item in value.parts)
    if not isinstance(value, types.FunctionType):
        return False
    reached = [value.__defaults__ or (), value.__kwdefaults__ or {}]
    for cell in value.__closure__ or ():
        try:
            reached.append(cell.cell_contents)
        except ValueError:
            continue
    return any(_reaches_record(item, seen) for item in (*reached, *_named(value)))


def _named(function: types.FunctionType) -> Iterator[Any]:
    """What a function reaches by the names in its code."""
    waiting = [function.__code__]
    while waiting:
        code = waiting.pop()
        waiting += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
        found = [function.__globals__[name] for name in code.co_names if name in function.__globals__]
        yield from found
        modules = [value for value in found if isinstance(value, types.ModuleType)]
        yield from (getattr(module, name) for module in modules for name in code.co_names if hasattr(module, name))
