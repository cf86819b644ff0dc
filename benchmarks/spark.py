"""How many micro-batches a second does a schedule get through Spark? And what is packing worth?

    python benchmarks/spark.py

Figures are medians of warm runs in one session; a batch has 50 rows. They depend on the machine and on what else it
does, so look at the ratios.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import streamtight as tight

Reading = tight.Kind("Reading", sensor=str, value=int)
BATCHES, ROWS, ROUNDS = 30, 50, 5


def stateless(readings: DataFrame) -> DataFrame:
    return readings.filter("value % 2 = 0").select("sensor", (sf.col("value") * 2).alias("twice"))


def counting(readings: DataFrame) -> DataFrame:
    return readings.groupBy("sensor").count()


def events(count: int) -> list[tight.Event]:
    return [Reading(f"s{i % 7}", i) for i in range(count)]


def schedule(batches: int) -> tight.Schedule:
    return tight.Schedule.of(events(batches * ROWS), cuts=range(ROWS, batches * ROWS, ROWS))


def median_seconds(work: Callable[[], object]) -> float:
    taken = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def by_files(spark: SparkSession, job: Callable[[DataFrame], DataFrame], mode: str, batches: int) -> None:
    """What a user does today: a file for each batch, one file a trigger, rows collected in foreachBatch."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "in"
        source.mkdir()
        rows = events(batches * ROWS)
        for number in range(batches):
            lines = [
                f'{{"sensor": "{e.sensor}", "value": {e.value}}}' for e in rows[number * ROWS : (number + 1) * ROWS]
            ]
            (source / f"{number:05}.json").write_text("\n".join(lines))
        collected: list[object] = []
        frame = spark.readStream.schema("sensor string, value long").option("maxFilesPerTrigger", 1).json(str(source))
        query = (
            job(frame)
            .writeStream.foreachBatch(lambda batch, _: collected.extend(batch.collect()))
            .outputMode(mode)
            .option("checkpointLocation", f"{folder}/checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()


def micro_batches(spark: SparkSession) -> None:
    print(f"{'micro-batches a second':30}{'stateless':>12}{'counting':>12}")
    cases = {"stateless": (stateless, "append"), "counting": (counting, "complete")}
    for job, mode in cases.values():  # let the JVM warm up
        for _ in range(8):
            tight.run(job, schedule(BATCHES), takes=Reading, mode=mode)
    ours, theirs = {}, {}
    for name, (job, mode) in cases.items():
        seconds = median_seconds(lambda job=job, mode=mode: tight.run(job, schedule(BATCHES), takes=Reading, mode=mode))
        ours[name] = BATCHES / seconds
        started = time.perf_counter()
        by_files(spark, job, mode, BATCHES)
        theirs[name] = BATCHES / (time.perf_counter() - started)
    print(f"  {'streamtight':28}{ours['stateless']:12.1f}{ours['counting']:12.1f}")
    print(f"  {'files, one a trigger':28}{theirs['stateless']:12.1f}{theirs['counting']:12.1f}")
    ratios = {name: ours[name] / theirs[name] for name in cases}
    print(f"  {'ratio':28}{ratios['stateless']:12.1f}{ratios['counting']:12.1f}")


def whole_runs() -> None:
    print(f"\n{'a whole run, milliseconds':30}{'1 batch':>12}{'30 batches':>12}{'static':>12}")
    for name, job, mode in [("stateless", stateless, "append"), ("counting", counting, "update")]:
        cases = ((schedule(1), mode), (schedule(BATCHES), mode), (schedule(1), "batch"))
        one, thirty, static = (
            1000 * median_seconds(lambda j=job, s=given, m=how: tight.run(j, s, takes=Reading, mode=m))
            for given, how in cases
        )
        print(f"  {name:28}{one:12.0f}{thirty:12.0f}{static:12.0f}")


def packing() -> None:
    rng = random.Random(5)
    inputs = [
        tight.Schedule.random(tight.Trace(events(12), tight.same("sensor")), rng, shuffle_partitions=1)
        for _ in range(40)
    ]

    print(f"\n{'40 inputs of 12 rows, inputs/s':30}{'alone':>12}{'packed':>12}{'ratio':>12}")
    for name, job, mode in [("stateless", stateless, "append"), ("counting", counting, "update")]:
        tight.run_many(job, inputs[:4], takes=Reading, mode=mode)
        started = time.perf_counter()
        for one in inputs[:10]:
            tight.run(job, one, takes=Reading, mode=mode)
        alone = 10 / (time.perf_counter() - started)
        packed = len(inputs) / median_seconds(
            lambda job=job, mode=mode: tight.run_many(job, inputs, takes=Reading, mode=mode)
        )
        print(f"  {name:28}{alone:12.1f}{packed:12.1f}{packed / alone:12.1f}")


if __name__ == "__main__":
    started = time.perf_counter()
    session = tight.session()
    print(f"Spark started in {time.perf_counter() - started:.1f} s\n")
    micro_batches(session)
    whole_runs()
    packing()
    session.stop()
