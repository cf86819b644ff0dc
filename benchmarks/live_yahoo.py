"""What does a live comparison cost two versions of the Yahoo streaming benchmark, and does its memory stay flat?

    python benchmarks/live_yahoo.py               the highest throughput, with and without the comparison, in turns
    python benchmarks/live_yahoo.py --kafka       the same with events from a Kafka broker
    python benchmarks/live_yahoo.py --soak 30     half an hour at a steady rate, side by side
    python benchmarks/live_yahoo.py --soak 30 --chart docs/yahoo.svg

As in section 5.4 of the DiffStream paper: the job of examples/yahoo.py in one task and in two, compared after the join;
without the comparison, both versions run all the same, in one query that throws the rows away as the paper's dummy
matcher does. And as users would run them: both go on to count and write, without the comparison as two queries. The
paper gives a loss of 5 % of the highest throughput. Look at the ratios, on a machine that is idle.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import streamtight as tight

sys.path.append(str(Path(__file__).parents[1] / "examples"))

import yahoo

from streamtight.spark.metrics_picture import Panel, chart
from streamtight.stream.svg import stacked

MEGABYTE = 1 << 20
ARMS = ("without", "with")
WARM_UP = 3  # rounds that do not count: the JVM compiles
EVERY = 5.0  # seconds between the micro-batches of the soak
PER_SECOND = 10_000  # of the events that are read as fast as they go: only their event times depend on it
Write = Callable[[str, DataFrame, int], None]
"""What a version does with its rows of a micro-batch."""


# -- the highest throughput --------------------------------------------------------------------------------------------


def throughput(events: int, batches: int, rounds: int, *, kafka: bool) -> None:
    """Read what is there as fast as it goes, with and without the comparison in turns."""
    with tempfile.TemporaryDirectory() as name, yahoo.parts(kafka=kafka, redis=False, per_second=PER_SECOND) as given:
        spark, source, store = given
        folder = Path(name)
        read = _filled(spark, source, folder, events, batches)
        campaigns = spark.createDataFrame(store.campaigns(), "ad_id string, campaign_id string").cache()
        left, right = (yahoo.views(read(), campaigns, tasks=tasks) for tasks in (1, 2))
        found: dict[tuple[str, str], list[tuple[float, float]]] = {}
        print(f"{events:,} events in {batches} micro-batches, {rounds} rounds", flush=True)
        for number in range(-WARM_UP, rounds):
            for what, write in (
                ("joined", None),
                ("joined, counted, written", functools.partial(yahoo.count_and_write, store)),
            ):
                for arm in ARMS[:: 1 if number % 2 else -1]:
                    spent = _drained(arm, left, right, write, folder / f"{number} {what} {arm}")
                    if number >= 0:
                        found.setdefault((what, arm), []).append(spent)
        _told(found, events)


def _filled(spark: SparkSession, source: Any, folder: Path, events: int, batches: int) -> Callable[[], DataFrame]:
    """All events at once, on a topic or in files; and how to read them, in so many micro-batches."""
    if isinstance(source, yahoo.Kafka):
        for first in range(1, events, 1 + events // 10):
            source.write(range(first, min(events, first + 1 + events // 10)))
        per_batch = str(1 + events // batches)
        return lambda: source.read(maxOffsetsPerTrigger=per_batch)
    numbered = spark.range(0, events, 1, batches).withColumnRenamed("id", "value")
    yahoo.as_json(numbered, start_ms=0, per_second=PER_SECOND).write.text(str(folder / "events"))
    return lambda: spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder / "events"))


def _drained(arm: str, left: DataFrame, right: DataFrame, write: Write | None, checkpoint: Path) -> tuple[float, float]:
    """Seconds from start to end, and seconds of processors."""
    begin, before = time.monotonic(), _processor_seconds(left.sparkSession)
    if arm == "with":
        live = tight.compare_live(
            left, right, upto=tight.unordered, checkpoint=checkpoint, then=_then(write), every=None
        )
        live.query.awaitTermination()
        live.stop()
        live.verdict().require()
    else:
        for query in _alone(left, right, write, checkpoint, availableNow=True):
            query.awaitTermination()
    return time.monotonic() - begin, _processor_seconds(left.sparkSession) - before


def _alone(left: DataFrame, right: DataFrame, write: Write | None, checkpoint: Path, **trigger: Any) -> list[Any]:
    """Both versions without a comparison: in one query to the join, or a query for each that goes on from there."""
    if write is None:
        writers = {"both": left.union(right).writeStream.format("noop")}
    else:
        writers = {
            version: frame.writeStream.foreachBatch(functools.partial(write, version))
            for version, frame in zip(yahoo.VERSIONS, (left, right), strict=True)
        }
    return [
        writer.option("checkpointLocation", str(checkpoint / name)).trigger(**trigger).start()
        for name, writer in writers.items()
    ]


def _then(write: Write | None) -> Callable[[DataFrame, DataFrame, int], None] | None:
    """The same for both versions."""
    if write is None:
        return None

    def both(left: DataFrame, right: DataFrame, batch: int) -> None:
        for version, frame in zip(yahoo.VERSIONS, (left, right), strict=True):
            write(version, frame, batch)

    return both


def _told(found: dict[tuple[str, str], list[tuple[float, float]]], events: int) -> None:
    print(f"{'':46}{'events/s':>12}{'CPU s/million':>16}{'ratio':>9}{'ratio of CPU':>14}")
    for (what, arm), spent in found.items():
        seconds, processor = (statistics.median(one[place] for one in spent) for place in (0, 1))
        # Round by round, since the machine may be slower for a while.
        pairs = list(zip(found[what, "without"], spent, strict=True))
        ratios = [statistics.median(base[place] / mine[place] for base, mine in pairs) for place in (0, 1)]
        name = f"{what}, {arm} comparison"
        print(
            f"{name:46}{events / seconds:12,.0f}{processor * 1e6 / events:16.2f}{ratios[0]:9.3f}{ratios[1]:14.3f}",
            flush=True,
        )


def _processor_seconds(spark: SparkSession) -> float:
    java: Any = spark._jvm
    ticks = Path(f"/proc/{java.ProcessHandle.current().pid()}/stat").read_text().rpartition(")")[2].split()
    return (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK") + time.process_time()


# -- half an hour ------------------------------------------------------------------------------------------------------


def soak(minutes: float, per_second: int, place: Path | None) -> None:
    """A steady rate, with and without the comparison at the same time, each in a process of its own."""
    folder = Path(tempfile.mkdtemp(prefix="streamtight-soak-"))
    command = [sys.executable, __file__, "--per-second", str(per_second), "--soak", str(minutes), "--into", str(folder)]
    children = [subprocess.Popen([*command, "--arm", arm]) for arm in ARMS]
    try:
        for child in children:
            if child.wait() != 0:
                raise SystemExit(f"a child ended with {child.returncode}")
        samples = {arm: list(map(json.loads, (folder / f"{arm}.jsonl").read_text().splitlines())) for arm in ARMS}
    finally:
        for child in children:
            child.terminate()
        shutil.rmtree(folder, ignore_errors=True)
    _summed_up(samples, minutes, per_second)
    if place is not None:
        place.write_text(_chart(samples, per_second))
        print(f"{place} written")


class _Written:
    """What the versions wrote: how long its events had waited for that, and for the comparison's word."""

    def __init__(self, checkpoint: Path, start: int) -> None:
        """start   the time of the first event, in milliseconds, as the events say"""
        self._checkpoint, self._start = checkpoint, start
        self._new: list[tuple[float, float, int]] = []
        self._times: dict[int, tuple[int, int]] = {}

    def __call__(self, version: str, viewed: DataFrame, batch: int) -> None:
        """Count, and note when the counts were there."""
        rows = yahoo.counts(viewed).collect()
        if rows:
            now = time.time() * 1000
            late = self._began(version) - self._start
            first, last = min(row["first"] for row in rows) + late, max(row["last"] for row in rows) + late
            self._new.append(((now - first) / 1000, (now - last) / 1000, sum(row["views"] for row in rows)))
            self._times[batch] = (first, last)

    def _began(self, version: str) -> int:
        """When Spark began to make events, in milliseconds: a query needs time to start, which is not their latency."""
        own = self._checkpoint / version
        notes = (own if own.is_dir() else self._checkpoint).rglob("sources/0/0")
        return int(next(notes).read_text().split()[-1])

    def new(self) -> dict[str, Any]:
        """Seconds of the oldest and the newest event of each write since the last time; and the views of them."""
        taken, self._new = self._new, []
        return {"result": [one[:2] for one in taken], "views": sum(one[2] for one in taken)} if taken else {}

    def judged(self, known: tight.Metrics) -> dict[str, Any]:
        """Seconds of the oldest and the newest event of a micro-batch, until its rows were judged; told once."""
        if known.batch not in self._times:
            return {}
        first, last = self._times.pop(known.batch)
        now = (known.at.timestamp() + known.seconds) * 1000
        return {"judged": [((now - first) / 1000, (now - last) / 1000)]}


