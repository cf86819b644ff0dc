"""Streams: exactly these rows in exactly this micro-batch and partition, and every output row back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import streamtight as tight
from streamtight import Cause, Kind, Restart, Schedule
from streamtight.errors import JobError, RowError

pytestmark = pytest.mark.usefixtures("spark")

N, KV = Kind("N", n=int), Kind("KV", k=str, v=int)
Timed = Kind("Timed", k=str, t=datetime)
Ride, Fare = Kind("Ride", ride=int, taxi=str), Kind("Fare", ride=int, cents=int)
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def numbers(*batches: tuple[tuple[int, ...], ...], **others: Any) -> Schedule:
    return Schedule(tuple(tuple(tuple(N(n) for n in partition) for partition in batch) for batch in batches), **others)


def rows_of(run: tight.Run) -> list[list[list[tuple[object, ...]]]]:
    return [[[tuple(event)[1:] for event in partition] for partition in step.output] for step in run.steps]


def sorted_rows_of(run: tight.Run) -> list[list[tuple[Any, ...]]]:
    return [sorted(row for partition in batch for row in partition) for batch in rows_of(run)]


def at(second: int) -> datetime:
    return datetime(2024, 1, 1) + timedelta(seconds=second)


@pytest.fixture
def own_settings(spark: SparkSession) -> Iterator[dict[str, str]]:
    """The session as someone may have set it up, unlike anything that a run needs."""
    wanted = {
        "spark.sql.shuffle.partitions": "7",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.codegen.wholeStage": "true",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.numRecentProgressUpdates": "3",
        "spark.sql.streaming.minBatchesToRetain": "5",
    }
    before = {name: spark.conf.get(name) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    yield wanted
    for name, value in before.items():
        spark.conf.set(name, value)


def all_settings(spark: SparkSession) -> dict[str, str]:
    return dict(spark.conf.getAll)


# -- batches and partitions ------------------------------------------------------------------------------------------


def test_rows_are_in_their_batch_their_partition_and_their_order() -> None:
    schedule = numbers(((3, 1), (), (2,)), ((),), ((4,),), ((), ()), ((5,), (7, 6)))

    run = tight.run(lambda rows: rows.select("n", F.spark_partition_id()), schedule, takes=N)

    assert rows_of(run) == [
        [[(3, 0), (1, 0)], [], [(2, 2)]],
        [[]],
        [[(4, 0)]],
        [[], []],
        [[(5, 0)], [(7, 1), (6, 1)]],
    ]


def test_steps_tell_what_went_in_and_why() -> None:
    schedule = numbers(((1,), ()), ((),), ((2, 3),))

    run = tight.run(lambda rows: rows, schedule, takes=N, gives=N)

    assert [(step.batch, step.cause) for step in run.steps] == [(0, Cause.DATA), (1, Cause.DATA), (2, Cause.DATA)]
    assert tuple(step.input for step in run.steps) == run.batches == run.committed == schedule.batches
    assert run.events == (N(1), N(2), N(3))


def test_a_filter_leaves_its_partitions_empty() -> None:
    run = tight.run(lambda rows: rows.filter("n > 1"), numbers(((1,), (2,)), ((0,), (1,))), takes=N)

    assert rows_of(run) == [[[], [(2,)]], [[], []]]


def test_many_batches_come_one_by_one() -> None:
    schedule = Schedule.of([N(n) for n in range(40)], cuts=range(1, 40))

    run = tight.run(lambda rows: rows, schedule, takes=N, gives=N)

    assert [[event.n for event in step.output[0]] for step in run.steps] == [[n] for n in range(40)]


def test_many_rows_keep_their_order() -> None:
    schedule = Schedule.of([N(n) for n in range(12_000)], cuts=[11_000], partitions=2)

    run = tight.run(lambda rows: rows, schedule, takes=N, gives=N)

    assert run.batches == schedule.batches


@pytest.mark.parametrize("width", [1, 3])
def test_a_shuffle_has_as_many_partitions_as_the_schedule_says(width: int) -> None:
    schedule = Schedule.of([KV("a", 1), KV("b", 2), KV("a", 3)], cuts=[2], shuffle_partitions=width)

    run = tight.run(lambda rows: rows.groupBy("k").agg(F.sum("v")), schedule, takes=KV, mode="update")

    assert [len(step.output) for step in run.steps] == [width, width]
    assert sorted_rows_of(run) == [[("a", 1), ("b", 2)], [("a", 4)]]


def test_steps_tell_how_long_they_took() -> None:
    run = tight.run(lambda rows: rows, numbers(((1,),), ((2,),)), takes=N)

    assert [step.milliseconds["triggerExecution"] >= step.milliseconds["addBatch"] for step in run.steps] == [True] * 2


def test_every_step_has_a_report_even_if_the_session_keeps_few(own_settings: dict[str, str]) -> None:
    schedule = Schedule.of([KV("a", n) for n in range(6)], cuts=range(1, 6))

    run = tight.run(lambda rows: rows.groupBy("k").count(), schedule, takes=KV, mode="update")

    assert [step.state_rows for step in run.steps] == [1] * 6


# -- several inputs, several outputs ---------------------------------------------------------------------------------


def test_every_input_gets_the_events_of_its_kinds() -> None:
    def both(rides: DataFrame, fares: DataFrame) -> DataFrame:
        return rides.selectExpr("'ride' AS what", "ride").unionAll(fares.selectExpr("'fare' AS what", "ride"))

    schedule = Schedule.of([Ride(1, "a"), Fare(1, 5), Fare(2, 6), Ride(2, "b")], cuts=[2, 3])

    run = tight.run(both, schedule, takes={"rides": Ride, "fares": Fare})

    assert rows_of(run) == [[[("ride", 1)], [("fare", 1)]], [[], [("fare", 2)]], [[("ride", 2)], []]]


def test_streams_are_joined_across_batches() -> None:
    def paid(rides: DataFrame, fares: DataFrame) -> DataFrame:
        return rides.join(fares, "ride").select("taxi", "cents")

    schedule = Schedule.of([Ride(1, "a"), Fare(2, 6), Fare(1, 5), Ride(2, "b")], cuts=[2, 3])

    run = tight.run(paid, schedule, takes={"rides": Ride, "fares": Fare})

    assert rows_of(run) == [[[]], [[("a", 5)]], [[("b", 6)]]]
    assert run.open_rows == 4


def test_a_stream_is_joined_with_a_table(spark: SparkSession) -> None:
    names = spark.createDataFrame([(1, "one"), (2, "two")], "n long, name string")

    run = tight.run(lambda rows: rows.join(names, "n").select("name"), numbers(((2,),), ((3, 1),)), takes=N)

    assert sorted_rows_of(run) == [[("two",)], [("one",)]]


def split(rows: DataFrame) -> dict[str, DataFrame]:
    return {"even": rows.filter("n % 2 = 0"), "odd": rows.filter("n % 2 = 1").selectExpr("n AS m")}


def test_one_output_of_several_is_picked_by_name() -> None:
    run = tight.run(split, numbers(((1, 2, 3),)), takes=N, output="odd")

    assert rows_of(run) == [[[(1,), (3,)]]]


def test_each_output_has_a_run_of_its_own() -> None:
    odd = Kind("Odd", m=int)

    runs = tight.run_all(split, numbers(((1, 2),), ((3,),)), takes=N, gives={"even": None, "odd": odd})

    assert list(runs) == ["even", "odd"]
    assert rows_of(runs["even"]) == [[[(2,)]], [[]]]
    assert runs["odd"].batches == (((odd(1),),), ((odd(3),),))


# -- modes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("update", [[("a", 1)], [("b", 1)], [("a", 2)]]),
        ("complete", [[("a", 1)], [("a", 1), ("b", 1)], [("a", 2), ("b", 1)]]),
    ],
)
def test_the_output_mode_says_which_groups_come_out(mode: str, expected: list[list[tuple[str, int]]]) -> None:
    schedule = Schedule.of([KV("a", 1), KV("b", 1), KV("a", 1)], cuts=[1, 2])

    run = tight.run(lambda rows: rows.groupBy("k").count(), schedule, takes=KV, mode=mode)

    assert sorted_rows_of(run) == expected


def test_a_complete_output_keeps_its_sort() -> None:
    schedule = Schedule.of([KV(k, 1) for k in "bcabab"], cuts=[3], shuffle_partitions=2)

    run = tight.run(lambda rows: rows.groupBy("k").count().orderBy("k"), schedule, takes=KV, mode="complete")

    assert [[k for partition in batch for k, _ in partition] for batch in rows_of(run)] == [["a", "b", "c"]] * 2


# -- Python in the job -----------------------------------------------------------------------------------------------


def test_python_functions_run() -> None:
    def shouted(rows: DataFrame) -> DataFrame:
        return rows.select(F.udf(lambda k: k.upper() + "!")("k").alias("k"))

    run = tight.run(shouted, Schedule.of([KV("a", 1), KV("b", 2)], cuts=[1]), takes=KV)

    assert rows_of(run) == [[[("A!",)]], [[("B!",)]]]


def test_pandas_functions_run() -> None:
    import pandas as pd

    def doubled(rows: DataFrame) -> DataFrame:
        def twice(numbers):
            return numbers * 2

        twice.__annotations__ = {"numbers": pd.Series, "return": pd.Series}
        return rows.select(F.pandas_udf(twice, "long")("n"))

    run = tight.run(doubled, numbers(((1, 2),), ((), (3,))), takes=N)

    assert rows_of(run) == [[[(2,), (4,)]], [[], [(6,)]]]


def test_functions_of_whole_partitions_run() -> None:
    def sizes(rows: DataFrame) -> DataFrame:
        def size(frames):
            import pandas as pd

            yield pd.DataFrame({"size": [sum(len(frame) for frame in frames)]})

        return rows.mapInPandas(size, "size long")

    run = tight.run(sizes, numbers(((1, 2), (3,)), ((4,), ())), takes=N)

    assert rows_of(run) == [[[(2,)], [(1,)]], [[(1,)], [(0,)]]]


def test_state_in_pandas_lives_until_its_timeout() -> None:
    from pyspark.sql.streaming.state import GroupStateTimeout

    def counted(rows: DataFrame) -> DataFrame:
        def count(key, frames, state):
            import pandas as pd

            if state.hasTimedOut:
                yield pd.DataFrame({"k": [key[0]], "n": [state.get[0]]})
                state.remove()
                return
            old = state.get[0] if state.exists else 0
            state.update((old + sum(len(frame) for frame in frames),))
            state.setTimeoutTimestamp(4_000_000_000_000)  # in the year 2096

        return (
            rows.withWatermark("t", "5 seconds")
            .groupBy("k")
            .applyInPandasWithState(count, "k string, n long", "n long", "append", GroupStateTimeout.EventTimeTimeout)
        )

    schedule = Schedule.of([Timed("a", at(1)), Timed("b", at(2)), Timed("a", at(3))], cuts=[2], restarts=[Restart(0)])

    run = tight.run(counted, schedule, takes=Timed, flush=True)

    assert [event.as_dict() for event in sorted(run.events, key=lambda e: e.k)] == [
        {"k": "a", "n": 2},
        {"k": "b", "n": 1},
    ]
    assert run.steps[-1].cause is Cause.FLUSH
    assert run.open_rows == 0


def test_stateful_processors_keep_state_and_fire_timers(spark: SparkSession) -> None:
    from pyspark.sql import Row
    from pyspark.sql.streaming import StatefulProcessor

    class Counter(StatefulProcessor):
        def init(self, handle):
            self.handle = handle
            self.count = handle.getValueState("count", "n long")

        def handleInputRows(self, key, rows, timerValues):  # noqa: N802, N803 - Spark's names
            old = self.count.get()[0] if self.count.exists() else 0
            new = old + sum(1 for _ in rows)
            self.count.update((new,))
            self.handle.registerTimer(4_000_000_000_000)
            yield Row(k=key[0], n=new)

        def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):  # noqa: N802, N803
            yield Row(k=key[0], n=-self.count.get()[0])

        def close(self):
            pass

    def job(rows: DataFrame) -> DataFrame:
        keyed = rows.withWatermark("t", "5 seconds").groupBy("k")
        return keyed.transformWithState(Counter(), "k string, n long", "Append", "EventTime")

    provider = "spark.sql.streaming.stateStore.providerClass"
    spark.conf.set(provider, ROCKSDB)
    try:
        run = tight.run(job, Schedule.of([Timed("a", at(1)), Timed("a", at(1))], cuts=[1]), takes=Timed, flush=True)
    finally:
        spark.conf.unset(provider)

    assert [(event.k, event.n) for event in run.events] == [("a", 1), ("a", 2), ("a", -2)]


# -- views and sessions ----------------------------------------------------------------------------------------------


def test_a_job_may_use_a_view_of_the_session(spark: SparkSession) -> None:
    spark.createDataFrame([(1, "one")], "n long, name string").createOrReplaceTempView("names_of_numbers")

    run = tight.run(lambda rows: rows.join(spark.table("names_of_numbers"), "n"), numbers(((1, 2),)), takes=N)

    assert rows_of(run) == [[[(1, "one")]]]
    assert spark.catalog.dropTempView("names_of_numbers")


@pytest.mark.parametrize("mode", ["append", "batch"])
def test_views_that_a_job_makes_are_gone_afterwards(spark: SparkSession, mode: str) -> None:
    def in_sql(rows: DataFrame) -> DataFrame:
        rows.createOrReplaceTempView("given_numbers")
        return spark.sql("SELECT n + 1 AS n FROM given_numbers")

    run = tight.run(in_sql, numbers(((1,),)), takes=N, gives=N, mode=mode)

    assert run.events == (N(2),)
    assert not spark.catalog.tableExists("given_numbers")


def test_a_job_in_sql_survives_restarts(spark: SparkSession) -> None:
    def in_sql(rows: DataFrame) -> DataFrame:
        rows.createOrReplaceTempView("given_numbers")
        return spark.sql("SELECT count(*) AS n FROM given_numbers")

    schedule = numbers(((1,),), ((2,),), restarts=(Restart(0),))

    run = tight.run(in_sql, schedule, takes=N, gives=N, mode="update")

    assert run.batches == (((N(1),),), ((N(2),),))


def test_a_view_that_was_there_before_is_there_afterwards(spark: SparkSession) -> None:
    spark.range(3).createOrReplaceTempView("mine")

    def in_sql(rows: DataFrame) -> DataFrame:
        rows.createOrReplaceTempView("mine")
        return spark.sql("SELECT n FROM mine")

    tight.run(in_sql, numbers(((1,),)), takes=N)

    after = spark.table("mine")
    spark.catalog.dropTempView("mine")
    assert after.columns == ["id"]
    assert not after.isStreaming


def test_a_run_may_have_a_session_of_its_own(spark: SparkSession) -> None:
    other = spark.newSession()
    other.range(1).createOrReplaceTempView("only_there")

    run = tight.run(lambda rows: rows.crossJoin(other.table("only_there")), numbers(((5,),)), takes=N, spark=other)

    assert rows_of(run) == [[[(5, 0)]]]


# -- nothing is left behind ------------------------------------------------------------------------------------------


def failing(rows: DataFrame) -> DataFrame:
    return rows.select(F.udf(lambda n: 1 // n, "long")("n").alias("n"))


@pytest.mark.parametrize("mode", ["append", "batch"])
def test_the_settings_of_the_session_are_its_own_again(
    spark: SparkSession, own_settings: dict[str, str], mode: str
) -> None:
    before = all_settings(spark)

    tight.run(lambda rows: rows.distinct(), numbers(((1,),), ((2,),)), takes=N, mode=mode)

    assert all_settings(spark) == before
    assert own_settings.items() <= before.items()


@pytest.mark.parametrize("mode", ["append", "batch"])
def test_the_settings_of_the_session_are_its_own_again_after_a_failure(
    spark: SparkSession, own_settings: dict[str, str], mode: str
) -> None:
    before = all_settings(spark)

    with pytest.raises(JobError):
        tight.run(failing, numbers(((1,),), ((0,),)), takes=N, mode=mode)

    assert all_settings(spark) == before


def test_a_job_sees_the_settings_that_the_session_has(spark: SparkSession, own_settings: dict[str, str]) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        run = tight.run(lambda rows: rows.selectExpr("current_timezone() AS zone"), numbers(((1,),)), takes=N)
    finally:
        spark.conf.unset("spark.sql.session.timeZone")

    assert rows_of(run) == [[[("Asia/Tokyo",)]]]


def _refused(rows: DataFrame) -> DataFrame:
    return rows.selectExpr("CAST(n AS STRING) AS n")


@pytest.mark.parametrize(
    ("job", "raised"),
    [(lambda rows: rows, None), (failing, JobError), (_refused, RowError), (lambda rows: None, JobError)],
    ids=["a good run", "a failing one", "a wrong output", "a wrong job"],
)
def test_no_query_and_no_folder_is_left(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, job: Any, raised: type[Exception] | None
) -> None:
    monkeypatch.setattr("streamtight.spark.run.fast_folder", lambda: tmp_path)
    seen: list[Path] = []

    def watched(rows: DataFrame) -> DataFrame:
        seen.extend(tmp_path.iterdir())
        return job(rows)

    expected = contextlib.nullcontext() if raised is None else pytest.raises(raised)
    with expected:
        tight.run(watched, numbers(((1,),), ((0,),)), takes=N, gives=N)

    assert len(seen) == 1
    assert list(tmp_path.iterdir()) == []
    assert spark.streams.active == []
