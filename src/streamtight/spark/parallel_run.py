"""A plan on Spark: a task for each leaf, in one barrier stage; the other workers on the driver."""

from __future__ import annotations

import gc
import inspect
import itertools
import pickle
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import reduce
from typing import Any

from pyspark import TaskContext, cloudpickle
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType, TimestampNTZType, TimestampType

from streamtight.errors import EncodingError, InputError, JobError, PlanError, UnsupportedError
from streamtight.method.parallelize.columns import (
    KIND,
    Outputs,
    StreamReader,
    output_batches,
    output_table,
    pieces_batch,
    pieces_of,
)
from streamtight.method.parallelize.files import Files
from streamtight.method.parallelize.gang import Address, Gang, Lost, Member, Raised, Stopped, packed_plainly
from streamtight.method.parallelize.leaf import (
    NO_SHARE,
    NO_STREAM,
    PLACE,
    RANK,
    SHARE,
    TICK,
    BatchFeed,
    Feed,
    Leaf,
    MixedFeed,
    ancestors,
    require_order,
    stream_column,
)
from streamtight.program.fork_join import HEARTBEAT, Key, State
from streamtight.program.plan import InputStream, Plan, Share, Worker
from streamtight.program.tags import STIR, Bucket, Values
from streamtight.spark.rows import Table, struct_of
from streamtight.spark.session import is_connect, session
from streamtight.stream.event import Event, Kind, origin, type_name, without_annotation, without_none

Source = Files | DataFrame
_FROZEN: list[bool] = []
"""Whether this process has frozen what it had loaded before the first leaf."""
_PACKED = "kind string, piece binary"
_HANDLED_ABOVE = -1
"""Instead of the number of a leaf: the event belongs to a worker on the driver, or is a heartbeat."""


class BoundedRun:
    """A run of a plan on inputs that end."""

    def __init__(self, plan: Plan, inputs: Mapping[str, Any], spark: SparkSession | None = None) -> None:
        self._plan = plan
        self._sources: dict[str, Source] = {
            name: given if hasattr(given, "sparkSession") else Files.at(name, given) for name, given in inputs.items()
        }
        for name, source in self._sources.items():
            if isinstance(source, DataFrame) and source.isStreaming:
                raise InputError(
                    f"stream {name!r}",
                    needed="a DataFrame that ends",
                    came="a streaming one",
                    hint="start(inputs, checkpoint=..., output=...)",
                )
        frames = [source for source in self._sources.values() if isinstance(source, DataFrame)]
        self._spark = spark or (frames[0].sparkSession if frames else session())

    def outputs(self, folder: str | None = None) -> DataFrame:
        """Run, and give the outputs."""
        given = Given(self._plan)
        if folder is None:
            pieces, _ = run(self._spark, self._plan, self._sources, None, collected)
            return given.frame(self._spark, pieces)
        written = Written(self._spark, given, folder)
        if written.exists:
            raise InputError(
                "on_spark(output=...)", needed="a new folder", came=f"{folder}, which exists", hint="another"
            )
        with written:
            run(self._spark, self._plan, self._sources, None, written.write)
        return self._spark.read.schema(given.struct).parquet(folder)


class Written:
    """A folder of outputs, written beside its place and moved there when the run has come to a good end.

    The task of a leaf ends well even if the program has raised, so that Spark does not try it again: that Spark has
    written something says nothing.
    """

    def __init__(self, spark: SparkSession, given: Given, folder: str) -> None:
        parent, _, name = folder.rstrip("/").rpartition("/")
        self._given = given
        self._aside = f"{parent}/_{name}.new" if parent else f"_{name}.new"
        path = spark._jvm.org.apache.hadoop.fs.Path  # type: ignore[union-attr]
        self._from, self._to = path(self._aside), path(folder)
        self._files = self._to.getFileSystem(spark._jsc.hadoopConfiguration())

    @property
    def exists(self) -> bool:
        """Whether there is something in its place."""
        return bool(self._files.exists(self._to))

    def write(self, packed: DataFrame) -> None:
        """Write these outputs."""
        self._given.unpacked(packed).write.mode("overwrite").parquet(self._aside)

    def __enter__(self) -> Written:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._files.delete(self._to, True)
            self._files.rename(self._from, self._to)
        else:
            self._files.delete(self._from, True)


def collected(packed: DataFrame) -> list[tuple[str, bytes]]:
    """The packed outputs, on the driver."""
    return [(row[0], bytes(row[1])) for row in packed.collect()]


