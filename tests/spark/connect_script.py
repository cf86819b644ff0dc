"""Run by test_connect.py in a process of its own, since a process has either a classic session or a Connect one.

Prints one JSON object: what each run gave.
"""

from __future__ import annotations

import json

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import LongType

import streamtight as tight
from streamtight.spark.java import use_java

Sale = tight.Kind("Sale", shop=str, amount=int)
SALES = [Sale("a", 1), Sale("b", 2), Sale("a", 3), Sale("b", 4), Sale("a", 5)]


def doubled(sales):
    return sales.select("shop", (sf.col("amount") * 2).alias("twice"))


def total(sales):
    return sales.groupBy("shop").agg(sf.sum("amount").alias("total"))


def failing(sales):
    def refuse(amount):
        if amount == 4:
            raise ValueError(f"no {amount}")
        return amount

    return sales.select(sf.udf(refuse, LongType())("amount").alias("amount"))


def shown(run):
    return [[step.batch, step.cause.name, [[list(e[1:]) for e in part] for part in step.output]] for step in run.steps]


def main():
    use_java()
    builder = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.log.level", "OFF").getOrCreate()
    before = spark.conf.get("spark.sql.shuffle.partitions")
    two_batches = tight.Schedule.of(SALES, cuts=[3], partitions=2)
    restarts = (tight.Restart(0), tight.Restart(1, replay=True))
    found = {
        "stream": shown(tight.run(doubled, two_batches, takes=Sale)),
        "batch": shown(tight.run(doubled, two_batches, takes=Sale, mode="batch")),
        "restarted": shown(
            tight.run(
                total, tight.Schedule(two_batches.batches, restarts=restarts), takes=Sale, mode="update", flush=True
            )
        ),
        "packed": tight.run_many(doubled, [tight.Schedule.of(SALES)], takes=Sale).why_not,
        "setting": [before, spark.conf.get("spark.sql.shuffle.partitions")],
        "queries": len(spark.streams.active),
    }
    try:
        tight.run(failing, two_batches, takes=Sale)
    except tight.errors.JobError as error:
        found["failed"] = [error.batch, error.raised]
    print(json.dumps(found), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
