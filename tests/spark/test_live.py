"""Two streams compared while they run. Rows come from folders, a file for each micro-batch."""

from __future__ import annotations

import itertools
import json
import pickle
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, LongType, StructField, StructType

import streamtight as tight
from streamtight import Kind, Outcome, ordered, same, unordered
from streamtight.errors import DependenceError, RowError, TraceError, UnsupportedError
from streamtight.method.compare.matcher import Place
from streamtight.spark import live as module
from streamtight.spark.live import Alarm, LiveComparison, compare_live
from streamtight.spark.live_book import Book, Limits
from streamtight.spark.live_bucket import Bucket, Kept, Report, Waiting, restored, storable

GPS = Kind("GPS", taxi=int, x=int)
Rows = list[tuple[int, int]]


class Streams:
    """Two folders that grow, and comparisons of them."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.checkpoint = folder / "checkpoint"
        self._numbers = itertools.count()
        self._started: list[LiveComparison] = []

    def read(self, side: str) -> DataFrame:
        (self.folder / side).mkdir(exist_ok=True)
        reader = self.spark.readStream.schema("taxi long, x long").option("maxFilesPerTrigger", 1)
        return reader.json(str(self.folder / side))

    def put(self, *, left: Rows = [], right: Rows = []) -> None:  # noqa: B006 - never changed
        for side, rows in (("left", left), ("right", right)):
            if rows:
                text = "\n".join(json.dumps({"taxi": taxi, "x": x}) for taxi, x in rows)
                name = f"{next(self._numbers):04}.json"
                (self.folder / side).mkdir(exist_ok=True)
                (self.folder / name).write_text(text)
                (self.folder / name).rename(self.folder / side / name)  # at once, since Spark reads meanwhile

    def compare(self, **options: Any) -> LiveComparison:
        options = {"upto": same("taxi"), "gives": GPS, "checkpoint": self.checkpoint, **options}
        left = options.pop("left", None) or self.read("left")
        self._started.append(compare_live(left, self.read("right"), **options))
        return self._started[-1]

    def stop(self) -> None:
        for live in self._started:
            live.stop()


@pytest.fixture
def streams(spark: SparkSession, tmp_path: Path) -> Iterator[Streams]:
    made = Streams(spark, tmp_path)
    yield made
    made.stop()


def wait_for(condition: Callable[[], bool], *, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def counts(live: LiveComparison) -> tuple[int, int, int, int]:
    metrics = live.metrics
    assert metrics is not None
    return metrics.left, metrics.right, metrics.unmatched_left, metrics.unmatched_right


# -- verdicts --------------------------------------------------------------------------------------------------------


def test_streams_that_differ_in_the_order_of_different_keys_hold(streams: Streams) -> None:
    provider = streams.spark.conf.get("spark.sql.streaming.stateStore.providerClass")
    streams.put(left=[(1, 0), (2, 0), (1, 1)], right=[(2, 0), (1, 0)])

    live = streams.compare()
    live.query.processAllAvailable()
    waiting = live.verdict()
    streams.put(right=[(1, 1)])
    live.query.processAllAvailable()

    assert live.way == "8 buckets by taxi, 2 tasks"
    assert waiting.undecided
    assert "still running with 1 unmatched on the left and 0 on the right" in str(waiting)
    assert "the oldest is GPS(taxi=1, x=1) of the left" in str(waiting)
    assert str(live.verdict()) == (
        "HOLDS  left and right give the same stream up to same('taxi') (observed on 6 events)"
    )
    assert [(one.left, one.right, one.unmatched, one.matched) for one in live.history] == [(3, 2, 1, 2), (3, 3, 0, 1)]
    assert live.history[0].longest_wait_seconds == 0 < live.history[1].longest_wait_seconds
    assert live.metrics is not None
    assert live.metrics.oldest_seconds is None
    assert live.alarms == ()
    assert "rocksdb" in json.dumps(live.query.lastProgress["stateOperators"][0]["customMetrics"])
    assert streams.spark.conf.get("spark.sql.streaming.stateStore.providerClass") == provider


def test_a_swap_in_one_key_is_found_with_its_rows_and_the_other_keys_go_on(streams: Streams) -> None:
    told: list[Alarm] = []
    streams.put(left=[(1, 0), (1, 1), (2, 7)], right=[(1, 1), (1, 0)])

    live = streams.compare(on_alarm=told.append)
    live.query.processAllAvailable()
    streams.put(left=[(1, 2)], right=[(2, 7), (1, 2), (1, 3)])
    live.query.processAllAvailable()
    live.stop()

    verdict = live.verdict()
    assert verdict.fails
    assert verdict.counterexample is not None
    assert verdict.counterexample.finding == "DIVERGED"
    assert verdict.counterexample.explanation == (
        "right event 1 is GPS(taxi=1, x=1), but left event 1, GPS(taxi=1, x=0), has not come on the right, and "
        "same('taxi') keeps their order; expected GPS(taxi=1, x=0) (batch 0; positions count in bucket 5 of 8)"
    )
    assert verdict.counterexample.failing_reruns == verdict.counterexample.reruns == 1
    assert live.difference is not None
    assert live.difference.came == Place("right", 1, GPS(1, 1))
    assert [alarm.finding for alarm in told] == ["DIVERGED"]
    assert "unmatched rows" in live.picture()
    assert ("unmatched rows" in verdict.picture()) == (len(live.history) > 1)  # under the rows that differ
    assert "too early" in verdict.picture()
    assert counts(live) == (4, 5, 0, 0), "a refuted bucket counts rows, and remembers none"
    assert live.metrics is not None
    assert live.metrics.refuted_buckets == 1


@pytest.mark.slow
def test_a_lost_row_raises_the_alarm_by_events_and_by_seconds(streams: Streams) -> None:
    told: list[Alarm] = []
    streams.put(left=[(1, 0), (1, 1)], right=[(1, 1)])

    live = streams.compare(upto=unordered, buckets=1, stuck_after_events=4, on_alarm=told.append)
    live.query.processAllAvailable()
    streams.put(left=[(2, 0)], right=[(2, 0)])
    live.query.processAllAvailable()
    assert live.alarms == ()
    streams.put(left=[(3, 0)], right=[(3, 0)])
    live.query.processAllAvailable()
    wait_for(lambda: len(told) == 1)
    live.stop()

    assert live.alarms == tuple(told)
    assert str(told[0]) == (
        "STUCK: GPS(taxi=1, x=0) of the left has not come on the right while 4 more rows came (limit 4)"
    )
    assert told[0].stuck is not None
    assert (told[0].stuck.side, told[0].stuck.event) == ("left", GPS(1, 0))
    assert "which is stuck" in str(live.verdict())

    # The limit by seconds, with no further row: no batch runs, and the row came before the restart.
    again = streams.compare(upto=unordered, stuck_after_seconds=0.2)
    assert again.alarms == tuple(told)
    streams.put(right=[(9, 9)])
    wait_for(lambda: len(again.alarms) == 2)

    assert again.alarms[1].stuck is not None
    assert again.alarms[1].stuck.event == GPS(9, 9)
    assert "of the right has not come on the left for" in again.alarms[1].explanation


@pytest.mark.slow
def test_a_relation_without_a_key_runs_in_one_task_and_says_so(streams: Streams) -> None:
    streams.put(left=[(1, 0), (2, 0)], right=[(1, 0), (2, 0)])

    live = streams.compare(upto=ordered)
    live.query.processAllAvailable()

    assert live.way == "one task: ordered has no key that all its clauses share"
    assert live.verdict().holds
    assert live.query.lastProgress["stateOperators"][0]["numShufflePartitions"] == 1


def test_rows_of_one_key_in_two_partitions_of_a_batch_are_a_race(streams: Streams) -> None:
    streams.put(left=[(1, 0), (1, 1), (1, 2), (1, 3)], right=[(1, 0), (1, 1), (1, 2), (1, 3)])

    live = streams.compare(left=streams.read("left").repartition(2))
    live.query.processAllAvailable()

    verdict = live.verdict()
    assert verdict.fails
    assert verdict.counterexample is not None
    assert verdict.counterexample.finding == "RACE"
    assert "on the left, batch 0 delivers GPS(taxi=1, x=" in verdict.counterexample.explanation
    assert "so they may arrive either way; but same('taxi') orders them" in verdict.counterexample.explanation


# -- restarts --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_restart_keeps_what_is_unmatched_and_a_replayed_batch_counts_once(streams: Streams) -> None:
    streams.put(left=[(1, 0), (2, 0)], right=[(1, 0)])
    live = streams.compare(buckets=4)
    live.query.processAllAvailable()
    streams.put(left=[(1, 1)])
    live.query.processAllAvailable()
    live.stop()
    before = counts(live)
    stopped = live.verdict()
    for commit in (streams.checkpoint / "spark" / "commits").glob("*1*"):
        commit.unlink()  # as if it had stopped just before: batch 1 was judged, but not committed

    again = streams.compare()
    known_at_once = counts(again)
    again.query.processAllAvailable()
    replayed = counts(again)
    streams.put(right=[(2, 0), (1, 1)])
    again.query.processAllAvailable()

    assert before == known_at_once == replayed == (3, 1, 2, 0)
    assert "stopped with 2 unmatched on the left" in str(stopped)
    assert [one.batch for one in again.history] == [1, 2]
    assert again.way == "4 buckets by taxi, 2 tasks"
    assert counts(again) == (3, 3, 0, 0)
    assert again.verdict().holds


def test_a_checkpoint_is_for_one_comparison(streams: Streams) -> None:
    streams.compare(every=None).query.awaitTermination()

    with pytest.raises(TraceError, match=r"with upto \"same\('taxi'\)\"; came upto 'ordered'"):
        streams.compare(upto=ordered)
    with pytest.raises(TraceError, match="with buckets 8; came buckets 3"):
        streams.compare(buckets=3)


# -- what rows hold --------------------------------------------------------------------------------------------------


def test_values_of_all_types_come_as_they_are_in_events(streams: Streams) -> None:
    def typed(frame: DataFrame) -> DataFrame:
        return frame.select(
            F.col("taxi").alias("a `b`.c"),
            (F.col("x") - 5).cast("double").alias("double"),
            F.lit(None).cast("int").alias("nothing"),
            F.timestamp_seconds(F.col("x")).alias("time"),
            F.lit("2024-02-29").cast("date").alias("day"),
            F.lit("1.50").cast("decimal(5,2)").alias("price"),
            F.struct(F.col("x"), F.array(F.timestamp_seconds(F.col("x"))).alias("times")).alias("nested"),
            F.create_map(F.lit("k"), F.struct("x")).alias("map"),
            F.lit(b"\x00\xff").alias("bytes"),
        )

    streams.put(left=[(1, 7)])
    right = typed(streams.read("right")).withColumn("double", F.col("double").cast("float"))

    live = compare_live(
        typed(streams.read("left")), right, upto=unordered, checkpoint=streams.checkpoint, every=None, tasks=1
    )
    live.query.awaitTermination()

    assert live.way == "4 buckets by the whole row, 1 task"
    verdict = live.verdict(ended=True)
    assert verdict.counterexample is not None
    assert verdict.counterexample.finding == "LEFT_OVER"
    assert verdict.counterexample.expected is not None
    [event] = verdict.counterexample.expected
    at = datetime.fromtimestamp(7, UTC).astimezone().replace(tzinfo=None)
    assert event.kind.name == "row"
    assert event[1:5] == (1, 2.0, None, at)
    assert event[6:8] == (Decimal("1.50"), event.kind.fields["nested"](7, (at,)))
    assert event[8] == {"k": event[8]["k"]}
    assert event[8]["k"].x == 7
    assert event[9] == b"\x00\xff"


def test_equal_numbers_go_to_the_same_bucket(spark: SparkSession) -> None:
    texts = ["0.0", "-0.0", "NaN", "1.5"]
    rows = [(text, float(text)) for text in texts]
    columns = StructType([StructField("d", DoubleType())])
    frame = spark.createDataFrame(rows, "text string, d double").select(
        F.hash("d").alias("plain"), F.hash(F.array("d")).alias("array"), F.hash(F.struct("d")).alias("struct")
    )

    zero, minus_zero, nan, other = frame.collect()

    assert zero == minus_zero
    assert len({zero["plain"], nan["plain"], other["plain"]}) == 3
    assert module._split(unordered, None, columns).columns == ("d",)


# -- what goes wrong -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_wrong_question_that_only_the_rows_show_is_raised_as_it_is(streams: Streams) -> None:
    streams.put(left=[(1, 0), (1, 1)])

    live = streams.compare(upto=tight.depends(lambda a, b: a.x < b.x))
    wait_for(lambda: not live.query.isActive)

    with pytest.raises(DependenceError, match="needed a symmetric relation"):
        live.verdict()


def test_an_error_of_a_job_is_raised_with_its_words(streams: Streams) -> None:
    streams.put(left=[(1, 0)])

    live = streams.compare(left=streams.read("left").withColumn("x", F.expr("assert_true(x > 0) is null").cast("long")))
    wait_for(lambda: not live.query.isActive)

    with pytest.raises(tight.errors.JobError, match=r"the job, in batch 0: .*is not true"):
        live.verdict()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"checkpoint": None}, r"compare_live\(checkpoint=...\): needed a folder; came None"),
        ({"checkpoint": ""}, r"compare_live\(checkpoint=...\): needed a folder; came ''"),
        ({"upto": "taxi"}, r"compare_live\(upto=...\): needed a dependence or a schema; came 'taxi'"),
        ({"buckets": 0}, r"compare_live\(buckets=...\): needed a whole number from 1; came 0"),
        (
            {"stuck_after_events": 1.5},
            r"compare_live\(stuck_after_events=...\): needed a whole number from 1; came 1.5",
        ),
        ({"stuck_after_seconds": 0}, r"compare_live\(stuck_after_seconds=...\): needed seconds, more than 0; came 0"),
        ({"every": -1}, r"compare_live\(every=...\): needed seconds, 0 or more; came -1"),
        ({"equal": 3}, r"compare_live\(equal=...\): needed an equality"),
        ({"upto": same("ride")}, r"same\('ride'\): needed a field 'ride' in every kind"),
        ({"gives": Kind("Tip", ride=int)}, r"compare_live\(gives=...\): needed the columns ride; came taxi, x"),
        ({"gives": None, "upto": same("taxi", of=GPS)}, r"compare_live\(gives=...\): needed what the rows are, since"),
        ({"gives": GPS, "upto": tight.Bag(Kind("Tip", ride=int))}, "needed a relation that knows every kind of row"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused(streams: Streams, options: dict[str, Any], message: str) -> None:
    with pytest.raises(tight.StreamtightError, match=message):
        streams.compare(**options)


def test_streams_that_cannot_be_compared_are_refused(streams: Streams) -> None:
    left, static = streams.read("left"), streams.spark.range(3)

    def compare(one: Any, other: Any) -> None:
        compare_live(one, other, upto=unordered, checkpoint=streams.checkpoint)

    with pytest.raises(TraceError, match=r"compare_live\(right\): needed a streaming DataFrame; came a static one"):
        compare(left, static)
    with pytest.raises(TraceError, match=r"compare_live\(left\): needed a streaming DataFrame; came 'left'"):
        compare("left", left)
    with pytest.raises(RowError, match="came taxi, x on the left, taxi, y on the right"):
        compare(left, left.withColumnRenamed("x", "y"))
    with pytest.raises(
        RowError, match="column 'x': needed the same type on both sides; came bigint on the left, strin"
    ):
        compare(left, left.withColumn("x", F.col("x").cast("string")))
    elsewhere = streams.spark.newSession().readStream.schema("taxi long, x long").json(str(streams.folder / "left"))
    with pytest.raises(TraceError, match="needed streams of one session; came streams of two"):
        compare(left, elsewhere)
    with pytest.raises(UnsupportedError, match="needed two streams that Spark can put into one query, in append mode"):
        compare(left.groupBy("taxi").count(), left.groupBy("taxi").count())


def test_missing_packages_are_named_with_the_command_that_installs_them(
    streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_NEEDED_PACKAGES", {"no_such_package": "protobuf", "json": "json"})

    with pytest.raises(UnsupportedError, match=r"came no protobuf. Try: pip install protobuf, here and where"):
        streams.compare()


def test_a_spark_connect_session_is_refused(streams: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "is_connect", lambda spark: True)

    with pytest.raises(UnsupportedError, match="needed a classic Spark session"):
        streams.compare()


def test_a_comparison_stops_in_the_middle_of_a_batch_without_a_complaint(streams: Streams) -> None:
    slow = F.udf(lambda x: time.sleep(20) or x, "long")
    streams.put(left=[(1, 0)], right=[(1, 0)])

    live = streams.compare(left=streams.read("left").withColumn("x", slow("x")))
    wait_for(lambda: bool(streams.spark.sparkContext.statusTracker().getActiveJobsIds()))
    live.stop()

    assert live.verdict().reason == "vacuous: no row has come"


@pytest.mark.slow
def test_what_an_alarm_function_raises_is_raised_when_the_comparison_stops(streams: Streams) -> None:
    def broken(alarm: Alarm) -> None:
        raise ValueError("no mail server")

    streams.put(left=[(1, 0)])
    live = streams.compare(upto=unordered, stuck_after_seconds=0.01, on_alarm=broken)
    wait_for(lambda: len(live.alarms) == 1)

    with pytest.raises(tight.errors.JobError, match=r"on_alarm=broken: .*came ValueError: no mail server"):
        live.stop()
    assert live.verdict().undecided


# -- how rows are split ----------------------------------------------------------------------------------------------

COLUMNS = StructType([StructField("taxi", LongType()), StructField("x", LongType())])


@pytest.mark.parametrize(
    ("upto", "equal", "expected"),
    [
        (same("taxi"), None, ("taxi",)),
        (same("taxi", "x") | same("taxi"), None, ("taxi",)),
        (unordered, None, ("taxi", "x")),
        (unordered, tight.equality(ignore="x"), ("taxi",)),
        (same("taxi", "x"), tight.equality(places={"x": 1}), ("taxi",)),
        (same("x"), tight.equality(buckets={"x": 5}), "compares none of x exactly"),
        (same("taxi"), tight.equality(by=lambda e: e.x), "equal= is a function"),
        (same("taxi"), lambda a, b: a == b, "equal= is a function"),
        (same("taxi") | same("x"), None, "has no key that all its clauses share"),
    ],
)
def test_rows_are_split_by_what_equal_and_dependent_rows_share(upto: Any, equal: Any, expected: Any) -> None:
    split = module._split(upto, equal, COLUMNS)

    if isinstance(expected, str):
        assert split.columns == ()
        assert expected in split.why_not
    else:
        assert split.columns == expected


def test_a_schema_says_what_the_rows_are() -> None:
    assert module._table(None, tight.Bag(GPS), COLUMNS).kinds == (GPS,)


# -- the parts alone -------------------------------------------------------------------------------------------------


def step(
    kept: Kept,
    at: int,
    *pieces: tuple[int, int, Rows],
    upto: tight.Dependence = unordered,
    equal: tight.Equality | None = None,
) -> tuple[Kept, Report]:
    """What a bucket makes of these pieces: side, partition and rows of each."""
    bucket = Bucket(upto, equal, [GPS])
    bucket._prepare()
    packed = [
        {"at": at, "side": side, "partition": partition, "chunk": 0, "rows": pickle.dumps(rows)}
        for side, partition, rows in pieces
    ]
    kept, report = bucket.step(kept, packed)
    return restored(storable(kept, [GPS]), [GPS]), pickle.loads(pickle.dumps(report))


def test_a_bucket_keeps_the_unmatched_rows_with_the_time_when_they_came() -> None:
    kept, first = step(Kept(), 1_000, (0, 0, [(1, 0), (1, 1)]))
    kept, second = step(kept, 3_500, (0, 0, [(1, 2)]), (1, 0, [(1, 1)]))

    assert kept == Kept(False, (3, 1), ([(1, 1_000, GPS(1, 0)), (3, 3_500, GPS(1, 2))], []))
    assert first.oldest == (Waiting(Place("left", 1, GPS(1, 0)), 1_000), Waiting(Place("left", 2, GPS(1, 1)), 1_000))
    assert (second.unmatched, second.matched, second.longest_wait) == ((2, 0), 1, 2_500)


def test_equal_rows_in_two_partitions_are_no_race() -> None:
    in_order = same("taxi")
    alike = [(0, 0, [(1, 0)]), (0, 1, [(1, 0)]), (1, 0, [(1, 0), (1, 0)])]
    unlike = [(0, 0, [(1, 0)]), (0, 1, [(1, 1)]), (1, 0, [(1, 5), (1, 6)])]

    assert step(Kept(), 0, *alike, upto=in_order)[1].matched == 2
    assert step(Kept(), 0, *unlike, upto=in_order)[0].refuted
    assert step(Kept(), 0, *unlike, upto=in_order, equal=tight.equality(ignore="x"))[1].matched == 2


def test_keys_that_stay_in_their_partition_are_no_race() -> None:
    pieces = [(0, 0, [(1, 0), (1, 1)]), (0, 3, [(2, 0)]), (1, 0, [(2, 0), (1, 0), (1, 1)])]

    assert step(Kept(), 0, *pieces, upto=same("taxi"))[1].matched == 3
    assert step(Kept(), 0, *pieces, upto=ordered)[0].refuted


def report_of(at: int, left: int, right: int, *waiting: Waiting) -> Report:
    unmatched = [sum(one.place.side == side for one in waiting) for side in ("left", "right")]
    return Report(at, (left, right), (unmatched[0], unmatched[1]), waiting)


def take(book: Book, batch: int, reports: dict[int, Report], **limits: Any) -> list[Alarm]:
    at = next(iter(reports.values())).at
    return book.take(batch, reports, buckets=2, now=at + 500, limits=Limits(**limits))


LOST = Waiting(Place("left", 1, GPS(1, 0)), 1_000)


def test_a_batch_that_comes_again_replaces_what_it_gave_even_if_it_gives_something_else() -> None:
    book = Book()
    take(book, 0, {0: report_of(1_000, 3, 3), 1: report_of(1_000, 1, 0, LOST)})
    take(book, 1, {0: report_of(2_000, 9, 9)})
    take(book, 1, {1: report_of(2_000, 1, 1)})

    assert book.metrics is not None
    assert (book.metrics.left, book.metrics.right, book.metrics.unmatched) == (4, 4, 0)


def test_a_bucket_without_new_rows_still_counts_and_its_row_gets_stuck_by_the_rows_of_others() -> None:
    book = Book()
    take(book, 0, {1: report_of(1_000, 1, 0, LOST)}, events=1_000)
    first = take(book, 1, {0: report_of(2_000, 900, 99)}, events=1_000)
    second = take(book, 2, {0: report_of(3_000, 900, 100)}, events=1_000)
    third = take(book, 3, {0: report_of(4_000, 1_900, 100)}, events=1_000)

    assert (first, third) == ([], []), "an alarm comes once"
    assert [alarm.stuck for alarm in second] == [LOST.place]
    assert book.marks == [(2_000, 1_000), (4_000, 2_001)], "those a hundredth of the limit apart, and no older ones"


def test_the_time_in_which_the_comparison_did_not_run_does_not_count() -> None:
    book = Book()
    take(book, 0, {0: report_of(1_000, 1, 0, LOST)})
    book.alive = 2_000
    book.resume(now=902_000)

    assert book.oldest_seconds(now=902_500) == 1.5
    assert book.stuck(Limits(seconds=2.0), now=902_500) == []
    assert [alarm.stuck for alarm in book.stuck(Limits(seconds=2.0), now=903_000)] == [LOST.place]


def test_old_alarms_are_forgotten_but_not_what_refutes() -> None:
    book = Book()
    told = [Alarm("STUCK", "", datetime.now(UTC), n, 0, LOST.place) for n in range(1_200)]
    refuting = Alarm("RACE", "", datetime.now(UTC), 0, 0)
    book.alarms = [refuting, *told]

    book.stuck(Limits(), now=0)

    assert book.alarms == [refuting, *told[200:]]


def test_the_verdict_of_nothing_is_undecided(streams: Streams) -> None:
    live = streams.compare(every=None)
    live.query.awaitTermination()

    assert live.metrics is None
    assert live.verdict().outcome is Outcome.UNDECIDED
    assert live.verdict().reason == "vacuous: no row has come"
