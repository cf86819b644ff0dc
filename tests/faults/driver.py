"""A Spark driver for fault runs: python driver.py MASTER; takes runs as lines of JSON, and answers with lines of JSON.

A run is told by {"folder": ..., "what": ..., "bug": ..., ...}; the driver starts its queries and says STARTED. When
all has come, it is told {"finish": true}, waits until all is handled, and says RESULT. It may be killed at any time:
another one is then given the same run, and goes on from the checkpoints.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import traceback
import uuid
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import streamtight as tight

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "spark")]

from scenario import LARGEST, with_bug  # noqa: E402
from standalone import session_on  # noqa: E402

COLUMNS = "k long, n long, v long"
UPTO = {"live keyed": tight.same("k"), "live ordered": tight.ordered, "live bag": tight.unordered}

Value, Barrier = tight.Kind("Value", time=int, value=int), tight.Kind("Barrier", time=int)
Total = tight.Kind("Total", time=int, total=int)


class Windows(tight.ForkJoin):
    """Sums of the values between barriers."""

    takes, gives, depends = (Value, Barrier), (Total,), tight.barrier(Barrier)
    whole, part = tight.StateType(Value, Barrier), tight.StateType(Value)
    branches = (tight.Branch(whole, part, part), tight.Branch(part, part, part))

    def init(self) -> int:
        return 0

    def update(self, total: int, event: Any, emit: Any) -> int:
        if event.kind is Value:
            return total + event.value
        emit(Total(event.time, total))
        return 0

    def fork(self, total: int, left: Any, right: Any) -> tuple[int, int]:
        return total, 0

    def join(self, left: int, right: int) -> int:
        return left + right


class ForgetfulWindows(Windows):
    """The same, with a bug: what the right side has added up is lost."""

    def join(self, left: int, right: int) -> int:
        return left


def put(path: Path, lines: list[str], at: int) -> None:
    """A file that is there all at once, with a time of its own."""
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    beside.write_text("".join(line + "\n" for line in lines))
    os.utime(beside, (at, at))
    beside.replace(path)


class Run:
    """The queries of one run."""

    def __init__(self, spark: SparkSession, told: dict[str, Any]) -> None:
        self.spark, self.told = spark, told
        self.folder = Path(told["folder"])
        self.what, self.bug, self.target = told["what"], told["bug"], told["target"]
        self.queries: list[Any] = []
        self.alarms: list[str] = []

    # -- what is started ---------------------------------------------------------------------------------------------

    def start(self) -> None:
        if self.what in UPTO:
            self._start_live()
        elif self.what == "query":
            self._start_query()
        elif self.what == "formula":
            self._start_formula()
        else:
            self._start_parallel()

    def _parsed(self) -> DataFrame:
        """What comes in, file by file; a broken record has nulls, or ends the job."""
        mode = "FAILFAST" if self.told["fails_fast"] else "PERMISSIVE"
        lines = self.spark.readStream.option("maxFilesPerTrigger", 1).text(str(self.folder / "in"))
        return lines.select(sf.from_json("value", COLUMNS, {"mode": mode}).alias("row")).select("row.*")

    def _start_live(self) -> None:
        """The job under test, which writes `new`, and the comparison with `old`, which another one writes."""

        def write(frame: DataFrame, batch: int) -> None:
            rows = with_bug([row.asDict() for row in frame.collect()], self.bug, self.target)
            # A job whose batches may come twice must write to the same place twice.
            name = f"{batch}-{uuid.uuid4().hex}.json" if self.bug == "double" else f"{batch}.json"
            put(self.folder / "new" / name, [json.dumps(row) for row in rows], batch + 1)

        writer = self._parsed().writeStream.foreachBatch(write)
        self.job = writer.option("checkpointLocation", str(self.folder / "job")).start()
        sides = []
        for side in ("old", "new"):
            reader = self.spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
            sides.append(reader.json(str(self.folder / side)))
        self.live = tight.compare_live(
            *sides,
            upto=UPTO[self.what],
            checkpoint=self.folder / "live",
            stuck_after_seconds=600,
            on_alarm=lambda alarm: self.alarms.append(alarm.finding),
        )
        self.queries = [self.job, self.live.query]

    def _start_query(self) -> None:
        q = tight.query
        queries = {"total": q.total(q.cur.v, "v"), "small": q.historically(q.holds(q.cur.v < LARGEST, before=True))}
        rows = self._parsed().where("k IS NOT NULL")
        if self.bug == "wrong":
            rows = rows.withColumn(
                "v", sf.when(sf.col("n") == self.target, sf.col("v") + LARGEST).otherwise(sf.col("v"))
            )
        answers = tight.watch(queries, rows, key="k", order_by="n", tags={"v": "true"})

        def write(frame: DataFrame, batch: int) -> None:
            found = [[row.k, row.n, row.total, row.small, row.total_status] for row in frame.collect()]
            put(self.folder / "answers" / f"{batch}.json", [json.dumps(row) for row in found], batch + 1)

        writer = answers.writeStream.foreachBatch(write).option("checkpointLocation", str(self.folder / "job"))
        self.job = writer.start()
        self.queries = [self.job]

    def _start_formula(self) -> None:
        rows = self._parsed().where("k IS NOT NULL")
        if self.bug == "wrong":
            rows = rows.withColumn(
                "v", sf.when(sf.col("n") == self.target, sf.col("v") + LARGEST).otherwise(sf.col("v"))
            )
        elif self.bug == "drop":
            rows = rows.where(f"n != {self.target}")
        small = tight.all_records("output", lambda row: row.v < LARGEST).named("small")
        marked = tight.some_record("output", lambda row: row.k == -1).named("marked")
        promise = tight.always(small & marked, during=self.told["files"])
        self.watched = tight.watch(promise, rows, checkpoint=self.folder / "promise")
        self.queries = [self.watched.query]

    def _start_parallel(self) -> None:
        streams = [tight.InputStream("values", Value, rate=100), tight.InputStream("barriers", Barrier)]
        program = ForgetfulWindows() if self.bug == "join" else Windows()
        parallel = tight.parallelize(program, streams, workers=2)
        inputs = {}
        for name, columns in (("in", "kind string, time long, value long"), ("barriers", "kind string, time long")):
            reader = self.spark.readStream.schema(columns).option("maxFilesPerTrigger", 1)
            inputs["values" if name == "in" else name] = reader.json(str(self.folder / name)).where("time IS NOT NULL")
        self.parallel = parallel.start(
            inputs, checkpoint=str(self.folder / "parallel"), output=str(self.folder / "totals")
        )
        self.queries = [self.parallel]

    # -- what is found -----------------------------------------------------------------------------------------------

    def finish(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.what in UPTO:
            found["job"] = self._waited(self.job)
            found["live"] = self._waited(self.live.query)
            if found["live"] is None:
                ended = found["job"] is None
                verdict = self.live.verdict(ended=ended)
                found |= {"verdict": verdict_text(verdict), "alarms": sorted({a.finding for a in self.live.alarms})}
                metrics = self.live.metrics
                found |= {"left": metrics.left, "right": metrics.right} if metrics is not None else {}
        elif self.what == "query":
            found["job"] = self._waited(self.job)
        elif self.what == "formula":
            found["job"] = self._waited(self.watched.query)
            if found["job"] is None:
                verdict = self.watched.verdict()
                found |= {
                    "verdict": verdict_text(verdict),
                    "letters": self.watched.letters,
                    "rows": verdict.scope.count,
                }
        else:
            found["job"] = self._waited(self.parallel)
        return found

    @staticmethod
    def _waited(query: Any) -> str | None:
        """None if all was handled; else what ended it."""
        try:
            query.processAllAvailable()
        except Exception as error:
            return f"{type(error).__name__}: {error}"[:2000]
        return None

    def stop(self) -> None:
        for query in self.queries:
            with contextlib.suppress(Exception):
                query.stop()


def verdict_text(verdict: Any) -> str:
    finding = f" {verdict.counterexample.finding}" if verdict.counterexample is not None else ""
    return f"{verdict.outcome.name}{finding}"


def say(word: str, **rest: Any) -> None:
    print(json.dumps({"said": word, "at": time.time(), **rest}), flush=True)


def main(master: str) -> None:
    spark = session_on(master)
    say("READY")
    run: Run | None = None
    for line in sys.stdin:
        told = json.loads(line)
        try:
            if told.get("finish") and run is not None:
                say("RESULT", **run.finish())
                run.stop()
            elif "folder" in told:
                run = Run(spark, told)
                run.start()
                say("STARTED")
        except tight.StreamtightError as error:
            finding = error.verdict.counterexample.finding if hasattr(error, "verdict") else ""
            say("REFUSED", error=f"{type(error).__name__} {finding}".strip(), text=str(error)[:1000])
        except Exception as error:
            traceback.print_exc()
            say("RAISED", error=f"{type(error).__name__}: {error}"[:2000])


if __name__ == "__main__":
    main(*sys.argv[1:])
