"""Plans on Spark: files and DataFrames, odd values, and what is refused."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import streamtight as tight
from streamtight.errors import InconsistentError, InputError, JobError, PlanError, UnsupportedError

Value, Barrier = tight.Kind("Value", time=int, value=int), tight.Kind("Barrier", time=int)
Total, Big = tight.Kind("Total", time=int, total=int), tight.Kind("Big", time=int, value=int)


@pytest.fixture(autouse=True, scope="module")
def classes_by_value() -> Iterator[None]:
    """The workers of Spark cannot import this module."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


class Windows(tight.ForkJoin):
    """Sums of the values between barriers; big values are told at once."""

    takes, gives, depends = (Value, Barrier), (Total, Big), tight.barrier(Barrier)
    whole, part = tight.StateType(Value, Barrier), tight.StateType(Value)
    branches = (tight.Branch(whole, part, part), tight.Branch(part, part, part))

    def init(self) -> int:
        return 0

    def update(self, total: int, event: Any, emit: Any) -> int:
        if event.kind is Value:
            if event.value == 666:
                raise ValueError("not this one")
            if event.value > 95:
                emit(Big(event.time, event.value))
            return total + event.value
        emit(Total(event.time, total))
        return 0

    def fork(self, total: int, left: Any, right: Any) -> tuple[int, int]:
        return total, 0

    def join(self, left: int, right: int) -> int:
        return left + right


VALUES = [Value(time, time * 37 % 101) for time in range(400)]
BARRIERS = [Barrier(time) for time in (0, 17, 18, 200, 398)]
VALUE_STREAM, BARRIER_STREAM = tight.InputStream("values", Value, rate=100), tight.InputStream("barriers", Barrier)


@pytest.fixture(scope="module")
def windows() -> Any:
    return tight.parallelize(Windows(), [VALUE_STREAM, BARRIER_STREAM], workers=2, cases=20)


def file_of(folder: Path, name: str, events: Any, *, rows: int = 50) -> str:
    path = folder / f"{name}.parquet"
    pyarrow.parquet.write_table(pa.Table.from_pylist([e.as_dict() for e in events]), path, row_group_size=rows)
    return str(path)


def test_files_and_frames_give_the_sequential_outputs(spark: SparkSession, windows: Any, tmp_path: Path) -> None:
    files = {"values": file_of(tmp_path, "values", VALUES), "barriers": file_of(tmp_path, "barriers", BARRIERS)}
    frames = {name: spark.read.parquet(path).orderBy("time", ascending=False) for name, path in files.items()}
    expected = Counter(windows.program.run({"values": VALUES, "barriers": BARRIERS}))

    assert Counter(windows.events(windows.on_spark(files))) == expected
    assert Counter(windows.events(windows.on_spark(frames))) == expected
    assert Counter(windows.events(windows.on_spark({**files, "barriers": frames["barriers"]}))) == expected
    assert len(windows.plan.leaves) == 2


def test_outputs_are_written_to_a_folder(spark: SparkSession, windows: Any, tmp_path: Path) -> None:
    files = {"values": file_of(tmp_path, "values", VALUES), "barriers": file_of(tmp_path, "barriers", BARRIERS)}

    frame = windows.on_spark(files, output=str(tmp_path / "out"))

    expected = Counter(windows.program.run({"values": VALUES, "barriers": BARRIERS}))
    assert Counter(windows.events(frame)) == expected
    assert Counter(windows.events(spark.read.parquet(str(tmp_path / "out")))) == expected


def test_empty_streams_give_nothing(spark: SparkSession, windows: Any) -> None:
    frames = {
        "values": spark.createDataFrame([], "time long, value long"),
        "barriers": spark.createDataFrame([], "time long"),
    }

    assert windows.events(windows.on_spark(frames)) == []


def test_a_stream_of_several_kinds_has_a_column_that_says_which(spark: SparkSession) -> None:
    parallel = tight.parallelize(
        Windows(), tight.InputStream("all", {tight.tags(Value): 100, tight.tags(Barrier): 1}), workers=2, cases=20
    )
    rows = [("Value", 1, 5), ("Barrier", 1, None), ("Value", 2, 6), ("heartbeat", 2, None), ("Barrier", 3, None)]
    frame = spark.createDataFrame(rows, "kind string, time long, value long")

    assert sorted(parallel.events(parallel.on_spark(frame)), key=repr) == [Total(1, 5), Total(3, 6)]


Ping, Ask = tight.Kind("Ping", at=datetime, who=str, day=date), tight.Kind("Ask", at=datetime, who=str)
Seen = tight.Kind("Seen", at=datetime, who=str, times=int, last=datetime | None)


