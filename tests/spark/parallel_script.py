"""Runs event windows on a cluster: python parallel_script.py MASTER FOLDER; prints the outputs as JSON at the end."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from pyspark.sql import SparkSession

import streamtight as tight

Value, Barrier = tight.Kind("Value", time=int, value=int), tight.Kind("Barrier", time=int)
Total = tight.Kind("Total", time=int, total=int)


class SlowWindows(tight.ForkJoin):
    """Sums of the values between barriers, with some time for somebody to interfere."""

    takes, gives, depends = (Value, Barrier), (Total,), tight.barrier(Barrier)
    whole, part = tight.StateType(Value, Barrier), tight.StateType(Value)
    branches = (tight.Branch(whole, part, part), tight.Branch(part, part, part))
    pause = 0.0

    def init(self) -> int:
        return 0

    def update(self, total: int, event: Any, emit: Any) -> int:
        if event.kind is Value:
            time.sleep(self.pause)
            return total + event.value
        emit(Total(event.time, total))
        return 0

    def fork(self, total: int, left: Any, right: Any) -> tuple[int, int]:
        return total, 0

    def join(self, left: int, right: int) -> int:
        return left + right


def main(master: str, folder: str) -> None:
    builder = SparkSession.builder.master(master)
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.cores.max": "2",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    program = SlowWindows()
    streams = [
        tight.InputStream("values_0", Value, rate=100),
        tight.InputStream("values_1", Value, rate=100),
        tight.InputStream("barriers", Barrier),
    ]
    parallel = tight.parallelize(program, streams, workers=2)
    program.pause = 0.002
    until = time.monotonic() + 60
    while spark.sparkContext.defaultParallelism < 2 or spark.range(2, numPartitions=2).count() < 2:
        assert time.monotonic() < until, "no executors"
    print("RUNS", flush=True)
    out = parallel.on_spark({s.name: f"{folder}/{s.name}.parquet" for s in streams}, spark=spark)
    print("OUTPUTS", json.dumps(sorted(map(list, out.collect()))), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
