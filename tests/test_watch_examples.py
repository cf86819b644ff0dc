"""The examples of watch: their queries, without Spark, say what the plain loops say."""

from __future__ import annotations

import importlib.util
import math
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import streamtight as tight

EXAMPLES = Path(__file__).parents[1] / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


measurements, patients, ticks, service_levels, job_progress = map(
    load, ("measurements", "patients", "ticks", "service_levels", "job_progress")
)


def after_each(query: tight.query.Query, items: list[tuple[str, Any]]) -> list[Any]:
    """The answers after each item, without the one before the first."""
    return query.run(items)[1:]


def test_queries_of_examples_are_never_a_conflict():
    queries = [
        *(measurements.limit, measurements.grows, patients.highest, patients.calm, ticks.fallen, ticks.calm),
        *(service_levels.within_budget, job_progress.is_quick, job_progress.is_fed),
    ]

    assert [query.ambiguity() for query in queries] == [None] * len(queries)


# -- measurements ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("culture", ["A", "B"])
def test_a_culture_grows_as_long_as_the_plain_loop_says(culture, seed):
    rows = [row for row in measurements.make(seed=seed) if row[0] == culture]

    found = after_each(measurements.grows, [(kind, cells) for _, _, kind, cells in rows])

    assert found == [grows for _, _, grows in measurements.by_hand(rows)]


def test_one_culture_grows_and_the_other_does_not():
    last = {culture: grows for culture, _, grows in measurements.by_hand(measurements.make())}

    assert last == {"A": True, "B": False}


def test_there_is_no_limit_before_two_days_have_ended():
    word = [("counted", 1), ("midnight", 0), ("counted", 3), ("midnight", 0), ("counted", 9)]

    found = measurements.limit.run(word)

    assert found == [*[tight.UNDEFINED] * 4, *[pytest.approx(2 + 2 * 1)] * 2]


# -- patients ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("patient", ["Ann", "Bob"])
def test_heart_rates_are_those_of_the_plain_loop(patient, seed):
    rows = [row for row in patients.make(seed=seed) if row[0] == patient]
    items = [(kind, {"rate": rate}) for _, _, kind, rate in rows]
    tags = ("reading", "medication", "midnight")

    highest, calm = (query.run(items, tags)[1:] for query in (patients.highest, patients.calm))

    assert list(zip(highest, calm, strict=True)) == [each[3:] for each in patients.by_hand(rows)]


def test_readings_come_late_but_within_the_time_that_is_waited():
    rows = patients.make()
    files = patients.as_they_come(rows)
    arrived = [row for file in files for row in file][: len(rows)]

    newest, most = arrived[0][1], timedelta(0)
    for _, time, _, _ in arrived:
        newest = max(newest, time)
        most = max(most, newest - time)

    assert sorted(arrived) == sorted(rows)
    assert timedelta(0) < most <= timedelta(minutes=15)


# -- ticks -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_a_share_falls_as_far_in_pandas_and_arrow_as_in_the_plain_loop(seed):
    rows = ticks.make(seed=seed)
    prices = pd.DataFrame(rows, columns=["symbol", "day", "second", "price"])
    columns = ["symbol", "day", "second", "fallen", "calm"]

    of_pandas = ticks.watched(prices)[columns]
    of_arrow = ticks.watched(pa.Table.from_pandas(prices)).select(columns)

    expected = ticks.by_hand(rows)
    assert list(of_pandas.itertuples(index=False, name=None)) == expected
    assert [tuple(row.values()) for row in of_arrow.to_pylist()] == expected


def test_rows_of_a_table_may_come_in_any_order():
    rows = ticks.make(ticks=50)
    prices = pd.DataFrame(rows, columns=["symbol", "day", "second", "price"])

    shuffled = ticks.watched(prices.sample(frac=1, random_state=0))

    pd.testing.assert_frame_equal(shuffled, ticks.watched(prices))


# -- service levels ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("service", ["orders", "search"])
def test_a_budget_lasts_as_long_as_the_plain_loop_says(service, seed):
    rows = [row for row in service_levels.make(seed=seed) if row[0] == service]
    tags = ["month" if kind == "month" else "failed" if status >= 500 else "served" for _, _, kind, status in rows]

    found = after_each(service_levels.within_budget, [(tag, 0) for tag in tags])

    assert found == [is_fine for _, _, is_fine in service_levels.by_hand(rows)]


def test_a_new_month_has_a_new_budget():
    burnt = [("served", 0)] * 98 + [("failed", 0)] * 2

    found = after_each(service_levels.within_budget, [*burnt, ("month", 0)])

    assert found[-2:] == [False, True]


# -- progress ----------------------------------------------------------------------------------------------------------


def batch(rows: int, seconds: float) -> tuple[str, dict[str, Any]]:
    return "batch", {"rows": rows, "seconds": seconds}


def test_a_batch_that_takes_much_longer_is_told():
    items = [batch(5, seconds) for seconds in (1.0, 1.1, 0.9, 1.0, 1.1, 1.0, 3.0, 1.0)]

    found = list(tight.watch(job_progress.QUERIES, items))

    assert [answer["is_quick"] for answer in found] == [True] * 6 + [False, True]
    assert found == job_progress.by_hand(items)


def test_three_batches_without_a_row_are_told_for_ever():
    items = [batch(rows, 1.0) for rows in (5, 0, 0, 5, 0, 0, 0, 5)]

    found = list(tight.watch(job_progress.QUERIES, items))

    assert [answer["is_fed"] for answer in found] == [True] * 6 + [False] * 2
    assert found == job_progress.by_hand(items)


def test_what_is_usual_is_what_statistics_say():
    items = [batch(1, seconds) for seconds in (1.0, 2.0, 4.0, 8.0)]

    found = job_progress.usual.run(items)

    assert math.isclose(found[-1], 3.75 + 3 * 2.680951323690902)
