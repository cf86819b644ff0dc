"""Many independent inputs in one run. Starting a query costs more than a small batch, so this is where time is won.

Two ways, both only where the job's plan shows that the inputs cannot mix:

- *side by side*: batch i holds batch i of every input, and the number of the input is a column that the job does not
  see; its plan is changed to carry the column through, to group by it wherever it groups, and to join on it;
- *in turn*: a job without state treats every micro-batch for itself, so one input's batches may follow another's.

A plan does not show everything that the job's own Python does, so a job is trusted to run side by side only after one
of the inputs has given the same rows alone.

A packed input meets another interleaving with other rows than it would alone. What comes out is one of the things
that the job may do with it, not always the same one as when it is run alone.
"""

from __future__ import annotations

import contextlib
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from streamtight.errors import JobError, TimeLimitError
from streamtight.program.run import Run, Step
from streamtight.spark.rows import Kinds, kinds_of
from streamtight.spark.run import (
    LIMIT,
    ONE_AT_A_TIME,
    STATIC,
    Job,
    Takes,
    builder,
    no_views_left,
    require_batches,
    run,
    tables_of,
)
from streamtight.spark.session import is_connect, session
from streamtight.stream.event import Event, Kind
from streamtight.stream.schedule import Batch, Schedule


@dataclass(frozen=True, slots=True)
class Packed:
    """A run for each schedule, in their order; how they were packed, and why no better way was open."""

    runs: tuple[Run, ...]
    way: str
    """"side by side", "in turn" or "alone"."""
    why_not: str = ""


# Nodes of a plan that treat each row, or each micro-batch, for itself.
_ROW_BY_ROW = frozenset(
    {"Project", "Filter", "SubqueryAlias", "View", "Repartition", "RepartitionByExpression", "Generate", "ResolvedHint"}
)
_WITHOUT_STATE = _ROW_BY_ROW | {"MapInPandas", "MapInArrow", "Union"}


def run_many(
    job: Job,
    schedules: Sequence[Schedule],
    *,
    takes: Takes,
    gives: Kinds | None = None,
    mode: str = "append",
    flush: bool = False,
    limit: float = LIMIT,
    spark: SparkSession | None = None,
) -> Packed:
    """A run of the job for each schedule, as few queries as its plan permits.

    `flush` is what it is for `run`. `limit` holds for each query.
    """
    if isinstance(schedules, Schedule):
        schedules = [schedules]
    for schedule in schedules:
        require_batches(schedule)
    spark = spark or session()
    asked = _Asked(job, takes, gives, mode, flush, limit, spark)
    reasons: list[str] = []
    for way, attempt in (("side by side", asked.side_by_side), ("in turn", asked.in_turn)):
        try:
            asked.require_packable(schedules)
            return Packed(tuple(attempt(schedules)), way, "; ".join(reasons))
        except _NeverPackedError as reason:
            reasons.append(str(reason))
            break
        except _CannotPackError as reason:
            reasons.append(f"not {way}: {reason}")
        except (JobError, TimeLimitError):
            # Which of the inputs it was, and in which of its batches, only a run of its own can tell.
            reasons.append(f"not {way}: the job failed")
    return Packed(tuple(asked.alone(schedules)), "alone", "; ".join(reasons))


_RUN = "streamtight_run"
_TRUSTED: weakref.WeakKeyDictionary[Job, set[str]] = weakref.WeakKeyDictionary()
"""The jobs, with their modes, of which an input gave the same alone as beside others."""


class _CannotPackError(Exception):
    """Why the inputs cannot go into one query, this way."""


class _NeverPackedError(_CannotPackError):
    """Why they cannot in any way."""


