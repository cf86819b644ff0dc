"""Which engine answers which question, and what its answer means for the claim.

Claims about single steps are tried with values as symbols first, which proves many of them for all values at once;
then all states are searched, nearest first, so that a counterexample is a shortest one; then, where the search ran out
of its budget, a SAT solver is asked. Claims about runs are judged on the graph of all states.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

from streamtight.errors import UnsupportedError
from streamtight.method.explore.compiled import System, TooManyChoices, compiled
from streamtight.method.explore.ctl import Labels
from streamtight.method.explore.lasso import Broken, Together, breaking
from streamtight.method.explore.relevance import tests_in
from streamtight.method.explore.search import (
    Budget,
    Complete,
    Exhausted,
    Graph,
    Reached,
    backward,
    graph,
    invariant,
    shortest,
)
from streamtight.method.explore.symbols import proved
from streamtight.method.explore.terms import step_test
from streamtight.program.model import Model, Stop, Term, Value
from streamtight.properties.automaton import Automaton, automaton, is_safe
from streamtight.properties.branching import Branching, Denied, Joined, Path
from streamtight.properties.temporal import Formula, Implies
from streamtight.verdict import Outcome

Chosen = Mapping[str, Value]
"""What the world chose in a step."""


@dataclass(frozen=True)
class Answer:
    """What an engine found.

    path, loop   the choices of a run that breaks the claim; those that it repeats for ever
    reason       why it is not decided
    happened     whether there was a step that the claim is about
    wraps        whether a number that matters wrapped around somewhere
    may_wrap     whether there is a number that matters and could
    stop         where runs stop, and the choices of a shortest one
    every_number it was shown for whole numbers of any size
    """

    outcome: Outcome
    method: str
    path: Sequence[Chosen] = ()
    loop: Sequence[Chosen] = ()
    part: Branching | None = None
    """Which part of a CTL formula is false at the end of the path."""
    reason: str = ""
    happened: bool = True
    wraps: bool = False
    may_wrap: bool = False
    stop: tuple[Stop, Sequence[Chosen]] | None = None
    every_number: bool = False
    cost: Mapping[str, float] = field(default_factory=dict)

    @property
    def fails(self) -> bool:
        """Whether there is a run that breaks the claim."""
        return self.outcome is Outcome.FAILS


@dataclass
class Limit:
    """How much an answer may use, and which engines may be asked."""

    states: int = 1_000_000
    seconds: float = 60.0
    told: Callable[[int], None] | None = None
    engines: tuple[str, ...] = ("symbols", "search", "sat")
    _end: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._end = time.monotonic() + self.seconds

    def left(self, part: float = 1.0) -> float:
        """The seconds that are left, or so much of all as a part; never quite none, so that there is an answer."""
        return max(min(self.seconds * part, self._end - time.monotonic()), 0.01 * self.seconds)

    def budget(self, part: float = 1.0) -> Budget:
        """The budget of one search."""
        return Budget(self.states, self.left(part), self.told)


# -- claims about single steps ---------------------------------------------------------------------------------------


def decide_steps(
    model: Model,
    bad: Term,
    happened: Term,
    wrapped: Term,
    limit: Limit,
    symbolic: Callable[[], tuple[Model, Term, Term] | None] | None = None,
) -> Answer:
    """Is there a step in which `bad` is true?

    happened   when a step is one that the claim is about
    wrapped    when a number that matters wraps around
    symbolic   makes the model in which values may be symbols, with both terms, if there is one
    """
    if symbolic is not None and "symbols" in limit.engines:
        other = symbolic()
        shown = None if other is None else proved(other[0], other[1], [other[2]])
        if shown is not None and not shown.stops:
            return Answer(
                Outcome.HOLDS,
                "counts searched, values as symbols",
                happened=bool(shown.seen & 1) or _comes_true(model, happened, limit),
                every_number=True,
                cost={"states": shown.states},
            )
    has_sat = "sat" in limit.engines and sat_is_there()
    try:
        if limit.engines == ("symbols",):
            return Answer(Outcome.UNDECIDED, "values as symbols", reason="it could not be shown with values as symbols")
        if "search" not in limit.engines:
            return _by_sat(model, bad, wrapped, Exhausted("", 0, 0), limit, has_sat)
        system = compiled(model, [bad, happened, wrapped])
        found = invariant(system, bad=1, budget=limit.budget(0.5 if has_sat else 1.0))
    except TooManyChoices as too_many:
        found = Exhausted(str(too_many), 0, 0)
    if isinstance(found, Exhausted):
        return _by_sat(model, bad, wrapped, found, limit, has_sat)
    if isinstance(found, Reached):
        return Answer(
            Outcome.FAILS,
            "all states searched, nearest first",
            path=[system.choices[number] for number in found.path],
            cost={"states": found.states},
        )
    return _complete(system, found)


def _comes_true(model: Model, term: Term, limit: Limit) -> bool:
    """Is there a step in which it is true? Symbols do not tell if that depends on values."""
    try:
        return isinstance(invariant(compiled(model, [term]), bad=1, budget=limit.budget()), Reached)
    except TooManyChoices:
        return False


def _complete(system: System, found: Complete) -> Answer:
    stop = _stop(system, found.stopped)
    return Answer(
        Outcome.HOLDS if stop is None else Outcome.UNDECIDED,
        "all states searched",
        happened=bool(found.seen & 2),
        wraps=bool(found.seen & 4),
        stop=stop,
        cost={"states": found.states, "depth": found.depth},
    )


def _stop(system: System, path: list[int] | None) -> tuple[Stop, Sequence[Chosen]] | None:
    if path is None:
        return None
    state: Any = system.first
    for number in path[:-1]:
        state = next(after for choice, after, _, _ in system.steps(state) if choice == number)
    which = next(stop for choice, _, _, stop in system.steps(state) if choice == path[-1])
    return system.stops[which - 1], [system.choices[number] for number in path]


def sat_is_there() -> bool:
    """Is the SAT solver installed?"""
    return find_spec("pysat") is not None


def _by_sat(model: Model, bad: Term, wrapped: Term, found: Exhausted, limit: Limit, has_sat: bool) -> Answer:
    reached = (
        f"{found.spent} were used up after all runs of {found.depth} pushes ({found.states:,} states), none of which "
        "breaks it"
        if found.states
        else found.spent
    )
    cost = {"states": found.states, "depth": found.depth}
    if not has_sat:
        hint = "" if "sat" not in limit.engines else '; pip install "streamtight[sat]" adds an engine for large models'
        return Answer(Outcome.UNDECIDED, "search", reason=reached + hint, happened=True, cost=cost)
    from streamtight.solver.sat import Safe, Unsafe, search

    try:
        answer = search(model, bad, seconds=limit.left())
    except UnsupportedError as error:
        return Answer(Outcome.UNDECIDED, "search", reason=f"{reached}; {error.came}", cost=cost)
    if isinstance(answer, Unsafe):
        method = "a SAT solver, step by step" if answer.is_shortest else "a SAT solver; there may be a shorter run"
        return Answer(Outcome.FAILS, method, path=list(answer.choices), cost=cost)
    if isinstance(answer, Safe):
        stopping = [stop for stop in model.stops if stop.when is not model.terms.false]
        if stopping:
            stops = search(
                without_stops(model), model.terms.or_(*(stop.when for stop in stopping)), seconds=limit.left()
            )
            if not isinstance(stops, Safe):
                path = list(stops.choices) if isinstance(stops, Unsafe) else []
                return Answer(Outcome.UNDECIDED, "a SAT solver", stop=(stopping[0], path), cost=cost)
        wraps = wrapped is not model.terms.false  # whether it happens was not asked
        return Answer(
            Outcome.HOLDS,
            "a SAT solver: an invariant that no step leaves",
            wraps=wraps,
            cost=cost,
        )
    found_nothing = f"a SAT solver found nothing wrong in {answer.steps} pushes ({answer.reason})"
    return Answer(
        Outcome.UNDECIDED,
        "search and a SAT solver",
        reason=f"{reached}; {found_nothing}" if reached else found_nothing,
        cost=cost,
    )


def without_stops(model: Model) -> Model:
    """The same model, where runs go on; for questions about the first stop only."""
    return replace(model, stops=())


# -- claims about runs -----------------------------------------------------------------------------------------------


def _graph(model: Model, watched: Sequence[Term], limit: Limit) -> tuple[System, Graph] | Answer:
    try:
        system = compiled(model, watched)
    except TooManyChoices as too_many:
        return Answer(Outcome.UNDECIDED, "search", reason=str(too_many))
    found = graph(system, budget=limit.budget())
    if isinstance(found, Exhausted):
        return Answer(
            Outcome.UNDECIDED,
            "search",
            reason=f"{found.spent} were used up after all runs of {found.depth} pushes ({found.states:,} states), "
            "and there are more",
            cost={"states": found.states},
        )
    return system, found


def _seen(found: Graph, bit: int) -> bool:
    return any(bits & bit for bits, _ in found.nodes)


def decide_live(model: Model, good: Term, wrapped: Term, limit: Limit) -> Answer:
    """Can a step in which `good` is true always still come?"""
    made = _graph(model, [good, wrapped], limit)
    if isinstance(made, Answer):
        return made
    system, found = made
    giving = [state for state, leads in enumerate(found.from_state) if any(found.nodes[node][0] & 1 for node in leads)]
    alive = backward(found, giving)
    perhaps = backward(found, [*giving, *(state for state, stops in enumerate(found.stops) if stops)])
    cost = {"states": len(found.from_state), "depth": max(found.layer)}
    method = "all states searched, then backwards from where an event comes"
    if len(perhaps) < len(found.from_state):
        dead = [state for state in range(len(found.from_state)) if state not in perhaps]
        nearest = min(dead, key=lambda state: found.layer[state])
        path: list[int] = []
        if nearest:
            way = shortest(found, 0, lambda _, node: found.nodes[node][1] not in perhaps)
            path = way[0] if way is not None else []
        return Answer(Outcome.FAILS, method, path=[system.choices[number] for number in path], cost=cost)
    wraps = _seen(found, 2)
    if len(alive) == len(found.from_state) and not any(found.stops):
        return Answer(Outcome.HOLDS, method, wraps=wraps, cost=cost)
    return Answer(Outcome.UNDECIDED, method, stop=_first_stop(system, found), wraps=wraps, cost=cost)


def _first_stop(system: System, found: Graph) -> tuple[Stop, Sequence[Chosen]] | None:
    first = next((state for state, stops in enumerate(found.stops) if stops), None)
    if first is None:
        return None
    if first == 0:
        path: list[int] = []
    else:
        way = shortest(found, 0, lambda _, node: found.stops[found.nodes[node][1]])
        path = way[0] if way is not None else []
    state: Any = system.first
    for number in path:
        state = next(after for choice, after, _, _ in system.steps(state) if choice == number)
    choice, _, _, which = next(step for step in system.steps(state) if step[3])
    return system.stops[which - 1], [system.choices[number] for number in (*path, choice)]


def decide_formula(model: Model, formula: Formula, wrapped: Term, limit: Limit) -> Answer:
    """Does every run without end keep a temporal formula?"""
    denial = automaton(formula, denied=True)
    atoms = [step_test(model, atom) for atom in denial.atoms]
    triggers = [step_test(model, part.left) for part in implications(formula) if not part.left.has_future]
    watched = [*atoms, *triggers, wrapped]
    if is_safe(formula):
        return _decide_safe(model, denial, watched, limit)
    made = _graph(model, watched, limit)
    if isinstance(made, Answer):
        return made
    system, found = made
    cost = {"states": len(found.from_state), "depth": max(found.layer)}
    method = "all states searched, together with what the formula asks for"
    result = breaking(found, denial, limit.budget())
    if isinstance(result, Exhausted):
        return Answer(Outcome.UNDECIDED, method, reason=f"{result.spent} were used up", cost=cost)
    if isinstance(result, Broken):
        path, loop = ([system.choices[number] for number in part] for part in (result.path, result.loop))
        return Answer(Outcome.FAILS, method, path=path, loop=loop, cost=cost)
    happened = all(_seen(found, 1 << place) for place in range(len(atoms), len(atoms) + len(triggers)))
    wraps = _seen(found, 1 << (len(atoms) + len(triggers)))
    if result.stopping is None:
        return Answer(Outcome.HOLDS, method, happened=happened, wraps=wraps, cost=cost)
    return Answer(Outcome.UNDECIDED, method, stop=_first_stop(system, found), wraps=wraps, cost=cost)


def _decide_safe(model: Model, denial: Automaton, watched: Sequence[Term], limit: Limit) -> Answer:
    """The same for a formula that is broken, if at all, after finitely many steps: the search can end there."""
    try:
        system = compiled(model, watched)
    except TooManyChoices as too_many:
        return Answer(Outcome.UNDECIDED, "search", reason=str(too_many))
    method = "all states searched, together with what the formula asks for, nearest first"
    found = invariant(Together(system, denial), bad=1, budget=limit.budget())
    cost = {"states": found.states}
    if isinstance(found, Reached):
        path = [system.choices[number] for number in found.path]
        return Answer(Outcome.FAILS, method, path=path, cost=cost)
    if isinstance(found, Exhausted):
        reason = (
            f"{found.spent} were used up after all runs of {found.depth} pushes ({found.states:,} states), "
            "none of which breaks it"
        )
        return Answer(Outcome.UNDECIDED, method, reason=reason, cost=cost)
    happened = all(
        isinstance(invariant(system, bad=1 << place, budget=limit.budget()), Reached)
        for place in range(len(denial.atoms), len(watched) - 1)
    )
    wraps = watched[-1] is not model.terms.false and isinstance(
        invariant(system, bad=1 << (len(watched) - 1), budget=limit.budget()), Reached
    )
    return Answer(
        Outcome.HOLDS if found.stopped is None else Outcome.UNDECIDED,
        method,
        happened=happened,
        wraps=wraps,
        stop=_stop(system, found.stopped),
        cost=cost,
    )


def implications(formula: Formula) -> list[Implies]:
    """The implications in a formula: if what they say "if" of never comes, they are kept by doing nothing."""
    mine = [formula] if isinstance(formula, Implies) else []
    return [*mine, *(each for part in formula.parts for each in implications(part))]


def decide_branching(model: Model, formula: Branching, wrapped: Term, limit: Limit) -> Answer:
    """Does the tree of all runs keep a CTL formula?"""
    tests = list(dict.fromkeys(tests_in(formula)))
    terms = [step_test(model, each.test) for each in tests]
    made = _graph(model, [*terms, wrapped], limit)
    if isinstance(made, Answer):
        return made
    system, found = made
    labels = Labels(found, {test: place for place, test in enumerate(tests)})
    truth = labels.truth(formula)
    first = frozenset(found.from_state[0])
    cost = {"states": len(found.from_state), "depth": max(found.layer)}
    method = "all states searched, each operator from the inside out"
    wraps = _seen(found, 1 << len(terms))
    witness = labels.witness(formula)
    if witness is not None:
        chosen = [system.choices[number] for number in labels.choices(witness.nodes)]
        end = len(chosen) - witness.loop
        return Answer(
            Outcome.FAILS,
            method,
            path=chosen[:end],
            loop=chosen[end:],
            part=witness.part,
            cost=cost,
        )
    happened = all(labels.truth(part.parts[0]).may for part in _joins(formula) if part.sign == "->")
    if first <= truth.must and not found.stops[0]:
        return Answer(Outcome.HOLDS, method, happened=happened, wraps=wraps, cost=cost)
    return Answer(Outcome.UNDECIDED, method, stop=_first_stop(system, found), wraps=wraps, cost=cost)


def _joins(formula: Branching) -> list[Joined]:
    match formula:
        case Denied():
            return _joins(formula.body)
        case Joined() | Path():
            mine = [formula] if isinstance(formula, Joined) else []
            return [*mine, *(each for part in formula.parts for each in _joins(part))]
    return []
