"""Does a fork/join program give the same outputs on any number of workers? (Definition 4.3, Theorem 4.4)

It is run as workers may run it, and at each point the laws of consistency are asked for:

    (C1)  join(update(left, e), right)  is  update(join(left, right), e), and the mirror image
    (C2)  join(fork(s))  is  s
    (C3)  update(update(s, e), f)  is  update(update(s, f), e), if e and f are independent

States are compared by `same_state`, outputs as multisets. Where the functions can be read, the laws are proved.

>>> from streamtight.program.fork_join import Branch, StateType
>>> from streamtight.stream.dependence import barrier
>>> Value, Barrier = Kind("Value", time=int, value=int), Kind("Barrier", time=int)
>>> Total = Kind("Total", time=int, total=int)
>>> class Windows(ForkJoin):
...     takes, gives = (Value, Barrier), (Total,)
...     depends = barrier(Barrier)
...     whole, part = StateType(Value, Barrier), StateType(Value)
...     branches = (Branch(whole, part, part), Branch(part, part, part))
...     def init(self):
...         return 0
...     def update(self, total, event, emit):
...         if event.kind is Value:
...             return total + event.value
...         emit(Total(event.time, total))
...         return 0
...     def fork(self, total, left, right):
...         return total, 0
...     def join(self, left, right):
...         return left + right
>>> print(consistent(Windows()))
HOLDS  Windows gives the same outputs on any number of workers (proved for every input)
>>> class Lost(Windows):
...     def join(self, left, right):
...         return left
>>> print(consistent(Lost()).counterexample.explanation.split(";")[0])
join(left, update(right, event)) is 0, update(join(left, right), event) is 1
"""

from __future__ import annotations

import itertools
import math
import pickle
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import FunctionType
from typing import Any

from streamtight.errors import PlanError
from streamtight.method.parallelize.laws import (
    Asked,
    Broken,
    Calls,
    Result,
    Run,
    Unclear,
    lines_of,
    numbered,
    ran,
    same_outputs,
)
from streamtight.method.parallelize.wires import (
    Diagram,
    Drawing,
    code_of,
    has_fork,
    in_sequence,
    is_possible,
    simpler,
    smaller,
    with_imports,
)
from streamtight.program.fork_join import Branch, ForkJoin, StateType
from streamtight.program.functions import values_known_to, why_unclear, why_varies
from streamtight.solver.ask import Budget
from streamtight.solver.fork_join import Proof, is_consistent
from streamtight.solver.reading import NOTHING_RAISES
from streamtight.solver.symbolic.values import REAL_NUMBERS
from streamtight.source.generate import Source, generated_from, plain_event
from streamtight.source.values import simplicity, values_of
from streamtight.stream.event import Event, Kind, without_annotation, without_none
from streamtight.verdict import Counterexample, Outcome, Scope, Table, Verdict

Told = Callable[[str], None]

SIZE = 12
"""How many events a generated input has, at most."""
MOST_LIMIT, BEYOND = 64, 3
"""A number up to this may be a limit of how much is kept; some inputs have so many events more."""
MOST_KNOWN = 24
"""How many of the numbers, and of the texts, that a program names are tried in events."""
MOST_LETTERS = 24
DIAGRAMS = 4
"""In how many ways each input is run."""
RERUNS = 3
MOST_SECONDS = 20.0
"""For making a counterexample small, and for finding one that outputs show."""


LEAST_CASES = 10
"""So many inputs are tried, however long it takes."""


def silent(_: str) -> None:
    """Tells nobody how far it is."""


