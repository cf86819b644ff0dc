"""A map from keys to counters, with increments and reads that reset: what depends on what is decided by the key.

    python examples/key_counter.py

Reads of one key wait for its increments, and for no others. So the keys can be cut into shares, and between two reads,
the increments of one key can be counted by several workers.
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

Increment = tight.Kind("Increment", time=int, key=int)
Read = tight.Kind("Read", time=int, key=int)
Count = tight.Kind("Count", time=int, key=int, count=int)

ROWS_AT_ONCE = 100_000
State = dict[int, int]
"""How often each key came since it was read; keys that did not come are not there."""


class KeyCounter(tight.ForkJoin):
    """How often was a key incremented since it was read last?

    A read of a key depends on the increments and on the other reads of the same key. Increments do not depend on each
    other, and different keys have nothing to do with each other.
    """

    takes, gives = (Increment, Read), (Count,)
    depends = tight.barrier(Read) & tight.same("key")

    def init(self) -> State:
        return {}

    def update(self, state: State, event: Any, emit: Any) -> State:
        key = event.key
        if event.kind is Increment:
            state[key] = state.get(key, 0) + 1
        else:
            emit(Count(event.time, key, state.pop(key, 0)))
        return state

    def update_block(self, state: State, block: Any, emit: Any) -> Any:
        if block.kind is not Increment:
            return NotImplemented
        import numpy as np

        keys, counts = np.unique(block["key"], return_counts=True)
        for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
            state[key] = state.get(key, 0) + count
        return state

    def fork(self, state: State, left: tight.TagSet, right: tight.TagSet) -> tuple[State, State]:
        # A counter must be where its key may be read; where it is not read at all, any side will do.
        to_the_left = {key: count for key, count in state.items() if left(Read, key=key)}
        return to_the_left, {key: count for key, count in state.items() if key not in to_the_left}

    def join(self, left: State, right: State) -> State:
        for key, count in right.items():
            left[key] = left.get(key, 0) + count
        return left


# -- the input ---------------------------------------------------------------------------------------------------------


def streams(count: int, every: int) -> list[tight.InputStream]:
    """Streams of increments, and one of reads: one read for so many times."""
    fast = [tight.InputStream(f"increments_{number}", Increment, rate=every) for number in range(count)]
    return [*fast, tight.InputStream("reads", Read, rate=1)]


def make(directory: str | Path, *, streams: int, events: int, every: int, seed: int = 0, keys: int = 100) -> None:
    """Write a file for each stream: so many increments, one for each time, and a read every so many times."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("increments_*.parquet"):
        old.unlink()
    for number in range(streams):
        rng, last = np.random.default_rng([seed, number]), events // streams + (number < events % streams)
        schema = pa.schema({"time": pa.int64(), "key": pa.int64()})
        with pq.ParquetWriter(folder / f"increments_{number}.parquet", schema) as file:
            for start in range(0, last, ROWS_AT_ONCE):
                time = np.arange(start, min(start + ROWS_AT_ONCE, last)) + 1
                file.write_table(pa.table({"time": time, "key": rng.integers(0, keys, time.size)}))
    time = np.arange(every, -(-events // streams) + 1, every)
    reads = pa.table({"time": time, "key": np.random.default_rng([seed, streams]).integers(0, keys, time.size)})
    pq.write_table(reads, folder / "reads.parquet", row_group_size=ROWS_AT_ONCE)


# -- the same question without fork and join ---------------------------------------------------------------------------


def sequential(directory: str | Path) -> dict[str, list[Any]]:
    """The plain program: one loop over everything in the order of time."""
    counts: list[Any] = []
    counters: dict[int, int] = {}
    for time, is_read, key in in_order(directory):
        if is_read:
            counts.append((time, key, counters.pop(key, 0)))
        else:
            counters[key] = counters.get(key, 0) + 1
    return {"Count": counts}


def in_order(directory: str | Path) -> Iterator[tuple[int, bool, int]]:
    """All rows by time, increments first where times are equal: the time, whether it is a read, the key."""
    import numpy as np
    import pyarrow.parquet as pq

    names = [*sorted(path.stem for path in Path(directory).glob("increments_*.parquet")), "reads"]
    tables = [pq.read_table(Path(directory) / f"{name}.parquet") for name in names]
    time, key = (np.concatenate([table[name].to_numpy() for table in tables]) for name in ("time", "key"))
    order = np.argsort(time, kind="stable")
    first_read = len(time) - len(tables[-1])
    for start in range(0, len(order), ROWS_AT_ONCE):
        rows = order[start : start + ROWS_AT_ONCE]
        yield from zip(time[rows].tolist(), (rows >= first_read).tolist(), key[rows].tolist(), strict=True)


def by_hand(spark: SparkSession, directory: str | Path) -> dict[str, DataFrame]:
    """The job one writes by hand: count the increments of a key up to each read, less those up to the one before."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sf

    increments = spark.read.parquet(f"{directory}/increments_*.parquet").withColumn("is_read", sf.lit(0))
    reads = spark.read.parquet(f"{directory}/reads.parquet").withColumn("is_read", sf.lit(1))
    in_time = Window.partitionBy("key").orderBy("time", "is_read")
    so_far = in_time.rowsBetween(Window.unboundedPreceding, 0)
    rows = increments.unionByName(reads).withColumn("so_far", sf.sum(1 - sf.col("is_read")).over(so_far))
    since = sf.col("so_far") - sf.lag("so_far", 1, 0).over(in_time)
    return {"Count": rows.filter("is_read = 1").select("time", "key", since.alias("count"))}


def main() -> int:
    """May it be split? Its plan, a few events on two workers here, and many on Spark, compared with the plain loop."""
    ready = tight.parallelize(KeyCounter(), streams(2, every=1_000), workers=2)
    print(ready.verdict)
    print(ready.plan.show())
    some = {
        "increments_0": [Increment(1, 1), Increment(2, 2), Increment(3, 2)],
        "increments_1": [Increment(1, 2), Increment(4, 1), Increment(5, 2)],
        "reads": [Read(3, 1), Read(4, 2), Read(6, 1)],
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
