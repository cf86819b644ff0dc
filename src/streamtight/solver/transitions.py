"""Models as bits: a transition system whose state is wires of a circuit, made smaller before it is searched.

Bits that are the same in all states that are reached are one bit. They are guessed from runs drawn by chance; then,
what one step can tell apart is taken apart, until all that is left together stays together (C.A.J. van Eijk: Sequential
equivalence checking based on structural similarities, 2000). Two pipelines that do the same in the same way become one.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from streamtight.errors import UnsupportedError
from streamtight.program.model import Choice, Domain, Model, Term, Value
from streamtight.solver.circuit import Bits, Wiring, constant_bits, value_of
from streamtight.solver.gates import FALSE, TRUE, Circuit, Copier, clauses_of

Solver = Any
"""A solver of python-sat, which has no types."""

_CONFLICTS = 2_000
"""After so many conflicts a solver is asked to look at the clock."""


class OutOfTime(Exception):
    """The seconds are over."""


class Clock:
    """When to stop, and how much work was done: about in microseconds, but the same on every machine and every day."""

    def __init__(self, seconds: float) -> None:
        self.ends = time.monotonic() + seconds
        self.work = 0

    def part(self, seconds: float) -> Clock:
        """Another one for so many seconds, but no more than are left."""
        return Clock(min(seconds, self.ends - time.monotonic()))

    def look(self) -> None:
        """Raise if the time is over."""
        if time.monotonic() >= self.ends:
            raise OutOfTime

    def ask(self, solver: Solver, assumptions: Sequence[int]) -> bool:
        """Can the clauses be true together with these?"""
        while (found := self.ask_a_while(solver, assumptions)) is None:
            self.look()
        return found

    def ask_a_while(self, solver: Solver, assumptions: Sequence[int]) -> bool | None:
        """Can the clauses be true together with these? None if it takes longer than a moment; then ask again."""
        before = solver.accum_stats()["propagations"]
        solver.conf_budget(_CONFLICTS)
        found: bool | None = solver.solve_limited(assumptions=assumptions)
        self.work += 50 + (solver.accum_stats()["propagations"] - before) // 4
        return found


def new_solver(name: str) -> Solver:
    """A solver of python-sat."""
    try:
        from pysat.solvers import Solver as Named
    except ImportError:
        raise UnsupportedError(
            "the second engine of explore",
            needed="python-sat",
            came="no such package",
            hint='pip install "streamtight[sat]"',
        ) from None
    return Named(name=name)


@dataclass(frozen=True, slots=True)
class System:
    """A transition system of bits.

    first     for each wire of the state, what it carries before the first step
    after     for each wire of the state, what it carries after a step
    inputs    the wires of the choices
    runs      whether the choices are allowed and the run goes on
    bad       whether the step is one that must not be, and the run goes on
    leaves    whether a value is in no domain after the step, and the run goes on
    inside    what is true in every state that is reached
    """

    circuit: Circuit
    state: list[int]
    first: list[bool]
    after: list[int]
    inputs: list[int]
    runs: int
    bad: int
    leaves: int
    inside: list[int]


class Choices:
    """How choices are read from bits."""

    def __init__(self, model: Model, asked: Mapping[str, tuple[Bits, Domain]], inputs: Sequence[int]) -> None:
        self._choices: list[Choice] = list(model.choices.values())
        self._asked = asked
        self._inputs = inputs

    def read(self, carried: Sequence[bool]) -> dict[str, Value]:
        """The value of each choice, if the wires of the choices carry these."""
        known = {TRUE: True, FALSE: False, **dict(zip(self._inputs, carried, strict=True))}
        found = {}
        for choice in self._choices:
            if choice.name in self._asked:
                bits, domain = self._asked[choice.name]
                found[choice.name] = value_of([known[bit] for bit in bits], domain)
            else:
                found[choice.name] = choice.domain.values[0]  # any: it makes no difference
        return found


def system_of(model: Model, bad: Term, solver: Callable[[], Solver], clock: Clock) -> tuple[System, Choices]:
    """The transition system of a model and what must not be, and how its choices are read."""
    variables, choices = model.cone([bad, *(stop.when for stop in model.stops)])
    circuit = Circuit()
    wiring = Wiring(circuit)
    inside = []
    state: list[int] = []
    first: list[bool] = []
    after: list[int] = []
    inputs: list[int] = []
    asked: dict[str, tuple[Bits, Domain]] = {}
    runs = []
    stays = []
    for choice in choices:
        bits = wiring.name(choice.name, choice.domain)
        asked[choice.name] = bits, choice.domain
        inputs += (bit for bit in bits if abs(bit) != TRUE)
        runs.append(wiring.within(choice.name))
    for variable in variables:
        wiring.name(variable.name, variable.domain)
        inside.append(wiring.within(variable.name))
    for variable in variables:
        clock.look()
        bits, _ = wiring.names[variable.name]
        begins = constant_bits(variable.first, variable.domain)
        becomes = wiring.bits_in(variable.after, variable.domain)
        stays.append(wiring.fits(variable.after, variable.domain))
        for bit, begin, become in zip(bits, begins, becomes, strict=True):
            if abs(bit) != TRUE:
                state.append(bit)
                first.append(begin == TRUE)
                after.append(become)
    runs += [wiring.wire(model.allowed), *(-wiring.wire(stop.when) for stop in model.stops)]
    run = circuit.all(runs)
    judged = circuit.and_(run, wiring.wire(bad))
    leaves = circuit.and_(run, -circuit.all(stays))
    system = System(circuit, state, first, after, inputs, run, judged, leaves, inside)
    return _kept_in_domains(system, solver, clock), Choices(model, asked, inputs)


def _kept_in_domains(system: System, new: Callable[[], Solver], clock: Clock) -> System:
    """The system; if it is not plain that values stay in their domains, with leaving them as a violation as well."""
    circuit = system.circuit
    if system.leaves != FALSE:
        with new() as solver:
            solver.append_formula(circuit.clauses([system.leaves, *system.inside]))
            solver.append_formula([[wire] for wire in system.inside])
            if clock.ask(solver, [system.leaves]):
                bad = circuit.or_(system.bad, system.leaves)
                return _without_the_rest(replace(system, bad=bad, inside=[]))
    return _without_the_rest(replace(system, leaves=FALSE))


def _without_the_rest(system: System) -> System:
    """The system without bits that make no difference."""
    circuit = system.circuit
    place_of = {wire: place for place, wire in enumerate(system.state)}
    needed: set[int] = set()
    waiting = [system.runs, system.bad]
    while waiting:
        found = _fronts(circuit, waiting) & place_of.keys()
        waiting = [system.after[place_of[wire]] for wire in found - needed]
        needed |= found
    places = [place for place, wire in enumerate(system.state) if wire in needed]
    return replace(
        system,
        state=[system.state[place] for place in places],
        first=[system.first[place] for place in places],
        after=[system.after[place] for place in places],
        inside=[wire for wire in system.inside if wire != TRUE and _fronts(circuit, [wire]) <= needed],
    )


def _fronts(circuit: Circuit, roots: Sequence[int]) -> set[int]:
    """The wires that these depend on and that no gate leads to."""
    found = {abs(root) for root in roots if abs(root) not in circuit.gates}
    for wire in circuit.cone(roots):
        for each in circuit.gates[wire][1:]:
            if each and abs(each) not in circuit.gates:
                found.add(abs(each))
    return found - {TRUE}


# -- bits that are the same ------------------------------------------------------------------------------------------


def merged(system: System, solver: Callable[[], Solver], clock: Clock) -> System:
    """The same system, with one bit for all that are the same or opposite in every state that is reached."""
    classes = _guessed(system, clock)
    copier = Copier(system.circuit, [*system.after, system.runs, system.bad, *system.inside])
    while True:
        clock.look()
        made, afters = _substituted(system, copier, classes)
        finer = _taken_apart(made, afters, classes, solver, clock)
        if finer == classes:
            return _without_the_rest(made)
        classes = finer


Classes = list[list[int]]
"""Places of state bits that are the same, seen as opposite where they start true. The first class is always false."""


def _guessed(system: System, clock: Clock) -> Classes:
    """What was the same in runs drawn by chance."""
    circuit = system.circuit
    cone = circuit.cone([*system.after, system.runs])
    runs = 128
    mask = (1 << runs) - 1
    rng = random.Random(0)
    begins = [mask if begin else 0 for begin in system.first]
    state = begins
    seen = [0] * len(state)
    steps = max(8, min(100, 200_000 // (len(cone) + 1)))
    for _ in range(steps):
        clock.look()
        values = dict(zip(system.state, state, strict=True))
        values.update((wire, rng.getrandbits(runs)) for wire in system.inputs)
        of = circuit.simulated(cone, values, mask)
        goes_on = of(system.runs)
        # A run that cannot go on begins anew.
        state = [(of(after) & goes_on) | (begin & ~goes_on) for after, begin in zip(system.after, begins, strict=True)]
        seen = [before << runs | (now ^ begin) for before, now, begin in zip(seen, state, begins, strict=True)]
    classes: dict[int, list[int]] = {0: []}
    for place, history in enumerate(seen):
        classes.setdefault(history, []).append(place)
    return list(classes.values())


def _substituted(system: System, copier: Copier, classes: Classes) -> tuple[System, list[int]]:
    """The system with one wire for each class, and what all state bits become (opposite where they start true)."""
    circuit = Circuit()
    inputs = {wire: circuit.wire() for wire in system.inputs}
    known = dict(inputs)
    for number, places in enumerate(classes):
        wire = FALSE if number == 0 else circuit.wire()
        for place in places:
            known[system.state[place]] = -wire if system.first[place] else wire
    copied = copier.into(circuit, known)
    size = len(system.state)
    afters, (runs, bad), inside = copied[:size], copied[size : size + 2], copied[size + 2 :]
    turned = [-after if begin else after for after, begin in zip(afters, system.first, strict=True)]
    made = System(
        circuit,
        [abs(known[system.state[places[0]]]) for places in classes[1:]],
        [False] * (len(classes) - 1),
        [turned[places[0]] for places in classes[1:]],
        list(inputs.values()),
        runs,
        bad,
        FALSE,
        inside,
    )
    return made, turned


def _taken_apart(
    system: System, afters: Sequence[int], classes: Classes, new: Callable[[], Solver], clock: Clock
) -> Classes:
    """The classes, without what one step from a state of these classes can tell apart."""
    circuit = system.circuit

    def differences(classes: Classes) -> list[int]:
        heads = [FALSE, *(afters[places[0]] for places in classes[1:])]
        pairs = [
            circuit.xor(head, afters[place]) for head, places in zip(heads, classes, strict=True) for place in places
        ]
        return [each for each in dict.fromkeys(pairs) if each != FALSE]

    different = differences(classes)
    if not different:
        return classes
    with new() as solver:
        solver.append_formula(circuit.clauses([*afters, *different, system.runs, *system.inside]))
        solver.append_formula([[system.runs], *([wire] for wire in system.inside)])
        said = circuit.last
        while different:
            # The heads of new classes are compared with others, by gates that the solver has not seen.
            for wire in range(said + 1, circuit.last + 1):
                if wire in circuit.gates:
                    solver.append_formula(clauses_of(wire, circuit.gates[wire]))
            asked = said = circuit.wire()
            solver.add_clause([-asked, *different])
            if not clock.ask(solver, [asked]):
                break
            true = {wire for wire in solver.get_model() if wire > 0}
            finer: Classes = []
            for number, places in enumerate(classes):
                parts: tuple[list[int], list[int]] = [], []
                for place in places:
                    parts[(abs(afters[place]) in true) == (afters[place] > 0)].append(place)
                finer += [part for part in parts if part or (number == 0 and part is parts[0])]
            classes = finer
            different = differences(classes)
    return classes
