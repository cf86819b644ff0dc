"""explore: what can this pipeline do, on any input?

>>> import operator
>>> from streamtight.program.pipeline import Pipeline
>>> from streamtight.program.processor import Apply, CountDecimate, Fork
>>> from streamtight.properties.claims import no_full_queues
>>> figure_2a = Pipeline.wired(
...     "in -> A; A.0 -> B; A.1 -> C.1; B -> C.0; C -> out", A=Fork(2), B=CountDecimate(3), C=Apply(operator.add)
... )
>>> print(explore_pipeline(figure_2a, no_full_queues(), queue=3).counterexample.explanation)
after 5 pushes, the queue C.1 holds 3 events, as many as it can
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from streamtight.errors import FormulaError, PipelineError
from streamtight.method.explore.build import World, model_of
from streamtight.method.explore.decide import (
    Answer,
    Limit,
    decide_branching,
    decide_formula,
    decide_live,
    decide_steps,
    tests_in,
)
from streamtight.method.explore.queries import explore_query
from streamtight.method.explore.sequences import decide_sequences
from streamtight.method.explore.tell import (
    breaks,
    explained,
    finding,
    fronts_of,
    replay_lines,
    table_of,
    unconfirmed,
)
from streamtight.method.explore.terms import bad_and_happened, carried
from streamtight.program.limits import Full, Integers, Limits, modulo
from streamtight.program.model import Model
from streamtight.program.pipeline import Front, Pipeline, beside
from streamtight.program.processor import Apply, Filter, Group, Processor, Slice, Window, same_event
from streamtight.program.watched import Watched
from streamtight.properties.automaton import automaton
from streamtight.properties.branching import Branching, Comparison, formula_of_text
from streamtight.properties.claims import (
    Approximates,
    Claim,
    Live,
    NeverStops,
    NoFullQueues,
    SameSequence,
    SameSteps,
    Stays,
)
from streamtight.properties.parse import parse
from streamtight.properties.temporal import Contains, Formula, always, eventually, now
from streamtight.verdict import Counterexample, Outcome, Scope, Verdict

Property = Claim | Formula | Branching
EVERY_NUMBER = Integers(-(2**61), 2**61, wraps=True)
"""So many that no proof can lean on their ends."""


def explore_pipeline(
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
    states: int = 1_000_000,
    seconds: float = 60.0,
    engine: Literal["auto", "symbols", "search", "sat"] = "auto",
    told: Callable[[int], None] | None = None,
) -> Verdict:
    """Does the claim hold of this pipeline, whatever comes in? The options are those of `tight.explore`."""
    if engine not in ("auto", "symbols", "search", "sat"):
        raise PipelineError("engine=...", needed="auto, symbols, search or sat", came=repr(engine), hint="'auto'")
    pipeline, asked, meant, world = prepared(
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
    )
    engines = ("symbols", "search", "sat") if engine == "auto" else (engine,)
    limit = Limit(states, seconds, told, engines)
    if isinstance(meant, Stays):
        return explore_query(asked, meant, world, limit)
    return _Question(pipeline, asked, meant, world, not isinstance(domain, Integers), limit).verdict()


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
    world = World(
        _limits(asked, queue, domain, full),
        pauses,
        together,
        ends,
        resets,
        _leaking(asked, leaks),
        _listed(asked, inputs),
        program if isinstance(program, Watched) else None,
    )
    if world.watched is not None and (inputs or resets or ends or pauses):
        raise PipelineError(
            repr(program),
            needed="a system that alone says what comes",
            came="inputs=, ends=, resets= or pauses=",
            hint="the same in the system",
        )
    return pipeline, asked, meant, world


def _asked(pipeline: Pipeline, claim: Property) -> Pipeline:
    """The pipeline that is explored: for comparisons, both in one."""
    match claim:
        case SameSteps() | Approximates():
            return beside(pipeline, claim.other)
        case SameSequence():
            return beside(pipeline, claim.other, joined=Apply(same_event))
    return pipeline


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


@dataclass
class _Question:
    pipeline: Pipeline
    asked: Pipeline
    """The one that is explored."""
    claim: Property
    world: World
    is_stand_in: bool
    """Whether the numbers stand for all whole numbers, so that wrapping around is an artefact."""
    limit: Limit

    def verdict(self) -> Verdict:
        started = time.perf_counter()
        asked = self.asked
        answer = self.answer(asked, self.world)
        world, assumptions = self.world, list(self.assumed())
        if self.is_stand_in and answer.outcome is not Outcome.UNDECIDED and not answer.every_number:
            answer, world, more = self.without_wrapping(asked, answer)
            assumptions += more
        verdict = self.told(asked, answer, world, assumptions)
        return replace(verdict, cost={**answer.cost, "seconds": time.perf_counter() - started})

    def answer(self, asked: Pipeline, world: World) -> Answer:
        claim, outputs = self.claim, list(asked.outputs)
        model = model_of(asked, world)
        match claim:
            case Live(within=None):
                good = carried(model, only_output(claim.pipe, asked)).present
                if world.ends:
                    good = model.terms.or_(good, model.variables["ended"].after)
                return decide_live(model, good, self.limit)
            case Live():
                return decide_formula(model, self.bounded(), self.limit)
            case Claim():
                if isinstance(claim, SameSequence):
                    alone = decide_sequences(self.pipeline, claim.other, world, self.limit)
                    if alone is not None:
                        return alone
                bad, happened = bad_and_happened(model, claim, outputs)
                if isinstance(claim, NeverStops):
                    model = replace(model, stops=())
                symbolic = None if isinstance(claim, NeverStops) else lambda: self.symbolic(asked, world)
                return decide_steps(model, bad, happened, self.limit, symbolic)
            case Branching():
                return decide_branching(model, claim, self.limit)
        return decide_formula(model, claim, self.limit)

    def bounded(self) -> Formula:
        claim = self.claim
        assert isinstance(claim, Live)  # noqa: S101
        return always(eventually(only_output(claim.pipe, self.pipeline), within=claim.within))

    def symbolic(self, asked: Pipeline, world: World) -> tuple[Model, Any, Any] | None:
        """The model in which values may be symbols: of all whole numbers, unless they are meant to wrap."""
        integers = world.limits.integers
        is_meant = integers is not None and integers.wraps and not self.is_stand_in
        chosen = integers if is_meant else EVERY_NUMBER
        try:
            model = model_of(asked, replace(world, limits=replace(world.limits, integers=chosen)), keeps_wraps=True)
        except PipelineError:  # a function that is asked for each value wants few of them
            return None
        return (model, *bad_and_happened(model, self.claim, list(asked.outputs)))  # type: ignore[arg-type]

    # -- numbers that wrap around ------------------------------------------------------------------------------------

    def without_wrapping(self, asked: Pipeline, answer: Answer) -> tuple[Answer, World, list[str]]:
        """The same question where numbers do not wrap around, if that may have mattered."""
        integers = self.world.limits.integers
        assert integers is not None  # noqa: S101
        exact = replace(self.world, limits=replace(self.world.limits, integers=replace(integers, wraps=False)))
        if answer.outcome is Outcome.FAILS:
            if self.is_broken(asked, answer, replace(self.world.limits, integers=None)):
                return answer, self.world, []
        elif not answer.wraps:
            return answer, self.world, []
        other = self.answer(asked, exact)
        if other.outcome is Outcome.FAILS or (other.outcome is Outcome.HOLDS and answer.outcome is Outcome.HOLDS):
            return other, exact, []
        size = integers.size
        if answer.outcome is Outcome.HOLDS:
            where = ""
            if other.stop is not None:
                stop, path = other.stop
                where = f" ({stop.where} leaves {integers.low}..{integers.high} at push {len(path)})"
            return answer, self.world, [f"whole numbers wrap around at {size}, as they do here{where}"]
        reason = (
            f"it breaks only where whole numbers wrap around at {size}; where they do not, nothing wrong was found, "
            f"but runs that leave {integers.low}..{integers.high} were not followed"
        )
        undecided = replace(
            answer,
            outcome=Outcome.UNDECIDED,
            reason=f"{reason}. Try: a larger domain, or tight.modulo({size}) if it is meant",
        )
        return undecided, self.world, []

    def is_broken(self, asked: Pipeline, answer: Answer, limits: Limits) -> bool:
        fronts, loop = self.fronts(asked, answer, self.world)
        if isinstance(self.claim, SameSequence):
            limits = replace(limits, queue=None, queues={})
        return breaks(asked, self.judged(), fronts, loop, limits, self.values(asked))[0]

    def judged(self) -> Property:
        """The claim as runs are judged by it."""
        return self.bounded() if isinstance(self.claim, Live) and self.claim.within is not None else self.claim

    def fronts(self, asked: Pipeline, answer: Answer, world: World) -> tuple[list[Front], list[Front]]:
        return fronts_of(asked, world, answer.path), fronts_of(asked, world, answer.loop)

    def values(self, asked: Pipeline) -> dict[str, Sequence[Any]]:
        """All values that can come on each input."""
        given: dict[str, Sequence[Any]] = {}
        integers = self.world.limits.integers
        for name, kind in asked.inputs.items():
            if name in self.world.inputs:
                given[name] = self.world.inputs[name]
            elif kind is int and integers is not None:
                given[name] = range(integers.low, integers.high + 1)
            else:
                given[name] = (False, True) if kind is bool else kind
        return given

    # -- what is told ------------------------------------------------------------------------------------------------

    def told(self, asked: Pipeline, answer: Answer, world: World, assumptions: list[str]) -> Verdict:
        name = self.pipeline.name
        text = f"{name}: {self.claim!r}"
        scope = self.scope(asked, answer, world)
        if answer.outcome is Outcome.FAILS:
            return Verdict(
                text,
                Outcome.FAILS,
                scope,
                self.counterexample(asked, answer, world),
                method=answer.method,
                assumptions=tuple(assumptions),
            )
        outcome, reason = answer.outcome, answer.reason
        if outcome is Outcome.UNDECIDED and answer.stop is not None:
            reason = self.stopped(asked, answer, world)
        if outcome is Outcome.HOLDS and not answer.happened:
            outcome = Outcome.UNDECIDED
            reason = "it holds, but only since nothing ever happens that it is about (vacuous)"
        return Verdict(
            text, outcome, scope, reason=reason or None, method=answer.method, assumptions=tuple(assumptions)
        )

    def stopped(self, asked: Pipeline, answer: Answer, world: World) -> str:
        assert answer.stop is not None  # noqa: S101
        stop, path = answer.stop
        fronts = fronts_of(asked, world, path)
        run = list(asked.pushes(fronts, limits=world.limits))
        at = f"at push {len(run)}" if run else "at some push"
        where = run[-1].stopped.where if run and run[-1].stopped is not None else stop.where
        told = run[-1].stopped.text if run and run[-1].stopped is not None else stop.kind
        compared = ""
        if isinstance(self.claim, SameSequence):
            count = sum(1 for push in run for out in push.outs.values() if out is True)
            compared = f"the first {count} outputs are the same, but " if count else "no outputs were compared: "
        hint = {
            "QUEUE_OVERFLOW": "a larger queue=, or full='drop' if events are lost there",
            "LEAVES_RANGE": "a larger domain=",
            "RAISES": "inputs= without such values",
        }.get(stop.kind, "other limits")
        return f"{compared}{where} {at}: {told}, and what comes then was not followed. Try: {hint}"

    def counterexample(self, asked: Pipeline, answer: Answer, world: World) -> Counterexample:
        fronts, loop = self.fronts(asked, answer, world)
        limits = world.limits
        if isinstance(self.claim, SameSequence):  # that one is far ahead is nothing that breaks the claim
            limits = replace(limits, queues={**limits.queues, "joined.0": len(fronts), "joined.1": len(fronts)})
        confirmed, run = breaks(asked, self.judged(), fronts, loop, limits, self.values(asked))
        if not confirmed:
            raise unconfirmed(self.claim, [*fronts, *loop])
        names, called = [_code_name(self.pipeline, "pipeline")], [self.pipeline.name]
        if isinstance(self.claim, (SameSteps, SameSequence, Approximates)):
            names.append(_code_name(self.claim.other, "other"))
            called.append(self.claim.other.name)
            if called[0] == called[1]:
                called = [f"{called[0]} (the first)", f"{called[1]} (the other)"]
        last = run[-1] if run else None
        return Counterexample(
            finding(self.claim),
            explained(self.claim, asked, run, len(loop), answer.part, world.limits, called),
            table=table_of(asked, run, len(loop)),
            replay=replay_lines(names, [*fronts, *loop]),
            picture=asked.picture(last),
            reruns=1,
            failing_reruns=1,
        )

    def scope(self, asked: Pipeline, answer: Answer, world: World) -> Scope:
        integers = world.limits.integers
        is_wrapping = integers is not None and integers.wraps and not self.is_stand_in
        if world.watched is not None:
            parts = [f"that the system gives ({len(world.watched.system.states)} states)"]
        elif answer.every_number and not is_wrapping:
            parts = ["of whole numbers of any size"] if any(kind is int for kind in asked.inputs.values()) else []
        elif _is_about_events(self.claim, asked) and not answer.values_matter:
            parts = ["of any values"]
        else:
            parts = [f"of whole numbers {integers}"]
        if world.inputs:
            parts.append(f"with {', '.join(f'{name} in {_some(values)}' for name, values in world.inputs.items())}")
        if _has_queues(asked) and not answer.every_number:
            parts.append(f"with queues of {_sizes(world.limits)}")
        within = ", ".join(parts) or "of all values"
        return Scope.proved(within) if answer.every_number else Scope.every_stream(within)

    def assumed(self) -> list[str]:
        world = self.world
        several = len(self.pipeline.inputs) > 1
        said = []
        if world.together and several:
            said.append("events come on all inputs together")
        if not world.pauses and world.watched is None:
            said.append("every push brings an event" + (" on some input" if several and not world.together else ""))
        if world.limits.full == "drop" and _has_queues(self.asked):
            said.append("a full queue drops what comes")
        return said


def _sizes(limits: Limits) -> str:
    if not limits.queues:
        return str(limits.queue)
    return ", ".join([*(f"{size} at {name}" for name, size in limits.queues.items()), f"{limits.queue} elsewhere"])


def only_output(pipe: str | None, pipeline: Pipeline) -> str:
    """The pipe that is meant: the one that is named, or the only output."""
    if pipe is not None:
        return pipe
    if len(pipeline.outputs) == 1:
        return next(iter(pipeline.outputs))
    raise FormulaError(
        "live()", needed="which output is meant", came=f"{len(pipeline.outputs)} outputs", hint="live('out')"
    )


def _code_name(pipeline: Pipeline, otherwise: str) -> str:
    return pipeline.name if pipeline.name.isidentifier() and pipeline.name != "pipeline" else otherwise


def _some(values: Sequence[Any], most: int = 6) -> str:
    told = ", ".join(map(repr, values[:most]))
    return f"{told}, ... ({len(values)} values)" if len(values) > most else told


def _boxes_in(pipeline: Pipeline) -> list[Processor]:
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


def _has_queues(pipeline: Pipeline) -> bool:
    return any(box.inputs > 1 for box in _boxes_in(pipeline))


def _is_about_events(claim: Property, pipeline: Pipeline) -> bool:
    """Whether it asks when events come and not which, of a pipeline in which the one does not depend on the other."""
    if any(isinstance(box, (Filter, Slice)) for box in _boxes_in(pipeline)):
        return False
    match claim:
        case NoFullQueues() | Live():
            return True
        case Formula():
            tests = [atom.test for atom in automaton(claim).atoms]
        case Branching():
            tests = [part.test for test in tests_in(claim) for part in automaton(test.test).atoms]
        case _:
            return False
    return all(isinstance(test, Contains) or (isinstance(test, Comparison) and not test.pipes) for test in tests)


def _limits(asked: Pipeline, queue: int | Mapping[str, int], domain: int | Integers, full: Full) -> Limits:
    sizes = {"queue": queue} if not isinstance(queue, Mapping) else dict(queue)
    for name, size in sizes.items():
        if type(size) is not int or size < 0:
            raise PipelineError(
                f"queue={queue!r}", needed="numbers of events from 0", came=f"{name}: {size!r}", hint="queue=3"
            )
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
    listed = {}
    for name, values in (inputs or {}).items():
        where = f"inputs={{{name!r}: ...}}"
        if name not in asked.inputs:
            raise PipelineError(
                where, needed=f"inputs among {', '.join(asked.inputs)}", came=repr(name), hint="inputs={'in': [0, 1]}"
            )
        try:
            listed[name] = tuple(dict.fromkeys(values))
        except TypeError:
            raise PipelineError(
                where, needed="a list of values that have a hash", came=repr(values), hint="[0, 1]"
            ) from None
        if not listed[name]:
            raise PipelineError(where, needed="one value or more", came="none", hint="[0, 1]")
        if all(type(value) is int for value in values):
            listed[name] = tuple(sorted(listed[name]))
    return listed
