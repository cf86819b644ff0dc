"""Many inputs in one run: only where the plan permits it, and then with the results of single runs."""

from __future__ import annotations

import random

import pandas as pd
import pytest
from pyspark.sql import functions as sf
from pyspark.sql.types import DoubleType, LongType

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


def total_by_shop(sales):
    return sales.groupBy("shop").agg(sf.sum("amount").alias("total"))


def bags(run):
    """What comes out of each step, without regard to order: packing may change that."""
    return [sorted(map(repr, (event for partition in step.output for event in partition))) for step in run.steps]


def squared(sales):
    return sales.select(sf.udf(lambda amount: amount * amount, LongType())("amount").alias("square"))


def twice_over(sales):
    return sales.select("shop").union(sales.where("amount > 1").select(sf.upper("shop")))


def in_sql(sales):
    sales.createOrReplaceTempView("sales")
    return sales.sparkSession.sql("SELECT shop, count(*) AS n FROM sales WHERE amount > 0 GROUP BY shop")


def pairs(sales):
    one, other = sales.alias("one"), sales.alias("other")
    return one.join(other, sf.expr("one.shop = other.shop AND one.amount < other.amount")).select("one.shop")


@pytest.mark.parametrize(
    ("job", "mode"),
    [
        (doubled, "append"),
        pytest.param(with_tax, "append", marks=pytest.mark.slow),
        (lambda sales: sales.select(sf.explode(sf.array("amount", sf.lit(7))).alias("n")), "append"),
        (lambda sales: sales.withColumn("all", sf.to_json(sf.struct("*"))), "append"),
        (lambda sales: sales.withColumn("columns", sf.lit(len(sales.columns))), "append"),
        pytest.param(lambda sales: sales.toDF("a", "b"), "append", marks=pytest.mark.slow),
        (lambda sales: sales.distinct(), "append"),
        pytest.param(squared, "append", marks=pytest.mark.slow),
        pytest.param(twice_over, "append", marks=pytest.mark.slow),
        (pairs, "append"),
        (total_by_shop, "update"),
        pytest.param(total_by_shop, "complete", marks=pytest.mark.slow),
        pytest.param(lambda sales: total_by_shop(sales).orderBy("total"), "complete", marks=pytest.mark.slow),
        pytest.param(in_sql, "update", marks=pytest.mark.slow),
    ],
)
def test_inputs_side_by_side_give_what_they_give_alone(spark, job, mode):
    many = schedules(5)

    packed = tight.run_many(job, many, takes=Sale, mode=mode)

    assert (packed.way, packed.why_not) == ("side by side", "")
    alone = [tight.run(job, schedule, takes=Sale, mode=mode) for schedule in many]
    assert [bags(run) for run in packed.runs] == [bags(run) for run in alone]
    assert [[step.input for step in run.steps] for run in packed.runs] == [list(s.batches) for s in many]
    assert [[step.batch for step in run.steps] for run in packed.runs] == [
        list(range(len(schedule.batches))) for schedule in many
    ]


def centred(sales):
    def around_the_mean(amounts: pd.Series) -> pd.Series:
        return amounts - amounts.mean()

    return sales.withColumn("c", sf.pandas_udf(around_the_mean, DoubleType())("amount"))


def with_time(sales):
    return sales.withColumn("at", sf.timestamp_seconds("amount")).withWatermark("at", "1 second")


@pytest.mark.parametrize(
    ("job", "mode", "way", "reason"),
    [
        (lambda sales: sales.limit(1), "append", "alone", "Limit may mix rows of different cases"),
        (lambda sales: sales.agg(sf.sum("amount")), "complete", "alone", "has a row even where nothing came"),
        (with_time, "append", "alone", "EventTimeWatermark may mix rows of different cases"),
        (centred, "append", "in turn", "may look at other rows of its batch"),
        (lambda sales: sales.withColumn("r", sf.rand(1)), "append", "in turn", "is not the same every time"),
        (lambda sales: sales.withColumn("t", sf.current_timestamp()), "append", "in turn", "is another one in every"),
        (lambda sales: sales.where("amount < (SELECT 3)"), "append", "in turn", "the job has a subquery"),
    ],
)
def test_a_job_that_could_mix_inputs_is_not_run_side_by_side(spark, job, mode, way, reason):
    packed = tight.run_many(job, schedules(3), takes=Sale, mode=mode)

    assert packed.way == way
    assert reason in packed.why_not


def test_a_job_whose_python_knows_of_the_others_is_not_trusted(spark):
    calls = []

    def numbered(sales):
        calls.append(1)
        return sales.withColumn("call", sf.lit(len(calls)))

    packed = tight.run_many(numbered, schedules(2), takes=Sale)

    assert "an input gives other rows when it is run alone" in packed.why_not


@pytest.mark.parametrize("how", ["inner", "left", "left_semi", "left_anti"])
def test_a_stream_is_joined_with_a_table_side_by_side(spark, how):
    names = spark.createDataFrame([("a", "Anna"), ("c", "Carl")], "shop string, owner string")
    many = schedules(3)

    packed = tight.run_many(lambda sales: sales.join(names, "shop", how), many, takes=Sale)

    assert packed.way == "side by side"
    assert [bags(run) for run in packed.runs] == [
        bags(tight.run(lambda sales: sales.join(names, "shop", how), schedule, takes=Sale)) for schedule in many
    ]


def test_streams_of_several_inputs_are_joined_side_by_side(spark):
    Extra = tight.Kind("Extra", shop=str, more=int)  # noqa: N806 - a kind
    takes = {"sales": Sale, "extras": Extra}
    many = [tight.Schedule.of([Sale("a", 1), Extra("a", n), Extra("b", n), Sale("b", 2)], cuts=[2]) for n in range(4)]

    packed = tight.run_many(lambda sales, extras: sales.join(extras, "shop"), many, takes=takes)

    assert packed.way == "side by side"
    assert [sorted(event.more for event in run.events) for run in packed.runs] == [[n, n] for n in range(4)]


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


def test_what_spark_counts_for_all_inputs_is_not_told_of_one(spark):
    packed = tight.run_many(total_by_shop, schedules(2), takes=Sale, mode="update")

    assert {step.state_rows for run in packed.runs for step in run.steps} == {None}


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
        "a restart concerns all inputs of a query",
        "the schedules have different numbers of shuffle partitions",
        "a batch job may look at all of its input at once",
    ]


def test_described_outputs_lose_the_column_again(spark):
    Taxed = tight.Kind("Taxed", shop=str, amount=int, tax=int)  # noqa: N806 - a kind

    packed = tight.run_many(with_tax, [tight.Schedule.of([Sale("a", 1)])] * 2, takes=Sale, gives=Taxed)

    assert [run.events for run in packed.runs] == [(Taxed("a", 1, 2),)] * 2


def test_no_schedule_gives_no_run(spark):
    assert tight.run_many(doubled, [], takes=Sale).runs == ()


def test_something_that_is_no_schedule_is_refused(spark):
    with pytest.raises(tight.errors.TraceError, match="a schedule with a batch or more"):
        tight.run_many(doubled, [tight.Schedule(())], takes=Sale)
