"""What is explored: the claim that a user means, the pipeline that it is asked of, the world around it; all checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from streamtight.errors import FormulaError, PipelineError
from streamtight.method.explore.build import World
from streamtight.method.explore.relevance import boxes_in
from streamtight.program.limits import Full, Integers, Limits, modulo
from streamtight.program.pipeline import Pipeline, beside, distinct
from streamtight.program.processor import Apply, Cumulate, Group, Insert, Slice, TurnInto, Window, same_event
from streamtight.program.watched import Watched
from streamtight.properties.branching import Branching, formula_of_text
from streamtight.properties.claims import Approximates, Claim, SameSequence, SameSteps
from streamtight.properties.parse import parse
from streamtight.properties.temporal import Formula, now

Property = Claim | Formula | Branching
MOST_PLACES = 5_000
"""Of a queue: each is a variable of the model."""
ROOM = 128
"""How far numbers may go that are calculated from those that come in, where these stand for all."""


def prepared(
    program: Pipeline | Watched,
    claim: Any,
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
) -> tuple[Pipeline, Pipeline, Property, World]:
    """The pipeline, the one that is explored for the claim, the claim, and the world; all checked."""
    pipeline = program.pipeline if isinstance(program, Watched) else program
    meant = claim_of(claim, pipeline)
    asked = _asked(pipeline, meant)
    limits = _limits(asked, queue, domain, full)
    if isinstance(meant, SameSequence):
        # What one of two is ahead of the other is not lost, whatever their own queues do.
        joining = {port.box for port in asked.outputs.values()}
        limits = replace(limits, stopping=frozenset(name for name, port in asked.queues.items() if port.box in joining))
    world = World(
        limits,
        pauses,
        together,
        ends,
        resets,
        _leaking(asked, leaks),
        _listed(asked, inputs),
        program if isinstance(program, Watched) else None,
    )
    if world.watched is not None and (inputs or resets or ends or pauses or leaks):
        raise PipelineError(
            repr(program),
            needed="a system that alone says what comes",
            came="inputs=, ends=, resets=, pauses= or leaks=",
            hint="the same in the system",
        )
    return pipeline, asked, meant, world


def claim_of(given: object, pipeline: Pipeline) -> Property:
    """The claim that a user means."""
    if isinstance(given, (Claim, Branching, Formula)):
        return given
    if isinstance(given, str):
        words = ("always", "eventually", "until", "release", "next")
        if any(f"{word}(" in given.replace(" ", "") for word in words):
            return parse(given, {name: now(name) for name in pipeline.pipes if name.isidentifier()})
        return formula_of_text(given)
    raise FormulaError(
        "explore(pipeline, claim)",
        needed="a claim, a formula, or a text",
        came=repr(given),
        hint="tight.live(), or 'AG EF out'",
    )


def _asked(pipeline: Pipeline, claim: Property) -> Pipeline:
    """The pipeline that is explored: for comparisons, both in one."""
    match claim:
        case SameSteps() | Approximates():
            return beside(pipeline, claim.other)
        case SameSequence():
            return beside(pipeline, claim.other, joined=Apply(same_event))
    return pipeline


def only_output(pipe: str | None, pipeline: Pipeline) -> str:
    """The pipe that is meant: the one that is named, or the only output."""
    if pipe is not None:
        return pipe
    if len(pipeline.outputs) == 1:
        return next(iter(pipeline.outputs))
    raise FormulaError(
        "live()", needed="which output is meant", came=f"{len(pipeline.outputs)} outputs", hint="live('out')"
    )


def _limits(asked: Pipeline, queue: int | Mapping[str, int], domain: int | Integers, full: Full) -> Limits:
    sizes = {"queue": queue} if not isinstance(queue, Mapping) else dict(queue)
    for name, size in sizes.items():
        if type(size) is not int or size < 0:
            raise PipelineError(
                f"queue={queue!r}", needed="numbers of events from 0", came=f"{name}: {size!r}", hint="queue=3"
            )
    most = max((size for size in sizes.values()), default=0)
    if most > MOST_PLACES:
        raise PipelineError("queue=...", needed=f"at most {MOST_PLACES:,} places", came=f"{most:,}", hint="queue=64")
    if full not in ("stop", "drop"):
        raise PipelineError("full=...", needed="'stop' or 'drop'", came=repr(full), hint="full='drop'")
    integers = domain if isinstance(domain, Integers) else modulo(domain)
    if not isinstance(queue, Mapping):
        return Limits(queue, {}, full, integers)
    known = list(_queues_in(asked))
    named = {name: size for each, size in queue.items() for name in _both_sides(each, known, f"queue={queue!r}")}
    return Limits(3, named, full, integers)


def _queues_in(pipeline: Pipeline, path: str = "") -> Iterator[str]:
    """The names of all queues, also of those inside boxes."""
    yield from (path + name for name in pipeline.queues)
    for name, box in pipeline.boxes.items():
        inner = box
        while isinstance(inner, (Window, Slice)):
            inner = inner.inner
        if isinstance(inner, Group):
            yield from _queues_in(inner.pipeline, f"{path}{name}.")


def _both_sides(name: str, known: Sequence[str], where: str) -> list[str]:
    """A name; in comparisons, that of both pipelines."""
    found = [each for each in (name, f"left_{name}", f"right_{name}") if each in known]
    if found:
        return found
    raise PipelineError(
        where,
        needed=f"names among {', '.join(known) or 'none: it has no queues'}",
        came=repr(name),
        hint=known[0] if known else "none",
    )


def _leaking(asked: Pipeline, leaks: bool | str | Sequence[str]) -> tuple[str, ...]:
    known = (*map(asked.input_name, asked.feeds), *asked.outputs)
    if leaks is True:
        return tuple(dict.fromkeys(known))
    given = [leaks] if isinstance(leaks, str) else list(leaks or ())
    return tuple(dict.fromkeys(name for each in given for name in _both_sides(each, known, f"leaks={leaks!r}")))


def _listed(asked: Pipeline, inputs: Mapping[str, Sequence[Any]] | None) -> dict[str, tuple[Any, ...]]:
    if inputs is not None and not isinstance(inputs, Mapping):
        raise PipelineError("inputs=...", needed="a dict by names of inputs", came=repr(inputs), hint="{'in': [0, 1]}")
    listed = {}
    for name, values in (inputs or {}).items():
        where = f"inputs={{{name!r}: ...}}"
        if name not in asked.inputs:
            raise PipelineError(
                where, needed=f"inputs among {', '.join(asked.inputs)}", came=repr(name), hint="inputs={'in': [0, 1]}"
            )
        listed[name] = distinct(values, where)
        if not listed[name]:
            raise PipelineError(where, needed="one value or more", came="none", hint="[0, 1]")
        if all(type(value) is int for value in listed[name]):
            listed[name] = tuple(sorted(listed[name]))
    return listed


def exactly(asked: Pipeline, world: World, *, room: int = ROOM) -> World:
    """The same world, where what is calculated from the numbers that come in has room, or stops the run."""
    narrow = world.limits.integers
    assert narrow is not None  # noqa: S101
    wide = replace(narrow, wraps=False)
    if room:
        most = max(room, 4 * narrow.size, *(2 * abs(number) + 2 for number in named_numbers(asked, world)))
        wide = replace(wide, low=-most, high=most - 1)
    # Numbers that the pipeline names are where it makes a difference, so those beside them come as well.
    beyond = [number for number in named_numbers(asked, replace(world, inputs={})) if number not in narrow]
    near = {number + step for number in beyond for step in (-1, 0, 1)} if room else set()
    numbers = tuple(sorted({*range(narrow.low, narrow.high + 1), *near}))
    come = {name: numbers for name, kind in asked.inputs.items() if kind is int}
    return replace(world, limits=replace(world.limits, integers=wide), inputs={**come, **world.inputs})


def named_numbers(asked: Pipeline, world: World) -> list[int]:
    """The whole numbers that a pipeline, or who asks about it, names."""
    values: list[Any] = [value for listed in world.inputs.values() for value in listed]
    for box in boxes_in(asked):
        match box:
            case TurnInto():
                values.append(box.value)
            case Insert():
                values += box.values
            case Cumulate():
                values.append(box.first)
    return [value for value in values if type(value) is int]
