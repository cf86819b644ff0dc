"""Jobs on static DataFrames."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import streamtight as tight
from streamtight import Cause, Kind, Schedule
from streamtight.errors import TimeLimitError

pytestmark = pytest.mark.usefixtures("spark")

KV, N = Kind("KV", k=str, v=int), Kind("N", n=int)


def numbers(*partitions: tuple[int, ...]) -> Schedule:
    return Schedule((tuple(tuple(N(n) for n in partition) for partition in partitions),))


def rows_of(run: tight.Run) -> list[list[tuple[object, ...]]]:
    [step] = run.steps
    return [[tuple(event)[1:] for event in partition] for partition in step.output]


def test_each_partition_of_the_schedule_is_a_partition_of_the_frame() -> None:
    run = tight.run(
        lambda rows: rows.select("n", F.spark_partition_id()), numbers((1,), (), (2, 3)), takes=N, mode="batch"
    )

    assert rows_of(run) == [[(1, 0)], [], [(2, 2), (3, 2)]]


def test_a_single_partition_is_one_partition() -> None:
    run = tight.run(lambda rows: rows, numbers((3, 1, 2)), takes=N, mode="batch")

    assert rows_of(run) == [[(3,), (1,), (2,)]]


def test_all_batches_are_there_at_once() -> None:
    schedule = Schedule((((N(1),), (N(2),)), ((),), ((N(3),), (), (N(4),))))

    run = tight.run(lambda rows: rows, schedule, takes=N, gives=N, mode="batch")

    assert run.batches == (((N(1), N(3)), (N(2),), (N(4),)),)
    assert [(step.batch, step.cause, step.input) for step in run.steps] == [(0, Cause.DATA, run.batches[0])]


def test_an_empty_schedule_is_an_empty_frame() -> None:
    run = tight.run(lambda rows: rows, numbers((), ()), takes=N, mode="batch")

    assert rows_of(run) == [[], []]


def test_a_total_of_nothing_is_a_row() -> None:
    run = tight.run(lambda rows: rows.groupBy().count(), numbers(()), takes=N, mode="batch")

    assert rows_of(run) == [[(0,)]]


def test_an_aggregation_has_the_shuffle_partitions_of_the_schedule() -> None:
    events = [KV("a", 1), KV("b", 2), KV("a", 3)]

    run = tight.run(
        lambda rows: rows.groupBy("k").agg(F.sum("v")),
        Schedule.of(events, partitions=2, shuffle_partitions=3),
        takes=KV,
        mode="batch",
    )

    assert len(rows_of(run)) == 3
    assert sorted(row for partition in rows_of(run) for row in partition) == [("a", 4), ("b", 2)]


def test_a_sort_is_kept_across_partitions() -> None:
    schedule = Schedule.of([N(n) for n in (5, 3, 8, 1, 9, 2)], partitions=3, shuffle_partitions=2)

    run = tight.run(lambda rows: rows.orderBy("n"), schedule, takes=N, mode="batch")

    assert [event.n for event in run.events] == [1, 2, 3, 5, 8, 9]
    assert len(rows_of(run)) == 2


def test_a_limit_takes_the_first_rows_of_the_sort() -> None:
    run = tight.run(lambda rows: rows.orderBy("n").limit(2), numbers((5, 1), (3,)), takes=N, mode="batch")

    assert [event.n for event in run.events] == [1, 3]


def test_several_inputs_are_several_frames() -> None:
    def matched(pairs: DataFrame, wanted: DataFrame) -> DataFrame:
        return pairs.join(wanted, pairs.v == wanted.n).select("k")

    run = tight.run(
        matched, Schedule.of([KV("a", 1), N(2), KV("b", 2)]), takes={"pairs": KV, "wanted": N}, mode="batch"
    )

    assert [event.k for event in run.events] == ["b"]


def test_a_job_may_look_at_its_input_before_it_answers() -> None:
    def above_average(rows: DataFrame) -> DataFrame:
        [(average,)] = rows.agg(F.avg("n")).collect()
        return rows.filter(F.col("n") > average)

    run = tight.run(above_average, numbers((1, 2), (9,)), takes=N, mode="batch")

    assert [event.n for event in run.events] == [9]


def slow(rows: DataFrame) -> DataFrame:
    def wait(n):
        import time

        time.sleep(15)
        return n

    return rows.select(F.udf(wait, "long")("n").alias("n"))


def slow_to_build(rows: DataFrame) -> DataFrame:
    slow(rows).collect()
    return rows


@pytest.mark.parametrize("job", [slow, pytest.param(slow_to_build, marks=pytest.mark.slow)])
def test_a_slow_batch_job_is_stopped_and_the_session_goes_on(job: Callable[[DataFrame], DataFrame]) -> None:
    with pytest.raises(TimeLimitError) as caught:
        tight.run(job, numbers((1,)), takes=N, mode="batch", limit=3)

    assert caught.value.seconds == 3
    assert tight.run(lambda rows: rows, numbers((1,)), takes=N, gives=N, mode="batch").events == (N(1),)


def test_a_batch_run_leaves_no_tag_behind(spark: SparkSession) -> None:
    tight.run(lambda rows: rows, numbers((1,)), takes=N, mode="batch")

    assert not set(spark.getTags()) | set(spark.sparkContext.getJobTags())


def test_plans_of_many_rows_run_as_well() -> None:
    schedule = Schedule.of([N(n) for n in range(10_000)], partitions=2)

    run = tight.run(lambda rows: rows.agg(F.sum("n").alias("total")), schedule, takes=N, mode="batch")

    assert [event.total for event in run.events] == [sum(range(10_000))]
