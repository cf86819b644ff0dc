"""explore for the user's own stateful code: the code itself is run, from every state that it can reach.

>>> from streamtight.program.machine import Machine
>>> from streamtight.properties.temporal import always, forall, next_
>>> def forgetful(last, event):
...     return event, [] if event == last else [event]
>>> once = always(forall(lambda at: at.output, lambda row: next_(always(lambda later: row not in later.output))))
>>> verdict = explore_machine(Machine("dedup", ("a", "b"), lambda: None, forgetful), once, Limit())
>>> print(verdict.counterexample.table)
step  input  output  state afterwards
1     'a'    'a'     'a'
2     'b'    'b'     'b'
3     'a'    'a'     'a'
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from streamtight.errors import EncodingError, FormulaError, StreamtightError
from streamtight.method.explore.ctl import Labels
from streamtight.method.explore.decide import Limit, implications
from streamtight.method.explore.lasso import Broken, breaking
from streamtight.method.explore.relevance import tests_in
from streamtight.method.explore.search import Exhausted, Graph, Reached, backward, graph, invariant, shortest
from streamtight.program.letter import INPUT, OUTPUT, Letter
from streamtight.program.machine import Held, Machine, look
from streamtight.properties.automaton import automaton, is_safe
from streamtight.properties.branching import Branching, Comparison, formula_of_text
from streamtight.properties.claims import Claim, Live, NeverStops
from streamtight.properties.temporal import (
    FALSE,
    TRUE,
    And,
    Constant,
    Contains,
    Formula,
    Implies,
    Named,
    Not,
    Now,
    Or,
    Past,
    Quantified,
    Timed,
    always,
    eventually,
    now,
)
from streamtight.stream.schedule import Schedule
from streamtight.verdict import Counterexample, Outcome, Scope, Table, Verdict

MOST_SHOWN = 60
"""Letters of a state that are told."""


def explore_machine(machine: Machine, claim: Any, limit: Limit) -> Verdict:
    """Does the claim hold of this program, whatever comes in?"""
    return _Asked(machine, _meant(claim), limit).verdict()


def _meant(claim: Any) -> Claim | Formula | Branching:
    if isinstance(claim, str):
        return formula_of_text(claim)
    if isinstance(claim, Live) and claim.within is not None:
        return always(eventually(OUTPUT, within=claim.within))
    if isinstance(claim, (Live, NeverStops, Formula, Branching)):
        return claim
    raise FormulaError(
        "explore(program, claim)",
        needed="a formula, live() or never_stops()",
        came=repr(claim),
        hint="tight.always(lambda at: len(at.output) < 2)",
    )


class _System:
    """A machine that can be searched. Bits tell which tests a step passes."""

    def __init__(self, machine: Machine, tests: Sequence[Any]) -> None:
        self.machine, self.tests = machine, tests
        self.first: Any = machine.first()

    def taken(self, held: Held) -> Iterator[tuple[int, Held, Letter | None]]:
        """Each input, the state after it, and the letter; no letter if the user's code raised."""
        for number, given in enumerate(self.machine.inputs):
            try:
                after, outputs = self.machine.stepped(held, given)
            except StreamtightError:  # ours: the code cannot be explored
                raise
            except Exception:  # the border of user code: the run stops there; what was raised is told by `run`
                yield number, held, None
                continue
            yield number, after, letter_of(given, outputs)

    def steps(self, held: Held) -> list[tuple[int, Any, int, int]]:
        return [
            (number, after, 0 if letter is None else self.bits(letter), int(letter is None))
            for number, after, letter in self.taken(held)
        ]

    def bits(self, letter: Letter) -> int:
        return sum(1 << place for place, test in enumerate(self.tests) if test(letter))


class _Progressing(_System):
    """A machine together with what a formula still asks for; a bit says that it is broken."""

    def __init__(self, machine: Machine, formula: Formula) -> None:
        super().__init__(machine, ())
        self.first = (self.first, _Rest(formula))

    def steps(self, held: Any) -> list[tuple[int, Any, int, int]]:
        state, rest = held
        found = []
        for number, after, letter in self.taken(state):
            if letter is None:
                found.append((number, held, 0, 1))
                continue
            left = rest.formula.step(letter)
            _require_safe(left)
            if left is not TRUE:  # what is kept for good need not be followed
                found.append((number, (after, _Rest(left)), int(left is FALSE), 0))
        return found


class _Rest:
    """A formula that is compared by what it says: tests that a function made are equal if they know the same."""

    __slots__ = ("formula", "key")

    def __init__(self, formula: Formula) -> None:
        self.formula = formula
        self.key = _key(formula)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Rest) and self.key == other.key


