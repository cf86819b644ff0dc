"""Queries on DataFrames of Spark: that end, by sorted partitions; that do not, by a state for each key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.streaming.state import GroupStateTimeout
from pyspark.sql.types import DataType, StringType, StructField, StructType

from streamtight.errors import QueryError
from streamtight.method.watch.columns import Asked
from streamtight.method.watch.kernel import BOOL, FLOAT, INT
from streamtight.method.watch.questions import CONFLICT, DEFINED, FIELD, LATE, NULLS, ORDER, TAG, UNDEFINED, Question
from streamtight.method.watch.tables import SortedTables
from streamtight.properties.query import OTHER
from streamtight.spark.keyed_rows import ALL, MARK, TIMES, brought, carried, milliseconds, quoted
from streamtight.spark.parallel_run import arrow_of
from streamtight.spark.session import require_packages
from streamtight.spark.ship import require_there
from streamtight.spark.watch_metrics import observed

_TYPES = {"boolean": BOOL, "tinyint": INT, "smallint": INT, "int": INT, "bigint": INT, "float": FLOAT, "double": FLOAT}
_DEFAULTS: Mapping[str | None, Any] = {BOOL: False, INT: 0, FLOAT: 0.0}
_PACKAGES = {"pyarrow": "pyarrow", "numpy": "numpy"}
_STREAM_PACKAGES = {**_PACKAGES, "pandas": "'pandas<3'"}


def watched(asked: Asked, frame: DataFrame, wait: str | None, forget_after: str | None) -> DataFrame:
    """The answers on a DataFrame, as another."""
    packages = _STREAM_PACKAGES if frame.isStreaming else _PACKAGES
    require_packages("watch", packages)
    require_there(frame.sparkSession, "watch", packages)
    if not asked.order_by:
        raise QueryError(
            "watch(frame)",
            needed="the columns that order its rows, since rows of Spark have no order",
            came="no order_by=",
            hint="order_by='time'",
        )
    for name in asked.kept:
        if "." in name or "`" in name:
            raise QueryError(
                f"watch(...) with the column {name!r}",
                needed="keys, orders and kept columns without dots and backticks, which Spark does not hand over",
                came=repr(name),
                hint=f"frame.withColumnRenamed({name!r}, ...)",
            )
    types = {field.name: field.dataType.simpleString() for field in frame.schema}
    made, columns = asked.questions({name: _TYPES.get(kind) for name, kind in types.items()})
    prepared = _prepared(asked, frame, made[0].compiled.tags, columns)
    schema = _with_answers([frame.schema[name] for name in asked.kept], made)
    if frame.isStreaming:
        found = observed(_streamed(asked, prepared, types, made, columns, schema, wait, forget_after), made)
    else:
        for name, given in (("wait", wait), ("forget_after", forget_after)):
            if given is not None:
                raise QueryError(
                    f"watch({name}=...)", needed="a streaming DataFrame", came="one that ends", hint="without it"
                )
        found = _sorted(asked, prepared, made, len(columns), schema)
    return found.filter(_is_alarm(made)) if asked.outputs == "alarms" else found


def _with_answers(fields: list[StructField], made: list[Question]) -> StructType:
    struct = StructType([StructField(field.name, field.dataType) for field in fields])
    for question in made:
        struct = struct.add(question.name, DataType.fromDDL(question.type)).add(question.status_name, StringType())
    return struct


def _prepared(asked: Asked, frame: DataFrame, tags: tuple[str, ...], columns: list[str]) -> DataFrame:
    """The frame with the number of each row's tag, and the fields that are read under names of ours."""
    fields = [sf.col(quoted(name)).alias(f"{FIELD}{place}") for place, name in enumerate(columns)]
    kept = [sf.col(quoted(name)) for name in asked.kept]
    made = frame.select(*kept, _tag(asked, tags).alias(TAG), *fields)
    return made.filter(sf.col(TAG) >= 0) if asked.others == "ignore" else made


def _tag(asked: Asked, tags: tuple[str, ...]) -> Column:
    if asked.tags is None:
        return sf.lit(0)
    if isinstance(asked.tags, str):
        known = [tag for tag in tags if tag != OTHER]
        tests: dict[str, Any] = {tag: sf.col(quoted(asked.tags)) == sf.lit(tag) for tag in known}
    else:
        tests = {tag: sf.expr(each) if isinstance(each, str) else each for tag, each in asked.tags.items()}
    found = sf.when(sf.lit(False), sf.lit(-1))
    for tag, test in tests.items():
        found = found.when(test, sf.lit(tags.index(tag)))
    return found.otherwise(sf.lit(tags.index(OTHER) if asked.others == "pass" else -1))


def _is_alarm(made: list[Question]) -> Column:
    found = sf.lit(False)
    for question in made:
        is_bad = sf.col(quoted(question.status_name)).isin(UNDEFINED, CONFLICT, LATE)
        found = found | is_bad | ~sf.coalesce(sf.col(quoted(question.name)), sf.lit(True))
    return found


# -- frames that end -------------------------------------------------------------------------------------------------


