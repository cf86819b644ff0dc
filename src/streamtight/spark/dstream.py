"""Jobs on DStreams: a schedule batch by batch, on a clock that is moved by hand, so that no time is waited for.

An element goes in and comes out as it does for a job on RDDs; see rdd.py. Spark allows one StreamingContext at a time,
so runs never overlap. DStreams are deprecated, but many run.
"""

from __future__ import annotations

import contextlib
import inspect
import queue
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from streamtight.errors import JobError, StreamtightError, TraceError, UnsupportedError
from streamtight.program.run import Cause, Run, Step
from streamtight.spark.engine import Feed
from streamtight.spark.failure import job_error, time_limit_error
from streamtight.spark.rdd import events_of, rdd_of, require_rdds
from streamtight.spark.rows import Kinds, Table, kinds_of
from streamtight.spark.run import ONE_AT_A_TIME, Job, Takes, checkpoint, job_name, naming, require_batches, tables_of
from streamtight.stream.schedule import Schedule

if TYPE_CHECKING:
    from pyspark.streaming import DStream, StreamingContext

_CLOCK = "spark.streaming.clock"
_BY_HAND = "org.apache.spark.util.ManualClock"
INTERVAL = timedelta(seconds=1)
"""The batch interval, which is what windows of DStreams are counted in. No such second passes."""
_LOOK = 0.05  # seconds between two looks whether the context has failed

Until = Callable[[Mapping[str, Step]], bool]


def run_dstreams(
    job: Job,
    schedule: Schedule,
    *,
    takes: Takes,
    gives: Mapping[str, Kinds | None],
    spark: SparkSession,
    limit: float,
    until: Until | None = None,
) -> dict[str, Run]:
    """A run for each of these outputs of the job; a job that returns no dict has one, whatever its name.

    `until` is told the steps of every batch, by output, and the run stops after the first one for which it says True.
    """
    require_batches(schedule)
    require_rdds(spark, "mode='dstream'")
    if schedule.restarts:
        raise TraceError(
            "mode='dstream'", needed="a schedule without restarts", came=repr(schedule.restarts), hint="restarts=()"
        )
    inputs = tables_of(takes)
    kinds = {name: None if some is None else kinds_of(some, "gives") for name, some in gives.items()}
    steps: dict[str, list[Step]] = {name: [] for name in gives}
    with ONE_AT_A_TIME, checkpoint(spark) as folder, naming(job), _context(spark.sparkContext) as context:
        context.checkpoint(str(folder))
        made = _outputs(job, inputs, schedule, context, list(gives))
        came: _Came = queue.Queue()
        for name, stream in made.items():
            stream.foreachRDD(_Collector(name, came).function())
        clock = _start(context)
        deadline = time.monotonic() + limit
        for number, given in enumerate(schedule.batches):
            clock.advance(int(INTERVAL.total_seconds() * 1000))
            collected = _collected(context, came, len(gives), number, deadline, limit)
            for name, partitions in collected.items():
                rows = events_of(partitions, kinds[name], name if len(gives) > 1 else job_name(job))
                steps[name].append(Step(number, Cause.DATA, given, rows))
            if until is not None and until({name: those[-1] for name, those in steps.items()}):
                break
    return {name: Run(tuple(those)) for name, those in steps.items()}


def _outputs(
    job: Job,
    inputs: Mapping[str | None, Table],
    schedule: Schedule,
    context: StreamingContext,
    names: list[str],
) -> dict[str, DStream[Any]]:
    """The job's DStreams by name, given its inputs as queues of one RDD for each batch."""
    from pyspark.streaming import DStream

    spark = context.sparkContext
    given: dict[str | None, DStream[Any]] = {}
    for name, table in inputs.items():
        kinds = set(table.kinds)
        rdds = [
            rdd_of(spark, Feed(table.struct, [[[table.to_row(e) for e in part if e.kind in kinds] for part in batch]]))
            for batch in schedule.batches
        ]
        given[name] = context.queueStream(rdds, oneAtATime=True, default=spark.parallelize([], 1))
    named = {name: stream for name, stream in given.items() if name is not None}
    arguments = [] if named else list(given.values())
    try:
        inspect.signature(job).bind(*arguments, **named)
    except TypeError as error:
        raise _wrong(job, "a function of " + (", ".join(named) or "one DStream"), str(error), "takes={...}") from None
    except ValueError:
        pass  # a builtin without a signature; calling it will tell
    result: Any = job(*arguments, **named)
    made = dict(result) if isinstance(result, Mapping) else {names[0]: result}
    if list(made) != names and set(made) != set(names):
        raise _wrong(job, f"the outputs {', '.join(names)}", ", ".join(made) or "none", "gives={...} with their names")
    for name, stream in made.items():
        if not isinstance(stream, DStream):
            raise _wrong(job, "a DStream", f"{stream!r} for {name}", "return the DStream, before foreachRDD or pprint")
    return {name: made[name] for name in names}