def arm_of_soak(arm: str, minutes: float, per_second: int, into: Path) -> None:
    """One of the two: sample it every second, for so long."""
    with yahoo.parts(kafka=False, redis=False, per_second=per_second) as (spark, _, store), _scratch() as folder:
        campaigns = spark.createDataFrame(store.campaigns(), "ad_id string, campaign_id string").cache()
        start = int(time.time() * 1000)

        def read() -> DataFrame:
            source = spark.readStream.format("rate").option("rowsPerSecond", per_second).option("numPartitions", 2)
            return yahoo.as_json(source.load(), start_ms=start, per_second=per_second)

        left, right = (yahoo.views(read(), campaigns, tasks=tasks) for tasks in (1, 2))
        checkpoint, live = folder / "checkpoint", None
        written = _Written(checkpoint, start)
        if arm == "with":
            live = tight.compare_live(
                left, right, upto=tight.unordered, checkpoint=checkpoint, then=_then(written), every=EVERY,
                stuck_after_seconds=60.0,
            )  # fmt: skip
            queries = [live.query]
        else:
            queries = _alone(left, right, written, checkpoint, processingTime=f"{EVERY} seconds")
        with (into / f"{arm}.jsonl").open("w") as out:
            _sample(spark, queries, live, written, out, minutes)
        for query in queries:
            query.stop()
        if live is not None:
            live.stop()
            print(f"{live.verdict().outcome.name} after {live.metrics}; {len(live.alarms)} alarms", flush=True)