def _key(formula: Formula) -> Hashable:
    """What a formula says: the parts of a conjunction have no order."""
    if isinstance(formula, (And, Or)):
        return type(formula), frozenset(map(_key, formula.parts))
    if isinstance(formula, Timed):
        return type(formula), formula.within, formula.deadline, *map(_key, formula.parts)
    return look(formula)


def letter_of(given: Any, outputs: Sequence[Any]) -> Letter:
    """What a formula sees of one input."""
    return Letter({INPUT: (given,)}, {OUTPUT: tuple(outputs)})


class _GivesFormula(Exception):
    """A test gave a formula: then only rewriting letter by letter can judge it."""


def _test(atom: Now) -> Any:
    if isinstance(atom.test, Comparison):
        raise FormulaError(
            repr(atom),
            needed="a function of a step, since there may be several outputs",
            came="a comparison with a pipe",
            hint="now(lambda at: 'boom' in at.output)",
        )
    if isinstance(atom.test, Contains):
        name = atom.test.name
        if name not in (INPUT, OUTPUT):
            raise FormulaError(
                repr(atom), needed="'input' or 'output'", came=repr(name), hint="now(lambda at: len(at.output) > 1)"
            )
        return lambda letter: bool(letter[name])

    def asked(letter: Letter) -> bool:
        given = atom.test(letter)
        if isinstance(given, Formula):
            raise _GivesFormula
        return bool(given)

    return asked


