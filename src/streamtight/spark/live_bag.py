"""A live comparison in which no order matters: the rows of both sides are bags, and the JVM compares them.

Most micro-batches have the same rows on both sides. Then a pass that adds up hashes is enough: no row is sorted,
shuffled or seen by Python. If the sums differ, or rows wait from before, the rows are grouped and counted, and those
that are left over wait: as Parquet files in the checkpoint, a folder for each micro-batch, so that a batch that runs
again begins where it began before.

Rows that are equal wait in a queue: the one that came first finds its match first, which says for how long rows wait.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from streamtight.errors import JobError, TraceError
from streamtight.method.compare.matcher import SIDES, Place
from streamtight.spark.live_book import Book, Folder
from streamtight.spark.live_bucket import SHOWN, Report, Waiting
from streamtight.spark.rows import Table

Then = Callable[[DataFrame, DataFrame, int], object]

_LEFT, _RIGHT = 1, -1
_SIGNS = (_LEFT, _RIGHT)
_HASHED = (
    *(BinaryType, BooleanType, ByteType, DateType, DecimalType, DoubleType, FloatType, IntegerType, LongType),
    *(ShortType, TimestampNTZType, TimestampType),
)
_LOW_HALF = 0xFFFFFFFF
_PIECES = ("a", "b", "c", "d")
"""Four sums, each of half a hash: 128 bits, and no sum overflows below two thousand million rows."""


def can_be_counted(columns: StructType) -> bool:
    """Are Spark's groups of these columns what we call equal, and does no hash overlook a part of a value?

    A hash of Spark skips nulls, so those inside arrays and structs leave no trace in it; maps have none.
    """
    return all(_is_plain(column.dataType) for column in columns.fields)


def _is_plain(data_type: DataType) -> bool:
    if isinstance(data_type, StringType):
        return data_type.simpleString() == "string"  # no collation, by which other texts are equal
    return isinstance(data_type, _HASHED)


class _Totals(NamedTuple):
    """What the first pass finds out about a micro-batch."""

    at: int
    """When the batch began, in milliseconds."""
    seen: tuple[int, int]
    sums: tuple[int, ...]
    """All 0 if both sides have the same rows; else not, but for a chance of one in 2 ** 128."""


class Bag:
    """The rows of both sides, micro-batch by micro-batch. `then` is what the jobs go on to do with them."""

    def __init__(self, folder: Folder, table: Table, columns: StructType, then: Then | None) -> None:
        self._folder = folder
        self._table = table
        self._columns = columns
        self._names = [f"c{place}" for place in range(len(columns.fields))]
        self._then = then
        # New ones, so that no data can be made to fit them; bytes, since Spark writes numbers into the code that it
        # generates, and would compile it anew at each start.
        self._salts = [secrets.token_bytes(8) for _ in range(2)]

    def both(self, left: DataFrame, right: DataFrame) -> DataFrame:
        """The rows of both streams, with their side, and the time at which their batch began."""
        one, other = (self._signed(frame, sign) for frame, sign in zip((left, right), _SIGNS, strict=True))
        return one.union(other)

    def _signed(self, frame: DataFrame, sign: int) -> DataFrame:
        typed = [
            sf.col(_quoted(column.name)).cast(column.dataType).alias(name)
            for name, column in zip(self._names, self._columns.fields, strict=True)
        ]
        # The batch's own time, for all of its rows; as text, since Spark would generate other code for each number.
        at = sf.unix_millis(sf.current_timestamp()).cast("string").alias("at")
        return frame.select(sf.lit(sign).alias("side"), at, *typed)

    def reports(self, frame: DataFrame, batch: int, book: Book) -> dict[int, Report]:
        """What there is to say of a micro-batch, as that of the only bucket; nothing if it has no rows."""
        report = self._step(frame, batch, book.before_batch(batch, 0) or Report(0, (0, 0)))
        return {} if report is None else {0: report}

    def _step(self, frame: DataFrame, batch: int, before: Report) -> Report | None:
        waits = before.unmatched != (0, 0)
        # Read once if it is read more than once; a batch whose rows agree is read once anyway.
        kept = frame.persist() if waits or self._then is not None else frame
        try:
            if self._then is not None:
                left, right = self._sides(kept)
                self._then(left, right, batch)
            totals = self._totals(kept)
            if totals is None:
                return None
            seen = (before.seen[0] + totals.seen[0], before.seen[1] + totals.seen[1])
            if not waits and totals.seen[0] == totals.seen[1] and not any(totals.sums):
                return Report(totals.at, seen, matched=totals.seen[0])
            return self._counted(kept, batch, before, seen, totals, is_repeated=kept is not frame)
        finally:
            if kept is not frame:
                kept.unpersist()

    def _sides(self, frame: DataFrame) -> list[DataFrame]:
        """The rows of either side, as they came."""
        named = [sf.col(name).alias(column.name) for name, column in zip(self._names, self._columns, strict=True)]
        return [frame.where(sf.col("side") == sign).select(*named) for sign in _SIGNS]

    # -- the first pass ----------------------------------------------------------------------------------------------

    def _totals(self, frame: DataFrame) -> _Totals | None:
        ones = [sf.count_if(sf.col("side") == sign) for sign in _SIGNS]
        row: Any = frame.agg(sf.max("at"), *ones, *self._sums("side")).first()
        return None if row[0] is None else _Totals(int(row[0]), (row[1], row[2]), tuple(row[3:]))

    def _sums(self, weight: str) -> list[Column]:
        # Nulls leave no trace in a hash: without the flags, (null, 1) would be (1, null).
        hashed = [part for name in self._names for part in (sf.col(name), sf.isnull(name))]
        hashes = [sf.xxhash64(sf.lit(salt), *hashed) for salt in self._salts]
        halves = [
            half for one in hashes for half in (one.bitwiseAND(sf.lit(_LOW_HALF)), sf.shiftrightunsigned(one, 32))
        ]
        sums = (sf.sum(sf.col(weight) * half) for half in halves)
        return [sf.coalesce(total, sf.lit(0)).alias(name) for total, name in zip(sums, _PIECES, strict=True)]

    # -- row by row --------------------------------------------------------------------------------------------------

    def _counted(
        self, frame: DataFrame, batch: int, before: Report, seen: tuple[int, int], totals: _Totals, *, is_repeated: bool
    ) -> Report:
        """Match row against row, and keep what is left over."""
        differing = self._differing(frame, self._waiting(frame, before)).persist()
        try:
            if not is_repeated:
                self._require_same_again(differing, totals, batch)
            queues = self._queues(differing, totals.at)
            place = self._folder.waiting_place(batch)
            queues.write.mode("overwrite").parquet(place)
            written = frame.sparkSession.read.schema(queues.schema).parquet(place)
            return self._report(written, batch, before, seen, totals)
        finally:
            differing.unpersist()

    def _waiting(self, frame: DataFrame, before: Report) -> DataFrame | None:
        """The rows that wait from before."""
        if before.unmatched == (0, 0):
            return None
        place = self._folder.waiting_place(before.waiting_in)
        if not self._folder.exists(place):
            raise TraceError(
                f"compare_live(checkpoint={self._folder.path!r})",
                needed=f"the {sum(before.unmatched)} rows that wait, in {place}",
                came="no such files",
                hint="a new folder, to begin anew",
            )
        kinds = ", ".join(
            f"{name} {column.dataType.simpleString()}" for name, column in zip(self._names, self._columns, strict=True)
        )
        read = frame.sparkSession.read.schema(f"{kinds}, side int, at long, n long, took long")
        return read.parquet(place).where("n > 0")

    def _differing(self, frame: DataFrame, waiting: DataFrame | None) -> DataFrame:
        """The rows that do not come equally often on both sides, or for which others wait; with their queues."""
        came = frame.select(
            *self._names, "side", sf.lit(None).cast("struct<side: int, at: bigint, n: bigint>").alias("old")
        )
        if waiting is not None:
            old = sf.struct(sf.col("side"), sf.col("at"), sf.col("n")).alias("old")
            came = came.union(waiting.select(*self._names, sf.lit(0), old))
        groups = came.groupBy(*self._names).agg(
            *(sf.count_if(sf.col("side") == sign).alias(name) for sign, name in zip(_SIGNS, SIDES, strict=True)),
            sf.collect_list("old").alias("old"),  # which leaves nulls out
        )
        return groups.where((sf.col("left") != sf.col("right")) | (sf.size("old") > 0))

    def _require_same_again(self, differing: DataFrame, totals: _Totals, batch: int) -> None:
        again: Any = differing.withColumn("n", sf.col("left") - sf.col("right")).agg(*self._sums("n")).first()
        if tuple(again) != totals.sums:
            raise JobError(
                f"compare_live(...), micro-batch {batch}",
                needed="jobs that give the same rows if they read the same input again",
                came="other rows at the second reading",
                hint="no random numbers, clocks or services in the columns that are compared; or then=..., by which a "
                "micro-batch is read once",
                batch=batch,
                raised="NOT_REPEATABLE",
            )

    def _queues(self, differing: DataFrame, at: int) -> DataFrame:
        """For each row, side and time how many still wait (n), and how many of those found their match now (took)."""
        new = [
            sf.struct(sf.lit(sign).alias("side"), sf.lit(at).alias("at"), sf.col(name).alias("n"))
            for sign, name in zip(_SIGNS, SIDES, strict=True)
        ]
        entries = differing.select(*self._names, sf.explode(sf.concat("old", sf.array(*new))).alias("e"))
        entries = entries.select(*self._names, "e.side", "e.at", "e.n").where("n > 0")
        equal = Window.partitionBy(*self._names)
        older = Window.partitionBy(*self._names, "side").orderBy("at").rowsBetween(Window.unboundedPreceding, -1)
        others = sf.sum("n").over(equal) - sf.sum("n").over(Window.partitionBy(*self._names, "side"))
        before = sf.coalesce(sf.sum("n").over(older), sf.lit(0))
        left = sf.greatest(sf.lit(0), sf.least(sf.col("n"), before + sf.col("n") - others))
        counted = entries.select(*self._names, "side", "at", left.cast("long").alias("left"), "n")
        return counted.select(
            *self._names, "side", "at", sf.col("left").alias("n"), (sf.col("n") - sf.col("left")).alias("took")
        )

    def _report(self, queues: DataFrame, batch: int, before: Report, seen: tuple[int, int], totals: _Totals) -> Report:
        counts = [sf.coalesce(sf.sum(sf.when(sf.col("side") == sign, sf.col("n"))), sf.lit(0)) for sign in _SIGNS]
        since = sf.min(sf.when(sf.col("took") > 0, sf.col("at")))
        row: Any = queues.agg(*counts, since).first()
        unmatched = (row[0], row[1])
        oldest = [
            waiting
            for side, sign in zip(SIDES, _SIGNS, strict=True)
            for waiting in self._oldest(queues.where((sf.col("side") == sign) & (sf.col("n") > 0)), side)
        ]
        self._folder.forget_waiting(but={batch, before.waiting_in})
        matched = totals.seen[0] + before.unmatched[0] - unmatched[0]
        wait = totals.at - min(totals.at, totals.at if row[2] is None else row[2])
        return Report(totals.at, seen, unmatched, tuple(oldest), matched, wait, waiting_in=batch)

    def _oldest(self, queue: DataFrame, side: str) -> Sequence[Waiting]:
        mark = sf.xxhash64("at", *self._names).bitwiseAND(sf.lit((1 << 62) - 1)).alias("mark")
        rows = queue.select(*self._names, "at", mark).orderBy("at", "mark").limit(SHOWN).collect()
        return [Waiting(Place(side, -1 - row["mark"], self._event(row)), row["at"]) for row in rows]

    def _event(self, row: Row) -> Any:
        return self._table.from_row(tuple(row)[: len(self._names)])


def _quoted(name: str) -> str:
    return "`{}`".format(name.replace("`", "``"))
