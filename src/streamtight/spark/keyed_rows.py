"""Rows on their way to tasks that keep a state for each key, and back: pandas lies between, and loses some values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql.types import StructField

from streamtight.errors import QueryError

TIMES: Mapping[str, Any] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), lambda column: column.cast("bigint")),
    "timestamp": sf.unix_micros,
    "date": lambda column: sf.unix_date(column).cast("bigint"),
}
"""How columns that order a stream become whole numbers."""
_JSON = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "ignoreNullFields": "false"}
_AS_TEXT = {"tinyint", "smallint", "int", "bigint", "float", "double", "timestamp_ntz"}
_NESTED = ("array<", "struct<", "map<")
MARK, ALL = "_streamtight_mark", "_streamtight_all"
"""Columns of ours: the time that Spark is shown, and the key where there is none."""


def quoted(name: str) -> str:
    """The name of a column as Spark reads it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def carried(name: str, kind: str, *, is_key: bool = False) -> Column:
    """A column as something that pandas leaves alone: it has no whole numbers beside nulls, and NaN is null there."""
    column = sf.col(quoted(name))
    if kind in ("float", "double") and is_key:
        column = column + sf.lit(0.0).cast(kind)  # -0.0 is 0.0, also for Spark's state store
    if kind in _AS_TEXT:
        return column.cast("string")
    if kind == "timestamp":
        return sf.unix_micros(column).cast("string")
    if kind.startswith(_NESTED) and not is_key:
        return sf.to_json(column, _JSON)
    return column


def brought(field: StructField, *, is_key: bool) -> Column:
    """The column again."""
    column, kind = sf.col(quoted(field.name)), field.dataType.simpleString()
    if kind in _AS_TEXT:
        column = column.cast(field.dataType)
    elif kind == "timestamp":
        column = sf.timestamp_micros(column.cast("bigint"))
    elif kind.startswith(_NESTED) and not is_key:
        column = sf.from_json(column, field.dataType, _JSON)  # type: ignore[arg-type]
    return column.alias(field.name)


def milliseconds(text: str) -> int:
    """A time as people write it, as Spark reads it."""
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession()
    if spark is None:
        raise AssertionError("a frame has a session")  # pragma: no cover
    try:
        row = spark.sql(f"SELECT cast(interval '{text}' AS interval day to second)").collect()
    except Exception as error:
        raise QueryError("watch(forget_after=...)", needed="a time", came=repr(text), hint="'2 hours'") from error
    return int(row[0][0].total_seconds() * 1000)
