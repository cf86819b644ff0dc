"""The second engine of `explore`: is a violation reached? By SAT solvers, for models too large to be searched.

Two ways are gone at the same time, a moment each: runs of one step more and more, which finds a shortest violation, and
a proof for runs of any length. Each tells the other how far it came.

>>> from streamtight.program.model import BOOL, Choice, Range, Terms, Variable
>>> terms = Terms()
>>> tick, count = terms.variable("tick", BOOL), terms.variable("count", Range(0, 5))
>>> two, four = terms.constant(2), terms.constant(4)
>>> after = terms.choose(terms.and_(tick, terms.less(count, four)), terms.add(count, two), count)
>>> model = Model(
...     terms,
...     variables={"count": Variable("count", Range(0, 5), 0, after, is_data=False)},
...     choices={"tick": Choice("tick", BOOL)},
...     allowed=terms.true,
... )
>>> search(model, terms.and_(tick, terms.equal(count, four)))
Unsafe(choices=[{'tick': True}, {'tick': True}, {'tick': True}], is_shortest=True)
>>> search(model, terms.equal(count, terms.constant(5)))
Safe(steps=2)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from streamtight.program.model import Model, Term, Value, evaluate
from streamtight.solver.gates import FALSE, TRUE, Circuit, Copier, TooLarge, clauses_of
from streamtight.solver.pdr import Proof
from streamtight.solver.transitions import Clock, OutOfTime, Solver, System, merged, new_solver, system_of

_FOR_RUNS = "glucose4"
_FOR_STEPS = "glucose4"
"""Solvers for long runs and for many questions about single steps. On our models, none of the others is much faster."""
_MOST_GATES = 1_000_000
"""Runs with more are too large: only the solver keeps them, but it keeps all."""


@dataclass(frozen=True, slots=True)
class Safe:
    """No run has a violation, however long it is. `steps` says after how many steps that was seen."""

    steps: int


@dataclass(frozen=True, slots=True)
class Unsafe:
    """A run with a violation in its last step: for each step the value of every choice. Shortest, if there was time."""

    choices: list[dict[str, Value]]
    is_shortest: bool = True


@dataclass(frozen=True, slots=True)
class Unknown:
    """No violation within so many steps, and why it is not known of more."""

    steps: int
    reason: str


def search(model: Model, bad: Term, *, seconds: float = 60, most_steps: int | None = None) -> Safe | Unsafe | Unknown:
    """Is there a run of the model with a step in which `bad` is true?

    seconds      the time it may take
    most_steps   ask about runs of so many steps only
    """
    new_solver(_FOR_STEPS).delete()  # so that a missing package is told before anything else
    clock = Clock(seconds)
    out_of_time = f"{seconds:g} seconds were not enough"
    try:
        system, choices = system_of(model, bad, _solver, clock)
        may_leave = system.leaves != FALSE
        system = _smaller(system, clock.part(seconds / 4))
        clocks = clock.part(seconds), clock.part(seconds)
        runs, proof = Runs(system, clocks[0]), Proof(system, _FOR_STEPS, clocks[1])
    except TooLarge as large:
        return Unknown(0, str(large))
    except OutOfTime:
        return Unknown(0, out_of_time)
    try:
        for _ in _in_turns(runs, proof, clocks, most_steps):
            clock.look()
    except OutOfTime:
        pass
    steps = max(runs.steps, proof.steps)
    violation = proof.violation if runs.violation is None else runs.violation
    if violation is not None and (most_steps is None or len(violation) <= most_steps):
        run = [choices.read(each) for each in violation]
        if may_leave and not _ends_so(model, bad, run):
            return Unknown(steps, f"after {len(run)} steps, a variable may have a value outside its domain")
        return Unsafe(run, is_shortest=len(violation) == steps + 1)
    if runs.ended or proof.proved:
        return Safe(steps)
    if most_steps is not None and steps >= most_steps:
        return Unknown(most_steps, f"runs of more than {most_steps} steps were not asked about")
    return Unknown(steps, runs.too_large or out_of_time)


def _solver() -> Solver:
    return new_solver(_FOR_STEPS)


def _smaller(system: System, clock: Clock) -> System:
    try:
        return merged(system, _solver, clock)
    except (OutOfTime, TooLarge):
        return system


def _ends_so(model: Model, bad: Term, run: list[dict[str, Value]]) -> bool:
    """Does a run end with this?"""
    variables, _ = model.cone([bad])
    state = model.first()
    for choices in run[:-1]:
        values = {**state, **choices}
        state = {each.name: evaluate(each.after, values) for each in variables}
    return bool(evaluate(bad, {**state, **run[-1]}))


def _in_turns(runs: Runs, proof: Proof, clocks: tuple[Clock, Clock], most_steps: int | None) -> Iterator[None]:
    """Both ways, with twice the work for the proof, until one of them has an answer.

    Time would do as well, but then it would be left to chance which of several violations is found.
    """
    by_runs, by_proof = runs.work(), proof.work()
    while runs.violation is None and not runs.ended and not proof.proved:
        runs.known = max(runs.known, proof.steps)
        steps = max(runs.steps, proof.steps)
        is_shortest = proof.violation is not None and len(proof.violation) == steps + 1
        if is_shortest or (most_steps is not None and steps >= most_steps):
            return
        # If the proof has failed, there is a violation: only a shortest one is still wanted.
        is_for_runs = 2 * clocks[0].work <= clocks[1].work or proof.violation is not None
        if is_for_runs and runs.too_large:
            if proof.violation is not None:
                return
            is_for_runs = False
        next(by_runs if is_for_runs else by_proof, None)
        yield


class Runs:
    """Work on runs from the first state, of one step, of two, and so on.

    steps      no violation within so many steps
    known      the same, as somebody else knows it
    ended      no run has more steps
    too_large  why no more steps are looked at
    violation  the choices of a shortest run to one
    """

    def __init__(self, system: System, clock: Clock) -> None:
        self._system, self._clock = system, clock
        self.steps = self.known = 0
        self.ended = False
        self.too_large = ""
        self.violation: list[tuple[bool, ...]] | None = None
        self._circuit = Circuit()
        self._copier = Copier(system.circuit, [*system.after, system.runs, system.bad])
        self._solver = new_solver(_FOR_RUNS)
        self._solver.add_clause([TRUE])

    def work(self) -> Iterator[None]:
        """Go on, a moment at a time, until there is an answer."""
        system, circuit, solver = self._system, self._circuit, self._solver
        state = [TRUE if begin else FALSE for begin in system.first]
        inputs: list[list[int]] = []
        gates = 0
        while True:
            # The gates of a step are let go of; so the solver is what grows.
            circuit.forget()
            inputs.append([circuit.wire() for _ in system.inputs])
            known = {**dict(zip(system.state, state, strict=True)), **dict(zip(system.inputs, inputs[-1], strict=True))}
            *state, runs, bad = self._copier.into(circuit, known)
            gates += len(circuit.gates)
            self._clock.work += 100 + 8 * len(circuit.gates)
            if gates > _MOST_GATES:
                self.too_large = f"runs of {self.steps + 1} steps have more than {_MOST_GATES:,} gates"
                return
            for wire, gate in circuit.gates.items():
                for clause in clauses_of(wire, gate):
                    solver.add_clause(clause)
            solver.add_clause([runs])
            yield
            if self.steps >= self.known and bad != FALSE:
                while (found := self._clock.ask_a_while(solver, [bad])) is None:
                    yield
                if found:
                    true = set(solver.get_model())
                    self.violation = [tuple(wire in true for wire in step) for step in inputs]
                    return
                if not solver.get_core():
                    self.ended = True
                    return
            if runs == FALSE:
                self.ended = True
                return
            solver.add_clause([-bad])
            self.steps += 1
