"""What is said about jobs that fail and questions that make no sense."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import streamtight as tight
from streamtight import Kind, Restart, Schedule
from streamtight.errors import JobError, RowError, TimeLimitError, TraceError

pytestmark = pytest.mark.usefixtures("spark")

N = Kind("N", n=int)
FOUR = Schedule.of([N(1), N(2), N(3), N(4)], cuts=[1, 2, 3])


def as_it_is(rows: DataFrame) -> DataFrame:
    return rows


def fails_at_three(rows: DataFrame) -> DataFrame:
    def check(n):
        if n == 3:
            raise ValueError("three is too much")
        return n

    return rows.select(F.udf(check, "long")("n").alias("n"))


def slow(rows: DataFrame) -> DataFrame:
    def wait(n):
        import time

        time.sleep(20)
        return n

    return rows.select(F.udf(wait, "long")("n").alias("n"))


def error_of(job: Any, schedule: Schedule = FOUR, **options: Any) -> JobError:
    with pytest.raises(JobError) as caught:
        tight.run(job, schedule, takes=N, **options)
    return caught.value


# -- a job that raises -----------------------------------------------------------------------------------------------


def test_an_exception_in_python_is_told_with_its_batch_and_its_line() -> None:
    error = error_of(fails_at_three)

    assert (error.batch, error.raised) == (2, "ValueError: three is too much")
    assert re.fullmatch(rf"look at {re.escape(__file__)}, line \d+, in check", error.hint)
    assert str(error).startswith("the job fails_at_three, in batch 2: ")
    assert "three is too much" in str(error.__cause__)


def test_an_exception_in_a_static_job_is_told_as_well() -> None:
    error = error_of(fails_at_three, mode="batch")

    assert (error.batch, error.raised) == (0, "ValueError: three is too much")
    assert __file__ in error.hint


def test_an_exception_after_a_replay_has_the_right_batch() -> None:
    schedule = Schedule.of([N(1), N(2), N(3)], cuts=[1, 2], restarts=[Restart(0, replay=True), Restart(1, replay=True)])

    assert error_of(fails_at_three, schedule).batch == 2


def test_an_exception_of_ones_own_keeps_its_name() -> None:
    def job(rows: DataFrame) -> DataFrame:
        class NoFareError(Exception):
            pass

        def check(n):
            raise NoFareError(f"ride {n}")

        return rows.select(F.udf(check, "long")("n"))

    error = error_of(job)

    assert error.batch == 0
    assert error.raised.endswith("NoFareError: ride 1")


def test_of_a_chain_of_exceptions_the_last_is_told() -> None:
    def job(rows: DataFrame) -> DataFrame:
        def check(n):
            try:
                return {}[n]
            except KeyError as error:
                raise ValueError("no such ride") from error

        return rows.select(F.udf(check, "long")("n"))

    assert error_of(job).raised == "ValueError: no such ride"


def test_an_exception_in_pandas_is_told_with_its_line() -> None:
    def job(rows: DataFrame) -> DataFrame:
        def check(frames):
            for frame in frames:
                if (frame.n == 3).any():
                    raise ValueError("three in pandas")
                yield frame

        return rows.mapInPandas(check, "n long")

    error = error_of(job)

    assert (error.batch, error.raised) == (2, "ValueError: three in pandas")
    assert __file__ in error.hint


@pytest.mark.parametrize("mode", ["append", "batch"])
def test_an_error_of_spark_is_told_in_its_first_line(mode: str) -> None:
    error = error_of(lambda rows: rows.selectExpr("1 div (n - 1)"), mode=mode)

    assert error.batch == 0
    assert error.raised.startswith("[DIVIDE_BY_ZERO]")
    assert "\n" not in error.raised


def test_a_job_that_cannot_start_has_no_batch() -> None:
    error = error_of(lambda rows: rows.groupBy("n").count())

    assert error.batch is None
    assert error.where == "the job, when it was started"
    assert error.hint.startswith('mode="update"')
    assert "append" in error.raised
    assert isinstance(error.__cause__, AnalysisException)


def test_an_exception_while_the_job_is_built_comes_as_it_is() -> None:
    def job(rows: DataFrame) -> DataFrame:
        raise KeyError("a setting")

    with pytest.raises(KeyError, match="a setting"):
        tight.run(job, FOUR, takes=N)


def test_an_unknown_column_comes_as_sparks_own_exception() -> None:
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        tight.run(lambda rows: rows.select("x"), FOUR, takes=N)


def test_a_query_that_somebody_stops_is_an_error(spark: SparkSession) -> None:
    from pyspark.sql.streaming import StreamingQueryListener

    class Stopper(StreamingQueryListener):
        def onQueryStarted(self, event):  # noqa: N802 - Spark's name
            pass

        def onQueryProgress(self, event):  # noqa: N802
            for query in spark.streams.active:
                query.stop()

        def onQueryIdle(self, event):  # noqa: N802
            pass

        def onQueryTerminated(self, event):  # noqa: N802
            pass

    stopper = Stopper()
    spark.streams.addListener(stopper)
    try:
        error = error_of(lambda rows: slow(rows.filter("n > 1")))
    finally:
        spark.streams.removeListener(stopper)

    assert (error.batch, error.raised) == (1, "the query was stopped while it ran")


# -- a job that returns something else -------------------------------------------------------------------------------


def test_a_job_returns_a_frame() -> None:
    error = error_of(lambda rows: None)

    assert (error.batch, error.came) == (None, "None")


def test_a_streaming_job_returns_a_stream(spark: SparkSession) -> None:
    error = error_of(lambda rows: spark.range(3))

    assert (error.came, error.hint) == ("one that is static", "mode='batch'")


def test_a_static_job_returns_no_stream(spark: SparkSession) -> None:
    error = error_of(lambda rows: spark.readStream.format("rate").load(), mode="batch")

    assert (error.came, error.hint) == ("one that is a stream", "mode='append'")


def test_one_of_several_outputs_must_be_named() -> None:
    error = error_of(lambda rows: {"good": rows, "bad": rows})

    assert error.came == "output=None; the job returns 'good', 'bad'"
    assert error.hint == "output='good' or run_all; in check, gives={name: None for each of them}"


def test_an_output_that_a_job_lacks_is_refused() -> None:
    assert "'ugly'" in error_of(lambda rows: {"good": rows, "bad": rows}, output="ugly").came


def test_a_name_for_the_only_output_is_refused() -> None:
    assert error_of(as_it_is, output="good").hint == "leave out output="


# -- a question that makes no sense ----------------------------------------------------------------------------------

WRONG: dict[str, tuple[type[Exception], str, dict[str, Any]]] = {
    "an unknown mode": (TraceError, "'Append'", {"mode": "Append"}),
    "a limit of 0": (TraceError, "came 0", {"limit": 0}),
    "a negative limit": (TraceError, "came -1", {"limit": -1}),
    "a limit that is no number": (TraceError, "came nan", {"limit": float("nan")}),
    "a flush of a static frame": (TraceError, "flush=True", {"mode": "batch", "flush": True}),
    "a restart of a static frame": (
        TraceError,
        "Restart",
        {"mode": "batch", "schedule": Schedule.of([N(1)], restarts=[Restart(0)])},
    ),
    "an empty schedule": (TraceError, "a batch or more", {"schedule": Schedule(())}),
    "no schedule": (TraceError, "a batch or more", {"schedule": [N(1)]}),
    "no kinds": (RowError, "takes", {"takes": []}),
    "a name for a kind": (RowError, "'N'", {"takes": "N"}),
    "no inputs": (RowError, "a name for every input", {"takes": {}}),
    "an input with a bad name": (RowError, "a b", {"takes": {"a b": N}}),
    "an input without kinds": (RowError, "takes", {"takes": {"rows": None}}),
    "an event of an unknown kind": (RowError, r"N\(n=1\), but takes has M", {"takes": Kind("M", n=int)}),
    "an output of no kind": (RowError, "gives", {"gives": "N"}),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_question_that_makes_no_sense_is_refused(what: str) -> None:
    error, words, options = WRONG[what]

    with pytest.raises(error, match=words):
        tight.run(as_it_is, **{"schedule": FOUR, "takes": N, **options})


def test_a_question_is_refused_before_the_job_is_built() -> None:
    built = []

    with pytest.raises(TraceError):
        tight.run(built.append, FOUR, takes=N, mode="Append")

    assert built == []


@pytest.mark.parametrize("mode", ["append", "batch"])
def test_a_limit_may_be_infinite(mode: str) -> None:
    run = tight.run(as_it_is, Schedule.of([N(1)]), takes=N, gives=N, mode=mode, limit=float("inf"))

    assert run.events == (N(1),)


# -- a job that does not end -----------------------------------------------------------------------------------------


def test_a_slow_stream_is_stopped_and_the_session_goes_on(spark: SparkSession) -> None:
    with pytest.raises(TimeLimitError, match="batch 0") as caught:
        tight.run(slow, FOUR, takes=N, limit=3)

    assert caught.value.seconds == 3
    assert spark.streams.active == []
    assert tight.run(as_it_is, FOUR, takes=N, gives=N).batches == FOUR.batches


def test_the_session_goes_on_after_a_failing_job() -> None:
    error_of(fails_at_three)

    assert tight.run(as_it_is, FOUR, takes=N, gives=N).batches == FOUR.batches


def test_a_batch_job_that_catches_its_time_limit_gives_no_answer() -> None:
    """What it has by then is not what it would have given."""

    def stubborn(rows: DataFrame) -> DataFrame:
        def wait(n):
            import time

            time.sleep(20)
            return n

        try:
            rows.select(F.udf(wait, "long")("n")).collect()
        except Exception:
            return rows.limit(0)
        return rows

    with pytest.raises(TimeLimitError):
        tight.run(stubborn, FOUR, takes=N, mode="batch", limit=2)


def test_a_job_that_writes_is_refused_and_its_query_stopped(spark) -> None:
    def writes(rows: DataFrame) -> object:
        return rows.writeStream.format("noop").start()

    with pytest.raises(JobError) as caught:
        tight.run(writes, FOUR, takes=N)

    assert "before writeStream" in caught.value.hint
    assert not spark.streams.active


def test_one_kind_for_two_inputs_is_refused() -> None:
    with pytest.raises(RowError) as caught:
        tight.run(lambda left, right: left.union(right), FOUR, takes={"left": N, "right": N})

    assert caught.value.came == "N, which 'left' has too"


def test_a_job_with_other_parameters_is_refused() -> None:
    with pytest.raises(JobError, match="a function of left"):
        tight.run(lambda rows: rows, FOUR, takes={"left": N})
