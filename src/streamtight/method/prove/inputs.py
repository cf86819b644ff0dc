"""What the programs take: RDDs with rows of a type, and tables with columns; and what is known of their rows.

>>> rdd((int, str | None))
rdd((int, str | None))
>>> table(k=int, v=nullable(int)).key("k").where("v >= 0")
table("k BIGINT NOT NULL, v BIGINT").key('k').where('v >= 0')
"""

from __future__ import annotations

import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from streamtight.errors import SourceError
from streamtight.program.expression import Field, is_known

Row = Any

_KNOWN = (int, bool, str, float)


# -- RDDs ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RDDInput:
    """An RDD whose rows have this type, and pass these tests."""

    row: Any
    tests: tuple[Callable[..., Any], ...] = ()

    def where(self, test: Callable[..., Any]) -> RDDInput:
        """Only RDDs whose rows all pass this test: `rdd(int).where(lambda x: x >= 0)`."""
        if not callable(test):
            raise SourceError(
                f"{self!r}.where({test!r})",
                needed="a function that says of a row whether it may come",
                came=repr(test),
                hint="rdd(int).where(lambda x: x >= 0)",
            )
        return replace(self, tests=(*self.tests, test))

    def allows(self, rows: Sequence[Row]) -> bool:
        """Whether these may be its rows."""
        return all(_passes(test, row, repr(self)) for test in self.tests for row in rows)

    def __repr__(self) -> str:
        return f"rdd({type_text(self.row)})" + "".join(".where(...)" for _ in self.tests)


def rdd(row: Any) -> RDDInput:
    """An input that is an RDD of rows of this type: int, bool, str, float, a tuple of types, or `T | None`."""
    require_type(row, f"rdd({row!r})", "rdd((int, str | None))")
    return RDDInput(row)


def require_type(type_: Any, where: str, hint: str) -> None:
    """Raise if this is no type that rows can have."""
    if isinstance(type_, tuple):
        for part in type_:
            require_type(part, where, hint)
    elif type_ not in _KNOWN and _inner(type_) not in _KNOWN:
        raise SourceError(
            where,
            needed="int, bool, str, float, a tuple of these, or one of them or None",
            came=repr(type_),
            hint=hint,
        )


def require_settings(where: str, seconds: Any, seed: Any) -> None:
    """Raise if this is no time limit, or no seed."""
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or math.isnan(seconds) or seconds <= 0:
        raise SourceError(
            f"{where}(seconds={seconds!r})", needed="a number above 0", came=repr(seconds), hint="seconds=10"
        )
    if not isinstance(seed, int):
        raise SourceError(f"{where}(seed={seed!r})", needed="a whole number", came=repr(seed), hint="seed=0")


def options(type_: Any) -> tuple[Any, ...]:
    """The types that a type allows: those of a union, or itself."""
    return typing.get_args(type_) if isinstance(type_, types.UnionType) or typing.get_origin(type_) else (type_,)


def _inner(type_: Any) -> Any:
    """What `T | None` may be besides None; None if it is no such type."""
    parts = options(type_)
    inner = [part for part in parts if part is not type(None)]
    return inner[0] if len(parts) == 2 and len(inner) == 1 else None


def type_text(type_: Any) -> str:
    """A type as it is written."""
    if isinstance(type_, tuple):
        inner = ", ".join(map(type_text, type_))
        return f"({inner},)" if len(type_) == 1 else f"({inner})"
    return type_.__name__ if isinstance(type_, type) else str(type_)


def _passes(test: Callable[..., Any], row: Row, where: str) -> bool:
    try:
        return bool(test(row))
    except Exception as error:  # the border of user code
        raise SourceError(
            where,
            needed="a test that says yes or no of every row",
            came=f"{type(error).__name__} for {row!r}: {error}",
            hint="lambda x: x is not None and x >= 0",
        ) from error


# -- tables ----------------------------------------------------------------------------------------------------------

