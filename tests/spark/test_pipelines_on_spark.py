"""Pipelines on Spark: a run for each key, on frames that end and on streams; the same as `Pipeline.run` gives."""

from __future__ import annotations

import datetime as dt
import math
import operator
import os
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import LongType, StringType, StructField, StructType

from streamtight.errors import PipelineError
from streamtight.method.watch.questions import FIELD, NULLS, ORDER, TAG
from streamtight.program.pipeline import Pipeline
from streamtight.program.pipeline_state import mark_of
from streamtight.program.processor import (
    NOTHING,
    Apply,
    CountDecimate,
    Cumulate,
    Filter,
    Fork,
    Insert,
    Last,
    Passthrough,
    Slice,
    TurnInto,
    Window,
)
from streamtight.spark.pipeline_tasks import PipelineTask
from streamtight.spark.pipelines import run_pipeline
from streamtight.spark.watch_tasks import UNORDERED

Rows = list[tuple[Any, ...]]
V = "t long, v long"
KV = "k string, t long, v long"

first_and_third = Pipeline.wired(
    "in -> A; A.0 -> B; A.1 -> C.1; B -> C.0; C -> out", A=Fork(2), B=CountDecimate(3), C=Apply(operator.add)
)
windows = Pipeline.wired("in -> W -> out", W=Window(Cumulate(operator.add), 3))
windows_of_keys = Pipeline.wired("in -> K -> out", K=Slice(windows, by=lambda value: value % 2))
totals = Pipeline.wired("in -> S -> out", S=Cumulate(operator.add))
both_inputs = Pipeline.wired(
    "a -> S.0; b -> S.1; S -> sums; a -> last",
    takes={"a": int, "b": int},
    gives=("sums", "last"),
    S=Apply(operator.add),
)


def inverses() -> Pipeline:
    def inverse(value: int) -> float:  # not by its name, since tasks have no tests to import
        return 1 / value

    return Pipeline.wired("in -> I -> out", I=Apply(inverse), name="inverses")


def expected(pipeline: Pipeline, rows: Rows, *, ends: bool = False) -> Rows:
    """The obvious way: the rows of each key in order, each a push; null is no event."""
    found: Rows = []
    for key in dict.fromkeys(row[0] for row in rows):
        mine = sorted((row for row in rows if row[0] == key), key=lambda row: row[1])
        events = [tuple(NOTHING if each is None else each for each in row[2:]) for row in mine]
        pushes = pipeline.pushes([each if len(each) > 1 else each[0] for each in events], ends=ends)
        for row, push in zip([*mine, mine[-1]], pushes, strict=False):
            outs = [None if out is NOTHING else out for out in push.outs.values()]
            if any(out is not NOTHING for out in push.outs.values()):
                found.append((*row[:2], *outs))
    return found


def alike(one: Rows, other: Rows) -> bool:
    """As bags, and NaN is NaN."""
    return sorted(map(repr, one)) == sorted(map(repr, other))


def rows_of(frame: DataFrame) -> Rows:
    return [tuple(row) for row in frame.collect()]


class Stream:
    """A stream of files, one for each micro-batch, with one checkpoint."""

    def __init__(self, spark: SparkSession, folder: Path, schema: str) -> None:
        self.spark, self.folder, self.schema = spark, folder, schema
        self._count = 0
        (folder / "in").mkdir()

    def put(self, *batches: Sequence[tuple[Any, ...]]) -> Stream:
        fields = self.spark.createDataFrame([], self.schema).schema.fields
        for batch in batches:
            self._count += 1
            columns = zip(*batch, strict=True)
            path = self.folder / "in" / f"{self._count}.parquet"
            table = {f.name: pa.array(c, _arrow(f.dataType)) for f, c in zip(fields, columns, strict=True)}
            pq.write_table(pa.table(table), path)
            os.utime(path, (1e9 + self._count, 1e9 + self._count))
        return self

    def run(self, ask: Callable[[DataFrame], DataFrame]) -> Rows:
        """What is given for all files that have not been read, micro-batch by micro-batch."""
        found: Rows = []
        read = self.spark.readStream.schema(self.schema).options(maxFilesPerTrigger=1, latestFirst=False)
        writer = ask(read.parquet(str(self.folder / "in"))).writeStream.trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(self.folder / "checkpoint"))
        writer.foreachBatch(lambda frame, _: found.extend(rows_of(frame))).start().awaitTermination()
        return found


def _arrow(data_type: Any) -> pa.DataType:
    return pa.timestamp("us", "UTC") if data_type.typeName() == "timestamp" else to_arrow_type(data_type)


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Callable[[str], Stream]:
    return lambda schema: Stream(spark, tmp_path, schema)


