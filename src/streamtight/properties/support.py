"""Machines that tell whether another machine has no answer, one, or a conflict.

A state of the other machine becomes three, of which exactly one has a value (always 1) at a time. What several sources,
or several rules, make together is worked out two at a time, by nine rules of which exactly one applies: a plain
disjunction would join two values into a conflict. So the size is linear, if there is no cycle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from streamtight.properties.term import Constant, Slot
from streamtight.properties.transducer import Rule, Source, Status, Transducer, When, new

_YES = Constant(1)


def support(machine: Transducer) -> Transducer:
    """A machine without inputs; for each answer of this one, started with values, three: none, one, or a conflict.

    Exactly one of the three is 1, the others are undefined.
    """
    if not machine.is_acyclic:
        machine = unrolled(machine)
    return _Support(machine).made()


class _Support:
    """The states and rules of a support, as they are made."""

    def __init__(self, machine: Transducer) -> None:
        self._machine = machine
        self._states: list[str] = []
        self._rules: list[Rule] = []

    def made(self) -> Transducer:
        machine = self._machine
        of_state = [self._three(name) for name in machine.states]
        for state, triple in enumerate(of_state):
            self._state(state, triple, of_state)
        outputs = tuple(each for state in machine.outputs for each in of_state[state])
        return Transducer(machine.tags, tuple(self._states), tuple(self._rules), (), outputs)

    def _three(self, name: str) -> tuple[int, int, int]:
        start = len(self._states)
        self._states += [f"{name} {status.name.lower()}" for status in Status]
        return start, start + 1, start + 2

    def _known(self, on: str | When, triple: tuple[int, int, int], status: Status) -> None:
        self._rules.append(Rule(on, (), triple[status], _YES))

    def _state(self, state: int, triple: tuple[int, int, int], of_state: list[tuple[int, int, int]]) -> None:
        machine = self._machine
        rules = [rule for rule in machine.rules if rule.target == state]
        sofar = self._three(f"{machine.states[state]} so far") if rules else triple
        self._known(When.START, sofar, Status.ONE if state in machine.inputs else Status.NONE)
        self._known(When.ITEM, sofar, Status.NONE)
        for number, rule in enumerate(rules):
            given = self._rule(rule, of_state)
            then = triple if number == len(rules) - 1 else self._three(f"{machine.states[state]} so far")
            self._table(When.ALWAYS, sofar, True, given, True, then, _join)
            sofar = then

    def _rule(self, rule: Rule, of_state: list[tuple[int, int, int]]) -> tuple[int, int, int]:
        """Three states that tell what a rule gives."""
        found = self._three("rule")
        for tag in (None, *self._machine.tags):
            if not rule.applies(tag):
                self._known(When.START if tag is None else tag, found, Status.NONE)
        if not rule.sources:
            self._known(rule.on, found, Status.ONE)
        sofar = of_state[rule.sources[0].state] if rule.sources else found
        is_new = rule.sources[0].is_new if rule.sources else True
        if len(rule.sources) == 1:
            for status in Status:
                self._rules.append(Rule(rule.on, (Source(sofar[status], is_new),), found[status], _YES))
        for number, source in enumerate(rule.sources[1:], start=2):
            then = found if number == len(rule.sources) else self._three("sources")
            self._table(rule.on, sofar, is_new, of_state[source.state], source.is_new, then, all_of)
            sofar, is_new = then, True
        return found

    def _table(
        self,
        on: str | When,
        one: tuple[int, int, int],
        one_is_new: bool,
        other: tuple[int, int, int],
        other_is_new: bool,
        then: tuple[int, int, int],
        result: Callable[[Status, Status], Status],
    ) -> None:
        for a in Status:
            for b in Status:
                sources: tuple[Source, ...] = (Source(one[a], one_is_new), Source(other[b], other_is_new))
                if sources[0] == sources[1]:
                    sources = sources[:1]
                elif one == other and one_is_new == other_is_new:
                    continue  # the same three states: two of them never have values together
                self._rules.append(Rule(on, sources, then[result(a, b)], _YES))


def all_of(one: Status, other: Status) -> Status:
    """What an operation has, if its arguments have this: nothing counts more than a conflict."""
    return Status.NONE if Status.NONE in (one, other) else max(one, other)


def _join(one: Status, other: Status) -> Status:
    """What two have together."""
    return other if one is Status.NONE else one if other is Status.NONE else Status.MANY


def unrolled(machine: Transducer) -> Transducer:
    """The same machine without cycles: its states many times over, each copy after the other.

    A state changes at most twice in a step, so the last of 2n copies has the values that n states have in the end.
    """
    if machine.is_acyclic:
        return machine
    count = len(machine.states)
    copies = 2 * count
    states = tuple(f"{name} {copy}" for copy in range(copies) for name in machine.states)
    inputs = tuple(f"input {place}" for place in range(len(machine.inputs)))
    last = (copies - 1) * count
    rules: list[Rule] = []
    for copy in range(copies):
        start = copy * count
        for place, state in enumerate(machine.inputs):
            rules.append(Rule(When.ALWAYS, (new(len(states) + place),), start + state, Slot(0)))
        for rule in machine.rules:
            if copy == 0 and any(source.is_new for source in rule.sources):
                continue
            sources = tuple(
                Source(state + (start - count if is_new else last), is_new) for state, is_new in rule.sources
            )
            rules.append(replace(rule, sources=sources, target=start + rule.target))
    return Transducer(
        machine.tags,
        states + inputs,
        tuple(rules),
        tuple(range(len(states), len(states) + len(inputs))),
        tuple(last + state for state in machine.outputs),
    )
