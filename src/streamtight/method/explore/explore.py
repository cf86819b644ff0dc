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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from streamtight.errors import PipelineError
from streamtight.method.explore.build import ENDED, World, model_of
from streamtight.method.explore.decide import (
    Answer,
    Limit,
    decide_branching,
    decide_formula,
    decide_live,
    decide_steps,
)
from streamtight.method.explore.queries import explore_query
from streamtight.method.explore.relevance import boxes_in, values_that_matter, wraps_that_matter
from streamtight.method.explore.sequences import decide_sequences
from streamtight.method.explore.tell import (
    breaks,
    explained,
    finding,
    fronts_of,
    marked,
    replay_lines,
    table_of,
    unconfirmed,
    values_of,
)
from streamtight.method.explore.terms import bad_and_happened, carried
from streamtight.method.explore.world import Property, exactly, named_numbers, only_output, prepared
from streamtight.program.limits import Integers, Limits
from streamtight.program.model import Model, Term
from streamtight.program.pipeline import Front, Pipeline
from streamtight.program.watched import Watched
from streamtight.properties.branching import Branching, Denied, Joined, Path
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
from streamtight.properties.temporal import Formula, always, eventually
from streamtight.verdict import Counterexample, Outcome, Scope, Verdict

EVERY_NUMBER = Integers(-(2**61), 2**61, wraps=True)
"""So many that no proof can lean on their ends."""


