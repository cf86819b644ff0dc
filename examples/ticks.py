"""How far did a share fall on a day, from the highest price of that day?

    python examples/ticks.py

The prices of each symbol and day are a stream of their own: both columns are the key. The same question is asked of a
frame of pandas, of an Arrow table and of a DataFrame of Spark, and all three must say the same.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import streamtight as tight

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

q = tight.query
Tick = tuple[str, str, int, int]
"""Symbol, day, second of the day, price in cents."""
SCHEMA = "symbol string, day string, second int, price long"

fallen = q.drawdown(q.cur.price)
calm = fallen <= 0.1 * q.greatest(
    q.cur.price, before=0
)  # it never fell by more than a tenth of the day's highest price


def watched(ticks: Any) -> Any:
    """The answers after each tick, as a table of the same sort."""
    queries = {"fallen": fallen, "calm": calm}
    return tight.watch(queries, ticks, key=["symbol", "day"], order_by="second", gives={"fallen": "bigint"})


def make(ticks: int = 200, seed: int = 0) -> list[Tick]:
    """Two symbols, three days, so many prices on each."""
    rng, rows = random.Random(seed), []
    for symbol, step in (("CALM", 10), ("WILD", 150)):
        for day in ("2026-03-02", "2026-03-03", "2026-03-04"):
            price = 10_000
            for second in sorted(rng.sample(range(8 * 3600), ticks)):
                price = max(price + rng.randint(-step, step), 1)
                rows.append((symbol, day, second, price))
    return rows


def frame(spark: SparkSession, rows: Iterable[Tick]) -> DataFrame:
    """The rows as a table of Spark."""
    return spark.createDataFrame(list(rows), SCHEMA)


def by_hand(rows: Iterable[Tick]) -> list[tuple[str, str, int, int, bool]]:
    """The same for rows in order, as a plain loop."""
    known: dict[tuple[str, str], tuple[int, int]] = {}
    found = []
    for symbol, day, second, price in rows:
        highest, fallen = known.get((symbol, day), (price, 0))
        highest = max(highest, price)
        fallen = max(fallen, highest - price)
        known[symbol, day] = highest, fallen
        found.append((symbol, day, second, fallen, fallen <= 0.1 * highest))
    return found


def main() -> int:
    """Three tables, the same answers."""
    import pandas as pd
    import pyarrow as pa

    rows = make()
    print(f"fallen needs {fallen.bound()}")
    prices = pd.DataFrame(rows, columns=["symbol", "day", "second", "price"])
    answers = watched(prices)
    print(answers.groupby(["symbol", "day"])[["fallen", "calm"]].last())

    expected = by_hand(rows)
    columns = ["symbol", "day", "second", "fallen", "calm"]
    of_arrow = watched(pa.Table.from_pandas(prices))
    of_spark = watched(frame(tight.session(), rows)).orderBy("symbol", "day", "second").select(columns)
    found = {
        "pandas": list(answers[columns].itertuples(index=False, name=None)),
        "Arrow": [tuple(row.values()) for row in of_arrow.select(columns).to_pylist()],
        "Spark": [tuple(row) for row in of_spark.collect()],
    }
    for name, those in found.items():
        print(f"{name}: {len(those)} answers; those of the plain loop: {those == expected}")
    return 0 if all(those == expected for those in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
