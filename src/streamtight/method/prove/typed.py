"""What is known of the rows of a relation before it is compared: their type, whether keys have an order.

A program is run many times to be read, and each time its relations are made anew; what was found out about one is kept
for the next with the same functions.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from streamtight.errors import UnsupportedError
from streamtight.program.relation import Function, Place, Relation, Summary
from streamtight.solver.ask import Budget, prove
from streamtight.solver.symbolic.admit import Fingerprints
from streamtight.solver.terms import Meaning
from streamtight.solver.values import (
    YES,
    Row,
    Truth,
    conjunction,
    either,
    joined,
    negation,
    same,
    type_of,
    variable,
)

T = TypeVar("T")
SECONDS = 5.0
"""How long one question takes at most."""
_MOST_KEPT = 500
_kept: dict[object, tuple[Fingerprints, Any]] = {}


def known(question: str, parts: tuple[Any, ...], find: Callable[[], T]) -> T:
    """What `find` gives, from an earlier time if the parts are the same relations and functions."""
    keys = Fingerprints()
    key = (question, _key(parts, keys))
    if key not in _kept:
        found = find()
        if len(_kept) >= _MOST_KEPT:
            _kept.clear()
        _kept[key] = (keys, found)
    found_before: T = _kept[key][1]
    return found_before


def _key(part: Any, keys: Fingerprints) -> object:
    """A key that relations share which are made in the same way."""
    if isinstance(part, Relation | Summary):
        fields = [one.name for one in dataclasses.fields(part) if one.name != "place"]  # type: ignore[arg-type]
        return (type(part).__name__, *(_key(getattr(part, name), keys) for name in fields))
    return tuple(_key(one, keys) for one in part) if isinstance(part, tuple) else keys.of(part)


def may_raise(relation: Relation) -> bool:
    """Whether one of its functions may raise for some row."""
    return known("may raise", (relation,), lambda: bool(Meaning(Budget(SECONDS)).bag(relation).failures))


def require_order(relation: Relation, key: Function, place: Place) -> None:
    """Raise if the key may be None for some rows, since None has no order."""

    def types() -> list[Any]:
        meaning = Meaning(Budget(SECONDS))
        found = []
        for term in meaning.bag(relation).terms:
            found += [
                type_of(made) for _, made, error in meaning.applied(key, (term.row,), term.guard) if error is None
            ]
        return found

    for type_ in known("order", (relation, key), types):
        if not has_order(type_):
            raise UnsupportedError(
                str(place),
                needed="keys that can be compared with each other",
                came=f"{place.operation} by keys like {type_!r}",
                hint="a key that is never None: (x is None, x or 0)",
            )


def has_order(type_: Any) -> bool:
    """Whether any two values of the type can be compared."""
    if isinstance(type_, tuple):
        return all(map(has_order, type_))
    return type_ in (int, bool, float, str)


def require_combiners_that_merge(
    relation: Relation, create: Function, add: Function, merge: Function, place: Place
) -> None:
    """Raise unless to add a value to a combiner is proved to be: to merge it with the combiner of this value alone."""

    def proved() -> bool:
        budget = Budget(SECONDS)
        meaning = Meaning(budget)

        def applied(function: Function, *rows: Row, given: Truth = YES) -> list[tuple[Truth, Row]]:
            found = []
            for guard, made, error in meaning.applied(function, rows, given):
                if error is not None:
                    raise UnsupportedError(
                        str(place), needed="functions that never raise", came=repr(error), hint="a test before"
                    )
                found.append((conjunction((given, guard)), made))
            return found

        value_type = joined(type_of(term.row[1]) for term in meaning.bag(relation).terms)
        value = variable(value_type, "?value")
        created = applied(create, value)
        combiner_type = joined(type_of(made) for _, made in created)
        combiner = variable(combiner_type, "?combiner")
        added = applied(add, combiner, value)
        merged = [found for guard, alone in created for found in applied(merge, combiner, alone, given=guard)]
        if joined([combiner_type, *(type_of(made) for _, made in (*added, *merged))]) != combiner_type:
            return False
        return prove(_same_where_both(added, merged), seconds=budget.left).proved

    if not known("combines", (relation, create, add, merge), proved):
        raise UnsupportedError(
            str(place),
            needed="mergeValue(c, v) that is proved to be mergeCombiners(c, createCombiner(v))",
            came="a combineByKey of which that is not proved",
            hint="reduceByKey or aggregateByKey",
        )


def _same_where_both(left: Sequence[tuple[Truth, Row]], right: Sequence[tuple[Truth, Row]]) -> Truth:
    return conjunction(
        either(negation(conjunction((guard, other_guard))), same(one, other))
        for (guard, one), (other_guard, other) in itertools.product(left, right)
    )
