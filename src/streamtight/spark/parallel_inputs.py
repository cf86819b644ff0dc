"""The inputs of a plan on Spark: rows for the leaves, events for the workers on the driver, and what is refused."""

from __future__ import annotations

import itertools
import typing
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import TimestampNTZType, TimestampType

from streamtight.errors import InputError, UnsupportedError
from streamtight.method.parallelize.columns import KIND, StreamReader
from streamtight.method.parallelize.files import Files
from streamtight.method.parallelize.leaf import (
    NO_SHARE,
    NO_STREAM,
    PLACE,
    RANK,
    SHARE,
    TICK,
    ancestors,
    require_order,
    stream_column,
)
from streamtight.program.fork_join import HEARTBEAT, Key
from streamtight.program.plan import InputStream, Plan, Share, Worker
from streamtight.program.tags import STIR, Bucket, Values
from streamtight.stream.event import Event, origin, type_name, without_annotation, without_none

Source = Files | DataFrame
_HANDLED_ABOVE = -1
"""Instead of the number of a leaf: the event belongs to a worker on the driver, or is a heartbeat."""


def lane_of(share: Share) -> tuple[str, int, int]:
    """On which lane of which stream a share comes, and of how many."""
    return (share.stream, share.lane, share.lanes)


def stream_named(plan: Plan, name: str) -> InputStream:
    """The stream of this name."""
    return next(stream for stream in plan.streams if stream.name == name)


def reader_of(plan: Plan, name: str, shares: Sequence[Share]) -> StreamReader:
    """What takes the rows of a stream apart into these shares."""
    stream, place = stream_named(plan, name), plan.stream_place(name)
    return StreamReader(plan.program, name, place, list(stream.rates), [share.tags for share in shares])


def require_simple(plan: Plan) -> None:
    """Raise if a kind has a field that does not go through Arrow as it is."""
    for kind in (*plan.program.takes, *plan.program.gives):
        for name, declared in kind.fields.items():
            if not _is_simple(declared):
                raise UnsupportedError(
                    f"{kind.name}.{name} on Spark",
                    needed="a number, a text, a truth value, bytes, a date, a time, or a tuple of these (but of times)",
                    came=type_name(declared),
                    hint="a field for each part of it, or run(...) without Spark",
                )


def _is_simple(declared: Any, *, inside: bool = False) -> bool:
    plain = without_annotation(without_none(declared)[0])
    plain = without_annotation(without_none(plain)[0])
    if origin(plain) is tuple:
        return _is_simple(typing.get_args(plain)[0], inside=True)
    return plain in (int, float, str, bool, bytes, date, Decimal) or (plain in (datetime, timedelta) and not inside)


def require_one_sort_of_time(plan: Plan, sources: Mapping[str, Source]) -> None:
    """Raise if times of streams cannot be compared exactly: instants with clock times, floats with integers."""
    sorts: dict[str, str] = {}
    for name, source in sources.items():
        column = source.type_of(plan.program.time) if isinstance(source, Files) else _type_of(source, plan.program.time)
        sort = _sort_of_time(str(column))
        if sort is not None:
            sorts[name] = sort
    if len(set(sorts.values())) > 1:
        raise InputError(
            f"streams of {plan.program.name}",
            needed=f"times of one type in the column {plan.program.time!r}",
            came=", ".join(f"{sort} in {name!r}" for name, sort in sorts.items()),
            hint="a cast",
        )


def _type_of(frame: DataFrame, column: str) -> Any:
    if column not in frame.columns:
        return None
    return _name_in_arrow(frame.schema[column].dataType)


def _name_in_arrow(data_type: Any) -> str:
    """How the type of a time is called in Arrow, as far as times are told apart."""
    if isinstance(data_type, TimestampType):
        return "timestamp[us, tz=UTC]"
    return "timestamp[us]" if isinstance(data_type, TimestampNTZType) else data_type.simpleString()


def _sort_of_time(type_: str) -> str | None:
    if type_.startswith("timestamp"):
        return "instants" if "tz=" in type_ else "clock times"
    if type_ in ("float", "double", "halffloat"):
        return "floats"
    return "integers" if "int" in type_ else None


# -- rows for the leaves -----------------------------------------------------------------------------------------


