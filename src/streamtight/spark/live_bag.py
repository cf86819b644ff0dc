"""A live comparison in which no order matters: the rows of both sides are bags, and the JVM compares them.

Most micro-batches have the same rows on both sides. Then a pass that adds up hashes is enough: no row is sorted,
shuffled or seen by Python. If the sums differ, or rows wait from before, the rows are grouped and counted, and those
that are left over wait: as Parquet files in the checkpoint, a folder for each micro-batch, so that a batch that runs
again begins where it began before.

Rows that are equal wait in a queue: the one that came first finds its match first, which says for how long rows wait.
"""

from __future__ import annotations

import secrets
import time
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
        # The steps of the first pass. They are steps so that Spark has no common subexpressions to look for: it would
        # name these differently at each start, and compile all of it again.
        flags = [f"{name}_is_null" for name in self._names]  # nulls leave no trace: (null, 1) would be (1, null)
        self._flags = [sf.isnull(name).alias(flag) for name, flag in zip(self._names, flags, strict=True)]
        # New salts, so that no data can be made to fit them; bytes, since numbers become part of the compiled code.
        salts = {name: sf.lit(secrets.token_bytes(8)) for name in ("one", "other")}
        self._hashes = [sf.xxhash64(salt, *self._names, *flags).alias(name) for name, salt in salts.items()]
        # Four sums, each of half a hash: 128 bits, and none overflows below two thousand million rows.
        halves = [
            half
            for one in map(sf.col, salts)
            for half in (one.bitwiseAND(sf.lit(_LOW_HALF)), sf.shiftrightunsigned(one, 32))
        ]
        sums = [sf.coalesce(sf.sum(sf.col("w") * half), sf.lit(0)) for half in (sf.lit(1), *halves)]
        self._added_up = [sf.count("*"), *sums]

    def both(self, left: DataFrame, right: DataFrame) -> DataFrame:
        """The rows of both streams, with their side."""
        one, other = (self._signed(frame, sign) for frame, sign in zip((left, right), _SIGNS, strict=True))
        return one.union(other)

    def _signed(self, frame: DataFrame, sign: int) -> DataFrame:
        typed = [
            sf.col(_quoted(column.name)).cast(column.dataType).alias(name)
            for name, column in zip(self._names, self._columns.fields, strict=True)
        ]
        return frame.select(sf.lit(sign).alias("side"), *typed)

    def reports(self, frame: DataFrame, batch: int, book: Book, at: int | None = None) -> dict[int, Report]:
        """What there is to say of a micro-batch, as that of the only bucket; nothing if it has no rows.

        at   when it began, in milliseconds: now. It is not a column of Spark's current_timestamp(), since Spark would
             generate and compile its code anew for each value
        """
        at = int(time.time() * 1000) if at is None else at
        report = self._step(frame, batch, at, book.before_batch(batch, 0) or Report(0, (0, 0)))
        return {} if report is None else {0: report}

    def _step(self, frame: DataFrame, batch: int, at: int, before: Report) -> Report | None:
        waits = before.unmatched != (0, 0)
        # Read once if it is read more than once; a batch whose rows agree is read once anyway.
        kept = frame.persist() if waits or self._then is not None else frame
        try:
            if self._then is not None:
                left, right = self._sides(kept)
                self._then(left, right, batch)
            totals = self._totals(kept)
            if totals.seen == (0, 0):
                return None
            if not waits and totals.seen[0] == totals.seen[1] and not any(totals.sums):
                return Report(at, _seen(before, totals), matched=totals.seen[0])
            return self._counted(kept, batch, at, before, totals, is_repeated=kept is not frame)
        finally:
            if kept is not frame:
                kept.unpersist()

    def _sides(self, frame: DataFrame) -> list[DataFrame]:
        """The rows of either side, as they came."""
        named = [sf.col(name).alias(column.name) for name, column in zip(self._names, self._columns, strict=True)]
        return [frame.where(sf.col("side") == sign).select(*named) for sign in _SIGNS]

    # -- the first pass ----------------------------------------------------------------------------------------------

    def _totals(self, frame: DataFrame) -> _Totals:
        both, more, *sums = self._sums(frame, sf.col("side"))
        return _Totals(((both + more) // 2, (both - more) // 2), tuple(sums))

    def _sums(self, frame: DataFrame, weight: Column) -> tuple[Any, ...]:
        """The number of rows, the sum of their weights, and the sums of their hashes, as often as their weights say."""
        flagged = frame.select(weight.cast("long").alias("w"), *self._names, *self._flags)
        return tuple(flagged.select("w", *self._hashes).agg(*self._added_up).collect()[0])

    # -- row by row --------------------------------------------------------------------------------------------------

    def _counted(
        self, frame: DataFrame, batch: int, at: int, before: Report, totals: _Totals, *, is_repeated: bool
    ) -> Report:
        """Match row against row, and keep what is left over."""
        differing = self._differing(frame, self._waiting(frame, before)).persist()
        try:
            if not is_repeated:
                self._require_same_again(differing, totals, batch)
            queues = self._queues(differing, at)
            place = self._folder.waiting_place(batch)
            queues.write.mode("overwrite").parquet(place)
            written = frame.sparkSession.read.schema(queues.schema).parquet(place)
            return self._report(written, batch, at, before, totals)
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
        again = self._sums(differing, sf.col("left") - sf.col("right"))
        if again[2:] != totals.sums:
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

    def _report(self, queues: DataFrame, batch: int, at: int, before: Report, totals: _Totals) -> Report:
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
        wait = at - min(at, at if row[2] is None else row[2])
        return Report(at, _seen(before, totals), unmatched, tuple(oldest), matched, wait, waiting_in=batch)

    def _oldest(self, queue: DataFrame, side: str) -> Sequence[Waiting]:
        mark = sf.xxhash64("at", *self._names).bitwiseAND(sf.lit((1 << 62) - 1)).alias("mark")
        rows = queue.select(*self._names, "at", mark).orderBy("at", "mark").limit(SHOWN).collect()
        return [Waiting(Place(side, -1 - row["mark"], self._event(row)), row["at"]) for row in rows]

    def _event(self, row: Row) -> Any:
        return self._table.from_row(tuple(row)[: len(self._names)])


def _seen(before: Report, totals: _Totals) -> tuple[int, int]:
    return before.seen[0] + totals.seen[0], before.seen[1] + totals.seen[1]


def _quoted(name: str) -> str:
    return "`{}`".format(name.replace("`", "``"))
