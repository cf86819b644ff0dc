"""Pipelines of processors on DataFrames of Spark: a run for each key, on frames that end and on streams.

    run_pipeline(pipeline, frame, key="sensor", order_by="time", value="reading")

gives a DataFrame with the rows at which something came out: key, order, and a column for each output. On streams, the
state of each key is in Spark's state store, and every micro-batch goes on from it.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from functools import reduce
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.streaming.state import GroupStateTimeout
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from streamtight.errors import PipelineError, QueryError
from streamtight.method.watch.questions import FIELD, NULLS, ORDER, TAG
from streamtight.program.pipeline import Pipeline, Port
from streamtight.program.pipeline_state import mark_of
from streamtight.program.processor import (
    Apply,
    CountDecimate,
    Cumulate,
    Filter,
    Fork,
    Freeze,
    Function,
    Group,
    Insert,
    Last,
    Passthrough,
    Processor,
    Slice,
    Trim,
    TurnInto,
    Window,
    both,
    either,
    if_then_else,
    implies,
    is_even,
    is_odd,
)
from streamtight.spark.keyed_rows import ALL, MARK, TIMES, brought, carried, milliseconds, quoted
from streamtight.spark.pipeline_tasks import LATE, PipelineTask, carried_type
from streamtight.spark.session import require_packages
from streamtight.spark.ship import require_there
from streamtight.spark.watch_tasks import STATE, UNORDERED

_PACKAGES = {"pyarrow": "pyarrow", "numpy": "numpy", "pandas": "'pandas<3'"}
_WHOLE = (ByteType, ShortType, IntegerType, LongType)
_SIMPLE = (BooleanType, *_WHOLE, FloatType, DoubleType, StringType, DateType, TimestampType, DecimalType, BinaryType)
_MOST_PORTS = 62  # a bit for each, of a number that Spark has


def run_pipeline(
    pipeline: Pipeline,
    frame: DataFrame,
    *,
    key: str | Sequence[str] | None = None,
    order_by: str | Sequence[str] | None = None,
    value: str | None = None,
    inputs: Mapping[str, str] | None = None,
    keep: str | Sequence[str] = (),
    gives: str | Mapping[str, str] | None = None,
    nulls: str = "ignore",
    ties: str = "refuse",
    late: str = "refuse",
    wait: str | None = None,
    forget_after: str | None = None,
    ends: bool = False,
) -> DataFrame:
    """What comes out of a pipeline, run for each key of a DataFrame: a row wherever something came out, with the key,
    the order, and a column for each output, which is null where that output carried nothing.

    key        the columns that tell one stream from another: each has a run of its own; without, all rows are one
    order_by   the columns that order the rows of a stream: each row is a push
    value      the column of the input, if the pipeline has one
    inputs     the columns of several inputs by their names; if left out, they are called as the inputs are
    keep       further columns to keep beside the outputs
    gives      the types of outputs, as Spark writes them, where they cannot be found out: {"out": "long"}
    nulls      "ignore": null is no event on that input; "pass": it is the event None; "refuse" it
    ties       "refuse" different rows of equal order, or take "any" order
    late       on streams, rows that come after a later one of their key: "refuse" them; "drop" them; or "tell" them, in
               a column `late` that is then added
    wait       on streams: how long rows that come late are waited for, as "10 minutes"; needs a timestamp in order_by
    forget_after   on streams: after how long a key without rows is forgotten, as "2 hours"
    ends       on DataFrames that end: whether the streams end with their last rows. What comes out at the end stands in
               a row with the order of the last

    Timestamps are local times for the functions of a pipeline, as PySpark gives them. A stream is resumed only by the
    same pipeline: `pipeline_state.mark_of` says what that is.
    """
    _require_choices(nulls=nulls, ties=ties, late=late)
    if not isinstance(pipeline, Pipeline):
        raise PipelineError(
            "run_pipeline(pipeline, frame)", needed="a pipeline", came=repr(pipeline), hint="Pipeline.wired(...)"
        )
    if not hasattr(frame, "sparkSession"):
        raise PipelineError(
            "run_pipeline(pipeline, frame)",
            needed="a DataFrame of Spark",
            came=type(frame).__name__,
            hint=f"{pipeline.name}.run(events), which needs no Spark",
        )
    require_packages("run_pipeline", _PACKAGES)
    require_there(frame.sparkSession, "run_pipeline", _PACKAGES)
    _require_sort_of_frame(frame, wait=wait, forget_after=forget_after, ends=ends)
    keys, orders = _names("key", key), _names("order_by", order_by)
    kept = tuple(dict.fromkeys([*orders, *_names("keep", keep)]))
    columns = _columns_of(pipeline, frame, value, inputs)
    _require_columns(pipeline, frame, keys, orders, kept, columns)
    outputs = _output_types(pipeline, {name: frame.schema[column].dataType for name, column in columns.items()}, gives)
    shown = [*dict.fromkeys([*keys, *kept]), *outputs.names, *([LATE] if late == "tell" else [])]
    clash = sorted({name for name in shown if shown.count(name) > 1})
    if clash:
        raise PipelineError(
            f"run_pipeline({pipeline.name}, ...)",
            needed="names of outputs that no column has which is kept",
            came=", ".join(clash),
            hint=f"frame.withColumnRenamed({clash[0]!r}, ...)",
        )
    task = PipelineTask(
        questions=(),
        keys=keys,
        kept=[name for name in kept if name not in keys],
        orders=len(orders),
        fields=len(columns),
        takes_ties=ties == "any",
        changes=False,
        waits=wait is not None,
        forget_after=None if forget_after is None else _limit(forget_after),
        pipeline=pipeline,
        mark=mark_of(pipeline),
        times=[isinstance(frame.schema[column].dataType, TimestampType) for column in columns.values()],
        outputs=outputs,
        on_null=nulls,
        on_late=late,
        ends=ends,
    )
    rows = _rows(frame, task, orders, list(columns.values()), wait)
    return _shown(_run(rows, task, is_stream=frame.isStreaming), frame, task, shown)


def _run(rows: DataFrame, task: PipelineTask, *, is_stream: bool) -> DataFrame:
    schema = StructType([StructField(name, rows.schema[name].dataType) for name in (*task.keys, *task.kept)])
    for field in task.outputs:
        schema = schema.add(field.name, carried_type(field.dataType))
    schema = schema.add(NULLS, LongType())
    if task.on_late == "tell":
        schema = schema.add(LATE, BooleanType())
    keys = [sf.col(quoted(name)) for name in task.keys or (ALL,)]
    if not is_stream:
        spread = rows.repartition(*keys) if task.keys else rows.repartition(1)
        by = [*keys, *(sf.col(f"{ORDER}{place}") for place in range(task.orders))]
        return spread.sortWithinPartitions(*by).mapInPandas(task.sorted, schema)
    timeout = GroupStateTimeout.NoTimeout
    if task.waits:
        timeout = GroupStateTimeout.EventTimeTimeout
    elif task.forget_after is not None:
        timeout = GroupStateTimeout.ProcessingTimeTimeout
    return rows.groupBy(*keys).applyInPandasWithState(task, schema, STATE, "append", timeout)


def _rows(
    frame: DataFrame, task: PipelineTask, orders: Sequence[str], columns: Sequence[str], wait: str | None
) -> DataFrame:
    """The frame as tasks read it, the same on frames that end and on streams: as pandas leaves it alone."""
    types = {field.name: field.dataType.simpleString() for field in frame.schema}
    if wait is not None:
        frame = frame.withWatermark(orders[0], wait)
    mine = [carried(name, types[name], is_key=True).alias(name) for name in task.keys] or [sf.lit(0).alias(ALL)]
    plain = [carried(name, types[name]).alias(name, metadata={}) for name in task.kept]
    is_unordered = reduce(operator.or_, (sf.col(quoted(name)).isNull() for name in orders))
    # pandas makes floats of whole numbers beside nulls, and NaN of null: so nulls travel beside them.
    nulls = sf.when(is_unordered, sf.lit(UNORDERED)).otherwise(sf.lit(0)).cast("bigint")
    fields = []
    for place, name in enumerate(columns):
        column = sf.col(quoted(name))
        nulls = nulls + sf.when(column.isNull(), sf.lit(1 << place)).otherwise(sf.lit(0))
        fields.append(_field(column, frame.schema[name].dataType).alias(f"{FIELD}{place}"))
    places = [
        sf.coalesce(TIMES[types[name]](sf.col(quoted(name))), sf.lit(0)).alias(f"{ORDER}{number}")
        for number, name in enumerate(orders)
    ]
    # Spark drops rows behind the watermark without a word. It looks at the column that is marked as the time; so that
    # is one beside the row's own, and rows that are late come to the task, which knows what to do with them.
    mark = [sf.lit("2200-01-01").cast("timestamp").alias(MARK, metadata={"spark.watermarkDelayMs": 0})] if wait else []
    return frame.select(*mine, *plain, sf.lit(0).alias(TAG), *fields, nulls.alias(NULLS), *places, *mark)


def _field(column: Column, data_type: DataType) -> Column:
    if isinstance(data_type, TimestampType):
        return sf.coalesce(sf.unix_micros(column), sf.lit(0))
    if isinstance(data_type, BooleanType):
        return sf.coalesce(column, sf.lit(False))
    if isinstance(data_type, (*_WHOLE, FloatType, DoubleType)):
        return sf.coalesce(column, sf.lit(0).cast(data_type))
    return column


def _shown(made: DataFrame, frame: DataFrame, task: PipelineTask, names: Iterable[str]) -> DataFrame:
    """The columns again as they were, and those of the outputs."""
    found: dict[str, Column] = {LATE: sf.col(LATE)} if task.on_late == "tell" else {}
    for name in (*task.keys, *task.kept):
        found[name] = brought(frame.schema[name], is_key=name in task.keys)
    for place, field in enumerate(task.outputs):
        column = sf.col(quoted(field.name))
        if isinstance(field.dataType, TimestampType):
            column = sf.timestamp_micros(column)
        elif isinstance(field.dataType, (FloatType, DoubleType)):
            is_nan = column.isNull() & (sf.col(NULLS).bitwiseAND(sf.lit(1 << place)) == 0)
            column = sf.when(is_nan, sf.lit(float("nan"))).otherwise(column).cast(field.dataType)
        found[field.name] = column.alias(field.name)
    return made.select(*(found[name] for name in names))


# -- what was asked ----------------------------------------------------------------------------------------------------

_CHOICES = {"nulls": ("ignore", "pass", "refuse"), "ties": ("refuse", "any"), "late": ("refuse", "drop", "tell")}


def _require_choices(**given: str) -> None:
    for name, each in given.items():
        if each not in _CHOICES[name]:
            raise PipelineError(
                f"run_pipeline({name}=...)",
                needed=" or ".join(map(repr, _CHOICES[name])),
                came=repr(each),
                hint=f"{name}={_CHOICES[name][0]!r}",
            )


def _require_sort_of_frame(frame: DataFrame, *, wait: str | None, forget_after: str | None, ends: bool) -> None:
    if frame.isStreaming and ends:
        raise PipelineError(
            "run_pipeline(ends=True)", needed="a DataFrame that ends", came="a streaming one", hint="without ends="
        )
    for name, given in (("wait", wait), ("forget_after", forget_after)):
        if given is not None and not frame.isStreaming:
            raise PipelineError(
                f"run_pipeline({name}=...)", needed="a streaming DataFrame", came="one that ends", hint="without it"
            )


def _limit(text: str) -> int:
    try:
        return milliseconds(text)
    except QueryError as error:
        raise PipelineError(
            "run_pipeline(forget_after=...)", needed=error.needed, came=error.came, hint=error.hint
        ) from error


def _names(what: str, given: str | Sequence[str] | None) -> tuple[str, ...]:
    names = () if given is None else (given,) if isinstance(given, str) else given
    if not isinstance(names, (tuple, list)) or not all(isinstance(name, str) for name in names):
        raise PipelineError(
            f"run_pipeline({what}=...)", needed="names of columns", came=repr(given), hint=f"{what}='time'"
        )
    return tuple(dict.fromkeys(names))


def _columns_of(
    pipeline: Pipeline, frame: DataFrame, value: str | None, inputs: Mapping[str, str] | None
) -> dict[str, str]:
    """For each input of the pipeline its column."""
    names = list(pipeline.inputs)
    if value is not None and (inputs is not None or len(names) > 1):
        raise PipelineError(
            "run_pipeline(value=...)",
            needed=f"a column for each of the inputs {', '.join(names)}" if len(names) > 1 else "value= or inputs=",
            came="one column" if len(names) > 1 else "both",
            hint=f"inputs={{{', '.join(f'{name!r}: ...' for name in names)}}}",
        )
    given = {names[0]: value} if value is not None else dict(inputs if inputs is not None else {n: n for n in names})
    for name in given:
        if name not in pipeline.inputs:
            raise PipelineError(
                "run_pipeline(inputs=...)", needed=f"inputs among {', '.join(names)}", came=repr(name), hint=names[0]
            )
    for name in names:
        if given.get(name) not in frame.columns:
            told = f"value={frame.columns[-1]!r}" if len(names) == 1 else f"inputs={{{name!r}: {frame.columns[-1]!r}}}"
            raise PipelineError(
                f"run_pipeline({pipeline.name}, ...)",
                needed=f"the column with the events of the input {name!r}",
                came=repr(given[name]) if name in given and (value or inputs) else "none of that name",
                hint=f"{told}; the frame has {', '.join(frame.columns)}",
            )
    return {name: given[name] for name in names}


def _require_columns(
    pipeline: Pipeline,
    frame: DataFrame,
    keys: Sequence[str],
    orders: Sequence[str],
    kept: Sequence[str],
    columns: Mapping[str, str],
) -> None:
    if not orders:
        raise PipelineError(
            "run_pipeline(pipeline, frame)",
            needed="the columns that order its rows, since rows of Spark have no order",
            came="no order_by=",
            hint="order_by='time'",
        )
    for name in (*keys, *kept):
        if name not in frame.columns:
            raise PipelineError(
                "run_pipeline(...)",
                needed=f"a column {name!r}",
                came=f"the columns {', '.join(frame.columns)}",
                hint="its name",
            )
        if "." in name or "`" in name:
            raise PipelineError(
                f"run_pipeline(...) with the column {name!r}",
                needed="keys, orders and kept columns without dots and backticks, which Spark does not hand over",
                came=repr(name),
                hint=f"frame.withColumnRenamed({name!r}, ...)",
            )
    for name in orders:
        kind = frame.schema[name].dataType.simpleString()
        if kind not in TIMES:
            raise PipelineError(
                f"run_pipeline(order_by={name!r})",
                needed=f"a column of {', '.join(TIMES)}",
                came=kind,
                hint="cast it",
            )
    for name, column in columns.items():
        if not isinstance(frame.schema[column].dataType, _SIMPLE):
            raise PipelineError(
                f"run_pipeline(...): the input {name!r}",
                needed="a column of single values: numbers, truth values, texts, dates, timestamps",
                came=f"{column}, {frame.schema[column].dataType.simpleString()}",
                hint="a field of it, or a cast",
            )
    for what, names in (("inputs", pipeline.inputs), ("outputs", pipeline.outputs)):
        if len(names) > _MOST_PORTS:
            raise PipelineError(
                f"run_pipeline({pipeline.name}, ...)",
                needed=f"at most {_MOST_PORTS} {what}",
                came=str(len(names)),
                hint="fewer, as tuples",
            )


# -- the types of outputs ----------------------------------------------------------------------------------------------

_OF_PYTHON: Mapping[Any, DataType] = {
    bool: BooleanType(),
    int: LongType(),
    float: DoubleType(),
    str: StringType(),
    bytes: BinaryType(),
    date: DateType(),
    datetime: TimestampType(),
}
_COMPARES = {
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge, operator.not_, both, either, implies,
    is_even, is_odd,
}  # fmt: skip
_CALCULATES = {
    operator.add,
    operator.sub,
    operator.mul,
    operator.floordiv,
    operator.mod,
    operator.neg,
    operator.abs,
    abs,
}
_CHOOSES = {min, max}
_HANDS_ON = (Passthrough, Fork, CountDecimate, Trim, Filter, Freeze, Last)
"""What comes out is what came in on the first input."""


def _output_types(
    pipeline: Pipeline, columns: Mapping[str, DataType], gives: str | Mapping[str, str] | None
) -> StructType:
    """The names and types of the outputs: as the user says, or as they follow from the boxes."""
    asked = {next(iter(pipeline.outputs)): gives} if isinstance(gives, str) else dict(gives or {})
    for name in asked:
        if name not in pipeline.outputs:
            raise PipelineError(
                "run_pipeline(gives=...)",
                needed=f"outputs among {', '.join(pipeline.outputs)}",
                came=repr(name),
                hint=f"gives={{{next(iter(pipeline.outputs))!r}: 'long'}}",
            )
    found = _given_by(pipeline, [columns[name] for name in pipeline.inputs])
    struct = StructType()
    for name, known in zip(pipeline.outputs, found, strict=True):
        data_type = _read_type(name, asked[name]) if name in asked else known
        if data_type is None:
            raise PipelineError(
                f"run_pipeline({pipeline.name}, ...)",
                needed=f"the type of the output {name!r}",
                came="one that a function makes which does not say it",
                hint=f"gives={{{name!r}: 'double'}}; or a function with an annotation, def f(x) -> float",
            )
        struct = struct.add(name, data_type)
    return struct


def _read_type(name: str, text: str) -> DataType:
    try:
        data_type = DataType.fromDDL(text)
    except (PySparkException, AttributeError, TypeError):
        data_type = None
    if not isinstance(data_type, _SIMPLE):
        raise PipelineError(
            f"run_pipeline(gives={{{name!r}: ...}})",
            needed="the name of a type of single values, as Spark writes it",
            came=repr(text),
            hint="'long', 'double', 'boolean', 'string', 'date', 'timestamp', 'decimal(10,2)'",
        )
    return data_type


def _given_by(pipeline: Pipeline, types: Sequence[DataType | None]) -> list[DataType | None]:
    """The types of what comes out; None where nobody can say."""
    known: dict[Port, DataType | None] = {Port(name): each for name, each in zip(pipeline.inputs, types, strict=True)}
    for name in pipeline.order:
        box = pipeline.boxes[name]
        taken = [known[pipeline.feeds[Port(name, place)]] for place in range(box.inputs)]
        for place, each in enumerate(_given_by_box(box, taken)):
            known[Port(name, place)] = each
    return [known[port] for port in pipeline.outputs.values()]


def _given_by_box(box: Processor, taken: Sequence[DataType | None]) -> list[DataType | None]:
    if isinstance(box, _HANDS_ON):
        return [taken[0]] * box.outputs
    if isinstance(box, TurnInto):
        return [_OF_PYTHON.get(type(box.value))]
    if isinstance(box, Insert):
        return [_joined([taken[0], *(_OF_PYTHON.get(type(each)) for each in box.values)])]
    if isinstance(box, Apply) and box.outputs == 1:
        known = None if box.values is None else _joined([_OF_PYTHON.get(type(each)) for each in box.values])
        return [known or _given_by_function(box.function, taken)]
    if isinstance(box, Cumulate):
        first = _given_by_function(box.function, [_OF_PYTHON.get(type(box.first)), taken[0]])
        then = _given_by_function(box.function, [first, taken[0]])
        return [_joined([first, then])]
    if isinstance(box, Group):
        return _given_by(box.pipeline, taken)
    if isinstance(box, (Window, Slice)):
        return _given_by_box(box.inner, taken[-1:])
    return [None] * box.outputs


def _given_by_function(function: Function, taken: Sequence[DataType | None]) -> DataType | None:
    call: Any = function.call
    if _is_among(call, _COMPARES):
        return BooleanType()
    if _is_among(call, _CALCULATES):
        # Python calculates with truth values as with 0 and 1.
        return _joined([LongType() if isinstance(each, BooleanType) else each for each in taken], calculates=True)
    if _is_among(call, _CHOOSES):
        return _joined(taken)
    if call is if_then_else:
        return _joined(taken[1:])
    return _annotated(call)


def _is_among(call: Callable[..., Any], known: set[Any]) -> bool:
    return any(call is each for each in known)


def _annotated(call: Callable[..., Any]) -> DataType | None:
    try:
        said = inspect.signature(call, eval_str=True).return_annotation
    except (TypeError, ValueError, NameError):
        return None
    return _OF_PYTHON.get(said) if isinstance(said, type) else None


def _joined(types: Sequence[DataType | None], *, calculates: bool = False) -> DataType | None:
    """The type that values of any of these have; None if there is none, or nobody can say."""
    if any(each is None for each in types):
        return None
    if all(isinstance(each, _WHOLE) for each in types):
        return LongType()
    if all(isinstance(each, (*_WHOLE, FloatType, DoubleType)) for each in types):
        return DoubleType()
    is_one = all(each == types[0] for each in types)
    return types[0] if is_one and not calculates else None
