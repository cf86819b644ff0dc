"""How long does it take to compare two recorded outputs of many rows, and how much memory?

    python benchmarks/large.py                            1, 3 and 10 million rows a side, every shape of relation
    python benchmarks/large.py --rows 100 --shape bag     the large one

The recordings are generated on disk, like those of a streaming query: a file for each micro-batch, and a log that tells
the order. The candidate has its rows in another order that the relation permits, in files that are cut elsewhere. Each
question is asked in a process of its own, with a small heap; processor time and memory are those of all its processes.

What more machines would do is told by two figures beside the processor time, nearly all of which is that of tasks: how
many `tasks` there are to share, and what they shuffle, which goes over the network.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

import streamtight as tight
from streamtight.spark.session import SMALL_RUNS

MILLION = 1_000_000
EPOCH = 10_000  # rows from one mark to the next
HEAP = "3g"
DISK = 150  # bytes a row and side: three recordings, and what a shuffle writes


def is_mark(event: tight.Event) -> bool:
    return bool(event.value < 0)


def is_even(event: tight.Event) -> bool:
    return bool(event.key % 2 == 0)


def same_key(a: tight.Event, b: tight.Event) -> bool:
    return bool(a.key == b.key)


@dataclass(frozen=True)
class Shape:
    """A question: which order matters, what is equal, and how the candidate was reordered."""

    upto: tight.Dependence
    order: str = "epochs"
    equal: tight.Equality | None = None
    most: float = 100
    """Millions of rows for which it is meant."""


SHAPES = {
    "bag": Shape(tight.unordered, "shuffled"),
    "keyed": Shape(tight.same("key")),
    "ordered": Shape(tight.ordered, "same"),
    "marks": Shape(tight.same("key") | tight.barrier(is_mark)),
    "marks of a key": Shape(tight.same("key") & tight.between(is_mark, lambda event: True)),
    "between": Shape(tight.between(is_mark, is_even)),
    "any": Shape(tight.depends(same_key), most=0.02),
    "bag, rounded": Shape(tight.unordered, "rounded", tight.equality(places={"value": 2})),
    "keyed, rounded": Shape(tight.same("key"), "rounded", tight.equality(places={"value": 2})),
}


# -- recordings -------------------------------------------------------------------------------------------------------


def record(spark: SparkSession, folder: Path, millions: float, order: str) -> None:
    """Write a recording: the rows 0, 1, 2, ... in this order, a file for each micro-batch."""
    rows = int(millions * MILLION)
    # Files end with an epoch, so that sorting within them never moves a row over a mark; the sides are cut elsewhere.
    files = max(4, round(millions / 4)) + (0 if order == "reference" else 3)
    epochs = -(-rows // EPOCH)
    files = min(files, epochs)
    frame = spark.range(0, epochs, 1, files).select(
        sf.explode(sf.sequence(sf.col("id") * EPOCH, sf.col("id") * EPOCH + EPOCH - 1)).alias("id")
    )
    frame = frame.filter(sf.col("id") < rows)
    n: Column = sf.col("id")
    if order == "shuffled":
        n = (sf.col("id") * 7_368_787 + 12_345) % rows  # a prime that divides no number of rows here
    value = sf.when(n % EPOCH == 0, -1.0).otherwise((n * 7919 % 100_003) / 4)
    if order == "rounded":
        value = value + (n % 7) / 4000
    frame = frame.select(
        (sf.xxhash64(sf.floor(n / 3)) % 100_000).alias("key"),
        n.alias("n"),
        value.alias("value"),
        sf.concat(sf.lit("text "), n % 1000).alias("text"),
    )
    if order in ("epochs", "rounded"):
        frame = frame.sortWithinPartitions(sf.floor(sf.col("n") / EPOCH), sf.col("value") >= 0, sf.col("key") % 97, "n")
    frame.write.option("compression", "snappy").parquet(str(folder))
    write_log(folder)


def write_log(folder: Path) -> None:
    """The log that a streaming query leaves, had each file been a micro-batch."""
    (folder / "_spark_metadata").mkdir(exist_ok=True)
    for number, file in enumerate(sorted(folder.glob("*.parquet"))):
        entry = json.dumps({"path": f"file://{file}", "size": 1, "action": "add"})
        (folder / "_spark_metadata" / str(number)).write_text(f"v1\n{entry}")


def spoil(spark: SparkSession, right: Path, wrong: Path, every: int) -> None:
    """The same recording with a wrong row near its end, or with many: all files but the last are only linked."""
    wrong.mkdir()
    *others, last = sorted(right.glob("*.parquet"))
    for file in others:
        os.link(file, wrong / file.name)
    rows = spark.read.parquet(str(last))
    last_of_all = rows.agg(sf.max("n")).collect()[0][0]
    chosen = sf.col("n") % every == 1 if every else sf.col("n") == last_of_all
    changed = rows.withColumn("value", sf.when(chosen, sf.col("value") + 1000.5).otherwise(sf.col("value")))
    changed.coalesce(1).write.parquet(str(wrong / "_last"))
    for file in (wrong / "_last").glob("*.parquet"):
        file.rename(wrong / last.name)
    shutil.rmtree(wrong / "_last")
    write_log(wrong)


# -- processes --------------------------------------------------------------------------------------------------------


@dataclass
class Use:
    """What a process and all that it started have used."""

    processor: float
    peaks: dict[str, float]


def descendants(root: int) -> Iterator[int]:
    parents: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path(f"/proc/{entry}/stat").read_text()
            except OSError:
                continue
            parents.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry))
    todo = [root]
    while todo:
        pid = todo.pop()
        yield pid
        todo += parents.get(pid, [])


def use_of(root: int) -> Use:
    ticks, peaks = 0, {"driver": 0.0, "JVM": 0.0, "worker": 0.0}
    for pid in descendants(root):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue
        ticks += sum(int(stat[place]) for place in (11, 12, 13, 14))  # its own, and those of children that have ended
        name = status.split(None, 2)[1]
        who = "driver" if pid == root else "JVM" if name == "java" else "worker"
        peak = [line for line in status.splitlines() if line.startswith("VmHWM")]
        peaks[who] = max(peaks[who], int(peak[0].split()[1]) / 1024 if peak else 0.0)
    return Use(ticks / os.sysconf("SC_CLK_TCK"), peaks)


class Meter:
    """Looks at the processes all the time, since some of them end early."""

    def __enter__(self) -> Meter:
        self._before = use_of(os.getpid()).processor
        self._started = time.perf_counter()
        self._ends = threading.Event()
        self.peaks: dict[str, float] = {}
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def _look(self) -> None:
        while not self._ends.wait(0.5):
            self._see()

    def _see(self) -> float:
        use = use_of(os.getpid())
        self.peaks = {who: max(peak, self.peaks.get(who, 0.0)) for who, peak in use.peaks.items()}
        return use.processor

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()
        self.seconds = time.perf_counter() - self._started
        self.processor = self._see() - self._before


# -- questions --------------------------------------------------------------------------------------------------------


def started(folder: Path) -> SparkSession:
    # The session that is for small runs has the quick compiler only; with many rows the other one pays.
    options = SMALL_RUNS["spark.driver.extraJavaOptions"].replace("-XX:TieredStopAtLevel=1", "")
    return tight.session(
        spark__driver__memory=HEAP,
        spark__local__dir=str(folder / "spark"),
        spark__driver__extraJavaOptions=options,
    )


def asked(folder: Path, shape: str, left: str, right: str) -> dict[str, object]:
    """One comparison, in this process."""
    spark = started(folder)
    spark.range(1000).selectExpr("sum(id)").collect()
    question = SHAPES[shape]
    with Meter() as meter:
        verdict = tight.compare(
            tight.recorded(folder / left),
            tight.recorded(folder / right),
            upto=question.upto,
            equal=question.equal,
            limit=36_000,
        )
    answer = verdict.counterexample.finding if verdict.counterexample else verdict.outcome.name
    told = verdict.counterexample.explanation if verdict.counterexample else verdict.reason
    shared = shared_work(spark)
    spark.stop()
    used = {"seconds": meter.seconds, "processor": meter.processor, **shared, **meter.peaks}
    return {**used, "answer": answer, "told": told}


def shared_work(spark: SparkSession) -> dict[str, float]:
    """What the tasks of this session did so far."""
    time.sleep(0.5)  # Spark notes what tasks did when another one ends, at most every 0.1 seconds
    spark.range(1).count()
    executor = spark.sparkContext._jsc.sc().statusStore().executorList(True).apply(0)
    return {
        "tasks": executor.totalTasks(),
        "shuffled": executor.totalShuffleWrite() / 1e9,
    }


def in_a_process(folder: Path, work: Callable[..., object], *arguments: object) -> dict[str, object]:
    line = [sys.executable, __file__, "--folder", str(folder), "--do", work.__name__, *map(str, arguments)]
    done = subprocess.run(line, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(line)} ended with {done.returncode}\n{done.stdout}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def recorded(folder: Path, name: str, millions: str, order: str) -> dict[str, object]:
    spark = started(folder)
    begun = time.perf_counter()
    record(spark, folder / name, float(millions), order)
    spark.stop()
    return {"seconds": time.perf_counter() - begun}


def spoiled(folder: Path, right: str, name: str, every: str) -> dict[str, object]:
    spark = started(folder)
    spoil(spark, folder / right, folder / name, int(every))
    spark.stop()
    return {}


WORK = {work.__name__: work for work in (asked, recorded, spoiled)}
HEAD = (
    f"{'shape':16}{'million rows':>13}{'seconds':>9}{'processor':>11}{'per million':>12}"
    f"{'driver':>9}{'JVM':>9}{'worker':>9}{'tasks':>7}{'shuffled':>10}  answer"
)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=float, nargs="+", default=[1, 3, 10], help="millions of rows on each side")
    parser.add_argument("--shape", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="where the recordings go")
    parser.add_argument("--wrong", action="store_true", help="also one wrong row, and a wrong row in ten")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--do", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.do:
        print(json.dumps(WORK[given.do[0]](given.folder, *given.do[1:])))
        return
    needed, free = max(given.rows) * MILLION * 2 * DISK, shutil.disk_usage(given.folder).free
    print(f"needs about {needed / 1e9:.1f} GB on disk; {free / 1e9:.1f} GB are free in {given.folder}")
    if needed > free:
        sys.exit("too little room; --folder=... names another place, --rows=... fewer rows")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the child and the folder go, too
    home = Path(tempfile.mkdtemp(prefix="large-", dir=given.folder))
    print(HEAD, flush=True)
    try:
        each: dict[str, list[tuple[float, float]]] = {}
        for millions in given.rows:
            in_a_process(home, recorded, "reference", millions, "reference")
            made: dict[str, str] = {}
            for shape in given.shape:
                question = SHAPES[shape]
                if millions > question.most:
                    print(f"{shape:16}{millions:13g}  not asked: meant for up to {question.most} million rows")
                    continue
                if question.order not in made:
                    for old in made:
                        shutil.rmtree(home / old)
                    made = {question.order: question.order}
                    in_a_process(home, recorded, question.order, millions, question.order)
                rights = [question.order]
                if given.wrong:
                    for name, every in (("one wrong row", 0), ("many wrong rows", 10)):
                        in_a_process(home, spoiled, question.order, name, every)
                        rights.append(name)
                for right in rights:
                    told = in_a_process(home, asked, shape, "reference", right)
                    if (told["answer"] == "HOLDS") != (right == question.order):
                        sys.exit(f"{shape}, {right}: {told['answer']} is a wrong answer")
                    if right == question.order:
                        each.setdefault(shape, []).append((millions, float(str(told["processor"])) / millions))
                    print(line_of(shape, millions, told), flush=True)
                    if right in ("one wrong row", "many wrong rows"):
                        shutil.rmtree(home / right)
            for name in ("reference", *made):
                shutil.rmtree(home / name)
        print("\nprocessor seconds per million rows, as a multiple of the smallest size")
        for shape, figures in each.items():
            print(f"  {shape:16}" + "".join(f"{millions:6g} M {per / figures[0][1]:5.2f}" for millions, per in figures))
    finally:
        if not given.keep:
            shutil.rmtree(home, ignore_errors=True)


def line_of(shape: str, millions: float, told: dict[str, object]) -> str:
    seconds, processor = float(str(told["seconds"])), float(str(told["processor"]))
    memory = "".join(f"{float(str(told[who])):6.0f} MB" for who in ("driver", "JVM", "worker"))
    shared = f"{told['tasks']:7}{float(str(told['shuffled'])):7.2f} GB"
    answer = f"{told['answer']}" + (f": {str(told['told'])[:150]}" if told["told"] else "")
    return (
        f"{shape:16}{millions:13g}{seconds:9.1f}{processor:11.1f}{processor / millions:12.2f}{memory}{shared}  {answer}"
    )


if __name__ == "__main__":
    main()
