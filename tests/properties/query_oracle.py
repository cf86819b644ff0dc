"""What queries and machines mean, read off their definitions: all splits, all cuts, all prefixes. Slow and obvious."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from streamtight.properties.query import (
    Agree,
    Atom,
    Boolean,
    Combine,
    Comparison,
    Eps,
    Fill,
    FillWith,
    Historically,
    Iter,
    Once,
    Or,
    PrefixSum,
    Previously,
    Query,
    Since,
    Split,
)
from streamtight.properties.term import Apply, Constant, Current, Slot, Term
from streamtight.properties.transducer import CONFLICT, UNDEFINED, Transducer

Item = tuple[str, Any]
Word = tuple[Item, ...]


def calculated(term: Term, slots: Sequence[Any] = (), current: Any = None) -> Any:
    match term:
        case Constant(value):
            return value
        case Slot(place):
            return slots[place]
        case Current(None):
            return current
        case Current(name):
            return getattr(current, name)
        case Apply(operation, arguments):
            return operation.function(*(calculated(each, slots, current) for each in arguments))
    raise TypeError(term)


def join(values: Iterable[Any]) -> Any:
    """Nothing, the only value, or a conflict."""
    found = [each for each in values if each is not UNDEFINED]
    return UNDEFINED if not found else found[0] if len(found) == 1 else CONFLICT


def lifted(op: Callable[..., Any], *values: Any) -> Any:
    """Undefined beats a conflict, which beats values."""
    if any(each is UNDEFINED for each in values):
        return UNDEFINED
    if any(each is CONFLICT for each in values):
        return CONFLICT
    return op(*values)


def cuts(word: Word) -> Iterator[list[Word]]:
    """All ways to cut a word into pieces that are not empty."""
    if not word:
        yield []
    for end in range(1, len(word) + 1):
        for rest in cuts(word[end:]):
            yield [word[:end], *rest]


def fold(op: Callable[..., Any], start: Any, values: Iterable[Any]) -> Any:
    for each in values:
        start = lifted(op, start, each)
    return start


def prefixes(word: Word) -> list[Word]:
    return [word[:end] for end in range(len(word) + 1)]


def of_term(term: Term) -> Callable[..., Any]:
    return lambda *values: calculated(term, values)


def meaning(query: Query, word: Sequence[Item]) -> Any:
    """The value of a query on a word."""
    return _Meaning()(query, tuple(word))


def answers(query: Query, word: Sequence[Item]) -> list[Any]:
    """The values of a query on all prefixes of a word."""
    of = _Meaning()
    return [of(query, each) for each in prefixes(tuple(word))]


class _Meaning:
    """Each query on each piece of a word is asked once; pieces are told apart by what they are made of."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    def __call__(self, query: Query, word: Word) -> Any:
        key = (id(query), tuple(map(id, word)))
        if key not in self._known:
            self._known[key] = (self._value(query, word), query, word)  # kept, as ids are only theirs while they live
        return self._known[key][0]

    def _value(self, query: Query, word: Word) -> Any:
        of = self
        match query:
            case Atom(tag, term, but):
                fits = len(word) == 1 and tag in (None, word[0][0]) and word[0][0] not in but
                return calculated(term, (), word[0][1]) if fits else UNDEFINED
            case Eps(term):
                return UNDEFINED if word else calculated(term)
            case Or(one, other):
                return join([of(one, word), of(other, word)])
            case Split(one, other, op):
                return join(
                    lifted(of_term(op), of(one, word[:end]), of(other, word[end:])) for end in range(len(word) + 1)
                )
            case Iter(one, start, op):
                folds = [fold(of_term(op), calculated(start), [of(one, each) for each in cut]) for cut in cuts(word)]
                if of(one, ()) is UNDEFINED:
                    return join(folds)
                return UNDEFINED if join(folds) is UNDEFINED else CONFLICT
            case Combine(those, op):
                return lifted(of_term(op), *(of(each, word) for each in those))
            case PrefixSum(one, start, op):
                return fold(of_term(op), calculated(start), [of(one, each) for each in prefixes(word)])
            case Fill(one):
                values = [of(one, each) for each in prefixes(word)]
                defined = [each for each in values if each is not UNDEFINED and each is not CONFLICT]
                return defined[-1] if defined else UNDEFINED
            case FillWith(one, other):
                value = of(one, word)
                return of(other, word) if value is UNDEFINED or value is CONFLICT else value
            case Comparison(operation, one, other):
                return lifted(operation.function, of(one, word), of(other, word))
            case Agree(one, other):
                first, second = of(one, word), of(other, word)
                if any(each is UNDEFINED or each is CONFLICT for each in (first, second)):
                    return first is second
                return first == second
            case Boolean(operation, those):
                return lifted(operation.function, *(of(each, word) for each in those))
        return self._temporal(query, word)

    def _temporal(self, query: Query, word: Word) -> bool:
        of = self
        match query:
            case Previously(one):
                return bool(word) and bool(of(one, word[:-1]))
            case Once(one):
                return any(of(one, each) for each in prefixes(word))
            case Historically(one):
                return all(of(one, each) for each in prefixes(word))
            case Since(one, other, is_weak):
                upto = prefixes(word)
                strong = any(
                    of(other, each) and all(of(one, later) for later in upto[number + 1 :])
                    for number, each in enumerate(upto)
                )
                return strong or (is_weak and all(of(one, each) for each in upto))
        raise TypeError(query)


# -- machines --------------------------------------------------------------------------------------------------------


def machine_step(machine: Transducer, before: Sequence[Any], tag: str | None, current: Any, given: Sequence[Any]):
    """The least vector that the equations of a step allow: from nothing, until it no longer changes."""
    put = dict(zip(machine.inputs, given, strict=False))
    after = [UNDEFINED] * len(machine.states)
    while True:
        then = [
            join([put.get(state, UNDEFINED), *(_of_rule(rule, before, after, current) for rule in rules)])
            for state, rules in (
                (state, [rule for rule in machine.rules_for(tag) if rule.target == state])
                for state in range(len(machine.states))
            )
        ]
        if all(a is b or same(a, b) for a, b in zip(after, then, strict=True)):
            return then
        after = then


def _of_rule(rule, before, after, current):
    sources = [(after if is_new else before)[state] for state, is_new in rule.sources]
    return lifted(lambda *values: calculated(rule.term, values, current), *sources)


def machine_answers(machine: Transducer, word: Sequence[Item], start: Sequence[Any], restarts=()) -> list[Any]:
    """The answers of a machine before the first item and after each; `restarts` has what its inputs get at each."""
    values = machine_step(machine, (), None, None, start)
    found = [tuple(values[state] for state in machine.outputs)]
    for (tag, current), given in itertools.zip_longest(word, list(restarts)[: len(word)], fillvalue=()):
        values = machine_step(machine, values, tag, current, given)
        found.append(tuple(values[state] for state in machine.outputs))
    return found


def same(one: Any, other: Any) -> bool:
    """The same answer: the same kind of value, and NaN is NaN."""
    return type(one) is type(other) and repr(one) == repr(other)
