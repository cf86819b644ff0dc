"""How many traces per minute does `compare` try on Spark? By what the job does, with and without packing.

python benchmarks/compare.py
"""

from __future__ import annotations

from pyspark.sql import DataFrame

import streamtight as tight

Position = tight.Kind("Position", taxi_id=int, x=int)
DRIVES = tight.generated(Position, upto=tight.same("taxi_id"), taxi_id=[1, 2, 3], x=range(10))
RUNS = 60


def stateless(df: DataFrame) -> DataFrame:
    return df.repartition("taxi_id").selectExpr("taxi_id", "x * 1000 AS x")


def counted(df: DataFrame) -> DataFrame:
    return df.groupBy("taxi_id").count()


def mapped(rdd):  # type: ignore[no-untyped-def]
    return rdd.map(lambda row: (row.taxi_id, row.x * 1000))


def main() -> None:
    spark = tight.session()
    tight.compare(stateless, stateless, on=DRIVES, runs=10)  # warm up
    print(f"{'job':44}{'traces':>8}{'seconds':>10}{'traces/minute':>16}")
    for name, job, options in (
        ("stateless stream, side by side", stateless, {}),
        ("stateful stream (complete), side by side", counted, {"mode": "complete"}),
        ("stateful stream (update), side by side", counted, {"mode": "update"}),
        ("batch, each alone", counted, {"mode": "batch"}),
        ("RDD, each alone", mapped, {"mode": "rdd"}),
    ):
        verdict = tight.compare(job, job, on=DRIVES, runs=RUNS, **options).require()
        cost = verdict.cost
        print(f"  {name:42}{cost['traces']:8.0f}{cost['seconds']:10.1f}{cost['traces_per_minute']:16.0f}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
