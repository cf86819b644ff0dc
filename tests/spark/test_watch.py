"""`watch` on Spark: DataFrames that end, streams with a state for each key, and formulas; restarts lose nothing."""

from __future__ import annotations

import datetime as dt
import math
import os
import time
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import streamtight as tight
from streamtight import WatchMetrics, watch
from streamtight.errors import QueryError, StreamtightError
from streamtight.properties.query import cur
from streamtight.properties.query_library import count, current, greatest, total
from streamtight.verdict import Outcome

NAN = math.nan
V = "t long, v long"
KV = "k string, t long, v long"


def at(second: int) -> dt.datetime:
    return dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=second)


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.collect()]


def alike(one: Any, other: Any) -> bool:
    """As bags, and NaN is NaN."""
    return sorted(map(repr, one)) == sorted(map(repr, other))


class Files:
    """A stream of files, one for each micro-batch."""

    def __init__(self, spark: SparkSession, folder: Path, schema: str) -> None:
        self.spark, self.folder, self.schema = spark, folder, schema
        self.given: list[tuple[Any, ...]] = []
        self._count = 0
        (folder / "in").mkdir()

    def put(self, *batches: Sequence[tuple[Any, ...]]) -> Files:
        struct = self.spark.createDataFrame([], self.schema).schema
        for batch in batches:
            self._count += 1
            columns = list(zip(*batch, strict=True))
            path = self.folder / "in" / f"{self._count}.parquet"
            table = {f.name: pa.array(c, _arrow(f.dataType)) for f, c in zip(struct, columns, strict=True)}
            pq.write_table(pa.table(table), path)
            os.utime(path, (1e9 + self._count, 1e9 + self._count))
        return self

    def frame(self) -> DataFrame:
        options = {"maxFilesPerTrigger": 1, "latestFirst": False}
        return self.spark.readStream.schema(self.schema).options(**options).parquet(str(self.folder / "in"))

    def run(self, ask: Callable[[DataFrame], DataFrame]) -> list[tuple[Any, ...]]:
        """What is given for all files that have not been read, in order."""
        found: list[tuple[Any, ...]] = []
        self.start(ask, found).awaitTermination()
        return found

    def start(self, ask: Callable[[DataFrame], DataFrame], found: list[Any], **trigger: Any) -> Any:
        def noted(frame: DataFrame, _: int) -> None:
            found.extend(rows(frame))

        writer = ask(self.frame()).writeStream.foreachBatch(noted)
        writer = writer.option("checkpointLocation", str(self.folder / "checkpoint"))
        return writer.trigger(**(trigger or {"availableNow": True})).start()


def _arrow(data_type: Any) -> pa.DataType:
    from pyspark.sql.pandas.types import to_arrow_type

    return pa.timestamp("us", "UTC") if data_type.typeName() == "timestamp" else to_arrow_type(data_type)


@pytest.fixture
def files(spark: SparkSession, tmp_path: Path) -> Callable[[str], Files]:
    return lambda schema: Files(spark, tmp_path, schema)


# -- frames that end -------------------------------------------------------------------------------------------------


def test_each_key_has_answers_of_its_own_in_order(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("a", 2, 5), ("b", 1, 7), ("a", 1, 1), (None, 2, 1), (None, 1, 1)], KV)

    assert alike(
        rows(watch(total(cur.v), frame.repartition(3), key="k", order_by="t")),
        [
            ("a", 1, 1, "defined"),
            ("a", 2, 6, "defined"),
            ("b", 1, 7, "defined"),
            (None, 1, 1, "defined"),
            (None, 2, 2, "defined"),
        ],
    )


def test_without_a_key_all_rows_are_one_stream(spark: SparkSession) -> None:
    frame = spark.range(100).repartition(7)

    assert rows(watch(total(cur.id), frame, order_by="id"))[-1] == (99, 4950, "defined")


def test_nan_is_a_key_and_zero_is_one_key(spark: SparkSession) -> None:
    keys = [NAN, -0.0, None, NAN, 0.0, None, 1.5]
    frame = spark.createDataFrame([(key, n) for n, key in enumerate(keys)], "k double, t long").repartition(3)

    assert sorted(row[2] for row in rows(watch(count(), frame, key="k", order_by="t"))) == [1, 1, 1, 1, 2, 2, 2]


def test_several_columns_are_a_key_together(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, "x", 1), (1, "y", 2), (1, "x", 3), (None, "x", 4)], "a int, b string, t long")

    assert alike(
        rows(watch({"n": count()}, frame, key=["a", "b"], order_by="t")),
        [
            (1, "x", 1, 1, "defined"),
            (1, "x", 3, 2, "defined"),
            (1, "y", 2, 1, "defined"),
            (None, "x", 4, 1, "defined"),
        ],
    )


