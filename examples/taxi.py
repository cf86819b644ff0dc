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

from pyspark.sql import DataFrame

import streamtight as tight

# What goes in, what comes out, and which rows must keep their order.
Position = tight.Kind("Position", taxi_id=int, x=int, y=int, driver=str)
Located = tight.Kind("Located", taxi_id=int, east=int, north=int)
EACH_TAXI_IN_ORDER = tight.same("taxi_id")


def in_metres(positions: DataFrame) -> DataFrame:
    """The columns that the next stage wants."""
    return positions.selectExpr("taxi_id", "x * 1000 AS east", "y * 1000 AS north")


def sequential(positions: DataFrame) -> DataFrame:
    """Everything in one place: slow, and surely right."""
    return in_metres(positions.coalesce(1))


def keeps_order(positions: DataFrame) -> DataFrame:
    """First by taxi, then the arithmetic: what belongs to one taxi stays together."""
    return in_metres(positions.repartition("taxi_id"))


def loses_order(positions: DataFrame) -> DataFrame:
    """First the arithmetic, spread over the cluster; then by taxi: too late."""
    return in_metres(positions.repartition(4)).repartition("taxi_id")


DRIVES = tight.generated(
    Position, upto=EACH_TAXI_IN_ORDER, taxi_id=[1, 2, 3], x=range(10), y=range(10), driver=["Ann", "Bob"]
)


def main() -> None:
    """Judge both jobs, tell the story, write the report."""
    options = argparse.ArgumentParser(description="Which of two taxi jobs keeps the order?")
    options.add_argument("--runs", type=int, default=50, help="generated inputs for each job")
    options.add_argument("--seed", type=int, default=7)
    options.add_argument("--report", default="build/taxi.html", help="a .html, .txt or .json file")
    chosen = options.parse_args()

    print("Starting Spark ...", flush=True)
    spark = tight.session()
    try:
        verdicts = []
        for job in (keeps_order, loses_order):
            print(f"\nComparing {job.__name__} with {sequential.__name__} on generated inputs ...", flush=True)
            verdict = tight.compare(
                sequential,
                job,
                on=DRIVES,
                upto=EACH_TAXI_IN_ORDER,
                gives=Located,
                runs=chosen.runs,
                seed=chosen.seed,
            )
            verdicts.append(verdict)
            print(verdict.story(), flush=True)
        report = tight.write_report(verdicts, chosen.report, title="Two taxi jobs")
        print(f"\nReport: {report}")
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