_OF_PYTHON: dict[Any, str] = {
    int: "long",
    float: "double",
    str: "string",
    bool: "boolean",
    date: "date",
    datetime: "timestamp",
}
_OF_NAME = {
    "bigint": "long",
    "int": "integer",
    "smallint": "short",
    "tinyint": "byte",
    "str": "string",
    "bool": "boolean",
    "dec": "decimal",
    "numeric": "decimal",
}
_NESTED = ("array", "map", "struct")
_DDL_NAMES = {"long": "BIGINT", "integer": "INT", "short": "SMALLINT", "byte": "TINYINT"}
_COLUMN = re.compile(
    r"\s*(?:`(?P<quoted>(?:[^`]|``)+)`|(?P<plain>\w+))\s*:?\s+(?P<type>\w+\s*(?:\([\d\s,]*\))?)(?P<required>\s+not\s+null)?\s*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Nullable:
    """A type of which a column may also be null."""

    of: Any


def nullable(type_: Any) -> Nullable:
    """A column of this type that may be null: `table(k=int, v=nullable(int))`. `int | None` says the same."""
    return Nullable(type_)


@dataclass(frozen=True, slots=True)
class TableInput:
    """A table with these columns; keys that no two of its rows share, and conditions that each of them satisfies."""

    fields: tuple[Field, ...]
    keys: tuple[tuple[int, ...], ...] = ()
    """Positions of columns."""
    conditions: tuple[str, ...] = ()
    """In SQL."""

    def key(self, *columns: str) -> TableInput:
        """Only tables of which no two rows have the same values in these columns, nulls among them."""
        names = [field.name for field in self.fields]
        unknown = [column for column in columns if column not in names]
        if unknown or not columns:
            raise SourceError(
                f"{self!r}.key({', '.join(map(repr, columns))})",
                needed=f"columns of the table: {', '.join(names)}",
                came=", ".join(map(repr, unknown)) or "none",
                hint=f".key({names[0]!r})",
            )
        return replace(self, keys=(*self.keys, tuple(names.index(column) for column in columns)))

    def where(self, condition: str) -> TableInput:
        """Only tables whose rows all satisfy this condition, in SQL: `.where("v >= 0 AND v < 100")`."""
        if not isinstance(condition, str) or not condition.strip():
            raise SourceError(
                f"{self!r}.where(...)",
                needed="a condition in SQL",
                came=repr(condition),
                hint='table(v=int).where("v >= 0")',
            )
        return replace(self, conditions=(*self.conditions, condition))

    def keeps_keys(self, rows: Sequence[Row]) -> bool:
        """Whether no two rows share a key."""
        return all(len({tuple(row[place] for place in key) for row in rows}) == len(rows) for key in self.keys)

    @property
    def ddl(self) -> str:
        """The columns as Spark's `createDataFrame` takes them."""
        return ", ".join(_column_text(field) for field in self.fields)

    def __repr__(self) -> str:
        names = [field.name for field in self.fields]
        keys = "".join(f".key({', '.join(repr(names[place]) for place in key)})" for key in self.keys)
        return f'table("{self.ddl}")' + keys + "".join(f".where({condition!r})" for condition in self.conditions)


def table(sample: Any = None, /, **columns: Any) -> TableInput:
    """An input that is a table: `table(k=int, v=nullable(int))`, `table("k BIGINT NOT NULL, v STRING")`, `table(df)`.

    A column's type is one of Python (int is a bigint, float a double) or the name that Spark has for it ("int",
    "decimal(10,2)"). A column may be null only if it is `nullable(T)` or `T | None`, or if the text, the sample or its
    StructType say so.
    """
    if (sample is None) is (not columns):
        raise SourceError(
            "table(...)",
            needed="columns, or a sample of the table",
            came="both" if columns else "nothing",
            hint="table(k=int, v=nullable(int))",
        )
    if columns:
        fields = tuple(_field(name, type_) for name, type_ in columns.items())
    elif isinstance(sample, str):
        fields = _fields_of_text(sample)
    else:
        fields = _fields_of_schema(sample)
    names = [field.name.lower() for field in fields]
    if len(set(names)) < len(names):
        raise SourceError(
            "table(...)",
            needed="columns with names of their own, in Spark's eyes",
            came=", ".join(field.name for field in fields),
            hint="other names",
        )
    return TableInput(fields)


def _field(name: str, declared: Any) -> Field:
    """A column, as `table(name=declared)` says it."""
    type_, may_be_null = declared, False
    if isinstance(declared, Nullable):
        type_, may_be_null = declared.of, True
    elif _inner(declared) is not None:
        type_, may_be_null = _inner(declared), True
    if isinstance(type_, str):
        return Field(name, _named(type_, f"table({name}={type_!r})"), may_be_null)
    if type_ not in _OF_PYTHON:
        raise SourceError(
            f"table({name}={declared!r})",
            needed="int, float, str, bool, date, datetime, the name of a Spark type, or nullable(T) of these",
            came=repr(declared),
            hint=f"table({name}=int), table({name}=nullable(str)), table({name}='decimal(10,2)')",
        )
    return Field(name, _OF_PYTHON[type_], may_be_null)


def _named(name: str, where: str) -> str:
    """A type by the name that SQL has for it, as Spark's schemas write it."""
    bare = "".join(name.lower().split())
    base, _, arguments = bare.partition("(")
    base = _OF_NAME.get(base, base)
    if base == "decimal":
        numbers = [part for part in arguments.rstrip(")").split(",") if part]
        bare = f"decimal({','.join([*numbers, *('10', '0')[len(numbers) :]])})"
    else:
        bare = base + (f"({arguments}" if arguments else "")
    if not is_known(bare) or bare in ("void", "whole"):
        raise _not_known(name, where)
    return bare


def _not_known(name: str, where: str) -> SourceError:
    base = name.lower().partition("<")[0].strip()
    return SourceError(
        where,
        needed="bigint, int, smallint, tinyint, double, boolean, string, date, timestamp, or decimal(p,s)",
        came=f"{base}: {base}s are not supported" if base in _NESTED else repr(name),
        hint="leave this column out, or give the programs a table that has it as one of these types",
    )


def _fields_of_text(text: str) -> tuple[Field, ...]:
    fields = []
    for part in re.split(r",(?![^(]*\))", text):
        nested = re.search(r"(\w+)\s*<", part)
        if nested is not None:
            raise _not_known(nested[1], f"table({text!r})")
        found = _COLUMN.fullmatch(part)
        if found is None:
            raise SourceError(
                f"table({text!r})",
                needed="names and types of columns, as in CREATE TABLE",
                came=repr(part.strip()),
                hint='table("k BIGINT NOT NULL, v STRING")',
            )
        name = found["plain"] or found["quoted"].replace("``", "`")
        fields.append(Field(name, _named(found["type"], f"table({text!r})"), found["required"] is None))
    return tuple(fields)


def _fields_of_schema(sample: Any) -> tuple[Field, ...]:
    """The columns of a DataFrame or of a StructType, which this layer knows only by what they can do."""
    schema = getattr(sample, "schema", sample)
    data = schema.jsonValue() if callable(getattr(schema, "jsonValue", None)) else None
    if not isinstance(data, dict) or "fields" not in data or not data["fields"]:
        raise SourceError(
            "table(...)",
            needed="a DataFrame, a StructType, or text such as 'k BIGINT NOT NULL'",
            came=repr(sample)[:100],
            hint="table(k=int, v=nullable(int))",
        )
    fields = []
    for one in data["fields"]:
        known = one["type"] if isinstance(one["type"], str) else str(one["type"].get("type"))
        fields.append(Field(one["name"], _named(known, f"the column {one['name']} of the sample"), one["nullable"]))
    return tuple(fields)


def _column_text(field: Field) -> str:
    name = field.name if re.fullmatch(r"[A-Za-z_]\w*", field.name) else "`" + field.name.replace("`", "``") + "`"
    type_ = _DDL_NAMES.get(field.type, field.type.upper())
    return f"{name} {type_}" + ("" if field.nullable else " NOT NULL")


Input = RDDInput | TableInput


def are_tables(inputs: Iterable[Input]) -> bool:
    """Whether these are tables; SourceError if some are and some are not."""
    kinds = {isinstance(each, TableInput) for each in inputs}
    if len(kinds) > 1:
        raise SourceError(
            "prove(inputs=[...])",
            needed="RDDs alone, or tables alone",
            came="both",
            hint="inputs=[tight.table(k=int), tight.table(k=int)]",
        )
    return kinds == {True}