def explore_pipeline(
    program: Pipeline | Watched,
    claim: Any,
    *,
    states: int = 1_000_000,
    seconds: float = 60.0,
    engine: str = "auto",
    told: Callable[[int], None] | None = None,
    **options: Any,
) -> Verdict:
    """Does the claim hold of this pipeline, whatever comes in? The options are those of `tight.explore`."""
    if engine not in ("auto", "symbols", "search", "sat"):
        raise PipelineError("engine=...", needed="auto, symbols, search or sat", came=repr(engine), hint="'auto'")
    pipeline, asked, meant, world = prepared(program, claim, **options)
    is_stand_in = not isinstance(options.get("domain"), Integers)
    some = world.limits.integers
    more = tuple(
        name for name, kind in asked.inputs.items() if is_stand_in and kind is int and name not in world.inputs
    )
    numbers = "" if some is None else f"{some.low}..{some.high}"
    # Numbers of the pipeline that the domain does not have cannot wrap around in it: they get room.
    has_room = is_stand_in and any(
        world.limits.integers is None or number not in world.limits.integers for number in named_numbers(asked, world)
    )
    if has_room:
        world, is_stand_in = exactly(asked, world), False
        numbers += " and those near the numbers that it names"
    engines = ("symbols", "search", "sat") if engine == "auto" else (engine,)
    limit = Limit(states, seconds, told, engines)
    if isinstance(meant, Stays):
        return explore_query(asked, meant, exactly(asked, world) if is_stand_in else world, limit)
    return _Question(pipeline, asked, meant, world, is_stand_in, limit, has_room, more, numbers).verdict()


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
    has_room: bool = False
    """Whether the numbers may go further than the user has said."""
    stands_for_more: tuple[str, ...] = ()
    """The inputs on which other numbers may come than those that are tried."""
    some_numbers: str = ""
    """Those that are tried."""
    relevant: set[str] = field(default_factory=set)
    """The boxes and inputs whose values matter."""

    def verdict(self) -> Verdict:
        started = time.perf_counter()
        asked, world, assumptions = self.asked, self.world, list(self.assumed())
        answer = self.answer(asked, world)
        if self.has_room and isinstance(self.claim, NeverStops) and answer.fails and not self.is_broken(asked, answer):
            # That a number leaves the room that it was given here is nothing that the pipeline does wrong.
            where = f"a number leaves {world.limits.integers} at push {len(answer.path)}"
            reason = f"{where}, and what comes then was not followed. Try: domain=tight.whole(low, high)"
            answer = replace(answer, outcome=Outcome.UNDECIDED, reason=reason)
        if self.is_stand_in and answer.outcome is not Outcome.UNDECIDED and not answer.every_number:
            answer, world = self.without_wrapping(asked, answer)
        elif answer.wraps or (
            answer.outcome is Outcome.FAILS and answer.may_wrap and not self.is_broken(asked, answer)
        ):
            assumptions.append(f"whole numbers wrap around at {world.limits.integers.size}, as they do here")  # type: ignore[union-attr]
        others = [name for name in self.stands_for_more if name in self.relevant]
        if answer.fails and others and _asks_for_some_run(self.claim):
            tried = f"no run does it with {self.some_numbers} on {' and '.join(others)}; with other numbers one may"
            reason = f"{tried}. Try: inputs={{{others[0]!r}: [...]}}, the numbers that matter"
            answer = replace(answer, outcome=Outcome.UNDECIDED, reason=reason)
        verdict = self.told(asked, answer, world, assumptions)
        return replace(verdict, cost={**answer.cost, "seconds": time.perf_counter() - started})

    def answer(self, asked: Pipeline, world: World) -> Answer:
        model = model_of(asked, world)
        self.relevant = values_that_matter(asked, self.claim, model)
        wrapped = wraps_that_matter(model, self.relevant)
        return replace(self.decided(asked, world, model, wrapped), may_wrap=wrapped is not model.terms.false)

    @property
    def given(self) -> dict[str, tuple[Any, ...]]:
        """The values of inputs that the user has listed."""
        return {name: each for name, each in self.world.inputs.items() if name not in self.stands_for_more}

    def decided(self, asked: Pipeline, world: World, model: Model, wrapped: Term) -> Answer:
        claim, outputs = self.claim, list(asked.outputs)
        match claim:
            case Live(within=None):
                good = carried(model, only_output(claim.pipe, asked)).present
                if world.ends:
                    good = model.terms.or_(good, model.variables[ENDED].after)
                return decide_live(model, good, wrapped, self.limit)
            case Live():
                return decide_formula(model, self.bounded(), wrapped, self.limit)
            case Claim():
                if isinstance(claim, SameSequence):
                    alone = decide_sequences(self.pipeline, claim.other, world, self.limit)
                    if alone is not None:
                        return alone
                bad, happened = bad_and_happened(model, claim, outputs)
                if isinstance(claim, NeverStops):
                    model = replace(model, stops=())
                is_simple = isinstance(claim, (NeverStops, NoFullQueues))
                symbolic = None if is_simple else lambda: self.symbolic(asked, world)
                return decide_steps(model, bad, happened, wrapped, self.limit, symbolic)
            case Branching():
                return decide_branching(model, claim, wrapped, self.limit)
        return decide_formula(model, claim, wrapped, self.limit)

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
            # Of the values that the user lists, and not of those that `exactly` does: the proof is for all numbers.
            every = replace(world, limits=replace(world.limits, integers=chosen), inputs=self.given)
            model = model_of(asked, every, keeps_wraps=True)
        except PipelineError:  # a function that is asked for each value wants few of them
            return None
        return (model, *bad_and_happened(model, self.claim, list(asked.outputs)))  # type: ignore[arg-type]

    # -- numbers that wrap around ------------------------------------------------------------------------------------

    def without_wrapping(self, asked: Pipeline, answer: Answer) -> tuple[Answer, World]:
        """The answer for whole numbers that do not wrap around, of which those of the domain are only some.

        Where no number that matters wraps, it is the same. Else the same question is asked of numbers that may not
        leave the domain; and a run that breaks the claim is tried with numbers that have no end.
        """
        integers = self.world.limits.integers
        assert integers is not None  # noqa: S101
        if not answer.may_wrap or (answer.outcome is Outcome.HOLDS and not answer.wraps):
            return answer, self.world
        if answer.outcome is Outcome.FAILS and self.is_broken(asked, answer):
            return answer, self.world
        exact = exactly(asked, self.world)
        try:
            other = self.answer(asked, exact)
        except PipelineError:  # a function that is asked for each value wants fewer of them
            exact = exactly(asked, self.world, room=0)
            other = self.answer(asked, exact)
        wide = exact.limits.integers
        assert wide is not None  # noqa: S101
        # That a number leaves the room that it was given here is nothing that the pipeline does wrong.
        is_ours = isinstance(self.claim, NeverStops) and other.outcome is Outcome.FAILS
        if other.outcome is not Outcome.UNDECIDED and not (is_ours and not self.is_broken(asked, other)):
            return other, exact
        size = integers.size
        where = f"some number leaves {wide.low}..{wide.high}"
        if other.stop is not None:
            stop, path = other.stop
            what = {
                "LEAVES_RANGE": f"{stop.where} leaves {wide.low}..{wide.high}",
                "QUEUE_OVERFLOW": f"an event comes to the full queue {stop.where}",
            }.get(stop.kind, f"{stop.where} raises")
            where = f"{what} at push {len(path)}"
        verb = "holds" if answer.outcome is Outcome.HOLDS else "breaks"
        reason = f"it {verb} if whole numbers wrap around at {size}; but they do not" + (
            f", and then {other.reason}"
            if other.stop is None and not is_ours
            else f": {where}, and what comes then was not followed. Try: domain=tight.modulo({size}) if they do wrap, "
            "or a larger queue=, or domain=tight.whole(low, high) with more room"
        )
        return replace(answer, outcome=Outcome.UNDECIDED, reason=reason, stop=None), self.world

    def is_broken(self, asked: Pipeline, answer: Answer) -> bool:
        """Does the run break the claim also if numbers have no end? False if that is not seen on one run."""
        if isinstance(self.claim, Branching):
            return False
        fronts, loop = self.fronts(asked, answer, self.world)
        limits = replace(self.world.limits, integers=None)
        if isinstance(self.claim, SameSequence):  # that one is far ahead is nothing that breaks the claim
            limits = replace(limits, queue=None, queues={})
        return breaks(asked, self.judged(), fronts, loop, limits, values_of(asked, self.world), exactly=self.relevant)[
            0
        ]

    def judged(self) -> Property:
        """The claim as runs are judged by it."""
        return self.bounded() if isinstance(self.claim, Live) and self.claim.within is not None else self.claim

    def fronts(self, asked: Pipeline, answer: Answer, world: World) -> tuple[list[Front], list[Front]]:
        given = fronts_of(asked, world, [*answer.path, *answer.loop])
        return given[: len(answer.path)], given[len(answer.path) :]

    def values_matter(self, asked: Pipeline) -> bool:
        """Whether it makes a difference which events come, and not only when."""
        return any(name in self.relevant for name in asked.inputs)

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
            limits = replace(limits, queues={**limits.queues, **dict.fromkeys(limits.stopping, len(fronts))})
        values = values_of(asked, self.world)
        confirmed, run = breaks(asked, self.judged(), fronts, loop, limits, values, part=answer.part)
        if not confirmed:
            raise unconfirmed(self.claim, [*fronts, *loop])
        if self.is_stand_in and limits.integers is not None and limits.integers.wraps:
            # What is told is the run with numbers that do not wrap, if it shows the same.
            endless = replace(limits, integers=None)
            is_same, other = breaks(asked, self.judged(), fronts, loop, endless, values, part=answer.part)
            limits, run = (endless, other) if is_same and len(other) == len(run) else (limits, run)
        plain = list(asked.pushes([*fronts, *loop]))
        needs_limits = [(push.outs, push.queues) for push in plain] != [(push.outs, push.queues) for push in run]
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
            replay=replay_lines(names, [*fronts, *loop], limits if needs_limits else None),
            picture=asked.picture(last, mark=marked(self.claim, run, world.limits)),
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
        elif not self.values_matter(asked):
            parts = ["of any values"]
        else:
            mine = self.world.limits.integers
            is_exact = mine is not None and integers is not None and mine.wraps and not integers.wraps
            if mine is not None and is_exact:
                parts = [f"of whole numbers {mine.low}..{mine.high}", f"calculated within {integers}"]
            elif any(kind is int for kind in asked.inputs.values()) or answer.may_wrap:
                parts = [f"of whole numbers {integers}"]
            else:
                parts = ["of all values"]
        shown = self.given if answer.every_number else self.world.inputs
        parts += [f"where {name} is {_some(values)}" for name, values in shown.items()]
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
            rare = [what for what, may in (("ends", world.ends), ("starts anew", world.resets)) if may]
            unless = f", unless the stream {' or '.join(rare)}" if rare else ""
            said.append(
                f"every push brings an event{' on some input' if several and not world.together else ''}{unless}"
            )
        if world.leaks:
            said.append(f"events may be lost before {', '.join(world.leaks)}")
        if isinstance(self.claim, Formula) and not self.claim.has_future:
            said.append("only the first push is asked about")
        if world.limits.full == "drop" and _has_queues(self.asked):
            said.append("a full queue drops what comes")
        return said


def _asks_for_some_run(claim: Property) -> bool:
    """Whether a claim breaks because there is no run of some sort, so that other inputs might bring one."""
    match claim:
        case Live(within=None):
            return True
        case Denied():
            return True  # of what all runs do: that some run does not
        case Path(runs="E"):
            return True
        case Path() | Joined():
            return any(map(_asks_for_some_run, claim.parts))
    return False


def _sizes(limits: Limits) -> str:
    if not limits.queues:
        return str(limits.queue)
    return ", ".join([*(f"{size} at {name}" for name, size in limits.queues.items()), f"{limits.queue} elsewhere"])


def _code_name(pipeline: Pipeline, otherwise: str) -> str:
    return pipeline.name if pipeline.name.isidentifier() and pipeline.name != "pipeline" else otherwise


def _some(values: Sequence[Any], most: int = 6) -> str:
    if len(values) > most:
        return f"one of {len(values)} values"
    return " or ".join(map(repr, values))


def _has_queues(pipeline: Pipeline) -> bool:
    return any(box.inputs > 1 for box in boxes_in(pipeline))