# -- streams ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_stream_that_is_stopped_and_goes_on_gives_what_plain_python_gives(
    spark: SparkSession, stream: Callable[[str], Stream]
) -> None:
    batches = [
        [("a", 3, 4), ("a", 1, 3), ("b", 1, 10), ("a", 2, 1), (None, 1, 7)],
        [("b", 2, 20), ("a", 4, 1), ("b", 3, None), ("b", 4, 30), ("b", 5, 40)],
        [("a", 6, 9), ("a", 5, 5), (None, 2, 8), ("a", 7, 2), ("b", 6, 50)],
    ]
    whole = [row for batch in batches for row in batch]
    pipes = stream(KV)

    def ask(frame: DataFrame) -> DataFrame:
        return run_pipeline(first_and_third, frame, key="k", order_by="t", value="v")

    found = pipes.put(*batches[:2]).run(ask) + pipes.put(batches[2]).run(ask)

    assert alike(found, expected(first_and_third, whole))
    assert alike(rows_of(ask(spark.createDataFrame(whole, KV).repartition(3))), found)


@pytest.mark.slow
def test_a_window_of_three_goes_on_over_micro_batches_and_without_a_key_all_rows_are_one_stream(
    stream: Callable[[str], Stream],
) -> None:
    pipes = stream(V).put([(1, 1), (2, 2)], [(3, 2**60)], [(4, -4), (5, 5)])

    found = pipes.run(lambda frame: run_pipeline(windows, frame, order_by="t", value="v"))

    assert found == [(3, 3 + 2**60), (4, 2**60 - 2), (5, 2**60 + 1)]


@pytest.mark.slow
def test_two_inputs_wait_for_each_other_and_null_is_no_event(
    spark: SparkSession, stream: Callable[[str], Stream]
) -> None:
    schema = "k string, t long, x long, y long"
    batches = [[("a", 1, 1, None), ("a", 2, 2, None)], [("a", 3, None, 10), ("b", 1, 5, 5), ("a", 4, None, None)]]
    whole = [row for batch in batches for row in batch]

    def ask(frame: DataFrame) -> DataFrame:
        return run_pipeline(both_inputs, frame, key="k", order_by="t", inputs={"a": "x", "b": "y"})

    found = stream(schema).put(*batches).run(ask)

    assert alike(found, [("a", 1, None, 1), ("a", 2, None, 2), ("a", 3, 11, None), ("b", 1, 10, 5)])
    assert alike(found, expected(both_inputs, whole))
    assert alike(found, rows_of(ask(spark.createDataFrame(whole, schema))))


@pytest.mark.slow
def test_values_of_all_types_come_out_of_streams_and_frames_as_they_went_in(
    spark: SparkSession, stream: Callable[[str], Stream]
) -> None:
    kinds = (
        "big long, small tinyint, d double, f float, s string, at timestamp, day date, yes boolean, dec decimal(20,2)"
    )
    names = [each.split()[0] for each in kinds.replace("(20,2)", "").split(", ")]
    delayed = Pipeline.wired(
        "; ".join(f"{name} -> A{name} -> o{name}" for name in names),
        takes=dict.fromkeys(names, object),
        gives=[f"o{name}" for name in names],
        **{f"A{name}": Window(Passthrough(), 2) for name in names},
    )
    at, day = dt.datetime(2024, 1, 1, 12, 0, 0, 250), dt.date(2024, 2, 29)
    full = (2**53 + 1, -7, math.nan, 0.5, "ü", at, day, True, Decimal("1.25"))
    nothing = (None,) * len(names)
    other = (2**63 - 1, 1, -math.inf, -0.0, "", at, day, False, Decimal("-3.00"))
    whole = [(1.5, 1, *full), (math.nan, 1, *other), (1.5, 2, *other), (1.5, 3, *nothing), (1.5, 4, *full)]
    utc = [tuple(each.astimezone(dt.UTC) if isinstance(each, dt.datetime) else each for each in row) for row in whole]
    schema = f"k double, t long, {kinds}"

    def ask(frame: DataFrame) -> DataFrame:
        return run_pipeline(delayed, frame, key="k", order_by="t", keep="big", nulls="ignore").drop("big")

    found = stream(schema).put(utc[:2], utc[2:4], utc[4:]).run(ask)

    assert alike(found, [(1.5, 2, *other), (1.5, 4, *full)])
    frame = spark.createDataFrame(whole, schema)
    assert alike(found, rows_of(ask(frame)))
    assert [field.dataType for field in ask(frame).schema.fields[2:]] == [f.dataType for f in frame.schema.fields[2:]]


