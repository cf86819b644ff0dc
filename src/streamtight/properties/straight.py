"""From a machine to straight-line code: what is calculated for an item, without a look at which states have values.

Which states have values depends on the tags alone. So the machine is run once for all words, without values: the
different ways in which its registers can be filled are *control states*, and for each of them and each tag it is known
beforehand which rules apply. What is left are assignments. On the way, states that only copy others become these,
states that no answer needs are dropped, and so are registers that are never read or always have the same value.

There may be exponentially many control states (Theorem 5.9), so their number is limited. Machines that have more become
code that calculates statuses as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from streamtight.errors import QueryError
from streamtight.properties.term import (
    EQUAL,
    Apply,
    Constant,
    Current,
    Slot,
    Term,
    Value,
    apply,
    choose,
    evaluate,
    is_code,
    larger,
    replaced,
    walk,
)
from streamtight.properties.transducer import (
    CONFLICT,
    UNDEFINED,
    Evaluation,
    Nothing,
    Rule,
    Source,
    Status,
    Transducer,
    When,
    in_order,
    status_of,
)

MOST_CONTROL_STATES = 64


@dataclass(frozen=True, slots=True, eq=False)
class Temporary(Term):
    """A value that was calculated before in the same step."""

    number: int

    def __str__(self) -> str:
        return f"t{self.number}"


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """What happens at an item: values are calculated one after the other, then registers get theirs, all at once."""

    values: tuple[Term, ...]
    """Over `Slot(r)`, the registers as they were, `cur`, and the temporaries before."""
    updates: tuple[tuple[int, Term], ...]
    answer: Term | Nothing
    then: int
    """The next control state."""
    status: Term | None = None
    """The status of the answer, where it has to be calculated, too."""

    @property
    def terms(self) -> list[Term]:
        """All that it calculates."""
        answer = [each for each in (self.answer, self.status) if isinstance(each, Term)]
        return [*self.values, *(term for _, term in self.updates), *answer]

    @property
    def operations(self) -> int:
        """How many operations it does."""
        return sum(isinstance(each, Apply) for term in self.terms for each in walk(term))


@dataclass(frozen=True, slots=True, eq=False)
class Straight:
    """A machine as control states and steps."""

    tags: tuple[str, ...]
    registers: int
    controls: int
    start: tuple[Value, ...]
    """The registers at the start; None where nobody reads it. The control state is 0."""
    first: Value
    """The answer before the first item."""
    steps: Mapping[tuple[int, str], Step]

    @property
    def operations(self) -> int:
        """How many operations an item costs at most."""
        return max((step.operations for step in self.steps.values()), default=0)


def tidied(machine: Transducer) -> Transducer:
    """The same machine without states that only copy others, and without those that no answer needs."""
    return _without_useless(_without_copies(machine))


def _without_copies(machine: Transducer) -> Transducer:
    targets: dict[int, list[Rule]] = {}
    for rule in machine.rules:
        targets.setdefault(rule.target, []).append(rule)
    alias: dict[int, int] = {}
    for state, rules in targets.items():
        only = rules[0]
        is_copy = len(rules) == 1 and only.on is When.ALWAYS and len(only.sources) == 1 and isinstance(only.term, Slot)
        if is_copy and state not in machine.inputs:
            alias[state] = only.sources[0].state

    def real(state: int) -> int:
        seen = set()
        while state in alias and state not in seen:  # copies may go round in a circle
            seen.add(state)
            state = alias[state]
        return state

    rules = [
        replace(rule, sources=tuple(Source(real(state), is_new) for state, is_new in rule.sources))
        for rule in machine.rules
        if rule.target not in alias or real(rule.target) == rule.target
    ]
    return replace(machine, rules=tuple(rules), outputs=tuple(map(real, machine.outputs)))


def _without_useless(machine: Transducer) -> Transducer:
    needs: dict[int, set[int]] = {}
    for rule in machine.rules:
        needs.setdefault(rule.target, set()).update(source.state for source in rule.sources)
    useful: set[int] = set()
    todo = list(machine.outputs)
    while todo:
        state = todo.pop()
        if state not in useful:
            useful.add(state)
            todo += needs.get(state, ())
    kept = [state for state in range(len(machine.states)) if state in useful or state in machine.inputs]
    place = {state: number for number, state in enumerate(kept)}
    rules = [
        replace(
            rule,
            target=place[rule.target],
            sources=tuple(Source(place[state], is_new) for state, is_new in rule.sources),
        )
        for rule in machine.rules
        if rule.target in useful
    ]
    return Transducer(
        machine.tags,
        tuple(machine.states[state] for state in kept),
        tuple(rules),
        tuple(place[state] for state in machine.inputs),
        tuple(place[state] for state in machine.outputs),
    )


# -- statuses --------------------------------------------------------------------------------------------------------


class Statuses:
    """Which states have values: a machine without cycles, run without values."""

    def __init__(self, machine: Transducer) -> None:
        self.registers = sorted({s.state for rule in machine.rules for s in rule.sources if not s.is_new})
        self._count = len(machine.states)
        self._inputs = machine.inputs
        self._plan: dict[str | None, list[tuple[int, list[Rule]]]] = {}
        for tag in (None, *machine.tags):
            order = in_order(machine, tag)
            if order is None:
                raise QueryError("machine", needed="no cycle", came="a cycle", hint="unrolled(machine)")
            rules: dict[int, list[Rule]] = {}
            for rule in machine.rules_for(tag):
                rules.setdefault(rule.target, []).append(rule)
            self._plan[tag] = [(state, rules.get(state, [])) for state in order]

    def step(
        self, tag: str | None, before: Mapping[int, Status], given: Sequence[Status] = ()
    ) -> tuple[list[Status], list[tuple[int, Rule]]]:
        """The statuses of all states after an item, or at the start (None), and for each state with one value its rule.

        before   the statuses of the registers
        given    the statuses that the inputs are given in this step
        """
        after = [Status.NONE] * self._count
        put = dict(zip(self._inputs, given, strict=False))
        fired: list[tuple[int, Rule]] = []
        for state, rules in self._plan[tag]:
            total = int(put.get(state, Status.NONE))
            by: Rule | None = None
            for rule in rules:
                found = 1
                for source, is_new in rule.sources:
                    status = after[source] if is_new else before[source]
                    if not status:
                        found = 0
                        break
                    found = max(found, status)
                if found:
                    total, by = total + found, rule
            after[state] = Status(min(total, 2))
            if total == 1 and by is not None:
                fired.append((state, by))
        return after, fired


# -- straight-line code ----------------------------------------------------------------------------------------------


def straight(machine: Transducer, start: Sequence[Value] = (), *, most: int = MOST_CONTROL_STATES) -> Straight:
    """The machine, started with these values, as straight-line code.

    The machine must have one output and no cycle. If it has more control states than `most`, statuses are calculated.
    """
    machine = tidied(machine)
    if len(machine.outputs) != 1:
        raise QueryError("straight", needed="one output", came=str(len(machine.outputs)), hint="one machine for each")
    explored = _explored(machine, tuple(map(status_of, start)), most)
    return _flat(machine, start) if explored is None else _Coder(machine, start, *explored).made()


Key = tuple[Status, ...]
_Way = tuple[list[Status], list[tuple[int, Rule]], int]
"""The statuses after an item, which rules gave values, and the next control state."""


def _explored(
    machine: Transducer, given: Sequence[Status], most: int
) -> tuple[list[int], tuple[list[Status], list[tuple[int, Rule]]], dict[tuple[int, str], _Way]] | None:
    statuses = Statuses(machine)
    registers = statuses.registers
    begin = statuses.step(None, {}, given)
    numbers: dict[Key, int] = {tuple(begin[0][r] for r in registers): 0}
    ways: dict[tuple[int, str], _Way] = {}
    todo = list(numbers)
    for key in todo:  # grows while it is gone through
        for tag in machine.tags:
            after, fired = statuses.step(tag, dict(zip(registers, key, strict=True)))
            reached = tuple(after[r] for r in registers)
            if reached not in numbers:
                if len(numbers) >= most:
                    return None
                numbers[reached] = len(numbers)
                todo.append(reached)
            ways[numbers[key], tag] = (after, fired, numbers[reached])
    return registers, begin, ways


class _Unknown:
    """A register whose value differs from time to time."""


_VARIES = _Unknown()


class _Coder:
    """Makes code of explored control states: constants first, then only what is needed."""

    def __init__(
        self,
        machine: Transducer,
        start: Sequence[Value],
        registers: list[int],
        begin: tuple[list[Status], list[tuple[int, Rule]]],
        ways: dict[tuple[int, str], _Way],
    ) -> None:
        self._machine, self._registers, self._ways = machine, registers, ways
        self._output = machine.outputs[0]
        self._controls = 1 + max((control for control, _ in ways), default=0)
        self._start = self._values_at_start(start, *begin)
        self._first_status = begin[0][self._output]
        self._constants = self._find_constants()
        self._needed = self._find_needed()

    def _values_at_start(
        self, start: Sequence[Value], statuses: list[Status], fired: list[tuple[int, Rule]]
    ) -> dict[int, Value]:
        values: dict[int, Value] = {}
        for state, value in zip(self._machine.inputs, start, strict=True):
            if statuses[state] is Status.ONE:
                values[state] = value
        for state, rule in fired:
            values[state] = evaluate(rule.term, [values[source] for source, _ in rule.sources])
        return values

    # -- constants: what a register always has in a control state ------------------------------------------------

    def _find_constants(self) -> list[dict[int, Any]]:
        """For each control state and register with a value: the constant that it always has, or that it varies."""
        found: list[dict[int, Any]] = [{} for _ in range(self._controls)]
        found[0] = {r: Constant(self._start[r]) for r in self._registers if r in self._start}
        is_changed = True
        while is_changed:
            is_changed = False
            for (control, _), (_, fired, then) in self._ways.items():
                values = self._known_in_step(found[control], fired)
                for register in self._registers:
                    if register in values:
                        is_changed |= _merged(found[then], register, values[register])
        return found

    def _known_in_step(self, known: Mapping[int, Any], fired: Iterable[tuple[int, Rule]]) -> dict[int, Any]:
        values: dict[int, Any] = {}
        for state, rule in fired:
            sources = [(values if is_new else known).get(source, _VARIES) for source, is_new in rule.sources]
            values[state] = _folded(rule.term, sources)
        return values

    # -- what is needed ------------------------------------------------------------------------------------------

    def _find_needed(self) -> list[set[int]]:
        """For each control state, the registers whose values something to come needs."""
        needed: list[set[int]] = [set() for _ in range(self._controls)]
        is_changed = True
        while is_changed:
            is_changed = False
            for (control, tag), (_, _, then) in self._ways.items():
                reads = self._reads(control, tag, needed[then])
                if not reads <= needed[control]:
                    needed[control] |= reads
                    is_changed = True
        return needed

    def _reads(self, control: int, tag: str, later: set[int]) -> set[int]:
        """The registers that a step reads for its answer and for those that are needed later."""
        expressions = self._expressions(control, tag)
        after = self._ways[control, tag][0]
        wanted = [state for state in later if state in expressions]
        if after[self._output] is Status.ONE:
            wanted.append(self._output)
        reads: set[int] = set()
        todo, seen = wanted, set(wanted)
        while todo:
            for each in walk(expressions[todo.pop()]):
                if isinstance(each, Slot):
                    reads.add(each.place)
                elif isinstance(each, Temporary) and each.number not in seen:
                    seen.add(each.number)
                    todo.append(each.number)
        return reads

    def _expressions(self, control: int, tag: str) -> dict[int, Term]:
        """The value of each state after a step: over registers (slots, by state) and other states (temporaries)."""
        known = self._constants[control]
        _, fired, _ = self._ways[control, tag]
        values: dict[int, Any] = {}
        found: dict[int, Term] = {}
        for state, rule in fired:
            sources = [(values if is_new else known).get(source, _VARIES) for source, is_new in rule.sources]
            values[state] = _folded(rule.term, sources)
            if isinstance(values[state], Constant):
                found[state] = values[state]
                continue
            parts = [
                value if isinstance(value, Constant) else (_plain(found[source], source) if is_new else Slot(source))
                for value, (source, is_new) in zip(sources, rule.sources, strict=True)
            ]
            found[state] = replaced(rule.term, lambda each, parts=parts: _part(each, parts))  # type: ignore[misc]
        return found

    # -- code ----------------------------------------------------------------------------------------------------

    def made(self) -> Straight:
        varying = {r for c in range(self._controls) for r in self._needed[c]}
        place = {register: number for number, register in enumerate(sorted(varying))}
        steps = {way: self._step(*way, place) for way in self._ways}
        start = tuple(self._start.get(register) if register in self._needed[0] else None for register in place)
        first: Value = UNDEFINED if self._first_status is Status.NONE else CONFLICT
        if self._first_status is Status.ONE:
            first = self._start[self._output]
        return Straight(self._machine.tags, len(place), self._controls, start, first, steps)

    def _step(self, control: int, tag: str, place: Mapping[int, int]) -> Step:
        after, fired, then = self._ways[control, tag]
        expressions = self._expressions(control, tag)
        later = [r for r in self._registers if r in self._needed[then] and after[r] is Status.ONE]
        answered = after[self._output]
        wanted = {*later, *([self._output] if answered is Status.ONE else ())}
        numbers: dict[int, int] = {}
        values: list[Term] = []

        def renamed(term: Term) -> Term:
            def by(each: Term) -> Term | None:
                if isinstance(each, Slot):
                    return Slot(place[each.place])
                if isinstance(each, Temporary):
                    return Temporary(numbers[each.number])
                return None

            return replaced(term, by)

        needed = self._needed_states(expressions, wanted)
        for state, _ in fired:
            if state in needed and isinstance(expressions[state], Apply):
                values.append(renamed(expressions[state]))
                numbers[state] = len(values) - 1

        def value_of(state: int) -> Term:
            return Temporary(numbers[state]) if state in numbers else renamed(expressions[state])

        updates = [(place[r], value_of(r)) for r in later]
        updates = [(r, term) for r, term in updates if not (isinstance(term, Slot) and term.place == r)]
        answer: Term | Nothing = UNDEFINED if answered is Status.NONE else CONFLICT
        if answered is Status.ONE:
            answer = value_of(self._output)
        return Step(tuple(values), tuple(updates), answer, then)

    @staticmethod
    def _needed_states(expressions: Mapping[int, Term], wanted: Iterable[int]) -> set[int]:
        seen = set(wanted)
        todo = list(seen)
        while todo:
            for each in walk(expressions[todo.pop()]):
                if isinstance(each, Temporary) and each.number not in seen:
                    seen.add(each.number)
                    todo.append(each.number)
        return seen


def _plain(term: Term, state: int) -> Term:
    """The value of a state in the same step: what it is a copy of, or a temporary."""
    return Temporary(state) if isinstance(term, Apply) else term


def _part(each: Term, parts: Sequence[Term]) -> Term | None:
    return parts[each.place] if isinstance(each, Slot) else None


def _folded(term: Term, sources: Sequence[Any]) -> Any:
    """The constant that a term is if its sources are these, or that it varies."""
    if isinstance(term, Constant):
        return term
    if isinstance(term, Slot):
        return sources[term.place]
    used = [each for each in walk(term) if isinstance(each, (Slot, Current))]
    if not is_code(term) or any(isinstance(each, Current) or sources[each.place] is _VARIES for each in used):
        return _VARIES
    try:
        return Constant(evaluate(term, [each.value if isinstance(each, Constant) else None for each in sources]))
    except Exception:  # it raises when it is asked for, not before
        return _VARIES


def _merged(known: dict[int, Any], register: int, value: Any) -> bool:
    """Whether something is new about a register that may also have this value."""
    before = known.get(register)
    if before is None:
        known[register] = value
        return True
    if before is _VARIES or (isinstance(value, Constant) and _same(before.value, value.value)):
        return False
    known[register] = _VARIES
    return True


def _same(one: Value, other: Value) -> bool:
    # Of other kinds, two that look alike need not be; and only floats are equal though they differ: 0.0 and -0.0.
    is_plain = type(one) is type(other) and type(one) in (int, bool, str, float)
    return one is other or (is_plain and (repr(one) == repr(other) if type(one) is float else one == other))


# -- code that calculates statuses, too ------------------------------------------------------------------------------


def _flat(machine: Transducer, start: Sequence[Value]) -> Straight:
    """The machine with one control state; for each state that is kept, a register has its status and one its value."""
    begun = Evaluation(machine, start).values
    kept = sorted({source.state for rule in machine.rules for source in rule.sources if not source.is_new})
    place = {state: 2 * number for number, state in enumerate(kept)}
    first: list[Value] = []
    for state in kept:
        first += [int(status_of(begun[state])), 0 if isinstance(begun[state], Nothing) else begun[state]]
    steps = {(0, tag): _flat_step(machine, tag, place) for tag in machine.tags}
    return Straight(machine.tags, 2 * len(kept), 1, tuple(first), begun[machine.outputs[0]], steps)


def _flat_step(machine: Transducer, tag: str, place: Mapping[int, int]) -> Step:
    order = in_order(machine, tag)
    if order is None:
        raise QueryError("machine", needed="no cycle", came="a cycle", hint="unrolled(machine)")
    rules: dict[int, list[Rule]] = {}
    for rule in machine.rules_for(tag):
        rules.setdefault(rule.target, []).append(rule)
    values: list[Term] = []
    none = Constant(0)
    status: dict[int, Term] = {}
    value: dict[int, Term] = {}

    def noted(term: Term) -> Term:
        if not isinstance(term, Apply):
            return term
        values.append(term)
        return Temporary(len(values) - 1)

    for state in order:
        together: Term = none
        chosen: Term = none
        for rule in rules.get(state, ()):
            sources = [status[s] if is_new else Slot(place[s]) for s, is_new in rule.sources]
            fires = noted(_all_of(sources))
            if isinstance(fires, Constant) and fires.value == 0:
                continue
            parts = [value[s] if is_new else Slot(place[s] + 1) for s, is_new in rule.sources]
            term = replaced(rule.term, lambda each, parts=parts: _part(each, parts))  # type: ignore[misc]
            chosen = choose(apply(EQUAL, fires, 1), term, chosen)
            together = noted(_joined(together, fires))
        status[state], value[state] = together, noted(chosen)
    updates = [
        (number, term) for state, at in place.items() for number, term in ((at, status[state]), (at + 1, value[state]))
    ]
    output = machine.outputs[0]
    return Step(tuple(values), tuple(updates), value[output], 0, status[output])


def _all_of(statuses: Sequence[Term]) -> Term:
    """The status of an operation on arguments of these statuses."""
    found: Term = Constant(1)
    for each in statuses:
        if isinstance(each, Constant):
            if each.value == 0:
                return each
            continue
        only = isinstance(found, Constant)
        found = each if only else choose((found == 0) | (each == 0), 0, larger(found, each))
    return found


def _joined(one: Term, other: Term) -> Term:
    """The status of two together."""
    if isinstance(one, Constant) and one.value == 0:
        return other
    found: Term = choose(one == 0, other, choose(other == 0, one, 2))
    return found
