"""Drive a job with a schedule: exactly these rows in exactly this micro-batch and partition, and every output row back.

A job is the user's own function of DataFrames, or of RDDs. `takes` says what its input holds; a dict for several
inputs, which the job gets as keyword arguments. `gives` says what comes out; without it, the output's own columns do.

    run(job, schedule, takes=GPS)                                       one input
    run(job, schedule, takes={"rides": Ride, "fares": Fare})            several: job(rides=..., fares=...)
    run(job, schedule, takes=GPS, mode="batch")                         a static DataFrame instead of a stream
    run(job, schedule, takes=GPS, mode="rdd")                           an RDD of Rows instead of a DataFrame

This module checks the question and puts the answer together; the engines, `jvm.py` and `connect.py`, move the rows.
"""

from __future__ import annotations

import contextlib
import inspect
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, NullType, StringType, StructField, StructType

from streamtight.errors import JobError, RowError, TraceError
from streamtight.program.run import Cause, Run, Step
from streamtight.spark.engine import Build, Engine, Feed, Output, Piece, Row
from streamtight.spark.rows import Kinds, Table, kind_of, kinds_of
from streamtight.spark.session import fast_folder, is_connect, is_local, session
from streamtight.spark.ship import CHECKPOINTS
from streamtight.stream.event import RESERVED, Event, Kind
from streamtight.stream.schedule import Batch, Schedule

if TYPE_CHECKING:
    from pyspark import RDD  # not at run time, since a PySpark that knows Spark Connect only has none

    from streamtight.spark.rdd import BuildRDD

Job = Callable[..., "DataFrame | Mapping[str, DataFrame] | RDD[Any] | Mapping[str, RDD[Any]]"]
Takes = Kinds | Mapping[str, Kinds]

STATIC = {"batch": "a batch job", "rdd": "an RDD job"}
"""The modes in which a job has all the batches of the schedule at once, and what messages call such a job."""
MODES = ("append", "update", "complete", *STATIC)
ONE_AT_A_TIME = threading.RLock()
"""Held during a run: it changes settings of the session, which another one would see."""
LIMIT = 120.0
"""Seconds that a run may take, if the caller does not say."""


def run(
    job: Job,
    schedule: Schedule,
    *,
    takes: Takes,
    gives: Kinds | None = None,
    mode: str = "append",
    output: str | None = None,
    flush: bool = False,
    show_open: bool = False,
    until: Callable[[Step], bool] | None = None,
    limit: float = LIMIT,
    spark: SparkSession | None = None,
) -> Run:
    """What the job makes of this schedule, step by step.

    `mode` is the output mode of a stream (append, update, complete), or "batch" for a static DataFrame, which has all
    the batches of the schedule at once, or "rdd" for the same as an RDD of Rows. `output` picks one of the DataFrames
    of a job that returns a dict of them. `flush` ends the stream with an empty batch for which the watermark is at the
    end of time, so that the last window closes; no row is made up for that, and a job without a watermark, for which
    nothing would close, gets no such batch. `show_open` reads what the job still keeps in its state at the end, into
    `Run.open`. `until` is told every step as soon as it is there, and the run stops after the first one for which it
    says True. A run that takes longer than `limit` seconds raises TimeLimitError.
    """
    inputs = tables_of(takes)
    _require_sensible(schedule, inputs, mode, flush, limit)
    kinds = None if gives is None else kinds_of(gives, "gives")
    if mode == "rdd":
        return _run_rdd(job, schedule, inputs, kinds, output, limit, spark or session())
    chosen = None if kinds is None else Table(kinds)
    spark = spark or session()
    build_job = builder(job, inputs, output, wants_stream=mode != "batch")

    def build(frames: list[DataFrame]) -> DataFrame:
        """The job's output, refused before it runs if its columns cannot be events."""
        made = build_job(frames)
        (chosen or _own_table(job, made.schema)).order_of(made.schema)
        return made

    with ONE_AT_A_TIME, _no_queries_left(spark), no_views_left(spark), naming(job):
        engine = _engine(spark, schedule)
        if mode == "batch":
            feeds = [_feed(table, (_all_at_once(schedule),)) for table in inputs.values()]
            columns, partitions = engine.batch(build, feeds, limit=limit)
            rows = _events(partitions, chosen or _own_table(job, columns), columns)
            return Run((Step(0, Cause.DATA, _all_at_once(schedule), rows),))
        feeds = [_feed(table, schedule.batches) for table in inputs.values()]
        steps: list[Step] = []
        with checkpoint(spark) as folder:
            pieces = _pieces(schedule, lambda: flush and _may_have_watermark(steps))
            ran = engine.stream(
                build, feeds, pieces, mode=mode, folder=folder, limit=limit, as_they_come=until is not None
            )
            with contextlib.closing(ran):
                for piece, columns, out in ran:
                    table = chosen or _own_table(job, columns)
                    steps.append(_step(out, piece, schedule, _events(out.partitions, table, columns)))
                    if until is not None and until(steps[-1]):
                        break
            still_open = _open(engine.state(folder)) if show_open else None
        return Run(tuple(steps), still_open)


