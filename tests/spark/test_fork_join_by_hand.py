"""The jobs that one writes by hand give what the programs with fork and join give, row by row."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from load_example import load_example
from pyspark.sql import DataFrame, SparkSession

import streamtight as tight

event_windows, fraud, page_views, key_counter, outliers, smart_home = map(
    load_example, ("event_windows", "fraud", "page_views", "key_counter", "outliers", "smart_home")
)
JOBS = {
    "event_windows": (event_windows, event_windows.EventWindows(), event_windows.by_hand),
    "event_windows_quickly": (event_windows, event_windows.EventWindows(), event_windows.quickly_by_hand),
    "fraud": (fraud, fraud.Fraud(), fraud.by_hand),
    "fraud_quickly": (fraud, fraud.Fraud(), fraud.quickly_by_hand),
    "page_views": (page_views, page_views.PageViews(), page_views.by_hand),
    "page_views_quickly": (page_views, page_views.PageViews(), page_views.quickly_by_hand),
    "key_counter": (key_counter, key_counter.KeyCounter(), key_counter.by_hand),
    "outliers": (outliers, outliers.Outliers(), outliers.by_hand),
    "smart_home": (smart_home, smart_home.SmartHome(), smart_home.by_hand),
}
each_job = pytest.mark.parametrize(
    ("module", "program", "job"),
    [
        pytest.param(*job, id=name, marks=[] if name in ("fraud_quickly", "key_counter") else pytest.mark.slow)
        for name, job in JOBS.items()
    ],
)
Job = Callable[[SparkSession, Path], dict[str, DataFrame]]


def events_of(folder: Path, streams: list[tight.InputStream]) -> dict[str, list[tight.Event]]:
    found = {}
    for stream in streams:
        (kind,) = stream.tags.kinds
        found[stream.name] = [kind(**row) for row in pq.read_table(folder / f"{stream.name}.parquet").to_pylist()]
    return found


def differences(
    spark: SparkSession, program: tight.ForkJoin, job: Job, folder: Path, streams: list[tight.InputStream]
) -> dict[tuple[Any, ...], int]:
    """The rows of which the job has more than the program, or less."""
    found: Counter[tuple[Any, ...]] = Counter()
    for name, rows in job(spark, folder).items():
        kind = next(kind for kind in program.gives if kind.name == name)
        assert tuple(rows.columns) == kind.names
        found.update((name, *row) for row in rows.collect())
    found.subtract((event.kind.name, *event[1:]) for event in program.run(events_of(folder, streams)))
    return {row: count for row, count in found.items() if count}


@each_job
def test_by_hand_gives_what_the_program_gives(
    spark: SparkSession, module: ModuleType, program: tight.ForkJoin, job: Job, tmp_path: Path
) -> None:
    module.make(tmp_path, streams=3, events=6_001, every=150, seed=7)

    assert differences(spark, program, job, tmp_path, module.streams(3, 150)) == {}


@each_job
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))])
def test_by_hand_gives_what_the_program_gives_where_many_times_are_equal(
    spark: SparkSession, module: ModuleType, program: tight.ForkJoin, job: Job, seed: int, tmp_path: Path
) -> None:
    rng, streams = random.Random(seed), module.streams(2, 1)
    for number, stream in enumerate(streams):
        (kind,) = stream.tags.kinds
        # Updates of one address at one time have no order that a query could see; and one stream may be empty.
        rows = [] if number == seed else [some_row(rng, stream) for _ in range(20)]
        distinct = {tuple(row[name] for name in ("time", "user") if name in row): row for row in rows}
        rows = list(distinct.values()) if kind.name == "UpdateAddress" else rows
        table = pa.Table.from_pylist(rows, pa.schema({name: pa.int64() for name in kind.names}))
        pq.write_table(table.sort_by("time"), tmp_path / f"{stream.name}.parquet")

    assert differences(spark, program, job, tmp_path, streams) == {}


def some_row(rng: random.Random, stream: tight.InputStream) -> dict[str, int]:
    part = rng.choice(stream.tags.parts)
    row = {name: rng.choice([0, 1, 2, 1000, 2001, 3999]) for name in part.kind.names}
    row |= {name: rng.choice(sorted(values)) for name, values in part.fields if isinstance(values, frozenset)}
    return row | {"time": rng.randint(0, 8)}