def test_rows_that_wait_are_put_in_order(stream: Callable[[str], Stream]) -> None:
    def at(second: int) -> dt.datetime:
        return dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=second)

    batches = [[("a", at(3), 5), ("a", at(1), 4), ("b", at(60), 0)], [("b", at(61), 0)], [("a", at(0), 9)]]

    found = (
        stream("k string, t timestamp, v long")
        .put(*batches)
        .run(
            lambda frame: run_pipeline(
                totals, frame, key="k", order_by="t", value="v", wait="5 seconds", forget_after="1 day", late="tell"
            )
        )
    )

    assert [(row[0], row[1].second, *row[2:]) for row in found if row[0] == "a"] == [
        ("a", 1, 4, False),
        ("a", 3, 9, False),
        ("a", 0, None, True),
    ]


@pytest.mark.slow
def test_a_checkpoint_of_another_pipeline_is_refused(stream: Callable[[str], Stream]) -> None:
    pipes = stream(V).put([(1, 5), (2, 6)])
    pipes.run(lambda frame: run_pipeline(totals, frame, order_by="t", value="v"))
    pipes.put([(3, 1)])
    products = Pipeline.wired("in -> S -> out", S=Cumulate(operator.mul))

    with pytest.raises(Exception, match="needed a checkpoint of the same pipeline; came one of a pipeline with other"):
        pipes.run(lambda frame: run_pipeline(products, frame, order_by="t", value="v"))
    assert pipes.run(lambda frame: run_pipeline(totals, frame, order_by="t", value="v")) == [(3, 12)]


def test_a_function_that_raises_in_a_task_is_told_with_box_key_and_value(
    spark: SparkSession, stream: Callable[[str], Stream]
) -> None:
    data = [("a", 1, 2), ("b", 1, 0)]
    words = r"inverses: I for k='b': needed a step for every event; came inverse raises ZeroDivisionError for 0"

    def ask(frame: DataFrame) -> DataFrame:
        return run_pipeline(inverses(), frame, key="k", order_by="t", value="v")

    with pytest.raises(Exception, match=words):
        stream(KV).put(data).run(ask)
    with pytest.raises(Exception, match=words):
        ask(spark.createDataFrame(data, KV)).collect()


# -- frames that end -------------------------------------------------------------------------------------------------


def test_what_comes_at_the_end_stands_with_the_order_of_the_last_row(spark: SparkSession) -> None:
    data = [("a", 2, 5), ("b", 1, 7), ("a", 1, 1)]
    last = Pipeline.wired("in -> S -> L -> out", S=Cumulate(operator.add), L=Last())
    frame = spark.createDataFrame(data, KV)

    found = rows_of(run_pipeline(last, frame, key="k", order_by="t", value="v", ends=True))
    assert alike(found, [("a", 2, 6), ("b", 1, 7)])
    assert alike(found, expected(last, data, ends=True))


def test_keys_that_are_longer_than_a_batch_of_arrow_go_on(spark: SparkSession) -> None:
    frame = spark.range(25_000).selectExpr("id % 2 k", "id t", "id v")

    found = rows_of(run_pipeline(totals, frame, key="k", order_by="t", value="v"))

    assert len(found) == 25_000
    assert (0, 24_998, sum(range(0, 25_000, 2))) in found


def test_null_is_no_event_or_none_or_refused(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 5), (2, None)], V)
    before = Pipeline.wired("in -> I -> out", I=Insert(0))

    def found(nulls: str) -> Rows:
        return rows_of(run_pipeline(before, frame, order_by="t", value="v", nulls=nulls))

    assert found("ignore") == [(1, 0)]
    assert found("pass") == [(1, 0), (2, 5)]
    with pytest.raises(Exception, match="the input 'in' of the stream: needed an event in every row"):
        found("refuse")


@pytest.mark.parametrize(
    ("box", "schema", "kind"),
    [
        (Cumulate(operator.add), "t long, v int", "bigint"),
        (Cumulate(operator.add), "t long, v double", "double"),
        (inverses(), V, "double"),
        (Apply(lambda value: str(value), values=["a"]), V, "string"),
        (Slice(CountDecimate(2), by=lambda value: value % 2), "t long, v smallint", "smallint"),
        (Insert(1.5), V, "double"),
        (
            Pipeline.wired("in -> F.0; in -> E -> F.1; F -> out", F=Filter(), E=Apply(lambda value: value > 1)),
            V,
            "bigint",
        ),
    ],
    ids=str,
)
def test_types_of_outputs_follow_from_the_boxes(spark: SparkSession, box: Any, schema: str, kind: str) -> None:
    pipeline = Pipeline.wired("in -> X -> out", X=box)
    frame = spark.createDataFrame([], schema)

    assert dict(run_pipeline(pipeline, frame, order_by="t", value="v").dtypes)["out"] == kind


