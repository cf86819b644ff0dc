"""Queries as properties of pipelines: what a query says of the events in the pipes, after every push.

The pipeline itself is run from every state that it can reach, and the query beside it.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

from streamtight.errors import PipelineError
from streamtight.method.explore.build import World
from streamtight.method.explore.decide import Limit
from streamtight.method.explore.programs import explore_machine
from streamtight.method.explore.tell import values_of
from streamtight.program.limits import Limited
from streamtight.program.machine import Machine
from streamtight.program.pipeline import Front, Pipeline
from streamtight.program.processor import NOTHING
from streamtight.properties.claims import Stays
from streamtight.properties.monitor import Compiled
from streamtight.properties.temporal import always, now
from streamtight.properties.transducer import CONFLICT, UNDEFINED
from streamtight.verdict import Scope, Verdict


def explore_query(pipeline: Pipeline, claim: Stays, world: World, limit: Limit) -> Verdict:
    """Does the query's value pass the test after every push, whatever comes in?"""
    if world.ends or world.resets or world.leaks or world.watched is not None:
        raise PipelineError(
            repr(claim),
            needed="a pipeline alone, without ends, resets or leaks",
            came="one of these",
            hint="a temporal formula, which can be asked with them",
        )
    compiled = Compiled(claim.query)
    unknown = [tag for tag in compiled.tags if tag not in pipeline.pipes]
    if unknown:
        raise PipelineError(
            repr(claim),
            needed=f"names of pipes as tags: {', '.join(pipeline.pipes)}",
            came=repr(unknown[0]),
            hint=f"cur of {next(iter(pipeline.outputs))!r}",
        )
    fronts = list(_fronts(pipeline, world))

    def start() -> Any:
        return pipeline.start(), compiled.start

    def step(state: Any, front: Front) -> tuple[Any, list[Any]]:
        rules = Limited(world.limits)
        inside, outs = pipeline.push(state[0], front.events, rules)
        carried = rules.seen | dict(zip(pipeline.outputs, outs, strict=True))
        monitor = compiled.monitor()
        monitor.restore(state[1])
        answers = [monitor.update(tag, carried[tag]) for tag in compiled.tags if carried[tag] is not NOTHING]
        # The answer after the push is that after its last item.
        return (inside, monitor.state()), [each for each in answers[-1:] if each not in (UNDEFINED, CONFLICT)]

    test = claim.test or bool
    machine = Machine(pipeline.name, fronts, start, step, shown=_shown, told=None)
    passes = always(now(lambda at: all(test(answer) for answer in at.output), name="the query passes"))
    verdict = explore_machine(machine, passes, limit)
    within = [f"calculated within {world.limits.integers}", f"with queues of {world.limits.queue}"]
    come = [f"of {len(values)} values on {name}" for name, values in values_of(pipeline, world).items()]
    assumed = () if world.pauses else ("every push brings an event",)
    return replace(
        verdict,
        claim=f"{pipeline.name}: {claim!r}",
        scope=Scope.every_stream(", ".join([*come, *within])),
        assumptions=(*verdict.assumptions, *assumed),
    )


def _fronts(pipeline: Pipeline, world: World) -> Any:
    """All that a push can bring."""
    values = [[NOTHING, *mine] for mine in values_of(pipeline, world).values()]
    for events in itertools.product(*values):
        missing = sum(event is NOTHING for event in events)
        is_idle = missing == len(events)
        if (is_idle and not world.pauses) or (missing and not is_idle and world.together):
            continue
        yield Front(events)


def _shown(front: Front) -> str:
    events = ["-" if event is NOTHING else repr(event) for event in front.events]
    return events[0] if len(events) == 1 else f"({', '.join(events)})"
