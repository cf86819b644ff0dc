"""Random queries, machines and words: few tags and small sizes, so that everything meets everything.

All are made from a `random.Random`, so a seed says all about them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import Any

from streamtight.errors import QueryError
from streamtight.properties.query import (
    Atom,
    Combine,
    Eps,
    Iter,
    Or,
    PrefixSum,
    Query,
    Split,
    agree,
    any_,
    atom,
    combine,
    constant,
    eps,
    fill,
    fill_with,
    first,
    historically,
    iff,
    implies,
    iter_,
    once,
    or_,
    prefix_sum,
    previously,
    second,
    since,
    split,
    weak_since,
)
from streamtight.properties.query_types import require_well_typed
from streamtight.properties.term import Constant, Slot, choose, cur, larger, smaller
from streamtight.properties.transducer import Rule, Source, Transducer, When

TAGS = ("a", "b")


class Seeded(Random):
    """A source of chance that tells its seed."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._seed = seed

    def __repr__(self) -> str:
        return f"Seeded({self._seed})"


def _called(x: Any, y: Any) -> Any:
    """Stays a function: it asks what it was given."""
    return x if isinstance(x, bool) else y - x if y else x


def _of_item(item: Any) -> Any:
    return 1 if item == 0 and bool(item == 0) else item


