"""What a job still keeps in its state at the end, row by row."""

from __future__ import annotations

from datetime import datetime, timedelta

from pyspark.sql import functions as sf

import streamtight as tight

Beat = tight.Kind("Beat", at=datetime, heart=str)
Alarm = tight.Kind("Alarm", rung=datetime, heart=str)
NOON = datetime(2026, 1, 1, 12)


def beat(second):
    return Beat(NOON + timedelta(seconds=second), "h")


SCHEDULE = tight.Schedule.of([beat(1), beat(2)])


def per_minute(beats):
    return beats.withWatermark("at", "10 seconds").groupBy(sf.window("at", "1 minute")).count()


def test_a_window_that_did_not_close_is_shown(spark):
    run = tight.run(per_minute, tight.Schedule.of([beat(1), beat(200)], cuts=[1]), takes=Beat, show_open=True)

    [window] = run.open
    assert (window.kind.name, window.key.window.start, window.value.count) == (
        "stateStoreSave",
        NOON + timedelta(minutes=3),
        1,
    )


def test_nothing_is_open_after_a_flush(spark):
    schedule = tight.Schedule.of([beat(1), beat(200)], cuts=[1])

    run = tight.run(per_minute, schedule, takes=Beat, show_open=True, flush=True)

    assert run.open == ()
    assert run.open_rows == 0


def test_rows_that_wait_for_a_match_are_shown_by_side(spark):
    def joined(beats, alarms):
        alarms = alarms.withColumnRenamed("heart", "other").withWatermark("rung", "10 seconds")
        near = sf.expr("heart = other AND rung BETWEEN at AND at + INTERVAL 1 MINUTE")
        return beats.withWatermark("at", "10 seconds").join(alarms, near)

    schedule = tight.Schedule.of([beat(1), Alarm(NOON, "h")])

    run = tight.run(joined, schedule, takes={"beats": Beat, "alarms": Alarm}, show_open=True)

    assert sorted(event.kind.name for event in run.open) == ["symmetricHashJoin_left", "symmetricHashJoin_right"]


def test_a_job_without_state_keeps_nothing(spark):
    assert tight.run(lambda beats: beats, tight.Schedule.of([beat(1)]), takes=Beat, show_open=True).open == ()


def test_what_is_open_is_not_read_unless_asked(spark):
    assert tight.run(per_minute, tight.Schedule.of([beat(1)]), takes=Beat).open is None


def test_rows_that_were_seen_are_shown_of_a_job_that_drops_duplicates(spark):
    run = tight.run(lambda beats: beats.dropDuplicates(["heart"]), SCHEDULE, takes=Beat, show_open=True)

    assert [event.key.heart for event in run.open] == ["h"]


def test_a_key_called_kind_is_shown_under_another_name(spark):
    def counted(rows):
        return rows.groupBy("kind").count().withColumnRenamed("kind", "which")

    run = tight.run(counted, tight.Schedule.of([beat(1)]), takes=[Beat, Alarm], mode="update", show_open=True)

    assert [event.key.kind_ for event in run.open] == ["Beat"]
