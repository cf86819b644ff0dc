"""Connections that are unusual: detectors that suspect at once, and a check that knows what all of them saw.

    python examples/outliers.py

Each detector compares the bytes of a connection with the limits of its service. The limits are made anew at each check,
from all connections so far; what was suspected since the last check, and is outside the new limits too, is an outlier.
(Flumina's program for this copies what was counted when it forks, and adds it up when it joins: so each fork counts all
that came before once more. Here, one side alone goes on with what was counted, and both get the limits, which do not
change before the next check.)
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from math import isqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamtight as tight

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Connection = tight.Kind("Connection", time=int, service=int, bytes=int)
Check = tight.Kind("Check", time=int)
Outlier = tight.Kind("Outlier", time=int, service=int, bytes=int)

ROWS_AT_ONCE = 100_000
NO_LIMITS = (1, 0)
"""Everything is outside of these: the limits of a service that no check has seen yet."""
Sums = tuple[int, int, int]
"""How many connections, the total of their bytes, and the total of the squares."""


Limits = dict[int, tuple[int, int]]
Detector = tuple[Limits, dict[int, Sums], dict[tuple[int, int, int], int]]
"""What a detector knows: the limits of the last check, what it counted, and how often it suspected what."""


class Outliers(tight.ForkJoin):
    """Which connections had far more or far less bytes than the others of their service?

    Checks depend on everything: a check makes the limits from all connections before it, for all connections after it.
    Connections do not depend on each other.
    """

    takes, gives = (Connection, Check), (Outlier,)
    depends = tight.barrier(Check)
    whole, local = tight.StateType(Connection, Check), tight.StateType(Connection)
    branches = (tight.Branch(whole, local, local), tight.Branch(local, local, local))

    def init(self) -> Detector:
        return {}, {}, {}

    def update(self, state: Detector, event: Any, emit: Any) -> Detector:
        limits, counted, suspects = state
        if event.kind is Connection:
            service, size = event.service, event.bytes
            count, total, squares = counted.get(service, (0, 0, 0))
            counted[service] = (count + 1, total + size, squares + size * size)
            low, high = limits.get(service, NO_LIMITS)
            if not low <= size <= high:
                suspect = (event.time, service, size)
                suspects[suspect] = suspects.get(suspect, 0) + 1
            return state
        limits = {service: limits_of(*sums) for service, sums in counted.items()}
        for (time, service, size), times in suspects.items():
            low, high = limits[service]
            if not low <= size <= high:
                for _ in range(times):
                    emit(Outlier(time, service, size))
        return limits, counted, {}

    def update_block(self, state: Detector, block: Any, emit: Any) -> Any:
        if block.kind is not Connection:
            return NotImplemented
        import numpy as np

        limits, counted, suspects = state
        size = block["bytes"]
        if len(block) == 0 or max(int(size.max()), -int(size.min())) ** 2 * len(block) >= 2**63:
            return NotImplemented  # the squares do not fit into 64 bits
        services, place, counts = np.unique(block["service"], return_inverse=True, return_counts=True)
        totals, squares = np.zeros((2, len(services)), dtype=np.int64)
        np.add.at(totals, place, size)
        np.add.at(squares, place, size * size)
        new = zip(counts.tolist(), totals.tolist(), squares.tolist(), strict=True)
        for service, sums in zip(services.tolist(), new, strict=True):
            counted[service] = added(counted.get(service, (0, 0, 0)), sums)
        of_each = np.array([limits.get(service, NO_LIMITS) for service in services.tolist()], np.int64).reshape(-1, 2)
        outside = (size < of_each[place, 0]) | (size > of_each[place, 1])
        columns = (block[name][outside].tolist() for name in ("time", "service", "bytes"))
        for suspect in zip(*columns, strict=True):
            suspects[suspect] = suspects.get(suspect, 0) + 1
        return state

    def fork(self, state: Detector, left: tight.TagSet, right: tight.TagSet) -> tuple[Detector, Detector]:
        limits, counted, suspects = state
        return (limits, counted, suspects), (limits, {}, {})

    def join(self, left: Detector, right: Detector) -> Detector:
        limits, counted, suspects = left
        for service, sums in right[1].items():
            counted[service] = added(counted.get(service, (0, 0, 0)), sums)
        for suspect, times in right[2].items():
            suspects[suspect] = suspects.get(suspect, 0) + times
        return limits, counted, suspects


def added(one: Sums, other: Sums) -> Sums:
    """Both together."""
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def limits_of(count: int, total: int, squares: int) -> tuple[int, int]:
    """Four standard deviations around the mean, in whole bytes; never more than fits into a column."""
    mean, deviation = total // count, isqrt(count * squares - total * total) // count
    return max(mean - 4 * deviation, -(2**63)), min(mean + 4 * deviation, 2**63 - 1)


# -- the input ---------------------------------------------------------------------------------------------------------


def streams(count: int, every: int) -> list[tight.InputStream]:
    """Streams of connections, and one of checks: one check for so many times."""
    fast = [tight.InputStream(f"connections_{number}", Connection, rate=every) for number in range(count)]
    return [*fast, tight.InputStream("checks", Check, rate=1)]


def make(directory: str | Path, *, streams: int, events: int, every: int, seed: int = 0) -> None:
    """Write a file for each stream: so many connections, one for each time, and a check every so many times."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("connections_*.parquet"):
        old.unlink()
    schema = pa.schema({"time": pa.int64(), "service": pa.int64(), "bytes": pa.int64()})
    for number in range(streams):
        rng, last = np.random.default_rng([seed, number]), events // streams + (number < events % streams)
        with pq.ParquetWriter(folder / f"connections_{number}.parquet", schema) as file:
            for start in range(0, last, ROWS_AT_ONCE):
                time = np.arange(start, min(start + ROWS_AT_ONCE, last)) + 1
                service = rng.integers(0, 50, time.size)
                usual = rng.normal(1000 + 40 * service, 50 + 2 * service).astype(np.int64)
                size = np.where(rng.random(time.size) < 0.0005, usual * rng.integers(2, 9, time.size), usual)
                file.write_table(pa.table({"time": time, "service": service, "bytes": size}))
    checks = np.arange(every, -(-events // streams) + 1, every)
    pq.write_table(pa.table({"time": checks}), folder / "checks.parquet", row_group_size=ROWS_AT_ONCE)


# -- the same question without fork and join ---------------------------------------------------------------------------


def sequential(directory: str | Path) -> dict[str, list[Any]]:
    """The plain program: one loop over everything in the order of time."""
    outliers: list[Any] = []
    suspects: list[Any] = []
    limits: Limits = {}
    counted: dict[int, list[int]] = {}
    for time, is_check, service, size in in_order(directory):
        if is_check:
            limits = {known: limits_of(*sums) for known, sums in counted.items()}
            outliers += [s for s in suspects if not limits[s[1]][0] <= s[2] <= limits[s[1]][1]]
            suspects = []
        else:
            sums = counted.setdefault(service, [0, 0, 0])
            sums[0] += 1
            sums[1] += size
            sums[2] += size * size
            low, high = limits.get(service, NO_LIMITS)
            if not low <= size <= high:
                suspects.append((time, service, size))
    return {"Outlier": outliers}


def in_order(directory: str | Path) -> Iterator[tuple[int, bool, int, int]]:
    """All rows by time, connections first where times are equal: time, whether it is a check, service, bytes."""
    import numpy as np
    import pyarrow.parquet as pq

    fast = [pq.read_table(path) for path in sorted(Path(directory).glob("connections_*.parquet"))]
    checks = pq.read_table(Path(directory) / "checks.parquet")["time"].to_numpy()
    nothing = np.zeros_like(checks)
    time = np.concatenate([*(table["time"].to_numpy() for table in fast), checks])
    service = np.concatenate([*(table["service"].to_numpy() for table in fast), nothing])
    size = np.concatenate([*(table["bytes"].to_numpy() for table in fast), nothing])
    order = np.argsort(time, kind="stable")
    first_check = len(time) - len(checks)
    for start in range(0, len(order), ROWS_AT_ONCE):
        rows = order[start : start + ROWS_AT_ONCE]
        is_check = (rows >= first_check).tolist()
        yield from zip(time[rows].tolist(), is_check, service[rows].tolist(), size[rows].tolist(), strict=True)


def by_hand(spark: SparkSession, directory: str | Path) -> dict[str, DataFrame]:
    """The job one writes by hand: number the windows, count up to each, and join with the limits before and after."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sf

    connections = spark.read.parquet(f"{directory}/connections_*.parquet").withColumn("is_check", sf.lit(0))
    checks = spark.read.parquet(f"{directory}/checks.parquet").withColumn("is_check", sf.lit(1))
    so_far = Window.orderBy("time", "is_check").rowsBetween(Window.unboundedPreceding, -1)
    both = connections.unionByName(checks, allowMissingColumns=True)
    numbered = both.withColumn("window", sf.coalesce(sf.sum("is_check").over(so_far), sf.lit(0)))
    rows = numbered.filter("is_check = 0").join(numbered.filter("is_check = 1").select("window"), "window")
    sums = rows.groupBy("window", "service").agg(
        sf.count("*").alias("count"), sf.sum("bytes").alias("total"), sf.expr("sum(bytes * bytes)").alias("squares")
    )

    def up_to(last: int) -> list[Any]:
        upto = Window.partitionBy("service").orderBy("window").rowsBetween(Window.unboundedPreceding, last)
        return [sf.sum(name).over(upto) for name in ("count", "total", "squares")]

    limits = sf.udf(lambda count, *sums: limits_of(count, *sums) if count else NO_LIMITS, "low long, high long")
    known = sums.select("window", "service", limits(*up_to(-1)).alias("before"), limits(*up_to(0)).alias("after"))
    judged = rows.join(known, ["window", "service"])
    outside = "bytes NOT BETWEEN before.low AND before.high AND bytes NOT BETWEEN after.low AND after.high"
    return {"Outlier": judged.filter(outside).select("time", "service", "bytes")}


def main() -> int:
    """May it be split? Its plan, a few events on two workers here, and many on Spark, compared with the plain loop."""
    ready = tight.parallelize(Outliers(), streams(2, every=1_000), workers=2)
    print(ready.verdict)
    print(ready.plan.show())
    usual = [Connection(time, 1, 100 + time % 5) for time in range(1, 40)]
    some = {
        "connections_0": [*usual, Connection(50, 1, 900)],
        "connections_1": [Connection(20, 1, 5000), *(each.replace(time=each.time + 40) for each in usual)],
        "checks": [Check(40), Check(100)],
    }
    print(*ready.run(some), sep="\n")

    with tempfile.TemporaryDirectory() as folder:
        make(folder, streams=2, events=100_000, every=1_000)
        files = {stream.name: f"{folder}/{stream.name}.parquet" for stream in ready.plan.streams}
        outputs = ready.events(ready.on_spark(files))
        expected = Counter((name, *row) for name, rows in sequential(folder).items() for row in rows)
    same = Counter((event.kind.name, *event.as_dict().values()) for event in outputs) == expected
    print(f"{len(outputs)} outputs on Spark; those of the plain loop: {same}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
