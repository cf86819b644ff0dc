"""The engine for Spark Connect sessions, which have no JVM at hand: slower, and made of public parts only.

Rows go in through a Python data source that gives out one batch of the schedule at a time; every micro-batch writes its
rows, each with its partition and offset, to a folder that is read back at the end. So the server must see the same
folders as we do, which a local server does.

What is lost: empty partitions at the end of an output leave no trace, so they are not counted.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import LongType, StructField, StructType

from streamtight.errors import UnsupportedError
from streamtight.spark.engine import (
    EXACT,
    MOST_IDLE,
    Build,
    Feed,
    Output,
    Piece,
    Row,
    flush_watermark,
    interrupted_after,
    last_commit,
    read_state,
    require_all,
    settings,
    uncommit,
)
from streamtight.spark.failure import job_error, time_limit_error

_PLACE = "__streamtight_place"  # partition << 33 | offset, as Spark numbers rows
_OFFSET_BITS = 33
_POLL_SECONDS = 0.02


class ConnectEngine:
    """Runs jobs through Spark Connect."""

    def __init__(self, spark: SparkSession, *, shuffle_partitions: int) -> None:
        self._spark = spark
        self._confs = {**EXACT, "spark.sql.shuffle.partitions": str(shuffle_partitions)}
        if not hasattr(DataSourceStreamReader, "getDefaultReadLimit"):
            raise UnsupportedError(
                "running a job through Spark Connect",
                needed="PySpark 4.2 or newer, where a Python source can say how much a micro-batch reads",
                came=f"PySpark {spark.version}",
                hint="a classic session, or a newer PySpark",
            )

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
        """Run the pieces one after another, with one checkpoint in this folder; each is told when it has ended."""
        deadline = time.monotonic() + limit
        for number, piece in enumerate(pieces):
            quiet = {"spark.sql.streaming.noDataMicroBatches.enabled": str(piece.is_end).lower()}
            with settings(self._spark, {**self._confs, **quiet}):
                if piece.replays or piece.flushes:
                    self._change_checkpoint(piece, folder)
                frames = [self._source(feed, place, folder, piece) for place, feed in enumerate(feeds)]
                output = build(frames)
                target = folder / f"output-{number}"
                first = last_commit(folder) + 1 if (folder / "commits").is_dir() else piece.first - piece.replays
                reports = self._run_query(output, piece, mode, folder, target, first, deadline, limit)
                outputs = [Output(batch, self._read(target, batch), reports[batch]) for batch in sorted(reports)]
                require_all(piece, outputs, first)
            for one in outputs:
                yield piece, output.schema, one

    def state(self, folder: Path) -> list[tuple[str, StructType, list[Row]]]:
        """What a stopped job keeps in its state."""
        return read_state(self._spark, str(folder))

    def batch(self, build: Build, feeds: Sequence[Feed], *, limit: float) -> tuple[StructType, Sequence[Sequence[Row]]]:
        """Run the job once, on static DataFrames."""
        with settings(self._spark, self._confs), interrupted_after(self._spark, limit):
            output = build([self._frame(feed) for feed in feeds])
            try:
                rows = output.withColumn(_PLACE, sf.monotonically_increasing_id()).collect()
            except PySparkException as error:
                raise job_error(error, batch=0) from error
        return output.schema, _by_partition(rows)

    def _frame(self, feed: Feed) -> DataFrame:
        """A static DataFrame with exactly these partitions: the rows are numbered, sent to their place and sorted."""
        [batch] = feed.batches
        columns = [StructField("__streamtight_partition", LongType()), StructField(_PLACE, LongType())]
        rows = [(place, offset, *row) for place, part in enumerate(batch) for offset, row in enumerate(part)]
        numbered = self._spark.createDataFrame(rows, StructType([*columns, *feed.struct.fields]))
        placed = numbered.repartitionById(len(batch), sf.col("__streamtight_partition").cast("int"))
        return placed.sortWithinPartitions(_PLACE).drop("__streamtight_partition", _PLACE)

    def _source(self, feed: Feed, place: int, folder: Path, piece: Piece) -> DataFrame:
        # The same name after a restart: Spark finds a source's offsets by its place in the plan, but shows the name.
        name = f"streamtight_{folder.name.replace('-', '_')}_{place}"
        self._spark.dataSource.register(_scripted(name, feed, piece))
        return self._spark.readStream.format(name).load()

    def _change_checkpoint(self, piece: Piece, folder: Path) -> None:
        if not (folder / "commits").is_dir():
            raise UnsupportedError(
                "a replayed batch or a flush through Spark Connect",
                needed="the checkpoint's folder, to change what the job remembers",
                came=f"a server that does not write to {folder}",
                hint="a server on this machine, or a classic session",
            )
        if piece.replays:
            uncommit(folder, piece.first - 1)
        if piece.flushes:
            flush_watermark(folder)

    def _run_query(
        self,
        output: DataFrame,
        piece: Piece,
        mode: str,
        folder: Path,
        target: Path,
        first: int,
        deadline: float,
        limit: float,
    ) -> dict[int, Mapping[str, Any]]:
        def keep(batch: DataFrame, number: int, target: str = str(target), place: str = _PLACE) -> None:
            from pyspark.sql import functions

            placed = batch.withColumn(place, functions.monotonically_increasing_id())
            placed.write.mode("overwrite").parquet(f"{target}/{number}")

        writer = output.writeStream.foreachBatch(keep).outputMode(mode)
        try:
            query = writer.option("checkpointLocation", str(folder)).start()
        except PySparkException as error:
            raise job_error(error, batch=None) from error
        try:
            while True:
                reports = {r["batchId"]: r for r in query.recentProgress if r["batchId"] >= first and _ran(r)}
                batch = max(reports, default=first - 1) + 1
                if not query.isActive:
                    raised = query.exception()  # asked for after it ended: before, there may not be one yet
                    if raised is None:
                        raise job_error(RuntimeError("the query was stopped while it ran"), batch=batch)
                    raise job_error(raised, batch=batch) from raised
                waits = query.status["message"] == "Waiting for data to arrive"
                if batch - first >= piece.batches + (0 if waits else MOST_IDLE):
                    return {number: report for number, report in reports.items() if number < batch}
                if time.monotonic() > deadline:
                    raise time_limit_error(f"batch {batch}", limit)
                time.sleep(_POLL_SECONDS)
        finally:
            query.stop()

    def _read(self, target: Path, batch: int) -> list[list[Row]]:
        return _by_partition(self._spark.read.parquet(f"{target}/{batch}").collect())


def _ran(report: Mapping[str, Any]) -> bool:
    """A query that waits reports the batch that it waits for, too; that one has written nothing."""
    return "addBatch" in report["durationMs"]


def _by_partition(rows: Sequence[Any]) -> list[list[Row]]:
    """The rows in the partitions that their last column names, in order and without that column."""
    partitions: list[list[Row]] = [[]]
    for row in sorted(rows, key=lambda row: row[-1]):
        place = row[-1] >> _OFFSET_BITS
        partitions += [[] for _ in range(place + 1 - len(partitions))]
        partitions[place].append(tuple(row)[:-1])
    return partitions


def _scripted(name: str, feed: Feed, piece: Piece) -> type[DataSource]:
    """A source that gives out one batch of the feed at a time, up to the end of the piece.

    The classes are made in here so that they travel to the server by value: it may not have this package.
    """
    batches = [list(batch) for batch in feed.batches] + ([[[]]] if piece.flushes else [])
    end = piece.last + 1 + piece.flushes
    struct = feed.struct

    class Part(InputPartition):
        def __init__(self, rows: Sequence[Row]) -> None:
            self.rows = rows

    class Reader(DataSourceStreamReader):
        def initialOffset(self) -> dict[str, int]:  # noqa: N802 - PySpark's name
            return {"batch": 0}

        def getDefaultReadLimit(self) -> Any:  # noqa: N802
            from pyspark.sql.streaming.datasource import ReadMaxRows

            return ReadMaxRows(1)

        def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802
            return {"batch": max(start["batch"], min(start["batch"] + 1, end))}

        def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
            return [Part(rows) for batch in batches[start["batch"] : end["batch"]] for rows in batch]

        def read(self, partition: Any) -> Iterator[tuple[Any, ...]]:
            return iter(partition.rows)

        def commit(self, end: dict[str, int]) -> None:
            pass

    class Scripted(DataSource):
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> StructType:
            return struct

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
            return Reader()

    return Scripted