def consistent(
    program: ForkJoin, *, cases: int = 100, seconds: float = 10.0, seed: int = 0, progress: Told = silent
) -> Verdict:
    """Does it give the same outputs on any number of workers, in whatever order independent events come?

    cases     how many generated inputs it is tried on
    seconds   how long the proof may take; trying it ends early after three times that, and the scope says so
    """
    if not isinstance(program, ForkJoin):
        raise PlanError("consistent(...)", needed="a fork/join program", came=repr(program)[:200], hint="Windows()")
    claim = f"{program.name} gives the same outputs on any number of workers"
    started = time.perf_counter()
    progress(f"{program.name}: trying it")
    trial = _tried(program, cases, seed, 3 * seconds)

    def verdict(outcome: Outcome, reason: str | None = None, **more: Any) -> Verdict:
        cost = {"seconds": time.perf_counter() - started, "runs": float(trial.asked.runs)}
        scope = more.pop("scope", Scope.tested(trial.cases, seed=seed))
        return Verdict(claim, outcome, scope, trial.found, reason, cost, **more)

    if trial.found is not None:
        return verdict(Outcome.FAILS)
    assumptions = dict.fromkeys(_assumed(program, trial.asked))
    reason = trial.unclear or _varies(program) or _vacuous(program, trial.asked)
    if reason is not None:
        return verdict(Outcome.UNDECIDED, reason, assumptions=tuple(assumptions))
    progress(f"{program.name}: reading it")
    proof = is_consistent(program, Budget(seconds))
    if proof.suspects:  # of states that may not come about: a run has to show it
        again = _tried(program, cases, seed, 3 * seconds, near=proof.suspects)
        if again.found is not None:
            trial = again
            return verdict(Outcome.FAILS)
    assumptions.update(dict.fromkeys(sorted(proof.assumptions)))
    if trial.asked.blocks and not proof.tested:
        assumptions[f"update_block does what update does, as it did for {trial.asked.blocks} blocks"] = None
    return verdict(
        Outcome.HOLDS,
        scope=Scope.tested(trial.cases, seed=seed) if proof.tested else Scope.proved(),
        method=_method(program, proof),
        assumptions=tuple(assumptions),
    )


def _method(program: ForkJoin, proof: Proof) -> str:
    parts = [f"proved: {', '.join(proof.proved)}"] if proof.proved else []
    parts += [f"tested: {law}, since {why}" for law, why in proof.tested.items()]
    parts += [] if program.all_branches else ["it has no fork, so one worker runs it"]
    return "; ".join(parts)


# -- reasons why there is no answer ----------------------------------------------------------------------------------


def _functions(program: ForkJoin) -> dict[str, Callable[..., Any]]:
    """What the user wrote of it, by name."""
    names = ["init", "update", "update_block", "same_state"]
    names += [name for branch in program.all_branches for name in (branch.fork, branch.join)]
    found = {name: getattr(program, name) for name in names}
    own = {name: f for name, f in found.items() if getattr(f, "__func__", None) is not getattr(ForkJoin, name, None)}
    for type_ in program.state_types:
        own |= {f"{type_}.update": type_.update} if type_.update is not None else {}
        own |= {f"{type_}.update_block": type_.update_block} if type_.update_block is not None else {}
    return own


def _codes(program: ForkJoin) -> list[FunctionType]:
    found = (getattr(function, "__func__", function) for function in _functions(program).values())
    return [function for function in found if isinstance(function, FunctionType)]


def _varies(program: ForkJoin) -> str | None:
    """How a function of it can give other results for the same arguments, as far as its code shows."""
    for name, function in _functions(program).items():
        why = why_varies(function, across_processes=True) or why_unclear(function)
        if why is not None:
            return f"{name} {why}, so it may give something else another time"
    return None


def _vacuous(program: ForkJoin, asked: Asked) -> str | None:
    """Which law nothing asked about."""
    calls = asked.calls
    if calls.updates and calls.raised["update"] == calls.updates:
        return f"update raised each of {calls.updates} times: {calls.first_raised['update']}"
    for branch in program.all_branches:
        for side, (name, type_) in enumerate((("left", branch.left), ("right", branch.right))):
            if not asked.laws["C1", branch, side] and type_.handles:
                return f"no event was handled on the {name} side of {branch} in {asked.runs} runs"
    if program.gives and not asked.outputs:
        return f"it gave no output in {asked.runs} runs"
    return None


def _assumed(program: ForkJoin, asked: Asked) -> list[str]:
    """What tests take for granted: they do not try NaN, and cannot compare what raises."""
    return [REAL_NUMBERS] * any(map(_is_float, program.takes)) + [NOTHING_RAISES] * bool(asked.calls.raised)


