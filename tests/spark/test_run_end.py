"""The end of a stream: watermarks, late rows, what is still open, the idle batch, the flush."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import streamtight as tight
from streamtight import Cause, Kind, Restart, Schedule
from streamtight.errors import JobError
from streamtight.spark.engine import Output

pytestmark = pytest.mark.usefixtures("spark")

T, U = Kind("T", k=str, t=datetime), Kind("U", k2=str, t2=datetime)
START = datetime(2024, 1, 1)
END_OF_TIME = datetime(9999, 12, 31, 23, 59, 59)


def at(second: int) -> datetime:
    return START + timedelta(seconds=second)


def in_windows(rows: DataFrame) -> DataFrame:
    counted = rows.withWatermark("t", "5 seconds").groupBy(F.window("t", "10 seconds"), "k").count()
    return counted.select("window.start", "k", "count")


def schedule(*batches: list[tuple[str, int]], restarts: tuple[Restart, ...] = ()) -> Schedule:
    return Schedule(tuple((tuple(T(k, at(second)) for k, second in batch),) for batch in batches), restarts=restarts)


def rows_of(step: tight.Step) -> list[tuple[Any, ...]]:
    """The rows of a step, times as seconds from the start."""
    rows = (event[1:] for partition in step.output for event in partition)
    return sorted(
        (tuple((v - START).seconds if isinstance(v, datetime) else v for v in row) for row in rows),
        key=repr,
    )


def causes_of(run: tight.Run) -> list[str]:
    return [step.cause.value for step in run.steps]


# -- the watermark ---------------------------------------------------------------------------------------------------


def test_steps_tell_the_watermark() -> None:
    run = tight.run(in_windows, schedule([("a", 1)], [("a", 15)], [("a", 31)], [("a", 7)]), takes=T)

    assert [step.watermark for step in run.steps] == [datetime(1970, 1, 1), at(-4), at(10), at(26)]


def test_a_job_without_a_watermark_has_none() -> None:
    run = tight.run(lambda rows: rows, schedule([("a", 1)]), takes=T)

    assert [step.watermark for step in run.steps] == [None]


def test_late_rows_are_counted() -> None:
    run = tight.run(in_windows, schedule([("a", 31)], [("a", 31)], [("late", 1), ("a", 31)], [("a", 31)]), takes=T)

    assert [step.late_rows for step in run.steps] == [0, 0, 1, 0]
    assert "late" not in {event.k for event in run.events}


def test_state_rows_are_counted() -> None:
    run = tight.run(in_windows, schedule([("a", 1), ("b", 2)], [("a", 3)], [("a", 31)], [("a", 31)]), takes=T)

    assert [step.state_rows for step in run.steps] == [2, 2, 3, 1]


# -- the idle batch --------------------------------------------------------------------------------------------------


def test_spark_closes_what_it_can_in_a_batch_without_input() -> None:
    run = tight.run(in_windows, schedule([("a", 1), ("b", 2)], [("a", 31)]), takes=T)

    assert causes_of(run) == ["data", "data", "idle"]
    assert [rows_of(step) for step in run.steps] == [[], [], [(0, "a", 1), (0, "b", 1)]]
    assert (run.steps[2].batch, run.steps[2].input) == (2, ((),))


@pytest.mark.slow
def test_the_idle_batch_comes_every_time() -> None:
    question = schedule([("a", 1)], [("a", 21)], [("a", 41)])

    answers = {
        tuple((step.batch, step.cause, step.output, step.watermark, step.state_rows) for step in run.steps)
        for run in (tight.run(in_windows, question, takes=T) for _ in range(4))
    }

    assert len(answers) == 1


def test_no_idle_batch_comes_before_the_end() -> None:
    run = tight.run(
        in_windows, schedule([("a", 1)], [("a", 21)], [("a", 41)], restarts=(Restart(0), Restart(1))), takes=T
    )

    assert causes_of(run) == ["data", "data", "data", "idle"]


def test_after_a_restart_spark_waits_for_data_before_it_closes_anything() -> None:
    """It runs a batch without input only after one with input, so that this restart changes what comes out."""
    run = tight.run(in_windows, schedule([("a", 1)], [("a", 31)], restarts=(Restart(1),)), takes=T)

    assert causes_of(run) == ["data", "data"]
    assert run.open_rows == 2


def test_after_a_replay_of_the_last_batch_comes_the_idle_one() -> None:
    run = tight.run(in_windows, schedule([("a", 1)], [("a", 31)], restarts=(Restart(1, replay=True),)), takes=T)

    assert causes_of(run) == ["data", "data", "replay", "idle"]
    assert rows_of(run.steps[3]) == [(0, "a", 1)]


# -- the flush -------------------------------------------------------------------------------------------------------


def test_a_window_stays_open_without_a_flush() -> None:
    run = tight.run(in_windows, schedule([("a", 1)], [("a", 2)]), takes=T)

    assert run.events == ()
    assert run.open_rows == 1


def test_a_flush_closes_every_window() -> None:
    run = tight.run(in_windows, schedule([("a", 1)], [("a", 2), ("b", 12)]), takes=T, flush=True)

    last = run.steps[-1]
    assert (last.cause, last.input, last.watermark) == (Cause.FLUSH, ((),), END_OF_TIME)
    assert rows_of(last) == [(0, "a", 2), (10, "b", 1)]
    assert run.open_rows == 0


def test_a_flush_comes_after_the_idle_batch() -> None:
    run = tight.run(in_windows, schedule([("a", 1)], [("b", 31)]), takes=T, flush=True)

    assert [(step.batch, step.cause.value) for step in run.steps] == [
        (0, "data"),
        (1, "data"),
        (2, "idle"),
        (3, "flush"),
    ]
    assert [rows_of(step) for step in run.steps] == [[], [], [(0, "a", 1)], [(30, "b", 1)]]


@pytest.mark.parametrize("replay", [False, True])
def test_a_flush_after_a_restart_in_the_last_batch_closes_every_window(replay: bool) -> None:
    run = tight.run(in_windows, schedule([("a", 1)], [("a", 2)], restarts=(Restart(1, replay),)), takes=T, flush=True)

    assert causes_of(run) == ["data", "data", *["replay", "idle"] * replay, "flush"]
    assert rows_of(run.steps[-1]) == [(0, "a", 2)]


def built_by(job: Callable[[DataFrame], DataFrame], question: Schedule) -> tuple[tight.Run, int]:
    """A flushed run, and how often the job was built for it: once for every start."""
    built = []

    def counted(rows: DataFrame) -> DataFrame:
        built.append(rows)
        return job(rows)

    return tight.run(counted, question, takes=T, flush=True), len(built)


def test_a_flush_is_not_worth_a_restart_if_there_is_no_watermark() -> None:
    run, builds = built_by(lambda rows: rows.select("k"), schedule([("a", 1)]))

    assert [(step.cause.value, rows_of(step)) for step in run.steps] == [("data", [("a",)])]
    assert builds == 1


def test_restarts_and_replays_of_a_job_without_a_watermark_come_without_a_flush() -> None:
    restarts = (Restart(0), Restart(1, replay=True))

    run, builds = built_by(lambda rows: rows.select("k"), schedule([("a", 1)], [("b", 2)], restarts=restarts))

    assert causes_of(run) == ["data", "data", "replay"]
    assert builds == 3


@pytest.mark.parametrize("mode", ["update", "complete"])
def test_a_flush_of_a_count_without_a_watermark_changes_nothing(mode: str) -> None:
    def count(rows: DataFrame) -> DataFrame:
        return rows.groupBy().count()

    question = schedule([("a", 1)])

    run = tight.run(count, question, takes=T, mode=mode, flush=True)

    assert run.batches == tight.run(count, question, takes=T, mode=mode).batches
    assert run.open_rows == 1


def test_a_watermark_is_flushed_though_the_first_batches_have_no_rows() -> None:
    run, builds = built_by(in_windows, schedule([], [], [("a", 1)]))

    assert causes_of(run)[-1] == "flush"
    assert rows_of(run.steps[-1]) == [(0, "a", 1)]
    assert builds == 2


def test_a_watermark_is_flushed_though_no_row_reaches_it() -> None:
    for job, question in [
        (in_windows, schedule([], [])),
        (lambda rows: in_windows(rows.filter("false")), schedule([("a", 1)])),
        (lambda rows: in_windows(rows).limit(0), schedule([("a", 1)])),
    ]:
        run, _ = built_by(job, question)

        assert (run.steps[-1].cause, run.steps[-1].watermark) == (Cause.FLUSH, END_OF_TIME)


def test_a_watermark_of_an_input_without_rows_is_flushed() -> None:
    def both(left: DataFrame, right: DataFrame) -> DataFrame:
        once = left.withWatermark("t", "5 seconds").dropDuplicatesWithinWatermark(["k"]).select("k")
        return once.union(right.select("k2"))

    run = tight.run(both, Schedule.of([U("a", at(1))]), takes={"left": T, "right": U}, flush=True)

    assert causes_of(run) == ["data", "flush"]


def test_a_flush_comes_if_spark_did_not_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamtight.spark.jvm.Output", lambda batch, rows, report: Output(batch, rows))

    run, builds = built_by(lambda rows: rows.select("k"), schedule([("a", 1)]))

    assert causes_of(run) == ["data", "flush"]
    assert builds == 2


def test_a_flush_makes_no_row_up() -> None:
    """Every row that goes in is counted once, and nothing else."""
    question = schedule([("a", 1), ("b", 5)], [("a", 12)], [("c", 40), ("a", 41)])

    run = tight.run(in_windows, question, takes=T, flush=True)

    assert sum(event.count for event in run.events) == 5
    assert {event.k for event in run.events} == {"a", "b", "c"}
    assert max(event.start for event in run.events) == at(40)


@pytest.mark.slow
def test_a_flush_closes_windows_of_windows() -> None:
    def twice(rows: DataFrame) -> DataFrame:
        first = rows.withWatermark("t", "5 seconds").groupBy(F.window("t", "10 seconds"), "k").count()
        second = first.groupBy(F.window(F.window_time("window"), "30 seconds")).agg(F.sum("count").alias("n"))
        return second.select("window.start", "n")

    run = tight.run(twice, schedule([("a", 1), ("b", 2)], [("a", 15)], [("a", 31)]), takes=T, flush=True)

    assert rows_of(run.steps[-1]) == [(0, 3), (30, 1)]
    assert run.open_rows == 0


@pytest.mark.slow
def test_a_flush_closes_sessions() -> None:
    def sessions(rows: DataFrame) -> DataFrame:
        kept = rows.withWatermark("t", "5 seconds").groupBy(F.session_window("t", "10 seconds"), "k").count()
        return kept.select("session_window.start", "k", "count")

    question = schedule([("a", 1), ("b", 2)], [("a", 8)])

    run = tight.run(sessions, question, takes=T, flush=True)

    assert (tight.run(sessions, question, takes=T).open_rows, run.open_rows) == (2, 0)
    assert rows_of(run.steps[-1]) == [(1, "a", 2), (2, "b", 1)]


def test_a_flush_lets_go_of_what_was_seen() -> None:
    def once(rows: DataFrame) -> DataFrame:
        return rows.withWatermark("t", "5 seconds").dropDuplicatesWithinWatermark(["k"]).select("k")

    question = schedule([("a", 1), ("b", 2)], [("a", 3)])

    run = tight.run(once, question, takes=T, flush=True)

    assert tight.run(once, question, takes=T).open_rows == 2
    assert [rows_of(step) for step in run.steps] == [[("a",), ("b",)], [], [], []]
    assert causes_of(run) == ["data", "data", "idle", "flush"]
    assert run.open_rows == 0


def test_a_flush_gives_the_rows_that_found_no_partner() -> None:
    def with_partner(left: DataFrame, right: DataFrame) -> DataFrame:
        close = F.expr("k = k2 AND t2 BETWEEN t AND t + INTERVAL 10 SECONDS")
        late_left, late_right = left.withWatermark("t", "5 seconds"), right.withWatermark("t2", "5 seconds")
        return late_left.join(late_right, close, "left_outer").select("k", "k2")

    question = Schedule.of([T("a", at(1)), T("x", at(2)), U("a", at(3)), T("b", at(15)), U("b", at(40))], cuts=[3])
    takes = {"left": T, "right": U}

    still_open = tight.run(with_partner, question, takes=takes)
    run = tight.run(with_partner, question, takes=takes, flush=True)

    assert [rows_of(step) for step in still_open.steps if step.output != ((),)] == [[("a", "a")]]
    assert still_open.open_rows > 0
    assert rows_of(run.steps[-1]) == [("b", None), ("x", None)]
    assert run.open_rows == 0


@pytest.mark.slow
def test_an_error_in_the_flush_names_its_batch() -> None:
    def picky(rows: DataFrame) -> DataFrame:
        def check(k):
            if k == "b":
                raise ValueError("no b")
            return k

        return in_windows(rows).withColumn("k", F.udf(check)("k"))

    with pytest.raises(JobError, match="no b") as caught:
        tight.run(picky, schedule([("a", 1)], [("b", 31)]), takes=T, flush=True)

    assert caught.value.batch == 3  # after the idle batch, which has the number 2


@pytest.mark.slow
def test_a_job_with_timeouts_by_the_clock_ends_after_a_few_idle_batches() -> None:
    """Spark wants another micro-batch for ever, since time goes on without rows."""

    def counted(key, frames, state):
        import pandas

        if not state.hasTimedOut:
            rows = sum(len(frame) for frame in frames)
            state.update((rows,))
            state.setTimeoutDuration(3_600_000)
            yield pandas.DataFrame({"k": [key[0]], "rows": [rows]})

    def job(rows: DataFrame) -> DataFrame:
        return rows.groupBy("k").applyInPandasWithState(
            counted, "k string, rows long", "rows long", "append", "ProcessingTimeTimeout"
        )

    kind = tight.Kind("Keyed", k=str)

    run = tight.run(job, tight.Schedule.of([kind("a"), kind("a")]), takes=kind)

    assert [step.cause.name for step in run.steps] == ["DATA", "IDLE", "IDLE", "IDLE"]
    assert [event.rows for event in run.events] == [2]
