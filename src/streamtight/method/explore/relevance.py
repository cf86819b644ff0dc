"""Whose values matter to a claim? Found by following pipes backwards, so that no simplification hides anything.

Of some pipes it matters whether they carry an event: those that the claim names, and those before queues that may be
full or functions that may raise, as a run that stops somewhere stops as a whole. Of some it matters which event: those
that the claim looks into, and those that decide at filters and slices whether an event comes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from streamtight.program.model import Model, Term
from streamtight.program.pipeline import Pipeline, Port
from streamtight.program.processor import Filter, Group, Processor, Slice, TurnInto, Window
from streamtight.properties.automaton import automaton
from streamtight.properties.branching import Branching, Comparison, Denied, Joined, Path, State
from streamtight.properties.claims import Claim, Live, NoFullQueues, StaysTrue
from streamtight.properties.temporal import Contains, Formula


def boxes_in(pipeline: Pipeline) -> list[Processor]:
    """All boxes, also those inside others."""
    found: list[Processor] = []
    waiting: list[Processor] = list(pipeline.boxes.values())
    while waiting:
        box = waiting.pop()
        found.append(box)
        if isinstance(box, (Window, Slice)):
            waiting.append(box.inner)
        elif isinstance(box, Group):
            waiting += box.pipeline.boxes.values()
    return found


def _looks_at_values(box: Processor) -> bool:
    """Whether values decide inside a box when events come out of it."""
    inner: list[Processor] = []
    match box:
        case Slice():
            return True
        case Window():
            inner = [box.inner]
        case Group():
            return any(isinstance(each, Filter) or _looks_at_values(each) for each in box.pipeline.boxes.values())
    return any(isinstance(each, Filter) or _looks_at_values(each) for each in inner)


def values_that_matter(pipeline: Pipeline, claim: Claim | Formula | Branching, model: Model) -> set[str]:
    """The boxes and inputs whose values can make a difference."""
    named, looked_into = _asked_about(pipeline, claim)
    stopping: dict[str, set[str]] = {"QUEUE_OVERFLOW": set(), "RAISES": set(), "LEAVES_RANGE": set()}
    for stop in model.stops:
        if stop.when is not model.terms.false:
            stopping[stop.kind].add(top_of(stop.where))
    for name, box in pipeline.boxes.items():
        before = [pipeline.feeds[Port(name, place)] for place in range(box.inputs)]
        if name in stopping["QUEUE_OVERFLOW"]:
            named += before
            looked_into += before if _looks_at_values(box) else []
        if name in stopping["RAISES"]:
            looked_into += before
    comes: set[str] = set()
    found: set[str] = set()
    waiting = [(port.box, False) for port in named] + [(port.box, True) for port in looked_into]
    while waiting:
        name, is_value = waiting.pop()
        if name in (found if is_value else comes):
            continue
        (found if is_value else comes).add(name)
        if is_value:
            waiting.append((name, False))
        if name not in pipeline.boxes:
            continue
        box = pipeline.boxes[name]
        sources = [pipeline.feeds[Port(name, place)].box for place in range(box.inputs)]
        waiting += [(each, False) for each in sources]
        if isinstance(box, Filter):
            waiting.append((sources[1], True))
            waiting += [(sources[0], True)] if is_value else []
        elif (is_value and not isinstance(box, TurnInto)) or _looks_at_values(box):
            # What a box that looks at values holds decides when events come, so its own values count as well.
            found.add(name)
            waiting += [(each, True) for each in sources]
    return found


def wraps_that_matter(model: Model, boxes: Iterable[str]) -> Term:
    """When a whole number wraps around in one of these boxes."""
    wanted = set(boxes)
    return model.terms.or_(*(wrap.when for wrap in model.wraps if top_of(wrap.where) in wanted))


def top_of(where: str) -> str:
    """The box of the pipeline itself in which a place is."""
    return re.split(r"[.\[]", where, maxsplit=1)[0]


def _asked_about(pipeline: Pipeline, claim: Claim | Formula | Branching) -> tuple[list[Port], list[Port]]:
    """The pipes of which the claim asks whether they carry an event; and those of which it asks which."""
    outputs = list(pipeline.outputs.values())
    match claim:
        case Live():
            return [pipeline.pipes[claim.pipe]] if claim.pipe in pipeline.pipes else outputs, []
        case NoFullQueues():
            return _before_queues(pipeline), []
        case StaysTrue() if claim.pipe in pipeline.pipes:
            return [], [pipeline.pipes[claim.pipe]]
        case Claim():
            return [], outputs
        case Branching():
            tests = [atom.test for test in tests_in(claim) for atom in automaton(test.test).atoms]
        case _:
            tests = [atom.test for atom in automaton(claim).atoms]
    named: list[Port] = []
    looked_into: list[Port] = []
    for test in tests:
        match test:
            case Contains():
                named += [pipeline.pipes[test.name]] if test.name in pipeline.pipes else []
            case Comparison():
                looked_into += [pipeline.pipes[name] for name in test.pipes if name in pipeline.pipes]
                named += _before_queues(pipeline) if test.waits else []
            case _:  # any function may look at everything
                looked_into += pipeline.pipes.values()
    return named, looked_into


def _before_queues(pipeline: Pipeline) -> list[Port]:
    """What leads to boxes with queues, before them or in them."""
    return [
        pipeline.feeds[Port(name, place)]
        for name, box in pipeline.boxes.items()
        if box.inputs > 1 or isinstance(box, (Window, Slice, Group))
        for place in range(box.inputs)
    ]


def tests_in(formula: Branching) -> list[State]:
    """The tests of single steps in a formula."""
    match formula:
        case State():
            return [formula]
        case Denied():
            return tests_in(formula.body)
        case Joined() | Path():
            return [test for part in formula.parts for test in tests_in(part)]
    raise AssertionError(formula)
