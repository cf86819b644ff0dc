"""How many cases of 20 batches does `check` try in a minute? Beside one case at a time, and sscheck's batch interval.

The original tool waits for the wall clock: 20 batches at its interval of 350 ms are 7 seconds, so less than 9 cases a
minute, whatever the job.

python benchmarks/check.py
"""

from __future__ import annotations

import time

from pyspark.sql import DataFrame

import streamtight as tight
from streamtight import gen

User = tight.Kind("User", id=int, ok=bool)
BATCHES = 20
SSCHECK = 60 / (BATCHES * 0.350)
USERS = gen.always(gen.batch(User, size=(1, 5), id=range(10)), during=BATCHES)


def stateless(users: DataFrame) -> DataFrame:
    return users.where("NOT ok").select("id")


def counted(users: DataFrame) -> DataFrame:
    return users.groupBy("id").count()


def counted_dstream(users):  # type: ignore[no-untyped-def]
    return users.map(lambda user: user.id).countByValue()


at_most = tight.always(tight.count("output") <= tight.count("input"), during=BATCHES)
known = tight.always(tight.forall(lambda u: u.input, lambda user: tight.eventually(
    tight.some_record("output", lambda row: row.id == user.id), within=1)), during=BATCHES)  # fmt: skip
some_row = tight.always(tight.count("output") >= 1, during=BATCHES)


def alone(job, mode: str, cases: int) -> float:  # type: ignore[no-untyped-def]
    """Cases a minute if each has a query of its own."""
    schedules = [tight.Schedule(tuple((batch,) for batch in stream)) for stream in USERS.examples(cases, seed=1)]
    started = time.perf_counter()
    for schedule in schedules:
        tight.run(job, schedule, takes=User, mode=mode)
    return 60 * cases / (time.perf_counter() - started)


def main() -> None:
    spark = tight.session()
    tight.check(stateless, at_most, on=USERS, runs=10)  # warm up
    print(f"{'job, cases of 20 batches':40}{'cases':>7}{'cases/min':>11}{'batches/s':>11}{'alone':>8}{'sscheck':>9}")
    for name, job, formula, mode, runs in (
        ("stateless", stateless, at_most, "append", 100),
        ("stateful, update", counted, known, "update", 60),
        ("stateful, complete", counted, known, "complete", 60),
        ("DStreams, each alone", counted_dstream, some_row, "dstream", 10),
    ):
        cost = tight.check(job, formula, on=USERS, runs=runs, mode=mode).require().cost
        rate = cost["cases_per_minute"]
        ratio = "-" if mode == "dstream" else f"{rate / alone(job, mode, 5):.1f}x"
        batches = cost["batches"] / cost["seconds"]
        print(f"  {name:38}{runs:7}{rate:11.0f}{batches:11.0f}{ratio:>8}{rate / SSCHECK:8.0f}x", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