@dataclass(frozen=True, slots=True)
class _Asked:
    job: Job
    takes: Takes
    gives: Kinds | None
    mode: str
    flush: bool
    limit: float
    spark: SparkSession

    def run(self, schedule: Schedule, *, takes: Takes | None = None, gives: Kinds | None = None) -> Run:
        return run(
            self.job,
            schedule,
            takes=takes or self.takes,
            gives=gives or self.gives,
            mode=self.mode,
            flush=self.flush,
            limit=self.limit,
            spark=self.spark,
        )

    def alone(self, schedules: Sequence[Schedule]) -> Iterator[Run]:
        """A query for each schedule."""
        for number, schedule in enumerate(schedules):
            try:
                yield self.run(schedule)
            except (JobError, TimeLimitError) as error:
                error.add_note(f"in schedule {number} of those that were given")
                raise

    def require_packable(self, schedules: Sequence[Schedule]) -> None:
        """Raise if no two of these inputs may share a query."""
        if self.mode in STATIC:
            raise _NeverPackedError(f"{STATIC[self.mode]} may look at all of its input at once")
        if is_connect(self.spark):
            raise _NeverPackedError("a Spark Connect session does not show the plan")
        if any(schedule.restarts for schedule in schedules):
            raise _NeverPackedError("a restart concerns all inputs of a query")
        if len({schedule.shuffle_partitions for schedule in schedules}) > 1:
            raise _NeverPackedError("the schedules have different numbers of shuffle partitions")

    # -- in turn -----------------------------------------------------------------------------------------------------

    def in_turn(self, schedules: Sequence[Schedule]) -> list[Run]:
        """One query, the schedules one after another; only for a job that keeps nothing from batch to batch."""
        _, output = self._probe(self.takes)
        for node in _nodes(output):
            streams = sum(child.isStreaming() for child in _listed(node.children()))
            is_lookup = node.nodeName() == "Join" and streams == 1
            _require_no_other_stream(node)
            if node.children().size() and node.nodeName() not in _WITHOUT_STATE and not is_lookup:
                raise _CannotPackError(f"{node.nodeName()} may keep state from one batch to the next")
        if not schedules:
            return []
        everything = tuple(batch for schedule in schedules for batch in schedule.batches)
        steps = self.run(replace(schedules[0], batches=everything)).steps
        runs, start = [], 0
        for schedule in schedules:
            end = start + len(schedule.batches)
            runs.append(Run(tuple(replace(step, batch=step.batch - start) for step in steps[start:end])))
            start = end
        return runs

    # -- side by side ------------------------------------------------------------------------------------------------

    def side_by_side(self, schedules: Sequence[Schedule]) -> list[Run]:
        """One query, batch i of every schedule in its batch i, with a column that is carried through the job's plan."""
        if len(schedules) < 2:
            raise _CannotPackError("one input has nothing beside it")
        from streamtight.spark.jvm import JvmEngine

        engine = JvmEngine(self.spark, shuffle_partitions=1)

        def carrying(*frames: DataFrame, **named: DataFrame) -> DataFrame:
            given = {name: frame.drop(_RUN) for name, frame in named.items()}
            made = self.job(*(frame.drop(_RUN) for frame in frames), **given)
            if not isinstance(made, DataFrame):
                raise _CannotPackError(f"{type(made).__name__} is no DataFrame")
            try:
                return engine.carry(made, _RUN)
            except ValueError as error:
                raise _CannotPackError(str(error)) from error

        carrying.__name__ = getattr(self.job, "__name__", "output")
        if isinstance(self.takes, Mapping):
            takes: Any = {name: _with_run(kinds, "takes") for name, kinds in self.takes.items()}
        else:
            takes = _with_run(self.takes, "takes")
        every = [kind for kinds in (takes.values() if isinstance(takes, Mapping) else [takes]) for kind in kinds]
        given = {kind.name: kind for kind in every}
        longest = max(len(schedule.batches) for schedule in schedules)
        batches = tuple(
            _side_by_side(
                [
                    _marked(schedule.batches[place], number, given)
                    for number, schedule in enumerate(schedules)
                    if place < len(schedule.batches)
                ]
            )
            for place in range(longest)
        )
        gives = None if self.gives is None else _with_run(self.gives, "gives")
        packed = replace(self, job=carrying).run(replace(schedules[0], batches=batches), takes=takes, gives=gives)
        runs = []
        for number, schedule in enumerate(schedules):
            steps = packed.steps[: len(schedule.batches)]
            runs.append(Run(tuple(_unmarked(step, number, schedule) for step in steps)))
        if not self._is_trusted():
            # The input with the most rows says the most about whether others show in what it gives.
            largest = max(range(len(schedules)), key=lambda number: len(schedules[number].events))
            if _bags(runs[largest]) != _bags(self.run(schedules[largest])):
                raise _CannotPackError("an input gives other rows when it is run alone")
            with contextlib.suppress(TypeError):
                _TRUSTED.setdefault(self.job, set()).add(self.mode)
        return runs

    def _is_trusted(self) -> bool:
        try:
            return self.mode in _TRUSTED.get(self.job, ())
        except TypeError:  # not every function can be kept that way
            return False

    def _probe(self, takes: Takes) -> tuple[list[DataFrame], DataFrame]:
        from streamtight.spark.jvm import JvmEngine

        tables = tables_of(takes)
        build = builder(self.job, tables, None, wants_stream=True)
        with ONE_AT_A_TIME, no_views_left(self.spark):
            engine = JvmEngine(self.spark, shuffle_partitions=1)
            try:
                return engine.probe(build, [table.struct for table in tables.values()])
            except PySparkException as error:
                first_line = str(error).strip().partition("\n")[0]
                raise _CannotPackError(f"the job cannot be built: {first_line}") from error


