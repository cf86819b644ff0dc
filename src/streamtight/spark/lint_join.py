"""What is known of the rows of a join: keys, and what determines what.

Inner joins have the facts of both sides. In outer joins, rows of nulls have none of the facts of the side that they
stand for; and a side that finds at most one partner for each of its rows keeps its keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from streamtight.spark.lint_expression import equations, is_collated, is_column
from streamtight.spark.lint_facts import NO_COLUMN, Id, Ids, Rows, both_ways
from streamtight.spark.plan import Node

Equal = Sequence[tuple[Id, Id]]
"""Columns of the left and of the right side that are equal in rows that are joined."""


def in_own_terms(rows: Rows) -> Rows:
    """The same, in terms of columns that are there: both sides of a join may have lost the same one."""
    here = rows.ids
    facts = [(of, made) for of, made in rows.determines if of <= here and made in here]
    facts += [(frozenset({id_}), made) for id_ in here for made in (rows.closure({id_}) & here) - {id_}]
    facts += [(frozenset(), made) for made in rows.closure(()) & here]
    stands_for = {made: id_ for id_ in here for made in rows.closure({id_}) if made not in here}
    keys = [frozenset(id_ if id_ in here else stands_for.get(id_, NO_COLUMN) for id_ in key) for key in rows.keys]
    return replace(
        rows,
        columns=rows.settled_columns(),
        keys=tuple(key for key in keys if NO_COLUMN not in key),
        determines=tuple(dict.fromkeys(facts)),
        times=rows.times & here,
    )


def equal_columns(condition: Node, left: Rows, right: Rows) -> Iterator[tuple[Id, Id]]:
    """The columns of both sides that are equal in rows that are joined."""
    for sides in equations(condition):
        if all(is_column(one) and not is_collated(one) for one in sides):
            one, other = sides[0]["exprId"], sides[1]["exprId"]
            if one in left.columns and other in right.columns:
                yield one, other
            elif other in left.columns and one in right.columns:
                yield other, one


def keys_of(kind: str, left: Rows, right: Rows, equal: Equal) -> tuple[Ids, ...]:
    """A side that finds at most one partner keeps its keys."""
    keys: tuple[Ids, ...] = ()
    if kind in ("Inner", "LeftOuter") and right.has_one_row(other for _, other in equal):
        keys += left.keys
    if kind in ("Inner", "RightOuter") and left.has_one_row(one for one, _ in equal):
        keys += right.keys
    if not keys and kind in ("Inner", "Cross"):
        keys = tuple(one | other for one in left.keys for other in right.keys)
    return keys


def facts_of(kind: str, left: Rows, right: Rows, equal: Equal, *, only_equal: bool) -> Iterator[tuple[Ids, Id]]:
    """What determines what in joined rows."""
    left_side, right_side = frozenset(one for one, _ in equal), frozenset(other for _, other in equal)
    if kind in ("Inner", "Cross", "LeftOuter"):
        yield from left.determines
    if kind in ("Inner", "Cross", "RightOuter"):
        yield from right.determines
    if kind in ("Inner", "Cross"):
        for one, other in equal:
            yield from both_ways(one, other)
    if only_equal and kind in ("Inner", "LeftOuter") and right.has_one_row(right_side):
        yield from ((left_side, id_) for id_ in right.columns)
    if only_equal and kind in ("Inner", "RightOuter") and left.has_one_row(left_side):
        yield from ((right_side, id_) for id_ in left.columns)
