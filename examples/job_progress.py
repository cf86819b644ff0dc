"""Does a running job do as it usually does? Its own progress is a stream, too.

    python examples/job_progress.py

Spark tells a listener about every micro-batch. Here each of these reports is an item, and queries in plain Python,
without Spark, say whether a batch took much longer than those before it, and whether nothing came three times in a row.
The job itself is a watched stream, so that `WatchMetrics` counts its answers.
"""

from __future__ import annotations

import json
import os
import queue
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming import StreamingQueryListener

import streamtight as tight

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

q = tight.query
Item = tuple[str, dict[str, Any]]

FEW = 5
"""Before so many batches nothing is said of what is usual."""

# The batches before this one, and then this one: how much longer is it than what is usual?
usual = q.mean(q.cur.seconds) + 3 * q.deviation(q.cur.seconds)
too_long = q.split(usual, q.atom("batch", q.cur.seconds), lambda usual, seconds: seconds - usual)
is_quick = (q.count("batch") <= FEW) | (q.fill_with(too_long, 0) <= 0)
is_fed = q.historically(~q.historically_within(q.holds(q.cur.rows == 0, "batch"), 3))
QUERIES = {"is_quick": is_quick, "is_fed": is_fed}


class ProgressItems(StreamingQueryListener):
    """Iterates over the micro-batches of a streaming query, as items, until the query ends."""

    def __init__(self) -> None:
        self._items: queue.Queue[Item | None] = queue.Queue()

    def __iter__(self) -> Iterator[Item]:
        while (item := self._items.get(timeout=120)) is not None:
            yield item

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - the names are Spark's
        """A micro-batch has ended. The first one starts Python on the way, so it says nothing of the others."""
        told = event.progress
        if told.batchId == 0:
            return
        seconds = told.durationMs["triggerExecution"] / 1000
        self._items.put(("batch", {"number": told.batchId, "rows": told.numInputRows, "seconds": seconds}))

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """The query has ended."""
        self._items.put(None)

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Nothing to tell yet."""

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Nothing has come."""


# -- a job to look at --------------------------------------------------------------------------------------------------


def job(spark: SparkSession, folder: Path) -> DataFrame:
    """Is each sensor below 30 degrees?"""
    rows = spark.readStream.schema("sensor int, at int, degrees int").option("maxFilesPerTrigger", 1).json(str(folder))
    return tight.watch({"is_cool": q.holds(q.cur.degrees < 30)}, rows, key="sensor", order_by="at")


def run(spark: SparkSession, sizes: Iterable[int], slow: int, folder: Path) -> tuple[list[Item], tight.WatchMetrics]:
    """Run the job on files with so many rows each, with a sink that is slow once: the items, and the metrics."""
    (folder / "rows").mkdir()
    for number, size in enumerate(sizes):
        rows = [{"sensor": each % 2, "at": 1000 * number + each, "degrees": 20 + each} for each in range(size)]
        path = folder / "rows" / f"{number}.json"
        path.write_text("\n".join(map(json.dumps, rows)))
        os.utime(path, (number, number))  # Spark reads the oldest file first

    def sink(frame: DataFrame, number: int) -> None:
        frame.count()
        time.sleep(3 if number == slow else 0)

    progress, metrics = ProgressItems(), tight.WatchMetrics()
    for listener in (progress, metrics):
        spark.streams.addListener(listener)
    try:
        writer = job(spark, folder / "rows").writeStream.foreachBatch(sink)
        query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
        query.processAllAvailable()
        query.stop()
        return list(progress), metrics
    finally:
        for listener in (progress, metrics):
            spark.streams.removeListener(listener)


# -- the same questions in plain Python --------------------------------------------------------------------------------


def by_hand(items: Iterable[Item]) -> list[dict[str, bool]]:
    """The same, as a plain loop that keeps everything."""
    seconds: list[float] = []
    rows: list[int] = []
    found, is_fed = [], True
    for _, batch in items:
        usual = statistics.fmean(seconds) + 3 * statistics.pstdev(seconds) if seconds else 0.0
        is_quick = len(seconds) < FEW or batch["seconds"] <= usual
        seconds.append(batch["seconds"])
        rows.append(batch["rows"])
        is_fed = is_fed and not (len(rows) >= 3 and not any(rows[-3:]))
        found.append({"is_quick": is_quick, "is_fed": is_fed})
    return found


def main() -> int:
    """A job with a slow batch and some empty ones."""
    for name, query in QUERIES.items():
        print(f"{name} needs {query.bound()}")
    sizes = [*[12] * 12, *[0] * 3, *[12] * 2]
    with tempfile.TemporaryDirectory() as folder:
        items, metrics = run(tight.session(), sizes, 10, Path(folder))
    answers = list(tight.watch(QUERIES, items))
    for (_, batch), answer in zip(items, answers, strict=True):
        broken = [name for name, is_so in answer.items() if not is_so]
        told = f"   not {', not '.join(broken)}" if broken else ""
        print(f"batch {batch['number']:2}: {batch['rows']:2} rows in {batch['seconds']:5.2f} s{told}")
    print(metrics.totals())
    same = answers == by_hand(items) and len(items) == len(sizes) - 1
    print(f"{len(answers)} answers; those of the plain loop: {same}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
