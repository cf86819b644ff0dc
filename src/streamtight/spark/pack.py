"""Many independent inputs in one run. Starting a query costs more than a small batch, so this is where time is won.

Two ways, both only where the job's plan shows that the inputs cannot mix:

- *in turn*: a job without state treats every micro-batch for itself, so one input's batches may follow another's;
- *by a column*: a job that carries a column through, and groups by it wherever it groups, treats the values of that
  column as streams of their own, so batch i holds batch i of every input, each with its own value.

A packed input meets another interleaving with other rows than it would alone. What comes out is one of the things
that the job may do with it, not always the same one as when it is run alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from streamtight.errors import RowError
from streamtight.program.run import Run, Step
from streamtight.spark.rows import Kinds, kinds_of
from streamtight.spark.run import LIMIT, Job, Takes, builder, no_views_left, require_batches, run, tables_of
from streamtight.spark.session import is_connect, session
from streamtight.stream.event import Event, Kind
from streamtight.stream.schedule import Batch, Schedule


@dataclass(frozen=True, slots=True)
class Packed:
    """A run for each schedule, in their order; how they were packed, and why no better way was open."""

    runs: tuple[Run, ...]
    way: str
    """"by a column", "in turn" or "alone"."""
    why_not: str = ""


# Nodes of a plan that treat each row, or each micro-batch, for itself.
_ROW_BY_ROW = frozenset(
    {"Project", "Filter", "SubqueryAlias", "Repartition", "RepartitionByExpression", "Generate", "ResolvedHint"}
)
_WITHOUT_STATE = _ROW_BY_ROW | {"MapInPandas", "MapInArrow", "Union"}


def run_many(
    job: Job,
    schedules: Sequence[Schedule],
    *,
    takes: Takes,
    gives: Kinds | None = None,
    mode: str = "append",
    by: str | None = None,
    limit: float = LIMIT,
    spark: SparkSession | None = None,
) -> Packed:
    """A run of the job for each schedule, as few queries as its plan permits.

    `by` is the name of a column that the job carries through: it is added to the input, an integer that is different
    for each schedule, and taken off the output again. `limit` holds for each query.
    """
    for schedule in schedules:
        require_batches(schedule)
    spark = spark or session()
    asked = _Asked(job, takes, gives, mode, limit, spark)
    reasons = []
    if by is not None:
        reason = asked.why_not_by_column(by, schedules)
        if reason is None:
            return Packed(tuple(asked.by_column(by, schedules)), "by a column")
        reasons.append(f"not by {by}: {reason}")
    reason = asked.why_not_in_turn(schedules)
    if reason is None:
        return Packed(tuple(asked.in_turn(schedules)), "in turn", "; ".join(reasons))
    reasons.append(f"not in turn: {reason}")
    return Packed(tuple(asked.run(schedule) for schedule in schedules), "alone", "; ".join(reasons))


@dataclass(frozen=True, slots=True)
class _Asked:
    job: Job
    takes: Takes
    gives: Kinds | None
    mode: str
    limit: float
    spark: SparkSession

    def run(self, schedule: Schedule, *, takes: Takes | None = None, gives: Kinds | None = None) -> Run:
        return run(
            self.job,
            schedule,
            takes=takes or self.takes,
            gives=gives or self.gives,
            mode=self.mode,
            limit=self.limit,
            spark=self.spark,
        )

    def _why_never(self, schedules: Sequence[Schedule]) -> str | None:
        if self.mode == "batch":
            return "a batch job may look at all of its input at once"
        if is_connect(self.spark):
            return "a Spark Connect session does not show the plan"
        if any(schedule.restarts for schedule in schedules):
            return "a restart concerns all inputs of a query"
        if len({schedule.shuffle_partitions for schedule in schedules}) > 1:
            return "the schedules have different numbers of shuffle partitions"
        return None

    # -- in turn -----------------------------------------------------------------------------------------------------

    def why_not_in_turn(self, schedules: Sequence[Schedule]) -> str | None:
        """Why the batches of one schedule may not follow those of another; None if they may."""
        if reason := self._why_never(schedules):
            return reason
        _, output = self._probe(self.takes)
        for node in _nodes(output):
            streams = sum(child.isStreaming() for child in _listed(node.children()))
            is_lookup = node.nodeName() == "Join" and streams == 1
            if node.children().size() and node.nodeName() not in _WITHOUT_STATE and not is_lookup:
                return f"{node.nodeName()} may keep state from one batch to the next"
        return None

    def in_turn(self, schedules: Sequence[Schedule]) -> Iterator[Run]:
        """One query, the schedules one after another."""
        if not schedules:
            return
        everything = tuple(batch for schedule in schedules for batch in schedule.batches)
        steps = self.run(replace(schedules[0], batches=everything)).steps
        start = 0
        for schedule in schedules:
            end = start + len(schedule.batches)
            yield Run(tuple(replace(step, batch=step.batch - start) for step in steps[start:end]))
            start = end

    # -- by a column -------------------------------------------------------------------------------------------------

    def why_not_by_column(self, by: str, schedules: Sequence[Schedule]) -> str | None:
        """Why the values of this column are not streams of their own to the job; None if they are."""
        if reason := self._why_never(schedules):
            return reason
        if isinstance(self.takes, Mapping):
            return "the job has several inputs"
        frames, output = self._probe(self._with_column(self.takes, by, "takes"))
        mine = _attribute(frames[0], by)
        for node in _nodes(output):
            name = node.nodeName()
            if _listed(node.subqueries()):
                return "the job has a subquery"
            if name == "Aggregate" and mine in _ids(node.groupingExpressions()):
                continue
            if name == "Deduplicate" and mine in _ids(node.keys()):
                continue
            if node.children().size() and name not in _ROW_BY_ROW:
                return f"{name} may mix rows of different {by}"
        if by not in output.columns or _attribute(output, by) != mine:
            return f"the output does not carry {by} as it came in"
        return None

    def by_column(self, by: str, schedules: Sequence[Schedule]) -> Iterator[Run]:
        """One query, batch i of every schedule in its batch i."""
        if not schedules:
            return
        takes = self._with_column(self.takes, by, "takes")
        given = {kind.name: kind for kind in takes}
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
        gives = None if self.gives is None else self._with_column(self.gives, by, "gives")
        packed = self.run(replace(schedules[0], batches=batches), takes=takes, gives=gives)
        for number, schedule in enumerate(schedules):
            steps = packed.steps[: len(schedule.batches)]
            yield Run(tuple(_unmarked(step, number, by, schedule) for step in steps))

    def _with_column(self, kinds: Any, by: str, where: str) -> list[Kind]:
        marked = []
        for kind in kinds_of(kinds, where):
            if by in kind.fields:
                raise RowError(
                    f"run_many(by={by!r})",
                    needed="the name of a column that the kinds do not have",
                    came=f"{kind!r}",
                    hint=f"by={by + '_id'!r}",
                )
            marked.append(Kind(kind.name, **{by: int, **kind.fields}))
        return marked

    def _probe(self, takes: Takes) -> tuple[list[DataFrame], DataFrame]:
        from streamtight.spark.jvm import JvmEngine

        tables = tables_of(takes)
        build = builder(self.job, tables, None, wants_stream=True)
        with no_views_left(self.spark):
            engine = JvmEngine(self.spark, shuffle_partitions=1)
            return engine.probe(build, [table.struct for table in tables.values()])


def _marked(batch: Batch, number: int, kinds: Mapping[str, Kind]) -> Batch:
    return tuple(tuple(kinds[e.kind.name](number, *e[1:]) for e in partition) for partition in batch)


def _side_by_side(batches: Sequence[Batch]) -> Batch:
    """One batch that has in each partition what these batches have in it."""
    width = max((len(batch) for batch in batches), default=1)
    return tuple(
        tuple(event for batch in batches if place < len(batch) for event in batch[place]) for place in range(width)
    )


def _unmarked(step: Step, number: int, by: str, schedule: Schedule) -> Step:
    rows = tuple(
        tuple(_without(event, by) for event in partition if getattr(event, by) == number) for partition in step.output
    )
    return replace(step, input=schedule.batches[step.batch], output=rows)


def _without(event: Event, by: str) -> Event:
    fields = {name: declared for name, declared in event.kind.fields.items() if name != by}
    values = {name: value for name, value in event.as_dict().items() if name != by}
    return Kind(event.kind.name, **fields)(**values)


# -- reading a plan of the JVM ---------------------------------------------------------------------------------------


def _nodes(frame: DataFrame) -> Iterator[Any]:
    """Every node of the analysed plan, the leaves too."""
    waiting = [frame._jdf.queryExecution().analyzed()]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += _listed(node.children())


def _listed(scala_seq: Any) -> list[Any]:
    return [scala_seq.apply(place) for place in range(scala_seq.size())]


def _attribute(frame: DataFrame, name: str) -> int | None:
    """The identity that Spark gave a column, which it keeps through everything that does not compute it anew."""
    for attribute in _listed(frame._jdf.queryExecution().analyzed().output()):
        if attribute.name() == name:
            return int(attribute.exprId().id())
    return None


def _ids(expressions: Any) -> set[int]:
    """The identities of those expressions that are columns as they came."""
    columns = [e for e in _listed(expressions) if e.getClass().getSimpleName() == "AttributeReference"]
    return {int(column.exprId().id()) for column in columns}
