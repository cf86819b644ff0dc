"""What running queries tell on a board: enough for a page, whatever happens to the board."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import streamtight as tight
from streamtight.errors import QueryError
from streamtight.source.board import Board, Watched

SCHEMA = "k long, v long"


class Side:
    """A stream of files, one a micro-batch."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder, self.count = spark, folder, 0
        folder.mkdir()

    def put(self, *rows: tuple[int, int]) -> None:
        self.count += 1
        path = self.folder / f"{self.count:04}.json"
        path.write_text("\n".join(json.dumps({"k": k, "v": v}) for k, v in rows))
        os.utime(path, (self.count, self.count))

    def stream(self) -> DataFrame:
        reader = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        return reader.json(str(self.folder))


def seen(board: Path, is_there: Callable[[Watched], bool]) -> Watched:
    """The one job on the board, as soon as this is true of it."""
    looked = Board(board)
    until = time.monotonic() + 20
    while time.monotonic() < until:
        looked.look()
        if looked.jobs and is_there(looked.jobs[0]):
            break
        time.sleep(0.05)
    assert len(looked.jobs) == 1
    assert is_there(looked.jobs[0]), looked.jobs[0]
    return looked.jobs[0]


def test_a_live_comparison_is_on_its_board_and_goes_on_there_after_a_restart(spark, tmp_path):
    left, right = Side(spark, tmp_path / "left"), Side(spark, tmp_path / "right")
    board = tmp_path / "board"

    def start() -> tight.LiveComparison:
        return tight.compare_live(
            left.stream(), right.stream(), upto=tight.same("k"), checkpoint=tmp_path / "checkpoint", name="two sides",
            board=board, tasks=1,
        )  # fmt: skip

    left.put((1, 1), (1, 2), (2, 1))
    right.put((1, 1))
    with start() as live:
        live.query.processAllAvailable()
        job = seen(board, lambda one: one.latest.get("rows") == {"left": 3, "right": 1})
        assert (job.name, job.kind, job.verdict, job.ended) == ("two sides", "compare_live", "UNDECIDED", None)
        assert "up to same('k')" in job.asks
        assert job.latest["unmatched"] == {"left": 2, "right": 0}
        assert job.latest["seconds"] > 0
        assert job.finding is None
        assert "2 unmatched on the left" in job.reason
    assert seen(board, lambda one: one.ended is not None).ended == ""

    right.put((1, 9))
    with start() as live:
        live.query.processAllAvailable()
        verdict = live.verdict()
        job = seen(board, lambda one: one.finding is not None and one.verdict == "FAILS")
        assert job.starts == 2
        assert job.ended is None
        assert job.latest["rows"] == {"left": 3, "right": 2}
        assert job.alarm_counts == {"DIVERGED": 1}
        assert job.finding.finding == "DIVERGED"
        assert job.finding.story == verdict.counterexample.story(code=False)
        assert job.finding.has_picture
    assert seen(board, lambda one: one.ended is not None).alarm_counts == {"DIVERGED": 1}


@pytest.mark.slow
def test_a_board_that_cannot_be_written_stops_nothing_and_is_told_once(spark, tmp_path, caplog):
    left, right = Side(spark, tmp_path / "left"), Side(spark, tmp_path / "right")
    for side in (left, right):
        side.put((1, 1))
        side.put((1, 2))
    board = tmp_path / "board"
    board.write_text("a file")

    live = tight.compare_live(
        left.stream(), right.stream(), upto=tight.same("k"), checkpoint=tmp_path / "c", board=board, tasks=1, every=None
    )
    live.query.awaitTermination(60)
    live.stop()

    assert live.verdict().holds
    assert [record.getMessage().split(" in ")[0] for record in caplog.records if "journal" in record.name] == [
        f"the journal of '{tmp_path / 'c'}'"
    ]


def test_a_watched_formula_is_on_its_board_with_what_breaks_it(spark, tmp_path):
    side = Side(spark, tmp_path / "rows")
    small = tight.all_records("output", lambda row: row.v < 5).named("small")
    side.put((1, 1), (2, 2))

    watched = tight.watch(tight.always(small), side.stream(), checkpoint=tmp_path / "c", board=tmp_path / "board")
    try:
        watched.query.processAllAvailable()
        job = seen(tmp_path / "board", lambda one: one.verdict is not None)
        assert (job.name, job.kind, job.verdict) == (str(tmp_path / "c"), "watch", "UNDECIDED")
        assert job.latest["rows"] == {"rows": 2}
        side.put((3, 9))
        watched.query.processAllAvailable()
        job = seen(tmp_path / "board", lambda one: one.finding is not None and bool(one.alarm_counts))
        assert job.verdict == "FAILS"
        assert job.alarm_counts == {"VIOLATED": 1}
        assert job.finding.story == watched.verdict().counterexample.story(code=False)
    finally:
        watched.stop()
    assert seen(tmp_path / "board", lambda one: one.ended is not None).ended == ""


def test_a_formula_whose_test_raises_is_told_to_have_failed_and_why(spark, tmp_path):
    side = Side(spark, tmp_path / "rows")
    broken = tight.all_records("output", lambda row: row.v / 0 > 1).named("broken")
    side.put((1, 1))

    tight.watch(tight.always(broken), side.stream(), checkpoint=tmp_path / "c", board=tmp_path / "board")

    job = seen(tmp_path / "board", lambda one: one.ended is not None)
    assert "division by zero" in job.ended


def test_the_values_of_watched_queries_are_on_the_board(spark, tmp_path, monkeypatch):
    monkeypatch.setenv("STREAMTIGHT_BOARD", str(tmp_path / "board"))
    side = Side(spark, tmp_path / "rows")
    side.put((1, 4), (2, 8), (3, 3))
    cur = tight.query.cur
    asked = {"total": tight.query.total(cur.v), "low": tight.query.current(cur.v) < 5}
    metrics = tight.WatchMetrics()
    spark.streams.addListener(metrics)
    try:
        answers = tight.watch(asked, side.stream(), order_by="k")
        query = answers.writeStream.queryName("totals").format("noop").option("checkpointLocation", str(tmp_path / "c"))
        running = query.start()
        running.processAllAvailable()
        job = seen(tmp_path / "board", lambda one: "values" in one.latest)
        assert (job.name, job.kind, job.asks, job.verdict) == ("totals", "watch", "total, low", None)
        assert job.latest["values"] == {
            "total": {"min": 4, "avg": pytest.approx((4 + 12 + 15) / 3, rel=1e-6), "max": 15},
            "low": {"true": pytest.approx(2 / 3, rel=1e-6)},
        }
        assert job.latest["counts"]["low"]["false"] == 1
        assert metrics.totals()["total"] == {"answers": 3, "undefined": 0, "conflict": 0, "late": 0}
        running.stop()
        assert seen(tmp_path / "board", lambda one: one.ended is not None).ended == ""
    finally:
        spark.streams.removeListener(metrics)


def test_a_board_for_a_query_is_refused_with_where_it_belongs():
    with pytest.raises(QueryError, match=r"WatchMetrics\(board="):
        tight.watch("count()", [("v", 1)], board="board")