def _wrong(job: Job, needed: str, came: str, hint: str) -> JobError:
    return JobError(f"what {job_name(job)} returns", needed=needed, came=came, hint=hint, batch=None, raised="")


_Came = queue.Queue[tuple[str, list[list[Any]] | Exception]]


class _Collector:
    """What is done with every RDD of an output."""

    def __init__(self, name: str, came: _Came) -> None:
        self._name = name
        self._came = came

    def function(self) -> Callable[[datetime, Any], None]:
        """As PySpark wants it, which looks at the code of what it is given."""
        return lambda at, rdd: self.collect(rdd)

    def collect(self, rdd: Any) -> None:
        """Put the rows of this RDD where they are waited for."""
        try:
            self._came.put((self._name, rdd.glom().collect()))
        except Exception as error:  # told to the thread that waits; raised here, it would only be written to a log
            self._came.put((self._name, error))

    def __reduce__(self) -> tuple[Any, ...]:
        # Spark writes all functions into the checkpoint, which a stateful job must have. Nobody reads it.
        return (str, (self._name,))


def _collected(
    context: StreamingContext,
    came: _Came,
    outputs: int,
    number: int,
    deadline: float,
    limit: float,
) -> dict[str, list[list[Any]]]:
    """What came out of this batch, by output."""
    found: dict[str, list[list[Any]]] = {}
    while len(found) < outputs:
        if time.monotonic() > deadline:
            raise time_limit_error(f"batch {number}", limit)
        try:
            name, partitions = came.get(timeout=_LOOK)
        except queue.Empty:
            _require_running(context, number)
            continue
        if isinstance(partitions, StreamtightError):
            raise partitions
        if isinstance(partitions, Exception):
            raise job_error(partitions, batch=number) from partitions
        found[name] = partitions
    return found


def _require_running(context: StreamingContext, number: int) -> None:
    try:
        ended = context._jssc.awaitTerminationOrTimeout(0)
    except Py4JJavaError as error:
        raise job_error(error, batch=number) from error
    if ended:
        raise job_error(RuntimeError("the context was stopped while it ran"), batch=number)


@contextlib.contextmanager
def _context(spark: SparkContext) -> Iterator[StreamingContext]:
    """A StreamingContext whose clock stands still; stopped at the end, and the setting is as before."""
    from pyspark.streaming import StreamingContext

    if StreamingContext._activeContext is not None:
        raise UnsupportedError(
            "mode='dstream'",
            needed="no StreamingContext that runs: Spark allows one at a time",
            came="one that was started before",
            hint="stop it first: context.stop(stopSparkContext=False)",
        )
    conf: Any = spark._conf
    own = conf.get(_CLOCK)
    conf.set(_CLOCK, _BY_HAND)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # DStreams are deprecated; who asks about one knows
            context = StreamingContext(spark, int(INTERVAL.total_seconds()))
        try:
            yield context
        finally:
            context.stop(stopSparkContext=False, stopGraceFully=False)
    finally:
        if own is None:
            conf._jconf.remove(_CLOCK)
        else:
            conf.set(_CLOCK, own)


def _start(context: StreamingContext) -> Any:
    """Start it, and its clock."""
    try:
        context.start()
    except Py4JJavaError as error:
        raise job_error(error, batch=None) from error
    return context._jssc.ssc().scheduler().clock()