class Given:
    """The outputs of a program as a table: one kind, or several with a column that says which."""

    def __init__(self, plan: Plan) -> None:
        kinds = tuple(plan.program.gives)
        empty = next((kind for kind in kinds if not kind.fields), None)
        if not kinds or empty is not None:
            raise PlanError(
                f"{plan.program.name}.gives",
                needed="kinds of outputs, with a field or more",
                came=repr(kinds if empty is None else empty),
                hint="gives = (Total,)",
            )
        self.struct: StructType = Table(kinds).struct
        self._named = len(kinds) > 1
        self.schemas = {kind: _arrow(struct_of(kind)) for kind in kinds}

    def frame(self, spark: SparkSession, pieces: Iterable[tuple[str, bytes]]) -> DataFrame:
        """What is in these pieces."""
        table = output_table(pieces, _arrow(self.struct), named=self._named)
        return spark.createDataFrame(table, self.struct) if table.num_rows else spark.createDataFrame([], self.struct)

    def unpacked(self, packed: DataFrame) -> DataFrame:
        """What is in packed rows."""
        schema, named = _arrow(self.struct), self._named

        def unpack(batches: Iterable[Any]) -> Iterator[Any]:
            return output_batches(pieces_of(batches), schema, named=named)

        return packed.mapInArrow(unpack, self.struct)