def _run_rdd(
    job: Job,
    schedule: Schedule,
    inputs: Mapping[str | None, Table],
    kinds: Sequence[Kind] | None,
    output: str | None,
    limit: float,
    spark: SparkSession,
) -> Run:
    from streamtight.spark.rdd import events_of, require_rdds, run_rdd

    require_rdds(spark)
    given = _all_at_once(schedule)
    feeds = [_feed(table, (given,)) for table in inputs.values()]
    build = _rdd_builder(job, inputs, output)
    with ONE_AT_A_TIME, _no_queries_left(spark), no_views_left(spark), naming(job):
        partitions = run_rdd(spark, build, feeds, shuffle_partitions=schedule.shuffle_partitions, limit=limit)
    return Run((Step(0, Cause.DATA, given, events_of(partitions, kinds, _own_name(job))),))


def run_all(
    job: Job,
    schedule: Schedule,
    *,
    takes: Takes,
    gives: Mapping[str, Kinds | None],
    mode: str = "append",
    flush: bool = False,
    limit: float = LIMIT,
    spark: SparkSession | None = None,
) -> dict[str, Run]:
    """A run for each of these outputs of a job that returns a dict of DataFrames.

    In Spark every output is a query of its own that reads the input for itself, so each gets a run of its own.
    """
    if not isinstance(gives, Mapping):
        raise RowError(
            "run_all(gives=...)",
            needed="what each output gives, by its name",
            came=repr(gives),
            hint='gives={"alerts": Alert, "totals": None}, None for columns as they come',
        )
    return {
        name: run(
            job, schedule, takes=takes, gives=kinds, mode=mode, output=name, flush=flush, limit=limit, spark=spark
        )
        for name, kinds in gives.items()
    }


# -- the question ----------------------------------------------------------------------------------------------------


def job_name(job: object) -> str:
    """What a claim calls a job."""
    return getattr(job, "__name__", None) or repr(job)


@contextlib.contextmanager
def naming(job: object) -> Iterator[None]:
    """Let an error say which job it was: a question may have two."""
    try:
        yield
    except JobError as error:
        if error.where.startswith("the job,") and job_name(job).isidentifier():
            told = f"the job {job_name(job)}{error.where.removeprefix('the job')}"
            error.args = (str(error).replace(error.where, told, 1),)
            error.where = told
        raise


def require_job(job: object) -> None:
    """Raise unless it is something that can be called with DataFrames."""
    if not callable(job) or isinstance(job, Kind):
        raise JobError(
            "a job",
            needed="a function of a DataFrame or of an RDD",
            came=repr(job),
            hint="def job(df): return df.where('x > 0')",
            batch=None,
            raised="",
        )


def tables_of(takes: Takes) -> dict[str | None, Table]:
    """The table of each input by its name; None is the name of an only one."""
    if not isinstance(takes, Mapping):
        return {None: Table(kinds_of(takes, "takes"))}
    if not takes or not all(isinstance(name, str) and name.isidentifier() for name in takes):
        raise RowError("takes", needed="a name for every input", came=repr(list(takes)), hint='takes={"rides": Ride}')
    tables: dict[str | None, Table] = {}
    for name, kinds in takes.items():
        table = Table(kinds_of(kinds, f"takes[{name!r}]"))
        for other, known in tables.items():
            for kind in set(table.kinds) & set(known.kinds):
                raise RowError(
                    f"takes[{name!r}]",
                    needed="kinds that no other input has, since an event goes where its kind goes",
                    came=f"{kind.name}, which {other!r} has too",
                    hint=f"a kind of another name with the same fields: Kind({kind.name + '2'!r}, ...)",
                )
        tables[name] = table
    return tables


