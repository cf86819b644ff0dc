"""Asks every verb on a given master: python verdict_script.py MASTER FOLDER SHIP [VERB ...]; prints a line of JSON.

SHIP is "ship" if the module with the jobs shall be shipped to the executors, "as_it_is" if not, "later" if it shall be
after the first question, which is then asked again.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import verdict_jobs as jobs
from pyspark.sql import SparkSession
from standalone import session_on

import streamtight as tight

Told = dict[str, Any]
readings = tight.generated(jobs.Reading, upto=tight.same("sensor"), sensor=["a", "b"], value=range(6))
in_any_order = tight.generated(jobs.Reading, upto=tight.unordered, sensor=["a", "b"], value=range(6))


def told(verdict: Any) -> str:
    finding = f" {verdict.counterexample.finding}" if verdict.counterexample is not None else ""
    return f"{verdict.outcome.name}{finding}"


def write_json(folder: Path, number: int, rows: list[dict[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{number}.json"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.utime(path, (number, number))


class Asked:
    """The verbs, each with what it says of something right and of something wrong."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder

    def compare(self) -> Told:
        options: dict[str, Any] = {"on": readings, "upto": tight.same("sensor"), "runs": 4, "shrink": 1}
        return {
            "right": told(tight.compare(jobs.plain, jobs.by_function, **options)),
            "wrong": told(tight.compare(jobs.plain, jobs.by_wrong_function, **options)),
        }

    def laws(self) -> Told:
        options: dict[str, Any] = {"on": readings, "mode": "complete", "runs": 3, "shrink": 1}
        right = tight.laws(jobs.totals, only=["cuts", "restarts"], **options)
        wrong = tight.laws(jobs.newest, only=["order"], **{**options, "on": in_any_order})
        return {
            **{f"right {law}": told(verdict) for law, verdict in right.items()},
            **{f"wrong {law}": told(verdict) for law, verdict in wrong.items()},
        }

    def check(self) -> Told:
        even = tight.all_records("output", lambda row: row.value % 2 == 0).named("even")
        promise = tight.always(even, during=2)
        options: dict[str, Any] = {"on": [[jobs.Reading("a", 1)], [jobs.Reading("a", 3)]], "runs": 1, "shrink": 1}
        return {
            "right": told(tight.check(jobs.by_function, promise, **options)),
            "wrong": told(tight.check(jobs.by_wrong_function, promise, **options)),
        }

    def prove(self) -> Told:
        rdd, table = [tight.rdd(int)], [tight.table(sensor=str, value=int)]
        return {
            "right": told(tight.prove(jobs.old, jobs.new, inputs=rdd)),
            "wrong": told(tight.prove(jobs.old, jobs.off_by_one, inputs=rdd)),
            "wrong frames": told(tight.prove(jobs.plain, jobs.by_wrong_function, inputs=table)),
        }

    def typecheck(self) -> Told:
        table = tight.table(sensor=str, value=int)
        return {
            "right": told(tight.typecheck(jobs.largest, takes=table)),
            "wrong": told(tight.typecheck(jobs.newest, takes=table)),
        }

    def recorded(self) -> Told:
        for name, extra in (("old", []), ("same", []), ("new", [(9, 9)])):
            rows = self.spark.createDataFrame([(n % 3, n) for n in range(40)] + extra, "k long, v long")
            rows.coalesce(1).write.parquet(str(self.folder / name))
        old, same, new = (tight.recorded(str(self.folder / name)) for name in ("old", "same", "new"))
        return {
            "right": told(tight.compare(old, same, upto=tight.same("k"))),
            "right bag": told(tight.compare(old, same)),
            "wrong": told(tight.compare(old, new, upto=tight.same("k"))),
        }

    def query(self) -> Told:
        q = tight.query
        queries = {"total": q.total(q.cur.v, "v"), "small": q.historically(q.holds(q.cur.v < 5, before=True))}
        rows = [{"k": n % 2, "at": n, "v": n} for n in range(10)]
        options: dict[str, Any] = {"key": "k", "order_by": "at", "tags": {"v": "true"}}
        frame = self.spark.createDataFrame([tuple(row.values()) for row in rows], "k long, at long, v long")
        ended = tight.watch(queries, frame, **options)
        for number, half in enumerate((rows[:5], rows[5:])):
            write_json(self.folder / "watched", number + 1, half)
        stream = self.spark.readStream.schema("k long, at long, v long").option("maxFilesPerTrigger", 1)
        answers = tight.watch(queries, stream.json(str(self.folder / "watched")), **options)
        found = self._written(answers, "answers")
        key = ("k", "at", "total", "small")
        return {
            "table": sorted([row[name] for name in key] for row in ended.collect()),
            "stream": sorted([row[name] for name in key] for row in found),
        }

    def formula(self) -> Told:
        found = {}
        for number, rows in enumerate(([{"v": 1}, {"v": 2}], [{"v": 3}])):
            write_json(self.folder / "letters", number + 1, rows)
        for name, limit in (("right", 9), ("wrong", 3)):
            stream = self.spark.readStream.schema("v long").option("maxFilesPerTrigger", 1)
            small = tight.all_records("output", lambda row, limit=limit: row.v < limit).named("small")
            formula, checkpoint = tight.always(small, during=2), self.folder / f"promise_{name}"
            watched = tight.watch(formula, stream.json(str(self.folder / "letters")), checkpoint=checkpoint)
            watched.wait(60)
            watched.stop()
            found[name] = told(watched.verdict())
        return found

    def live(self) -> Told:
        rows = [{"k": n % 3, "v": n} for n in range(30)]
        write_json(self.folder / "left", 1, rows)
        write_json(self.folder / "right", 1, rows[:10])
        write_json(self.folder / "right", 2, rows[10:])
        write_json(self.folder / "other", 1, [*rows[:10], {"k": 1, "v": -1}, *rows[10:]])
        found = {}
        for name, side in (("right", "right"), ("wrong", "other")):
            for relation, upto in (("keyed", tight.same("k")), ("bag", tight.unordered)):
                live = tight.compare_live(
                    self._stream("left"),
                    self._stream(side),
                    upto=upto,
                    checkpoint=self.folder / f"live_{name}_{relation}",
                    every=None,
                )
                live.query.awaitTermination(120)
                found[f"{name} {relation}"] = [told(live.verdict(ended=True)), live.metrics.left, live.metrics.right]
        return found

    def _stream(self, side: str) -> Any:
        reader = self.spark.readStream.schema("k long, v long").option("maxFilesPerTrigger", 1)
        return reader.json(str(self.folder / side))

    def parallel(self) -> Told:
        streams = [tight.InputStream("values", jobs.Value, rate=100), tight.InputStream("barriers", jobs.Barrier)]
        parallel = tight.parallelize(jobs.Windows(), streams, workers=2)
        values = self.spark.createDataFrame([(n, n) for n in range(100)], "time long, value long")
        barriers = self.spark.createDataFrame([(n,) for n in range(9, 100, 10)], "time long")
        ended = parallel.on_spark({"values": values, "barriers": barriers}, spark=self.spark)
        for number in range(2):
            mine = range(50 * number, 50 * number + 50)
            write_json(self.folder / "values", number + 1, [{"time": n, "value": n} for n in mine])
            write_json(self.folder / "barriers", number + 1, [{"time": n} for n in mine if n % 10 == 9])
        inputs = {
            name: self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(self.folder / name))
            for name, schema in (("values", "time long, value long"), ("barriers", "time long"))
        }
        output = str(self.folder / "totals")
        query = parallel.start(
            inputs, checkpoint=str(self.folder / "parallel"), output=output, trigger={"availableNow": True}
        )
        query.awaitTermination()
        written = self.spark.read.parquet(output).select("time", "total")
        return {
            "verdict": told(parallel.verdict),
            "ended": sorted(map(list, ended.collect())),
            "stream": sorted(map(list, written.collect())),
        }

    def explore(self) -> Told:
        rows = [jobs.Reading("a", 1), jobs.Reading("a", 2)]
        never = lambda row: tight.next(tight.always(lambda later: row not in later.output))  # noqa: E731
        once = tight.always(tight.forall(lambda at: at.output, never)).named("each once")
        one = tight.explore(jobs.Once, once, on=rows[:1], key="sensor")
        two = tight.explore(jobs.Once, once, on=rows, key="sensor", job=jobs.each_once)
        return {"right": told(one), "wrong": [told(two), two.method]}

    def _written(self, answers: Any, name: str) -> list[Any]:
        writer = answers.writeStream.option("checkpointLocation", str(self.folder / f"checkpoint_{name}"))
        query = writer.format("parquet").start(str(self.folder / name))
        query.processAllAvailable()
        query.stop()
        return self.spark.read.parquet(str(self.folder / name)).collect()


VERBS = (
    "compare",
    "laws",
    "check",
    "prove",
    "typecheck",
    "recorded",
    "query",
    "formula",
    "live",
    "parallel",
    "explore",
)


def main(master: str, folder: str, ship: str, *verbs: str) -> None:
    spark = session_on(master)
    if ship == "ship":
        tight.ship(spark, jobs)
    found: dict[str, Any] = {}
    asked = Asked(spark, Path(folder))
    for number, verb in enumerate(verbs or VERBS):
        if number == 1 and ship == "later":
            found["before"] = found.pop(verb)
            tight.ship(spark, jobs)
        started = time.monotonic()
        ask: Callable[[], Told] = getattr(asked, verb)
        try:
            found[verb] = ask()
        except Exception as error:
            found[verb] = f"{type(error).__name__}: {error}"
            traceback.print_exc()
        print(f"{verb}: {time.monotonic() - started:.1f} s", file=sys.stderr, flush=True)
    print("VERDICTS", json.dumps(found, default=str), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