OPERATIONS = [
    first,
    second,
    max,
    min,
    _called,
    lambda x, y: x + y,
    lambda x, y: x - y,
    lambda x, y: 2 * x + y,
    lambda x, y: (x - y) // -3,
    lambda x, y: (x + y) % -7,
    choose(Slot(0) < Slot(1), Slot(1) - Slot(0), Slot(0)),
    larger(Slot(0), smaller(Slot(1) + 1, Slot(0) + Slot(1))),
    lambda x, y: abs(x) - y,
    lambda x, y: -y,
    lambda x, y: x + 0 * y,
]
ITEMS = [cur, cur, cur + 1, 2 * cur, -cur, cur // -2, cur % -3, smaller(cur, 2), 5, -1, 0, 2.5, -0.0, True, _of_item]
CONSTANTS: list[Any] = [0, 0, 1, -3, 2.5, -0.0, 10**20, True, math.inf, -math.inf, math.nan]


def base_query(rng: Random, size: int, tags: Sequence[str] = TAGS) -> Query:
    """A base query; it may be ill-typed."""
    if size <= 1:
        kind = rng.random()
        if kind < 0.2:
            return eps(rng.choice(CONSTANTS))
        if kind < 0.27:
            return any_(rng.choice(ITEMS), but=rng.sample(tags, rng.randint(1, len(tags))))
        if kind < 0.35:
            return any_(rng.choice(ITEMS))
        return atom(rng.choice(tags), rng.choice(ITEMS))
    kind = rng.random()
    if kind < 0.3:
        return or_(*_two(rng, size, tags))
    if kind < 0.6:
        return split(*_two(rng, size, tags), rng.choice(OPERATIONS))
    if kind < 0.82:
        return iter_(base_query(rng, size - 1, tags), rng.choice(CONSTANTS), rng.choice(OPERATIONS))
    if kind < 0.93:
        one = base_query(rng, size // 2, tags)
        other = alike(rng, one) if rng.random() < 0.9 else base_query(rng, size // 2, tags)
        if rng.random() < 0.2:
            return combine(one, other, alike(rng, one), lambda x, y, z: x + y - z)
        return combine(one, other, rng.choice(OPERATIONS))
    one = total_query(rng, size - 1, tags) if rng.random() < 0.9 else base_query(rng, size - 1, tags)
    return prefix_sum(one, rng.choice(CONSTANTS), rng.choice(OPERATIONS))


def _two(rng: Random, size: int, tags: Sequence[str]) -> tuple[Query, Query]:
    left = rng.randint(1, size - 1)
    return base_query(rng, left, tags), base_query(rng, size - left, tags)


def alike(rng: Random, query: Query) -> Query:
    """Another query that has values on the same words; it may be a conflict on others."""
    match query:
        case Atom(tag, _, but):
            return Atom(tag, atom("a", rng.choice(ITEMS)).terms[0], but)
        case Eps():
            return eps(rng.choice(CONSTANTS))
        case Or(one, other):
            those = [alike(rng, one), alike(rng, other)]
            rng.shuffle(those)
            return or_(*those)
        case Split(Split(one, other, _), third, _) if rng.random() < 0.5:
            right = split(alike(rng, other), alike(rng, third), rng.choice(OPERATIONS))
            return split(alike(rng, one), right, rng.choice(OPERATIONS))
        case Split(one, other, _):
            return split(alike(rng, one), alike(rng, other), rng.choice(OPERATIONS))
        case Iter(one, _, _):
            again = iter_(alike(rng, one), rng.choice(CONSTANTS), rng.choice(OPERATIONS))
            if rng.random() < 0.3:
                return or_(eps(rng.choice(CONSTANTS)), split(again, alike(rng, one), rng.choice(OPERATIONS)))
            return again
        case Combine(those, _):
            return alike(rng, rng.choice(those))
        case PrefixSum():
            return constant(rng.choice(CONSTANTS)) if rng.random() < 0.5 else query
    raise TypeError(query)


def total_query(rng: Random, size: int, tags: Sequence[str] = TAGS) -> Query:
    """A base query that always has a value."""
    kind = rng.random() if size > 1 else 0.0
    if kind < 0.15:
        return constant(rng.choice(CONSTANTS))
    if kind < 0.45:
        pieces = [atom(tag, rng.choice(ITEMS)) for tag in tags]
        if rng.random() < 0.3:
            pieces[1:] = [any_(rng.choice(ITEMS), but=tags[:1])]
        return iter_(or_(*pieces), rng.choice(CONSTANTS), rng.choice(OPERATIONS))
    if kind < 0.6:
        return prefix_sum(total_query(rng, size - 1, tags), rng.choice(CONSTANTS), rng.choice(OPERATIONS))
    if kind < 0.75:
        one, other = total_query(rng, size // 2, tags), total_query(rng, size // 2, tags)
        return combine(one, other, rng.choice(OPERATIONS))
    if kind < 0.9:
        rest = split(any_(rng.choice(ITEMS)), total_query(rng, size - 1, tags), rng.choice(OPERATIONS))
        return or_(eps(rng.choice(CONSTANTS)), rest)
    # The sum since the last item with the first tag.
    skip = iter_(any_(0), 0, first)
    before = or_(eps(rng.choice(CONSTANTS)), split(skip, atom(tags[0], rng.choice(ITEMS)), second))
    others = [atom(tag, rng.choice(ITEMS)) for tag in tags[1:]]
    if not others:
        return skip
    return split(before, iter_(or_(*others), rng.choice(CONSTANTS), rng.choice(OPERATIONS)), rng.choice(OPERATIONS))


def value_query(rng: Random, size: int, tags: Sequence[str] = TAGS) -> Query:
    """A query that always has a value, also one about the whole word."""
    kind = rng.random()
    if size <= 1 or kind < 0.3:
        return total_query(rng, size, tags)
    if kind < 0.6:
        return fill_with(base_query(rng, size - 1, tags), total_query(rng, 1, tags))
    if kind < 0.8:
        return fill(or_(eps(rng.choice(CONSTANTS)), split(base_query(rng, size - 1, tags), any_(cur), first)))
    if kind < 0.9:
        return combine(value_query(rng, size // 2, tags), value_query(rng, size // 2, tags), rng.choice(OPERATIONS))
    return prefix_sum(value_query(rng, size - 1, tags), rng.choice(CONSTANTS), rng.choice(OPERATIONS))


def temporal_query(rng: Random, size: int, tags: Sequence[str] = TAGS) -> Query:
    """True or false on every word."""
    if size <= 2:
        if rng.random() < 0.2:
            return agree(base_query(rng, 2, tags), base_query(rng, 2, tags))
        one, other = value_query(rng, 2, tags), value_query(rng, 1, tags)
        compared = [one < other, one <= other, one > other, one >= other, one == other, one != other]
        return rng.choice(compared)  # `==` of queries is a query
    one = temporal_query(rng, size - 1, tags)
    kind = rng.randrange(4)
    if kind == 0:
        return rng.choice([previously, once, historically])(one)
    if kind == 1:
        return ~one
    one, other = temporal_query(rng, size // 2, tags), temporal_query(rng, size // 2, tags)
    makers = [since, weak_since, implies, iff, lambda x, y: x & y, lambda x, y: x | y]
    return rng.choice(makers)(one, other)


def any_query(rng: Random, size: int, tags: Sequence[str] = TAGS) -> Query:
    """A query of any level; it may be ill-typed."""
    kind = rng.random()
    if kind < 0.45:
        return base_query(rng, size, tags)
    if kind < 0.6:
        made = base_query(rng, size - 1, tags) if rng.random() < 0.7 else value_query(rng, size - 1, tags)
        return fill(made)
    if kind < 0.75:
        other = any_query(rng, size // 2, tags) if size > 2 else total_query(rng, 1, tags)
        return fill_with(any_query(rng, size // 2, tags) if size > 2 else base_query(rng, 1, tags), other)
    return temporal_query(rng, size, tags) if kind < 0.9 else value_query(rng, size, tags)


def well_typed(rng: Random, make: Any, most: int = 8, tags: Sequence[str] = TAGS) -> Query:
    """The first query of many that is well-typed."""
    while True:
        query = make(rng, rng.randint(1, most), tags)
        try:
            require_well_typed(query, tuple(tags))
        except QueryError:
            continue
        return query


VALUES: list[list[Any]] = [
    [0, 1, 2, 3, -1, -5, 7],
    [0, -1, 10**30, -(10**40), 2**63, 2**53 + 1],
    [0.0, -0.0, 1.5, -2.5, math.nan, math.inf, -math.inf, 1e308],
    [True, False, 0, 1.0, 3, -2, math.nan],
]


def word(rng: Random, most: int = 6, tags: Sequence[str] = TAGS) -> list[tuple[str, Any]]:
    values = rng.choice(VALUES)
    return [(rng.choice(tags), rng.choice(values)) for _ in range(rng.randint(0, most))]


# -- machines --------------------------------------------------------------------------------------------------------


def machine(
    rng: Random,
    *,
    most: int = 4,
    tags: Sequence[str] = TAGS,
    inputs: int | None = None,
    outputs: int | None = None,
    acyclic: bool = False,
) -> Transducer:
    """A machine with any rules: cycles, gates, rules without sources."""
    count = rng.randint(1, most)
    rules = []
    for _ in range(rng.randint(0, 2 * count)):
        on: Any = rng.choice([*tags, *tags, When.START, When.ITEM, When.ALWAYS])
        target = rng.randrange(count)
        only_new = on in (When.START, When.ALWAYS)
        sources = []
        for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 3])):
            is_new = only_new or rng.random() < 0.4
            state = rng.randrange(count)
            if not is_new or not acyclic or state < target:
                sources.append(Source(state, is_new))
        if rng.random() < 0.5:
            sources = list(dict.fromkeys(sources))
        rules.append(Rule(on, tuple(sources), target, _term(rng, len(sources), not only_new)))
    states = range(count)
    given = min(count, inputs if inputs is not None else rng.randint(1, 2))
    asked = outputs if outputs is not None else rng.randint(1, 2)
    return Transducer(
        tuple(tags),
        tuple(f"q{state}" for state in states),
        tuple(rules),
        tuple(rng.sample(states, given)),
        tuple(rng.choice(states) for _ in range(asked)),
    )


def _term(rng: Random, slots: int, has_current: bool) -> Any:
    parts: list[Any] = [Slot(place) for place in range(slots)] + ([cur] if has_current else [])
    if not parts or rng.random() < 0.2:
        return Constant(rng.randint(0, 3))
    if rng.random() < 0.4:
        return rng.choice(parts)
    return rng.choice([lambda x, y: x + y, lambda x, y: x - 2 * y, larger])(rng.choice(parts), rng.choice(parts))
