"""A plan on Spark: a task for each leaf, in one barrier stage; the other workers on the driver."""

from __future__ import annotations

import gc
import inspect
import itertools
import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark import TaskContext, cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from streamtight.errors import EncodingError, InputError, JobError, PlanError, UnsupportedError
from streamtight.method.parallelize.columns import (
    Outputs,
    output_batches,
    output_table,
    pieces_batch,
    pieces_of,
)
from streamtight.method.parallelize.files import Files
from streamtight.method.parallelize.gang import Address, Gang, Lost, Member, Raised, Stopped, packed_plainly
from streamtight.method.parallelize.leaf import (
    NO_SHARE,
    BatchFeed,
    Feed,
    Leaf,
    MixedFeed,
)
from streamtight.program.fork_join import State
from streamtight.program.plan import Plan
from streamtight.spark.parallel_inputs import (
    Source,
    inner_events,
    lane_of,
    reader_of,
    require_known_order,
    require_one_sort_of_time,
    require_simple,
    row_for_each_leaf,
    rows_for_leaves,
)
from streamtight.spark.rows import Table, struct_of
from streamtight.spark.session import is_connect, is_local, java_class, session
from streamtight.spark.ship import require_there
from streamtight.stream.event import Event, Kind

_FROZEN: list[bool] = []
"""Whether this process has frozen what it had loaded before the first leaf."""
NEEDED_PACKAGES = {"numpy": "numpy", "pyarrow": "pyarrow", "pandas": "'pandas<3'"}
PATIENCE = 60.0
"""So many seconds executors of a cluster are waited for."""
_PACKED = "kind string, piece binary"


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
        path = java_class(spark, "org.apache.hadoop.fs.Path")
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
        self.schemas = {kind: arrow_of(struct_of(kind)) for kind in kinds}

    def frame(self, spark: SparkSession, pieces: Iterable[tuple[str, bytes]]) -> DataFrame:
        """What is in these pieces."""
        table = output_table(pieces, arrow_of(self.struct), named=self._named)
        return spark.createDataFrame(table, self.struct) if table.num_rows else spark.createDataFrame([], self.struct)

    def unpacked(self, packed: DataFrame) -> DataFrame:
        """What is in packed rows."""
        schema, named = arrow_of(self.struct), self._named

        def unpack(batches: Iterable[Any]) -> Iterator[Any]:
            return output_batches(pieces_of(batches), schema, named=named)

        return packed.mapInArrow(unpack, self.struct)


def arrow_of(struct: StructType) -> Any:
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
    require_there(spark, f"a plan of {plan.program.name}", NEEDED_PACKAGES)
    _require_slots(spark, len(plan.leaves))
    given = Given(plan)
    files = {name: source for name, source in sources.items() if isinstance(source, Files)}
    frames = {name: source for name, source in sources.items() if not isinstance(source, Files)}
    require_simple(plan)
    require_one_sort_of_time(plan, sources)
    found = inner_events(plan, sources)
    for worker in found:
        require_known_order(plan, worker, found, sources)
    events = {worker: [(key, event) for key, event, _ in mine] for worker, mine in found.items()}
    host, bind = _addresses(spark)

    def outputs() -> tuple[Callable[[Event], None], Callable[[], list[tuple[str, bytes]]]]:
        made = Outputs(given.schemas)
        return made, made.taken

    state = first or _first_state(plan)
    gang = Gang(plan, state, events, outputs, host=host, bind=bind, pack=packed_state)
    try:
        task = LeafTask(plan, gang.address, gang.key, files, frozenset(frames), given.schemas)
        rows = rows_for_leaves(spark, plan, frames) if frames else row_for_each_leaf(spark, plan)
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
        if pickle.STACK_GLOBAL not in plain:  # plain values alone: no class or function is named
            return plain
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
            sorted(range(len(shares)), key=lambda n: lane_of(shares[n])), lambda n: lane_of(shares[n])
        ):
            numbers = list(mine)
            if lane[0] in self.files:
                reader = reader_of(self.plan, lane[0], [shares[n] for n in numbers])
                feeds.append(BatchFeed(self.files[lane[0]].batches(*lane[1:]), reader, numbers))
        if not self.frames:
            for _ in batches:  # the one row that made this task: Spark keeps a Python that has read all
                pass
            return feeds
        readers = {}
        for name in self.frames:
            place = self.plan.stream_place(name)
            readers[place, NO_SHARE] = reader_of(self.plan, name, [])
            for n, share in enumerate(shares):
                if share.stream == name:
                    readers[place, n] = reader_of(self.plan, name, [share])
        return [*feeds, MixedFeed(batches, readers)]


# -- where it runs -----------------------------------------------------------------------------------------------


def _addresses(spark: SparkSession) -> tuple[str | None, str | None]:
    """Where tasks find the driver, and where the driver listens; None if they are on this machine."""
    conf = spark.sparkContext.getConf()
    master = str(spark.sparkContext.master)
    if master == "local" or master.startswith("local["):
        return None, None
    host = conf.get("spark.driver.host") or "127.0.0.1"
    return host, conf.get("spark.driver.bindAddress") or host


def _slots(spark: SparkSession) -> int:
    """How many tasks Spark can run at once, by the executors that are there now."""
    scala: Any = spark.sparkContext._jsc.sc()
    return int(scala.maxNumConcurrentTasks(scala.resourceProfileManager().defaultResourceProfile()))


def _require_slots(spark: SparkSession, leaves: int) -> None:
    """Raise if Spark cannot run all leaves at once: it would wait for ten minutes, and then say so."""
    if is_connect(spark):
        raise UnsupportedError(
            "parallelize on Spark Connect",
            needed="a classic session, since the tasks talk to the driver",
            came="a Spark Connect session",
            hint="SparkSession.builder.master(...), or run(...) without Spark",
        )
    # Executors of a cluster come some time after the session, and come again after they were lost.
    until = time.monotonic() + (0.0 if is_local(spark) else PATIENCE)
    slots = _slots(spark)
    while slots < leaves and time.monotonic() < until:
        time.sleep(0.2)
        slots = _slots(spark)
    if slots < leaves:
        raise UnsupportedError(
            f"a plan with {leaves} leaves",
            needed=f"{leaves} tasks at once",
            came=f"a session that runs {slots}",
            hint=f"parallelize(..., workers={slots}), or more cores: local[{leaves}]",
        )
