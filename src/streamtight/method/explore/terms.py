"""Claims and tests of steps as terms of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamtight.errors import FormulaError, PipelineError
from streamtight.program.model import BOOL, Bools, Domain, Model, Range, Table, Term
from streamtight.program.processor import NOTHING
from streamtight.properties.branching import Carried, Comparison, Waiting
from streamtight.properties.claims import (
    Approximates,
    Claim,
    NeverStops,
    NoFullQueues,
    SameSequence,
    SameSteps,
    StaysTrue,
)
from streamtight.properties.temporal import (
    And,
    Constant,
    Contains,
    Formula,
    Implies,
    Moment,
    Named,
    Not,
    Now,
    Or,
    called,
)


def carried(model: Model, pipe: str) -> Any:
    """What a pipe carries, by its name."""
    if pipe in model.pipes:
        return model.pipes[pipe]
    raise PipelineError(
        f"the pipe {pipe!r}", needed=f"one of {', '.join(model.pipes)}", came=repr(pipe), hint=next(iter(model.pipes))
    )


def waiting(model: Model, queue: str) -> Term:
    """How many events wait in a queue after the step."""
    if queue in model.queues:
        return model.queues[queue].length
    known = ", ".join(model.queues) or "none: it has no box with several inputs"
    raise PipelineError(f"the queue {queue!r}", needed=f"one of {known}", came=repr(queue), hint="the input of a box")


def step_test(model: Model, formula: Formula) -> Term:
    """A formula about one step as a term."""
    terms = model.terms
    match formula:
        case Constant():
            return terms.constant(formula.value)
        case Named():
            return step_test(model, formula.body)
        case Not():
            return terms.not_(step_test(model, formula.body))
        case And():
            return terms.and_(*(step_test(model, part) for part in formula.parts))
        case Or():
            return terms.or_(*(step_test(model, part) for part in formula.parts))
        case Implies():
            return terms.or_(terms.not_(step_test(model, formula.left)), step_test(model, formula.right))
        case Now():
            return _atom(model, formula)
    raise FormulaError(repr(formula), needed="a test of one step", came=type(formula).__name__, hint="now('out')")


def _atom(model: Model, atom: Now) -> Term:
    match atom.test:
        case Contains():
            found: Term = carried(model, atom.test.name).present
            return found
        case Comparison():
            return _comparison(model, atom.test)
    # Any function of a step may look at everything.
    pipes = list(model.pipes)
    queues = list(model.queues)

    def asked(*values: Any) -> bool:
        given = dict(zip(pipes, zip(values[::2], values[1 : 2 * len(pipes) : 2], strict=False), strict=False))
        lengths = dict(zip(queues, values[2 * len(pipes) :], strict=True))
        seen = {pipe: value if present else NOTHING for pipe, (present, value) in given.items()}
        step = Seen(seen, lengths)
        return bool(called(atom.test, step, repr(atom), Moment(step)))

    arguments = [part for pipe in pipes for part in (model.pipes[pipe].present, model.pipes[pipe].value)]
    arguments += [model.queues[queue].length for queue in queues]
    return model.terms.call(Table(atom.name, asked, BOOL, False), model.terms.true, *arguments)


class Seen:
    """A step as a test sees it: `"out" in step`, `step["out"]`, `len(step.queues["C.1"])`."""

    def __init__(self, pipes: dict[str, Any], lengths: dict[str, int]) -> None:
        self.pipes = pipes
        self.queues = {queue: (NOTHING,) * length for queue, length in lengths.items()}

    def __contains__(self, pipe: str) -> bool:
        return self[pipe] is not NOTHING

    def __repr__(self) -> str:
        return repr(self.pipes)

    def __getitem__(self, pipe: str) -> Any:
        if pipe not in self.pipes:
            raise PipelineError(
                f"step[{pipe!r}]", needed=f"one of {', '.join(self.pipes)}", came=repr(pipe), hint="the name of a pipe"
            )
        return self.pipes[pipe]


def _comparison(model: Model, test: Comparison) -> Term:
    terms = model.terms
    present, sides = [], []
    for side in (test.left, test.right):
        match side:
            case Carried():
                signal = carried(model, side.pipe)
                present.append(signal.present)
                sides.append(signal.value)
            case Waiting():
                sides.append(waiting(model, side.queue))
            case _:
                sides.append(terms.constant(side))
    left, right = sides
    if type(left.domain) is not type(right.domain) or (
        test.sign not in ("==", "!=") and not isinstance(left.domain, Range)
    ):
        raise FormulaError(
            str(test),
            needed="two values of one sort" if test.sign in ("==", "!=") else "two whole numbers",
            came=f"{_sort(left.domain)} and {_sort(right.domain)}",
            hint="a value that the pipe can carry",
        )
    match test.sign:
        case "==" | "!=":
            found = terms.equal(left, right)
            found = found if test.sign == "==" else terms.not_(found)
        case "<":
            found = terms.less(left, right)
        case "<=":
            found = terms.at_most(left, right)
        case ">":
            found = terms.less(right, left)
        case _:
            found = terms.at_most(right, left)
    return terms.and_(*present, found)


def _sort(domain: Domain) -> str:
    return "a whole number" if isinstance(domain, Range) else "True or False" if domain is BOOL else f"one of {domain}"


def bad_and_happened(model: Model, claim: Claim, outputs: Sequence[str]) -> tuple[Term, Term]:
    """When a step breaks a claim; and when it is one that the claim is about: a claim is not kept by doing nothing."""
    terms = model.terms
    match claim:
        case NoFullQueues():
            names = claim.queues or tuple(model.queues)
            for name in claim.queues:
                waiting(model, name)
            full = [
                terms.at_most(terms.constant(model.queues[name].places), model.queues[name].length) for name in names
            ]
            return terms.or_(*full), terms.true
        case SameSteps() | Approximates():
            half = len(outputs) // 2
            pairs = [(model.pipes[a], model.pipes[b]) for a, b in zip(outputs[:half], outputs[half:], strict=True)]
            differ, come = [], []
            for left, right in pairs:
                is_same = (
                    terms.or_(terms.not_(_boolean(left, claim)), _boolean(right, claim))
                    if isinstance(claim, Approximates)
                    else same_value(model, left.value, right.value)
                )
                differ.append(terms.not_(terms.equal(left.present, right.present)))
                differ.append(terms.and_(left.present, right.present, terms.not_(is_same)))
                come.append(terms.or_(left.present, right.present))
            return terms.or_(*differ), terms.or_(*come)
        case SameSequence():
            joined = [model.pipes[name] for name in outputs]
            wrong = [terms.and_(each.present, terms.not_(each.value)) for each in joined]
            return terms.or_(*wrong), terms.or_(*(each.present for each in joined))
        case StaysTrue():
            signal = carried(model, claim.pipe or outputs[0])
            return terms.and_(signal.present, terms.not_(_boolean(signal, claim))), signal.present
        case NeverStops():
            return terms.or_(*(stop.when for stop in model.stops)), terms.true
    raise AssertionError(claim)


def same_value(model: Model, left: Term, right: Term) -> Term:
    """Are two values the same? Values of different sorts never are."""
    if type(left.domain) is not type(right.domain):
        return model.terms.false
    return model.terms.equal(left, right)


def _boolean(signal: Any, claim: Claim) -> Term:
    if isinstance(signal.value.domain, Bools):
        term: Term = signal.value
        return term
    raise FormulaError(
        repr(claim),
        needed="a pipe that carries True or False",
        came=str(signal.value.domain),
        hint="a comparison at its end",
    )
