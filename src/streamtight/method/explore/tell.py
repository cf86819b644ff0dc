"""Counterexamples of pipelines: run again, told, and drawn."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import product
from typing import Any

from streamtight.errors import EncodingError
from streamtight.method.explore.build import ENDS, MOVES, RESETS, World
from streamtight.method.explore.decide import Chosen
from streamtight.program.limits import Limited, Limits, Stopped
from streamtight.program.pipeline import Front, Pipeline, Port, Push
from streamtight.program.processor import NOTHING, Cumulate, Group, Slice, Window
from streamtight.program.watched import Watched
from streamtight.properties.automaton import automaton
from streamtight.properties.branching import Branching, State
from streamtight.properties.claims import (
    Approximates,
    Claim,
    Live,
    NeverStops,
    NoFullQueues,
    SameSequence,
    SameSteps,
    StaysTrue,
)
from streamtight.properties.temporal import Formula
from streamtight.verdict import Table

MOST_ROWS = 16
"""Pushes that are told; of a longer run, the first and the last ones."""
MOST_CONFIRMED = 20_000
"""Pushes that are tried when the run itself is asked whether nothing comes out any more."""


def fronts_of(pipeline: Pipeline, world: World, path: Sequence[Chosen]) -> list[Front]:
    """What was chosen, as what pushes bring."""
    if world.watched is not None:
        return _seen(world.watched, path)
    names = list(pipeline.inputs)
    values = values_of(pipeline, world)
    given = []
    for number, chosen in enumerate(path):
        is_idle = bool(chosen.get(ENDS) or chosen.get(RESETS))
        events = []
        for name in names:
            shared = names[0] if world.together else name
            present = chosen.get(f"{shared}?", not is_idle)
            # What makes no difference is another value each time, so that events can be told apart.
            any_value = values[name][number % len(values[name])]
            events.append(chosen.get(name, any_value) if present else NOTHING)
        leaks = frozenset(port for port in world.leaks if chosen.get(f"leaks {port}"))
        given.append(Front(tuple(events), leaks, bool(chosen.get(ENDS)), bool(chosen.get(RESETS))))
    return given


def values_of(pipeline: Pipeline, world: World) -> dict[str, Sequence[Any]]:
    """All values that can come on each input."""
    given: dict[str, Sequence[Any]] = {}
    integers = world.limits.integers
    for name, kind in pipeline.inputs.items():
        if name in world.inputs:
            given[name] = world.inputs[name]
        elif kind is int and integers is not None:
            given[name] = range(integers.low, integers.high + 1)
        else:
            given[name] = (False, True) if kind is bool else kind
    return given


def _seen(watched: Watched, path: Sequence[Chosen]) -> list[Front]:
    system = watched.system
    successors, at = [*system.successors, system.first_states], len(system.states)
    given = []
    for chosen in path:
        at = successors[at][chosen.get(MOVES, 0)]
        values = dict(zip(system.names, system.states[at], strict=True))
        given.append(Front(tuple(values[variable] for variable in watched.sees.values())))
    return given


def breaks(
    pipeline: Pipeline,
    claim: Claim | Formula | Branching,
    fronts: Sequence[Front],
    loop: Sequence[Front],
    limits: Limits,
    inputs: Mapping[str, Sequence[Any]],
    exactly: Collection[str] | None = None,
    part: Branching | None = None,
) -> tuple[bool, list[Push]]:
    """Does the claim break when the pipeline itself is run on this? And that run.

    limits    those of the model, or others
    exactly   boxes that must hold the same after each round of a loop; without it, what was searched is trusted for
              what one run cannot show
    part      what is false of a CTL formula where the run ends
    """
    run = list(pipeline.pushes([*fronts, *loop, *loop, *loop], limits=limits))
    shown = run[: len(fronts) + len(loop)]
    if run and run[-1].stopped is not None:
        return isinstance(claim, NeverStops) and len(run) == len(fronts), run
    last = run[-1] if run else None
    match claim:
        case NeverStops():
            return False, shown
        case NoFullQueues() if last is not None:
            names = [name for name in claim.queues or last.queues if name in last.queues]
            is_full = any(len(last.queues[name]) >= (limits.places(name) or 0) for name in names)
            return is_full or _has_hidden_queues(pipeline), shown
        case SameSteps() if last is not None:
            outs = list(last.outs.values())
            half = len(outs) // 2
            return outs[:half] != outs[half:] or any(
                type(a) is not type(b) for a, b in zip(outs[:half], outs[half:], strict=True)
            ), shown
        case Approximates() if last is not None:
            outs = list(last.outs.values())
            half = len(outs) // 2
            return any(
                (left is NOTHING) != (right is NOTHING) or (left is True and right is False)
                for left, right in zip(outs[:half], outs[half:], strict=True)
            ), shown
        case SameSequence() if last is not None:
            return any(out is False for out in last.outs.values()), shown
        case StaysTrue() if last is not None:
            return last[claim.pipe or next(iter(last.outs))] is False, shown
        case Live(within=None):
            is_silent = _is_silent(pipeline, fronts, limits, claim.pipe, inputs)
            return exactly is None if is_silent is None else is_silent, shown
        case Formula():
            rounds = [run[len(fronts) + number * len(loop) - 1] for number in range(1, 4)] if loop else []
            kept = [[(push.states.get(box), push.queues) for box in sorted(exactly or ())] for push in rounds]
            is_round = all(each == kept[0] for each in kept)
            return is_round and _is_broken(claim, run, len(fronts), len(loop)), shown
        case Branching():
            # What other runs can do is not seen on one run; but a test of its last push is.
            is_test = isinstance(part, State) and not loop and last is not None
            return not is_test or part.test.evaluate([last]) is False, shown  # type: ignore[union-attr]
    return False, shown


def _has_hidden_queues(pipeline: Pipeline) -> bool:
    """Whether there are queues in windows or slices, of which a push tells nothing."""
    return any(
        isinstance(box, (Window, Slice)) or (isinstance(box, Group) and _has_hidden_queues(box.pipeline))
        for box in pipeline.boxes.values()
    )


def _is_broken(formula: Formula, run: Sequence[Push], path: int, loop: int) -> bool:
    if not loop:
        return formula.evaluate(run[:path]) is False
    # The run goes round: what the formula asks for is the same in each round, and no prefix of it keeps the formula.
    atoms = automaton(formula).atoms
    seen = [[atom.evaluate([push]) for atom in atoms] for push in run[path:]]
    return all(seen[place] == seen[place % loop] for place in range(len(seen))) and formula.evaluate(run) is not True


def _is_silent(
    pipeline: Pipeline, fronts: Sequence[Front], limits: Limits, pipe: str | None, inputs: Mapping[str, Sequence[Any]]
) -> bool | None:
    """Whether nothing comes out any more after these pushes, tried with the pipeline; None if that is too much."""
    name = pipe or next(iter(pipeline.outputs))
    state = pipeline.start()
    for front in fronts:
        if front.resets:
            state = pipeline.start()
        else:
            state, _ = pipeline.push(state, front.events, Limited(limits, leaks=front.leaks), ends=front.ends)
    choices = list(product(*((*inputs[each], NOTHING) for each in pipeline.inputs)))
    seen, waiting, tried = {state}, [state], 0
    for at in waiting:
        for events in choices:
            tried += 1
            if tried > MOST_CONFIRMED:
                return None
            rules = Limited(limits)
            try:
                after, outs = pipeline.push(at, events, rules)
            except Stopped:
                continue
            carried = dict(rules.seen) | dict(zip(pipeline.outputs, outs, strict=True))
            if carried[name] is not NOTHING:
                return False
            if after not in seen:
                seen.add(after)
                waiting.append(after)
    return True


def unconfirmed(claim: object, fronts: Sequence[Front]) -> EncodingError:
    """The error for a counterexample that is none when the pipeline is run on it: a bug of ours."""
    return EncodingError(
        f"explore(..., {claim!r})",
        needed="a counterexample that breaks the claim when the pipeline is run on it",
        came=f"one that does not: {[front.events for front in fronts]}",
        hint="please report this with the pipeline; it is a bug in streamtight",
    )


# -- what a person reads ---------------------------------------------------------------------------------------------


def finding(claim: Claim | Formula | Branching) -> str:
    """The name of what is wrong."""
    match claim:
        case Live():
            return "SILENT"
        case NoFullQueues():
            return "QUEUE_FULL"
        case SameSteps():
            return "STEPS_DIFFER"
        case SameSequence():
            return "SEQUENCES_DIFFER"
        case Approximates():
            return "NO_APPROXIMATION"
        case StaysTrue():
            return "BECOMES_FALSE"
        case NeverStops():
            return "STOPS"
    return "PROPERTY_BROKEN"


def marked(claim: Claim | Formula | Branching, run: Sequence[Push], limits: Limits) -> str | None:
    """What the picture of the last push points at."""
    if not run:
        return None
    match claim:
        case NoFullQueues():
            held = run[-1].queues.items()
            return next((name for name, events in held if len(events) >= (limits.places(name) or 0)), None)
        case Live() | StaysTrue():
            return claim.pipe or next(iter(run[-1].outs))
        case SameSequence():
            return next((name for name, out in run[-1].outs.items() if out is False), None)
    return None


def explained(
    claim: Claim | Formula | Branching,
    pipeline: Pipeline,
    run: Sequence[Push],
    loop: int,
    part: Branching | None,
    limits: Limits,
    names: Sequence[str],
) -> str:
    """What happened, in a sentence. `names` are those of the pipelines."""
    last = run[-1] if run else None
    count = len(run) - loop
    after = f"after {count} push{'' if count == 1 else 'es'}"
    match claim:
        case Live(within=None):
            pipe = claim.pipe or "the output"
            return f"{after if run else 'from the beginning'}, nothing comes on {pipe} any more, whatever comes in"
        case Live():
            pipe = claim.pipe or "the output"
            return f"nothing came on {pipe} for {claim.within} pushes, up to push {len(run)}"
        case NoFullQueues() if last is not None:
            full = [
                f"{name} holds {len(held)} event{'' if len(held) == 1 else 's'}"
                for name, held in last.queues.items()
                if len(held) >= (limits.places(name) or 0) and (not claim.queues or name in claim.queues)
            ]
            return f"{after}, the queue {' and '.join(full) if full else 'inside a box is full'}, as many as it can"
        case SameSteps() | Approximates() if last is not None:
            half = len(last.outs) // 2
            outs = ["nothing" if out is NOTHING else repr(out) for out in last.outs.values()]
            left, right = ", ".join(outs[:half]), ", ".join(outs[half:])
            return f"at push {last.number}, {names[0]} gives {left} and {names[1]} gives {right}"
        case SameSequence() if last is not None:
            return _sequences(pipeline, run, names)
        case StaysTrue() if last is not None:
            return f"at push {last.number}, {claim.pipe or next(iter(last.outs))} carries False"
        case NeverStops() if last is not None and last.stopped is not None:
            return f"at push {last.number}, {last.stopped.where}: {last.stopped.text}"
    if loop:
        again = f"the last {loop} pushes" if loop > 1 else "the last push"
        return f"{again} can go on for ever, and so it is never kept" + (
            f": {part!r} is false" if part is not None else ""
        )
    return f"it is broken {after}" + (f": {part!r} is false there" if part is not None else "")


def _sequences(pipeline: Pipeline, run: Sequence[Push], names: Sequence[str]) -> str:
    wrong = next(name for name, out in run[-1].outs.items() if out is False)
    sides = [[push.pipes[pipeline.pipe_name(pipeline.feeds[Port(wrong, place)])] for push in run] for place in range(2)]
    left, right = ([event for event in side if event is not NOTHING] for side in sides)
    number = sum(1 for push in run if push.outs[wrong] is not NOTHING)
    return (
        f"output {number} of {names[0]} is {left[number - 1]!r}, of {names[1]} {right[number - 1]!r} "
        f"(after {len(run)} push{'' if len(run) == 1 else 'es'})"
    )


def table_of(pipeline: Pipeline, run: Sequence[Push], loop: int) -> Table:
    """The run push by push: what came in, what changed inside, what came out."""
    inside = [name for name, box in pipeline.boxes.items() if _is_told(box)]
    rows: list[tuple[str, ...]] = []
    before: dict[str, Any] = dict.fromkeys(pipeline.queues, ())
    before |= {name: pipeline.boxes[name].start() for name in inside}
    for push in run:
        now = {**push.queues, **{name: push.states[name] for name in inside}}
        changed = [f"{name} = {_value(value)}" for name, value in now.items() if value != before.get(name, ())]
        if push.front.leaks:
            changed.append(f"lost before {', '.join(sorted(push.front.leaks))}")
        if push.stopped is not None:
            changed.append(f"{push.stopped.where}: {push.stopped.text}")
        number = f"{push.number}" + (" (again and again)" if loop and push.number > len(run) - loop else "")
        came = [
            "the end" if push.front.ends else "a reset" if push.front.resets else _shown(each)
            for each in push.given.values()
        ]
        rows.append((number, *came, "\n".join(changed), *(_shown(out) for out in push.outs.values())))
        before = now
    if len(rows) > MOST_ROWS:
        half = MOST_ROWS // 2
        gap = ("...", *("" for _ in rows[0][1:-1]), "")
        rows = [*rows[:half], gap, *rows[-half:]]
    columns = ("push", *pipeline.inputs, "inside", *pipeline.outputs)
    return Table(columns, tuple(rows), title="push by push")


def _is_told(box: Any) -> bool:
    """Whether the state of a box is something that a person can read."""
    return not isinstance(box, Window) and (isinstance(box, Cumulate) or isinstance(box.start(), int))


def _shown(value: Any) -> str:
    return "-" if value is NOTHING else repr(value)


def _value(value: Any) -> str:
    return f"[{', '.join(map(repr, value))}]" if isinstance(value, tuple) else repr(value)


def replay_lines(names: Sequence[str], fronts: Sequence[Front], limits: Limits | None) -> str:
    """The lines of Python that show a run again; with the limits, if it is another one without them."""
    events: list[str] = []
    plain = all(not (front.leaks or front.ends or front.resets) for front in fronts)
    for front in fronts:
        if not plain:
            events.append(f"pipes.{front!r}")
        elif len(front.events) == 1:
            events.append(repr(front.events[0]))
        else:
            events.append(repr(front.events))
    text = f"[{', '.join(events)}]".replace("NOTHING", "pipes.NOTHING")
    if limits is not None:
        text += f", limits=pipes.{limits.code()}"
    lines = ["from streamtight import pipes"] if "pipes." in text or len(names) > 1 else []
    what = names[0] if len(names) == 1 else f"pipes.beside({', '.join(names)})"
    return "\n".join(
        [*lines, f"for push in {what}.pushes({text}):", "    print(push.number, push.given, push.outs, push.queues)"]
    )
