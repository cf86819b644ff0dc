"""The same jobs driven in a slow and obvious way, with one file for each micro-batch: both ways must agree."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import streamtight as tight
from streamtight import Kind, Schedule, Trace, unordered
from streamtight.spark.rows import struct_of

Order = Kind("Order", shop=str, cents=int, t=datetime)


def cheap(orders: DataFrame) -> DataFrame:
    return orders.filter("cents < 500").select("shop", F.expr("cents * 2 AS double"), "t")


def totals(orders: DataFrame) -> DataFrame:
    return orders.groupBy("shop").agg(F.sum("cents").alias("cents"), F.count("*").alias("n"))


def by_minute(orders: DataFrame) -> DataFrame:
    windows = orders.withWatermark("t", "20 seconds").groupBy(F.window("t", "1 minute"), "shop")
    return windows.agg(F.sum("cents").alias("cents")).select("window.start", "shop", "cents")


def first_of_each(orders: DataFrame) -> DataFrame:
    return (
        orders.withWatermark("t", "20 seconds").dropDuplicatesWithinWatermark(["shop", "cents"]).select("shop", "cents")
    )


def the_slow_way(
    job: Callable[[DataFrame], DataFrame], schedule: Schedule, mode: str, spark: SparkSession, folder: Path
) -> list[list[tuple[Any, ...]]]:
    """The sorted rows of each micro-batch, by a file source that takes one file at a time."""
    source = folder / "source"
    source.mkdir(parents=True)
    for number, batch in enumerate(schedule.batches):
        path = source / f"{number:04}.json"
        events = [event.as_dict() for partition in batch for event in partition]
        path.write_text("".join(json.dumps({**row, "t": row["t"].isoformat()}) + "\n" for row in events))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))  # Spark takes the oldest file first
    found: dict[int, list[tuple[Any, ...]]] = {}

    def collect(rows: DataFrame, number: int) -> None:
        found[number] = sorted(tuple(row) for row in rows.collect())

    stream = spark.readStream.schema(struct_of(Order)).option("maxFilesPerTrigger", "1").json(str(source))
    writer = job(stream).writeStream.outputMode(mode).option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).foreachBatch(collect).start()
    query.awaitTermination()
    return [found[number] for number in sorted(found)]


def random_schedule(seed: int) -> Schedule:
    rng = random.Random(seed)
    moments = [datetime(2024, 1, 1) + timedelta(seconds=rng.randint(0, 300)) for _ in range(12)]
    events = [Order(rng.choice("abc"), rng.choice([100, 300, 700]), moment) for moment in sorted(moments)]
    return Schedule.random(Trace(events, unordered), rng)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    ("job", "mode"),
    [(cheap, "append"), (totals, "update"), (totals, "complete"), (by_minute, "append"), (first_of_each, "append")],
)
def test_both_ways_give_the_same_rows_in_each_batch(
    job: Callable[[DataFrame], DataFrame], mode: str, seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    schedule = random_schedule(seed)

    run = tight.run(job, schedule, takes=Order, mode=mode)

    ours = [sorted(tuple(event)[1:] for partition in step.output for event in partition) for step in run.steps]
    assert ours == the_slow_way(job, schedule, mode, spark, tmp_path)
