"""What does a live comparison cost, and does its memory stay flat?

python benchmarks/live.py                 rows a second, with and without comparison; then memory over one minute
python benchmarks/live.py --seconds 600   the same over ten minutes
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import streamtight as tight

MEGABYTE = 1 << 20
LAG = 5.0  # seconds that the right side is behind


def throughput(spark: SparkSession, seconds: float, rows: int, folder: Path) -> None:
    """The same generated rows on both sides, as fast as they go."""

    def generated() -> DataFrame:
        source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows).option("numPartitions", 2)
        return source.load().selectExpr("value % 2000 AS taxi", "value AS n", "value * 0.5D AS x")

    print(f"{'batches of ' + format(rows, ',') + ' rows a side':44}{'batches/s':>12}{'rows/s':>12}")
    ways: list[tuple[str, tight.Dependence | None]] = [
        ("no comparison", None),
        ("bag", tight.unordered),
        ("keyed", tight.same("taxi")),
    ]
    for name, upto in ways:
        left, right = generated(), generated()
        if upto is None:
            sink = left.union(right).writeStream.format("noop").option("checkpointLocation", str(folder / "none"))
            query, stop = (started := sink.start()), started.stop
        else:
            live = tight.compare_live(left, right, upto=upto, checkpoint=folder / name)
            query, stop = live.query, live.stop
        time.sleep(seconds)
        steps = [step for step in query.recentProgress if step["batchId"] >= 2 and step["numInputRows"]]
        spent = sum(step["durationMs"]["triggerExecution"] for step in steps) / 1000 or float("nan")
        count = sum(step["numInputRows"] for step in steps)
        stop()
        print(f"  {name:42}{len(steps) / spent:12.2f}{count / spent:12,.0f}", flush=True)


def memory(spark: SparkSession, seconds: float, rows: int, folder: Path) -> None:
    """Files of so many rows a second, the right side behind and in another order of taxis."""
    sides = {side: folder / side for side in ("left", "right")}
    for path in sides.values():
        path.mkdir()
    ends = time.monotonic() + seconds

    def write(side: str) -> None:
        start = time.monotonic() + (LAG if side == "right" else 0)
        for number in range(int(seconds)):
            time.sleep(max(0.0, start + number - time.monotonic()))
            order = range(rows) if side == "left" else reversed(range(rows))
            lines = [json.dumps({"taxi": i, "n": number, "x": i * 0.5}) for i in order]
            (folder / f".{side}").write_text("\n".join(lines))
            (folder / f".{side}").rename(sides[side] / f"{number:06}.json")

    def read(side: str) -> DataFrame:
        reader = spark.readStream.schema("taxi long, n long, x double").option("maxFilesPerTrigger", 1)
        return reader.json(str(sides[side]))

    writers = [threading.Thread(target=write, args=(side,)) for side in sides]
    for writer in writers:
        writer.start()
    live = tight.compare_live(read("left"), read("right"), upto=tight.same("taxi"), checkpoint=folder / "long")
    print(f"\n{live.way}; {rows:,} rows a second and side, right {LAG:g} s behind")
    columns = ("second", "rows", "unmatched", "oldest s", "state kB", "driver MB", "JVM heap MB", "batch s")
    print("".join(f"{column:>13}" for column in columns))
    while time.monotonic() < ends:
        time.sleep(10)
        metrics, progress = live.metrics, live.query.lastProgress
        if metrics is None or not progress:
            continue
        figures = (
            f"{seconds - (ends - time.monotonic()):.0f}",
            f"{metrics.left + metrics.right:,}",
            f"{metrics.unmatched:,}",
            f"{metrics.oldest_seconds or 0:.1f}",
            f"{progress['stateOperators'][0]['memoryUsedBytes'] / 1024:,.0f}",
            f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}",
            f"{heap(spark):.0f}",
            f"{metrics.seconds:.2f}",
        )
        print("".join(f"{figure:>13}" for figure in figures), flush=True)
    for writer in writers:
        writer.join()
    live.query.processAllAvailable()
    print(live.verdict())
    live.stop()


def heap(spark: SparkSession) -> float:
    """What the JVM's heap holds after a collection."""
    java: Any = spark._jvm
    java.System.gc()
    runtime = java.Runtime.getRuntime()
    return float(runtime.totalMemory() - runtime.freeMemory()) / MEGABYTE


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=60.0)
    options.add_argument("--rows", type=int, default=2_000, help="rows a second and side, for the memory")
    chosen = options.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="streamtight-bench-"))
    spark = tight.session()
    try:
        throughput(spark, 20.0, 100_000, folder)
        memory(spark, chosen.seconds, chosen.rows, folder)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
