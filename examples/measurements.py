"""Is the average of the last five measurements always more than two deviations above that of the last two days?

    python examples/measurements.py

Cells of two cultures are counted every hour. As long as a culture grows by the same share each time, the last
five counts are far above those of the two days before; once it has no room left, they are not. A day ends with an item
of its own, so the query needs no calendar.
"""

from __future__ import annotations

import math
import random
import statistics
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import streamtight as tight

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

q = tight.query
Row = tuple[str, int, str, float]
"""Of which culture, when (in hours), "counted" or "midnight", and how many cells, in thousands."""

# A day is any number of counts, and a midnight. The word that is read is any number of days, then two, then today.


def of_two_days(term: object) -> tight.query.Query:
    """The sum of a term over the two days that ended last; there is none on the first two days."""
    today = q.iter_(q.atom("counted", term), 0, lambda total, value: total + value)
    day = q.split(today, q.atom("midnight", 0), q.first)
    two_days = q.split(day, day, lambda one, other: one + other)
    return q.split(q.split(q.iter_(day, 0, q.first), two_days, q.second), today, q.first)


def limit_of(count: q.Term, total: q.Term, squares: q.Term) -> q.Term:
    """The mean and two standard deviations of so many values, from their sum and that of their squares."""
    mean = total / count
    return mean + 2 * q.sqrt(q.larger(squares / count - mean * mean, 0))


limit = q.combine(of_two_days(1), of_two_days(q.cur), of_two_days(q.cur * q.cur), limit_of)
last_five = q.mean_of_last(q.cur, 5, "counted")
grows = q.historically(last_five > q.fill_with(limit, -math.inf))  # for two days there is nothing to be above of


# -- the input ---------------------------------------------------------------------------------------------------------


def make(days: int = 6, seed: int = 0) -> list[Row]:
    """Two cultures: A grows for all days, B has no room left after some."""
    rng, rows = random.Random(seed), []
    for culture, most in (("A", math.inf), ("B", 1_000.0)):
        cells = 1.0
        for hour in range(24 * days):
            cells = min(cells * 1.1, most)
            rows.append((culture, hour, "counted", round(cells * rng.uniform(0.98, 1.02), 3)))
            if hour % 24 == 23:
                rows.append((culture, hour + 1, "midnight", 0.0))
    return rows


def frame(spark: SparkSession, rows: Iterable[Row]) -> DataFrame:
    """The rows as a table. At midnight there is a count, too: the day ends first, so kinds order rows as well."""
    made = spark.createDataFrame(list(rows), "culture string, hour int, kind string, cells double")
    return made.selectExpr("*", "kind = 'counted' AS is_count")


def watched(rows: DataFrame) -> DataFrame:
    """What is true after each row, for each culture."""
    return tight.watch(
        {"limit": limit, "last_five": last_five, "grows": grows},
        rows,
        key="culture",
        order_by=["hour", "is_count"],
        tags="kind",
        value="cells",
        gives={"limit": "double"},
    )


# -- the same question in plain Python ---------------------------------------------------------------------------------


def by_hand(rows: Iterable[Row]) -> Iterator[tuple[str, int, bool]]:
    """The same for rows in order: culture, hour, and whether it still grows."""
    days: dict[str, list[list[float]]] = {}
    grows: dict[str, bool] = {}
    for culture, hour, kind, cells in rows:
        mine = days.setdefault(culture, [[]])
        if kind == "midnight":
            mine.append([])
        else:
            mine[-1].append(cells)
        *_, one, other = [None, None, *mine[:-1]]
        if one is not None and other is not None:
            last = [each for day in mine for each in day][-5:]
            before = one + other
            is_above = statistics.fmean(last) > statistics.fmean(before) + 2 * statistics.pstdev(before)
            grows[culture] = grows.get(culture, True) and is_above
        yield culture, hour, grows.get(culture, True)


def main() -> int:
    """Both cultures on Spark, and against the plain loop."""
    rows = make()
    print(f"grows needs {grows.bound()}")
    answers = watched(frame(tight.session(), rows)).orderBy("culture", "hour", "is_count").collect()
    for culture in ("A", "B"):
        broken = [row for row in answers if row.culture == culture and not row.grows]
        if broken:
            hour, last, above = broken[0].hour, broken[0].last_five, broken[0].limit
            print(f"{culture} grew until hour {hour}: then {last:.0f} thousand, which is not above {above:.0f}")
        else:
            print(f"{culture} grows")
    same = [(row.culture, row.hour, row.grows) for row in answers] == list(by_hand(rows))
    print(f"{len(answers)} answers; those of the plain loop: {same}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
