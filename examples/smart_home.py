"""Loads and meters of houses: what each house will need next, and what it has used, at the end of each slice of time.

    python examples/smart_home.py

Plugs send their load in watts, meters what went through them in watt-hours. These are two different things to add up:
the state of the whole is forked into two states of different types, each with its own update. (After query 1 of the
Grand Challenge of DEBS 2014, with slices that end by an event.)
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

Load = tight.Kind("Load", time=int, house=int, household=int, plug=int, watts=int)
Work = tight.Kind("Work", time=int, house=int, watt_hours=int)
EndOfSlice = tight.Kind("EndOfSlice", time=int)
Prediction = tight.Kind("Prediction", time=int, house=int, watts=int)
Used = tight.Kind("Used", time=int, house=int, watt_hours=int)

ROWS_AT_ONCE = 100_000
REMEMBERED = 24
"""So many slices of each house are looked back at."""

Plug = tuple[int, int, int]
Loads = dict[Plug, tuple[int, int]]
"""Of each plug, how many loads came in this slice, and their total."""


Meters = tuple[dict[int, int], dict[int, tuple[int, ...]]]
"""What each house used in this slice, and the loads of each house in the slices before."""
Whole = tuple[Loads, Meters]


def add_load(loads: Loads, event: Any, emit: Any) -> Loads:
    """One load more."""
    plug = (event.house, event.household, event.plug)
    count, total = loads.get(plug, (0, 0))
    loads[plug] = (count + 1, total + event.watts)
    return loads


def add_work(meters: Meters, event: Any, emit: Any) -> Meters:
    """What went through a meter."""
    used, _ = meters
    used[event.house] = used.get(event.house, 0) + event.watt_hours
    return meters


class SmartHome(tight.ForkJoin):
    """What load is to be expected in each house, and what did it use, at the end of each slice of time?

    The end of a slice depends on everything. Loads and meters do not depend on each other, nor on others of their sort.
    """

    takes, gives = (Load, Work, EndOfSlice), (Prediction, Used)
    depends = tight.barrier(EndOfSlice)
    whole = tight.StateType(Load, Work, EndOfSlice)
    loads = tight.StateType(Load, update=add_load)
    meters = tight.StateType(Work, update=add_work)
    branches = (
        tight.Branch(whole, loads, meters, fork="fork_sorts", join="join_sorts"),
        tight.Branch(loads, loads, loads, fork="fork_loads", join="join_loads"),
        tight.Branch(meters, meters, meters, fork="fork_meters", join="join_meters"),
    )

    def init(self) -> Whole:
        return {}, ({}, {})

    def update(self, state: Whole, event: Any, emit: Any) -> Whole:
        loads, meters = state
        if event.kind is Load:
            return add_load(loads, event, emit), meters
        if event.kind is Work:
            return loads, add_work(meters, event, emit)
        used, history = meters
        for house, watt_hours in used.items():
            emit(Used(event.time, house, watt_hours))
        for house, watts in load_of_houses(loads).items():
            before = history.get(house, ())
            emit(Prediction(event.time, house, predicted(watts, before)))
            history[house] = (*before, watts)[-REMEMBERED:]
        return {}, ({}, history)

    def fork_sorts(self, state: Whole, left: tight.TagSet, right: tight.TagSet) -> tuple[Loads, Meters]:
        """The loads to the left, the meters to the right."""
        return state

    def join_sorts(self, loads: Loads, meters: Meters) -> Whole:
        """Both sorts together again."""
        return loads, meters

    def fork_loads(self, loads: Loads, left: tight.TagSet, right: tight.TagSet) -> tuple[Loads, Loads]:
        """Any side may go on with what came so far."""
        return loads, {}

    def join_loads(self, left: Loads, right: Loads) -> Loads:
        """What came on both sides."""
        for plug, (count, total) in right.items():
            known_count, known_total = left.get(plug, (0, 0))
            left[plug] = (known_count + count, known_total + total)
        return left

    def fork_meters(self, meters: Meters, left: tight.TagSet, right: tight.TagSet) -> tuple[Meters, Meters]:
        """Any side may go on with what came so far; the history is needed only at the end of a slice."""
        return meters, ({}, {})

    def join_meters(self, left: Meters, right: Meters) -> Meters:
        """What came on both sides."""
        used, history = left
        for house, watt_hours in right[0].items():
            used[house] = used.get(house, 0) + watt_hours
        return used, history


def load_of_houses(loads: Loads) -> dict[int, int]:
    """The load of each house: the average loads of its plugs, added up."""
    of_houses: dict[int, int] = {}
    for (house, _, _), (count, total) in loads.items():
        of_houses[house] = of_houses.get(house, 0) + total // count
    return of_houses


def predicted(watts: int, before: tuple[int, ...]) -> int:
    """Half way between this slice and the median of those before."""
    return (watts + sorted(before)[(len(before) - 1) // 2]) // 2 if before else watts


# -- the input ---------------------------------------------------------------------------------------------------------


def streams(count: int, every: int) -> list[tight.InputStream]:
    """Streams of loads, one of meters with a tenth as many, and one of ends: one end for so many times."""
    fast = [tight.InputStream(f"loads_{number}", Load, rate=every) for number in range(count)]
    return [*fast, tight.InputStream("meters", Work, rate=every / 10), tight.InputStream("ends", EndOfSlice, rate=1)]


def make(directory: str | Path, *, streams: int, events: int, every: int, seed: int = 0, houses: int = 40) -> None:
    """Write a file for each stream: so many loads, one for each time; a slice ends every so many times."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("loads_*.parquet"):
        old.unlink()
    schema = pa.schema({name: pa.int64() for name in Load.names})
    for number in range(streams):
        rng, last = np.random.default_rng([seed, number]), events // streams + (number < events % streams)
        with pq.ParquetWriter(folder / f"loads_{number}.parquet", schema) as file:
            for start in range(0, last, ROWS_AT_ONCE):
                time = np.arange(start, min(start + ROWS_AT_ONCE, last)) + 1
                chosen = {
                    name: rng.integers(0, most, time.size)
                    for name, most in (("house", houses), ("household", 3), ("plug", 4), ("watts", 2000))
                }
                file.write_table(pa.table({"time": time, **chosen}))
    last, rng = -(-events // streams), np.random.default_rng([seed, streams])
    time = np.arange(10, last + 1, 10)
    used = {"house": rng.integers(0, houses, time.size), "watt_hours": rng.integers(0, 50, time.size)}
    pq.write_table(pa.table({"time": time, **used}), folder / "meters.parquet", row_group_size=ROWS_AT_ONCE)
    pq.write_table(pa.table({"time": np.arange(every, last + 1, every)}), folder / "ends.parquet")


# -- the same question without fork and join ---------------------------------------------------------------------------


def sequential(directory: str | Path) -> dict[str, list[Any]]:
    """The plain program: one loop over everything in the order of time."""
    predictions, all_used = [], []
    loads: dict[Plug, list[int]] = {}
    used: dict[int, int] = {}
    history: dict[int, tuple[int, ...]] = {}
    for time, kind, house, household, plug, amount in in_order(directory):
        if kind == 0:
            sums = loads.setdefault((house, household, plug), [0, 0])
            sums[0] += 1
            sums[1] += amount
        elif kind == 1:
            used[house] = used.get(house, 0) + amount
        else:
            all_used += [(time, each, watt_hours) for each, watt_hours in used.items()]
            of_houses: dict[int, int] = {}
            for (each, _, _), (count, total) in loads.items():
                of_houses[each] = of_houses.get(each, 0) + total // count
            for each, watts in of_houses.items():
                before = history.get(each, ())
                predictions.append((time, each, predicted(watts, before)))
                history[each] = (*before, watts)[-REMEMBERED:]
            loads, used = {}, {}
    return {"Prediction": predictions, "Used": all_used}


def in_order(directory: str | Path) -> Iterator[tuple[int, ...]]:
    """All rows by time; where times are equal, loads (0), meters (1), ends (2): time, kind, house, ..., the amount."""
    import numpy as np
    import pyarrow.parquet as pq

    names = [*sorted(path.stem for path in Path(directory).glob("loads_*.parquet")), "meters", "ends"]
    tables = [pq.read_table(Path(directory) / f"{name}.parquet") for name in names]
    kinds = [0] * (len(tables) - 2) + [1, 2]

    def column(*wanted: str) -> Any:
        found = [next((name for name in wanted if name in table.column_names), None) for table in tables]
        return np.concatenate(
            [
                table[name].to_numpy() if name else np.zeros(len(table), np.int64)
                for table, name in zip(tables, found, strict=True)
            ]
        )

    kind = np.concatenate([np.full(len(table), kind) for table, kind in zip(tables, kinds, strict=True)])
    of_plug = [column(name) for name in ("house", "household", "plug")]
    columns = [column("time"), kind, *of_plug, column("watts", "watt_hours")]
    order = np.argsort(columns[0], kind="stable")
    for start in range(0, len(order), ROWS_AT_ONCE):
        rows = order[start : start + ROWS_AT_ONCE]
        yield from zip(*(values[rows].tolist() for values in columns), strict=True)


def by_hand(spark: SparkSession, directory: str | Path) -> dict[str, DataFrame]:
    """The job one writes by hand: number the slices, add up in two steps, and look back over each house's slices."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sf

    def read(files: str, kind: int) -> DataFrame:
        return spark.read.parquet(f"{directory}/{files}.parquet").withColumn("kind", sf.lit(kind))

    both = read("loads_*", 0).unionByName(read("meters", 1), allowMissingColumns=True)
    rows = both.unionByName(read("ends", 2), allowMissingColumns=True)
    so_far = Window.orderBy("time", "kind").rowsBetween(Window.unboundedPreceding, -1)
    is_end = sf.when(sf.col("kind") == 2, 1).otherwise(0)
    numbered = rows.withColumn("slice", sf.coalesce(sf.sum(is_end).over(so_far), sf.lit(0)))
    ends = numbered.filter("kind = 2").select("slice", sf.col("time").alias("end"))
    sliced = numbered.filter("kind < 2").join(ends, "slice").withColumn("time", sf.col("end"))

    used = sliced.filter("kind = 1").groupBy("slice", "time", "house").agg(sf.sum("watt_hours").alias("watt_hours"))
    plugs = sliced.filter("kind = 0").groupBy("slice", "time", "house", "household", "plug")
    averages = plugs.agg(sf.expr("sum(watts) div count(*)").alias("average"))
    houses = averages.groupBy("slice", "time", "house").agg(sf.sum("average").alias("watts"))
    earlier = Window.partitionBy("house").orderBy("slice").rowsBetween(-REMEMBERED, -1)
    known = houses.withColumn("before", sf.sort_array(sf.collect_list("watts").over(earlier)))
    median = "before[(size(before) - 1) div 2]"
    expected = sf.expr(f"IF(size(before) = 0, watts, (watts + {median}) div 2)")
    return {
        "Prediction": known.select("time", "house", expected.alias("watts")),
        "Used": used.select("time", "house", "watt_hours"),
    }


def main() -> int:
    """May it be split? Its plan, a few events on two workers here, and many on Spark, compared with the plain loop."""
    ready = tight.parallelize(SmartHome(), streams(2, every=1_000), workers=2)
    print(ready.verdict)
    print(ready.plan.show())
    some = {
        "loads_0": [Load(1, 1, 0, 0, 100), Load(2, 1, 0, 1, 50), Load(3, 1, 0, 0, 300)],
        "loads_1": [Load(1, 2, 0, 0, 80), Load(2, 1, 0, 0, 200), Load(4, 2, 0, 0, 20)],
        "meters": [Work(1, 1, 5), Work(2, 2, 7), Work(4, 1, 9)],
        "ends": [EndOfSlice(2), EndOfSlice(4)],
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
