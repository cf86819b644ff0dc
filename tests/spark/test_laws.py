from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from pyspark.sql import functions as F

import streamtight as tight
from streamtight.errors import TraceError

Item = tight.Kind("Item", key=str, x=int)
Timed = tight.Kind("Timed", at=datetime, x=int)
MIDNIGHT = datetime(2024, 3, 1)


def items(upto=tight.unordered):
    return tight.generated(Item, upto=upto, key=["a", "b"], x=range(4), size=(3, 8))


def timed(upto=tight.ordered):
    minutes = [MIDNIGHT + timedelta(minutes=minute) for minute in range(0, 60, 5)]
    return tight.generated(Timed, upto=upto, at=minutes, x=range(3), size=(4, 8))


def finding(verdicts, law):
    return verdicts[law].counterexample.finding


def test_a_stateless_job_keeps_all_laws(spark):
    def doubled(df):
        return df.selectExpr("key", "2 * x AS x")

    verdicts = tight.laws(doubled, on=items(), runs=6)

    assert list(verdicts) == ["cuts", "partitions", "order", "restarts", "batch"]
    assert all(verdict.holds for verdict in verdicts.values())


@pytest.mark.slow
def test_counts_keep_all_laws_in_complete_and_update_mode(spark):
    def counts(df):
        return df.groupBy("key").count()

    for mode in ("complete", "update"):
        verdicts = tight.laws(counts, on=items(), mode=mode, runs=2)
        assert {law: verdict.outcome.name for law, verdict in verdicts.items()} == dict.fromkeys(verdicts, "HOLDS")


@pytest.mark.slow
def test_the_last_row_depends_on_the_order(spark):
    def last(df):
        return df.groupBy("key").agg(F.last("x").alias("x"))

    verdicts = tight.laws(last, on=items(), mode="complete", only="order", runs=10)

    assert finding(verdicts, "order") == "ORDER_DEPENDENT"
    assert len(verdicts["order"].counterexample.schedule.events) == 2


def test_the_first_rows_of_a_batch_depend_on_its_partitions(spark):
    schedule = tight.Schedule.of([Item("a", 1), Item("b", 2), Item("c", 3)], partitions=2)

    verdicts = tight.laws(lambda df: df.limit(2), on=schedule, only="partitions", promise=tight.unordered)

    assert finding(verdicts, "partitions") == "PARTITION_DEPENDENT"


def test_a_source_in_one_order_asks_nothing_about_partitions_and_order(spark):
    def doubled(df):
        return df.selectExpr("2 * x AS x")

    verdicts = tight.laws(doubled, on=items(upto=tight.ordered), only=["partitions", "order"], runs=4)

    assert verdicts["partitions"].undecided
    assert "no batch had rows in two partitions, since the source promises ordered" in verdicts["partitions"].reason
    assert verdicts["order"].undecided
    assert "no input had another order, since the source promises ordered" in verdicts["order"].reason


def test_an_input_of_one_event_asks_nothing_about_cuts(spark):
    verdicts = tight.laws(lambda df: df, on=[Item("a", 1)], only="cuts", runs=3)

    assert verdicts["cuts"].undecided
    assert "no input was cut" in verdicts["cuts"].reason


@pytest.mark.slow
def test_a_limit_per_batch_depends_on_the_cuts(spark):
    def numbered(df):
        return df.mapInPandas(lambda frames: (f.assign(x=len(f)) for f in frames), "key string, x long")

    verdicts = tight.laws(numbered, on=items(), only="cuts", runs=10, shrink=1)

    assert finding(verdicts, "cuts") == "BATCH_DEPENDENT"


@pytest.mark.slow
def test_a_partition_number_in_the_output_depends_on_the_partitions(spark):
    def where_it_ran(df):
        return df.select("key", F.spark_partition_id().alias("place"))

    assert finding(tight.laws(where_it_ran, on=items(), only="partitions", runs=20, shrink=1), "partitions") == (
        "PARTITION_DEPENDENT"
    )


@pytest.mark.slow
def test_late_rows_are_told_apart_from_other_dependence_on_cuts(spark):
    def hourly(df):
        return df.withWatermark("at", "5 minutes").groupBy(F.window("at", "10 minutes")).agg(F.sum("x").alias("x"))

    verdicts = tight.laws(hourly, on=timed(), only="cuts", runs=10, shrink=2)

    assert finding(verdicts, "cuts") == "DROPPED_LATE"


