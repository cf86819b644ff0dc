"""Do two pipelines give the same sequence, if which values come makes no difference to them?

Then only how many pushes there were matters, and neither has to wait for the other: each is pushed until it has given
its next output, both outputs are compared, and so on. No queue of outputs is needed, however different their rates are;
so the answer is for streams of any length.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from streamtight.method.explore.build import World, model_of
from streamtight.method.explore.decide import Answer, Limit, decide_steps
from streamtight.method.explore.relevance import values_that_matter, wraps_that_matter
from streamtight.method.explore.terms import same_value
from streamtight.program.model import BOOL, Model, Term, Terms, Value, Variable
from streamtight.program.pipeline import Pipeline, Port
from streamtight.program.processor import Processor
from streamtight.properties.claims import SameSequence
from streamtight.verdict import Outcome

LEFT, RIGHT = "left", "right"


def decide_sequences(left: Pipeline, right: Pipeline, world: World, limit: Limit) -> Answer | None:
    """Is the first output of one that of the other, the second the second, and so on? None if values matter."""
    if len(left.inputs) != 1 or len(left.outputs) != 1 or world.ends or world.resets or world.leaks:
        return None
    if world.watched is not None:
        return None
    apart = _apart(left, right)
    inputs = {side: values for values in world.inputs.values() for side in (LEFT, RIGHT)}
    model, bad, happened = _in_turn(apart, replace(world, pauses=True, together=False, inputs=inputs))
    _, choices = model.cone([bad, *(stop.when for stop in model.stops)])
    if any(each.only_if is not None for each in choices):
        return None
    wrapped = wraps_that_matter(model, values_that_matter(apart, SameSequence(right), model))
    answer = decide_steps(model, bad, happened, wrapped, limit)
    if answer.outcome is Outcome.FAILS:
        # As many pushes as the slower of both needed; the other gets them too, and may be ahead.
        pushes = max(sum(bool(step.get(f"{side}?")) for step in answer.path) for side in (LEFT, RIGHT))
        name = next(iter(left.inputs))
        return replace(answer, path=[{f"{name}?": True}] * pushes)
    if answer.outcome is Outcome.HOLDS:
        return replace(answer, method=f"{answer.method}; both pushed until they give an output")
    return None


def _apart(left: Pipeline, right: Pipeline) -> Pipeline:
    """Both pipelines side by side, each with its own input."""
    boxes: dict[str, Processor] = {}
    feeds: dict[Port, Port] = {}
    outputs: dict[str, Port] = {}
    inputs: dict[str, Any] = {}
    for side, each in ((LEFT, left), (RIGHT, right)):

        def moved(port: Port, side: str = side, each: Pipeline = each) -> Port:
            return Port(side) if port.box in each.inputs else Port(f"{side}_{port.box}", port.place)

        boxes.update((f"{side}_{name}", box) for name, box in each.boxes.items())
        feeds.update((moved(target), moved(source)) for target, source in each.feeds.items())
        outputs[f"{side}_out"] = moved(next(iter(each.outputs.values())))
        inputs[side] = next(iter(each.inputs.values()))
    return Pipeline(boxes, feeds, inputs=inputs, outputs=_named_apart(outputs, boxes), name="in turn")


def _named_apart(outputs: dict[str, Port], boxes: dict[str, Processor]) -> dict[str, Port]:
    return {name if name not in boxes else f"{name}_": port for name, port in outputs.items()}


def _in_turn(apart: Pipeline, world: World) -> tuple[Model, Term, Term]:
    """The model in which each side is pushed only while it owes an output."""
    model = model_of(apart, world)
    terms = model.terms
    allowed, variables = [], dict(model.variables)
    has: dict[str, Term] = {}
    value: dict[str, Term] = {}
    for side, output in zip((LEFT, RIGHT), apart.outputs, strict=True):
        signal = model.pipes[output]
        domain = signal.value.domain
        first: Value = domain.values[0]
        kept, held = terms.variable(f"{side} kept", BOOL), terms.variable(f"{side} held", domain)
        allowed.append(terms.equal(terms.variable(f"{side}?", BOOL), terms.not_(kept)))
        has[side] = terms.or_(kept, signal.present)
        value[side] = terms.choose(kept, held, signal.value)
        variables[f"{side} kept"] = Variable(f"{side} kept", BOOL, False, kept, is_data=False)
        variables[f"{side} held"] = Variable(f"{side} held", domain, first, held, is_data=True)
    both = terms.and_(has[LEFT], has[RIGHT])
    for side in (LEFT, RIGHT):
        held_variable = variables[f"{side} held"]
        after = _kept(terms, both, has[side], value[side], held_variable.first)
        variables[f"{side} held"] = replace(held_variable, after=after)
        kept_after = terms.and_(has[side], terms.not_(both))
        variables[f"{side} kept"] = replace(variables[f"{side} kept"], after=kept_after)
    bad = terms.and_(both, terms.not_(same_value(model, value[LEFT], value[RIGHT])))
    return replace(model, variables=variables, allowed=terms.and_(*allowed)), bad, both


def _kept(terms: Terms, both: Term, has: Term, value: Term, first: Value) -> Term:
    return terms.choose(terms.or_(both, terms.not_(has)), terms.constant(first), value)