def row_for_each_leaf(spark: SparkSession, plan: Plan) -> DataFrame:
    """A row in the partition of each leaf, so that there is a task for it: it reads its files itself."""
    count = len(plan.leaves)
    return spark.range(0, count, 1, count)


def rows_for_leaves(spark: SparkSession, plan: Plan, frames: Mapping[str, DataFrame]) -> DataFrame:
    """The rows of all frames, those of a leaf in the partition of its number, sorted by their keys."""
    places = _partitions(spark, len(plan.leaves))
    parts = []
    for name, frame in frames.items():
        place, stream = plan.stream_place(name), stream_named(plan, name)
        leaf, share = _leaf_and_share(plan, stream, frame)
        parts.append(
            frame.select(
                leaf.alias("leaf"),
                share.alias(SHARE),
                tick_column(plan, name, frame).alias(TICK),
                rank_column(plan, stream, frame).alias(RANK),
                F.lit(place).alias(PLACE),
                F.struct(*(F.col(f"`{column}`") for column in frame.columns)).alias(stream_column(place)),
            ).where(F.col("leaf") != _HANDLED_ABOVE)
        )
    # Spark leaves out tasks without rows; each leaf must come, since the others wait for it.
    wake = spark.range(len(plan.leaves)).select(
        F.col("id").cast("int").alias("leaf"), F.lit(NO_STREAM).alias(PLACE), F.lit(NO_SHARE).alias(SHARE)
    )
    together = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), [*parts, wake])
    target = reduce(
        lambda so_far, number: F.when(F.col("leaf") == number, F.lit(places[number])).otherwise(so_far),
        range(1, len(places)),
        F.lit(places[0]),
    )
    spread = together.withColumn("target", target).repartition(len(places), "target")
    return spread.sortWithinPartitions(TICK, RANK, PLACE).drop("leaf", "target")


def _leaf_and_share(plan: Plan, stream: InputStream, frame: DataFrame) -> tuple[Column, Column]:
    """The number of the leaf that handles a row, and that of its share; the first leaf says what nobody handles."""
    leaf, number = F.lit(0), F.lit(NO_SHARE)
    for worker in plan.workers:
        target = plan.leaves.index(worker) if worker.is_leaf else _HANDLED_ABOVE
        for place, share in enumerate(worker.shares):
            if share.stream == stream.name:
                mine = is_of(share, stream, frame)
                leaf = F.when(mine, F.lit(target)).otherwise(leaf)
                number = F.when(mine, F.lit(place)).otherwise(number)
    if KIND in frame.columns:
        leaf = F.when(F.col(KIND) == HEARTBEAT, F.lit(_HANDLED_ABOVE)).otherwise(leaf)
    return leaf, number


def is_of(share: Share, stream: InputStream, frame: DataFrame) -> Column:
    """Whether a row belongs to a share."""
    holds: Column = F.lit(True)
    if KIND in frame.columns and share.tags.kind.name is not None:
        holds = holds & F.col(KIND).eqNullSafe(share.tags.kind.name)
    for name, values in share.tags.fields:
        _require_column(stream.name, frame, name)
        holds = holds & _is_among(F.col(f"`{name}`"), values)
    if share.lanes > 1:
        # By what belongs to the events: other columns may be of any type, or differ from one look to the next.
        fields = {KIND, *(name for part in stream.rates for name in part.kind.names)}
        every = [F.col(f"`{column}`") for column in sorted(fields & set(frame.columns))]
        holds = holds & (F.pmod(F.xxhash64(*every), F.lit(share.lanes)) == share.lane)
    return holds


def _is_among(column: Column, values: Values) -> Column:
    if values is None:
        return F.lit(True)
    if isinstance(values, Bucket):
        text = F.coalesce(column.cast("string"), F.lit("None"))
        stirred = F.shiftright(F.crc32(text.cast("binary")) * F.lit(STIR), 16)
        return F.pmod(stirred, F.lit(values.of)) == values.index
    listed = column.isin([value for value in values if value is not None])
    return F.coalesce(listed, F.lit(None in values))


