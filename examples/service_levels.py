"""Is the error budget of a service burnt? Of all requests of a month, one in a hundred may fail.

    python examples/service_levels.py

What a row is, its columns say: conditions make the tags. A month begins with a row of its own, and the counts begin
anew. Two outputs are of use: the rows at which the budget is burnt, and those at which that changes.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import streamtight as tight

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

q = tight.query
Row = tuple[str, int, str, int]
"""Service, second, "month" or "request", HTTP status."""
BUDGET = 0.01
FEW = 100
"""Before so many requests of a month nothing is said of it."""

TAGS = {"month": "kind = 'month'", "failed": "status >= 500", "served": "status < 500"}

failed = q.per("month", q.count("failed"))
requests = q.per("month", q.count("failed") + q.count("served"))
within_budget = (requests < FEW) | (failed <= BUDGET * requests)


def watched(rows: DataFrame, outputs: str) -> DataFrame:
    """The answers for each service: all of them, those that change, or the alarms."""
    return tight.watch(
        {"within_budget": within_budget}, rows, key="service", order_by="second", tags=TAGS, outputs=outputs
    )


def make(requests: int = 400, seed: int = 0) -> list[Row]:
    """Two services in two months; one has a bad time in the middle of the first."""
    rng, rows = random.Random(seed), []
    for service in ("orders", "search"):
        second = 0
        for month in (1, 2):
            rows.append((service, second, "month", 0))
            for number in range(requests):
                second += rng.randint(1, 9)
                is_bad_time = service == "search" and month == 1 and requests // 2 <= number < requests * 5 // 8
                fails = rng.random() < (0.2 if is_bad_time else 0.002)
                rows.append((service, second, "request", 503 if fails else 200))
            second += 1
    return rows


def frame(spark: SparkSession, rows: Iterable[Row]) -> DataFrame:
    """The rows as a table."""
    return spark.createDataFrame(list(rows), "service string, second int, kind string, status int")


def by_hand(rows: Iterable[Row]) -> list[tuple[str, int, bool]]:
    """The same for rows in order, as a plain loop: service, second, and whether the budget lasts."""
    counts: dict[str, tuple[int, int]] = {}
    found = []
    for service, second, kind, status in rows:
        bad, all_ = counts.get(service, (0, 0))
        bad, all_ = (0, 0) if kind == "month" else (bad + (status >= 500), all_ + 1)
        counts[service] = bad, all_
        found.append((service, second, all_ < FEW or bad <= BUDGET * all_))
    return found


def main() -> int:
    """The changes, how many alarms, and both against the plain loop."""
    rows = make()
    table = frame(tight.session(), rows)
    print(f"within_budget needs {within_budget.bound()}")
    changes = watched(table, "changes").orderBy("service", "second").collect()
    for row in changes:
        print(f"{row.service} at second {row.second}: {'within budget' if row.within_budget else 'BURNT'}")
    alarms = watched(table, "alarms").orderBy("service", "second").collect()

    expected = by_hand(rows)
    before: dict[str, bool] = {}
    expected_changes = []
    for service, second, is_fine in expected:
        if before.get(service) is not is_fine:
            expected_changes.append((service, second, is_fine))
        before[service] = is_fine
    same = [tuple(row)[:3] for row in changes] == expected_changes and [
        (row.service, row.second) for row in alarms
    ] == [(service, second) for service, second, is_fine in expected if not is_fine]
    print(f"{len(alarms)} of {len(rows)} rows are alarms; those of the plain loop: {same}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
