"""Kinds as Spark types and events as Spark rows: the one border where rows become events and events rows.

A table holds events of one kind, a column a field; or of several kinds, with a column `kind` that says which, and null
in the columns of the others.

Spark's numbers have widths, and PySpark turns a value that does not fit into null without a word. Here it is an error.
"""

from __future__ import annotations

import contextlib
import math
import struct
import time
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any

from pyspark.errors import PySparkException
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from streamtight.errors import RowError, StreamtightError
from streamtight.stream.event import (
    RESERVED,
    Event,
    FieldType,
    Kind,
    origin,
    type_name,
    without_annotation,
    without_none,
)
from streamtight.stream.schema import Schema

KIND_COLUMN = "kind"

Kinds = Kind | Schema | Iterable[Kind]
"""How a user says what a table holds: a kind, a schema, or several kinds."""

# The names are Spark's own, as in the JSON of a schema. The first of each row is what the plain Python type means.
_SPARK_NAMES: dict[type, tuple[str, ...]] = {
    int: ("long", "integer", "short", "byte"),
    float: ("double", "float"),
    str: ("string",),
    bool: ("boolean",),
    bytes: ("binary",),
    date: ("date",),
    datetime: ("timestamp", "timestamp_ntz"),
    timedelta: tuple(
        f"interval {unit}"
        for unit in (
            "day to second",
            "day",
            "day to hour",
            "day to minute",
            "hour",
            "hour to minute",
            "hour to second",
            "minute",
            "minute to second",
            "second",
        )
    ),
    Decimal: ("decimal(38,18)", "decimal"),
}
_PYTHON_TYPES = {name: python for python, names in _SPARK_NAMES.items() for name in names}
_BITS = {"long": 64, "integer": 32, "short": 16, "byte": 8}
_SQL_NAMES = {"bigint": "long", "int": "integer", "smallint": "short", "tinyint": "byte", "real": "float"}
_SECONDS = {"day": 86_400, "hour": 3_600, "minute": 60}


def kinds_code(given: Kinds | Mapping[str, Kinds | None]) -> str:
    """The kinds of a stream, or of several by name, as they can be pasted."""
    if isinstance(given, Mapping):
        named = (f"{name!r}: {'None' if kinds is None else kinds_code(kinds)}" for name, kinds in given.items())
        return f"{{{', '.join(named)}}}"
    names = [kind.name for kind in kinds_of(given, "kinds")]
    return names[0] if len(names) == 1 else f"[{', '.join(names)}]"


def kinds_of(given: Kinds, where: str) -> tuple[Kind, ...]:
    """The kinds that a user named, in a fixed order."""
    if isinstance(given, Kind):
        return (given,)
    members = given.kinds if isinstance(given, Schema) else given if isinstance(given, Iterable) else ()
    kinds = tuple(members)
    if not kinds or not all(isinstance(kind, Kind) for kind in kinds):
        raise RowError(where, needed="a Kind, a schema, or several Kinds", came=repr(given), hint=f"{where}=GPS")
    return tuple(sorted(kinds, key=lambda kind: kind.name))


# -- types -----------------------------------------------------------------------------------------------------------


def struct_of(kind: Kind) -> StructType:
    """The Spark type of rows of this kind.

    >>> struct_of(Kind("GPS", taxi_id=int, x=float | None)).simpleString()
    'struct<taxi_id:bigint,x:double>'
    """
    return StructType([_column(name, declared, f"{kind.name}.{name}") for name, declared in kind.fields.items()])


def kind_of(name: str, columns: StructType) -> Kind:
    """The kind of this name whose rows are of this Spark type.

    >>> kind_of("GPS", StructType.fromJson({"fields": [
    ...     {"name": "taxi_id", "type": "integer", "nullable": False, "metadata": {}}]}))
    GPS(taxi_id: Annotated[int, 'integer'])
    """
    fields: dict[str, FieldType] = {}
    for field in columns.fields:
        if field.name in fields or field.name in RESERVED:
            raise RowError(
                f"column {field.name!r} of {name}",
                needed=f"names that differ from each other and from {', '.join(sorted(RESERVED))}",
                came=", ".join(columns.names),
                hint=f"df.withColumnRenamed({field.name!r}, {field.name + '_'!r}), or gives=[...] if the output has "
                "several kinds",
            )
        declared = _field_type(field.dataType, f"{name}.{field.name}")
        fields[field.name] = declared | None if field.nullable else declared
    return Kind(name, **fields)


