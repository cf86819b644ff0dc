"""Two taxi jobs that look alike; one of them loses the order of each taxi's positions.

The next stage adds up the way between one position and the next, so each taxi's positions must arrive in order; the
order of different taxis does not matter. Both jobs drop the driver's name, turn kilometres into metres, and bring each
taxi's rows together. The second one spreads the rows over the cluster first, to do the arithmetic in parallel, and that
is where it goes wrong: rows of one taxi take different ways and meet again in another order. (After DiffStream, OOPSLA
2020, sections 2.1 and 5.1.)

    python examples/taxi.py --report build/taxi.html
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable

from pyspark.sql import DataFrame

import streamtight as tight

# What goes in, what comes out, and which rows must keep their order.
Position = tight.Kind("Position", taxi_id=int, x=int, y=int, driver=str)
Located = tight.Kind("Located", taxi_id=int, east=int, north=int)
EACH_TAXI_IN_ORDER = tight.same("taxi_id")


def in_metres(positions: DataFrame) -> DataFrame:
    """The columns that the next stage wants."""
    return positions.selectExpr("taxi_id", "x * 1000 AS east", "y * 1000 AS north")


def keeps_order(positions: DataFrame) -> DataFrame:
    """First by taxi, then the arithmetic: what belongs to one taxi stays together."""
    return in_metres(positions.repartition("taxi_id"))


def loses_order(positions: DataFrame) -> DataFrame:
    """First the arithmetic, spread over the cluster; then by taxi: too late."""
    return in_metres(positions.repartition(4)).repartition("taxi_id")


def drive(rng: random.Random, taxis: int = 3, rows: int = 12) -> tight.Trace:
    """A few taxis, each going its way."""
    at = dict.fromkeys(range(1, taxis + 1), (0, 0))
    events = []
    for _ in range(rows):
        taxi = rng.choice(list(at))
        x, y = at[taxi]
        events.append(Position(taxi_id=taxi, x=x, y=y, driver="any"))
        at[taxi] = (x + rng.randint(0, 1), y + 1)
    return tight.Trace(events, EACH_TAXI_IN_ORDER)


def what_is_wrong(job: Callable[[DataFrame], DataFrame], schedule: tight.Schedule) -> tuple[str, tight.Run] | None:
    """Run the job on Spark and compare what comes out with what went in, up to the order that matters."""
    run = tight.run(job, schedule, takes=Position, gives=Located)
    race = tight.find_race(run.batches, EACH_TAXI_IN_ORDER)
    if race is not None:
        return f"{race}", run
    went_in, came_out = (tight.Trace(events, EACH_TAXI_IN_ORDER) for events in (located(schedule), run.events))
    difference = went_in.why_not_equal(came_out, here="in the input", there="in the output")
    return None if difference is None else (difference, run)


def located(schedule: tight.Schedule) -> tuple[tight.Event, ...]:
    """What a job that keeps the order gives."""
    return tuple(Located(taxi_id=e.taxi_id, east=e.x * 1000, north=e.y * 1000) for e in schedule.events)


def judge(job: Callable[[DataFrame], DataFrame], *, runs: int, seed: int) -> tight.Verdict:
    """Does the job keep each taxi's order, on so many generated inputs and schedules?"""
    started, rng = time.perf_counter(), random.Random(seed)
    claim = f"{job.__name__} keeps the order of each taxi"
    for number in range(1, runs + 1):
        schedule = tight.Schedule.random(drive(rng), rng)
        if what_is_wrong(job, schedule) is None:
            continue
        found = tight.smallest_failing(
            schedule, lambda simpler: what_is_wrong(job, simpler) is not None, promise=EACH_TAXI_IN_ORDER
        )
        again = [outcome for outcome in (what_is_wrong(job, found) for _ in range(3)) if outcome is not None]
        if not again:
            reason = "a run failed, but its input did not fail again: the job differs from run to run"
            return tight.Verdict(claim, tight.Outcome.UNDECIDED, tight.Scope.tested(number, seed=seed), reason=reason)
        explanation, run = again[0]
        counterexample = tight.Counterexample(
            finding="ORDER_LOST",
            explanation=explanation,
            schedule=found,
            expected=located(found),
            actual=run.events,
            replay="# in the folder examples/\nimport streamtight as tight\n"
            f"from taxi import Position, {job.__name__}, what_is_wrong\n"
            f"print(what_is_wrong({job.__name__}, {found.code()}))",
            reruns=3,
            failing_reruns=len(again),
        )
        scope, cost = tight.Scope.tested(number, seed=seed), {"seconds": time.perf_counter() - started}
        return tight.Verdict(claim, tight.Outcome.FAILS, scope, counterexample, cost=cost)
    cost = {"seconds": time.perf_counter() - started}
    return tight.Verdict(claim, tight.Outcome.HOLDS, tight.Scope.tested(runs, seed=seed), cost=cost)


def main() -> None:
    """Judge both jobs, tell the story, write the report."""
    options = argparse.ArgumentParser(description="Which of two taxi jobs keeps the order?")
    options.add_argument("--runs", type=int, default=20, help="generated inputs for each job")
    options.add_argument("--seed", type=int, default=7)
    options.add_argument("--report", default="build/taxi.html", help="a .html, .txt or .json file")
    chosen = options.parse_args()

    print("Starting Spark ...", flush=True)
    spark = tight.session()
    try:
        verdicts = []
        for job in (keeps_order, loses_order):
            print(f"\nRunning {job.__name__} on generated inputs ...", flush=True)
            verdicts.append(judge(job, runs=chosen.runs, seed=chosen.seed))
            print(verdicts[-1].story(), flush=True)
        report = tight.write_report(verdicts, chosen.report, title="Two taxi jobs")
        print(f"\nReport: {report}")
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