def _sorted(asked: Asked, prepared: DataFrame, made: list[Question], fields: int, schema: StructType) -> DataFrame:
    keys = [sf.col(quoted(name)) for name in asked.key]
    orders = [sf.col(quoted(name)) for name in asked.order_by]
    # Minus zero is the same key as zero, but Spark would send it elsewhere.
    types = {name: prepared.schema[name].dataType.simpleString() for name in asked.key}
    by = [
        sf.col(quoted(name)) + sf.lit(0.0) if _TYPES.get(types[name]) == FLOAT else sf.col(quoted(name))
        for name in types
    ]
    spread = prepared.repartition(*by) if by else prepared.repartition(1)
    task = SortedTables(
        made, fields, asked.key, asked.order_by, asked.kept, asked.takes_ties, asked.outputs == "changes",
        arrow_of(schema),
    )  # fmt: skip
    return spread.sortWithinPartitions(*keys, *orders).mapInArrow(task, schema)


# -- streams ---------------------------------------------------------------------------------------------------------


def _streamed(
    asked: Asked,
    prepared: DataFrame,
    types: Mapping[str, str],
    made: list[Question],
    columns: list[str],
    schema: StructType,
    wait: str | None,
    forget_after: str | None,
) -> DataFrame:
    from streamtight.spark.watch_tasks import STATE, UNORDERED, KeyTask

    for name in asked.order_by:
        if types[name] not in TIMES:
            raise QueryError(
                f"watch(order_by={name!r})", needed=f"a column of {', '.join(TIMES)}", came=types[name], hint="cast it"
            )
    first = asked.order_by[0]
    if wait is not None and types[first] != "timestamp":
        raise QueryError(
            f"watch(wait={wait!r})",
            needed="a timestamp first in order_by",
            came=f"{first}, {types[first]}",
            hint="timestamp",
        )
    orders = [
        sf.coalesce(TIMES[types[name]](sf.col(quoted(name))), sf.lit(0)).alias(f"{ORDER}{n}")
        for n, name in enumerate(asked.order_by)
    ]
    keys = asked.key or (ALL,)
    if not asked.key:
        prepared = prepared.withColumn(ALL, sf.lit(0))
    if wait is not None:
        prepared = prepared.withWatermark(first, wait)
    kept = [name for name in asked.kept if name not in asked.key]
    if len(columns) > 62:
        raise QueryError("watch(...)", needed="at most 62 fields that are read", came=str(len(columns)), hint="fewer")
    # pandas makes floats of whole numbers beside nulls, and NaN of null: so nulls travel beside them.
    is_unordered = sf.lit(False)
    for name in asked.order_by:
        is_unordered = is_unordered | sf.col(quoted(name)).isNull()
    nulls = sf.when(is_unordered, sf.lit(UNORDERED)).otherwise(sf.lit(0)).cast("bigint")
    fields = []
    for place, name in enumerate(columns):
        field, default = sf.col(f"{FIELD}{place}"), _DEFAULTS.get(_TYPES.get(types[name], ""))
        nulls = nulls + sf.when(field.isNull(), sf.lit(1 << place)).otherwise(sf.lit(0))
        fields.append((field if default is None else sf.coalesce(field, sf.lit(default))).alias(f"{FIELD}{place}"))
    # Spark drops rows behind the watermark without a word. It looks at the column that is marked as the time; so that
    # is one beside the row's own, and rows that are late come to the task, which says so.
    mark = [sf.lit("2200-01-01").cast("timestamp").alias(MARK, metadata={"spark.watermarkDelayMs": 0})] if wait else []
    plain = [carried(name, types[name]).alias(name, metadata={}) for name in kept]
    mine = [carried(name, types.get(name, ""), is_key=True).alias(name) for name in keys]
    rows = prepared.select(*mine, *plain, TAG, *fields, nulls.alias(NULLS), *orders, *mark)
    timeout = GroupStateTimeout.NoTimeout
    if wait is not None:
        timeout = GroupStateTimeout.EventTimeTimeout
    elif forget_after is not None:
        timeout = GroupStateTimeout.ProcessingTimeTimeout
    task = KeyTask(
        made, asked.key, kept, len(asked.order_by), len(columns), asked.takes_ties,
        asked.outputs == "changes", wait is not None, None if forget_after is None else milliseconds(forget_after),
    )  # fmt: skip
    kept_fields = [StructField(name, rows.schema[name].dataType) for name in (*asked.key, *kept)]
    ordered = _with_answers(kept_fields, made)
    found = rows.groupBy(*map(quoted, keys)).applyInPandasWithState(task, ordered, STATE, "append", timeout)
    answers = {question.name: question.status_name for question in made if question.type in ("double", "float")}
    named = {name: brought(schema[name], is_key=name in asked.key) for name in (*asked.key, *kept)}
    return found.select(
        *(named[name] if name in named else _with_nan(name, answers.get(name)) for name in schema.names)
    )


def _with_nan(name: str, status_name: str | None) -> Column:
    """A column; pandas makes null of NaN, and an answer that is defined is never null."""
    column = sf.col(quoted(name))
    if status_name is None:
        return column
    is_nan = column.isNull() & (sf.col(quoted(status_name)) == DEFINED)
    return sf.when(is_nan, sf.lit(float("nan"))).otherwise(column).alias(name)