def _column(name: str, declared: FieldType, where: str) -> StructField:
    plain, optional = without_none(declared)
    if origin(plain) is Annotated:  # None may stand inside or outside of the annotation
        inner, inside = without_none(typing.get_args(plain)[0])
        plain, optional = Annotated[inner, typing.get_args(plain)[1]], optional or inside
    return StructField(name, _data_type(plain, where), nullable=optional)


def _data_type(declared: FieldType, where: str) -> DataType:
    spark_name = None
    if origin(declared) is Annotated:
        declared, spark_name = typing.get_args(declared)[:2]
    if isinstance(declared, Kind):
        return struct_of(declared)
    arguments = typing.get_args(declared)
    if origin(declared) is tuple:
        item = _column("item", arguments[0], where)
        return ArrayType(item.dataType, containsNull=item.nullable)
    if origin(declared) is dict:
        key, value = _column("key", arguments[0], where), _column("value", arguments[1], where)
        _require_simple_key(key.dataType, where)
        return MapType(key.dataType, value.dataType, valueContainsNull=value.nullable)
    if declared not in _SPARK_NAMES:
        raise RowError(
            where,
            needed="a type that Spark has",
            came=type_name(declared),
            hint="one of " + ", ".join(t.__name__ for t in _SPARK_NAMES) + ", a Kind, tuple[T, ...] or dict[K, V]",
        )
    return _named_type(declared, spark_name or _SPARK_NAMES[declared][0], where)


def _named_type(python: type, spark_name: str, where: str) -> DataType:
    name = _SQL_NAMES.get(spark_name, spark_name)
    column: dict[str, Any] = {"name": "value", "type": name, "nullable": True, "metadata": {}}
    try:
        if _PYTHON_TYPES.get(_base(name)) is python:
            return StructType.fromJson({"fields": [column]}).fields[0].dataType
    except PySparkException:
        pass  # a name that Spark does not know, refused like one of another type
    raise RowError(
        where,
        needed=f"the name of a Spark type for {python.__name__}",
        came=repr(spark_name),
        hint="one of " + ", ".join(_SPARK_NAMES[python]),
    )


def _base(name: str) -> str:
    """The name of a type without what qualifies it: decimal for decimal(10,2), string for a collated one."""
    return name.split("(")[0].split(" collate")[0]


def _require_simple_key(data_type: DataType, where: str) -> None:
    if isinstance(data_type, (ArrayType, MapType)):
        raise RowError(
            where,
            needed="a map whose keys can be hashed, since PySpark makes a dict of it",
            came=f"{data_type.simpleString()} as the type of its keys",
            hint="an array of structs with a key and a value",
        )


def _field_type(data_type: DataType, where: str) -> FieldType:
    if isinstance(data_type, StructType):
        return kind_of(where, data_type)
    if isinstance(data_type, ArrayType):
        item = _field_type(data_type.elementType, where)
        return tuple[item | None if data_type.containsNull else item, ...]  # type: ignore[misc]
    if isinstance(data_type, MapType):
        _require_simple_key(data_type.keyType, where)
        value = _field_type(data_type.valueType, where)
        return dict[_field_type(data_type.keyType, where), value | None if data_type.valueContainsNull else value]  # type: ignore[misc]
    name = str(data_type.jsonValue())
    python = _PYTHON_TYPES.get(_base(name))
    if python is None:
        raise RowError(
            where,
            needed="a column type that can become a Python value",
            came=data_type.simpleString(),
            hint=f"cast it first: df.withColumn({where.rsplit('.', 1)[-1]!r}, ...cast('string'))",
        )
    return python if name == _SPARK_NAMES[python][0] or python is str else Annotated[python, name]


# -- rows ------------------------------------------------------------------------------------------------------------

Convert = Callable[[Any], Any]


