"""The model of a pipeline against its runs: the same pipes, queue lengths and stops, push by push, in every world."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from pipeline_oracle import fronts_of, limits_of
from random_pipelines import BOOL, INT, NAME, Draw, World, random_world

from streamtight.errors import PipelineError
from streamtight.method.explore.build import ENDS, RESETS, model_of
from streamtight.method.explore.build import World as Built
from streamtight.program.model import Model, evaluate
from streamtight.program.pipeline import Front, Pipeline
from streamtight.program.processor import NOTHING


def case_of(seed: int) -> tuple[Pipeline, World] | None:
    """A pipeline and a world; every option comes now and then."""
    rng = random.Random(f"model {seed}")
    world = random_world(rng)
    draw = Draw(rng, world.integers, with_last=world.ends)
    takes = tuple(rng.choice((INT, INT, BOOL, NAME)) for _ in range(rng.choice((1, 1, 2, 3))))
    pipeline, _ = draw.pipeline_of(takes, 2, rng.randint(1, 2), most=5)
    leaks: tuple[str, ...] = ()
    if rng.random() < 0.3:
        ports = [*map(pipeline.input_name, pipeline.feeds), *pipeline.outputs]
        leaks = tuple(rng.sample(ports, rng.randint(1, min(3, len(ports)))))
    return pipeline, World(**{**vars(world), "leaks": leaks})


def model(pipeline: Pipeline, world: World) -> Model | None:
    """The model, if this question can be asked."""
    limits = limits_of(world, world.integers)
    try:
        return model_of(pipeline, Built(limits, world.pauses, world.together, world.ends, world.resets, world.leaks))
    except PipelineError:
        return None


def chosen(front: Front, pipeline: Pipeline, world: World, made: Model) -> dict[str, Any]:
    """What the world chose, as the model calls it."""
    values: dict[str, Any] = {ENDS: front.ends, RESETS: front.resets}
    names = list(pipeline.inputs)
    for name, event in zip(names, front.events, strict=True):
        values[f"{names[0] if world.together else name}?"] = event is not NOTHING
        if name in made.choices:
            values[name] = event if event is not NOTHING else made.choices[name].domain.values[0]
    values |= {f"leaks {port}": port in front.leaks for port in world.leaks}
    return {name: value for name, value in values.items() if name in made.choices}


def differences(pipeline: Pipeline, world: World, made: Model, rng: random.Random) -> Iterator[str]:
    """Where one random run and the model differ."""
    fronts, has_ended = [], False
    for _ in range(12):
        fronts.append(rng.choice(fronts_of((pipeline,), world, has_ended)))
        has_ended |= fronts[-1].ends
    state = made.first()
    for push in pipeline.pushes(fronts, limits=limits_of(world, world.integers)):
        values = {**state, **chosen(push.front, pipeline, world, made)}
        at = f"push {push.number} of {fronts}"
        if not evaluate(made.allowed, values):
            yield f"{at} is not allowed"
        stops = {(stop.kind, stop.where) for stop in made.stops if evaluate(stop.when, values)}
        if bool(stops) != (push.stopped is not None):
            yield f"{at}: stops {stops}, but {push.stopped}"
        if push.stopped is not None:
            kinds = {kind for kind, _ in stops}
            if push.stopped.kind not in kinds:
                yield f"{at}: stops {stops}, but {push.stopped.kind}"
            return
        for name, signal in made.pipes.items():
            told = evaluate(signal.value, values) if evaluate(signal.present, values) else NOTHING
            if told != push[name] or type(told) is not type(push[name]):
                yield f"{at}: {name} carries {told!r}, but {push[name]!r}"
        for name, queue in made.queues.items():
            if name in push.queues and evaluate(queue.length, values) != len(push.queues[name]):
                yield f"{at}: {name} holds {evaluate(queue.length, values)}, but {push.queues[name]}"
        state = {name: evaluate(each.after, values) for name, each in made.variables.items()}
        for name, each in made.variables.items():
            if state[name] not in each.domain.values:
                yield f"{at}: {name} is {state[name]!r}, which is not in {each.domain}"


def checked(seed: int, runs: int = 4) -> str | None:
    """What is wrong in the case of a seed."""
    found = case_of(seed)
    if found is None:
        return None
    pipeline, world = found
    made = model(pipeline, world)
    if made is None:
        return None
    rng = random.Random(seed)
    for _ in range(runs):
        wrong = next(differences(pipeline, world, made, rng), None)
        if wrong is not None:
            return wrong
    return None


def test_a_model_does_at_every_push_what_the_pipeline_does():
    wrong = {seed: found for seed in range(100) if (found := checked(seed))}

    assert not wrong


@pytest.mark.slow
def test_many_models_do_at_every_push_what_the_pipelines_do():
    wrong = {seed: found for seed in range(1000, 6000) if (found := checked(seed))}

    assert not wrong