def test_only_changes_are_given(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 1), (2, 1), (3, 2), (4, 2)], V)

    assert rows(watch(greatest(cur.v, before=0), frame, order_by="t", outputs="changes")) == [
        (1, 1, "defined"),
        (3, 2, "defined"),
    ]


def test_only_alarms_are_given(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 1), (2, 9), (3, 2)], V)

    assert rows(watch(current(cur.v) < 5, frame, order_by="t", outputs="alarms")) == [(2, False, "defined")]


def test_nan_and_null_are_kept_apart_in_fields(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, NAN), (2, None), (3, 1.0)], "t long, v double")

    assert [row[1] for row in rows(watch(current(cur.v != cur.v), frame, order_by="t"))] == [True, False, False]


KEPT = (
    "big long, d double, s string, at timestamp, day date, is boolean, raw binary, dec decimal(20,2), "
    "list array<int>, names map<string,int>, both struct<x:int,y:string>"
)
FULL = (2**53 + 1, NAN, "x", at(1), dt.date(2024, 1, 1), True, b"ab", Decimal("1.25"), [1, 2], {"a": 1}, (1, "y"))


def test_kept_columns_of_all_types_stay_as_they_are(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, *FULL), (2, *([None] * len(FULL)))], f"t long, {KEPT}")

    found = watch(count(), frame, order_by="t", keep=frame.columns[1:])
    assert alike(rows(found.select(frame.columns)), rows(frame))


@pytest.mark.parametrize("name", ["_tag", "a b", "straße"])
def test_columns_may_have_names_like_ours_and_with_blanks(spark: SparkSession, name: str) -> None:
    frame = spark.createDataFrame([("x", 1, 5), ("x", 2, 7)], KV).withColumnRenamed("k", name)

    assert rows(watch(total(cur.v), frame, key=name, order_by="t")) == [("x", 1, 5, "defined"), ("x", 2, 12, "defined")]


@pytest.mark.parametrize("name", ["a`b", "a.b"])
def test_fields_may_have_any_name_and_kept_columns_no_dots(spark: SparkSession, name: str) -> None:
    frame = spark.createDataFrame([(1, 5), (2, 7)], V).withColumnRenamed("v", name)

    assert rows(watch(total(cur[name]), frame, order_by="t")) == [(1, 5, "defined"), (2, 12, "defined")]
    with pytest.raises(QueryError, match="without dots and backticks"):
        watch(count(), frame, order_by="t", keep=name)


def test_tags_may_be_conditions_and_others_ignored(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 1), (2, 9), (3, None)], V)
    tags = {"high": "v > 5", "low": sf.col("v") <= 5}

    assert rows(watch(count("high"), frame, order_by="t", tags=tags, others="ignore")) == [
        (1, 0, "defined"),
        (2, 1, "defined"),
    ]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([(1, 1), (1, 2)], "different rows at"),
        ([(1, 1), (None, 2)], "as it orders them"),
        ([(1, 1), (2, None)], "operations that give a value for every item"),
        ([(1, 2**62), (2, 2**62)], "values that fit int64"),
    ],
    ids=["ties", "null order", "null field", "too large"],
)
def test_rows_that_cannot_be_asked_about_are_refused(spark: SparkSession, data: Any, message: str) -> None:
    with pytest.raises(Exception, match=message):
        watch(total(cur.v), spark.createDataFrame(data, V), order_by="t").collect()


# -- streams ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_stream_that_is_stopped_and_goes_on_gives_what_the_whole_gives(
    spark: SparkSession, files: Callable[[str], Files]
) -> None:
    schema = f"k double, t long, v double, {KEPT}"
    none = [None] * len(FULL)
    first = [[(NAN, 1, 0.5, *FULL), (None, 1, 1.0, *none)], [(NAN, 2, 2.0, *none), (-0.0, 1, NAN, *FULL)]]
    later = [[(NAN, 3, math.inf, *FULL), (0.0, 2, 1.0, *none), (None, 2, 3.0, *FULL)]]
    names = [each.split()[0] for each in KEPT.replace("(20,2)", "").split(", ")]
    stream = files(schema)

    def ask(frame: DataFrame) -> DataFrame:
        queries = {"sum": total(cur.v), "n": count(), "high": current(cur.v) > 1}
        return watch(queries, frame, key="k", order_by="t", keep=names)

    found = stream.put(*first).run(ask) + stream.put(*later).run(ask)

    whole = spark.createDataFrame([row for batch in [*first, *later] for row in batch], schema)
    expected = [(0.0 if row[0] == 0 else row[0], *row[1:]) for row in rows(ask(whole))]
    assert alike(found, expected)


