"""The total of the values between two barriers: event-based windows, taken apart so that several workers can add.

    python examples/event_windows.py

(Flumina calls it value barrier; the windows start anew at each barrier, as in its comparison with Flink.)
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamtight as tight

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Value = tight.Kind("Value", time=int, value=int)
Barrier = tight.Kind("Barrier", time=int)
Total = tight.Kind("Total", time=int, total=int)

ROWS_AT_ONCE = 100_000


class EventWindows(tight.ForkJoin):
    """What is the total of all values between a barrier and the one before?

    Barriers depend on everything: on each other and on the values before and after them. Values do not depend on each
    other, so each worker may add some of them.
    """

    takes, gives = (Value, Barrier), (Total,)
    depends = tight.barrier(Barrier)
    whole, part = tight.StateType(Value, Barrier), tight.StateType(Value)
    branches = (tight.Branch(whole, part, part), tight.Branch(part, part, part))

    def init(self) -> int:
        return 0

    def update(self, total: int, event: Any, emit: Any) -> int:
        if event.kind is Value:
            return total + event.value
        emit(Total(event.time, total))
        return 0

    def update_block(self, total: int, block: Any, emit: Any) -> Any:
        if block.kind is not Value:
            return NotImplemented
        return total + int(block["value"].sum())  # exact, since a total fits into the column that it is for

    def fork(self, total: int, left: tight.TagSet, right: tight.TagSet) -> tuple[int, int]:
        return total, 0

    def join(self, left: int, right: int) -> int:
        return left + right


# -- the same windows, with a look-up for each value -------------------------------------------------------------------

ARTICLES = {number: (100 + number * 37 % 9000, number * 13 % 7, number % 3) for number in range(1000)}
"""Of each article its price in cents, its group and its rate of tax."""
DISCOUNTS = {0: 0, 1: 5, 2: 0, 3: 10, 4: 15, 5: 0, 6: 20}
TAXES = {0: 0, 1: 7, 2: 19}


class Revenue(EventWindows):
    """How much was earned between two barriers, if each value is the number of an article that was sold?

    What depends on what is as in `EventWindows`. Each value takes some look-ups, as in most real programs.
    """

    update_block = tight.ForkJoin.update_block  # one event after the other, as the look-ups are written

    def update(self, total: int, event: Any, emit: Any) -> int:
        if event.kind is Value:
            return total + earned(event.time, event.value)
        emit(Total(event.time, total))
        return 0


def earned(time: int, article: int) -> int:
    """What is left of the price of an article after discounts and tax, in cents."""
    price, group, rate = ARTICLES[article % 1000]
    discount = DISCOUNTS[group]
    if time // 3600 % 24 in (7, 8, 9):  # early in the morning, everything is cheaper
        discount = min(discount + 5, 50)
    if discount and price > 500:
        price -= min(price * discount // 100, 1500)
    tax = price * TAXES[rate] // (100 + TAXES[rate])
    return max(price - tax, 1)


# -- the input ---------------------------------------------------------------------------------------------------------


def streams(count: int, every: int) -> list[tight.InputStream]:
    """Streams of values, and one of barriers: one barrier for so many times."""
    values = [tight.InputStream(f"values_{number}", Value, rate=every) for number in range(count)]
    return [*values, tight.InputStream("barriers", Barrier, rate=1)]


def make(directory: str | Path, *, streams: int, events: int, every: int, seed: int = 0) -> None:
    """Write a file for each stream: so many values, one for each time, and a barrier every so many times."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("values_*.parquet"):
        old.unlink()
    for number in range(streams):
        rng, last = np.random.default_rng([seed, number]), events // streams + (number < events % streams)
        schema = pa.schema({"time": pa.int64(), "value": pa.int64()})
        with pq.ParquetWriter(folder / f"values_{number}.parquet", schema) as file:
            for start in range(0, last, ROWS_AT_ONCE):
                time = np.arange(start, min(start + ROWS_AT_ONCE, last)) + 1
                file.write_table(pa.table({"time": time, "value": rng.integers(0, 1000, time.size)}))
    barriers = np.arange(every, -(-events // streams) + 1, every)
    pq.write_table(pa.table({"time": barriers}), folder / "barriers.parquet", row_group_size=ROWS_AT_ONCE)


# -- the same question without fork and join ---------------------------------------------------------------------------


def sequential(directory: str | Path) -> dict[str, list[Any]]:
    """The plain program: one loop over everything in the order of time."""
    totals, total = [], 0
    for time, is_barrier, value in in_order(directory):
        if is_barrier:
            totals.append((time, total))
            total = 0
        else:
            total += value
    return {"Total": totals}


def sequential_revenue(directory: str | Path) -> dict[str, list[Any]]:
    """The same for `Revenue`."""
    totals, total = [], 0
    for time, is_barrier, value in in_order(directory):
        if is_barrier:
            totals.append((time, total))
            total = 0
        else:
            total += earned(time, value)
    return {"Total": totals}


def in_order(directory: str | Path) -> Iterator[tuple[int, bool, int]]:
    """All rows by time, values first where times are equal: the time, whether it is a barrier, the value."""
    import numpy as np
    import pyarrow.parquet as pq

    values = [pq.read_table(path) for path in sorted(Path(directory).glob("values_*.parquet"))]
    barriers = pq.read_table(Path(directory) / "barriers.parquet")["time"].to_numpy()
    time = np.concatenate([*(table["time"].to_numpy() for table in values), barriers])
    value = np.concatenate([*(table["value"].to_numpy() for table in values), np.zeros_like(barriers)])
    order = np.argsort(time, kind="stable")
    first_barrier = len(time) - len(barriers)
    for start in range(0, len(order), ROWS_AT_ONCE):
        rows = order[start : start + ROWS_AT_ONCE]
        yield from zip(time[rows].tolist(), (rows >= first_barrier).tolist(), value[rows].tolist(), strict=True)


def by_hand(spark: SparkSession, directory: str | Path) -> dict[str, DataFrame]:
    """The job one writes by hand: number the windows by counting barriers, then group by that number."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sf

    values = spark.read.parquet(f"{directory}/values_*.parquet").withColumn("is_barrier", sf.lit(0))
    barriers = spark.read.parquet(f"{directory}/barriers.parquet").withColumn("is_barrier", sf.lit(1))
    so_far = Window.orderBy("time", "is_barrier").rowsBetween(Window.unboundedPreceding, -1)
    both = values.unionByName(barriers, allowMissingColumns=True)
    numbered = both.withColumn("window", sf.coalesce(sf.sum("is_barrier").over(so_far), sf.lit(0)))
    closed_at = sf.max(sf.when(sf.col("is_barrier") == 1, sf.col("time")))
    totals = numbered.groupBy("window").agg(
        closed_at.alias("time"), sf.coalesce(sf.sum("value"), sf.lit(0)).alias("total")
    )
    return {"Total": totals.filter("time IS NOT NULL").select("time", "total")}


def quickly_by_hand(spark: SparkSession, directory: str | Path) -> dict[str, DataFrame]:
    """The quick job by hand, if all barriers fit into memory: no sort, and each batch is added up where it is read."""
    import numpy as np
    import pyarrow as pa
    from pyspark.sql import functions as sf

    barriers = spark.read.parquet(f"{directory}/barriers.parquet").toPandas()["time"].to_numpy()

    def add_up(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            window, place = np.unique(np.searchsorted(barriers, batch["time"].to_numpy()), return_inverse=True)
            total = np.zeros_like(window)
            np.add.at(total, place, batch["value"].to_numpy())
            yield pa.RecordBatch.from_pydict({"window": window, "total": total})

    sums = spark.read.parquet(f"{directory}/values_*.parquet").mapInArrow(add_up, "window long, total long")
    numbered = spark.createDataFrame(list(enumerate(barriers.tolist())), "window long, time long")
    totals = numbered.join(sums.groupBy("window").agg(sf.sum("total").alias("total")), "window", "left")
    return {"Total": totals.select("time", sf.coalesce("total", sf.lit(0)).alias("total"))}


def main() -> int:
    """May it be split? Its plan, a few events on two workers here, and many on Spark, compared with the plain loop."""
    ready = tight.parallelize(EventWindows(), streams(2, every=1_000), workers=2)
    print(ready.verdict)
    print(ready.plan.show())
    some = {
        "values_0": [Value(1, 5), Value(2, 6), Value(3, 1)],
        "values_1": [Value(1, 10), Value(2, 20), Value(3, 30), Value(4, 40)],
        "barriers": [Barrier(2), Barrier(4)],
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