def _sample(spark: SparkSession, queries: list[Any], live: Any, written: _Written, out: Any, minutes: float) -> None:
    begin, told = time.monotonic(), 0.0
    last_batch = dict.fromkeys(range(len(queries)), -1)
    java: Any = spark._jvm
    pid = java.ProcessHandle.current().pid()
    while (now := time.monotonic() - begin) < minutes * 60 and all(query.isActive for query in queries):
        runtime = java.Runtime.getRuntime()
        sample: dict[str, Any] = {
            "at": now,
            "heap": (runtime.totalMemory() - runtime.freeMemory()) / MEGABYTE,
            "resident": (_resident(pid) + _resident(os.getpid())) / MEGABYTE,
            "processor": _processor_seconds(spark),
            **written.new(),
        }
        ended = []
        for number, query in enumerate(queries):
            progress = query.lastProgress
            if progress and progress["batchId"] > last_batch[number] and progress["numInputRows"]:
                last_batch[number] = progress["batchId"]
                ended.append(progress["durationMs"]["triggerExecution"] / 1000)
        if ended:
            sample["batch_seconds"] = max(ended)
        if live is not None and live.metrics is not None:
            known = live.metrics
            sample |= {"unmatched": known.unmatched, **written.judged(known)}
            if now - told >= 60:
                told = now
                print(f"{now / 60:5.0f} min {known}", flush=True)
        out.write(json.dumps(sample) + "\n")
        out.flush()
        time.sleep(1)