@pytest.mark.slow
def test_without_a_key_a_stream_is_one(files: Callable[[str], Files]) -> None:
    found = files(V).put([(1, 5)], [(2, 7)]).run(lambda frame: watch(total(cur.v), frame, order_by="t"))

    assert found == [(1, 5, "defined"), (2, 12, "defined")]


def test_rows_that_come_too_late_are_said_to_be_and_counted(spark: SparkSession, files: Callable[[str], Files]) -> None:
    metrics = WatchMetrics()
    spark.streams.addListener(metrics)
    try:
        found = files(V).put([(3, 5)], [(2, 7), (4, 1)]).run(lambda frame: watch(total(cur.v), frame, order_by="t"))
        until = time.monotonic() + 20
        while metrics.totals().get("value", {}).get("answers") != 3 and time.monotonic() < until:
            time.sleep(0.1)
    finally:
        spark.streams.removeListener(metrics)

    assert found == [(3, 5, "defined"), (2, None, "late"), (4, 6, "defined")]
    assert metrics.totals() == {"value": {"answers": 3, "undefined": 0, "conflict": 0, "late": 1}}


def test_changes_go_on_over_micro_batches(files: Callable[[str], Files]) -> None:
    stream = files(V).put([(1, 1), (2, 1)], [(3, 1), (4, 9)])

    assert stream.run(lambda f: watch(greatest(cur.v, before=0), f, order_by="t", outputs="changes")) == [
        (1, 1, "defined"),
        (4, 9, "defined"),
    ]


def test_alarms_of_a_stream_are_rows_at_which_it_is_false(files: Callable[[str], Files]) -> None:
    stream = files(V).put([(1, 1), (2, 9)], [(3, 1), (4, 8)])

    assert stream.run(lambda f: watch(current(cur.v) < 5, f, order_by="t", outputs="alarms")) == [
        (2, False, "defined"),
        (4, False, "defined"),
    ]


def test_rows_that_wait_are_not_lost_by_a_restart(files: Callable[[str], Files]) -> None:
    stream = files("k string, t timestamp, v long").put([("a", at(3), 5), ("a", at(1), 4)])

    def ask(frame: DataFrame) -> DataFrame:
        return watch(total(cur.v), frame, key="k", order_by="t", wait="5 seconds")

    assert stream.run(ask) == []
    stream.put([("b", at(60), 0)], [("b", at(61), 0)])
    assert [(key, value, status) for key, _, value, status in stream.run(ask) if key == "a"] == [
        ("a", 4, "defined"),
        ("a", 9, "defined"),
    ]


def test_a_checkpoint_of_another_query_is_refused(files: Callable[[str], Files]) -> None:
    stream = files(V).put([(1, 5), (2, 6)])
    stream.run(lambda f: watch(total(cur.v), f, order_by="t"))
    stream.put([(3, 1)])

    with pytest.raises(Exception, match="a checkpoint of the same queries"):
        stream.run(lambda f: watch(count(), f, order_by="t"))


@pytest.mark.slow
def test_wait_puts_rows_in_order_and_a_key_is_forgotten_after_its_time(files: Callable[[str], Files]) -> None:
    stream = files("k string, t timestamp, v long").put(
        [("a", at(3), 5), ("b", at(1), 4)],
        [("a", at(2), 7), ("b", at(14), 1)],
        [("b", at(40), 1)],
        [("b", at(0), 100), ("b", at(59), 1)],
        [("a", at(50), 1), ("b", at(90), 0)],
    )

    found = stream.run(
        lambda f: watch(total(cur.v), f, key="k", order_by="t", wait="5 seconds", forget_after="20 seconds")
    )
    told = [(key, int(when.second), value, status) for key, when, value, status in found]
    assert [each for each in told if each[0] == "a"] == [
        ("a", 2, 7, "defined"),
        ("a", 3, 12, "defined"),
        ("a", 50, 1, "defined"),
    ]
    assert ("b", 0, None, "late") in told


@pytest.mark.slow
def test_a_key_without_rows_is_forgotten_by_the_clock(files: Callable[[str], Files]) -> None:
    found: list[Any] = []
    stream = files(KV).put([("a", 1, 5)])
    query = stream.start(
        lambda f: watch(total(cur.v), f, key="k", order_by="t", forget_after="1 milliseconds"),
        found,
        processingTime="200 milliseconds",
    )
    try:
        _wait_for(lambda: len(found) == 1 and (query.lastProgress or {"batchId": 0})["batchId"] > 2)
        stream.put([("a", 2, 7)])
        _wait_for(lambda: len(found) == 2)
    finally:
        query.stop()

    assert found == [("a", 1, 5, "defined"), ("a", 2, 7, "defined")]


