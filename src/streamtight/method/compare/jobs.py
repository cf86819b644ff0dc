"""Do two jobs give the same stream, and does one job mean the same however it is run?

A *back end* runs jobs; nothing here knows Spark. What is asked is always the same: a candidate's run on one schedule
against a reference's run on another that follows from it.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from streamtight.errors import JobError, StreamtightError
from streamtight.method.compare.oracle import Oracle
from streamtight.method.compare.outputs import Consumer, Equal, Finding, difference, rows
from streamtight.method.compare.pictures import picture_of_order, picture_of_run
from streamtight.method.compare.search import RERUNS, SHRINK_SECONDS, Progress, Question, Runner, search
from streamtight.program.run import Cause, Run
from streamtight.source.generate import Source, listed
from streamtight.source.kept import kept_answer
from streamtight.stream.dependence import Dependence
from streamtight.stream.event import Event
from streamtight.stream.schedule import Batch, Restart, Schedule
from streamtight.stream.trace import Trace
from streamtight.verdict import Outcome, Scope, Verdict

Job = TypeVar("Job", contravariant=True)


class Backend(Protocol[Job]):
    """Runs jobs on schedules."""

    def runner(self, job: Job, mode: str) -> Runner:
        """How this job is run in this mode: many schedules at once where they may be packed, else each alone."""

    def packs(self, job: Job, mode: str) -> bool:
        """Whether several schedules of this job could share a run, as far as is known."""


@dataclass(frozen=True, slots=True)
class Asked(Generic[Job]):
    """What every question about jobs has."""

    backend: Backend[Job]
    source: Source
    upto: Dependence
    equal: Equal
    mode: str
    key: tuple[str, ...]
    runs: int
    seed: int
    replay: Callable[[Schedule], str]
    fixed: Schedule | None = None
    """The one schedule to try, if a counterexample is replayed."""
    progress: Progress | None = None
    shrink_seconds: float = SHRINK_SECONDS

    def answer(self, question: Question) -> Verdict:
        """The verdict of the search; what failed the last time, if somebody kept it, is tried first."""
        if self.fixed is not None:
            fixed = self.fixed
            question = replace(question, schedule=lambda trace, rng: fixed, shrink_seconds=0.0)
            return search(question, runs=1, seed=self.seed, progress=self.progress)

        def on_kept(schedule: Schedule) -> Verdict:
            one = replace(
                question,
                source=listed([Trace(schedule.events, question.promise)]),
                schedule=lambda trace, rng: schedule,
                shrink_seconds=0.0,
                produced=lambda expected, actual: True,  # that an input gives nothing now does not make it fail
                asks=lambda schedule: True,
            )
            return search(one, runs=RERUNS, seed=self.seed)

        kept = kept_answer(question.claim, self.source.kinds, on_kept)
        if kept is not None:
            return kept
        question = replace(question, shrink_seconds=self.shrink_seconds)
        return search(question, runs=self.runs, seed=self.seed, progress=self.progress)


def compare(asked: Asked[Job], reference: Job | Oracle, candidate: Job, *, reference_mode: str, claim: str) -> Verdict:
    """Do both give the same stream, up to the order that matters?

    Both get the same batches, the reference without any parallelism. If the reference is the candidate itself, it gets
    the events in one batch and in one order as well: then the question is whether the job is deterministic.
    """
    consumer = Consumer(asked.mode, asked.key)
    reads_reference = Consumer(reference_mode, asked.key)
    sequential = in_one_batch_of(asked.source.upto) if reference is candidate else without_parallelism

    def judge(schedule: Schedule, expected: Run | None, actual: Run) -> Finding | None:
        came = consumer.reads(actual)
        if isinstance(reference, Oracle):
            return reference.judge(schedule.events, came, upto=asked.upto, equal=asked.equal)
        return difference(reads_reference.reads(_given(expected)), came, upto=asked.upto, equal=asked.equal)

    return asked.answer(
        Question(
            claim=claim,
            source=asked.source,
            schedule=_all_at_once if asked.mode in ("batch", "rdd") else Schedule.random,
            candidate=asked.backend.runner(candidate, asked.mode),
            reference=None
            if isinstance(reference, Oracle)
            else _on(sequential, asked.backend.runner(reference, reference_mode)),
            judge=judge,
            produced=lambda expected, actual: _has_rows(expected) or _has_rows(actual),
            replay=asked.replay,
            promise=asked.source.upto,
            picture=lambda schedule, finding: picture_of_order(finding, asked.upto, asked.equal),
            why_vacuous="the job gave no row" if isinstance(reference, Oracle) else "neither job gave a row",
            packs=lambda: asked.backend.packs(candidate, asked.mode),
        )
    )


def _all_at_once(trace: Trace, rng: random.Random) -> Schedule:
    """For a job that gets no batches but all of its input: what depends on each other is in one partition, in order."""
    return Schedule.random(trace, rng, batches=1)


def _given(run: Run | None) -> Run:
    if run is None:
        raise AssertionError("a judge that needs a reference run was given none")  # pragma: no cover
    return run


def _has_rows(run: Run | None) -> bool:
    return run is not None and rows(run.batches) > 0


def _on(schedule_of: Callable[[Schedule], Schedule], runner: Runner) -> Runner:
    return lambda schedules, packed: runner([schedule_of(one) for one in schedules], packed)


# -- the schedule of the reference ------------------------------------------------------------------------------------


def without_parallelism(schedule: Schedule) -> Schedule:
    """The same batches, each in one partition, with one shuffle partition, and no restart."""
    return Schedule(tuple((sum(batch, ()),) for batch in schedule.batches))


def dealt_back(schedule: Schedule) -> Schedule:
    """The same batches, each in one partition: the first row of every partition, then the second of each, and so on.

    Not one partition after another, since that is how many jobs read them: they would agree by that alone.
    """

    def dealt(batch: Batch) -> tuple[Event, ...]:
        turns = itertools.zip_longest(*batch)
        return tuple(event for turn in turns for event in turn if event is not None)

    return Schedule(tuple((dealt(batch),) for batch in schedule.batches))


def in_one_batch(schedule: Schedule) -> Schedule:
    """All events in one batch and one partition."""
    return Schedule(((schedule.events,),))


def in_one_batch_of(promise: Dependence) -> Callable[[Schedule], Schedule]:
    """All events in one batch, in the one order that stands for all equal ones."""
    return lambda schedule: Schedule(((representative(schedule.events, promise),),))


def without_restarts(schedule: Schedule) -> Schedule:
    """The same, never stopped."""
    return replace(schedule, restarts=())


def reordered_as(promise: Dependence) -> Callable[[Schedule], Schedule]:
    """The same sizes of batches, filled in the one order that stands for all equal ones."""

    def reordered(schedule: Schedule) -> Schedule:
        events = iter(representative(schedule.events, promise))
        sizes = [sum(map(len, batch)) for batch in schedule.batches]
        return Schedule(tuple((tuple(next(events) for _ in range(size)),) for size in sizes))

    return reordered


def representative(events: Sequence[Event], promise: Dependence) -> tuple[Event, ...]:
    """Of all orders of an equal trace the same one: level by level of its normal form, by their texts."""
    return tuple(
        event
        for level in Trace(events, promise).levels
        for event, count in sorted(level.items(), key=lambda item: repr(item[0]))
        for _ in range(count)
    )


# -- laws -------------------------------------------------------------------------------------------------------------

LAWS = ("cuts", "partitions", "order", "restarts", "batch")


def law(asked: Asked[Job], job: Job, *, name: str, law: str) -> Verdict:
    """Does the job mean the same when its input is cut, spread or reordered otherwise, or the job stopped meanwhile?"""
    return _LAWS[law](asked, job, name)


def _law(
    asked: Asked[Job],
    job: Job,
    claim: str,
    schedule: Callable[[Trace, random.Random], Schedule],
    reference: Callable[[Schedule], Schedule],
    named: Callable[[Finding, Schedule, Run, Run], str],
    words: tuple[str, str],
    *,
    reference_mode: str | None = None,
    seen: Callable[[Run], None] = lambda run: None,
    asks: Callable[[Schedule], bool] = lambda schedule: True,
    why_not_asked: str = "",
) -> Verdict:
    """One law: the job on a schedule against itself on the schedule that follows from it."""
    consumer = Consumer(asked.mode, asked.key)
    reads_reference = Consumer(reference_mode or asked.mode, asked.key)
    here, there = words

    def repeats(first: Run, second: Run) -> Finding | None:
        once, again = consumer.reads(first), consumer.reads(second)
        words = ("when it is run once", "when it is run again on the same input")
        finding = difference(once, again, upto=asked.upto, equal=asked.equal, here=words[0], there=words[1])
        return None if finding is None else replace(finding, name="NOT_REPEATABLE", run=second)

    def judge(schedule: Schedule, expected: Run | None, actual: Run) -> Finding | None:
        seen(actual)
        wanted, came = reads_reference.reads(_given(expected)), consumer.reads(actual)
        finding = difference(wanted, came, upto=asked.upto, equal=asked.equal, here=here, there=there)
        if finding is None or finding.name.startswith("RACE"):
            return finding
        return replace(finding, name=named(finding, schedule, _given(expected), actual), run=actual)

    def picture(schedule: Schedule, finding: Finding) -> str:
        if finding.run is None:
            return picture_of_order(finding, asked.upto, asked.equal)
        return picture_of_run(finding, schedule, asked.key, asked.upto, asked.source.upto)

    return asked.answer(
        Question(
            claim=claim,
            source=asked.source,
            schedule=schedule,
            candidate=asked.backend.runner(job, asked.mode),
            reference=_on(
                reference, _as_reference(asked.backend.runner(job, reference_mode or asked.mode), reference_mode)
            ),
            judge=judge,
            produced=lambda expected, actual: _has_rows(expected) or _has_rows(actual),
            replay=asked.replay,
            promise=asked.source.upto,
            picture=picture,
            why_vacuous="the job gave no row",
            asks=asks,
            why_not_asked=why_not_asked,
            repeats=repeats,
            packs=lambda: asked.backend.packs(job, asked.mode),
        )
    )


def _as_reference(runner: Runner, mode: str | None) -> Runner:
    """A job that runs as a stream, but not as a batch, is not asked about that."""

    def run(schedules: Sequence[Schedule], packed: bool) -> Sequence[Run]:
        try:
            return runner(schedules, packed)
        except Exception as error:  # whatever the user's function raises when it is not given a stream
            if mode != "batch" or (isinstance(error, StreamtightError) and not isinstance(error, JobError)):
                raise
            raised = error.raised if isinstance(error, JobError) else ""
            raise _NotAsBatchError(raised or f"{type(error).__name__}: {error}") from error

    return run


def _late(*runs: Run) -> bool:
    return any(step.late_rows for run in runs for step in run.steps)


def _cut(trace: Trace, rng: random.Random) -> Schedule:
    """In the order in which the source gave it, in one partition, cut anywhere."""
    count = len(trace.events)
    cuts = sorted(rng.randint(0, count) for _ in range(rng.randint(1, 4)))
    return Schedule.of(trace.events, cuts=cuts)


def _cuts(asked: Asked[Job], job: Job, name: str) -> Verdict:
    return _law(
        asked,
        job,
        f"{name} means the same however its input is cut into micro-batches",
        _cut,
        in_one_batch,
        lambda finding, schedule, expected, actual: "DROPPED_LATE" if _late(expected, actual) else "BATCH_DEPENDENT",
        ("in one batch", "cut into batches"),
        asks=lambda schedule: sum(any(batch) for batch in schedule.batches) > 1,
        why_not_asked="no input was cut, as none had two events; try a source of longer ones: size=12",
    )


def _partitions(asked: Asked[Job], job: Job, name: str) -> Verdict:
    return _law(
        asked,
        job,
        f"{name} means the same however its input is spread over partitions",
        Schedule.random,
        dealt_back,
        lambda finding, schedule, expected, actual: "PARTITION_DEPENDENT",
        ("in one partition", "spread over partitions"),
        asks=lambda schedule: any(sum(map(bool, batch)) > 1 for batch in schedule.batches),
        why_not_asked=f"no batch had rows in two partitions{_why_so(asked.source.upto)}",
    )


def _why_so(promise: Dependence) -> str:
    if not promise.clauses:
        return "; try more runs"
    return f", since the source promises {promise!r}; try one that promises less: generated(..., upto=unordered)"


def _order(asked: Asked[Job], job: Job, name: str) -> Verdict:
    def reordered(trace: Trace, rng: random.Random) -> Schedule:
        events = trace.reordered(rng).events
        cuts = [] if rng.random() < 0.5 else sorted(rng.randint(0, len(events)) for _ in range(2))
        return Schedule.of(events, cuts=cuts)

    return _law(
        asked,
        job,
        f"{name} means the same in whatever order its input comes"
        + (f" that {asked.source.upto!r} allows" if asked.source.upto.clauses else ""),
        reordered,
        reordered_as(asked.source.upto),
        lambda finding, schedule, expected, actual: "DROPPED_LATE" if _late(expected, actual) else "ORDER_DEPENDENT",
        ("in one order", "in another order"),
        asks=lambda schedule: schedule.events != representative(schedule.events, asked.source.upto),
        why_not_asked=f"no input had another order{_why_so(asked.source.upto)}",
    )


def _restarts(asked: Asked[Job], job: Job, name: str) -> Verdict:
    def stopped(trace: Trace, rng: random.Random) -> Schedule:
        schedule = _cut(trace, rng)
        places = sorted(rng.sample(range(len(schedule.batches)), k=min(len(schedule.batches), rng.randint(1, 2))))
        return replace(schedule, restarts=tuple(Restart(place, replay=rng.random() < 0.5) for place in places))

    def named(finding: Finding, schedule: Schedule, expected: Run, actual: Run) -> str:
        replays = any(restart.replay for restart in schedule.restarts)
        if finding.name == "MISSING_ROWS" or (finding.name == "WRONG_ROWS" and not replays):
            return "LOST_ON_RESTART"
        return "DUPLICATED_ON_REPLAY" if replays else "DUPLICATED_ON_RESTART"

    return _law(
        asked,
        job,
        f"{name} means the same when it is stopped and started again from its checkpoint",
        stopped,
        without_restarts,
        named,
        ("without a stop", "stopped and started again"),
    )


class _NotAsBatchError(Exception):
    """Why the job does not run as a batch."""


def _batch(asked: Asked[Job], job: Job, name: str) -> Verdict:
    claim = f"{name} gives as a stream what it gives as a batch"
    rows_of_flush = 0

    def named(finding: Finding, schedule: Schedule, expected: Run, actual: Run) -> str:
        if _late(actual):
            return "DROPPED_LATE"
        if finding.name == "MISSING_ROWS":
            return "OPEN_AT_END" if actual.open_rows else "LOST_IN_STREAM"
        return "STREAM_DIFFERS"

    def count_flushed(actual: Run) -> None:
        nonlocal rows_of_flush
        rows_of_flush += rows(tuple(step.output for step in actual.steps if step.cause is Cause.FLUSH))

    try:
        verdict = _law(
            asked, job, claim, _cut, in_one_batch, named, ("as a batch", "as a stream"),
            reference_mode="batch", seen=count_flushed,
        )  # fmt: skip
    except _NotAsBatchError as error:
        return Verdict(claim, Outcome.UNDECIDED, Scope.tested(0), reason=f"it does not run as a batch: {error}")
    if verdict.holds and rows_of_flush and asked.mode == "append":
        note = f"{rows_of_flush} rows came only when the watermark was moved to the end of time: OPEN_AT_END until then"
        return replace(verdict, reason=note)
    return verdict


_LAWS: Mapping[str, Callable[..., Verdict]] = {
    "cuts": _cuts,
    "partitions": _partitions,
    "order": _order,
    "restarts": _restarts,
    "batch": _batch,
}