class LastSeen(tight.ForkJoin):
    """How often and when somebody was seen: texts as keys, datetimes as times."""

    takes, gives, time = (Ping, Ask), (Seen,), "at"
    depends = tight.same("who")

    def init(self) -> dict[str, Any]:
        return {}

    def update(self, seen: dict[str, Any], event: Any, emit: Any) -> dict[str, Any]:
        times, last = seen.get(event.who, (0, None))
        if event.kind is self.takes[1]:
            emit(Seen(event.at, event.who, times, last))
            return seen
        return {**seen, event.who: (times + 1, event.at)}

    def fork(self, seen: dict[str, Any], left: Any, right: Any) -> Any:
        mine = {who: each for who, each in seen.items() if any(left(kind, who=who) for kind in self.takes)}
        return mine, {who: each for who, each in seen.items() if who not in mine}

    def join(self, left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
        return {**left, **right}


def test_texts_as_keys_and_datetimes_as_times(spark: SparkSession) -> None:
    start = datetime(2024, 5, 1, 12)
    names = ["", "blue", "ärger", "a'b", "x" * 50, "日本"]
    pings = [Ping(start + timedelta(milliseconds=n), names[n % 6], date(2024, 5, 1)) for n in range(60)]
    asks = [Ask(start + timedelta(milliseconds=n, microseconds=1), names[n % 5]) for n in range(0, 60, 7)]
    parallel = tight.parallelize(
        LastSeen(), [tight.InputStream("pings", Ping, rate=10), tight.InputStream("asks", Ask)], workers=2, cases=20
    )
    frames = {
        "pings": spark.createDataFrame([tuple(p[1:]) for p in pings], "at timestamp, who string, day date"),
        "asks": spark.createDataFrame([tuple(a[1:]) for a in asks], "at timestamp, who string"),
    }

    assert len(parallel.plan.leaves) == 2
    assert Counter(parallel.events(parallel.on_spark(frames))) == Counter(
        parallel.program.run({"pings": pings, "asks": asks})
    )


Ping2, Ask2 = tight.Kind("Ping", at=datetime, who=str), tight.Kind("Ask", at=datetime, who=str)


class Seens(LastSeen):
    """The same without days, for times of every sort."""

    takes = (Ping2, Ask2)


@pytest.mark.parametrize("zone", ["America/Los_Angeles", pytest.param("Asia/Tokyo", marks=pytest.mark.slow)])
@pytest.mark.parametrize("times", ["timestamp", "timestamp_ntz"])
def test_no_zone_has_a_say_in_the_order(spark: SparkSession, tmp_path: Path, zone: str, times: str) -> None:
    start = datetime(2024, 3, 10, 1, 30)  # an hour that is left out in Los Angeles follows
    pings = [Ping2(start + timedelta(minutes=n), "ab"[n % 2]) for n in range(100)]
    asks = [Ask2(start + timedelta(minutes=n, seconds=1), "ab"[n % 2]) for n in range(9, 100, 10)]
    streams = [tight.InputStream("pings", Ping2, rate=10), tight.InputStream("asks", Ask2)]
    parallel = tight.parallelize(Seens(), streams, workers=2, cases=20)
    texts = [[(str(event.at), event.who) for event in events] for events in (pings, asks)]
    before = {name: spark.conf.get(name) for name in ("spark.sql.session.timeZone", ARROW_ROWS)}
    spark.conf.set("spark.sql.session.timeZone", zone if times == "timestamp_ntz" else "UTC")
    spark.conf.set(ARROW_ROWS, "7")
    try:
        frames = [spark.createDataFrame(rows, "at string, who string") for rows in texts]
        pinged, asked = (frame.select(frame.at.cast(times).alias("at"), "who") for frame in frames)
        outputs = parallel.on_spark({"pings": pinged, "asks": asked}).select("who", "times").collect()
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)

    expected = parallel.program.run({"pings": pings, "asks": asks})
    assert Counter(map(tuple, outputs)) == Counter((seen.who, seen.times) for seen in expected)


ARROW_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"


@dataclass
class Sum:
    """A state of a class that only this module has."""

    total: int = 0


class OwnState(Windows):
    """Windows with that state."""

    def init(self) -> Sum:  # type: ignore[override]
        return Sum()

    def update(self, state: Sum, event: Any, emit: Any) -> Sum:  # type: ignore[override]
        if not isinstance(state, Sum):
            raise TypeError(f"another class of the same name: {type(state)}")
        return Sum(Windows.update(self, state.total, event, emit))

    def fork(self, state: Sum, left: Any, right: Any) -> tuple[Sum, Sum]:  # type: ignore[override]
        return state, Sum()

    def join(self, left: Sum, right: Sum) -> Sum:  # type: ignore[override]
        return Sum(left.total + right.total)