@pytest.mark.slow
def test_a_window_that_is_open_at_the_end_is_not_lost(spark):
    def windows(df):
        return df.withWatermark("at", "2 hours").groupBy(F.window("at", "10 minutes")).agg(F.sum("x").alias("x"))

    verdicts = tight.laws(windows, on=timed(), only=["cuts", "batch"], runs=4)

    assert verdicts["cuts"].holds
    assert verdicts["batch"].holds
    assert "OPEN_AT_END" in verdicts["batch"].reason


@pytest.mark.slow
def test_rows_that_never_leave_the_state_are_open_at_the_end(spark):
    def windows(df):
        return df.withWatermark("at", "2 hours").groupBy(F.window("at", "10 minutes")).agg(F.sum("x").alias("x"))

    verdicts = tight.laws(windows, on=timed(), only="batch", runs=4, flush=False, shrink=1)

    assert finding(verdicts, "batch") == "OPEN_AT_END"


@pytest.mark.slow
def test_a_job_that_drops_rows_only_as_a_stream_loses_them(spark):
    def job(df):
        return df.where("x != 1") if df.isStreaming else df

    assert finding(tight.laws(job, on=items(), only="batch", runs=6), "batch") == "LOST_IN_STREAM"


def with_a_store(folder, use):
    """A job that uses files as an outside store, which outlives a restart and is empty when a run begins.

    With one restart in the schedule and no other runs, every third start of the query is that restart: the candidate's
    start, its restart, the reference's start, and so on.
    """
    starts = []

    def job(df):
        starts.append(df)
        if len(starts) % 3 != 2:
            for file in folder.iterdir():
                file.unlink()
        return df.mapInPandas(use(str(folder)), "key string, x long")

    return job


def drop_what_was_seen(folder):
    def first_times(frames):
        import pathlib

        for frame in frames:
            files = [pathlib.Path(folder, f"{key}-{x}") for key, x in zip(frame["key"], frame["x"], strict=True)]
            new = [not file.exists() for file in files]
            for file in files:
                file.touch()
            yield frame[new]

    return first_times


def number_in_a_store(folder):
    def numbered(frames):
        import pathlib

        for frame in frames:
            numbers = []
            for _ in range(len(frame)):
                numbers.append(len(list(pathlib.Path(folder).iterdir())))
                pathlib.Path(folder, str(numbers[-1])).touch()
            yield frame.assign(x=numbers)

    return numbered


REPLAYED = tight.Schedule((((Item("a", 1),),), ((Item("b", 2),),)), restarts=(tight.Restart(after=0, replay=True),))


@pytest.mark.slow
def test_a_job_that_drops_what_an_outside_store_knows_loses_a_replayed_batch(spark, tmp_path):
    job = with_a_store(tmp_path, drop_what_was_seen)

    verdicts = tight.laws(job, on=REPLAYED, only="restarts")

    assert finding(verdicts, "restarts") == "LOST_ON_RESTART"
    assert verdicts["restarts"].counterexample.expected == (output("a", 1), output("b", 2))


@pytest.mark.slow
def test_a_job_that_counts_in_an_outside_store_counts_a_replayed_batch_twice(spark, tmp_path):
    job = with_a_store(tmp_path, number_in_a_store)

    assert finding(tight.laws(job, on=REPLAYED, only="restarts"), "restarts") == "DUPLICATED_ON_REPLAY"


def output(key, x):
    return tight.Kind("Output", key=str | None, x=int | None)(key, x)


@pytest.mark.slow
def test_a_job_that_differs_from_run_to_run_is_told_as_that(spark):
    def random_numbers(df):
        return df.select("key", F.rand().alias("x"))

    verdicts = tight.laws(random_numbers, on=items(), only=["cuts", "restarts"], runs=2, shrink=1)

    assert {finding(verdicts, law) for law in verdicts} == {"NOT_REPEATABLE"}


def test_a_job_without_a_batch_form_is_not_asked_about_it(spark):
    def only_streams(df):
        if not df.isStreaming:
            raise ValueError("streams only")
        return df

    verdict = tight.laws(only_streams, on=items(), only="batch", runs=2)["batch"]

    assert verdict.undecided
    assert "streams only" in verdict.reason


@pytest.mark.parametrize(
    ("change", "said"), [({"only": "speed"}, "some of cuts"), ({"mode": "batch"}, "a streaming mode")], ids=str
)
def test_a_wrong_question_is_refused(spark, change, said):
    with pytest.raises(TraceError) as raised:
        tight.laws(lambda df: df, on=items(), **change)
    assert said in str(raised.value)
