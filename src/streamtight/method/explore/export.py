"""A pipeline and a claim as SMV text, for NuSMV and nuXmv; and what these say of it, where one is installed."""

from __future__ import annotations

from typing import Any

from streamtight.errors import FormulaError
from streamtight.method.explore import smv_check
from streamtight.method.explore.build import ENDED, World, model_of
from streamtight.method.explore.smv import Ctl, Formula, Invariant, Ltl, Spec, always, op, possibly, smv_text
from streamtight.method.explore.terms import bad_and_happened, carried, step_test
from streamtight.method.explore.world import only_output, prepared
from streamtight.program.model import Model
from streamtight.program.pipeline import Pipeline
from streamtight.program.watched import Watched
from streamtight.properties import temporal
from streamtight.properties.branching import Branching, Denied, Joined, Path, State
from streamtight.properties.claims import Claim, Live, NeverStops, Stays


def to_smv(program: Pipeline | Watched, claim: Any, **options: Any) -> str:
    """The model of a pipeline, and the claim as a property, as text that NuSMV and nuXmv read.

    The options are those of `explore`: queue, domain, inputs, full, pauses, together, ends, resets, leaks.

    >>> from streamtight.program.processor import Passthrough
    >>> text = to_smv(Pipeline.wired("in -> p -> out", p=Passthrough()), "AG EF out", pauses=True)
    >>> print(text.splitlines()[-1])
    CTLSPEC NAME claim := AG EF in_present;
    """
    _, asked, meant, world = prepared(program, claim, **options)
    model = model_of(asked, world)
    if isinstance(meant, NeverStops):
        spec: Spec = Invariant("claim", model.terms.not_(bad_and_happened(model, meant, list(asked.outputs))[0]))
        model = Model(model.terms, model.variables, model.choices, model.allowed, model.pipes, model.queues)
    else:
        spec = _spec(model, meant, asked, world)
    return smv_text(model, [spec], comments=[f"{asked.name}: {meant!r}"], cone=True)


def smv_answer(program: Pipeline | Watched, claim: Any, *, seconds: float = 60, **options: Any) -> bool | None:
    """What NuSMV or nuXmv says of the claim: true or false; None if it was not decided in this time.

    A run that stops counts as one that breaks nothing and does nothing more, where `explore` is undecided.
    """
    return smv_check.run(to_smv(program, claim, **options), seconds)[0]


def _spec(model: Model, claim: Any, asked: Pipeline, world: World) -> Spec:
    match claim:
        case Live():
            out = carried(model, only_output(claim.pipe, asked)).present
            if claim.within is None:
                good = out if not world.ends else model.terms.or_(out, model.variables[ENDED].after)
                return Ctl("claim", always(possibly(good)))
            return Ltl("claim", op("G", _within(out, claim.within)))
        case Stays():
            raise FormulaError(repr(claim), needed="a claim about pipes", came="a query", hint="a temporal formula")
        case Claim():
            return Invariant("claim", model.terms.not_(bad_and_happened(model, claim, list(asked.outputs))[0]))
        case Branching():
            return Ctl("claim", _branching(model, claim))
    return Ltl("claim", _temporal(model, claim))


def _within(formula: Formula, steps: int) -> Formula:
    return formula if steps == 1 else op("or", formula, op("X", _within(formula, steps - 1)))


def _branching(model: Model, formula: Branching) -> Formula:
    match formula:
        case State():
            return step_test(model, formula.test)
        case Denied():
            return op("not", _branching(model, formula.body))
        case Joined():
            name = {"&": "and", "|": "or", "->": "implies"}[formula.sign]
            return op(name, *(_branching(model, part) for part in formula.parts))
        case Path():
            return op(formula.runs + formula.op, *(_branching(model, part) for part in formula.parts))
    raise AssertionError(formula)


def _temporal(model: Model, formula: temporal.Formula) -> Formula:
    if not formula.has_future:
        return step_test(model, formula)
    parts = [_temporal(model, part) for part in formula.parts]
    match formula:
        case temporal.Named():
            return parts[0]
        case temporal.Not():
            return op("not", *parts)
        case temporal.And():
            return op("and", *parts)
        case temporal.Or():
            return op("or", *parts)
        case temporal.Implies():
            return op("implies", *parts)
        case temporal.Next():
            return _nexts(parts[0], formula.n)
        case temporal.Timed() if formula.within is None:
            return op(_LTL[type(formula)], *parts)
        case temporal.Timed() if isinstance(formula.within, int):
            return _unfolded(type(formula), parts, formula.within)
    raise FormulaError(
        repr(formula), needed="operators of the future with timeouts in steps", came="others", hint="always, eventually"
    )


_LTL: dict[type, str] = {
    temporal.Always: "G",
    temporal.Eventually: "F",
    temporal.Until: "U",
    temporal.Release: "R",
}


def _nexts(formula: Formula, count: int) -> Formula:
    return formula if not count else op("X", _nexts(formula, count - 1))


def _unfolded(kind: type, parts: list[Formula], within: int) -> Formula:
    """An operator with a timeout, written out step by step."""
    last = parts[-1]
    if within == 1:
        return last
    rest = op("X", _unfolded(kind, parts, within - 1))
    if kind is temporal.Always:
        return op("and", last, rest)
    if kind is temporal.Eventually:
        return op("or", last, rest)
    if kind is temporal.Until:
        return op("or", last, op("and", parts[0], rest))
    return op("and", last, op("or", parts[0], rest))