def _summed_up(samples: dict[str, list[dict[str, Any]]], minutes: float, per_second: int) -> None:
    print(f"{minutes:g} minutes, {per_second:,} events a second, both at the same time on one machine")
    print(f"{'':46}{'without':>12}{'with':>12}")
    rows: list[tuple[str, Callable[[list[dict[str, Any]]], float]]] = [
        ("JVM heap in use, MB: median", lambda some: _middle(some, "heap")),
        ("  of the second tenth of the time", lambda some: _middle(some[len(some) // 10 : len(some) // 5], "heap")),
        ("  of the last tenth", lambda some: _middle(some[-len(some) // 10 :], "heap")),
        ("resident memory, MB: second tenth", lambda some: _middle(some[len(some) // 10 : len(some) // 5], "resident")),
        ("  last tenth", lambda some: _middle(some[-len(some) // 10 :], "resident")),
        ("seconds a micro-batch: median", lambda some: _middle(some, "batch_seconds")),
        ("  99 of 100", lambda some: _quantile(_known(some, "batch_seconds"), 0.99)),
        ("seconds from event to result: median", lambda some: _quantile(_latencies(some, "result"), 0.5)),
        ("  99 of 100", lambda some: _quantile(_latencies(some, "result"), 0.99)),
        ("seconds from event to verdict: median", lambda some: _quantile(_latencies(some, "judged"), 0.5)),
        ("  99 of 100", lambda some: _quantile(_latencies(some, "judged"), 0.99)),
        ("unmatched: median", lambda some: _middle(some, "unmatched")),
        ("  99 of 100", lambda some: _quantile(_known(some, "unmatched"), 0.99)),
        ("  most", lambda some: max(_known(some, "unmatched"), default=float("nan"))),
        ("processors, seconds a minute", lambda some: _slope(some, "processor") * 60),
        ("views, million", lambda some: sum(_known(some, "views")) / 1e6),
    ]
    for name, figure in rows:
        print(f"{name:46}" + "".join(f"{figure(samples[arm]):12,.2f}" for arm in ARMS))


def _known(samples: Iterable[dict[str, Any]], name: str) -> list[float]:
    return [sample[name] for sample in samples if sample.get(name) is not None]


def _middle(samples: Iterable[dict[str, Any]], name: str) -> float:
    return statistics.median(known) if (known := _known(samples, name)) else float("nan")


def _quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


def _latencies(samples: Iterable[dict[str, Any]], name: str) -> list[float]:
    """Of ten events of each micro-batch, spread over its time: events come evenly."""
    return [
        newest + (oldest - newest) * (part + 0.5) / 10
        for sample in samples
        for oldest, newest in sample.get(name, ())
        for part in range(10)
    ]


def _slope(samples: Sequence[dict[str, Any]], name: str) -> float:
    """By how much it grows in a second, after the first tenth of the time."""
    first, last = samples[len(samples) // 10], samples[-1]
    return float((last[name] - first[name]) / (last["at"] - first["at"]))


def _chart(samples: dict[str, list[dict[str, Any]]], per_second: int) -> str:
    # Without the first minute, in which Spark starts and compiles: it would make all the others flat.
    samples = {arm: [sample for sample in some if sample["at"] > 60] for arm, some in samples.items()}
    grid = [sample["at"] for sample in samples["with"]]
    over_time = chart(
        grid,
        [
            Panel("heap in use, MB", {arm: _on(grid, samples[arm], "heap") for arm in ARMS}),
            Panel("unmatched rows", {"with": _on(grid, samples["with"], "unmatched")}),
            Panel("seconds a micro-batch", {arm: _on(grid, samples[arm], "batch_seconds") for arm in ARMS}),
        ],
        label=f"{per_second:,} events a second: memory, unmatched rows and seconds a micro-batch over time",
    )
    latencies = {arm: sorted(_latencies(samples[arm], "result")) for arm in ARMS}
    latencies["judged"] = sorted(_latencies(samples["with"], "judged"))
    most = max(_quantile(each, 0.999) for each in latencies.values())
    steps = [most * step / 200 for step in range(201)]
    slower = {
        arm: [sum(one > step for one in each) / max(1, len(each)) for step in steps] for arm, each in latencies.items()
    }
    by_latency = chart(
        steps,
        [Panel("share of events that took longer, from event to result or verdict, than so many seconds", slower)],
        label="latency of events, with and without the comparison",
    )
    return stacked(over_time, by_latency)


def _on(grid: Sequence[float], samples: Sequence[dict[str, Any]], name: str) -> list[float | None]:
    """The last known value at each of these times."""
    found: list[float | None] = []
    place, last = 0, None
    for at in grid:
        while place < len(samples) and samples[place]["at"] <= at:
            last = samples[place].get(name) if samples[place].get(name) is not None else last
            place += 1
        found.append(last)
    return found


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="streamtight-soak-") as folder:
        yield Path(folder)


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--events", type=int, default=2_000_000)
    options.add_argument("--batches", type=int, default=2)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--kafka", action="store_true", help="events from a Kafka broker")
    options.add_argument("--soak", type=float, metavar="MINUTES", help="memory, unmatched and latency over so long")
    options.add_argument("--per-second", type=int, default=2_000, help="events a second, for the soak")
    options.add_argument("--chart", type=Path, help="where the picture of the soak goes")
    options.add_argument("--arm", choices=ARMS, help=argparse.SUPPRESS)
    options.add_argument("--into", type=Path, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that children and folders go, too
    if chosen.arm:
        arm_of_soak(chosen.arm, chosen.soak, chosen.per_second, chosen.into)
    elif chosen.soak:
        soak(chosen.soak, chosen.per_second, chosen.chart)
    else:
        throughput(chosen.events, chosen.batches, chosen.rounds, kafka=chosen.kafka)


if __name__ == "__main__":
    main()
