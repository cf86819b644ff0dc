"""Do two running streams still agree? A comparison that runs beside them, as a streaming query with the matcher inside.

    live = compare_live(left, right, upto=same("taxi_id"), checkpoint="checkpoints/taxis", stuck_after_seconds=60)
    live.metrics        how much has come, how much is unmatched, and for how long
    live.verdict()      FAILS from the first micro-batch on that nothing to come can mend

Every row goes to a *bucket*, such that rows that are equal or must keep their order share one: by a hash of the
relation's key, or of the whole row for a bag. A bucket has a matcher, and what that must remember, the unmatched rows,
is state of Spark, checkpointed together with the offsets of the sources: a restart loses nothing and counts nothing
twice. What the tasks do is in `live_bucket.py`, what the driver knows in `live_book.py`. Where no order matters, Spark
counts rows instead, which takes a fraction of the time: `live_bag.py`.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
import pickle
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, GroupedData, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from streamtight.errors import DependenceError, JobError, RowError, StreamtightError, TraceError, UnsupportedError
from streamtight.method.compare.matcher import SIDES, Difference, Matcher
from streamtight.spark.engine import settings
from streamtight.spark.failure import job_error
from streamtight.spark.live_bag import Bag, Then, can_be_counted
from streamtight.spark.live_book import HISTORY, Alarm, Book, Folder, Limits, Metrics
from streamtight.spark.live_bucket import PACKED, REPORTED, Bucket, Equal, Pack, Report
from streamtight.spark.live_journal import LiveNotes, journal_on
from streamtight.spark.metrics_picture import Panel, chart
from streamtight.spark.rows import Kinds, Table, kind_of, kinds_of
from streamtight.spark.run import ONE_AT_A_TIME
from streamtight.spark.session import is_connect, require_packages
from streamtight.spark.ship import require_shared, require_there
from streamtight.stream.dependence import Dependence, key_getter
from streamtight.stream.equality import Equality, equality_of
from streamtight.stream.svg import stacked
from streamtight.verdict import Counterexample, Outcome, Scope, Verdict

BUCKETS_PER_TASK = 4
"""More buckets than tasks spread the keys evenly, and a bucket that is refuted takes fewer keys with it."""

ReportsOf = Callable[[DataFrame, int, Book], dict[int, Report]]
"""What there is to say of a micro-batch, bucket by bucket."""

_NEEDED_PACKAGES = {"pyarrow": "pyarrow", "pandas": "'pandas<3'", "google.protobuf": "protobuf"}
_TASKS_CONF = "spark.sql.shuffle.partitions"
_CONFS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # Each batch writes what it changed, not all of the state.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # A micro-batch that is kept is soon forgotten; to compress it takes three times as long as to keep it.
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
}


def compare_live(
    left: DataFrame,
    right: DataFrame,
    *,
    upto: Dependence,
    checkpoint: str | os.PathLike[str],
    equal: Equal = None,
    gives: Kinds | None = None,
    stuck_after_events: int | None = None,
    stuck_after_seconds: float | None = None,
    on_alarm: Callable[[Alarm], None] | None = None,
    buckets: int | None = None,
    tasks: int | None = None,
    every: float | None = 0.0,
    then: Then | None = None,
    name: str | None = None,
    board: str | os.PathLike[str] | None = None,
) -> LiveComparison:
    """Start a query that says, while two streams run, whether they give the same rows up to the order that matters.

    `left` and `right` are streaming DataFrames with the same columns: two jobs, or what two jobs wrote, read back.
    Spark promises an order between micro-batches and inside a partition, so that is the order that is compared; rows
    of one batch in different partitions that must keep their order are reported as a RACE.

    upto                 which rows keep their order
    checkpoint           a folder of its own; start again with the same one, and the comparison goes on where it was
    equal                when two rows count as the same, if not all columns matter
    gives                what the rows are; without it, rows of one kind with the columns as they come
    stuck_after_events   alarm when a row is unmatched though so many more rows have come since, on both sides together
    stuck_after_seconds  alarm when a row is unmatched for so long
    on_alarm             called with every alarm, in a thread of its own
    buckets, tasks       into how many parts the rows are split, where the relation has a key, and how many tasks
                         compare; without `tasks`, as many as the session's shuffle partitions, or one without a key.
                         Both are fixed for a checkpoint, and shuffles of the jobs get as many tasks
    every                seconds between micro-batches; None reads what is there now, and ends
    then                 what the jobs do with these rows, called with the left rows, the right rows and the number of
                         each micro-batch, as `foreachBatch` would: the jobs run once, not once more to be compared.
                         Where no order matters only
    name                 the name of the query
    board                a folder for what the live page shows (`streamtight watch --serve`); if not given, the one that
                         the environment variable STREAMTIGHT_BOARD names, or none
    """
    equal = equality_of(equal, "compare_live")
    spark = _session_of(left, right)
    _require_numbers(stuck_after_events=stuck_after_events, buckets=buckets, tasks=tasks)
    _require_seconds(stuck_after_seconds, every)
    if not isinstance(upto, Dependence):
        hint = "ordered, unordered, same('taxi_id'), or a schema"
        raise TraceError("compare_live(upto=...)", needed="a dependence or a schema", came=repr(upto), hint=hint)
    if not isinstance(checkpoint, str | os.PathLike) or not os.fspath(checkpoint):
        hint = "checkpoint='/checkpoints/taxis', a folder of its own"
        raise TraceError("compare_live(checkpoint=...)", needed="a folder", came=repr(checkpoint), hint=hint)
    columns = _common_columns(left.schema, right.schema)
    table = _table(gives, upto, columns)
    _require_known(upto, table)
    columns = StructType([columns[column] for column in table.order_of(columns)])
    split = _split(upto, equal, columns)
    require_shared(spark, "compare_live(checkpoint=...)", checkpoint)
    folder = Folder(spark, os.fspath(checkpoint), table.kinds)
    parts = _parts(spark, folder, split, _about(upto, equal, columns, split), buckets, tasks)
    reports_of: ReportsOf
    if split.is_counted:
        bag = Bag(folder, table, columns, then)
        frame, reports_of = bag.both(left, right), bag.reports
    else:
        _refuse_then(then, split)
        frame = _bucketed(left, right, columns, split, parts, Bucket(upto, equal, table.kinds))
        reports_of = _collected
    limits = Limits(stuck_after_events, stuck_after_seconds)
    live = LiveComparison(upto, equal, folder, _way(split, parts), parts.buckets, limits, on_alarm, reports_of)
    alarms = live.alarms
    writer = frame.writeStream.foreachBatch(live._take).option("checkpointLocation", folder.spark_location)
    writer = writer.trigger(availableNow=True) if every is None else writer.trigger(processingTime=f"{every} seconds")
    if name is not None:
        writer = writer.queryName(name)
    with ONE_AT_A_TIME, settings(spark, {**_CONFS, _TASKS_CONF: str(parts.tasks)}):
        try:
            query = writer.start()
        except PySparkException as error:
            raise _refused(error) from error
    asks = f"do left and right give the same stream up to {upto!r}? ({live.way})"
    journal = journal_on(board, name or folder.path, kind="compare_live", asks=asks)
    live._notes = None if journal is None else LiveNotes(journal, alarms)
    live._begin(query)
    return live


class LiveComparison:
    """A comparison that runs; made by `compare_live`. As a context manager it stops at the end of the block."""

    query: StreamingQuery
    """The query that compares."""
    way: str
    """How the rows are split: "8 buckets by taxi_id, 2 tasks", or "one task: " and why."""

    def __init__(
        self,
        upto: Dependence,
        equal: Equal,
        folder: Folder,
        way: str,
        buckets: int,
        limits: Limits,
        on_alarm: Callable[[Alarm], None] | None,
        reports_of: ReportsOf,
    ) -> None:
        self.way = way
        self._reports_of = reports_of
        self._upto = upto
        self._equal = equal
        self._buckets = buckets
        self._folder = folder
        self._limits = limits
        self._on_alarm = on_alarm
        self._lock = threading.RLock()
        self._book = folder.book()
        self._book.resume(_now())
        self._history: deque[Metrics] = deque(maxlen=HISTORY)
        self._untold: deque[Alarm] = deque()
        self._wake = threading.Event()
        self._error: StreamtightError | None = None
        self._raised: Exception | None = None
        self._alarm_error: JobError | None = None
        self._notes: LiveNotes | None = None
        self._watch = threading.Thread(target=self._watch_until_the_end, name="streamtight-live", daemon=True)

    # -- what is known -----------------------------------------------------------------------------------------------

    @property
    def metrics(self) -> Metrics | None:
        """What is known now; None before the first micro-batch."""
        with self._lock:
            last = self._book.metrics
            return None if last is None else dataclasses.replace(last, oldest_seconds=self._book.oldest_seconds(_now()))

    @property
    def history(self) -> tuple[Metrics, ...]:
        """The metrics of the last micro-batches since it was started, the oldest first."""
        with self._lock:
            return tuple(self._history)

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """The alarms so far, also of the time before a restart, the oldest first."""
        with self._lock:
            return tuple(sorted(self._book.alarms, key=lambda alarm: (alarm.batch, alarm.at, alarm.bucket)))

    @property
    def difference(self) -> Difference | None:
        """Why the streams cannot agree any more; None while they can, or if what is wrong is a race."""
        return next((alarm.difference for alarm in self.alarms if alarm.difference is not None), None)

    def verdict(self, *, ended: bool = False) -> Verdict:
        """Do the streams agree, by all that has come so far?

        FAILS as soon as nothing to come can mend it, UNDECIDED while something is unmatched, HOLDS if all is matched.
        With `ended`, what is unmatched is not waited for: it is what one stream has and the other lacks. Raises if the
        comparison itself went wrong.
        """
        self._raise_what_went_wrong()
        with self._lock:
            metrics, waiting, alarms = self.metrics, self._book.waiting(), self.alarms
        claim = f"left and right give the same stream up to {self._upto!r}"
        rows = 0 if metrics is None else metrics.left + metrics.right
        scope = Scope.observed(rows)
        refuted = next((alarm.counterexample for alarm in alarms if alarm.counterexample is not None), None)
        if refuted is not None:
            return Verdict(claim, Outcome.FAILS, scope, self._with_metrics(refuted))
        if metrics is None or not rows:
            return Verdict(claim, Outcome.UNDECIDED, scope, reason="vacuous: no row has come")
        if not metrics.unmatched:
            return Verdict(claim, Outcome.HOLDS, scope)
        if ended:
            places = tuple(one.place for one in waiting)
            difference = Difference(None, left_over=places, left_over_count=metrics.unmatched)
            return Verdict(claim, Outcome.FAILS, scope, self._with_metrics(self._left_over(difference)))
        oldest = waiting[0].place
        stuck = ", which is stuck" if any(alarm.stuck == oldest for alarm in alarms) else ""
        reason = (
            f"{'still running' if self.query.isActive else 'stopped'} with {metrics.unmatched_left} unmatched on the "
            f"left and {metrics.unmatched_right} on the right; the oldest is {oldest.event} of the {oldest.side}, for "
            f"{metrics.oldest_seconds:.1f} s{stuck}"
        )
        return Verdict(claim, Outcome.UNDECIDED, scope, reason=reason)

    def picture(self) -> str:
        """The metrics over time as an SVG picture, with its alarms: unmatched rows, rows a second, seconds a batch."""
        history, alarms = self.history, self.alarms
        return chart(
            [one.at.timestamp() for one in history],
            [
                Panel(
                    "unmatched rows",
                    {
                        "left": [one.unmatched_left for one in history],
                        "right": [one.unmatched_right for one in history],
                    },
                ),
                Panel("rows a second", {"both": _rows_a_second(history)}),
                Panel("seconds a batch", {"seconds": [one.seconds for one in history]}),
            ],
            label=f"{len(history)} micro-batches of a comparison up to {self._upto!r}",
            marks=[(alarm.at.timestamp(), str(alarm)) for alarm in alarms],
        )

    def _repr_html_(self) -> str:
        return self.picture()

    def _with_metrics(self, counterexample: Counterexample) -> Counterexample:
        if len(self.history) < 2:
            return counterexample
        return dataclasses.replace(counterexample, picture=stacked(counterexample.picture, self.picture()))

    def _left_over(self, difference: Difference) -> Counterexample:
        """What is unmatched, as far as it was reported, differs as the streams do."""
        few = Matcher(upto=self._upto, equal=self._equal)
        for side in SIDES:
            few.feed(side, [place.event for place in difference.left_over if place.side == side])
        shown = few.finish().counterexample
        if shown is None:
            raise AssertionError("what is unmatched cannot match")  # pragma: no cover
        return dataclasses.replace(shown, explanation=str(difference))

    def stop(self) -> None:
        """Stop comparing. `compare_live` with the same checkpoint goes on from here. Raises what `on_alarm` raised."""
        self.query.stop()
        self._wake.set()
        if threading.current_thread() is not self._watch:
            self._watch.join()
        untold, self._alarm_error = self._alarm_error, None
        if untold is not None:
            raise untold

    def __enter__(self) -> LiveComparison:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<LiveComparison up to {self._upto!r}, {self.way}, {self.metrics}>"

    def _raise_what_went_wrong(self) -> None:
        if self._error is not None:
            raise self._error
        failure = self.query.exception()
        if failure is not None:
            raised = self._raised or failure
            raise job_error(raised, batch=self._book.batch + 1) from raised

    # -- in the driver -----------------------------------------------------------------------------------------------

    def _begin(self, query: StreamingQuery) -> None:
        self.query = query
        self._watch.start()

    def _take(self, frame: DataFrame, batch: int) -> None:
        """Called by Spark with a micro-batch, which it commits when this has returned."""
        try:
            self._note(self._reports_of(frame, batch, self._book), batch)
        except StreamtightError as error:
            self._error = error
            raise
        except Exception as error:
            self._raised = error
            # Short, since Spark searches it for an interruption, with an expression that overflows on a long one.
            raise RuntimeError(f"{type(error).__module__}.{type(error).__name__}: {error}"[:500]) from None

    def _note(self, reports: Mapping[int, Report], batch: int) -> None:
        with self._lock:
            alarms = self._book.take(batch, reports, buckets=self._buckets, now=_now(), limits=self._limits)
            if reports and self._book.metrics is not None:
                self._history.append(self._book.metrics)
            self._folder.save(self._book)
        self._untold.extend(alarms)
        self._wake.set()

    def _watch_until_the_end(self) -> None:
        """Look now and then for what is stuck, since no batch runs while no row comes; and tell of alarms."""
        from py4j.protocol import Py4JError  # not above: a PySpark that knows Spark Connect only has none

        seconds = self._limits.seconds
        pause = 1.0 if seconds is None else min(1.0, seconds / 4)
        active = True
        while active:
            self._wake.wait(pause)
            self._wake.clear()
            try:
                active = self.query.isActive
                self._look(active)
                if self._notes is not None:
                    self._notes.look(self, active)
            except (Py4JError, OSError):
                if self._notes is not None:
                    self._notes.end("the JVM has ended")
                return  # the JVM has ended, and so has the query
            while self._untold:
                self._tell(self._untold.popleft())

    def _look(self, active: bool) -> None:
        with self._lock:
            stuck: Sequence[Alarm] = ()
            if active:
                self._book.alive = _now()
                stuck = self._book.stuck(self._limits, self._book.alive)
            if stuck or not active:
                self._folder.save(self._book)
        self._untold.extend(stuck)

    def _tell(self, alarm: Alarm) -> None:
        if self._on_alarm is None:
            return
        try:
            self._on_alarm(alarm)
        except Exception as error:  # the border to the user's code: kept for `stop`, as the comparison goes on
            text = f"{type(error).__name__}: {error}"
            self._alarm_error = JobError(
                f"on_alarm={getattr(self._on_alarm, '__name__', repr(self._on_alarm))}",
                needed="a function that takes an alarm",
                came=text,
                hint="its __cause__ has the traceback; live.alarms has the alarms",
                batch=alarm.batch,
                raised=text,
            )
            self._alarm_error.__cause__ = error


def _rows_a_second(history: Sequence[Metrics]) -> list[float | None]:
    """How many rows of both sides came for each second since the batch before; None for the first."""
    rates: list[float | None] = [None] * min(len(history), 1)
    for before, now in itertools.pairwise(history):
        seconds = (now.at - before.at).total_seconds()
        rates.append((now.left + now.right - before.left - before.right) / seconds if seconds > 0 else None)
    return rates


def _now() -> int:
    return int(time.time() * 1000)


# -- is it a question that can be asked? -----------------------------------------------------------------------------


def _session_of(left: object, right: object) -> SparkSession:
    for side, frame in zip(SIDES, (left, right), strict=True):
        if not isinstance(frame, DataFrame) or not frame.isStreaming:
            raise TraceError(
                f"compare_live({side})",
                needed="a streaming DataFrame",
                came="a static one" if isinstance(frame, DataFrame) else repr(frame),
                hint="spark.readStream...; for recorded outputs, tight.compare(tight.recorded(path), ...)",
            )
    spark, other = (frame.sparkSession for frame in (left, right) if isinstance(frame, DataFrame))
    if is_connect(spark) or is_connect(other):
        raise UnsupportedError(
            "compare_live(...)",
            needed="a classic Spark session",
            came="a Spark Connect session, whose server would do the driver's part, out of reach",
            hint="run it where the driver is, with SparkSession.builder.master(...) or spark-submit",
        )
    if not spark._jsparkSession.equals(other._jsparkSession):
        came, hint = "streams of two", "read both with the same session"
        raise TraceError("compare_live(left, right)", needed="streams of one session", came=came, hint=hint)
    require_packages("compare_live(...)", _NEEDED_PACKAGES)
    require_there(spark, "compare_live(...)", _NEEDED_PACKAGES)
    if not hasattr(GroupedData, "transformWithState"):
        raise UnsupportedError(
            "compare_live(...)",
            needed="Spark 4.1 or newer, whose transformWithState takes rows",
            came=f"Spark {spark.version}",
            hint="pip install 'pyspark>=4.1'",
        )
    return spark


def _require_numbers(**numbers: object) -> None:
    for option, number in numbers.items():
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
            needed = "a whole number from 1"
            raise TraceError(f"compare_live({option}=...)", needed=needed, came=repr(number), hint=f"{option}=8")


def _require_seconds(stuck_after: object, every: object) -> None:
    for option, seconds in (("stuck_after_seconds", stuck_after), ("every", every)):
        if seconds is None:
            continue
        is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if not is_number or not (0 <= seconds < math.inf) or (seconds == 0 and option != "every"):  # type: ignore[operator]
            needed = "seconds, 0 or more" if option == "every" else "seconds, more than 0"
            raise TraceError(f"compare_live({option}=...)", needed=needed, came=repr(seconds), hint=f"{option}=10.0")


_WIDENED = (("byte", "short", "integer", "long"), ("float", "double"))


def _common_columns(left: StructType, right: StructType) -> StructType:
    """The columns of both, in a type that has the values of both."""
    if sorted(left.names) != sorted(right.names) or not left.names:
        raise RowError(
            "compare_live(left, right)",
            needed="the same columns on both sides",
            came=f"{', '.join(left.names) or 'none'} on the left, {', '.join(right.names) or 'none'} on the right",
            hint="select the columns to compare",
        )
    columns = []
    for mine in left.fields:
        theirs = right[mine.name]
        wider = _wider(mine.dataType, theirs.dataType)
        if wider is None:
            raise RowError(
                f"compare_live(left, right), column {mine.name!r}",
                needed="the same type on both sides",
                came=f"{mine.dataType.simpleString()} on the left, {theirs.dataType.simpleString()} on the right",
                hint=f"cast one of them: right.withColumn({mine.name!r}, ...)",
            )
        columns.append(StructField(mine.name, wider, mine.nullable or theirs.nullable))
    return StructType(columns)


def _wider(one: DataType, other: DataType) -> DataType | None:
    if one.simpleString() == other.simpleString():  # which does not tell what may be null
        return one
    names = str(one.jsonValue()), str(other.jsonValue())
    for family in _WIDENED:
        if set(names) <= set(family):
            return one if family.index(names[0]) > family.index(names[1]) else other
    return None


def _table(gives: Kinds | None, upto: Dependence, columns: StructType) -> Table:
    if gives is None and upto.domain:
        gives = upto.domain
    if gives is not None:
        table = Table(kinds_of(gives, "gives"))
        try:
            table.order_of(columns)
        except RowError as error:
            where = error.where.replace("the job's output", "compare_live(gives=...)")
            raise RowError(where, needed=error.needed, came=error.came, hint=error.hint) from None
        return table
    spoken = {kind for clause in upto.clauses for side in (clause.left, clause.right) for kind in side.kinds or ()}
    if spoken:
        names = ", ".join(sorted(kind.name for kind in spoken))
        needed = f"what the rows are, since {upto!r} speaks of {names}"
        raise RowError("compare_live(gives=...)", needed=needed, came="nothing", hint=f"gives=[{names}]")
    return Table([kind_of("row", columns)])


def _require_known(upto: Dependence, table: Table) -> None:
    """Raise now what the first event of one of these kinds would raise in a task."""
    for kind in table.kinds:
        if upto.domain is not None and kind not in upto.domain:
            raise DependenceError(
                repr(upto),
                needed="a relation that knows every kind of row",
                came=f"rows of {kind.name}",
                hint=f"add {kind.name} to it, or leave it out of gives=",
            )
        for clause in upto.clauses:
            if clause.left.always(kind) or clause.right.always(kind):
                key_getter(kind, clause)


# -- where a row goes ------------------------------------------------------------------------------------------------


class _Split(NamedTuple):
    """The columns whose hash says where a row goes; none, and why, if all must go to one place."""

    columns: tuple[str, ...]
    why_not: str = ""
    by: str = ""
    is_counted: bool = False
    """No order matters, and the JVM can tell which rows are equal."""


class _Parts(NamedTuple):
    buckets: int
    tasks: int


def _split(upto: Dependence, equal: Equal, columns: StructType) -> _Split:
    """Rows that are equal or depend on each other must agree on these columns, down to the hash."""
    if not upto.clauses and equal is None and can_be_counted(columns):
        return _Split(tuple(columns.names), by="the whole row", is_counted=True)
    key = upto.partition_key()
    if key is None:
        return _Split((), f"{upto!r} has no key that all its clauses share")
    chosen = [name for name in key.fields or columns.names if name in columns.names]
    if equal is not None:
        if not isinstance(equal, Equality) or equal.by is not None:
            return _Split((), "equal= is a function, which may call rows of different keys equal")
        exact = [n for n in equal.columns(chosen) if n not in equal.places and n not in equal.buckets]
        if not exact:
            return _Split((), f"{equal!r} compares none of {', '.join(chosen)} exactly")
        chosen = exact
    hashed = tuple(name for name in chosen if _can_be_hashed(columns[name].dataType))
    if not hashed:
        return _Split((), f"Spark has no hash for {', '.join(chosen)}")
    return _Split(hashed, by=", ".join(hashed) if key.fields else "the whole row")


def _can_be_hashed(data_type: DataType) -> bool:
    if isinstance(data_type, StructType):
        return all(_can_be_hashed(column.dataType) for column in data_type.fields)
    if isinstance(data_type, ArrayType):
        return _can_be_hashed(data_type.elementType)
    return not isinstance(data_type, MapType)


def _about(upto: Dependence, equal: Equal, columns: StructType, split: _Split) -> dict[str, Any]:
    """What a checkpoint is for: with other answers to these, its state would mean something else."""
    return {
        "upto": repr(upto),
        "equal": repr(equal) if equal is None or isinstance(equal, Equality) else getattr(equal, "__name__", "..."),
        "columns": columns.simpleString(),
        "split by": list(split.columns),
        "counted": split.is_counted,
    }


def _parts(
    spark: SparkSession,
    folder: Folder,
    split: _Split,
    about: Mapping[str, Any],
    buckets: int | None,
    tasks: int | None,
) -> _Parts:
    """How many buckets and tasks there are: as the checkpoint has it, or if it is new, as asked for."""
    known = folder.settings()
    if known is None:
        tasks = tasks or (int(spark.conf.get(_TASKS_CONF) or 1) if split.columns else 1)
        buckets = (buckets or BUCKETS_PER_TASK * tasks) if split.columns and not split.is_counted else 1
        folder.write_settings({**about, "buckets": buckets, "tasks": tasks})
        return _Parts(buckets, tasks)
    asked = dict(about)
    if buckets is not None and split.columns and not split.is_counted:
        asked["buckets"] = buckets
    if tasks is not None:
        asked["tasks"] = tasks
    for name, value in asked.items():
        if value != known.get(name):
            raise TraceError(
                f"compare_live(checkpoint={folder.path!r})",
                needed=f"the comparison that this folder was made for, with {name} {known.get(name)!r}",
                came=f"{name} {value!r}",
                hint="another folder, for another comparison",
            )
    return _Parts(known["buckets"], known["tasks"])


def _way(split: _Split, parts: _Parts) -> str:
    if not split.columns:
        return f"one task: {split.why_not}"
    tasks = "1 task" if parts.tasks == 1 else f"{parts.tasks} tasks"
    if split.is_counted:
        return f"rows counted and sums of hashes compared, row by row where these differ, {tasks}"
    return f"{parts.buckets} {'bucket' if parts.buckets == 1 else 'buckets'} by {split.by}, {tasks}"


def _refuse_then(then: object, split: _Split) -> None:
    if then is not None:
        raise UnsupportedError(
            "compare_live(then=...)",
            needed="rows in no order, of plain columns, that are equal if all of these are",
            came=f"rows {f'by {split.by}' if split.by else f'of which {split.why_not}'}",
            hint="upto=unordered; or let each job write as it does, and compare what they wrote",
        )


def _bucketed(
    left: DataFrame, right: DataFrame, columns: StructType, split: _Split, parts: _Parts, bucket: Bucket
) -> DataFrame:
    """A stream of what the buckets report."""
    one, other = (_packed(frame, side, columns, split, parts.buckets) for side, frame in enumerate((left, right)))
    return (
        one.union(other)
        .withColumn("at", sf.unix_millis(sf.current_timestamp()))  # the same for all rows of a batch, also if replayed
        .groupBy("bucket")
        .transformWithState(bucket, REPORTED, "append", "none")
    )


def _collected(frame: DataFrame, batch: int, book: Book) -> dict[int, Report]:
    """What the buckets report of a micro-batch."""
    reports = {row["bucket"]: pickle.loads(row["report"]) for row in frame.collect()}  # noqa: S301 - from our own tasks
    for report in reports.values():
        if isinstance(report, StreamtightError):
            raise report
    return reports


def _packed(frame: DataFrame, side: int, columns: StructType, split: _Split, buckets: int) -> DataFrame:
    """The rows of a side, those of a partition that go to the same bucket together in one value."""
    typed = {}
    for place, column in enumerate(columns.fields):
        quoted = sf.col("`{}`".format(column.name.replace("`", "``")))
        is_so = frame.schema[column.name].dataType.simpleString() == column.dataType.simpleString()
        # Plain names, since mapInArrow does not quote those that need it.
        typed[column.name] = (quoted if is_so else quoted.cast(column.dataType)).alias(f"c{place}")
    # Equal values of one type have one hash: to Spark too, 0.0 is -0.0, and one NaN is as good as another.
    bucket = sf.pmod(sf.hash(*(typed[name] for name in split.columns)), sf.lit(buckets)) if buckets > 1 else sf.lit(0)
    pack = Pack(side, [column.dataType for column in columns.fields])
    return frame.select(*typed.values(), bucket.cast("long").alias("bucket")).mapInArrow(pack, PACKED)


def _refused(error: PySparkException) -> UnsupportedError:
    text = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return UnsupportedError(
        "compare_live(...), when Spark was to start it",
        needed="two streams that Spark can put into one query, in append mode",
        came=text.strip(),
        hint="let each job write as it does, and compare what they wrote, read back as streams",
    )
