"""DataFrame and SQL programs as relations, read off the plan that Spark's analyser makes of them.

The user's function is called on empty DataFrames of the declared schemas. Spark resolves names, types, casts and
nullability; what is left is a tree of a few dozen kinds of nodes. Those that are known exactly become relations and
expressions, everything else is refused by name, with the user's line if Spark knows it.

Three things are not what a reader may expect. MIN and MAX of what may be null are an `Extreme` of tuples, which begin
with whether there is a value; so are those of doubles, for NaN. A total of integers has the type `WHOLE` and is then
cast to a long: it raises, or wraps, if the sum does not fit, while Spark may raise already for a part of the rows. A
row is calculated before a filter above it is asked, as the plan says; Spark's optimiser may ask first, and not raise.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, NoReturn

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.conf import RuntimeConfig
from pyspark.sql.group import GroupedData
from pyspark.sql.types import StructType

from streamtight.errors import EncodingError, UnsupportedError
from streamtight.method.prove.driver import DriverCode
from streamtight.method.prove.frame_programs import FrameOrder, LiftedFrame
from streamtight.program.expression import Field, SqlFunction
from streamtight.program.relation import Each, Input
from streamtight.spark.lift_plan import Known, PlanReader, order_of
from streamtight.spark.plan import plan_of, rdd_of
from streamtight.spark.session import is_connect


class BuiltFrame:
    """A DataFrame that a program made of empty inputs: its columns, and what it means."""

    def __init__(self, frame: DataFrame, reader: PlanReader, spark: SparkSession) -> None:
        self.columns = tuple((one.name, one.dataType.simpleString()) for one in frame.schema.fields)
        """The name and the type of each."""
        self._frame = frame
        self._reader = reader
        self._spark = spark

    def lift(self) -> LiftedFrame:
        """The relation that the program makes of its tables; UnsupportedError if it cannot be read exactly."""
        table = self._reader.table(plan_of(self._frame, self._spark))
        schema = self._frame.schema
        columns = tuple(
            Field(name, table_field.type, column.nullable)
            for name, table_field, column in zip(schema.names, table.fields, schema.fields, strict=False)
        )
        planned = [one.dataType.jsonValue() for one in schema.fields]
        if [column.type for column in columns] != planned:
            raise EncodingError(
                "reading a plan",
                needed=f"columns of the types {planned}, as Spark says",
                came=str([column.type for column in columns]),
                hint="report this with the program",
            )
        order = None
        if table.order is not None:
            known = order_of(table.order)
            order = FrameOrder(table.with_order(), known is not None and known.downwards)
        return LiftedFrame(table.visible().relation, columns, order)


def lift_frame(program: Callable[..., DataFrame], tables: Mapping[str, StructType], spark: SparkSession) -> LiftedFrame:
    """The relation that a program makes of its tables; UnsupportedError if it cannot be read exactly."""
    return build_frame(program, tables, spark).lift()


def build_frame(
    program: Callable[..., DataFrame],
    tables: Mapping[str, StructType],
    spark: SparkSession,
    known: Mapping[str, Known] | None = None,
) -> BuiltFrame:
    """What a program makes of empty tables.

    The program is called with a DataFrame for each table, in this order; SQL in it finds them by their names. `known`
    says what else is known of the rows of a table.
    """
    if is_connect(spark):
        raise UnsupportedError(
            "reading a program", needed="a classic session", came="a Spark Connect session", hint="tight.session()"
        )
    empty = {name: _empty(name, schema, spark) for name, schema in tables.items()}
    frames = {name: one.frame for name, one in empty.items()}
    made: list[DataFrame] = []
    watched = DriverCode(program, sees_values=False).watched()
    with named_views(spark, frames), no_actions(), _noting_frames(spark, made), watched:
        result = program(*frames.values())
    if not isinstance(result, DataFrame):
        raise UnsupportedError(
            "the program",
            needed="a DataFrame as its result",
            came=type(result).__name__,
            hint="return the DataFrame that holds the answer",
        )
    facts = known or {}
    reader = PlanReader(
        {one.rdd: facts.get(name, Known(name)) for name, one in empty.items()},
        {rdd_of(frame, spark): frame for frame in made},
    )
    return BuiltFrame(result, reader, spark)


def condition_of(condition: str, name: str, schema: StructType, spark: SparkSession) -> SqlFunction:
    """A condition in SQL, as a function of the rows of a table."""
    relation = lift_frame(lambda frame: frame.where(condition), {name: schema}, spark).relation
    if not isinstance(relation, Each) or not isinstance(relation.of, Input):
        raise UnsupportedError(
            f"where({condition!r})",
            needed="a condition on the columns of one row",
            came="one with a subquery",
            hint="v >= 0 AND v < 100",
        )
    function: SqlFunction = relation.function  # type: ignore[assignment]
    return function


# -- building the program --------------------------------------------------------------------------------------------


class _Empty(NamedTuple):
    """An input without rows, and the number of its RDD, by which it is known again in plans."""

    frame: DataFrame
    rdd: int


_EMPTY: dict[tuple[str, str], _Empty] = {}
_MOST_EMPTY = 100


def _empty(name: str, schema: StructType, spark: SparkSession) -> _Empty:
    """The empty input of this name and schema; making one takes longer than reading most programs."""
    known = _EMPTY.get((name, schema.json()))
    if known is None or known.frame.sparkSession is not spark:
        if len(_EMPTY) >= _MOST_EMPTY:
            _EMPTY.clear()
        frame = spark.createDataFrame([], schema)
        rdd = rdd_of(frame, spark)
        if rdd is None:  # it would be taken for rows that the program brings along: none
            raise UnsupportedError(
                f"the input {name}",
                needed="a Spark that makes empty DataFrames of RDDs (4.0 to 4.3)",
                came=f"Spark {spark.version}",
                hint="a released Spark 4, or a newer streamtight",
            )
        known = _EMPTY[name, schema.json()] = _Empty(frame, rdd)
    return known


# What would look at the rows of an empty input, and go on with what it saw.
_ACTIONS = (
    "approxQuantile", "checkpoint", "collect", "corr", "count", "cov", "crosstab", "describe", "first", "foreach",
    "foreachPartition", "freqItems", "head", "inputFiles", "isEmpty", "localCheckpoint", "show", "summary", "tail",
    "take", "toArrow", "toJSON", "toLocalIterator", "toPandas", "transpose", "writeTo",
)  # fmt: skip
_ACTION_PROPERTIES = ("rdd", "write", "writeStream")
_OTHERWISE = {
    "rdd": "one that leaves DataFrames for RDDs",
    **dict.fromkeys(("write", "writeStream", "writeTo"), "one that writes"),
    "sparkSession.conf.set": "one that changes the settings of the session",
}


@contextlib.contextmanager
def _replaced(owner: type, name: str, value: Any) -> Iterator[None]:
    """A class with another attribute; not for several threads."""
    before = vars(owner).get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if before is None:
            delattr(owner, name)  # it was inherited
        else:
            setattr(owner, name, before)


@contextlib.contextmanager
def no_actions() -> Iterator[None]:
    """Refuses programs that run something while they are built."""

    def refusing(name: str) -> Callable[..., NoReturn]:
        def refuse(*_: Any, **__: Any) -> NoReturn:
            raise UnsupportedError(
                f"DataFrame.{name}",
                needed="a program that only describes a DataFrame",
                came=_OTHERWISE.get(name, "one that runs an action while it is built"),
                hint="express it with DataFrame operations: a join or a crossJoin with an aggregate, for example",
            )

        return refuse

    pivot = GroupedData.pivot

    def only_listed(self: GroupedData, pivot_col: str, values: Any = None) -> GroupedData:
        if values is None:  # Spark would look for them in the empty input
            refusing("groupBy(...).pivot")()
        return pivot(self, pivot_col, values)

    with contextlib.ExitStack() as stack:
        for name in _ACTIONS:
            if hasattr(ClassicDataFrame, name):
                stack.enter_context(_replaced(ClassicDataFrame, name, refusing(name)))
        for name in _ACTION_PROPERTIES:
            stack.enter_context(_replaced(ClassicDataFrame, name, property(refusing(name))))
        stack.enter_context(_replaced(GroupedData, "pivot", only_listed))
        stack.enter_context(_replaced(RuntimeConfig, "set", refusing("sparkSession.conf.set")))
        yield


@contextlib.contextmanager
def _noting_frames(spark: SparkSession, made: list[DataFrame]) -> Iterator[None]:
    """Notes the DataFrames that the program makes of rows of its own."""
    create = type(spark).createDataFrame

    def noting(self: SparkSession, data: Any, *arguments: Any, **named: Any) -> DataFrame:
        frame = create(self, data, *arguments, **named)
        if isinstance(data, list | tuple):
            made.append(frame)
        return frame

    with _replaced(type(spark), "createDataFrame", noting):
        yield


@contextlib.contextmanager
def named_views(spark: SparkSession, frames: Mapping[str, DataFrame]) -> Iterator[None]:
    """The frames as views under their names; what had these names before comes back at the end."""
    catalog: Any = spark._jsparkSession.sessionState().catalog()
    before = {name: spark.table(name) for name in frames if catalog.getTempView(name).isDefined()}
    try:
        for name, frame in frames.items():
            frame.createOrReplaceTempView(name)
        yield
    finally:
        for name in frames:
            if name in before:
                before[name].createOrReplaceTempView(name)
            else:
                spark.catalog.dropTempView(name)