def _wait_for(test: Callable[[], bool], seconds: float = 40) -> None:
    until = time.monotonic() + seconds
    while not test() and time.monotonic() < until:
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([("v", 1, 1), ("zz", 2, 1)], "a row without a tag"),
        pytest.param([("v", 1, 2**53), ("v", 1, 2**53 + 1)], "different rows at", marks=pytest.mark.slow),
        pytest.param([("v", 1, 1), ("v", None, 1)], "as it orders rows", marks=pytest.mark.slow),
    ],
    ids=["tag", "ties", "null order"],
)
def test_a_stream_stops_with_our_words(files: Callable[[str], Files], data: Any, message: str) -> None:
    with pytest.raises(Exception, match=message):
        files(KV).put(data).run(lambda f: watch(total(cur.v, "v"), f, order_by="t", tags="k"))


# -- formulas --------------------------------------------------------------------------------------------------------


def promise(most: int) -> Any:
    return tight.always(tight.all_records("output", lambda row: row.v < most))


def test_a_formula_is_open_then_fails_also_after_a_restart(files: Callable[[str], Files], tmp_path: Path) -> None:
    stream = files(V).put([(1, 1)], [(2, 2)])
    watched = watch(promise(5), stream.frame(), checkpoint=tmp_path / "promise")
    watched.query.processAllAvailable()
    watched.stop()
    assert (watched.value, watched.letters, watched.verdict().outcome) == (None, 2, Outcome.UNDECIDED)

    stream.put([(3, 9)])
    again = watch(promise(5), stream.frame(), checkpoint=tmp_path / "promise")
    try:
        assert again.wait(40) is False
    finally:
        again.stop()
    assert (again.letters, again.verdict().outcome) == (3, Outcome.FAILS)


def test_a_formula_that_is_decided_holds(files: Callable[[str], Files], tmp_path: Path) -> None:
    stream = files(V).put([(1, 1)], [(2, 2)])
    watched = watch(tight.always(lambda letter: len(letter.output) == 1, during=2), stream.frame(), checkpoint=tmp_path)
    try:
        assert watched.wait(40) is True
    finally:
        watched.stop()

    assert watched.verdict().outcome is Outcome.HOLDS


def test_a_micro_batch_that_is_done_again_is_one_letter(files: Callable[[str], Files], tmp_path: Path) -> None:
    stream = files(V).put([(1, 1)], [(2, 2)])
    watched = watch(promise(5), stream.frame(), checkpoint=tmp_path / "promise")
    watched.query.processAllAvailable()
    watched.stop()
    commits = tmp_path / "promise" / "query" / "commits"
    for path in (commits / "1", commits / ".1.crc"):
        path.unlink(missing_ok=True)

    again = watch(promise(5), stream.frame(), checkpoint=tmp_path / "promise")
    again.query.processAllAvailable()
    again.stop()
    assert again.letters == 2


# -- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda f: watch(total(cur.v), f), "no order_by="),
        (lambda f: watch(total(cur.v), f, order_by="tt"), "a column 'tt'"),
        (lambda f: watch(total(cur.w), f, order_by="t"), "a column 'w'"),
        (lambda f: watch(total(), f, order_by="t"), "the column that is cur"),
        (lambda f: watch(total(cur.v), f, order_by="t", outputs="alarms"), "true or false"),
        (lambda f: watch(total(cur.v), f, order_by="t", outputs="all"), "'values' or 'changes' or 'alarms'"),
        (lambda f: watch(total(cur.v), f, order_by="t", wait="5 seconds"), "a streaming DataFrame"),
        (lambda f: watch(total(cur.v), f, order_by="t", key=lambda row: row.v), "names of columns"),
        (lambda f: watch("total(", f, order_by="t"), "total"),
        (lambda f: watch({}, f, order_by="t"), "a query or more"),
        (lambda f: watch(count("a") + count("b"), f, order_by="t"), "the tag of each row"),
        (lambda f: watch({"t": total(cur.v)}, f, order_by="t"), "names of answers"),
        (lambda f: watch(promise(5), f, checkpoint="somewhere"), "a streaming DataFrame"),
        (lambda f: watch(promise(5), f), "no checkpoint="),
    ],
)
def test_what_cannot_be_asked_is_refused_at_once(spark: SparkSession, ask: Any, message: str) -> None:
    with pytest.raises(StreamtightError, match=message):
        ask(spark.createDataFrame([(1, 1)], V))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"order_by": "k"}, "order_by='k'"),
        ({"order_by": "t", "wait": "5 seconds"}, "a timestamp first in order_by"),
        ({"order_by": "t", "forget_after": "soon"}, "forget_after"),
    ],
    ids=str,
)
def test_what_a_stream_cannot_do_is_refused_at_once(files: Callable[[str], Files], more: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        watch(total(cur.v), files(KV).frame(), **more)


def test_a_type_that_nobody_knows_is_refused(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="quux"):
        watch(total(cur.v), spark.createDataFrame([(1, 1)], V), order_by="t", gives={"value": "quux"})
