"""Jobs on RDDs: the partitions of a schedule as an RDD of rows, and the elements of the job's RDD as events.

An element goes in as a pyspark `Row` with the fields of its kind, as in `df.rdd`; with several kinds in one input it
has a field `kind` too, as a DataFrame has that column. What comes out may be anything that Python can hold, so that no
Spark type stands between an element and its event:

    a Row, a named tuple, a dict     by the names of its fields
    a plain tuple or list            by position
    anything else                    if the kind has one field, its value

The only field of a kind holds a whole tuple or list if its type is tuple[T, ...] or object, and a whole dict if it is
dict[K, V] or object: what an element means depends on the kind, never on how long the element happens to be.
"""

from __future__ import annotations

import contextlib
import copy
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import RDD, SparkContext
from pyspark.errors import PythonException
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from streamtight.errors import RowError, StreamtightError, UnsupportedError
from streamtight.spark.engine import EXACT, Feed, importable, interrupted_after, settings
from streamtight.spark.failure import job_error
from streamtight.spark.rows import KIND_COLUMN
from streamtight.spark.session import is_connect
from streamtight.stream.event import RESERVED, Event, FieldType, Kind, origin, without_annotation, without_none
from streamtight.stream.schedule import Batch

BuildRDD = Callable[[list[RDD[Any]]], RDD[Any]]
"""The user's job, as a function from the RDDs of its inputs to the one of its output."""

_PARALLELISM = "spark.default.parallelism"
_LONGEST_TEXT = 200


def require_rdds(spark: SparkSession, where: str = "run(mode='rdd')") -> None:
    """Raise if this session has no RDDs."""
    if is_connect(spark):
        raise UnsupportedError(
            where,
            needed="a classic session, since Spark Connect has no RDDs",
            came="a Spark Connect session",
            hint="spark=... with a classic session, or mode='batch' with a function of DataFrames",
        )


def run_rdd(
    spark: SparkSession, build: BuildRDD, feeds: Sequence[Feed], *, shuffle_partitions: int, limit: float
) -> list[list[object]]:
    """Every element of the job's RDD, by partition and in order."""
    context = spark.sparkContext
    # PySpark ties RDD.toDF to the session object that was made last, and makes it the active one: after a foreachBatch
    # that is the private copy which the query had.
    SparkSession(context, spark._jsparkSession)
    confs = {**EXACT, "spark.sql.shuffle.partitions": str(shuffle_partitions)}  # an RDD job may use DataFrames inside
    with (
        settings(spark, confs),
        _parallelism(context, shuffle_partitions),
        _nothing_left_cached(context),
        interrupted_after(spark, limit),
    ):
        try:
            with importable(spark):
                made = build([rdd_of(context, feed) for feed in feeds])
        except (Py4JJavaError, PythonException) as error:  # out of a task: sortBy and count run some while they build
            raise job_error(error, batch=0) from error
        try:
            return made.glom().collect()
        except Exception as error:  # the border of user code: what cannot be pickled shows only now, and in many ways
            raise job_error(error, batch=0) from error


@contextlib.contextmanager
def _parallelism(context: SparkContext, partitions: int) -> Iterator[None]:
    """Let shuffles without a number of their own have so many partitions.

    For RDDs that is a setting of the context, which Spark reads anew each time but offers no way to change.
    """
    conf: Any = context._conf
    own = conf.get(_PARALLELISM)
    conf.set(_PARALLELISM, str(partitions))
    try:
        yield
    finally:
        if own is None:
            conf._jconf.remove(_PARALLELISM)
        else:
            conf.set(_PARALLELISM, own)


@contextlib.contextmanager
def _nothing_left_cached(context: SparkContext) -> Iterator[None]:
    """Let go of what the job caches: after many runs it would fill the memory."""
    before = _cached(context)
    try:
        yield
    finally:
        for number, rdd in _cached(context).items():
            if number not in before:
                rdd.unpersist(False)


def _cached(context: SparkContext) -> dict[int, Any]:
    """The RDDs in the cache, by number."""
    java: Any = context._jsc.getPersistentRDDs()
    # By place: the end of a loop over a Java collection is an exception inside Py4J, which takes longer than a job.
    numbers = java.keySet().toArray() if java.size() else ()
    return {numbers[place]: java[numbers[place]] for place in range(len(numbers))}


# -- rows in ---------------------------------------------------------------------------------------------------------


