"""The examples of watch on real Spark: from tables and from streams, they give what the plain loops give."""

from __future__ import annotations

from pathlib import Path

import pytest
from load_example import load_example
from pyspark.sql import SparkSession


def test_a_culture_grows_as_long_as_the_plain_loop_says(spark: SparkSession):
    example = load_example("measurements")
    rows = example.make(days=4)

    answers = example.watched(example.frame(spark, rows)).orderBy("culture", "hour", "is_count").collect()

    assert [(row.culture, row.hour, row.grows) for row in answers] == list(example.by_hand(rows))


@pytest.mark.slow
def test_heart_rates_survive_late_readings_and_a_restart(spark: SparkSession, tmp_path: Path):
    example = load_example("patients")
    rows = example.make()

    answers = example.answers(spark, example.as_they_come(rows, files=3), tmp_path)

    assert {row.calm_status for row in answers} == {"defined"}
    assert [(row.patient, row.time, row.kind, row.highest, row.calm) for row in answers] == example.by_hand(rows)


def test_a_share_falls_as_far_on_spark_as_in_the_plain_loop(spark: SparkSession):
    example = load_example("ticks")
    rows = example.make(ticks=30)

    answers = example.watched(example.frame(spark, rows)).orderBy("symbol", "day", "second").collect()

    assert [(row.symbol, row.day, row.second, row.fallen, row.calm) for row in answers] == example.by_hand(rows)


def test_alarms_are_the_rows_at_which_the_budget_is_burnt(spark: SparkSession):
    example = load_example("service_levels")
    rows = example.make(requests=250)

    alarms = example.watched(example.frame(spark, rows), "alarms").orderBy("service", "second").collect()

    burnt = [(service, second) for service, second, is_fine in example.by_hand(rows) if not is_fine]
    assert [(row.service, row.second) for row in alarms] == burnt
    assert burnt


def test_changes_are_the_rows_at_which_the_answer_is_another(spark: SparkSession):
    example = load_example("service_levels")
    rows = example.make(requests=250)

    changes = example.watched(example.frame(spark, rows), "changes").orderBy("service", "second").collect()

    expected = example.by_hand(rows)
    before = [(None, 0, None), *expected[:-1]]
    assert [tuple(row)[:3] for row in changes] == [
        now for now, last in zip(expected, before, strict=True) if (now[0], now[2]) != (last[0], last[2])
    ]


@pytest.mark.slow
def test_the_progress_of_a_job_is_watched(spark: SparkSession, tmp_path: Path):
    example = load_example("job_progress")

    items, metrics = example.run(spark, [4, 4, 0, 0, 0], 99, tmp_path)

    answers = list(example.tight.watch(example.QUERIES, items))
    assert [batch["rows"] for _, batch in items] == [4, 0, 0, 0]
    assert answers == example.by_hand(items)
    assert not answers[-1]["is_fed"]
    assert metrics.totals() == {"is_cool": {"answers": 8, "undefined": 0, "conflict": 0, "late": 0, "false": 0}}