class Table:
    """How events of these kinds are rows of one DataFrame: its type, and the way there and back."""

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self.kinds = tuple(kinds)
        self.by_name = {kind.name: kind for kind in self.kinds}
        if len(self.by_name) < len(self.kinds):
            names = ", ".join(kind.name for kind in self.kinds)
            raise RowError("a table of several kinds", needed="different names", came=names, hint="rename a kind")
        self.struct = struct_of(self.kinds[0]) if len(self.kinds) == 1 else self._union()
        self._to = {kind: [_to_spark(column) for column in struct_of(kind).fields] for kind in self.kinds}
        self._from = {kind: [_from_spark(declared) for declared in kind.fields.values()] for kind in self.kinds}
        self._places = {kind: [self.struct.names.index(name) for name in kind.names] for kind in self.kinds}

    def _union(self) -> StructType:
        columns = {KIND_COLUMN: StructField(KIND_COLUMN, _data_type(str, KIND_COLUMN), nullable=False)}
        for kind in self.kinds:
            for column in struct_of(kind).fields:
                known = columns.setdefault(column.name, StructField(column.name, column.dataType, nullable=True))
                if known.dataType != column.dataType:
                    raise RowError(
                        f"{kind.name}.{column.name}",
                        needed=f"the same type as in the other kinds, {known.dataType.simpleString()}",
                        came=column.dataType.simpleString(),
                        hint="rename the field in one of them: a column has one type",
                    )
        return StructType(list(columns.values()))

    def to_row(self, event: Event) -> tuple[Any, ...]:
        """The event as a row of this table, its values as PySpark takes them."""
        converters = self._to.get(event.kind)
        if converters is None:
            raise RowError(
                "a row of " + ", ".join(self.by_name),
                needed="an event of one of these kinds",
                came=repr(event),
                hint=f"add {event.kind.name} to takes=",
            )
        try:
            values = [convert(value) for convert, value in zip(converters, event[1:], strict=True)]
        except _NoFitError as problem:
            raise RowError(repr(event), needed=problem.needed, came=repr(problem.value), hint=problem.hint) from None
        if len(self.kinds) == 1:
            return tuple(values)
        row: list[Any] = [None] * len(self.struct.names)
        row[0] = event.kind.name
        for place, value in zip(self._places[event.kind], values, strict=True):
            row[place] = value
        return tuple(row)

    def from_row(self, row: Sequence[Any]) -> Event:
        """The event of which this is a row; its columns must be those of this table, in their order."""
        kind = self.kinds[0] if len(self.kinds) == 1 else self._kind_of_row(row)
        converters = zip(self._from[kind], self._places[kind], strict=True)
        try:
            return kind(*(convert(row[place]) for convert, place in converters))
        except StreamtightError as error:
            raise RowError(
                f"the row {tuple(row)!r}", needed=f"{kind!r}: {error.needed}", came=error.came, hint=error.hint
            ) from error

    def _kind_of_row(self, row: Sequence[Any]) -> Kind:
        kind = self.by_name.get(row[0])
        if kind is None:
            raise RowError(
                f"the row {tuple(row)!r}",
                needed=f"in column {KIND_COLUMN!r} one of {', '.join(self.by_name)}",
                came=repr(row[0]),
                hint="add that kind to gives=",
            )
        surplus = [
            name
            for place, name in enumerate(self.struct.names[1:], start=1)
            if row[place] is not None and name not in kind.fields
        ]
        if surplus:
            raise RowError(
                f"the row {tuple(row)!r}",
                needed=f"null in the columns that {kind.name} does not have",
                came=", ".join(f"{name}={row[self.struct.names.index(name)]!r}" for name in surplus),
                hint=f"add {', '.join(surplus)} to {kind.name}, or set it to null",
            )
        return kind

    def order_of(self, columns: StructType) -> list[str]:
        """The columns of a DataFrame in this table's order; raises if they are not those of this table."""
        wanted, came = set(self.struct.names), set(columns.names)
        if wanted != came or len(columns.names) != len(came):
            raise RowError(
                "the job's output",
                needed="the columns " + ", ".join(self.struct.names),
                came=", ".join(columns.names),
                hint="select exactly these columns",
            )
        for mine in self.struct.fields:
            theirs = columns[mine.name]
            if _python_shape(mine.dataType) != _python_shape(theirs.dataType):
                raise RowError(
                    f"the job's output, column {mine.name!r}",
                    needed=mine.dataType.simpleString(),
                    came=theirs.dataType.simpleString(),
                    hint="cast the column, or change the kind's field",
                )
        return self.struct.names


def _python_shape(data_type: DataType) -> object:
    """What a type is once it is in Python: widths and nullability do not matter there."""
    if isinstance(data_type, StructType):
        return tuple((field.name, _python_shape(field.dataType)) for field in data_type.fields)
    if isinstance(data_type, ArrayType):
        return ("array", _python_shape(data_type.elementType))
    if isinstance(data_type, MapType):
        return ("map", _python_shape(data_type.keyType), _python_shape(data_type.valueType))
    name = str(data_type.jsonValue())
    return _PYTHON_TYPES.get(_base(name), name)


