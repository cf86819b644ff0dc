"""Streams from a real Kafka broker, in a session of its own that has Spark's connector: what `test_services.py` runs.

Prints one line of JSON. It exits with 77 if there is no broker to be had, and says why.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from load_example import load_example
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf

import streamtight as tight

kafka_broker = load_example("kafka_broker")

MESSAGES = 1000
PASSWORD, PARTS = sys.argv[1:3]
Word = tight.Kind("Word", value=str)


def main() -> dict[str, Any]:
    with kafka_broker.running(partitions=3, password=PASSWORD) as broker:
        builder = kafka_broker.connect(SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false"))
        spark = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
        try:
            if PARTS == "restart":
                return restarted(spark, broker)
            send(spark, broker, 0, MESSAGES)
            return {"ours": asked(), "live": compared(spark, broker), "wrong": without_a_broker(spark, broker)}
        finally:
            spark.stop()


def send(spark: SparkSession, broker: Any, first: int, end: int) -> None:
    messages = spark.range(first, end).selectExpr("cast(id AS string) AS key", "cast(id AS string) AS value")
    messages.write.format("kafka").options(**broker.options).option("topic", "numbers").save()


def stream(spark: SparkSession, options: dict[str, str]) -> DataFrame:
    asked = spark.readStream.format("kafka").options(**options).option("subscribe", "numbers")
    return asked.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 150).load()


def restarted(spark: SparkSession, broker: Any) -> dict[str, Any]:
    """A stream whose third batch is lost, that goes on from its checkpoint, and goes on again with more messages."""
    batches: dict[int, list[Any]] = {}
    lost: dict[int, list[Any]] = {}

    def keep(rows: DataFrame, number: int) -> None:
        came = [list(row) for row in rows.collect()]
        if len(batches) == 2 and not lost:
            lost[number] = came
            raise RuntimeError("the third batch is lost on its way")
        batches.setdefault(number, []).extend(came)

    def read() -> str:
        rows = stream(spark, broker.options).selectExpr("cast(value AS string)", "partition", "offset")
        query = rows.writeStream.foreachBatch(keep).option("checkpointLocation", folder)
        try:
            query.trigger(availableNow=True).start().awaitTermination()
        except Exception as error:
            return str(error)
        return ""

    with tempfile.TemporaryDirectory() as folder:
        send(spark, broker, 0, MESSAGES // 2)
        said = [read(), read()]
        send(spark, broker, MESSAGES // 2, MESSAGES)
        said.append(read())
    everything = spark.read.format("kafka").options(**broker.options).option("subscribe", "numbers").load()
    return {"said": said, "batches": batches, "lost": lost, "in_all": everything.count()}


def asked() -> str:
    """Do the questions of ours work in a session with these jars?"""
    rows = tight.Schedule.of([Word("a")])
    return str(tight.run(lambda words: words.dropDuplicates(["value"]), rows, takes=Word, gives=Word).events[0])


def compared(spark: SparkSession, broker: Any) -> str:
    """A live comparison of the topic with itself."""
    words = [stream(spark, broker.options).selectExpr("cast(value AS string) AS value") for _ in range(2)]
    with (
        tempfile.TemporaryDirectory() as folder,
        tight.compare_live(*words, upto=tight.unordered, checkpoint=Path(folder, "c"), buckets=1, tasks=1) as live,
    ):
        live.query.processAllAvailable()
        return str(live.verdict())


def without_a_broker(spark: SparkSession, broker: Any) -> list[str]:
    """All that is said about a stream whose broker does not answer, though a password was given."""
    patience = {"kafka.default.api.timeout.ms": "1500", "kafka.request.timeout.ms": "1000"}
    options = {
        **broker.options,
        **patience,
        "kafka.bootstrap.servers": "127.0.0.1:1",
        "kafka.ssl.key.password": PASSWORD,
    }
    said = []
    words = [stream(spark, options).selectExpr("cast(value AS string) AS value") for _ in range(2)]
    with tempfile.TemporaryDirectory() as folder:
        live = tight.compare_live(*words, upto=tight.unordered, checkpoint=Path(folder, "c"), buckets=1, tasks=1)
        try:
            live.query.awaitTermination()
        except Exception as error:
            said.append(f"query: {error}")
        try:
            live.verdict()
        except tight.errors.StreamtightError as error:
            said.append(f"verdict: {error}")

    def job(rows: DataFrame) -> DataFrame:
        known = rows.sparkSession.read.format("kafka").options(**options).option("subscribe", "numbers").load()
        return rows.join(known.selectExpr("cast(value AS string) AS value"), "value")

    def failing(rows: DataFrame) -> DataFrame:
        def reach(_: str) -> str:
            raise ConnectionError(f"no answer: Redis(password='{PASSWORD}'), redis://ann:{PASSWORD}@127.0.0.1:1/0")

        return rows.select(udf(reach)("value").alias("value"))

    for one in (job, failing):
        rows = tight.Schedule.of([Word("a"), Word("b")])
        for ask in (
            lambda: [tight.typecheck(one, takes=Word, confirm=False)],  # noqa: B023 - called at once
            lambda: list(tight.laws(one, on=list(rows.events), takes=Word, gives=Word, only=["partitions"]).values()),  # noqa: B023
            lambda: [tight.run(one, rows, takes=Word, gives=Word)],  # noqa: B023
        ):
            try:
                said += [f"{answer.story()} {answer.to_json()}" for answer in ask()]
            except tight.errors.StreamtightError as error:
                said.append(f"{type(error).__name__}: {error}")
    return said


if __name__ == "__main__":
    try:
        print(json.dumps(main()))
    except kafka_broker.Unavailable as why:
        print(why, file=sys.stderr)
        sys.exit(77)