def test_states_may_be_of_classes_that_workers_cannot_import(spark: SparkSession, windows: Any, tmp_path: Path) -> None:
    files = {"values": file_of(tmp_path, "values", VALUES), "barriers": file_of(tmp_path, "barriers", BARRIERS)}
    parallel = tight.parallelize(OwnState(), [VALUE_STREAM, BARRIER_STREAM], workers=2, cases=20)

    outputs = parallel.events(parallel.on_spark(files))

    assert Counter(outputs) == Counter(windows.program.run({"values": VALUES, "barriers": BARRIERS}))


# -- what is refused ---------------------------------------------------------------------------------------------


def test_files_that_are_not_sorted_are_refused(windows: Any, tmp_path: Path) -> None:
    wrong = [*VALUES[:60], Value(3, 1)]
    files = {"values": file_of(tmp_path, "values", wrong), "barriers": file_of(tmp_path, "barriers", BARRIERS)}

    with pytest.raises(
        InputError, match=r"stream 'values': needed events that increase in time.*came time 3 after time"
    ):
        windows.on_spark(files)


@pytest.mark.slow
def test_a_tag_that_nobody_handles_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    pings = [tight.InputStream("pings", tight.tags(Ping, who={"a", "b"})), tight.InputStream("asks", Ask)]
    parallel = tight.parallelize(LastSeen(), pings, workers=2, cases=20)
    at = datetime(2024, 5, 1)
    frames = {
        "pings": spark.createDataFrame([(at, "c", at.date())], "at timestamp, who string, day date"),
        "asks": spark.createDataFrame([], "at timestamp, who string"),
    }

    with pytest.raises(InputError, match="for which no worker is responsible"):
        parallel.on_spark(frames)

    path = tmp_path / "pings"
    frames["pings"].coalesce(1).write.parquet(str(path))
    with pytest.raises(InputError, match="for which no worker is responsible"):
        parallel.on_spark({**frames, "pings": str(path)})


def test_a_row_without_a_time_is_refused(spark: SparkSession, windows: Any) -> None:
    barriers = spark.createDataFrame([(5,)], "time long")
    values = spark.createDataFrame([(None, 1)], "time long, value long")

    with pytest.raises(InputError, match="nulls"):
        windows.on_spark({"values": values, "barriers": barriers})


def test_dependent_events_of_one_time_are_refused_in_frames(spark: SparkSession, windows: Any) -> None:
    frames = {
        "values": spark.createDataFrame([(1, 1)], "time long, value long"),
        "barriers": spark.createDataFrame([(5,), (5,)], "time long"),
    }

    with pytest.raises(InputError, match=r"needed different times for events that depend on each other"):
        windows.on_spark(frames)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("time long", "needed the columns time, value of Value"),
        pytest.param("time long, value string", "needed int; came string", marks=pytest.mark.slow),
    ],
    ids=["missing", "another type"],
)
def test_columns_that_do_not_fit_are_refused(spark: SparkSession, windows: Any, columns: str, message: str) -> None:
    row = (1,) if columns == "time long" else (1, "a")
    frames = {
        "values": spark.createDataFrame([row], columns),
        "barriers": spark.createDataFrame([(5,)], "time long"),
    }

    with pytest.raises(InputError, match=message):
        windows.on_spark(frames)


def test_what_the_program_raises_comes_with_its_trace(spark: SparkSession, windows: Any) -> None:
    frames = {
        "values": spark.createDataFrame([(1, 1), (2, 666)], "time long, value long"),
        "barriers": spark.createDataFrame([(5,)], "time long"),
    }

    with pytest.raises(JobError, match=r"ValueError: not this one(.|\n)*in update"):
        windows.on_spark(frames)


class BadFork(Windows):
    """A program whose fork looks for a file."""

    def fork(self, total: int, left: Any, right: Any) -> tuple[int, int]:
        if total > 50:
            raise FileNotFoundError("no such rules")
        return total, 0