class _Asked:
    def __init__(self, machine: Machine, claim: Claim | Formula | Branching, limit: Limit) -> None:
        self.machine, self.claim, self.limit = machine, claim, limit
        self.started = time.perf_counter()
        self.method = "all states searched, by running the code itself"

    def verdict(self) -> Verdict:
        claim = self.claim
        if isinstance(claim, NeverStops):
            return self.never_stops()
        if isinstance(claim, Formula) and (_is_progressing(claim) or is_safe(claim)):
            return self.progressing(_named_tests(claim))
        if isinstance(claim, Formula):
            try:
                return self.temporal(claim)
            except _GivesFormula:
                return self.progressing(_named_tests(claim))
        if isinstance(claim, Branching):
            return self.branching(claim)
        return self.live()

    def never_stops(self) -> Verdict:
        system = _System(self.machine, ())
        found = invariant(system, bad=0, budget=self.limit.budget())
        if found.stopped is not None:  # type: ignore[union-attr]
            raised = self.run(found.stopped)[-1][2]  # type: ignore[union-attr]
            return self.fails(found.stopped, [], "STOPS", f"the code raises {raised}", found)  # type: ignore[union-attr]
        return self.exhausted(found) if isinstance(found, Exhausted) else self.holds(found.states)

    def progressing(self, formula: Formula) -> Verdict:
        _require_safe(formula)
        system = _Progressing(self.machine, formula)
        found = invariant(system, bad=1, budget=self.limit.budget())
        if isinstance(found, Reached):
            return self.fails(found.path, [], "PROPERTY_BROKEN", "", found)
        if isinstance(found, Exhausted):
            return self.exhausted(found)
        if found.stopped is not None:
            return self.stops(found.stopped, found.states)
        return self.holds(found.states, self.never_triggered(formula))

    def never_triggered(self, formula: Formula) -> str | None:
        """Why the answer says nothing, if the program never does anything that the formula is about."""
        triggers = [(repr(part.left), _test(part.left)) for part in implications(formula) if isinstance(part.left, Now)]
        if any(isinstance(part, Quantified) for part in _all_parts(formula)):
            triggers.append(("an output", lambda letter: bool(letter[OUTPUT])))
        for name, test in triggers:
            found = invariant(_System(self.machine, [test]), bad=1, budget=self.limit.budget())
            if not isinstance(found, Reached):
                return f"there is never {name}"
        return None

    def graph(self, tests: Sequence[Any]) -> tuple[_System, Graph] | Verdict:
        system = _System(self.machine, tests)
        found = graph(system, budget=self.limit.budget())
        return self.exhausted(found) if isinstance(found, Exhausted) else (system, found)

    def temporal(self, formula: Formula) -> Verdict:
        denial = automaton(formula, denied=True)
        triggers = [part.left for part in implications(formula) if isinstance(part.left, Now)]
        made = self.graph([_test(atom) for atom in (*denial.atoms, *triggers)])
        if isinstance(made, Verdict):
            return made
        _, found = made
        result = breaking(found, denial, self.limit.budget())
        if isinstance(result, Exhausted):
            return self.exhausted(result)
        if isinstance(result, Broken):
            return self.fails(result.path, result.loop, "PROPERTY_BROKEN", "", None)
        if result.stopping is not None:
            return self.stops_of(found)
        idle = [
            repr(trigger)
            for place, trigger in enumerate(triggers, len(denial.atoms))
            if not any(bits >> place & 1 for bits, _ in found.nodes)
        ]
        return self.holds(len(found.from_state), f"there is never {idle[0]}" if idle else None)

    def branching(self, formula: Branching) -> Verdict:
        tests = list(dict.fromkeys(tests_in(formula)))
        made = self.graph([_state_test(each.test) for each in tests])
        if isinstance(made, Verdict):
            return made
        _, found = made
        labels = Labels(found, {test: place for place, test in enumerate(tests)})
        witness = labels.witness(formula)
        if witness is not None:
            chosen = labels.choices(witness.nodes)
            end = len(chosen) - witness.loop
            return self.fails(chosen[:end], chosen[end:], "PROPERTY_BROKEN", f"{witness.part!r} is false there", None)
        if frozenset(found.from_state[0]) <= labels.truth(formula).must and not found.stops[0]:
            return self.holds(len(found.from_state))
        return self.stops_of(found)

    def live(self) -> Verdict:
        made = self.graph([lambda letter: bool(letter[OUTPUT])])
        if isinstance(made, Verdict):
            return made
        _, found = made
        giving = [s for s, leads in enumerate(found.from_state) if any(found.nodes[node][0] & 1 for node in leads)]
        perhaps = backward(found, [*giving, *(state for state, stops in enumerate(found.stops) if stops)])
        if len(perhaps) < len(found.from_state):
            way = shortest(found, 0, lambda _, node: found.nodes[node][1] not in perhaps) if 0 in perhaps else None
            path = [] if way is None else way[0]
            return self.fails(path, [], "SILENT", "nothing comes out any more, whatever comes in", None)
        return self.stops_of(found) if any(found.stops) else self.holds(len(found.from_state))

    # -- what is told ------------------------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        return f"{self.machine.name}: {self.claim!r}"

    def scope(self) -> Scope:
        count = len(self.machine.inputs)
        return Scope.every_stream("of this input" if count == 1 else f"of these {count} inputs")

    def cost(self, states: int) -> dict[str, float]:
        return {"states": states, "seconds": time.perf_counter() - self.started}

    def holds(self, states: int, vacuous: str | None = None) -> Verdict:
        if vacuous is not None:
            reason = f"it holds, but only since {vacuous} (vacuous)"
            return Verdict(self.text, Outcome.UNDECIDED, self.scope(), None, reason, self.cost(states), self.method)
        return Verdict(self.text, Outcome.HOLDS, self.scope(), cost=self.cost(states), method=self.method)

    def exhausted(self, found: Exhausted) -> Verdict:
        reason = (
            f"{found.spent} were used up after all runs of {found.depth} inputs ({found.states:,} states); is there a "
            "state that grows for ever?"
        )
        return Verdict(self.text, Outcome.UNDECIDED, self.scope(), None, reason, self.cost(found.states), self.method)

    def stops_of(self, found: Graph) -> Verdict:
        system = _System(self.machine, ())
        path = invariant(system, bad=0, budget=self.limit.budget()).stopped  # type: ignore[union-attr]
        return self.stops(path or [], len(found.from_state))

    def stops(self, path: Sequence[int], states: int) -> Verdict:
        inputs = ", ".join(self.machine.shown(self.machine.inputs[number]) for number in path)
        raised = self.run(path)[-1][2]
        reason = f"the code raises {raised} after {inputs}, and what would come then is not known"
        return Verdict(self.text, Outcome.UNDECIDED, self.scope(), None, reason, self.cost(states), self.method)

    def run(self, path: Sequence[int]) -> list[tuple[Any, tuple[Any, ...], Any]]:
        """The run again: inputs, outputs, states; what was raised stands for the last state."""
        held = self.machine.first()
        rows: list[tuple[Any, tuple[Any, ...], Any]] = []
        for number in path:
            given = self.machine.inputs[number]
            try:
                held, outputs = self.machine.stepped(held, given)
            except Exception as error:  # the border of user code
                rows.append((given, (), f"{type(error).__name__}: {error}"))
                return rows
            rows.append((given, outputs, held))
        return rows

    def fails(self, path: Sequence[int], loop: Sequence[int], finding: str, explanation: str, found: object) -> Verdict:
        rows = self.run([*path, *loop])
        self.confirm(rows, path, loop)
        states = getattr(found, "states", 0)
        shown = [
            (
                str(number) + (" (again and again)" if number > len(path) else ""),
                self.machine.shown(given),
                "\n".join(map(repr, outputs)) or "-",
                *self.state_told(state),
            )
            for number, (given, outputs, state) in enumerate(rows, 1)
        ]
        if not explanation:
            explanation = (
                f"the last {len(loop)} inputs can come for ever, and so it is never kept"
                if loop
                else f"it is broken after {len(path)} input{'' if len(path) == 1 else 's'}"
            )
        events = [self.machine.event_of(number) for number in (*path, *loop)]
        schedule = None
        if events and None not in events:
            schedule = Schedule(tuple(((event,),) for event in events if event is not None))
        counterexample = Counterexample(
            finding,
            explanation,
            schedule=schedule,
            table=Table(("step", "input", "output", "state afterwards")[: len(shown[0]) if shown else 3], tuple(shown)),
            reruns=1,
            failing_reruns=1,
        )
        return Verdict(
            self.text, Outcome.FAILS, self.scope(), counterexample, cost=self.cost(states), method=self.method
        )

    def state_told(self, state: Any) -> list[str]:
        if isinstance(state, Held):
            return [] if self.machine.told is None else [_short(self.machine.told(state.value))]
        return [_short(str(state))]

    def confirm(self, rows: Sequence[Any], path: Sequence[int], loop: Sequence[int]) -> None:
        """Run once more, and judged in another way: by the formula itself, letter by letter."""
        again = self.run([*path, *loop])
        same = [look((given, outputs)) for given, outputs, _ in rows] == [
            look((given, outputs)) for given, outputs, _ in again
        ]
        broken = True
        if isinstance(self.claim, Formula) and not loop:
            broken = _evaluated(self.claim, rows) is False
        elif isinstance(self.claim, Formula):
            broken = _evaluated(self.claim, rows) is not True
        elif isinstance(self.claim, NeverStops):
            broken = not isinstance(again[-1][2], Held)
        if not same:
            raise EncodingError(
                self.text,
                needed="the same outputs when the code runs again on the same inputs",
                came="others: it looks at something beside its state and input, such as a clock or chance",
                hint="give the code what it looks at as input",
            )
        if not broken:
            raise EncodingError(
                self.text,
                needed="a run that breaks the claim",
                came=f"one that does not: {[given for given, _, _ in rows]}",
                hint="please report this; it is a bug in streamtight",
            )