def _with_run(kinds: Any, where: str) -> list[Kind]:
    """The kinds with the column that tells the inputs apart."""
    marked = []
    for kind in kinds_of(kinds, where):
        if _RUN in (name.casefold() for name in kind.fields):  # Spark does not tell upper and lower case apart
            raise _CannotPackError(f"{kind.name} has a field {_RUN}")
        marked.append(Kind(kind.name, **{**kind.fields, _RUN: int}))
    return marked


def _marked(batch: Batch, number: int, kinds: Mapping[str, Kind]) -> Batch:
    try:
        return tuple(tuple(kinds[e.kind.name](*e[1:], number) for e in partition) for partition in batch)
    except KeyError as error:  # a run of its own says what is wrong with it
        raise _CannotPackError(f"{error} is not in takes") from error


def _side_by_side(batches: Sequence[Batch]) -> Batch:
    """One batch that has in each partition what these batches have in it."""
    width = max((len(batch) for batch in batches), default=1)
    return tuple(
        tuple(event for batch in batches if place < len(batch) for event in batch[place]) for place in range(width)
    )


def _unmarked(step: Step, number: int, schedule: Schedule) -> Step:
    rows = tuple(
        tuple(_without_run(event) for event in partition if getattr(event, _RUN) == number) for partition in step.output
    )
    # What Spark counts and times is about all inputs at once.
    given = schedule.batches[step.batch]
    return replace(step, input=given, output=rows, state_rows=None, late_rows=None, milliseconds={})


def _bags(run: Run) -> list[Counter[Event]]:
    """What comes out of each step, without regard to order."""
    return [Counter(event for partition in step.output for event in partition) for step in run.steps]


def _without_run(event: Event) -> Event:
    fields = {name: declared for name, declared in event.kind.fields.items() if name != _RUN}
    values = {name: value for name, value in event.as_dict().items() if name != _RUN}
    return Kind(event.kind.name, **fields)(**values)


# -- reading a plan of the JVM ---------------------------------------------------------------------------------------


def _nodes(frame: DataFrame) -> Iterator[Any]:
    """Every node of the analysed plan, the leaves too."""
    waiting = [frame._jdf.queryExecution().analyzed()]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += _listed(node.children())


def _require_no_other_stream(node: Any) -> None:
    if not node.children().size() and node.isStreaming() and node.toString() != "memory":
        raise _CannotPackError(f"the job reads another stream: {node.toString()}")


def grouping_columns(job: Job, *, takes: Takes, spark: SparkSession) -> tuple[str, ...] | None:
    """The columns of a streaming job's output that its last groupBy groups by; None if the plan does not show them."""
    if is_connect(spark):
        return None
    asked = _Asked(job, takes, None, "update", False, LIMIT, spark)
    try:
        _, output = asked._probe(takes)
    except _CannotPackError:
        return None
    for node in _nodes(output):
        if node.nodeName() == "Aggregate":
            grouping = _listed(node.groupingExpressions())
            made = _listed(node.aggregateExpressions())
            keys = [one for one in made if any(_is_of(one, group) for group in grouping)]
            ids = {int(one.exprId().id()) for one in keys}
            columns = _listed(output._jdf.queryExecution().analyzed().output())
            names = tuple(column.name() for column in columns if int(column.exprId().id()) in ids)
            return names if len(names) == len(grouping) else None
    return None


def _is_of(column: Any, group: Any) -> bool:
    """Is this output column of an aggregate one of its groups, perhaps under another name?"""
    inner = column.child() if column.getClass().getSimpleName() == "Alias" else column
    outer = group.child() if group.getClass().getSimpleName() == "Alias" else group
    return bool(inner.semanticEquals(group) or inner.semanticEquals(outer))


def _listed(scala_seq: Any) -> list[Any]:
    return [scala_seq.apply(place) for place in range(scala_seq.size())]