def tick_column(plan: Plan, name: str, frame: DataFrame) -> Column:
    """The time of a row, as a number."""
    time = plan.program.time
    _require_column(name, frame, time)
    declared = frame.schema[time].dataType
    column = F.col(f"`{time}`")
    if isinstance(declared, TimestampType):
        return F.unix_micros(column)
    if isinstance(declared, TimestampNTZType):
        # By the clock on the wall, as the rows themselves are read: what Spark has for this asks the session's zone.
        minutes = (F.unix_date(column.cast("date")).cast("long") * 24 + F.hour(column)) * 60 + F.minute(column)
        seconds = minutes * 60 + F.extract(F.lit("SECOND"), column)
        return (seconds * 1_000_000).cast("long")
    return column


def rank_column(plan: Plan, stream: InputStream, frame: DataFrame) -> Column:
    """The rank of a row's kind; that of a heartbeat is behind all."""
    kinds = list(dict.fromkeys(part.kind for part in stream.rates))
    if KIND not in frame.columns and len(kinds) == 1:
        return F.lit(plan.program.rank(kinds[0]))
    _require_column(stream.name, frame, KIND)
    rank: Column = F.lit(len(plan.program.takes))
    for kind in plan.program.takes:
        rank = F.when(F.col(KIND) == kind.name, F.lit(plan.program.rank(kind))).otherwise(rank)
    return rank


def _require_column(stream: str, frame: DataFrame, name: str) -> None:
    if name not in frame.columns:
        raise InputError(
            f"stream {stream!r}",
            needed=f"a column {name!r}",
            came=", ".join(frame.columns),
            hint="df.withColumnRenamed",
        )


_PARTITIONS: dict[int, list[int]] = {}


def _partitions(spark: SparkSession, count: int) -> list[int]:
    """For each partition a number that Spark, which places rows by a hash, puts there."""
    if count not in _PARTITIONS:
        ids = spark.range(0, 64 * count).select("id", F.pmod(F.hash("id"), F.lit(count)).alias("place")).collect()
        _PARTITIONS[count] = [next(row["id"] for row in ids if row["place"] == place) for place in range(count)]
    return _PARTITIONS[count]


# -- events of the workers on the driver -------------------------------------------------------------------------


Found = tuple[Key, Event, Share]


def inner_events(plan: Plan, sources: Mapping[str, Source]) -> dict[Worker, list[Found]]:
    """The events of workers with children, in order, with their keys and shares."""
    found: dict[Worker, list[Found]] = {}
    for worker in plan.workers:
        if worker.is_leaf:
            continue
        mine: list[Found] = []
        for lane, some in itertools.groupby(sorted(worker.shares, key=lane_of), lane_of):
            shares = list(some)
            reader = reader_of(plan, lane[0], shares)
            for batch in _sorted_batches(plan, sources[lane[0]], shares, lane):
                for number, rows in reader.rows(batch):
                    rank, place = plan.program.rank(rows.kind), plan.stream_place(lane[0])
                    for tick, event in zip(rows.ticks.tolist(), rows.events(), strict=True):
                        mine.append(((tick, rank, place), event, shares[number]))
        found[worker] = sorted(mine, key=lambda each: each[0])
    return found


def _sorted_batches(plan: Plan, source: Source, shares: Sequence[Share], lane: tuple[str, int, int]) -> Iterable[Any]:
    if isinstance(source, Files):
        return source.batches(*lane[1:])
    stream = stream_named(plan, lane[0])
    wanted = reduce(lambda one, other: one | other, [is_of(share, stream, source) for share in shares])
    chosen = source.where(wanted)
    # As one value: a number that stands alone, as the rank of a stream of one kind, is the place of a column for Spark.
    by_key = chosen.orderBy(F.struct(tick_column(plan, lane[0], source), rank_column(plan, stream, source)))
    batches: Iterable[Any] = by_key.toArrow().to_batches()
    return batches


def require_known_order(
    plan: Plan, worker: Worker, found: Mapping[Worker, Sequence[Found]], sources: Mapping[str, Source]
) -> None:
    """Raise if nobody can say which of two dependent events is first."""
    above = [each for other in ancestors(plan, worker) for each in found[other]]
    together = sorted([*found[worker], *above], key=lambda each: each[0])
    for key, alike in itertools.groupby(together, key=lambda each: each[0]):
        some = [(event, share, isinstance(sources[share.stream], Files)) for _, event, share in alike]
        require_order(plan.program, key, some)
