"""Many inputs in one run: only where the plan permits it, and then with the results of single runs."""

from __future__ import annotations

import random

import pandas as pd
import pytest
from pyspark.sql import functions as sf
from pyspark.sql.types import DoubleType

import streamtight as tight

Sale = tight.Kind("Sale", shop=str, amount=int)
BY_SHOP = tight.same("shop")


def schedules(count, *, seed=1, shuffle_partitions=1):
    rng = random.Random(seed)
    made = []
    for _ in range(count):
        events = [Sale(rng.choice("ab"), rng.randrange(4)) for _ in range(rng.randrange(6))]
        made.append(tight.Schedule.random(tight.Trace(events, BY_SHOP), rng, shuffle_partitions=shuffle_partitions))
    return made


def doubled(sales):
    return sales.select("shop", (sf.col("amount") * 2).alias("twice"))


def with_tax(sales):
    return sales.withColumn("tax", sf.col("amount") + 1)


def total_by_everything_else(sales):
    return sales.groupBy(*[name for name in sales.columns if name != "amount"]).agg(sf.sum("amount").alias("total"))


def total_by_shop(sales):
    return sales.groupBy("shop").agg(sf.sum("amount").alias("total"))


def bags(run):
    """What comes out of each step, without regard to order: packing may change that."""
    return [sorted(map(repr, (event for partition in step.output for event in partition))) for step in run.steps]


@pytest.mark.parametrize(
    ("job", "mode", "by", "way"),
    [
        (doubled, "append", None, "in turn"),
        (doubled, "append", "run", "in turn"),
        (with_tax, "append", "run", "by a column"),
        (total_by_everything_else, "update", "run", "by a column"),
        (total_by_everything_else, "complete", "run", "by a column"),
        (total_by_shop, "update", "run", "alone"),
    ],
)
def test_packed_runs_give_what_single_runs_give(spark, job, mode, by, way):
    many = schedules(5)

    packed = tight.run_many(job, many, takes=Sale, mode=mode, by=by)

    assert packed.way == way
    alone = [tight.run(job, schedule, takes=Sale, mode=mode) for schedule in many]
    assert [bags(run) for run in packed.runs] == [bags(run) for run in alone]
    assert [[step.input for step in run.steps] for run in packed.runs] == [list(s.batches) for s in many]
    assert [[step.batch for step in run.steps] for run in packed.runs] == [
        list(range(len(schedule.batches))) for schedule in many
    ]


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        (total_by_shop, "Aggregate may mix rows of different run"),
        (lambda sales: sales.dropDuplicates(["shop"]), "Deduplicate may mix rows of different run"),
        (lambda sales: sales.select("shop", "amount"), "the output does not carry run as it came in"),
        (lambda sales: sales.withColumn("run", sf.lit(0)), "the output does not carry run as it came in"),
        (lambda sales: sales.limit(1), "Limit may mix rows of different run"),
        (lambda sales: sales.union(sales), "Union may mix rows of different run"),
    ],
)
def test_a_job_that_could_mix_inputs_is_not_packed_by_a_column(spark, job, reason):
    mode = "update" if job is total_by_shop else "append"

    packed = tight.run_many(job, schedules(2), takes=Sale, mode=mode, by="run")

    assert packed.way != "by a column"
    assert reason in packed.why_not


def centred(sales):
    def around_the_mean(amounts: pd.Series) -> pd.Series:
        return amounts - amounts.mean()

    return sales.withColumn("c", sf.pandas_udf(around_the_mean, DoubleType())("amount"))


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        (centred, "may look at other rows of its batch"),
        (lambda sales: sales.withColumn("all", sf.to_json(sf.struct("*"))), "the job looks at run"),
        (lambda sales: sales.filter(sf.xxhash64("*") % 2 == 0), "the job looks at run"),
        (lambda sales: sales.withColumn("r", sf.rand(1)), "is not the same every time"),
        (lambda sales: sales.withColumn("n", sf.lit(len(sales.columns))), "an input gives other rows"),
        (lambda sales: sales.toDF("a", "b"), "the job cannot be built"),
    ],
)
def test_a_job_that_sees_the_column_or_other_rows_is_not_packed_by_a_column(spark, job, reason):
    packed = tight.run_many(job, [tight.Schedule.of([Sale("a", 1), Sale("a", 3)])] * 2, takes=Sale, by="run")

    assert packed.way == "in turn"
    assert reason in packed.why_not


def test_a_job_that_reads_another_stream_is_run_alone(spark):
    def with_a_clock(sales):
        return sales.union(spark.readStream.format("rate").load().selectExpr("'t' AS shop", "value AS amount").limit(0))

    packed = tight.run_many(with_a_clock, [], takes=Sale)

    assert packed.way == "alone"