def rdd_of(context: SparkContext, feed: Feed) -> RDD[Any]:
    """An RDD with exactly these partitions: as many lists as slices, so each slice has one, unpacked in its task."""
    [batch] = feed.batches
    row = _to_row(feed.struct)
    partitions = [[row(values) for values in partition] for partition in batch]
    # A builtin, since a function of this module would make workers import it, and they may not have it.
    return context.parallelize(partitions, len(partitions)).flatMap(iter)


def _to_row(struct: StructType) -> Callable[[Any], Row]:
    make, inner = Row(*struct.names), [_to_element(column.dataType) for column in struct.fields]
    return lambda values: make(*(convert(value) for convert, value in zip(inner, values, strict=True)))


def _to_element(data_type: DataType) -> Callable[[Any], Any]:
    """Turns a value of a row into what `df.rdd` has for it: a Row for a struct, wherever it stands."""
    convert: Callable[[Any], Any]
    if isinstance(data_type, StructType):
        convert = _to_row(data_type)
    elif isinstance(data_type, ArrayType):
        item = _to_element(data_type.elementType)

        def convert(values: Any) -> Any:
            return [item(value) for value in values]

    elif isinstance(data_type, MapType):
        key, entry = _to_element(data_type.keyType), _to_element(data_type.valueType)

        def convert(values: Any) -> Any:
            return {key(k): entry(v) for k, v in values.items()}

    else:
        return lambda value: value
    return lambda value: None if value is None else convert(value)


# -- events out ------------------------------------------------------------------------------------------------------


def events_of(partitions: Sequence[Sequence[object]], kinds: Sequence[Kind] | None, name: str) -> Batch:
    """The elements as events of these kinds; without kinds, as events of a kind of this name.

    That kind has the fields of the element if it is a Row or a named tuple, else one field, `value`.
    """
    read = _read_as_they_come(name) if kinds is None else _read_as(kinds)
    return tuple(
        tuple(_event(read, element, place, offset) for offset, element in enumerate(partition))
        for place, partition in enumerate(partitions)
    )


Read = Callable[[Any], Event]


def _event(read: Read, element: object, place: int, offset: int) -> Event:
    try:
        return read(element)
    except StreamtightError as error:
        raise RowError(
            f"partition {place} of the job's output, element {offset}: {_shown(element)}",
            needed=error.needed,
            came=error.came,
            hint=error.hint,
        ) from error


def _read_as(kinds: Sequence[Kind]) -> Read:
    if len(kinds) == 1:
        return _Shape(kinds[0]).read
    shapes = {kind.name: _Shape(kind) for kind in kinds}
    if len(shapes) < len(kinds):
        names = ", ".join(kind.name for kind in kinds)
        raise RowError("gives", needed="kinds of different names", came=names, hint="rename a kind")

    def read(element: Any) -> Event:
        if isinstance(element, Event) and element.kind in kinds:
            return element
        named = _named(element)
        own = None if named is None else named.get(KIND_COLUMN)
        shape = shapes.get(own) if isinstance(own, str) else None
        if named is None or shape is None:
            raise RowError(
                "gives",
                needed=f"a Row, a named tuple or a dict whose {KIND_COLUMN!r} is one of {', '.join(shapes)}",
                came=_shown(element),
                hint=f"Row({KIND_COLUMN}={kinds[0].name!r}, ...)",
            )
        # As in a DataFrame of several kinds, the fields of the others may be there, without a value.
        fields = shape.kind.fields
        return shape.by_name(
            {name: v for name, v in named.items() if name != KIND_COLUMN and (name in fields or v is not None)}
        )

    return read


def _read_as_they_come(name: str) -> Read:
    shapes: dict[tuple[str, ...], _Shape] = {}

    def read(element: Any) -> Event:
        if isinstance(element, Event):
            return element
        names = _names(element) or ("value",)
        if names not in shapes:
            if len(set(names)) < len(names) or not RESERVED.isdisjoint(names):
                raise RowError(
                    name,
                    needed=f"names that differ from each other and from {', '.join(sorted(RESERVED))}",
                    came=", ".join(names),
                    hint="other names, a plain tuple, or gives=[...] if the output has several kinds",
                )
            shapes[names] = _Shape(Kind(name, **dict.fromkeys(names, object)))
        return shapes[names].read(element)

    return read