# -- bad input -------------------------------------------------------------------------------------------------------

guess = Pipeline.wired("in -> F -> out", F=Apply(lambda value: value / 2))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda f: run_pipeline(totals, f, value="v"), "no order_by="),
        (lambda f: run_pipeline(totals, f, order_by="t"), "the column with the events of the input 'in'"),
        (lambda f: run_pipeline(totals, f, order_by="t", value="w"), "came 'w'"),
        (lambda f: run_pipeline(totals, f, order_by="tt", value="v"), "a column 'tt'"),
        (lambda f: run_pipeline(totals, f, order_by="s", value="v"), "needed a column of tinyint"),
        (lambda f: run_pipeline(totals, f, order_by="t", value="l"), "a column of single values"),
        (lambda f: run_pipeline(both_inputs, f, order_by="t", value="v"), "a column for each of the inputs a, b"),
        (lambda f: run_pipeline(both_inputs, f, order_by="t", inputs={"c": "v"}), "inputs among a, b"),
        (lambda f: run_pipeline(guess, f, order_by="t", value="v"), "the type of the output 'out'"),
        (lambda f: run_pipeline(guess, f, order_by="t", value="v", gives={"o": "long"}), "outputs among out"),
        (lambda f: run_pipeline(guess, f, order_by="t", value="v", gives={"out": "lung"}), "the name of a type"),
        (lambda f: run_pipeline(totals, f, order_by="t", value="v", late="x"), "'refuse' or 'drop' or 'tell'"),
        (lambda f: run_pipeline(totals, f, order_by="t", value="v", wait="1 minute"), "a streaming DataFrame"),
        (lambda f: run_pipeline(totals, [1, 2], order_by="t"), "pipeline.run"),
        (
            lambda f: run_pipeline(totals, f.withColumnRenamed("t", "out"), order_by="out", value="v"),
            "names of outputs",
        ),
    ],
)
def test_what_cannot_be_run_is_refused_where_it_is_asked(spark: SparkSession, ask: Any, message: str) -> None:
    frame = spark.createDataFrame([], "t long, v long, s string, l array<int>")

    with pytest.raises(PipelineError, match=message):
        ask(frame)


# -- tasks, without Spark --------------------------------------------------------------------------------------------


class Kept:
    """What Spark keeps for a key."""

    hasTimedOut = False  # noqa: N815 - the name is Spark's

    def __init__(self, *kept: Any) -> None:
        self.get = kept

    @property
    def exists(self) -> bool:
        return bool(self.get)

    def update(self, kept: tuple[Any, ...]) -> None:
        self.get = kept


def task(pipeline: Pipeline, kind: Any = None, **changed: Any) -> PipelineTask:
    made = PipelineTask(
        questions=(),
        keys=("k",),
        kept=("t",),
        orders=1,
        fields=len(pipeline.inputs),
        takes_ties=False,
        changes=False,
        waits=False,
        forget_after=None,
        pipeline=pipeline,
        mark=mark_of(pipeline),
        times=[False] * len(pipeline.inputs),
        outputs=StructType([StructField(name, kind or LongType()) for name in pipeline.outputs]),
        on_null="ignore",
        on_late="refuse",
        ends=False,
    )
    return replace(made, **changed)


def as_tasks_get_them(rows: Rows) -> pd.DataFrame:
    """Rows of key, order and inputs, as Spark hands them over."""
    columns: dict[str, Any] = {"k": [row[0] for row in rows], "t": [str(row[1]) for row in rows], TAG: [0] * len(rows)}
    for place in range(len(rows[0]) - 2):
        columns[f"{FIELD}{place}"] = [0 if row[place + 2] is None else row[place + 2] for row in rows]
    columns[NULLS] = [
        sum((value is None) << place for place, value in enumerate(row[2:])) + (row[1] is None) * UNORDERED
        for row in rows
    ]
    columns[f"{ORDER}0"] = [row[1] or 0 for row in rows]
    return pd.DataFrame(columns)


def as_given(pipeline: Pipeline, frames: Iterable[pd.DataFrame]) -> Rows:
    return [
        (row["k"], int(row["t"]), *(None if row[name] is pd.NA else row[name] for name in pipeline.outputs))
        for frame in frames
        for _, row in frame.iterrows()
    ]