def _evaluated(formula: Formula, rows: Sequence[Any]) -> bool | None:
    named = _named_tests(formula)
    return named.evaluate([letter_of(given, outputs) for given, outputs, _ in rows])


def _named_tests(formula: Formula) -> Formula:
    """The formula with `input` and `output` as tests of letters."""
    if isinstance(formula, Now) and isinstance(formula.test, (Contains, Comparison)):
        return now(_test(formula), name=formula.name)
    return formula._rebuilt([_named_tests(part) for part in formula.parts]) if formula.parts else formula


def _state_test(formula: Formula) -> Any:
    match formula:
        case Constant():
            return lambda letter: formula.value
        case Named():
            return _state_test(formula.body)
        case Not():
            body = _state_test(formula.body)
            return lambda letter: not body(letter)
        case And() | Or():
            parts = [_state_test(part) for part in formula.parts]
            joined = all if isinstance(formula, And) else any
            return lambda letter: joined(part(letter) for part in parts)
        case Implies():
            left, right = _state_test(formula.left), _state_test(formula.right)
            return lambda letter: not left(letter) or right(letter)
        case Now():
            return _test(formula)
    raise FormulaError(repr(formula), needed="a test of one step", came=type(formula).__name__, hint="a function")


def _all_parts(formula: Formula) -> Iterator[Formula]:
    yield formula
    for part in formula.parts:
        yield from _all_parts(part)


def _is_progressing(formula: Formula) -> bool:
    """Whether it has parts that only letter by letter rewriting can judge."""
    return any(isinstance(part, (Quantified, Past)) for part in _all_parts(formula))


def _require_safe(formula: Formula) -> None:
    """Refuse what rewriting cannot judge: a promise without an end is never seen to be broken."""
    if not is_safe(formula):
        raise FormulaError(
            repr(formula),
            needed="timeouts on `eventually` and `until` beside forall, exists or past operators",
            came="one without",
            hint="within=..., or the same formula once for each value, joined by &",
        )


def _short(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 3]}..."
