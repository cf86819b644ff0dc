"""What an engine is: a way of running a job on Spark. Engines move rows; they know nothing of kinds and events."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from streamtight.errors import EncodingError
from streamtight.spark.failure import time_limit_error
from streamtight.spark.session import is_connect, is_local
from streamtight.spark.ship import shipped

Row = Sequence[Any]
Build = Callable[[list[DataFrame]], DataFrame]
"""The user's job, as a function from the DataFrames of its inputs to the one of its output."""

END_OF_TIME = 253_402_300_799_000
"""The last millisecond of the year 9999: a watermark that closes everything."""


EXACT = {
    # A run needs the shuffle partitions that it was given, so nothing may merge them afterwards.
    "spark.sql.adaptive.enabled": "false",
    # Every micro-batch is reported, and batch n can be replayed only while what came before is in the checkpoint.
    "spark.sql.streaming.numRecentProgressUpdates": "100000",
    "spark.sql.streaming.minBatchesToRetain": "100000",
    "spark.sql.streaming.stopTimeout": "30000",
}

MOST_IDLE = 3
"""So many micro-batches without input are run at the end: with timeouts by the clock Spark would go on for ever."""

LONGEST = 1_000_000.0
"""Seconds: no limit is longer, since timers cannot wait for ever."""


@dataclass(frozen=True, slots=True)
class Feed:
    """One input of a job: its columns, and its rows in each partition of each batch."""

    struct: StructType
    batches: Sequence[Sequence[Sequence[Row]]]


@dataclass(frozen=True, slots=True)
class Piece:
    """What a job does between one start and the next stop."""

    first: int
    """The first batch that is new to it."""
    last: int
    """The last batch; smaller than `first` if none is new."""
    replays: bool = False
    """Whether the batch before `first` had not been committed, so that it runs once more."""
    flushes: bool = False
    """Whether it is one empty batch, with the watermark at the end of time."""
    is_end: bool = False
    """Whether the input then stays quiet, so that Spark may run a micro-batch without rows for what has closed."""

    @property
    def given_at_start(self) -> int:
        """The last batch whose rows are there when the job starts; the others follow one at a time."""
        return self.first - 1 if self.replays else min(self.first, self.last)

    @property
    def batches(self) -> int:
        """How many micro-batches it has for sure."""
        return self.last - self.first + 1 + self.replays + self.flushes


@dataclass(frozen=True, slots=True)
class Output:
    """One micro-batch as an engine saw it: its number, its rows by partition, and Spark's own report on it."""

    batch: int
    partitions: Sequence[Sequence[Row]]
    report: Mapping[str, Any] = field(default_factory=dict)


class Engine(Protocol):
    """A way of running jobs: in this process's JVM, or through Spark Connect."""

    def stream(
        self,
        build: Build,
        feeds: Sequence[Feed],
        pieces: Iterable[Piece],
        *,
        mode: str,
        folder: Path,
        limit: float,
        as_they_come: bool,
    ) -> Generator[tuple[Piece, StructType, Output], None, None]:
        """Run the pieces one after another, with one checkpoint in this folder; every micro-batch, in order.

        A piece is asked for only when the answer to the one before was taken: whether there is one may depend on it.
        With `as_they_come` a micro-batch is told as soon as it has run, where the engine can do that, so that who asks
        may close the iterator: the query then stops.
        """

    def state(self, folder: Path) -> list[tuple[str, StructType, list[Row]]]:
        """What a stopped job keeps in its state: for each operator its name, columns and rows."""

    def batch(self, build: Build, feeds: Sequence[Feed], *, limit: float) -> tuple[StructType, Sequence[Sequence[Row]]]:
        """Run the job once, on static DataFrames."""


# -- what every engine needs ------------------------------------------------------------------------------------------


@contextlib.contextmanager
def settings(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """The session with these settings, and afterwards with its own again."""
    # One by one: to read all of them ends in an exception inside Py4J, which takes longer than a small job.
    own = {name: spark.conf.get(name, None) for name in wanted}
    try:
        for name, value in wanted.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, before in own.items():
            if before is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, before)


