"""The Yahoo streaming benchmark: what its jobs find, against plain Python; and the example as a user starts it."""

from __future__ import annotations

import json
import re
import secrets
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from load_example import load_example
from pyspark.sql import DataFrame, SparkSession

EXAMPLE = Path(__file__).parents[2] / "examples" / "yahoo.py"
yahoo: Any = load_example("yahoo")
kafka_broker: Any = load_example("kafka_broker")
redis_server: Any = load_example("redis_server")
START, PER_SECOND, EVENTS = 1_000, 50, 2_000


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    numbered = spark.range(0, EVENTS, 1, 3).withColumnRenamed("id", "value")
    return yahoo.as_json(numbered, start_ms=START, per_second=PER_SECOND).cache()


def viewed(texts: list[str], *, bug_from: float = float("inf")) -> Counter[tuple[str, str, int]]:
    """Parsed, filtered and joined, one by one."""
    campaign_of = dict(yahoo.ads())
    found: Counter[tuple[str, str, int]] = Counter()
    for event in map(json.loads, texts):
        if event["event_type"] == "view":
            campaign, at = campaign_of[event["ad_id"]], int(event["event_time"])
            wrong = campaign == "campaign-007" and at >= bug_from
            found["campaign-008" if wrong else campaign, event["ad_id"], at] += 1
    return found


@pytest.mark.parametrize(("tasks", "bug_from"), [(1, None), (2, None), (3, START + 20_000)])
def test_the_views_are_those_that_plain_python_finds(
    spark: SparkSession, events: DataFrame, tasks: int, bug_from: int | None
) -> None:
    campaigns = spark.createDataFrame(yahoo.ads(), "ad_id string, campaign_id string")
    rows = yahoo.views(events, campaigns, tasks=tasks, bug_from=bug_from).collect()
    texts = [row["value"] for row in events.collect()]
    wanted = viewed(texts, bug_from=float("inf") if bug_from is None else bug_from)
    assert Counter(map(tuple, rows)) == wanted
    assert 0.25 * EVENTS < wanted.total() < 0.42 * EVENTS  # about a third, as in the paper
    if bug_from is not None:
        assert wanted != viewed(texts)


def test_the_counts_are_those_of_ten_seconds(spark: SparkSession) -> None:
    rows = [("c1", "a", 0), ("c1", "a", 9_999), ("c1", "b", 10_000), ("c2", "a", 5)]
    frame = spark.createDataFrame(rows, "campaign_id string, ad_id string, event_time long")
    found = {(row["campaign_id"], row["window"]): row["views"] for row in yahoo.counts(frame).collect()}
    assert found == {("c1", 0): 2, ("c1", 10_000): 1, ("c2", 0): 1}


@pytest.mark.parametrize("kind", ["in memory", "in redis"])
def test_a_micro_batch_that_is_written_twice_counts_once(kind: str) -> None:
    def write(store: Any) -> None:
        for batch, views in ((0, 3), (0, 3), (1, 4), (2, 100)):
            store.put("one task", batch, [{"campaign_id": "c", "window": 0, "views": views}])
        store.put("one task", 2, [{"campaign_id": "c", "window": 10_000, "views": 1}])
        assert store.total("one task", 2) == {("c", 0): 7}
        assert store.total("several", 2) == {}
        assert sorted(store.campaigns()) == sorted(yahoo.ads())

    if kind == "in memory":
        write(yahoo.InMemory())
        return
    why = redis_server.missing()
    if why is not None:
        pytest.skip(why)
    password = secrets.token_hex(8)
    with redis_server.running(password=password) as port:
        write(yahoo.InRedis(port, password))


def started(*options: str) -> SimpleNamespace:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), "--per-second", "900", "--seconds", "90", *options],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    return SimpleNamespace(code=done.returncode, text=done.stdout + done.stderr)


@pytest.mark.slow
def test_a_bug_that_is_switched_on_is_told_within_two_micro_batches() -> None:
    done = started("--bug-after", "6")
    assert done.code == 1, done.text
    told = re.search(
        r"micro-batch (\d+): STUCK: row\(campaign_id='campaign-007', .* of the left has not come", done.text
    )
    assert told is not None, done.text
    assert "what waits on the right is row(campaign_id='campaign-008'" in done.text
    assert 6 < int(told.group(1)) <= 6 + 2  # events of a second are a micro-batch: the bug begins in the sixth
    assert "LEFT_OVER" in done.text


@pytest.mark.slow
def test_versions_that_agree_are_not_accused() -> None:
    done = started("--bug-after", "0", "--seconds", "15")
    assert done.code == 0, done.text
    assert "HOLDS" in done.text
    assert "; 0 of " in done.text


@pytest.mark.slow
@pytest.mark.parametrize("bug_after", ["0", "8"])
def test_the_same_on_kafka_and_redis(bug_after: str) -> None:
    why = kafka_broker.missing() or redis_server.missing()
    if why is not None:
        pytest.skip(why)
    done = started("--kafka", "--redis", "--bug-after", bug_after, "--seconds", "30")
    if done.code == 2 and "This cannot be run here" in done.text:
        pytest.skip(done.text)
    if bug_after == "0":
        assert done.code == 0, done.text
        assert "HOLDS" in done.text
    else:
        assert done.code == 1, done.text
        assert "has not come on the" in done.text
    assert "; 0 of 0 counts" not in done.text
