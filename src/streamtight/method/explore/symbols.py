"""Proofs for all values at once: counts are searched, values are symbols.

In most pipelines, when events come does not depend on which. Then the counts (how long queues are, how far a window is
filled) have few states; and in each of them it is enough to know which values are equal. Values are polynomials over
symbols, and functions that are not arithmetic are applied to them unread: what is equal so is equal for whole numbers
of any size, with or without wrap-around.

>>> import operator
>>> from streamtight.method.explore.build import World, model_of
>>> from streamtight.program.limits import Limits, modulo
>>> from streamtight.program.pipeline import Pipeline
>>> from streamtight.program.processor import Apply, Cumulate, Fork, Trim, Window
>>> both = Pipeline.wired(
...     "in -> w -> left; in -> f; f.0 -> a.0; f.1 -> t -> a.1; a -> right", gives=("left", "right"),
...     w=Window(Cumulate(operator.add), 2), f=Fork(2), t=Trim(1), a=Apply(operator.add))
>>> model = model_of(both, World(Limits(queue=2, integers=modulo(256))), keeps_wraps=True)
>>> left, right = model.pipes["left"], model.pipes["right"]
>>> proved(model, model.terms.and_(left.present, model.terms.not_(model.terms.equal(left.value, right.value))))
Proved(states=2, seen=0, stops=False)

What is kept for a state of the counts is a partition: which variables hold equal values in all runs that come there. It
only gets coarser, so the search ends. Global value numbering does the same for programs.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamtight.program.model import FUNCTIONS, Bools, Choice, Model, Range, Term, Value, parts_of

MOST_STATES = 20_000
"""States of counts; a pipeline with more is left to other engines."""
MOST_TERMS = 200
"""Summands of a polynomial; with more, comparing values would cost more than searching them."""


@dataclass(frozen=True)
class Proved:
    """The bad thing never happens. `seen` are the bits of the watched terms that were true at some step; `stops` says
    that there are runs that stop.
    """

    states: int
    seen: int
    stops: bool


class _GivesUp(Exception):
    """Counts depend on values, or there are too many of them."""


Polynomial = tuple[tuple[tuple[Hashable, ...], int], ...]
"""Summands, sorted: what is multiplied, and how often."""


@dataclass(frozen=True, slots=True)
class _Symbol:
    """A value that is not known: a polynomial over symbols and unread results.

    is_raw   it may lie beyond the domain, since it was calculated and not yet wrapped. Half of `a + b` is not half of
             the number that stands for `a + b`, so these two are told apart
    """

    sum: Polynomial
    is_raw: bool = False


def proved(model: Model, bad: Term, watched: Sequence[Term] = ()) -> Proved | None:
    """Is `bad` false in every step of every run, whatever the values? None if that cannot be told so.

    A model with wraps kept is wanted; runs end where they stop.
    """
    try:
        return _Search(model, bad, watched).run()
    except _GivesUp:
        return None


class _Search:
    def __init__(self, model: Model, bad: Term, watched: Sequence[Term]) -> None:
        self.model, self.bad, self.watched = model, bad, watched
        stops = [stop.when for stop in model.stops]
        variables, choices = model.cone([bad, *watched, *stops])
        # What events there are is chosen one way or the other; which they are stays open.
        self.counts = [each for each in variables if not each.is_data]
        self.data = [each for each in variables if each.is_data]
        self.chosen = [each for each in choices if each.only_if is None and isinstance(each.domain, Bools)]
        self.open = [each for each in choices if each not in self.chosen]
        roots = [*(each.after for each in variables), bad, *watched, *stops, model.allowed]
        self.stops, self.has_stopped = stops, False
        self.perhaps = 0
        """The bits of watched terms that may have been true."""
        self.ordered = parts_of(roots)

    def run(self) -> Proved:
        first = tuple(each.first for each in self.counts)
        stores: dict[tuple[Value, ...], tuple[Hashable, ...]] = {
            first: tuple(("is", type(each.first), each.first) for each in self.data)
        }
        waiting, seen = [first], 0
        while waiting:
            state = waiting.pop()
            store = stores[state]
            for values in itertools.product((False, True), repeat=len(self.chosen)):
                found = self.step(state, store, values)
                if found is None:
                    continue
                after, stored, bits = found
                seen |= bits
                known = stores.get(after)
                joined = stored if known is None else _joined(known, stored)
                if joined != known:
                    stores[after] = joined
                    if len(stores) > MOST_STATES:
                        raise _GivesUp
                    waiting.append(after)
        if self.perhaps & ~seen:  # whether it was ever true is for others to find out
            raise _GivesUp
        return Proved(len(stores), seen, self.has_stopped)

    def step(
        self, state: tuple[Value, ...], store: tuple[Hashable, ...], values: tuple[bool, ...]
    ) -> tuple[tuple[Value, ...], tuple[Hashable, ...], int] | None:
        held: dict[str, Any] = {each.name: value for each, value in zip(self.counts, state, strict=True)}
        held.update((each.name, value) for each, value in zip(self.chosen, values, strict=True))
        for each, kept in zip(self.data, store, strict=True):
            held[each.name] = kept[2] if isinstance(kept, tuple) and kept[0] == "is" else _symbol(("kept", kept))
        held.update((each.name, self.opened(each)) for each in self.open)
        found: dict[Term, Any] = {}
        for term in self.ordered:
            found[term] = _value(term, [found[each] for each in term.arguments], held)
        if not _known(found[self.model.allowed]):
            return None
        if any(_known(found[stop]) for stop in self.stops):
            self.has_stopped = True
            return None
        if _known(found[self.bad]):
            raise _GivesUp
        after = tuple(_known(found[each.after]) for each in self.counts)
        stored = tuple(_stored(found[each.after]) for each in self.data)
        bits = sum(1 << place for place, term in enumerate(self.watched) if found[term] is True)
        self.perhaps |= sum(1 << place for place, term in enumerate(self.watched) if isinstance(found[term], _Symbol))
        return after, _numbered(stored), bits

    def opened(self, choice: Choice) -> Any:
        if len(choice.domain.values) == 1:
            return choice.domain.values[0]
        return _symbol(("chosen", choice.name))


def _known(value: Any) -> Any:
    if isinstance(value, _Symbol):
        raise _GivesUp
    return value


def _stored(value: Any) -> Hashable:
    return (value.is_raw, value.sum) if isinstance(value, _Symbol) else ("is", type(value), value)


def _numbered(store: Sequence[Hashable]) -> tuple[Hashable, ...]:
    """The same partition, with classes called by numbers: which symbols they were made of does not matter later."""
    names: dict[Hashable, int] = {}
    return tuple(
        each if isinstance(each, tuple) and each and each[0] == "is" else names.setdefault(each, len(names))
        for each in store
    )


def _joined(one: Sequence[Hashable], other: Sequence[Hashable]) -> tuple[Hashable, ...]:
    """What is equal in both."""
    names: dict[Hashable, int] = {}
    joined: list[Hashable] = []
    for left, right in zip(one, other, strict=True):
        is_same = left == right and isinstance(left, tuple)
        joined.append(left if is_same else names.setdefault((left, right), len(names)))
    return tuple(joined)


def _symbol(atom: Hashable, *, is_raw: bool = False) -> _Symbol:
    return _Symbol(((((is_raw, atom),), 1),), is_raw)


def _value(term: Term, arguments: list[Any], held: Mapping[str, Any]) -> Any:
    if term.op == "constant":
        return term.value
    if term.op == "variable":
        return held[term.value]
    if not any(isinstance(each, _Symbol) for each in arguments):
        return _plain(term, arguments)
    match term.op:
        case "add" | "subtract":
            sign = 1 if term.op == "add" else -1
            return _collected([*_sum(arguments[0]), *((part, sign * count) for part, count in _sum(arguments[1]))])
        case "multiply":
            return _collected(
                [
                    (tuple(sorted((*left, *right), key=repr)), one * other)
                    for left, one in _sum(arguments[0])
                    for right, other in _sum(arguments[1])
                ]
            )
        case "wrap":
            # Equal polynomials are equal modulo anything, so wrapping keeps what is known.
            return _Symbol(arguments[0].sum)
        case "equal" if _stored(arguments[0]) == _stored(arguments[1]):
            return True
        case "choose":
            condition, one, other = arguments
            if not isinstance(condition, _Symbol):
                return one if condition else other
            if _stored(one) == _stored(other):
                return one
        case "and" if any(each is False for each in arguments):
            return False
        case "or" if any(each is True for each in arguments):
            return True
        case "and" | "or":
            arguments = [each for each in arguments if isinstance(each, _Symbol)]
            if len(arguments) == 1:
                return arguments[0]
        case "call" if arguments[0] is False:
            return term.value.default
    name = id(term.value) if term.op == "call" else term.op
    is_raw = term.op in ("divide", "modulo", "choose") and isinstance(term.domain, Range)
    return _symbol((name, *map(_stored, arguments)), is_raw=is_raw)


def _plain(term: Term, arguments: list[Any]) -> Any:
    if term.op == "choose":
        return arguments[1] if arguments[0] else arguments[2]
    if term.op == "call":
        return term.value(*arguments[1:]) if arguments[0] else term.value.default
    if term.op == "wrap":
        # In the numbers that wrap and in those that do not, a constant beyond the domain is another one.
        return arguments[0] if arguments[0] in term.value else _symbol(("wrap", arguments[0]))
    return FUNCTIONS[term.op](*arguments)


def _sum(value: Any) -> Polynomial:
    if isinstance(value, _Symbol):
        return value.sum
    return (((), value),) if value else ()


def _collected(parts: Sequence[tuple[tuple[Hashable, ...], int]]) -> Any:
    total: dict[tuple[Hashable, ...], int] = {}
    for part, count in parts:
        total[part] = total.get(part, 0) + count
    kept = {part: count for part, count in total.items() if count}
    if len(kept) > MOST_TERMS:
        raise _GivesUp
    if not kept or list(kept) == [()]:
        return kept.get((), 0)
    # A sum of one symbol is that symbol, and lies in the domain if that does.
    (part, count), *others = kept.items()
    is_plain = not others and count == 1 and len(part) == 1 and not part[0][0]  # type: ignore[index]
    return _Symbol(tuple(sorted(kept.items(), key=repr)), is_raw=not is_plain)
