"""How high was the mean heart rate of a day, and was the heart ever too fast since the last medication?

    python examples/patients.py

Readings come as files, some of them late. With `wait=` a row is answered when no row before it can come any more, so
late readings are put where they belong. In the middle the query is stopped and started again from its checkpoint.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamtight as tight

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

q = tight.query
Row = tuple[str, datetime, str, int]
"""Patient, time, "reading", "medication" or "midnight", heart rate."""
LIMIT = 120
START = datetime(2026, 3, 2)

highest = q.top("midnight", q.mean(q.cur.rate, "reading"), before=0.0)
calm = q.per("medication", q.greatest(q.cur.rate, "reading", before=0)) <= LIMIT


def watched(rows: DataFrame) -> DataFrame:
    """The answers for each patient, in the order of time."""
    queries = {"highest": highest, "calm": calm}
    return tight.watch(queries, rows, key="patient", order_by="time", tags="kind", keep="kind", wait="15 minutes")


# -- the input ---------------------------------------------------------------------------------------------------------


def make(days: int = 2, seed: int = 0) -> list[Row]:
    """Two patients: a reading every hour, a medication at noon, and what ends each day."""
    rng, rows = random.Random(seed), []
    for patient, usual in (("Ann", 80), ("Bob", 104)):
        for hour in range(24 * days):
            time = START + timedelta(hours=hour)
            if hour % 24 == 0 and hour:
                rows.append((patient, time, "midnight", 0))
            if hour % 24 == 12:
                rows.append((patient, time, "medication", 0))
            rows.append(
                (patient, time + timedelta(minutes=rng.randint(1, 50)), "reading", rng.randint(-20, 20) + usual)
            )
        rows.append((patient, START + timedelta(days=days), "midnight", 0))
    return rows


def as_they_come(rows: Sequence[Row], files: int = 6, seed: int = 0) -> list[list[Row]]:
    """The rows in files: each up to ten minutes late. At last a reading of the day after, so that nothing waits."""
    rng = random.Random(seed)
    arrived = sorted(rows, key=lambda row: row[1] + timedelta(minutes=rng.choice([0, 0, 10])))
    size = -(-len(rows) // files)
    last = ("Ann", max(row[1] for row in rows) + timedelta(days=1), "reading", 80)
    return [*(arrived[start : start + size] for start in range(0, len(rows), size)), [last]]


def write(folder: Path, number: int, rows: Iterable[Row]) -> None:
    """One file, which will be one micro-batch."""
    lines = [
        json.dumps({"patient": patient, "time": time.isoformat(), "kind": kind, "rate": rate})
        for patient, time, kind, rate in rows
    ]
    folder.mkdir(exist_ok=True)
    path = folder / f"{number}.json"
    path.write_text("\n".join(lines))
    os.utime(path, (number, number))  # Spark reads the oldest file first


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    """The files as they come."""
    reader = spark.readStream.schema("patient string, time timestamp, kind string, rate int")
    return reader.option("maxFilesPerTrigger", 1).json(str(folder))


def answers(spark: SparkSession, files: Sequence[Sequence[Row]], folder: Path) -> list[Any]:
    """What the query says to these files, if it is stopped and started again after half of them."""
    half = len(files) // 2
    for begin, end in ((0, half), (half, len(files))):
        for number in range(begin, end):
            write(folder / "readings", number, files[number])
        writer = watched(stream(spark, folder / "readings")).writeStream.format("parquet")
        query = writer.option("checkpointLocation", str(folder / "checkpoint")).start(str(folder / "answers"))
        query.processAllAvailable()
        query.stop()
    return spark.read.parquet(str(folder / "answers")).orderBy("patient", "time").collect()


# -- the same question in plain Python ---------------------------------------------------------------------------------


def by_hand(rows: Iterable[Row]) -> list[tuple[str, datetime, str, float, bool]]:
    """The same for rows in order, as a plain loop."""
    found = []
    today: dict[str, list[int]] = {}
    highest: dict[str, float] = {}
    fastest: dict[str, int] = {}
    for patient, time, kind, rate in rows:
        readings = today.setdefault(patient, [])
        if kind == "reading":
            readings.append(rate)
            fastest[patient] = max(fastest.get(patient, 0), rate)
        elif kind == "medication":
            fastest[patient] = 0
        else:
            mean = sum(readings) / len(readings) if readings else 0
            highest[patient] = max(highest.get(patient, 0.0), mean)
            readings.clear()
        found.append((patient, time, kind, highest.get(patient, 0.0), fastest.get(patient, 0) <= LIMIT))
    return found


def main() -> int:
    """Two days of two patients, as a stream with late readings and a restart, and against the plain loop."""
    rows = make()
    print(f"highest needs {highest.bound()}")
    print(f"calm needs {calm.bound()}")
    with tempfile.TemporaryDirectory() as folder:
        found = answers(tight.session(), as_they_come(rows), Path(folder))
    for patient in ("Ann", "Bob"):
        mine = [row for row in found if row.patient == patient]
        alarms = [row.time for row in mine if row.calm is False]
        print(f"{patient}: at most {mine[-1].highest:.1f} a day; too fast after {len(alarms)} of {len(mine)} rows")
    same = [tuple(row[name] for name in ("patient", "time", "kind", "highest", "calm")) for row in found] == by_hand(
        rows
    )
    print(
        f"{len(found)} answers, {sum(row.calm_status == 'late' for row in found)} late; those of the plain loop: {same}"
    )
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