def _require_sensible(
    schedule: Schedule, inputs: Mapping[str | None, Table], mode: str, flush: bool, limit: float
) -> None:
    require_batches(schedule)
    if mode not in MODES:
        raise TraceError("run(mode=...)", needed="one of " + ", ".join(MODES), came=repr(mode), hint="mode='append'")
    if mode in STATIC and (flush or schedule.restarts):
        raise TraceError(
            f"run(mode={mode!r})",
            needed="a schedule without restarts, and no flush",
            came="flush=True" if flush else repr(schedule.restarts),
            hint="a streaming mode: append, update or complete",
        )
    if not limit > 0:
        raise TraceError("run(limit=...)", needed="seconds above 0", came=repr(limit), hint="limit=60")
    known: set[Kind] = {kind for table in inputs.values() for kind in table.kinds}
    for event in schedule.events:
        if event.kind not in known:
            raise RowError(
                "run(takes=...)",
                needed="the kind of every event in the schedule",
                came=f"{event!r}, but takes has {', '.join(sorted(kind.name for kind in known))}",
                hint=f"add {event.kind.name} to takes",
            )


def require_batches(schedule: object) -> None:
    """Raise unless it is a schedule that has something to run."""
    if not isinstance(schedule, Schedule) or not schedule.batches:
        raise TraceError(
            "run(job, schedule)",
            needed="a schedule with a batch or more",
            came=repr(schedule),
            hint="Schedule.of(events, cuts=[...])",
        )


def output_columns(job: Job, *, takes: Takes, output: str | None, mode: str, spark: SparkSession) -> StructType | None:
    """The columns of a job's output, before it runs; None if that cannot be known."""
    if mode in STATIC or is_connect(spark):
        return None
    from streamtight.spark.jvm import JvmEngine

    tables = tables_of(takes)
    build = builder(job, tables, output, wants_stream=True)
    with ONE_AT_A_TIME, no_views_left(spark):
        engine = JvmEngine(spark, shuffle_partitions=1)
        return engine.probe(build, [table.struct for table in tables.values()])[1].schema


def refused_modes(job: Job, *, takes: Takes, spark: SparkSession) -> dict[str, str]:
    """The output modes in which Spark does not run a job as a stream, each with its words for that."""
    if is_connect(spark):
        return {}
    from streamtight.spark.jvm import JvmEngine

    tables = tables_of(takes)
    build = builder(job, tables, None, wants_stream=True)
    with ONE_AT_A_TIME, no_views_left(spark):
        engine = JvmEngine(spark, shuffle_partitions=1)
        return engine.refused_modes(engine.probe(build, [table.struct for table in tables.values()])[1])


def _engine(spark: SparkSession, schedule: Schedule) -> Engine:
    if is_connect(spark):
        from streamtight.spark.connect import ConnectEngine

        return ConnectEngine(spark, shuffle_partitions=schedule.shuffle_partitions)
    from streamtight.spark.jvm import JvmEngine

    return JvmEngine(spark, shuffle_partitions=schedule.shuffle_partitions)


def _feed(table: Table, batches: Sequence[Batch]) -> Feed:
    kinds = set(table.kinds)
    rows = [
        [[table.to_row(event) for event in partition if event.kind in kinds] for partition in batch]
        for batch in batches
    ]
    return Feed(table.struct, rows)


def _all_at_once(schedule: Schedule) -> Batch:
    """The partitions of a static DataFrame: partition p has what partition p of every batch has."""
    width = max(len(batch) for batch in schedule.batches)
    return tuple(
        tuple(event for batch in schedule.batches if place < len(batch) for event in batch[place])
        for place in range(width)
    )


def _pieces(schedule: Schedule, flushes: Callable[[], bool]) -> Iterator[Piece]:
    """Where the job starts and stops; whether a flush follows is asked when all the others have run."""
    first, replays = 0, False
    for restart in schedule.restarts:
        yield Piece(first, restart.after, replays=replays)
        first, replays = restart.after + 1, restart.replay
    last = len(schedule.batches) - 1
    yield Piece(first, last, replays=replays, is_end=True)
    if flushes():
        yield Piece(last + 1, last, flushes=True)