def _arrow(struct: StructType) -> Any:
    """The type of these rows in Arrow."""
    zone: dict[str, Any] = (
        {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
    )  # from 4.1 on
    return to_arrow_schema(struct, **zone)


def run(
    spark: SparkSession,
    plan: Plan,
    sources: Mapping[str, Source],
    first: bytes | None,
    action: Callable[[DataFrame], Any],
) -> tuple[Any, State]:
    """Run a plan on these sources from a state; gives what the action made of the packed outputs, and the last state.

    first    the state to begin with, pickled; without it, that of `init`
    action   what is done with the outputs: it is called once, and starts the one job of the run
    """
    _require_slots(spark, len(plan.leaves))
    given = Given(plan)
    files = {name: source for name, source in sources.items() if isinstance(source, Files)}
    frames = {name: source for name, source in sources.items() if not isinstance(source, Files)}
    _require_simple(plan)
    _require_one_sort_of_time(plan, sources)
    found = inner_events(plan, sources)
    for worker in found:
        _require_order(plan, worker, found, sources)
    events = {worker: [(key, event) for key, event, _ in mine] for worker, mine in found.items()}
    host, bind = _addresses(spark)

    def outputs() -> tuple[Callable[[Event], None], Callable[[], list[tuple[str, bytes]]]]:
        made = Outputs(given.schemas)
        return made, made.taken

    state = first or _first_state(plan)
    gang = Gang(plan, state, events, outputs, host=host, bind=bind, pack=packed_state)
    try:
        task = LeafTask(plan, gang.address, gang.key, files, frozenset(frames), given.schemas)
        rows = _rows_for_leaves(spark, plan, frames) if frames else _row_for_each_leaf(spark, plan)
        packed = rows.mapInArrow(task, _PACKED, barrier=True)
        try:
            # The shuffle lets Spark try the barrier stage again if a task is lost: it does not do so for a last stage.
            made = action(packed.repartition(len(plan.leaves)))
        except Exception as error:
            raise (_error(plan, gang.raised) if gang.raised is not None else error) from error
        is_settled = gang.is_settled()
        if gang.raised is not None:
            raise _error(plan, gang.raised)
        if not is_settled:
            raise EncodingError(
                plan.program.name, needed="a run of all leaves", came="outputs of fewer", hint="please report it"
            )
        return made, gang.state
    finally:
        gang.close()


def packed_state(state: State) -> bytes:
    """The bytes of a state; with the classes in it that only the user's script has, as Spark sends functions."""
    try:
        plain = packed_plainly(state)
    except (pickle.PicklingError, AttributeError, TypeError):
        plain = b"__main__"
    modules = ("__main__", *cloudpickle.list_registry_pickle_by_value())  # type: ignore[no-untyped-call]
    if not any(name.encode() in plain for name in modules):
        return plain
    packed: bytes = cloudpickle.dumps(state)  # type: ignore[no-untyped-call]
    return packed


def _first_state(plan: Plan) -> bytes:
    try:
        return packed_state(plan.program.init())
    except Exception as error:
        raise PlanError(
            f"{plan.program.name}.init()",
            needed="a state that can be pickled, since states travel between processes",
            came=f"{type(error).__name__}: {error}",
            hint="tuples, dicts, dataclasses",
        ) from error


def _require_simple(plan: Plan) -> None:
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


def _require_one_sort_of_time(plan: Plan, sources: Mapping[str, Source]) -> None:
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
    return to_arrow_type_name(frame.schema[column].dataType)


def to_arrow_type_name(data_type: Any) -> str:
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


def _error(plan: Plan, raised: Raised) -> Exception:
    if raised.error is not None:
        return raised.error
    return JobError(
        plan.program.name,
        needed="no exception",
        came=raised.text,
        hint=f"look at\n{raised.trace}",
        batch=None,
        raised=raised.text,
    )


# -- the tasks ---------------------------------------------------------------------------------------------------


@dataclass
class LeafTask:
    """What the task of a leaf does: called with its rows, it gives its outputs."""

    plan: Plan
    address: Address
    key: bytes
    files: Mapping[str, Files]
    frames: frozenset[str]
    schemas: Mapping[Kind, Any]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        if context is not None and not _FROZEN:
            # The collector of garbage need not go through all that Spark has loaded again and again.
            gc.freeze()
            _FROZEN.append(True)
        return self.of_leaf(0 if context is None else context.partitionId(), batches)

    def of_leaf(self, number: int, batches: Iterator[Any]) -> Iterator[Any]:
        """What the task of the leaf of this number does."""
        try:
            member = Member(self.address, self.key, number, packed_state)
        except Stopped:
            return
        leaf = Leaf(self.plan, self.plan.leaves[number], Outputs(self.schemas), unordered=self.frames)
        try:
            for pieces in leaf.run(member.state, self._feeds(number, batches), member.syncs, member.exchange):
                if pieces:
                    yield pieces_batch(pieces)
            rest = member.finish(leaf.state)
            if rest:
                yield pieces_batch(rest)
        except Stopped:
            return
        except (Lost, GeneratorExit):  # somebody is gone: Spark shall try again
            raise
        except BaseException as error:  # the border of user code
            member.fail(error)
        finally:
            member.close()

    def _feeds(self, number: int, batches: Iterator[Any]) -> list[Feed]:
        shares = self.plan.leaves[number].shares
        feeds: list[Feed] = []
        for lane, mine in itertools.groupby(
            sorted(range(len(shares)), key=lambda n: _lane(shares[n])), lambda n: _lane(shares[n])
        ):
            numbers = list(mine)
            if lane[0] in self.files:
                reader = _reader(self.plan, lane[0], [shares[n] for n in numbers])
                feeds.append(BatchFeed(self.files[lane[0]].batches(*lane[1:]), reader, numbers))
        if not self.frames:
            for _ in batches:  # the one row that made this task: Spark keeps a Python that has read all
                pass
            return feeds
        readers = {}
        for name in self.frames:
            place = self.plan.stream_place(name)
            readers[place, NO_SHARE] = _reader(self.plan, name, [])
            for n, share in enumerate(shares):
                if share.stream == name:
                    readers[place, n] = _reader(self.plan, name, [share])
        return [*feeds, MixedFeed(batches, readers)]


def _lane(share: Share) -> tuple[str, int, int]:
    return (share.stream, share.lane, share.lanes)


def stream_named(plan: Plan, name: str) -> InputStream:
    """The stream of this name."""
    return next(stream for stream in plan.streams if stream.name == name)


def _reader(plan: Plan, name: str, shares: Sequence[Share]) -> StreamReader:
    stream, place = stream_named(plan, name), plan.stream_place(name)
    return StreamReader(plan.program, name, place, list(stream.rates), [share.tags for share in shares])


# -- rows for the leaves -----------------------------------------------------------------------------------------


def _row_for_each_leaf(spark: SparkSession, plan: Plan) -> DataFrame:
    count = len(plan.leaves)
    return spark.range(0, count, 1, count)


def _rows_for_leaves(spark: SparkSession, plan: Plan, frames: Mapping[str, DataFrame]) -> DataFrame:
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
        for lane, some in itertools.groupby(sorted(worker.shares, key=_lane), _lane):
            shares = list(some)
            reader = _reader(plan, lane[0], shares)
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


def _require_order(
    plan: Plan, worker: Worker, found: Mapping[Worker, Sequence[Found]], sources: Mapping[str, Source]
) -> None:
    """Raise if nobody can say which of two dependent events is first."""
    above = [each for other in ancestors(plan, worker) for each in found[other]]
    together = sorted([*found[worker], *above], key=lambda each: each[0])
    for key, alike in itertools.groupby(together, key=lambda each: each[0]):
        some = [(event, share, isinstance(sources[share.stream], Files)) for _, event, share in alike]
        require_order(plan.program, key, some)


# -- where it runs -----------------------------------------------------------------------------------------------


def _addresses(spark: SparkSession) -> tuple[str | None, str | None]:
    """Where tasks find the driver, and where the driver listens; None if they are on this machine."""
    conf = spark.sparkContext.getConf()
    master = str(spark.sparkContext.master)
    if master == "local" or master.startswith("local["):
        return None, None
    host = conf.get("spark.driver.host") or "127.0.0.1"
    return host, conf.get("spark.driver.bindAddress") or host


def _require_slots(spark: SparkSession, leaves: int) -> None:
    """Raise if Spark cannot run all leaves at once: it would wait for ten minutes, and then say so."""
    if is_connect(spark):
        raise UnsupportedError(
            "parallelize on Spark Connect",
            needed="a classic session, since the tasks talk to the driver",
            came="a Spark Connect session",
            hint="SparkSession.builder.master(...), or run(...) without Spark",
        )
    scala = spark.sparkContext._jsc.sc()
    slots = scala.maxNumConcurrentTasks(scala.resourceProfileManager().defaultResourceProfile())
    if slots < leaves:
        raise UnsupportedError(
            f"a plan with {leaves} leaves",
            needed=f"{leaves} tasks at once",
            came=f"a session that runs {slots}",
            hint=f"parallelize(..., workers={slots}), or more cores: local[{leaves}]",
        )