class _NoFitError(Exception):
    """A value that Spark would turn into null or into another value."""

    def __init__(self, value: object, needed: str, hint: str) -> None:
        super().__init__(needed)
        self.value = value
        self.needed = needed
        self.hint = hint


def _to_spark(column: StructField) -> Convert:
    convert = _to_value(column.dataType)
    return lambda value: None if value is None else convert(value)


def _to_value(data_type: DataType) -> Convert:
    if isinstance(data_type, StructType):
        inner = [_to_spark(column) for column in data_type.fields]
        return lambda event: tuple(convert(value) for convert, value in zip(inner, event[1:], strict=True))
    if isinstance(data_type, ArrayType):
        item = _to_value(data_type.elementType)
        return lambda values: [None if value is None else item(value) for value in values]
    if isinstance(data_type, MapType):
        key, value = _to_value(data_type.keyType), _to_value(data_type.valueType)
        return lambda items: {key(k): None if v is None else value(v) for k, v in items.items()}
    name = str(data_type.jsonValue())
    if name in _BITS:
        return _fitting_int(_BITS[name], data_type.simpleString())
    if name.startswith("decimal"):
        precision, scale = name[len("decimal(") : -1].split(",")
        return _fitting_decimal(int(precision), int(scale))
    if name.startswith("timestamp"):
        return _existing_time(data_type)
    if name.startswith("interval"):
        return _fitting_interval(name)
    if name == "float":
        return _fitting_float
    if name == "date":
        return _in_calendar
    return _encodable if name == "string" else lambda value: value


def _fitting_int(bits: int, name: str) -> Convert:
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1

    def convert(value: int) -> int:
        if low <= value <= high:
            return value
        raise _NoFitError(value, f"a number that fits {name} ({bits} bits)", "a smaller number, or a Decimal field")

    return convert


def _fitting_decimal(precision: int, scale: int) -> Convert:
    def convert(value: Decimal) -> Decimal:
        _, digits, exponent = value.as_tuple()
        written = "".join(map(str, digits)).lstrip("0")
        significant = written.rstrip("0")
        places = -(int(exponent) + len(written) - len(significant))  # digits behind the point, negative for 1E+3
        if (places <= scale and len(significant) - places <= precision - scale) or not significant:
            return value
        hint = f'Annotated[Decimal, "decimal({precision},...)"] with room for it'
        raise _NoFitError(value, f"a number that fits decimal({precision},{scale})", hint)

    return convert


def _existing_time(data_type: DataType) -> Convert:
    is_local = data_type.jsonValue() == "timestamp"

    def convert(value: datetime) -> datetime:
        if value.tzinfo is not None:
            hint = "value.astimezone().replace(tzinfo=None): PySpark gives local times without a zone back"
            raise _NoFitError(value, "a datetime without a time zone", hint)
        try:
            fits = data_type.fromInternal(data_type.toInternal(value)) == value
        except (ValueError, OverflowError, OSError):
            fits = False
        _require_in_calendar(value.date(), value)
        if fits and not (is_local and _is_ambiguous(value)):
            return value
        hint = "another hour: clocks skip or repeat it where they are changed; or set TZ=UTC"
        raise _NoFitError(value, "a time that exists once in the local time zone", hint)

    return convert


def _is_ambiguous(value: datetime) -> bool:
    """Does the local clock show this time twice, or never? Two such rows would be one event."""
    try:
        return value.replace(fold=0).timestamp() != value.replace(fold=1).timestamp()
    except (ValueError, OverflowError):
        return False  # at the ends of the calendar, where no clock is changed


def _in_calendar(value: date) -> date:
    _require_in_calendar(value, value)
    return value


def _require_in_calendar(day: date, value: date) -> None:
    if date(1582, 10, 4) < day < date(1582, 10, 15):
        hint = "a day before the 5th or after the 14th: the JVM's old calendar skips these"
        raise _NoFitError(value, "a day that the JVM knows", hint)


