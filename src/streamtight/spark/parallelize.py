"""May this program be split over workers? And its runs on Spark, which give what the sequential program gives."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from streamtight.errors import InconsistentError, InputError, PlanError
from streamtight.method.parallelize.consistency import consistent
from streamtight.method.parallelize.optimize import plan as best_plan
from streamtight.program.fork_join import ForkJoin, Heartbeat
from streamtight.program.plan import InputStream, Plan
from streamtight.program.workers import run_plan
from streamtight.spark.session import require_packages
from streamtight.stream.event import Event
from streamtight.verdict import Verdict

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from streamtight.spark.parallel_stream import ParallelQuery

_NEEDED_PACKAGES = {"numpy": "numpy", "pyarrow": "pyarrow", "pandas": "'pandas<3'"}


def parallelize(
    program: ForkJoin,
    streams: Sequence[InputStream] | InputStream,
    *,
    workers: int | None = None,
    plan: Plan | None = None,
    even_if_inconsistent: bool = False,
    cases: int = 100,
    seconds: float = 10.0,
    seed: int = 0,
) -> Parallelized:
    """A program made ready for several workers: checked, and planned.

    Raises `InconsistentError` if the program is not shown to give the same outputs on any number of workers, with the
    verdict that says why.

    streams                its input streams, with their rates
    workers                how many leaves the plan has at most; without it, as many as the streams allow
    plan                   a plan of one's own
    even_if_inconsistent   run it although its outputs may depend on how it is split
    cases, seconds, seed   how long consistency is tried and proved, as for `consistent`
    """
    streams = [streams] if isinstance(streams, InputStream) else list(streams)
    if not isinstance(program, ForkJoin):
        hint = "class Counts(tight.ForkJoin): ...; parallelize(Counts(), ...)"
        raise PlanError("parallelize(program)", needed="a ForkJoin program", came=repr(program), hint=hint)
    if plan is None:
        plan = best_plan(program, streams, workers=workers)
    elif plan.program is not program and type(plan.program) is not type(program):
        raise PlanError(
            f"parallelize({program.name}, plan=...)",
            needed=f"a plan for {program.name}",
            came=f"one for {plan.program.name}",
            hint="plan(program, streams), or leave it out",
        )
    elif {stream.name for stream in plan.streams} != {stream.name for stream in streams}:
        raise PlanError(
            f"parallelize({program.name}, plan=...)",
            needed=f"a plan for the streams {', '.join(stream.name for stream in streams)}",
            came=f"one for {', '.join(stream.name for stream in plan.streams)}",
            hint="plan(program, streams), or leave it out",
        )
    verdict = consistent(program, cases=cases, seconds=seconds, seed=seed)
    if not verdict.holds and not even_if_inconsistent:
        other = "another fork, join or dependence" if verdict.fails else "more cases=..., or a program without luck"
        raise InconsistentError(
            f"parallelize({program.name})",
            needed="a program that gives the same outputs on any number of workers",
            came="one that does not" if verdict.fails else "one of which that is not known",
            hint=f"{other}; or even_if_inconsistent=True, if other outputs do not matter",
            story=verdict.story(),
            verdict=verdict,
        )
    return Parallelized(plan, verdict)


class Parallelized:
    """A program with a plan, ready to run: here, on Spark, or on a running stream. Made by `parallelize`."""

    def __init__(self, plan: Plan, verdict: Verdict) -> None:
        self.program, self.plan, self.verdict = plan.program, plan, verdict

    def run(self, streams: Mapping[str, Iterable[Event | Heartbeat]], *, seed: int | None = None) -> list[Event]:
        """The outputs on these events, with all workers in this process; a seed chooses who goes on when."""
        return run_plan(self.plan, streams, seed=seed).outputs

    def on_spark(
        self, inputs: Mapping[str, Any], *, output: str | None = None, spark: SparkSession | None = None
    ) -> DataFrame:
        """The outputs on these inputs, as a DataFrame; runs at once, with a Spark task for each leaf of the plan.

        inputs   for each stream a DataFrame, or Parquet files that are sorted by time: a path, a folder, several. Files
                 are read by the tasks themselves, which is several times faster
        output   a folder for the outputs, as Parquet; without it, they come to the driver first

        The columns are the fields of the kind that the program gives; of several kinds, with a column `kind`.
        """
        require_packages("on_spark(...)", _NEEDED_PACKAGES)
        from streamtight.spark.parallel_run import BoundedRun

        return BoundedRun(self.plan, self._inputs(inputs), spark).outputs(output)

    def start(
        self,
        inputs: Mapping[str, Any],
        *,
        checkpoint: str,
        output: Any,
        trigger: Mapping[str, Any] | None = None,
        most_waiting: int = 1_000_000,
        board: str | os.PathLike[str] | None = None,
    ) -> ParallelQuery:
        """A streaming query that gives the outputs micro-batch by micro-batch; nothing is lost or doubled by restarts.

        inputs         a streaming DataFrame for each stream
        checkpoint     a folder that keeps what is needed to go on: Spark's offsets, the state, events that wait
        output         a folder for the outputs, as Parquet; or a function of a DataFrame and the number of a batch, as
                       for foreachBatch: the same number comes again if a batch is done again
        trigger        as for `DataStreamWriter.trigger`, such as {"processingTime": "1 second"}
        most_waiting   how many events may wait for a stream that does not advance, before the query says so and ends
        board          a folder for what the live page shows; if not given, the one that STREAMTIGHT_BOARD names
        """
        require_packages("start(...)", _NEEDED_PACKAGES)
        from streamtight.spark.parallel_stream import ParallelQuery

        return ParallelQuery(
            self.plan,
            self._inputs(inputs),
            checkpoint=checkpoint,
            output=output,
            trigger=trigger,
            most_waiting=most_waiting,
            board=board,
        )

    def events(self, rows: Any) -> list[Event]:
        """The events of outputs: of a DataFrame, or of rows of it."""
        from streamtight.spark.rows import Table

        table = Table(self.program.gives)
        if hasattr(rows, "collect"):
            rows = rows.select(*table.struct.names).collect()
        return [table.from_row(row) for row in rows]

    def _inputs(self, inputs: Any) -> dict[str, Any]:
        names = [stream.name for stream in self.plan.streams]
        if not isinstance(inputs, Mapping) and len(names) == 1:
            inputs = {names[0]: inputs}
        if not isinstance(inputs, Mapping) or set(inputs) != set(names):
            came = ", ".join(map(str, inputs)) if isinstance(inputs, Mapping) else repr(inputs)[:80]
            raise InputError(
                f"inputs of {self.program.name}",
                needed=f"one for each stream: {', '.join(names)}",
                came=came or "none",
                hint=f"{{{names[0]!r}: ..., }}",
            )
        return {name: inputs[name] for name in names}