@contextlib.contextmanager
def importable(spark: SparkSession) -> Iterator[None]:
    """Let Python workers import what can be imported here, such as the module of a test, while functions are sent.

    On a cluster the folders from which we import are not there: this package is sent, and the user's modules are by
    `ship`.
    """
    if not is_local(spark):
        shipped(spark)
        yield
        return
    environment = spark.sparkContext.environment
    before = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [*sys.path, before]))
    try:
        yield
    finally:
        if before is None:
            del environment["PYTHONPATH"]
        else:
            environment["PYTHONPATH"] = before


@contextlib.contextmanager
def interrupted_after(spark: SparkSession, seconds: float) -> Iterator[None]:
    """Cancel this thread's Spark jobs after so many seconds; what they then raise is a TimeLimitError."""
    tag, late = f"streamtight-{uuid.uuid4().hex}", threading.Event()
    # A classic session tags only what runs as SQL, its context every job; through Connect there is no context.
    cancel: Callable[[str], object]
    if is_connect(spark):
        add, remove, cancel = spark.addTag, spark.removeTag, spark.interruptTag
    else:
        context = spark.sparkContext
        add, remove, cancel = context.addJobTag, context.removeJobTag, context.cancelJobsWithTag

    def interrupt() -> None:
        late.set()
        cancel(tag)

    timer = threading.Timer(min(seconds, LONGEST), interrupt)
    timer.daemon = True
    add(tag)
    timer.start()
    try:
        yield
    except Exception as error:
        if late.is_set():
            raise time_limit_error("running the job", seconds) from error
        raise
    else:
        if late.is_set():  # a job may catch its cancellation and go on with what it has: that is no answer
            raise time_limit_error("running the job", seconds)
    finally:
        timer.cancel()
        remove(tag)


def read_state(spark: SparkSession, location: str) -> list[tuple[str, StructType, list[Row]]]:
    """The rows in the state of a stopped job, by operator; the variables of a user's own state are left out."""
    found: list[tuple[str, StructType, list[Row]]] = []
    for operator in spark.read.format("state-metadata").load(location).collect():
        if operator["stateStoreName"] not in ("default", "left-keyToNumValues"):
            continue  # a user's variables need their names, and a join has four stores for its two sides
        sides = ("left", "right") if operator["operatorName"] == "symmetricHashJoin" else (None,)
        for side in sides:
            reader = spark.read.format("statestore").option("operatorId", operator["operatorId"])
            frame = (reader if side is None else reader.option("joinSide", side)).load(location).drop("partition_id")
            name = operator["operatorName"] if side is None else f"{operator['operatorName']}_{side}"
            found.append((name, frame.schema, [tuple(row) for row in frame.collect()]))
    return found


def require_all(piece: Piece, outputs: Sequence[Output], first: int) -> None:
    """Raise unless the micro-batches from this one on are there, without a gap: a lost one would go unnoticed."""
    numbers = [output.batch for output in outputs]
    if len(numbers) < piece.batches or numbers != list(range(first, first + len(numbers))):
        raise EncodingError(
            "running a schedule",
            needed=f"{piece.batches} micro-batches or more, from number {first} on",
            came=str(numbers),
            hint="report it, with the job: this is a bug of streamtight",
        )


# -- what is done to a stopped job's checkpoint ----------------------------------------------------------------------


def last_commit(folder: Path) -> int:
    """The number of the last micro-batch that was finished, -1 if none was."""
    commits = folder / "commits"
    numbers = [int(entry.name) for entry in commits.iterdir() if entry.name.isdigit()] if commits.is_dir() else []
    return max(numbers, default=-1)


def uncommit(folder: Path, batch: int) -> None:
    """Make the checkpoint forget that this batch was finished: the next start runs it again, with the same rows."""
    for name in (f"{batch}", f".{batch}.crc"):
        (folder / "commits" / name).unlink(missing_ok=True)


def flush_watermark(folder: Path) -> None:
    """Let the job's next micro-batch see the watermark at the end of time, so that everything open closes.

    The watermark for the next batch stands in the commit of the last one. Setting it there spares the job a made-up row
    far in the future, which would show in its output.
    """
    commits, last = folder / "commits", last_commit(folder)
    version, metadata = (commits / str(last)).read_text().split("\n", 1)
    known = json.loads(metadata)
    known["nextBatchWatermarkMs"] = END_OF_TIME
    (commits / str(last)).write_text(f"{version}\n{json.dumps(known)}")
    (commits / f".{last}.crc").unlink(missing_ok=True)
