"""Fraud detection: transactions are judged by a model that is made anew, from all of them, at each rule.

    python examples/fraud.py

Each worker needs the model, and the model needs what all workers saw: what is joined at a rule goes back to all of
them. (The model is that of Flumina's comparison with Flink: the total of the window before, and a remainder that must
agree.)
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

Transaction = tight.Kind("Transaction", time=int, account=int, cents=int)
Rule = tight.Kind("Rule", time=int)
Flagged = tight.Kind("Flagged", time=int, account=int, cents=int)
Total = tight.Kind("Total", time=int, total=int)

ROWS_AT_ONCE = 100_000
State = tuple[int, int]
"""The total of the window before, which is the model, and the total of this one."""


class Fraud(tight.ForkJoin):
    """Which transactions agree with the model of the last rule, and what is the total between two rules?

    Rules depend on everything: a rule makes the model from all transactions before it, for all transactions after it.
    Transactions do not depend on each other.
    """

    takes, gives = (Transaction, Rule), (Flagged, Total)
    depends = tight.barrier(Rule)
    whole, part = tight.StateType(Transaction, Rule), tight.StateType(Transaction)
    branches = (tight.Branch(whole, part, part), tight.Branch(part, part, part))

    def init(self) -> State:
        return 0, 0

    def update(self, state: State, event: Any, emit: Any) -> State:
        model, total = state
        if event.kind is Transaction:
            if model % 1000 == event.cents % 1000:
                emit(Flagged(event.time, event.account, event.cents))
            return model, total + event.cents
        emit(Total(event.time, total))
        return total, 0

    def update_block(self, state: State, block: Any, emit: Any) -> Any:
        if block.kind is not Transaction:
            return NotImplemented
        model, total = state
        cents = block["cents"]
        agrees = cents % 1000 == model % 1000
        if agrees.any():
            emit.block(Flagged, time=block["time"][agrees], account=block["account"][agrees], cents=cents[agrees])
        return model, total + int(cents.sum())

    def fork(self, state: State, left: tight.TagSet, right: tight.TagSet) -> tuple[State, State]:
        model, total = state
        return (model, total), (model, 0)

    def join(self, left: State, right: State) -> State:
        return left[0], left[1] + right[1]


# -- the same detection, with what is known of each account ------------------------------------------------------------

ACCOUNTS = {
    number: {"usual": 500 + number * 61 % 4000, "opened": number * 17 % 3000, "risk": number * 29 % 5}
    for number in range(10_000)
}
"""Of each account what is usually paid, in cents, for how many days it has been open, and how risky it is."""


class ScoredFraud(Fraud):
    """Which transactions score high, by what is known of their accounts and by the model of the last rule?

    What depends on what is as in `Fraud`. Each transaction takes some look-ups, as in most real programs.
    """

    update_block = tight.ForkJoin.update_block  # one event after the other, as the look-ups are written

    def update(self, state: State, event: Any, emit: Any) -> State:
        model, total = state
        if event.kind is Transaction:
            if score(model, event.time, event.account, event.cents) >= 100:
                emit(Flagged(event.time, event.account, event.cents))
            return model, total + event.cents
        emit(Total(event.time, total))
        return total, 0


def score(model: int, time: int, account: int, cents: int) -> int:
    """How suspicious a transaction is: from 100 it is flagged."""
    known = ACCOUNTS[account % 10_000]
    points = 10 * known["risk"]
    if cents > 3 * known["usual"]:
        points += min(cents // known["usual"], 12) * 3
    if known["opened"] < 30:
        points += 20
    if time // 3600 % 24 in (1, 2, 3, 4):  # at night
        points += 5
    if model % 100 == cents % 100:
        points += 30
    return points


# -- the input ---------------------------------------------------------------------------------------------------------


def streams(count: int, every: int) -> list[tight.InputStream]:
    """Streams of transactions, and one of rules: one rule for so many times."""
    fast = [tight.InputStream(f"transactions_{number}", Transaction, rate=every) for number in range(count)]
    return [*fast, tight.InputStream("rules", Rule, rate=1)]


def make(directory: str | Path, *, streams: int, events: int, every: int, seed: int = 0) -> None:
    """Write a file for each stream: so many transactions, one for each time, and a rule every so many times."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("transactions_*.parquet"):
        old.unlink()
    schema = pa.schema({"time": pa.int64(), "account": pa.int64(), "cents": pa.int64()})
    for number in range(streams):
        rng, last = np.random.default_rng([seed, number]), events // streams + (number < events % streams)
        with pq.ParquetWriter(folder / f"transactions_{number}.parquet", schema) as file:
            for start in range(0, last, ROWS_AT_ONCE):
                time = np.arange(start, min(start + ROWS_AT_ONCE, last)) + 1
                account, cents = rng.integers(0, 10_000, time.size), rng.integers(1, 20_000, time.size)
                file.write_table(pa.table({"time": time, "account": account, "cents": cents}))
    rules = np.arange(every, -(-events // streams) + 1, every)
    pq.write_table(pa.table({"time": rules}), folder / "rules.parquet", row_group_size=ROWS_AT_ONCE)


# -- the same question without fork and join ---------------------------------------------------------------------------


def sequential(directory: str | Path) -> dict[str, list[Any]]:
    """The plain program: one loop over everything in the order of time."""
    flagged, totals, model, total = [], [], 0, 0
    for time, is_rule, account, cents in in_order(directory):
        if is_rule:
            totals.append((time, total))
            model, total = total % 1000, 0
        else:
            if cents % 1000 == model:
                flagged.append((time, account, cents))
            total += cents
    return {"Flagged": flagged, "Total": totals}


def sequential_scored(directory: str | Path) -> dict[str, list[Any]]:
    """The same for `ScoredFraud`."""
    flagged, totals, model, total = [], [], 0, 0
    for time, is_rule, account, cents in in_order(directory):
        if is_rule:
            totals.append((time, total))
            model, total = total, 0
        else:
            if score(model, time, account, cents) >= 100:
                flagged.append((time, account, cents))
            total += cents
    return {"Flagged": flagged, "Total": totals}


def in_order(directory: str | Path) -> Iterator[tuple[int, bool, int, int]]:
    """All rows by time, transactions first where times are equal: time, whether it is a rule, account, cents."""
    import numpy as np
    import pyarrow.parquet as pq

    fast = [pq.read_table(path) for path in sorted(Path(directory).glob("transactions_*.parquet"))]
    rules = pq.read_table(Path(directory) / "rules.parquet")["time"].to_numpy()
    nothing = np.zeros_like(rules)
    time = np.concatenate([*(table["time"].to_numpy() for table in fast), rules])
    account = np.concatenate([*(table["account"].to_numpy() for table in fast), nothing])
    cents = np.concatenate([*(table["cents"].to_numpy() for table in fast), nothing])
    order = np.argsort(time, kind="stable")
    first_rule = len(time) - len(rules)
    for start in range(0, len(order), ROWS_AT_ONCE):
        rows = order[start : start + ROWS_AT_ONCE]
        is_rule = (rows >= first_rule).tolist()
        yield from zip(time[rows].tolist(), is_rule, account[rows].tolist(), cents[rows].tolist(), strict=True)


def by_hand(spark: SparkSession, directory: str | Path) -> dict[str, DataFrame]:
    """The job one writes by hand: number the windows, add them up, and join each transaction with the one before."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sf

    transactions = spark.read.parquet(f"{directory}/transactions_*.parquet").withColumn("is_rule", sf.lit(0))
    rules = spark.read.parquet(f"{directory}/rules.parquet").withColumn("is_rule", sf.lit(1))
    so_far = Window.orderBy("time", "is_rule").rowsBetween(Window.unboundedPreceding, -1)
    both = transactions.unionByName(rules, allowMissingColumns=True)
    numbered = both.withColumn("window", sf.coalesce(sf.sum("is_rule").over(so_far), sf.lit(0)))
    windows = numbered.groupBy("window").agg(
        sf.max(sf.when(sf.col("is_rule") == 1, sf.col("time"))).alias("closed_at"),
        sf.coalesce(sf.sum("cents"), sf.lit(0)).alias("total"),
    )
    models = windows.select("window", sf.lag("total", 1, 0).over(Window.orderBy("window")).alias("model"))
    judged = numbered.filter("is_rule = 0").join(models, "window")
    return {
        "Flagged": judged.filter("cents % 1000 = model % 1000").select("time", "account", "cents"),
        "Total": windows.filter("closed_at IS NOT NULL").selectExpr("closed_at AS time", "total"),
    }


def quickly_by_hand(spark: SparkSession, directory: str | Path) -> dict[str, DataFrame]:
    """The quick job by hand, if all rules fit into memory: once to add up, once more to compare with the models."""
    import numpy as np
    import pyarrow as pa
    from pyspark.sql import functions as sf

    transactions = spark.read.parquet(f"{directory}/transactions_*.parquet")
    rules = spark.read.parquet(f"{directory}/rules.parquet").toPandas()["time"].to_numpy()

    def add_up(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            window, place = np.unique(np.searchsorted(rules, batch["time"].to_numpy()), return_inverse=True)
            total = np.zeros_like(window)
            np.add.at(total, place, batch["cents"].to_numpy())
            yield pa.RecordBatch.from_pydict({"window": window, "total": total})

    sums = transactions.mapInArrow(add_up, "window long, total long").groupBy("window").agg(sf.sum("total"))
    known = dict(map(tuple, sums.collect()))
    totals = [(time, known.get(window, 0)) for window, time in enumerate(rules.tolist())]
    models = np.array([0, *(total % 1000 for _, total in totals)])

    def flag(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            model = models[np.searchsorted(rules, batch["time"].to_numpy())]
            yield batch.filter(pa.array(batch["cents"].to_numpy() % 1000 == model))

    return {
        "Flagged": transactions.mapInArrow(flag, "time long, account long, cents long"),
        "Total": spark.createDataFrame(totals, "time long, total long"),
    }


def main() -> int:
    """May it be split? Its plan, a few events on two workers here, and many on Spark, compared with the plain loop."""
    ready = tight.parallelize(Fraud(), streams(2, every=1_000), workers=2)
    print(ready.verdict)
    print(ready.plan.show())
    some = {
        "transactions_0": [Transaction(1, 7, 400), Transaction(2, 7, 300), Transaction(3, 7, 1000)],
        "transactions_1": [Transaction(1, 8, 250), Transaction(2, 8, 50), Transaction(4, 9, 5000)],
        "rules": [Rule(2), Rule(4)],
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