def test_a_failure_is_told_with_its_own_schedule_and_batch(spark):
    many = [tight.Schedule.of([Sale("a", i), Sale("b", i)], cuts=[1]) for i in range(4)]

    with pytest.raises(tight.errors.JobError) as caught:
        tight.run_many(lambda sales: sales.selectExpr("1 / (amount - 2) AS q"), many, takes=Sale)

    assert caught.value.batch == 0
    assert caught.value.__notes__ == ["in schedule 2 of those that were given"]


def test_a_job_written_in_sql_is_run_in_turn(spark):
    def in_sql(sales):
        sales.createOrReplaceTempView("sales")
        return sales.sparkSession.sql("SELECT shop FROM sales WHERE amount > 1")

    assert tight.run_many(in_sql, schedules(2), takes=Sale).way == "in turn"


def test_what_spark_counts_for_all_inputs_is_not_told_of_one(spark):
    packed = tight.run_many(total_by_everything_else, schedules(2), takes=Sale, mode="update", by="run")

    assert {step.state_rows for run in packed.runs for step in run.steps} == {None}


@pytest.mark.parametrize(
    ("job", "mode", "node"),
    [
        (total_by_shop, "update", "Aggregate"),
        (lambda sales: sales.dropDuplicates(["shop"]), "append", "Deduplicate"),
        (lambda sales: sales.limit(1), "append", "Limit"),
    ],
)
def test_a_job_with_state_is_not_run_in_turn(spark, job, mode, node):
    packed = tight.run_many(job, schedules(2), takes=Sale, mode=mode)

    assert packed.way == "alone"
    assert f"{node} may keep state" in packed.why_not


def test_a_stream_joined_with_a_static_table_is_run_in_turn(spark):
    names = spark.createDataFrame([("a", "Anna"), ("b", "Bert")], "shop string, owner string")
    many = schedules(3)

    packed = tight.run_many(lambda sales: sales.join(names, "shop"), many, takes=Sale)

    assert packed.way == "in turn"
    assert [bags(run) for run in packed.runs] == [
        bags(tight.run(lambda sales: sales.join(names, "shop"), schedule, takes=Sale)) for schedule in many
    ]


def test_restarts_different_shuffles_and_batch_jobs_are_run_alone(spark):
    [one, other] = schedules(2)
    restarted = tight.Schedule(one.batches, restarts=(tight.Restart(0),))
    wider = tight.Schedule(one.batches, shuffle_partitions=2)

    ways = [
        tight.run_many(doubled, [restarted, other], takes=Sale),
        tight.run_many(doubled, [wider, other], takes=Sale),
        tight.run_many(doubled, [one, other], takes=Sale, mode="batch"),
    ]

    assert [packed.way for packed in ways] == ["alone"] * 3
    assert [packed.why_not for packed in ways] == [
        "not in turn: a restart concerns all inputs of a query",
        "not in turn: the schedules have different numbers of shuffle partitions",
        "not in turn: a batch job may look at all of its input at once",
    ]


def test_several_inputs_are_run_in_turn_and_not_by_a_column(spark):
    def both(sales, more):
        return sales.union(more)

    Extra = tight.Kind("Extra", shop=str, amount=int)  # noqa: N806 - a kind
    schedule = tight.Schedule.of([Sale("a", 1), Extra("b", 2)], cuts=[1])

    packed = tight.run_many(both, [schedule, schedule], takes={"sales": Sale, "more": Extra}, by="run")

    assert packed.way == "in turn"
    assert packed.why_not == "not by run: the job has several inputs"
    assert len(packed.runs[1].events) == 2


def test_described_outputs_lose_the_column_again(spark):
    Taxed = tight.Kind("Taxed", shop=str, amount=int, tax=int)  # noqa: N806 - a kind

    packed = tight.run_many(with_tax, [tight.Schedule.of([Sale("a", 1)])] * 2, takes=Sale, gives=Taxed, by="run")

    assert [run.events for run in packed.runs] == [(Taxed("a", 1, 2),)] * 2


def test_no_schedule_gives_no_run(spark):
    assert tight.run_many(doubled, [], takes=Sale).runs == ()


def test_a_column_that_the_kind_already_has_is_refused(spark):
    with pytest.raises(tight.errors.RowError) as caught:
        tight.run_many(doubled, schedules(1), takes=Sale, by="shop")

    assert caught.value.hint == "by='shop_id'"


def test_something_that_is_no_schedule_is_refused(spark):
    with pytest.raises(tight.errors.TraceError, match="a schedule with a batch or more"):
        tight.run_many(doubled, [tight.Schedule(())], takes=Sale)