@pytest.mark.parametrize("seed", range(20))
def test_however_rows_are_cut_into_micro_batches_the_same_comes_out(seed: int) -> None:
    chance = random.Random(seed)
    pipeline = chance.choice([first_and_third, windows, both_inputs, windows_of_keys])
    inputs = len(pipeline.inputs)
    rows = [
        ("a", t, *(chance.choice([None, *range(9)]) for _ in range(inputs))) for t in range(1, chance.randint(2, 40))
    ]
    kept, found, begin = Kept(), [], 0

    while begin < len(rows):
        end = begin + chance.randint(1, 6)
        batch = chance.sample(rows[begin:end], len(rows[begin:end]))
        found += as_given(pipeline, task(pipeline)(("a",), iter([as_tasks_get_them(batch)]), kept))
        begin = end

    assert found == expected(pipeline, rows), f"seed {seed}"
    cut = chance.randint(1, len(rows))
    frames = [as_tasks_get_them(part) for part in (rows[:cut], rows[cut:]) if part]
    assert found == as_given(pipeline, task(pipeline).sorted(frames)), f"seed {seed}"


@pytest.mark.parametrize(
    ("rows", "kind", "message"),
    [
        ([(1, 1), (1, 2)], LongType(), "different rows at"),
        ([(1, 1), (None, 2)], LongType(), "a row of .*: needed a value in every column of order_by"),
        ([(1, 2**62), (2, 2**62)], LongType(), "a number that fits bigint"),
        ([(1, 1)], StringType(), "pipeline.out for k='a': needed str"),
    ],
    ids=["ties", "null order", "too large", "another type"],
)
def test_rows_that_cannot_be_pushed_are_refused(rows: Rows, kind: Any, message: str) -> None:
    frame = as_tasks_get_them([("a", *row) for row in rows])

    with pytest.raises(PipelineError, match=message):
        list(task(totals, kind).sorted([frame]))
    with pytest.raises(PipelineError, match=message):
        list(task(totals, kind)(("a",), iter([frame]), Kept()))


def test_rows_that_come_too_late_are_refused_or_dropped_or_told() -> None:
    def given(late: str) -> list[pd.DataFrame]:
        kept, at_work = Kept(), task(totals, on_late=late)
        first, second = as_tasks_get_them([("a", 3, 5)]), as_tasks_get_them([("a", 2, 7), ("a", 4, 1)])
        return [*at_work(("a",), iter([first]), kept), *at_work(("a",), iter([second]), kept)]

    with pytest.raises(PipelineError, match=r"a row of k='a': needed rows in their order.*; came a late one at t 2"):
        given("refuse")
    assert as_given(totals, given("drop")) == [("a", 3, 5), ("a", 4, 6)]
    assert as_given(totals, given("tell")) == [("a", 3, 5), ("a", 2, None), ("a", 4, 6)]
    assert [is_late for frame in given("tell") for is_late in frame["late"]] == [False, True, False]


def test_nothing_comes_at_the_end_of_rows_that_do_not_end() -> None:
    last = Pipeline.wired("in -> L -> out", L=Last())
    frame = as_tasks_get_them([("a", 1, 5), ("b", 1, 6)])

    assert as_given(last, task(last).sorted([frame])) == []
    assert as_given(last, task(last, ends=True).sorted([frame])) == [("a", 1, 5), ("b", 1, 6)]


def test_a_tie_over_two_frames_is_found() -> None:
    frames = [as_tasks_get_them([("a", 1, 1)]), as_tasks_get_them([("a", 1, 2)])]

    with pytest.raises(PipelineError, match="different rows at"):
        list(task(totals).sorted(frames))
    assert as_given(totals, task(totals, takes_ties=True).sorted(frames)) == [("a", 1, 1), ("a", 1, 3)]


def test_a_state_that_cannot_be_kept_as_text_is_told_with_its_box() -> None:
    odd = Pipeline.wired("in -> C -> D -> out", C=Cumulate(lambda last, value: object(), start=0), D=TurnInto(1))

    with pytest.raises(PipelineError, match=r"the state of C \(Σ f\): needed numbers, texts"):
        list(task(odd)(("a",), iter([as_tasks_get_them([("a", 1, 1)])]), Kept()))


def test_the_state_of_a_watched_query_is_refused() -> None:
    kept = Kept('{"of": ["0123"], "states": [[1]]}', "[1]", "null", b"")

    with pytest.raises(PipelineError, match="a checkpoint of the same pipeline; came one of a pipeline with a query"):
        list(task(totals)(("a",), iter([as_tasks_get_them([("a", 2, 1)])]), kept))
