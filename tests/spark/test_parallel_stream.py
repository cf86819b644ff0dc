"""A plan on running streams: micro-batches, restarts and batches that are done again lose and double nothing."""

from __future__ import annotations

import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

import streamtight as tight
from streamtight.errors import InputError, JobError
from streamtight.source.board import Board

Add, Read = tight.Kind("Add", time=int, key=int, n=int), tight.Kind("Read", time=int, key=int)
Sum = tight.Kind("Sum", time=int, key=int, total=int)
SCHEMA = "kind string, time long, key long, n long"


@pytest.fixture(autouse=True, scope="module")
def classes_by_value() -> Iterator[None]:
    """The workers of Spark cannot import this module."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


class Counters(tight.ForkJoin):
    """Sums by key, read and reset (Figure 15)."""

    takes, gives = (Add, Read), (Sum,)
    depends = tight.barrier(Read) & tight.same("key")

    def init(self) -> dict[int, int]:
        return {}

    def update(self, sums: dict[int, int], event: Any, emit: Any) -> dict[int, int]:
        if event.kind is Add:
            if event.n == 13:
                raise ValueError("thirteen")
            sums[event.key] = sums.get(event.key, 0) + event.n
        else:
            emit(Sum(event.time, event.key, sums.pop(event.key, 0)))
        return sums

    def fork(self, sums: dict[int, int], left: Any, right: Any) -> Any:
        mine = {key: total for key, total in sums.items() if left(Read, key=key)}
        return mine, {key: total for key, total in sums.items() if key not in mine}

    def join(self, left: dict[int, int], right: dict[int, int]) -> dict[int, int]:
        return {key: left.get(key, 0) + right.get(key, 0) for key in {**left, **right}}


class Streams:
    """Two streams of files, and a query on them that can be stopped and started."""

    def __init__(self, spark: SparkSession, folder: Path, workers: int = 2, *, is_joined: bool = False) -> None:
        """is_joined   whether reads are handled above two leaves for adds, not each key for itself"""
        self._spark, self.folder = spark, folder
        self._count = 0
        self.outputs: dict[int, list[tight.Event]] = {}
        program = Counters()
        adds, reads = tight.InputStream("adds", Add, rate=100, lanes=2), tight.InputStream("reads", Read)
        one, other = (tight.Worker("state", [share]) for share in adds.shares)
        joined = tight.Plan(program, [adds, reads], tight.Worker("state", reads.shares, one, other))
        self._parallel = tight.parallelize(program, [adds, reads], workers=workers, cases=20)
        self._joined = tight.parallelize(program, [adds, reads], plan=joined, cases=20)
        self.is_joined = is_joined
        for name in ("adds", "reads"):
            (folder / name).mkdir()

    def put(self, name: str, items: Sequence[Any]) -> None:
        """A file with these events and heartbeats."""
        if not items:
            return
        self._count += 1
        rows = [
            {"kind": "heartbeat", "time": item.time, "key": None, "n": None}
            if isinstance(item, tight.Heartbeat)
            else {"kind": item.kind.name, "key": None, "n": None, **item.as_dict()}
            for item in items
        ]
        types = {"kind": pa.string(), "time": pa.int64(), "key": pa.int64(), "n": pa.int64()}
        table = pa.Table.from_pylist(rows, pa.schema(types.items()))
        aside = self.folder / f"{self._count}.new"
        pyarrow.parquet.write_table(table, aside)
        aside.rename(self.folder / name / f"{self._count:04}.parquet")

    def start(self, output: Any = None, **options: Any) -> Any:
        """The query; it keeps its outputs by batch, as a sink that can be written again."""
        read = self._spark.readStream.schema(SCHEMA)
        frames = {name: read.parquet(str(self.folder / name)) for name in ("adds", "reads")}
        checkpoint = str(self.folder / "checkpoint")
        parallel = self._joined if self.is_joined else self._parallel
        return parallel.start(frames, checkpoint=checkpoint, output=output or self.keep, **options)

    def keep(self, frame: DataFrame, batch: int) -> None:
        self.outputs[batch] = self._parallel.events(frame)

    @property
    def came(self) -> Counter[tight.Event]:
        return Counter(event for events in self.outputs.values() for event in events)


def expected(adds: Sequence[Any], reads: Sequence[Any]) -> Counter[tight.Event]:
    return Counter(Counters().run({"adds": adds, "reads": reads}))


def random_streams(seed: int) -> tuple[list[Any], list[Any]]:
    chance = random.Random(seed)
    times = sorted(chance.sample(range(200), 45))
    events = [
        Add(time, chance.randrange(3), chance.randrange(10))
        if chance.random() < 0.8
        else Read(time, chance.randrange(3))
        for time in times
    ]
    return [e for e in events if e.kind is Add], [e for e in events if e.kind is Read]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_any_batches_with_stops_between_give_the_sequential_outputs(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    adds, reads = random_streams(seed)
    streams = Streams(spark, tmp_path, is_joined=seed % 2 == 1)
    left = {"adds": [*adds, tight.Heartbeat(300)], "reads": [*reads, tight.Heartbeat(300)]}
    query = streams.start()

    while any(left.values()):
        for name in left:
            count = chance.randrange(25)
            streams.put(name, left[name][:count])
            left[name] = left[name][count:]
        query.processAllAvailable()
        if chance.random() < 0.5:
            query.stop()
            streams.is_joined = not streams.is_joined  # a query may go on with another plan
            query = streams.start()
    query.processAllAvailable()
    query.stop()

    assert streams.came == expected(adds, reads)
    assert query.waiting == ""


@pytest.mark.slow
def test_a_batch_that_is_done_again_gives_the_same_again(spark: SparkSession, tmp_path: Path) -> None:
    adds, reads = random_streams(7)
    streams = Streams(spark, tmp_path)
    query = streams.start()
    streams.put("adds", adds[:20])
    streams.put("reads", reads[:5])
    query.processAllAvailable()
    streams.put("adds", [*adds[20:], tight.Heartbeat(300)])
    streams.put("reads", [*reads[5:], tight.Heartbeat(300)])
    query.processAllAvailable()
    query.stop()
    before = dict(streams.outputs)

    # As if the machine had died after the outputs were written and before Spark noted it.
    last = max((tmp_path / "checkpoint/spark/commits").glob("[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    (last.parent / f".{last.name}.crc").unlink(missing_ok=True)
    shutil.rmtree(tmp_path / "checkpoint/spark/state", ignore_errors=True)
    query = streams.start()
    query.processAllAvailable()
    query.stop()

    assert {batch: Counter(events) for batch, events in streams.outputs.items()} == {
        batch: Counter(events) for batch, events in before.items()
    }
    assert streams.came == expected(adds, reads)


def test_a_sink_that_fails_gets_the_batch_again(spark: SparkSession, tmp_path: Path) -> None:
    adds, reads = random_streams(3)
    streams = Streams(spark, tmp_path)

    def breaks(frame: DataFrame, batch: int) -> None:
        streams.keep(frame, batch)
        raise OSError("the sink is full")

    streams.put("adds", [*adds, tight.Heartbeat(300)])
    streams.put("reads", [*reads, tight.Heartbeat(300)])
    query = streams.start(breaks)
    with pytest.raises(Exception, match="the sink is full"):
        query.processAllAvailable()
    query = streams.start()
    query.processAllAvailable()
    query.stop()

    assert streams.came == expected(adds, reads)


@pytest.mark.slow
def test_outputs_may_go_to_a_folder(spark: SparkSession, tmp_path: Path) -> None:
    adds, reads = random_streams(4)
    streams = Streams(spark, tmp_path, workers=1)
    query = streams.start(str(tmp_path / "sums"))
    streams.put("adds", [*adds, tight.Heartbeat(300)])
    query.processAllAvailable()
    streams.put("reads", [*reads, tight.Heartbeat(300)])
    query.processAllAvailable()
    query.stop()

    rows = spark.read.parquet(str(tmp_path / "sums")).select("time", "key", "total").collect()

    assert Counter(Sum(*row) for row in rows) == expected(adds, reads)


@pytest.mark.slow
def test_a_stream_that_others_wait_for_is_named(spark: SparkSession, tmp_path: Path) -> None:
    streams = Streams(spark, tmp_path)
    streams.put("adds", [Add(time, 1, 1) for time in range(50)])
    streams.put("reads", [Read(10, 1)])
    query = streams.start(most_waiting=30)

    with pytest.raises(InputError, match=r"3\d events of 'adds' wait for stream 'reads', which has come to time 10"):
        query.processAllAvailable()


@pytest.mark.slow
def test_a_stream_that_goes_back_in_time_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    streams = Streams(spark, tmp_path)
    query = streams.start()
    streams.put("adds", [Add(10, 1, 1)])
    query.processAllAvailable()
    streams.put("adds", [Add(9, 1, 1)])

    with pytest.raises(InputError, match="stream 'adds': needed times from 10, since it had come so far; came time 9"):
        query.processAllAvailable()


@pytest.mark.slow
def test_what_the_program_raises_is_told(spark: SparkSession, tmp_path: Path) -> None:
    streams = Streams(spark, tmp_path)
    query = streams.start()
    streams.put("adds", [Add(10, 1, 13)])
    streams.put("reads", [tight.Heartbeat(20)])

    with pytest.raises(JobError, match="ValueError: thirteen"):
        query.processAllAvailable()


@pytest.mark.slow
def test_a_checkpoint_without_what_was_kept_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    streams = Streams(spark, tmp_path)
    streams.put("adds", [Add(10, 1, 1)])
    query = streams.start()
    query.processAllAvailable()
    query.stop()
    shutil.rmtree(tmp_path / "checkpoint/streamtight")
    streams.put("reads", [Read(11, 1)])

    query = streams.start()

    with pytest.raises(InputError, match=r"needed what batch 0 kept, in .*; came nothing"):
        query.processAllAvailable()


@pytest.mark.slow
def test_two_queries_of_one_program_run_side_by_side(spark: SparkSession, tmp_path: Path) -> None:
    adds, reads = random_streams(5)
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    both = [Streams(spark, tmp_path / "one", workers=1), Streams(spark, tmp_path / "two", workers=1)]
    queries = [streams.start() for streams in both]

    for streams in both:
        streams.put("adds", [*adds, tight.Heartbeat(300)])
        streams.put("reads", [*reads, tight.Heartbeat(300)])
    for query in queries:
        query.processAllAvailable()
        query.stop()

    assert [streams.came for streams in both] == [expected(adds, reads)] * 2


class Others(Counters):
    """Another program."""


@pytest.mark.slow
def test_a_checkpoint_of_another_program_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    streams = Streams(spark, tmp_path)
    streams.put("adds", [Add(10, 1, 1)])
    query = streams.start()
    query.processAllAvailable()
    query.stop()

    streams._parallel = tight.parallelize(Others(), streams._parallel.plan.streams, workers=1, cases=20)

    with pytest.raises(
        InputError, match="needed batches of Others with the streams adds, reads; came batches of Counters"
    ):
        streams.start()


def test_a_frame_that_is_no_stream_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    streams = Streams(spark, tmp_path)
    frame = spark.createDataFrame([], SCHEMA)

    with pytest.raises(InputError, match="needed a streaming DataFrame"):
        streams._parallel.start({"adds": frame, "reads": frame}, checkpoint=str(tmp_path), output="x")


@pytest.mark.slow
def test_a_parallel_stream_tells_on_its_board_what_waits(spark: SparkSession, tmp_path: Path) -> None:
    streams = Streams(spark, tmp_path)
    streams.put("adds", [Add(1, 1, 5), Add(2, 1, 6)])

    query = streams.start(board=tmp_path / "board")
    query.processAllAvailable()
    query.stop()

    board = Board(tmp_path / "board")
    until = time.monotonic() + 20
    while time.monotonic() < until and not (board.jobs and board.jobs[0].ended is not None):
        time.sleep(0.1)
        board.look()
    (job,) = board.jobs
    assert (job.kind, job.latest["rows"], job.ended) == ("parallelize", {"rows": 2}, "")
    assert job.latest["unmatched"] == {"adds": 2, "reads": 0}