def _may_have_watermark(steps: Sequence[Step]) -> bool:
    """Is there something that a flush could close? Yes if Spark did not report, since then nothing is known.

    Spark reports a watermark with every batch of a job that has one, with batches without rows too.
    """
    return not steps or any(step.watermark is not None or step.state_rows is None for step in steps)


def builder(job: Job, inputs: Mapping[str | None, Table], output: str | None, *, wants_stream: bool) -> Build:
    """The job as a function from the inputs' DataFrames to the one DataFrame that is asked about."""

    def build(frames: list[DataFrame]) -> DataFrame:
        made = _returned(job, inputs, output, frames, "DataFrame")
        if not isinstance(made, DataFrame):
            raise _wrong_job(job, "a DataFrame", repr(made), "return the DataFrame itself, before writeStream or write")
        if made.isStreaming != wants_stream:
            needed, came = ("a stream", "static") if wants_stream else ("static", "a stream")
            hint = "mode='batch'" if wants_stream else "mode='append'"
            raise _wrong_job(job, f"a DataFrame that is {needed}", f"one that is {came}", hint)
        return made

    return build


def _rdd_builder(job: Job, inputs: Mapping[str | None, Table], output: str | None) -> BuildRDD:
    """The job as a function from the inputs' RDDs to the one RDD that is asked about."""
    from pyspark import RDD

    def build(rdds: list[RDD[Any]]) -> RDD[Any]:
        made = _returned(job, inputs, output, rdds, "RDD")
        if not isinstance(made, RDD):
            is_frame = isinstance(made, DataFrame)
            hint = ".rdd of that DataFrame" if is_frame else "return the RDD itself, before collect or another action"
            raise _wrong_job(job, "an RDD", repr(made), hint)
        return made

    return build


def _returned(
    job: Job, inputs: Mapping[str | None, Table], output: str | None, given: Sequence[object], what: str
) -> object:
    """What the job returns for these inputs, each a `what`; of several outputs the one that is asked about."""
    named = {} if None in inputs else dict(zip(_names(inputs), given, strict=True))
    _require_parameters(job, [] if named else given, named, what)
    made: object = job(**named) if named else job(given[0])
    if isinstance(made, Mapping):
        if output is None or output not in made:
            raise _wrong_job(
                job,
                f"output=... to name one of its {what}s",
                f"output={output!r}; the job returns {', '.join(map(repr, made))}",
                f"output={next(iter(made), 'name')!r} or run_all; in check, gives={{name: None for each of them}}",
            )
        return made[output]
    if output is not None:
        raise _wrong_job(job, f"a dict with {output!r} in it", type(made).__name__, "leave out output=")
    return made


def _require_parameters(job: Job, given: Sequence[object], named: Mapping[str, object], what: str) -> None:
    try:
        inspect.signature(job).bind(*given, **named)
    except TypeError as error:
        inputs = ", ".join(named) or f"one {what}"
        hint = "takes={...} with the names of the job's parameters" if named else "takes={...} for several inputs"
        raise _wrong_job(
            job, f"a function of {inputs}", f"one that does not fit: {error}", hint, "the job {}"
        ) from None
    except ValueError:
        pass  # a builtin without a signature; calling it will tell


def _names(inputs: Mapping[str | None, Table]) -> list[str]:
    return [name for name in inputs if name is not None]


def _wrong_job(job: Job, needed: str, came: str, hint: str, what: str = "what {} returns") -> JobError:
    where = what.format(getattr(job, "__name__", repr(job)))
    return JobError(where, needed=needed, came=came, hint=hint, batch=None, raised="")


# -- the answer ------------------------------------------------------------------------------------------------------


def _own_table(job: Job, columns: StructType) -> Table:
    """The table of an output that the user did not describe: one kind, named after the job, with its columns."""
    return Table([kind_of(_own_name(job), columns)])


def _own_name(job: Job) -> str:
    name: str = getattr(job, "__name__", "")
    return name if name.isidentifier() else "output"


def _events(partitions: Sequence[Sequence[Row]], table: Table, columns: StructType) -> Batch:
    names = table.order_of(columns)
    if names == columns.names:
        return tuple(tuple(table.from_row(row) for row in partition) for partition in partitions)
    places = [columns.names.index(name) for name in names]
    return tuple(
        tuple(table.from_row([row[place] for place in places]) for row in partition) for partition in partitions
    )