class _Shape:
    """How an element is an event of one kind."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self._convert = {name: _to_field(declared) for name, declared in kind.fields.items()}
        self._whole: tuple[type, ...] = ()
        """What the only field holds as it is, though it could be read by name or by position."""
        if len(kind.names) == 1:
            [declared] = kind.fields.values()
            plain = _plain(declared)
            if origin(plain) is tuple or plain is object:
                self._whole += (tuple, list)
            if origin(plain) is dict or plain is object:
                self._whole += (Mapping,)

    def read(self, element: Any) -> Event:
        if isinstance(element, Event):
            if element.kind is self.kind:
                return element
            raise self._refuse(repr(element.kind))
        if _names(element) is not None or (isinstance(element, Mapping) and not isinstance(element, self._whole)):
            named = _named(element)
            if named is None:
                raise self._refuse("names that are not all text, or come twice")
            return self.by_name(named)
        if isinstance(element, (tuple, list)) and not isinstance(element, self._whole):
            if len(element) != len(self.kind.names):
                raise self._refuse(f"{len(element)} values")
            return self._made(element)
        if len(self.kind.names) != 1:
            raise self._refuse(f"one value, of type {type(element).__name__}")
        return self._made([element])

    def by_name(self, named: Mapping[str, Any]) -> Event:
        """The event with these fields."""
        if named.keys() != self.kind.fields.keys():
            raise self._refuse(", ".join(named) or "no field")
        return self._made([named[name] for name in self.kind.names])

    def _made(self, values: Sequence[Any]) -> Event:
        converters = self._convert.values()
        return self.kind(*(convert(value) for convert, value in zip(converters, values, strict=True)))

    def _refuse(self, came: str) -> RowError:
        names = self.kind.names
        hint = f"Row({', '.join(f'{name}=...' for name in names)}), or a tuple of {len(names)} in this order"
        return RowError(self.kind.name, needed=f"the fields {', '.join(names)}", came=came, hint=hint)


def _names(element: object) -> tuple[str, ...] | None:
    """The names of the fields of a Row or a named tuple."""
    if isinstance(element, Row):
        names = getattr(element, "__fields__", None)  # Row(1, 2) has none
    else:
        names = getattr(element, "_fields", None) if isinstance(element, tuple) else None
    return None if names is None else tuple(names)


def _named(element: object) -> Mapping[str, Any] | None:
    """The fields of an element by name, None if it has no names or they do not tell the fields apart."""
    if isinstance(element, Mapping):
        return element if all(isinstance(name, str) for name in element) else None
    names = _names(element)
    if names is None or len(set(names)) < len(names):
        return None
    return dict(zip(names, typing.cast(tuple[Any, ...], element), strict=True))


def _plain(declared: FieldType) -> FieldType:
    """The type without None and without annotation."""
    return without_annotation(without_none(without_annotation(declared))[0])


def _to_field(declared: FieldType) -> Callable[[Any], Any]:
    """Turns a value of an element into what a field of this type takes; what does not fit is left for the kind."""
    plain = _plain(declared)
    if plain is object:
        return _comparable
    if isinstance(plain, Kind):
        shape = _Shape(plain)
        return lambda value: None if value is None else shape.read(value)
    arguments = typing.get_args(plain)
    if origin(plain) is tuple:
        item = _to_field(arguments[0])
        return lambda values: tuple(map(item, values)) if isinstance(values, (tuple, list)) else values
    if origin(plain) is dict:
        key, entry = _to_field(arguments[0]), _to_field(arguments[1])
        return lambda items: {key(k): entry(v) for k, v in items.items()} if isinstance(items, Mapping) else items
    return lambda value: value


_SIMPLE = frozenset({int, float, str, bool, bytes, type(None), date, datetime, timedelta, Decimal})


def _comparable(value: Any) -> Any:
    """The value, refused if it is equal to nothing but itself: each run makes a new one, so runs would never agree."""
    if value.__class__ in _SIMPLE:
        return value
    if isinstance(value, (tuple, list, set, frozenset)):
        for item in value:
            _comparable(item)
    elif isinstance(value, Mapping):
        for item in (*value.keys(), *value.values()):
            _comparable(item)
    # Classes, functions and members of an enum are their own copies: there is but one of each.
    elif _equality(value) is object.__eq__ and copy.copy(value) is not value:
        raise RowError(
            type(value).__name__,
            needed="values that can be compared",
            came=f"an object of {type(value).__name__}, which is equal to nothing but itself",
            hint=f"a tuple, or @dataclass(frozen=True) on {type(value).__name__}",
        )
    return value


def _equality(value: object) -> object:
    return type(value).__eq__


def _shown(element: object) -> str:
    try:
        text = repr(element)
    except ValueError:  # Python refuses to write out integers of thousands of digits
        return f"a {type(element).__name__} with a number too long to show"
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}..."
