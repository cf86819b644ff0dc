"""Data transducers: finite machines whose states hold values, and how larger ones are made of smaller ones.

A state holds nothing (`UNDEFINED`), a value, or more than one value (`CONFLICT`). A rule gives its target the value of
a term, if all its sources have one; what several rules give is joined, and two values joined are a conflict, even if
they are equal. So which states have values depends on the tags of the items alone, not on their values (Theorem 5.2).

>>> rules = (Rule("a", (old(0),), 1, Slot(0) + cur), Rule("b", (old(1),), 1, Slot(0)))
>>> run(Transducer(("a", "b"), ("i", "f"), rules, (0,), (1,)), [("a", 5), ("b", 0)], [10])
[(UNDEFINED,), (15,), (15,)]

Stanford, "Reliable Programming for Stream Processing Systems" (2021), section 5. The evaluation of its Figure 25 is
repaired here in three places (see `Evaluation`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from streamtight.errors import QueryError
from streamtight.properties.term import Slot, Term, Value, cur, evaluate, size_of, walk


class Nothing(Enum):
    """What a state, or a query, has instead of a value."""

    UNDEFINED = "undefined"
    CONFLICT = "conflict"

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__

    def __bool__(self) -> bool:
        return False


UNDEFINED: Final = Nothing.UNDEFINED
"""There is no value."""
CONFLICT: Final = Nothing.CONFLICT
"""There is more than one value."""


class Status(int, Enum):
    """Whether there is no value, one, or more."""

    NONE = 0
    ONE = 1
    MANY = 2


def status_of(value: Value) -> Status:
    """Whether this is no value, one, or more."""
    return Status.NONE if value is UNDEFINED else Status.MANY if value is CONFLICT else Status.ONE


def joined(one: Value, other: Value) -> Value:
    """Both together: two values are a conflict, also if they are equal."""
    return other if one is UNDEFINED else one if other is UNDEFINED else CONFLICT


class When(Enum):
    """When a rule that is not of one tag applies."""

    START = "start"
    """Before the first item."""
    ITEM = "item"
    """At every item, whatever its tag."""
    ALWAYS = "always"
    """At the start and at every item."""


class Source(NamedTuple):
    """A state whose value a rule reads: what it was before this step, or what it is in this step."""

    state: int
    is_new: bool


def old(state: int) -> Source:
    """The value of a state before this step."""
    return Source(state, False)


def new(state: int) -> Source:
    """The value of a state in this step."""
    return Source(state, True)


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """If all sources have values, the target gets that of the term, whose slots are the sources in their order."""

    on: str | When
    sources: tuple[Source, ...]
    target: int
    term: Term

    def applies(self, tag: str | None) -> bool:
        """Whether it is a rule for items with this tag, or for the start (None)."""
        if tag is None:
            return self.on in (When.START, When.ALWAYS)
        return self.on in (tag, When.ITEM, When.ALWAYS)


@dataclass(frozen=True, slots=True, eq=False)
class Transducer:
    """A machine: names of its states, rules, which states get values at the start, and which ones are its answer."""

    tags: tuple[str, ...]
    states: tuple[str, ...]
    rules: tuple[Rule, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    def __post_init__(self) -> None:
        for rule in self.rules:
            self._require(rule)
        for state in (*self.inputs, *self.outputs):
            if not 0 <= state < len(self.states):
                raise _wrong("Transducer", f"a state from 0 to {len(self.states) - 1}", str(state))
        if len(set(self.inputs)) < len(self.inputs):
            raise _wrong("Transducer", "different states as inputs", str(self.inputs))

    def _repr_html_(self) -> str:
        from streamtight.properties.transducer_picture import picture

        return picture(self)

    def _require(self, rule: Rule) -> None:
        places = {each.place for each in walk(rule.term) if isinstance(each, Slot)}
        if isinstance(rule.on, str) and rule.on not in self.tags:
            raise _wrong("Rule", f"one of the tags {', '.join(self.tags)}", repr(rule.on))
        if not all(0 <= each.state < len(self.states) for each in (*rule.sources, new(rule.target))):
            raise _wrong("Rule", f"states from 0 to {len(self.states) - 1}", str(rule))
        if places and max(places) >= len(rule.sources):
            raise _wrong("Rule", "a term over its sources", f"{rule.term} with {len(rule.sources)} sources")
        if rule.on in (When.START, When.ALWAYS):
            if not all(source.is_new for source in rule.sources):
                raise _wrong("Rule", "new sources only, as there is nothing before the start", str(rule))
            if any(type(each) is type(cur) for each in walk(rule.term)):
                raise _wrong("Rule", "a term without cur, as there is no item at the start", str(rule.term))

    @property
    def size(self) -> int:
        """The number of states, and the lengths of all rules."""
        return len(self.states) + sum(2 + len(rule.sources) + size_of(rule.term) for rule in self.rules)

    @property
    def registers(self) -> int:
        """How many states must be kept from one item to the next: those that a rule reads as they were before."""
        return len({source.state for rule in self.rules for source in rule.sources if not source.is_new})

    @property
    def is_acyclic(self) -> bool:
        """Whether no value in a step can depend on itself in the same step: then one pass in order evaluates it."""
        return all(in_order(self, tag) is not None for tag in (None, *self.tags))

    def rules_for(self, tag: str | None) -> list[Rule]:
        """The rules for items with this tag, or for the start (None)."""
        return [rule for rule in self.rules if rule.applies(tag)]


def _wrong(where: str, needed: str, came: str) -> QueryError:
    return QueryError(where, needed=needed, came=came, hint="the constructions of this module make right ones")


def in_order(machine: Transducer, tag: str | None) -> list[int] | None:
    """The states, each after those that it needs in the same step; None if there is a cycle."""
    needs: dict[int, set[int]] = {state: set() for state in range(len(machine.states))}
    for rule in machine.rules_for(tag):
        needs[rule.target] |= {source.state for source in rule.sources if source.is_new}
    order: list[int] = []
    ready = [state for state, those in needs.items() if not those]
    needed_by: dict[int, list[int]] = {}
    for state, those in needs.items():
        for other in those:
            needed_by.setdefault(other, []).append(state)
    while ready:
        state = ready.pop()
        order.append(state)
        for other in needed_by.get(state, ()):
            needs[other].discard(state)
            if not needs[other]:
                ready.append(other)
    return order if len(order) == len(needs) else None


# -- evaluation ------------------------------------------------------------------------------------------------------


class Evaluation:
    """A machine at work, as in Figure 25: slow and obvious, also for machines with cycles.

    The figure is repaired: a state whose value changes wakes the rules that read it, not those that write it; only new
    sources are waited for; and only a change is passed on. Each state changes at most twice in a step.
    """

    def __init__(self, machine: Transducer, start: Sequence[Value] = ()) -> None:
        """start   the values of the inputs"""
        if len(start) != len(machine.inputs):
            raise _wrong("Evaluation", f"{len(machine.inputs)} values to start with", str(len(start)))
        self._machine = machine
        self._rules = {tag: machine.rules_for(tag) for tag in (None, *machine.tags)}
        self.values: list[Value] = [UNDEFINED] * len(machine.states)
        self._step(None, None, start)

    @property
    def outputs(self) -> tuple[Value, ...]:
        """The answer now."""
        return tuple(self.values[state] for state in self._machine.outputs)

    def step(self, tag: str, value: Value, restart: Sequence[Value] = ()) -> tuple[Value, ...]:
        """Read an item; gives the answer after it.

        restart   values to put on the inputs in this step, as if another copy began after this item
        """
        if tag not in self._rules:
            raise QueryError(
                f"item ({tag!r}, {value!r})", needed=f"one of the tags {', '.join(self._machine.tags)}",
                came=repr(tag), hint="tags=(...) with all tags that come",
            )  # fmt: skip
        self._step(tag, value, restart)
        return self.outputs

    def _step(self, tag: str | None, current: Value, given: Sequence[Value]) -> None:
        before, after = self.values, [UNDEFINED] * len(self.values)
        rules = self._rules[tag]
        waiting = [sum(source.is_new for source in rule.sources) for rule in rules]
        is_dead = [any(not s.is_new and before[s.state] is UNDEFINED for s in rule.sources) for rule in rules]
        is_hot = [any(not s.is_new and before[s.state] is CONFLICT for s in rule.sources) for rule in rules]
        gave: list[Value] = [UNDEFINED] * len(rules)
        readers: dict[int, list[int]] = {}
        for number, rule in enumerate(rules):
            for source in rule.sources:
                if source.is_new and not is_dead[number]:
                    readers.setdefault(source.state, []).append(number)
        todo = [number for number, rule in enumerate(rules) if not waiting[number] and not is_dead[number]]

        def give(state: int, value: Value) -> None:
            if value is UNDEFINED or after[state] is CONFLICT:
                return
            is_first = after[state] is UNDEFINED
            after[state] = joined(after[state], value)
            for number in readers.get(state, ()):
                waiting[number] -= is_first
                is_hot[number] |= after[state] is CONFLICT
                if not waiting[number]:
                    todo.append(number)

        for state, value in zip(self._machine.inputs, given, strict=False):
            give(state, value)
        while todo:
            number = todo.pop()
            rule = rules[number]
            if gave[number] is CONFLICT or (gave[number] is not UNDEFINED and not is_hot[number]):
                continue
            if is_hot[number]:
                value = CONFLICT
            else:
                value = evaluate(rule.term, [(after if new else before)[s] for s, new in rule.sources], current)
            gave[number] = value
            give(rule.target, value)
        self.values = after


def run(machine: Transducer, word: Iterable[tuple[str, Value]], start: Sequence[Value] = ()) -> list[tuple[Value, ...]]:
    """The answers of a machine: before the first item, and after each."""
    at_work = Evaluation(machine, start)
    return [at_work.outputs, *(at_work.step(tag, value) for tag, value in word)]


# -- constructions ---------------------------------------------------------------------------------------------------


def side_by_side(machines: Sequence[Transducer], more: Sequence[str]) -> tuple[list[str], list[Rule], list[int]]:
    """The states and rules of all machines and some more states; the third is where the states of each begin."""
    tags = machines[0].tags
    if any(machine.tags != tags for machine in machines):
        raise _wrong("machines", f"the same tags: {', '.join(tags)}", str([machine.tags for machine in machines]))
    starts = list(itertools.accumulate((len(machine.states) for machine in machines), initial=0))
    states = [*itertools.chain.from_iterable(machine.states for machine in machines), *more]
    rules = [
        Rule(
            rule.on,
            tuple([Source(state + start, is_new) for state, is_new in rule.sources]),
            rule.target + start,
            rule.term,
        )
        for machine, start in zip(machines, starts, strict=False)
        for rule in machine.rules
    ]
    return states, rules, starts


def _put_together(
    tags: tuple[str, ...],
    states: tuple[str, ...],
    rules: tuple[Rule, ...],
    inputs: tuple[int, ...],
    outputs: tuple[int, ...],
) -> Transducer:
    """A machine made of right ones, which need not be checked again: that would take most of the time."""
    machine = object.__new__(Transducer)
    parts = {"tags": tags, "states": states, "rules": rules, "inputs": inputs, "outputs": outputs}
    for name, value in parts.items():
        object.__setattr__(machine, name, value)
    return machine


def copy_rule(source: int, target: int) -> Rule:
    """A rule that gives one state the value of another, in the same step and at the start."""
    return Rule(When.ALWAYS, (new(source),), target, Slot(0))


def _shifted(states: Iterable[int], start: int) -> list[int]:
    return [state + start for state in states]


def parallel(*machines: Transducer) -> Transducer:
    """All machines on the same start values and items; the answer is all their answers."""
    count = len(machines[0].inputs)
    _require_equal("parallel", "inputs", [len(machine.inputs) for machine in machines])
    states, rules, starts = side_by_side(machines, [f"i{place}" for place in range(count)])
    inputs = range(starts[-1], starts[-1] + count)
    for machine, start in zip(machines, starts, strict=False):
        rules += itertools.starmap(copy_rule, zip(inputs, _shifted(machine.inputs, start), strict=True))
    outputs = [
        each for machine, start in zip(machines, starts, strict=False) for each in _shifted(machine.outputs, start)
    ]
    return _put_together(machines[0].tags, tuple(states), tuple(rules), tuple(inputs), tuple(outputs))


def union(one: Transducer, other: Transducer) -> Transducer:
    """Both machines; the answer is that of the one that has one, and a conflict if both have."""
    _require_equal("union", "inputs", [len(one.inputs), len(other.inputs)])
    _require_equal("union", "outputs", [len(one.outputs), len(other.outputs)])
    more = [*(f"i{place}" for place in range(len(one.inputs))), *(f"o{place}" for place in range(len(one.outputs)))]
    states, rules, starts = side_by_side([one, other], more)
    inputs = range(starts[-1], starts[-1] + len(one.inputs))
    outputs = range(inputs.stop, inputs.stop + len(one.outputs))
    for machine, start in zip((one, other), starts, strict=False):
        rules += itertools.starmap(copy_rule, zip(inputs, _shifted(machine.inputs, start), strict=True))
        rules += itertools.starmap(copy_rule, zip(_shifted(machine.outputs, start), outputs, strict=True))
    return _put_together(one.tags, tuple(states), tuple(rules), tuple(inputs), tuple(outputs))


def concatenate(one: Transducer, other: Transducer) -> Transducer:
    """The other goes on from each answer of the first; what it answers for all splits of the word is joined.

    That is its meaning if the first gives all answers or none at a time, and the other is restartable, or has no rules
    but those of a data function.
    """
    _require_equal("concatenate", "answers of the first as inputs of the other", [len(one.outputs), len(other.inputs)])
    states, rules, starts = side_by_side([one, other], [])
    rules += itertools.starmap(copy_rule, zip(one.outputs, _shifted(other.inputs, starts[1]), strict=True))
    outputs = _shifted(other.outputs, starts[1])
    return _put_together(one.tags, tuple(states), tuple(rules), one.inputs, tuple(outputs))


def iterate(machine: Transducer) -> Transducer:
    """The machine again and again, on the pieces of the word; what it answers for all ways to cut the word is joined.

    That is its meaning if the machine gives all answers or none at a time, and is restartable.
    """
    _require_equal("iterate", "inputs as answers", [len(machine.inputs), len(machine.outputs)])
    states, rules, starts = side_by_side([machine], [f"l{place}" for place in range(len(machine.inputs))])
    loop = range(starts[-1], starts[-1] + len(machine.inputs))
    rules += itertools.starmap(copy_rule, zip(loop, machine.inputs, strict=True))
    rules += itertools.starmap(copy_rule, zip(machine.outputs, loop, strict=True))
    return _put_together(machine.tags, tuple(states), tuple(rules), tuple(loop), tuple(loop))


def data_function(tags: tuple[str, ...], count: int, *terms: Term | Sequence[Term]) -> Transducer:
    """A machine that calculates its answers from so many inputs, at once: one answer for each term, or for several.

    All inputs are sources of every rule, also of a constant: else it would answer without being started.
    """
    sources = tuple(new(place) for place in range(count))
    states = [*(f"x{place}" for place in range(count)), *(f"y{place}" for place in range(len(terms)))]
    rules = [
        Rule(When.ALWAYS, sources, count + place, term)
        for place, some in enumerate(terms)
        for term in ([some] if isinstance(some, Term) else some)
    ]
    return Transducer(tags, tuple(states), tuple(rules), tuple(range(count)), tuple(range(count, count + len(terms))))


def prefix_sum(machine: Transducer, function: Transducer) -> Transducer:
    """The answers of a machine on all prefixes, folded by a data function of the sum so far and a new answer.

    The inputs are those of the machine, then the sum before the first answer.
    """
    folded = len(function.outputs)
    if len(function.inputs) != folded + len(machine.outputs):
        raise _wrong("prefix_sum", f"a function of {folded + len(machine.outputs)} values", f"{len(function.inputs)}")
    states, rules, (_, start, end) = side_by_side([machine, function], [f"f{place}" for place in range(folded)])
    sums, answers = function.inputs[:folded], function.inputs[folded:]
    rules += itertools.starmap(copy_rule, zip(machine.outputs, _shifted(answers, start), strict=True))
    rules += itertools.starmap(copy_rule, zip(range(end, end + folded), _shifted(sums, start), strict=True))
    for output, summand in zip(function.outputs, sums, strict=True):
        rules.append(Rule(When.ITEM, (old(output + start),), summand + start, Slot(0)))
    inputs = (*machine.inputs, *range(end, end + folded))
    return _put_together(machine.tags, tuple(states), tuple(rules), inputs, tuple(_shifted(function.outputs, start)))


def _require_equal(where: str, what: str, counts: Sequence[int]) -> None:
    if len(set(counts)) > 1:
        raise _wrong(where, f"as many {what}", " and ".join(map(str, counts)))
