"""explore, for all that it takes: pipelines, fork/join programs, Spark's stateful processors, any stateful code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from streamtight.errors import PipelineError
from streamtight.method.explore.decide import Limit
from streamtight.method.explore.explore import explore_pipeline
from streamtight.method.explore.programs import explore_machine
from streamtight.method.explore.world import Property
from streamtight.program.fork_join import ForkJoin
from streamtight.program.letter import INPUT, OUTPUT, letters_of
from streamtight.program.limits import Full, Integers
from streamtight.program.machine import Machine, fork_join_machine
from streamtight.program.pipeline import Pipeline
from streamtight.program.watched import Watched
from streamtight.properties.temporal import Formula
from streamtight.spark.progress import states_reached
from streamtight.verdict import Outcome, Verdict


def explore(
    program: Any,
    claim: Property | str | Callable[[Any], Any],
    *,
    queue: int | Mapping[str, int] = 3,
    domain: int | Integers = 4,
    inputs: Mapping[str, Sequence[Any]] | None = None,
    full: Full = "stop",
    pauses: bool = False,
    together: bool = False,
    ends: bool = False,
    resets: bool = False,
    leaks: bool | str | Sequence[str] = False,
    on: Sequence[Any] | None = None,
    key: str | Sequence[str] | None = None,
    job: Callable[..., Any] | None = None,
    states: int = 1_000_000,
    seconds: float = 60.0,
    engine: Literal["auto", "symbols", "search", "sat"] = "auto",
) -> Verdict:
    """Does the claim hold of this program, whatever comes in?

    HOLDS is for streams of any length, and a counterexample is as short as any and was run before it is told. The claim
    is one of `live`, `no_full_queues`, `same_steps`, `same_sequence`, `approximates`, `stays_true`, `never_stops`; a
    temporal formula whose letters are pushes; or a text such as "AG EF out" or "G (in -> F out)".

    For a pipeline, or a system that a pipeline watches:

    queue     how many events a queue holds: for all, or for each by its name
    domain    which whole numbers there are. A number n: 0 to n - 1 come in and stand for all, and no verdict rests on
              what larger ones would do. `whole(low, high)`: these, and a run that leaves them is not followed.
              `modulo(n)`: 0 to n - 1, which wrap around
    inputs    the values that come on an input, where not all are meant
    full      what happens if an event comes to a full queue: the run is not followed ("stop"), or it is lost ("drop")
    pauses    a push may bring nothing at all. Otherwise it brings an event on one input at least
    together  a push brings events on all inputs
    ends      the streams may end
    resets    the pipeline may start anew, without what it held
    leaks     events may be lost in the pipes: in all, or before these inputs of boxes
    engine    which way of deciding; "auto" tries them in turn

    For stateful code (a `ForkJoin`, Spark's `StatefulProcessor`, a `Machine`), which is run itself:

    on        the events or rows that can come
    key       the columns of the key, for a `StatefulProcessor`
    job       a streaming job that uses the code: a counterexample is run on Spark too, each row as a micro-batch

    states, seconds   how much may be used
    """
    told = states_reached("exploring:")
    if isinstance(program, (Pipeline, Watched)):
        if on is not None or key is not None or job is not None:
            raise PipelineError(
                "explore(pipeline, ...)",
                needed="inputs= for the values of a pipeline",
                came="on=, key= or job=, which are for stateful code",
                hint="inputs={'in': [0, 1]}",
            )
        return explore_pipeline(
            program,
            claim,
            queue=queue,
            domain=domain,
            inputs=inputs,
            full=full,
            pauses=pauses,
            together=together,
            ends=ends,
            resets=resets,
            leaks=leaks,
            states=states,
            seconds=seconds,
            engine=engine,
            told=told,
        )
    verdict = explore_machine(_machine(program, on, key), claim, Limit(states, seconds, told))
    return verdict if job is None or verdict.counterexample is None else _confirmed(verdict, claim, job)


def _machine(program: Any, on: Sequence[Any] | None, key: str | Sequence[str] | None) -> Machine:
    if isinstance(program, Machine):
        return program
    where = f"explore({getattr(program, '__name__', type(program).__name__)}, ...)"
    if not on:
        raise PipelineError(
            where, needed="on=, all events or rows that can come", came="none", hint="on=[Order(1), Cancel(1)]"
        )
    made = program() if isinstance(program, type) and issubclass(program, ForkJoin) else program
    if isinstance(made, ForkJoin):
        return fork_join_machine(made, on)
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    from streamtight.spark.stateful import stateful_machine

    if isinstance(program, StatefulProcessor) or (isinstance(program, type) and issubclass(program, StatefulProcessor)):
        if key is None:
            raise PipelineError(where, needed="key=, the columns of the key", came="none", hint="key='user'")
        return stateful_machine(program, on, key)
    raise PipelineError(
        where,
        needed="a pipeline, a ForkJoin program, a StatefulProcessor or a Machine",
        came=repr(program),
        hint="tight.Machine(name, inputs, start, step) for any code with a state",
    )


def _confirmed(verdict: Verdict, claim: Any, job: Callable[..., Any]) -> Verdict:
    """The verdict, if the job on Spark fails on the same inputs; each of them is a micro-batch."""
    from streamtight.spark.run import run

    assert verdict.counterexample is not None  # noqa: S101 - it fails
    schedule = verdict.counterexample.schedule
    if schedule is None or not isinstance(claim, Formula):
        why = "no temporal formula was asked" if schedule is not None else "not all of its inputs are events of a Kind"
        return _assuming(verdict, f"Spark does what the code does alone, where this was not run ({why})")
    kinds = list(dict.fromkeys(event.kind for event in schedule.events))
    # Run once: the code itself has failed twice already, and each micro-batch of a stateful job takes seconds.
    word = letters_of({OUTPUT: run(job, schedule, takes=kinds)}, {INPUT: kinds})
    if claim.evaluate(word) is False:
        counterexample = replace(verdict.counterexample, reruns=2, failing_reruns=2)
        return replace(verdict, counterexample=counterexample, method=f"{verdict.method}; confirmed on Spark")
    table = verdict.counterexample.table
    if table is not None and any("again" in row[0] for row in table.rows):
        return _assuming(verdict, "Spark goes on as the code does alone, since a run without end cannot be run")
    came = "; ".join(f"{', '.join(map(repr, letter.output)) or 'nothing'}" for letter in word)
    return Verdict(
        verdict.claim,
        Outcome.UNDECIDED,
        verdict.scope,
        reason=f"the code alone breaks it on {len(schedule.batches)} inputs, the job on Spark gives {came}",
        cost=verdict.cost,
        method=verdict.method,
    )


def _assuming(verdict: Verdict, told: str) -> Verdict:
    return replace(verdict, assumptions=(*verdict.assumptions, told))