def _open(state: Sequence[tuple[str, StructType, Sequence[Row]]]) -> tuple[Event, ...]:
    """The rows of a job's state as events of a kind that is named after the operator."""
    return tuple(
        Table([kind_of(operator, cast(StructType, _readable(columns)))]).from_row(row)
        for operator, columns, rows in state
        for row in rows
    )


def _readable(data_type: DataType) -> DataType:
    """The type of a state as events can have it: other names for reserved ones, a type for Spark's empty columns."""
    if isinstance(data_type, NullType):
        return StringType()
    if not isinstance(data_type, StructType):
        return data_type
    names = [f"{name}_" if name in RESERVED else name for name in data_type.names]
    types = [_readable(field.dataType) for field in data_type.fields]
    nullable = [field.nullable for field in data_type.fields]
    return StructType([StructField(*column) for column in zip(names, types, nullable, strict=True)])


def _step(output: Output, piece: Piece, schedule: Schedule, rows: Batch) -> Step:
    report = output.report
    given: Batch = ((),)
    if output.batch >= len(schedule.batches):
        cause = Cause.FLUSH if piece.flushes else Cause.IDLE
    else:
        given = schedule.batches[output.batch]
        cause = Cause.REPLAY if piece.replays and output.batch == piece.first - 1 else Cause.DATA
    operators = report.get("stateOperators")  # missing if Spark did not report: then nothing is known, not 0
    return Step(
        batch=output.batch,
        cause=cause,
        input=given,
        output=rows,
        watermark=_watermark(report),
        state_rows=None if operators is None else sum(one["numRowsTotal"] for one in operators),
        late_rows=None if operators is None else sum(one["numRowsDroppedByWatermark"] for one in operators),
        milliseconds=dict(report.get("durationMs", {})),
    )


def _watermark(report: Mapping[str, Any]) -> datetime | None:
    text = report.get("eventTime", {}).get("watermark")
    return None if text is None else datetime.fromisoformat(text).astimezone().replace(tzinfo=None)


# -- nothing is left behind ------------------------------------------------------------------------------------------


@contextlib.contextmanager
def checkpoint(spark: SparkSession) -> Iterator[Path]:
    """A folder for the checkpoint of one run; on a cluster, where the session says that all nodes see it."""
    shared = None if is_local(spark) else spark.conf.get(CHECKPOINTS, None)
    folder = Path(tempfile.mkdtemp(prefix="streamtight-", dir=shared or fast_folder()))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _no_queries_left(spark: SparkSession) -> Iterator[None]:
    """Stop the streaming queries that the job starts on its own: one that writes is refused, but runs by then."""
    before = {query.id for query in spark.streams.active}
    try:
        yield
    finally:
        for query in spark.streams.active:
            if query.id not in before:
                query.stop()


@contextlib.contextmanager
def no_views_left(spark: SparkSession) -> Iterator[None]:
    """Drop the temporary views that the job makes, and give the session's own back if it replaces or drops them."""
    if is_connect(spark):
        with _no_new_views_left(spark):
            yield
        return
    catalog: Any = spark._jsparkSession.sessionState().catalog()
    own, shared = _views(catalog), _names_in(catalog.globalTempViewManager().listViewNames("*"))
    try:
        yield
    finally:
        now = _views(catalog)
        for name in now.keys() - own.keys():
            catalog.dropTempView(name)
        for name, view in own.items():
            if name not in now or not view.equals(now[name]):
                catalog.createTempView(name, view, True)
        for name in _names_in(catalog.globalTempViewManager().listViewNames("*")) - shared:
            catalog.dropGlobalTempView(name)


def _views(catalog: Any) -> dict[str, Any]:
    """The session's own temporary views, by name."""
    found = catalog.listLocalTempViews("*")
    names = [found.apply(place).table() for place in range(found.size())]
    return {name: catalog.getRawTempView(name).get() for name in names}


def _names_in(scala_seq: Any) -> set[str]:
    return {scala_seq.apply(place) for place in range(scala_seq.size())}


@contextlib.contextmanager
def _no_new_views_left(spark: SparkSession) -> Iterator[None]:
    """Drop the temporary views that the job makes: all that can be done where definitions cannot be read."""

    def names() -> set[str]:
        return {table.name for table in spark.catalog.listTables() if table.isTemporary}

    before = names()
    try:
        yield
    finally:
        for name in names() - before:
            spark.catalog.dropTempView(name)