def _fitting_interval(name: str) -> Convert:
    unit = timedelta(seconds=_SECONDS.get(name.rsplit(" ", 1)[-1], 0)) or timedelta.resolution

    def convert(value: timedelta) -> timedelta:
        if value % unit or abs(value // timedelta.resolution) >= 1 << 63:
            raise _NoFitError(value, f"a time that fits {name}", "a shorter or rounder one")
        return value

    return convert


def _fitting_float(value: float) -> float:
    try:
        [rounded] = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:
        rounded = math.inf
    if rounded == value or value != value:
        return value
    raise _NoFitError(value, "a number that a float of 32 bits can hold", f"{rounded!r}, or a float of 64 bits")


def _encodable(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        hint = "a text without lone surrogates"
        raise _NoFitError(value, "a text that can be written as UTF-8", hint) from None
    return value


def _from_spark(declared: FieldType) -> Convert:
    """Turns what PySpark gives for a field into what its kind takes."""
    plain, _ = without_none(declared)
    plain = without_annotation(plain)
    arguments = typing.get_args(plain)
    if isinstance(plain, Kind):
        inner = [_from_spark(inner_type) for inner_type in plain.fields.values()]
        return lambda row: (
            None if row is None else plain(*(convert(value) for convert, value in zip(inner, row, strict=True)))
        )
    if origin(plain) is tuple:
        item = _from_spark(arguments[0])
        return lambda values: None if values is None else tuple(item(value) for value in values)
    if origin(plain) is dict:
        key, value = _from_spark(arguments[0]), _from_spark(arguments[1])
        return lambda items: None if items is None else {key(k): value(v) for k, v in items.items()}
    return _unambiguous if _is_local_time(declared) else lambda value: value


def _is_local_time(declared: FieldType) -> bool:
    """Is it a datetime that Spark keeps as an instant, and PySpark shows by the local clock?"""
    return without_none(declared)[0] is datetime


def _unambiguous(value: datetime | None) -> datetime | None:
    if value is not None and _is_ambiguous(value):
        raise RowError(
            f"the time {value}",
            needed="a time that the local clock shows once",
            came="one that it shows twice, so that two different rows would look alike",
            hint="TZ=UTC in the environment before Python starts",
        )
    return value


# -- values that Arrow gives ------------------------------------------------------------------------------------------


def arrow_values(column: Any, data_type: DataType) -> list[Any]:
    """The values of a column of Arrow, as PySpark gives them in rows."""
    if _is_number_of_time(data_type) and str(column.type).startswith("timestamp[us"):
        # Of a number Python makes a time much faster than Arrow makes one with a zone, which has to be shifted then.
        with contextlib.suppress(OverflowError):  # beyond Python's calendar: told below, as ever
            numbers = column.cast("int64").to_pylist()
            return [None if number is None else _EPOCH + timedelta(microseconds=number) for number in numbers]
    read, values = _reader(data_type), column.to_pylist()
    return values if read is None else [read(value) for value in values]


def is_as_given(data_type: DataType) -> bool:
    """Are values that `arrow_values` gives for this type what a row has, with no need to look at their hour?"""
    return _is_number_of_time(data_type) or _reader(data_type) is None


_EPOCH = datetime(1970, 1, 1)


def _is_number_of_time(data_type: DataType) -> bool:
    """Is a time its distance to the epoch, with no clock that is changed twice a year?"""
    is_utc = time.tzname == ("UTC", "UTC") and not time.timezone and not time.daylight
    return isinstance(data_type, TimestampNTZType) or (is_utc and isinstance(data_type, TimestampType))


def _reader(data_type: DataType) -> Callable[[Any], Any] | None:
    """Turns what Arrow gives for a value into what PySpark gives in a row; None if that is the same."""
    if isinstance(data_type, StructType):
        fields = [_reader(column.dataType) or _as_it_is for column in data_type.fields]
        return lambda value: (
            None if value is None else tuple(read(inner) for read, inner in zip(fields, value.values(), strict=True))
        )
    if isinstance(data_type, ArrayType):
        item = _reader(data_type.elementType)
        return None if item is None else lambda values: None if values is None else [item(value) for value in values]
    if isinstance(data_type, MapType):
        key, value = (_reader(inner) or _as_it_is for inner in (data_type.keyType, data_type.valueType))
        return lambda pairs: None if pairs is None else {key(one): value(other) for one, other in pairs}
    return _local_time if isinstance(data_type, TimestampType) else None


def _as_it_is(value: Any) -> Any:
    return value


def _local_time(value: datetime | None) -> datetime | None:
    return None if value is None else value.astimezone().replace(tzinfo=None)