def _is_float(kind: Kind) -> bool:
    return any(without_annotation(without_none(type_)[0]) is float for type_ in kind.fields.values())


# -- search ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Trial:
    """What was tried, and what was found."""

    asked: Asked
    cases: int = 0
    found: Counterexample | None = None
    unclear: str | None = None


def _tried(program: ForkJoin, cases: int, seed: int, seconds: float, near: Iterable[object] = ()) -> _Trial:
    """Try so many inputs, until one shows that a law is broken, or until a few were tried and the time is over."""
    until = time.perf_counter() + seconds
    trial = _Trial(Asked(Calls(program), with_large_blocks=True))
    before = _memory(program)
    inputs, long = _inputs(program, near)
    long = long[: cases // 10]
    run, drawing = Run(program, trial.asked), Drawing(program, random.Random(seed))
    differing: tuple[Broken, Diagram] | None = None
    try:
        usual = (trace.events for trace in inputs.traces(cases - len(long), seed))
        for trace in itertools.chain(usual, long):
            if trial.cases >= LEAST_CASES and time.perf_counter() > until:
                break
            trial.cases += 1
            events = _usable(program, trace)
            for number in range(1 + DIAGRAMS):  # in sequence first: that shows whether the relation is one
                diagram = drawing.diagram(events) if number else tuple(events)
                broken = run.broken(diagram)
                if broken is not None and broken.finding == "OUTPUTS_DIFFER":  # a law that is broken tells more
                    differing = differing or (broken, diagram)
                elif broken is not None:
                    trial.found = _Search(program, inputs, seed).shown(broken, diagram)
                    return trial
        if differing is not None:
            trial.found = _Search(program, inputs, seed).shown(*differing)
    except Unclear as error:
        trial.unclear = str(error)
    changed = [name for name, value in _memory(program).items() if before.get(name) != value]
    if changed and trial.found is None:
        trial.unclear = trial.unclear or f"a run of it changes {changed[0]}, so it may give something else another time"
    return trial


def _memory(program: ForkJoin) -> dict[str, object]:
    """What the program and its classes hold that a run could change, as it is now."""
    classes = [cls for cls in type(program).__mro__ if issubclass(cls, ForkJoin) and cls is not ForkJoin]
    ours = {*vars(ForkJoin), *ForkJoin.__annotations__}
    held = {f"self.{name}": value for name, value in vars(program).items() if name not in ours}
    for cls in classes:
        held |= {f"{cls.__name__}.{name}": value for name, value in vars(cls).items() if _is_data(name, value, ours)}
    return {name: _as_it_is(value) for name, value in held.items()}


def _is_data(name: str, value: object, ours: set[str]) -> bool:
    is_other = isinstance(value, (FunctionType, property, cached_property, StateType, Branch, Kind))
    return not (is_other or name in ours or name.startswith("__"))


def _as_it_is(value: object) -> object:
    try:
        return pickle.dumps(value)
    except Exception:  # the border of user code
        return repr(value)


def _inputs(program: ForkJoin, near: Iterable[object] = ()) -> tuple[Source, list[Sequence[Event]]]:
    """Events near what the program names, and these values; and some inputs that are longer than its limits."""
    named = values_known_to(_codes(program), program)
    known = [*near, *(value for value in named if type(value) is not int or abs(value) > 3)]  # small ones come anyway
    if any(program.update_block_of(type_) is not None for type_ in program.state_types):
        known = [value for value in known if type(value) is not int or abs(value) < 2**62]  # columns have 64 bits
    pools: dict[tuple[str, Any], list[Any]] = {}
    for kind in program.takes:
        for name, declared in kind.fields.items():
            pool = pools.setdefault((name, declared), _pool(declared, known))
            pool += _named(program, kind, name) * 3
    for (name, _), pool in pools.items():
        pool[:] = [value for value in pool if _is_usable(value) and not (name == program.time and value is None)]
    by_kind = {kind: {name: pools[name, declared] for name, declared in kind.fields.items()} for kind in program.takes}
    limits = [n for n in known if type(n) is int and SIZE - BEYOND < n <= MOST_LIMIT]
    source = generated_from(by_kind, size=(2, SIZE))
    return source, list(_long_inputs(program, source, max(limits) + BEYOND)) if limits else []


def _long_inputs(program: ForkJoin, source: Source, size: int) -> Iterator[Sequence[Event]]:
    """So many events of a kind whose values all differ, and some usual ones at the end: limits are reached."""
    for kind, usual in zip(program.takes, source.traces(len(program.takes), seed=0), strict=True):
        if set(kind.names) == {program.time}:
            continue
        many = [plain_event(kind).replace(**numbered(kind, number)) for number in range(size)]
        last = getattr(many[-1], program.time)
        others = [e for e in usual.events if getattr(e, program.time) is not None]
        others += [plain_event(other) for other in program.takes if other is not kind]
        yield [*many, *(other.replace(**{program.time: last}) for other in others)]


def _pool(declared: Any, known: Sequence[object]) -> list[Any]:
    """The values of a field, more of them near those that are known."""
    plain, optional = without_none(declared)
    plain = without_annotation(plain)
    numbers = [n for n in known if type(n) is int][:MOST_KNOWN]
    values: list[Any] = list(values_of(declared).pool(extremes=False))
    if plain is int and numbers and declared in (int, int | None):
        values = [0, 1, 2, 3, -1, *(n + d for n in numbers for d in (0, -1, 1)), *([None] if optional else [])]
    if plain is str:
        values += [text for text in known if isinstance(text, str) and 0 < len(text) <= MOST_LETTERS][:MOST_KNOWN]
        values += ["x" * (n + d) for n in numbers[:4] if 3 < n <= MOST_LIMIT for d in (-1, 0, 1)]
    if plain is float:
        values += [float(n) for n in (*numbers, *(x for x in known if isinstance(x, float))) if abs(n) < 2**53]
    return values


def _is_usable(value: Any) -> bool:
    """Not NaN and not infinite: floats are taken for real numbers."""
    return not isinstance(value, float) or math.isfinite(value)


def _usable(program: ForkJoin, events: Sequence[Event]) -> list[Event]:
    """Those of the events that have a time and only numbers that can be calculated with, in their order."""
    kept = [e for e in events if getattr(e, program.time) is not None and all(map(_is_usable, e[1:]))]
    return sorted(kept, key=program.key)


def _named(program: ForkJoin, kind: Kind, name: str) -> list[Any]:
    """The values of a field of tags that the types of states name."""
    parts = [part for type_ in program.state_types for part in type_.handles.parts if part.kind is kind]
    listed = [values for part in parts if isinstance(values := part.values(name), frozenset)]
    return sorted({value for values in listed for value in values}, key=simplicity)


LAWS = frozenset({"JOIN_UPDATE_LEFT", "JOIN_UPDATE_RIGHT", "FORK_JOIN", "ORDER_MATTERS"})
MOST_TRIED = 3000
"""So many smaller diagrams are tried, at most."""
MOST_SHOWN = 300
"""So many inputs are tried, at most, to see a broken law in the outputs."""


class _Search:
    """Makes a diagram small that breaks a law, and looks for one on which the outputs are wrong."""

    def __init__(self, program: ForkJoin, inputs: Source, seed: int) -> None:
        self._program, self._inputs, self._seed = program, inputs, seed
        self._ends = time.monotonic() + MOST_SECONDS
        self._with_large_blocks = False

    def shown(self, broken: Broken, diagram: Diagram) -> Counterexample:
        """What a person sees."""
        finding = broken.finding
        self._with_large_blocks = finding == "BLOCK_DIFFERS"
        small = self._smallest(diagram, lambda each: self._finding(each) == finding)
        again = [self._broken(small) for _ in range(RERUNS)]
        if finding == "NOT_A_FUNCTION" or any(each is None or each.finding != finding for each in again):
            varies = _varies(self._program)
            if varies is not None:
                raise Unclear(varies)
        broken = next((each for each in again if each is not None and each.finding == finding), broken)
        visible = self._visible(diagram) if finding in LAWS else small if finding == "OUTPUTS_DIFFER" else None
        if visible is not None:
            return self._of_outputs(visible)
        law, seen = broken.explanation, "; the states differ, but no output showed it" if finding in LAWS else ""
        return Counterexample(
            finding=finding,
            explanation=f"{law}{'' if _outputs_differ(broken) else seen}",
            table=Table(("what", "is"), broken.rows, "what was asked"),
            replay=with_imports(self._program, broken.code),
            reruns=RERUNS,
            failing_reruns=sum(each is not None and each.finding == finding for each in again),
        )

    def _of_outputs(self, diagram: Diagram) -> Counterexample:
        """The sequential run beside one by workers."""
        broken, again = self._broken(diagram), [self._both(diagram) for _ in range(RERUNS)]
        assert broken is not None  # noqa: S101 - what its callers made sure of
        steps: list[tuple[str, str, str, str]] = []
        expected = ran(self._program, tuple(in_sequence(self._program, diagram)))
        actual = ran(self._program, diagram, steps=steps)
        told = [lines_of(each.outputs, ", ") or "nothing" for each in (expected, actual)]
        told[1] = f"an exception, {actual.raised}" if actual.raised is not None else told[1]
        return Counterexample(
            finding=broken.finding,
            explanation=f"{broken.explanation}; in sequence the outputs are {told[0]}, on several workers {told[1]}"
            if has_fork(diagram)
            else f"{broken.explanation}; in the order of time the outputs are {told[0]}, in another order {told[1]}",
            expected=expected.outputs,
            actual=actual.outputs,
            table=Table(("wire", "what", "state", "output"), tuple(steps), "a run, step by step"),
            replay=code_of(self._program, diagram),
            reruns=RERUNS,
            failing_reruns=sum(not _same(*each) for each in again),
        )

    def _visible(self, diagram: Diagram) -> Diagram | None:
        """A small diagram whose outputs are not those of the sequential run."""
        drawing = Drawing(self._program, random.Random(self._seed))
        traces = self._inputs.traces(MOST_SHOWN, self._seed + 1)
        inputs = (_usable(self._program, trace.events) for trace in traces)
        others = (drawing.diagram(events) for events in inputs for _ in range(DIAGRAMS))
        for each in itertools.chain([diagram], others):
            if time.monotonic() > self._ends:
                break
            if self._is_visible(each):
                return self._smallest(each, self._is_visible)
        return None

    def _is_visible(self, diagram: Diagram) -> bool:
        one, other = self._both(diagram)
        has_outputs = one.raised is None and other.raised is None
        return has_outputs and not _same(one, other) and self._finding(diagram) in LAWS

    def _both(self, diagram: Diagram) -> tuple[Result, Result]:
        return ran(self._program, tuple(in_sequence(self._program, diagram))), ran(self._program, diagram)

    def _finding(self, diagram: Diagram) -> str | None:
        broken = self._broken(diagram)
        return None if broken is None else broken.finding

    def _broken(self, diagram: Diagram) -> Broken | None:
        asked = Asked(Calls(self._program), with_large_blocks=self._with_large_blocks)
        return Run(self._program, asked).broken(diagram)

    def _smallest(self, diagram: Diagram, fails: Callable[[Diagram], bool]) -> Diagram:
        tried = 0
        is_smaller = True
        while is_smaller:
            is_smaller = False
            for candidate in itertools.chain(smaller(diagram), simpler(self._program, diagram, self._inputs)):
                tried += 1
                if tried > MOST_TRIED or time.monotonic() > self._ends:
                    return diagram
                if _is_possible(self._program, candidate) and fails(candidate):
                    diagram, is_smaller = candidate, True
                    break
        return diagram


def _is_possible(program: ForkJoin, diagram: Diagram) -> bool:
    try:
        return is_possible(program, diagram)
    except Exception:  # the border of user code: a relation that is none, which is found elsewhere
        return True


def _same(one: Result, other: Result) -> bool:
    return one.raised == other.raised and same_outputs(one.outputs, other.outputs)


def _outputs_differ(broken: Broken) -> bool:
    """Whether the two results that broke the law have outputs or exceptions in them."""
    return any(" with " in result or "an exception" in result for _, result in broken.rows[-2:])