@pytest.mark.slow
def test_what_a_fork_raises_on_the_driver_is_told_at_once_and_leaves_no_outputs(
    spark: SparkSession, windows: Any, tmp_path: Path
) -> None:
    files = {"values": file_of(tmp_path, "values", VALUES), "barriers": file_of(tmp_path, "barriers", BARRIERS)}
    cumulative = tight.Plan(BadFork(), windows.plan.streams, windows.plan.root)
    parallel = tight.parallelize(cumulative.program, cumulative.streams, plan=cumulative, even_if_inconsistent=True)
    cumulative.program.init = lambda: 60  # type: ignore[method-assign]

    with pytest.raises(JobError, match="FileNotFoundError: no such rules"):
        parallel.on_spark(files, output=str(tmp_path / "out"))

    assert not any("out" in path.name for path in tmp_path.iterdir())


def test_a_folder_that_exists_is_not_written(windows: Any, tmp_path: Path) -> None:
    files = {"values": file_of(tmp_path, "values", VALUES), "barriers": file_of(tmp_path, "barriers", BARRIERS)}

    with pytest.raises(InputError, match=r"needed a new folder; came .* exists"):
        windows.on_spark(files, output=str(tmp_path))


def test_inputs_of_other_sorts_are_refused(spark: SparkSession, windows: Any) -> None:
    barriers = spark.createDataFrame([(5,)], "time long")
    floats = spark.createDataFrame([(1.0, 1)], "time double, value long")
    stream = spark.readStream.format("rate").load()

    with pytest.raises(InputError, match=r"needed times of one type.* came floats in 'values', integers in 'barriers'"):
        windows.on_spark({"values": floats, "barriers": barriers})
    with pytest.raises(InputError, match="needed a DataFrame that ends; came a streaming one"):
        windows.on_spark({"values": stream, "barriers": barriers})
    with pytest.raises(InputError, match="needed a DataFrame or paths of files; came 5"):
        windows.on_spark({"values": 5, "barriers": barriers})


def test_kinds_that_do_not_go_through_arrow_are_refused(windows: Any) -> None:
    nested = tight.Kind("Nested", time=int, inside=dict[str, int])

    class Nesting(tight.ForkJoin):
        takes, gives, depends = (Value,), (nested,), tight.unordered

        def init(self) -> None:
            return None

        def update(self, state: None, event: Any, emit: Any) -> None:
            emit(nested(event.time, {"a": event.value}))

    parallel = tight.parallelize(Nesting(), tight.InputStream("values", Value), cases=20)

    with pytest.raises(UnsupportedError, match=r"Nested.inside on Spark: needed a number.*; came dict\[str, int\]"):
        parallel.on_spark({"values": windows_frame()})


def windows_frame() -> Any:
    return tight.session().createDataFrame([(1, 2)], "time long, value long")


@pytest.mark.slow
def test_more_leaves_than_slots_are_refused(spark: SparkSession, windows: Any) -> None:
    many = tight.parallelize(Windows(), [VALUE_STREAM, BARRIER_STREAM], workers=64, cases=20)
    frames = {
        "values": spark.createDataFrame([], "time long, value long"),
        "barriers": spark.createDataFrame([], "time long"),
    }

    with pytest.raises(
        UnsupportedError, match=r"a plan with 64 leaves: needed 64 tasks at once; came a session that runs"
    ):
        many.on_spark(frames)


def test_inputs_must_be_those_of_the_plan(windows: Any) -> None:
    with pytest.raises(InputError, match="needed one for each stream: values, barriers; came values"):
        windows.on_spark({"values": "nowhere"})
    with pytest.raises(InputError, match="needed Parquet files; came none at 'nowhere'"):
        windows.on_spark({"values": "nowhere", "barriers": "nowhere"})


class OneType(Windows):
    """The same with one type of states: a barrier may be on the right, where the sum is not."""

    whole = part = None
    branches = ()


def test_a_program_that_is_not_consistent_is_refused_unless_told() -> None:
    streams = [VALUE_STREAM, BARRIER_STREAM]

    with pytest.raises(InconsistentError, match="same outputs on any number of workers") as refused:
        tight.parallelize(OneType(), streams, workers=2)

    assert refused.value.verdict.fails  # type: ignore[attr-defined]
    assert tight.parallelize(OneType(), streams, workers=2, even_if_inconsistent=True).verdict.fails


def test_a_plan_for_another_program_is_refused(windows: Any) -> None:
    with pytest.raises(PlanError, match="needed a plan for LastSeen; came one for Windows"):
        tight.parallelize(LastSeen(), [tight.InputStream("pings", Ping)], plan=windows.plan)
    with pytest.raises(PlanError, match="needed a plan for the streams values; came one for values, barriers"):
        tight.parallelize(windows.program, [VALUE_STREAM], plan=windows.plan)
    with pytest.raises(PlanError, match="needed a ForkJoin program"):
        tight.parallelize(Windows, [VALUE_STREAM])  # type: ignore[arg-type]
