"""Queries that are asked often, each built from the combinators of QRE-Past alone: counts, means, windows, sessions.

    total(cur.price, "sale")                          the sum of all prices of sales
    per("day", total(cur.price, "sale"))              the sum since the last item `day`
    historically(mean_of_last(cur.price, 20) > 5)     was the mean of the last 20 always above 5?

Terms are about items: `cur`, or a field of it. With a `tag`, only items with this tag count: all others are passed
over, whatever their tags, and the value stays as it is. All queries that are not true or false, but for `variance`,
`deviation` and `drawdown`, can be asked of pieces of a stream.

Before the first item that counts, sums and counts are 0, and all else is what is said by `before`.
"""

from __future__ import annotations

import math

from streamtight.errors import QueryError
from streamtight.properties.query import (
    Atom,
    Combine,
    Eps,
    Iter,
    Level,
    Op,
    Or,
    Query,
    Split,
    any_,
    atom,
    combine,
    eps,
    first,
    historically,
    iter_,
    or_,
    prefix_sum,
    second,
    split,
)
from streamtight.properties.term import ADD, MAXIMUM, MINIMUM, Apply, Slot, Term, choose, cur, smaller, sqrt

_X, _Y, _Z = Slot(0), Slot(1), Slot(2)
_ADD, _LARGER, _SMALLER = (Apply(each, (_X, _Y)) for each in (ADD, MAXIMUM, MINIMUM))


# -- one item --------------------------------------------------------------------------------------------------------


def current(term: object = cur, tag: str | None = None, *, before: object = 0) -> Query:
    """The value of the last item that counts.

    >>> current(cur * 2).run([("v", 3), ("w", 5)], tags=("v", "w"))
    [0, 6, 10]
    >>> current(cur, "v", before=-1).run([("w", 7), ("v", 3), ("w", 5)], tags=("v", "w"))
    [-1, -1, 3, 3]
    """
    if tag is None:
        return iter_(any_(term), before, second)
    passed = iter_(any_(0, but=(tag,)), 0, first)
    return split(iter_(split(passed, atom(tag, term), second), before, second), passed, first)


def holds(condition: object, tag: str | None = None, *, before: bool = False) -> Query:
    """Is this so of the last item that counts? What is not 0 is true.

    >>> holds(cur > 3).run([("item", 3), ("item", 5)])
    [False, False, True]
    >>> from streamtight.properties.query import once
    >>> once(holds(cur > 3, "v")).run([("w", 9), ("v", 5), ("v", 1)], tags=("v", "w"))
    [False, False, True, True]
    """
    return current(condition, tag, before=before) != 0


def change(term: object = cur, tag: str | None = None, *, before: object = 0) -> Query:
    """The value of the last item that counts, minus that of the one before it, which was `before` at the beginning.

    >>> change(cur).run([("item", 3), ("item", 5), ("item", 4)])
    [0, 3, 2, -1]
    >>> change(cur, "v").run([("v", 3), ("w", 9), ("v", 5), ("w", 9)], tags=("v", "w"))
    [0, 3, 3, 2, 2]
    """
    value = current(term, tag, before=before)
    return _then_passed(or_(eps(0), split(value, _item(term, tag), _Y - _X)), tag)


# -- all items so far ------------------------------------------------------------------------------------------------


def count(tag: str | None = None, *, where: object = None) -> Query:
    """How many items there were, or how many of which something is so.

    >>> count("v").run([("v", 3), ("w", 5), ("v", 8)], tags=("v", "w"))
    [0, 1, 1, 2]
    >>> count(where=cur > 4).run([("item", 3), ("item", 5)])
    [0, 0, 1]
    """
    return total(1 if where is None else choose(_item(where, tag).terms[0], 1, 0), tag)


def total(term: object = cur, tag: str | None = None) -> Query:
    """The sum of all values.

    >>> total(cur, "v").run([("v", 3), ("w", 5), ("v", 8)], tags=("v", "w"))
    [0, 3, 3, 11]
    """
    return _folded(term, tag, 0, _ADD)


def mean(term: object = cur, tag: str | None = None, *, before: object = 0) -> Query:
    """The mean of all values.

    >>> mean(cur).run([("item", 3), ("item", 5)])
    [0, 3.0, 4.0]
    """
    return _over(total(term, tag), count(tag), before)


def variance(term: object = cur, tag: str | None = None, *, before: object = 0) -> Query:
    """The mean of the squares of the distances to the mean: the variance of all values, 0 after the first.

    Each value adds to it what Youngs and Cramer (1971) say, which does not lose digits as sums of squares do.

    >>> variance(cur).run([("item", 2), ("item", 4), ("item", 3)])
    [0, 0.0, 1.0, 0.6666666666666666]
    """
    distance = _Y * _X - _Z  # as many times the value, minus the sum
    squares = choose(_Y > 1, distance * distance / (_Y * (_Y - 1)), 0)
    added = _with_item(term, tag, count(tag), total(term, tag), squares)
    return _over(prefix_sum(added, 0, _ADD), count(tag), before)


def deviation(term: object = cur, tag: str | None = None, *, before: object = 0) -> Query:
    """The standard deviation of all values: the square root of their variance.

    >>> deviation(cur).run([("item", 2), ("item", 4)])
    [0.0, 0.0, 1.0]
    """
    return combine(variance(term, tag, before=before), sqrt(_X))


def least(term: object = cur, tag: str | None = None, *, before: object = math.inf) -> Query:
    """The least of all values, and of `before`.

    >>> least(cur).run([("item", 3), ("item", 5), ("item", 2)])
    [inf, 3, 3, 2]
    """
    return _folded(term, tag, before, _SMALLER)


def greatest(term: object = cur, tag: str | None = None, *, before: object = -math.inf) -> Query:
    """The greatest of all values, and of `before`.

    >>> greatest(cur, "v", before=0).run([("v", 3), ("w", 5), ("v", 4)], tags=("v", "w"))
    [0, 3, 3, 4]
    """
    return _folded(term, tag, before, _LARGER)


def drawdown(term: object = cur, tag: str | None = None) -> Query:
    """How far a value ever was below the greatest before it.

    >>> drawdown(cur).run([("item", 5), ("item", 3), ("item", 9), ("item", 8), ("item", 2)])
    [0, 0, 2, 2, 2, 7]
    """
    return prefix_sum(_with_item(term, tag, greatest(term, tag), _Y - _X), 0, _LARGER)


# -- the last items --------------------------------------------------------------------------------------------------


def window(term: object, n: int, start: object, op: Op, tag: str | None = None) -> Query:
    """The last n values folded, oldest first: op(op(start, oldest), next) and so on; all, while there are fewer.

    It keeps n - 1 values: of the last one item, of the last two, and so on.

    >>> window(cur, 3, 0, lambda x, y: x + y).run([("item", 1), ("item", 2), ("item", 4), ("item", 8)])
    [0, 1, 3, 7, 14]
    >>> window(cur, 2, 0, max, "v").run([("v", 7), ("w", 9), ("v", 2), ("v", 4)], tags=("v", "w"))
    [0, 7, 7, 7, 4]
    """
    _require_count("window", n)
    found = iter_(any_(0), start, first)
    for _ in range(n):
        found = _then_passed(or_(eps(start), split(found, _item(term, tag), op)), tag)
    return found


def mean_of_last(term: object, n: int, tag: str | None = None, *, before: object = 0) -> Query:
    """The mean of the last n values, or of all, while there are fewer.

    >>> mean_of_last(cur, 2).run([("item", 1), ("item", 2), ("item", 6)])
    [0, 1.0, 1.5, 4.0]
    """
    _require_count("mean_of_last", n)
    how_many = _folded(1, tag, 0, smaller(_X + _Y, n))
    return _over(window(term, n, 0, _ADD, tag), how_many, before)


def always_within(term: object, distance: float, n: int, tag: str | None = None, *, before: object = 0) -> Query:
    """Was every value at most this far from the mean of the last n, itself included?

    >>> always_within(cur, 2, 3).run([("item", 5), ("item", 6), ("item", 9), ("item", 8)])
    [True, True, True, False, False]
    """
    value = current(term, tag, before=before)
    average = mean_of_last(term, n, tag, before=before)
    return historically(combine(value, average, abs(_X - _Y)) <= distance)


# -- pieces between markers ------------------------------------------------------------------------------------------


def per(marker: str, query: Query) -> Query:
    """The value of a query since the last item with this tag, or since the beginning.

    >>> sales = total(cur, "v")
    >>> per("day", sales).run([("v", 1), ("v", 2), ("day", 0), ("v", 4), ("v", 5), ("day", 0)])
    [0, 1, 3, 0, 4, 9, 0]
    """
    piece = _without("per", query, marker)
    return split(or_(eps(0), split(iter_(any_(0), 0, first), atom(marker, 0), first)), piece, second)


def each(marker: str, query: Query, start: object, op: Op) -> Query:
    """The values of a query on all pieces that an item with this tag has ended, folded.

    >>> each("day", mean(cur, "v"), 0, max).run([("v", 1), ("v", 2), ("day", 0), ("v", 4), ("day", 0)])
    [0, 0, 0, 1.5, 1.5, 4.0]
    """
    piece = _without("each", query, marker)
    return split(iter_(split(piece, atom(marker, 0), first), start, op), piece, first)


def top(marker: str, query: Query, *, before: object = -math.inf) -> Query:
    """The greatest value that a query had on a piece that an item with this tag has ended, and `before`.

    >>> top("day", total(cur, "v"), before=0).run([("v", 1), ("v", 2), ("day", 0), ("v", 4)])
    [0, 0, 0, 3, 3]
    """
    return each(marker, query, before, _LARGER)


def sessions(opens: str, closes: str, query: Query, start: object, op: Op) -> Query:
    """The values of a query on all pieces that the one tag has opened and the other closed, folded.

    Items between two sessions are passed over. It has no value once a session is opened twice, or closed twice.

    >>> busiest = sessions("in", "out", count("v"), 0, max)
    >>> busiest.run([("v", 0), ("in", 0), ("v", 0), ("v", 0), ("out", 0), ("v", 0)])
    [0, 0, 0, 0, 0, 2, 2]
    """
    if opens == closes:
        raise QueryError(
            f"sessions({opens!r}, {closes!r}, ...)",
            needed="two tags, one that opens and one that closes sessions",
            came="one tag",
            hint="each(marker, ...) where one session begins as the other ends",
        )
    piece = _without("sessions", query, opens, closes)
    outside = iter_(any_(0, but=(opens, closes)), 0, first)
    opening = split(outside, atom(opens, 0), first)
    closed = split(split(opening, piece, second), atom(closes, 0), first)
    return split(iter_(closed, start, op), or_(outside, split(opening, piece, first)), first)


# -- the past, so far back -------------------------------------------------------------------------------------------


def once_within(one: Query, n: int) -> Query:
    """Is it so, or was it so after one of the last n items, the current one included?

    One register counts the items since it was so, up to n.

    >>> once_within(holds(cur > 5), 2).run([("item", 9), ("item", 1), ("item", 2)])
    [False, True, True, False]
    """
    _require_count("once_within", n)
    _require_condition("once_within", one)
    return _age(one, n) < n


def historically_within(one: Query, n: int) -> Query:
    """Is it so, and was it so after each of the last n items, as far back as there are any?

    The time before the first item counts, as in `historically`.

    >>> historically_within(holds(cur < 5, before=True), 2).run([("item", 9), ("item", 1), ("item", 2)])
    [True, False, False, True]
    """
    _require_count("historically_within", n)
    return _age(~one, n) >= n


def since_within(one: Query, other: Query, n: int) -> Query:
    """Was the other so after one of the last n items, and the one after all items from then on?

    >>> since_within(holds(cur > 0), holds(cur > 5), 3).run([("item", 9), ("item", 1), ("item", 2), ("item", 3)])
    [False, True, True, True, False]
    """
    _require_count("since_within", n)
    _require_condition("since_within", one)
    _require_condition("since_within", other)
    # How much older it gets: not at all, by one item, or for ever.
    ages = combine(one, other, choose(_Y, 0, choose(_X, 1, n)))
    return prefix_sum(ages, n, choose(_Y == 0, 0, smaller(_X + _Y, n))) < n


def _age(one: Query, n: int) -> Query:
    """How many items ago it was so, but at most n."""
    return prefix_sum(one, n, choose(_Y, 0, smaller(_X + 1, n)))


# -- which items count -----------------------------------------------------------------------------------------------


def _item(term: object, tag: str | None) -> Query:
    return any_(term) if tag is None else atom(tag, term)


def _at_item(term: object, otherwise: object, tag: str | None) -> Query:
    """The value of one item, or another value if it does not count."""
    return any_(term) if tag is None else or_(atom(tag, term), any_(otherwise, but=(tag,)))


def _with_item(term: object, tag: str | None, *others_and_op: Query | Term) -> Query:
    """The value of an item put together with queries of the stream up to it; 0 at items that do not count."""
    if tag is None:
        return combine(current(term), *others_and_op)
    *others, op = others_and_op
    value, counts = (iter_(_at_item(each, 0, tag), 0, second) for each in (term, 1))
    return combine(value, *others, counts, choose(Slot(len(others_and_op)), op, 0))


def _then_passed(query: Query, tag: str | None) -> Query:
    """The value of a query, also after items that do not count."""
    return query if tag is None else split(query, iter_(any_(0, but=(tag,)), 0, first), first)


def _folded(term: object, tag: str | None, start: object, op: Term) -> Query:
    """All values folded by an operation for which `start` adds nothing."""
    return iter_(_at_item(term, start, tag), start, op)


def _over(dividend: Query, divisor: Query, before: object) -> Query:
    """One divided by the other, or `before` while the other is 0."""
    return combine(dividend, divisor, choose(_Y > 0, _X / _Y, before))


# -- refusals --------------------------------------------------------------------------------------------------------


def _require_count(where: str, n: object) -> None:
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise QueryError(f"{where}(n={n!r})", needed="a number of items, at least 1", came=repr(n), hint="n=5")


def _require_condition(where: str, query: object) -> None:
    if not isinstance(query, Query) or query.level is not Level.TEMPORAL:
        raise QueryError(
            f"{where}({query}, ...)",
            needed="something that is true or false",
            came="a query that has a value" if isinstance(query, Query) else repr(query),
            hint="holds(cur > 0), or a comparison of queries",
        )


def _without(where: str, query: object, *markers: str) -> Query:
    """A query of pieces of the stream, for pieces without these tags."""
    match query:
        case Atom(None, term, but):
            return any_(term, but=(*but, *markers))
        case Atom(tag, _) if tag not in markers:
            return query
        case Eps():
            return query
        case Or(one, other):
            return Or(_without(where, one, *markers), _without(where, other, *markers))
        case Split(one, other, op):
            return Split(_without(where, one, *markers), _without(where, other, *markers), op)
        case Iter(one, start, op):
            return Iter(_without(where, one, *markers), start, op)
        case Combine(those, op) if query.level is Level.BASE:
            return Combine(tuple(_without(where, one, *markers) for one in those), op)
    raise QueryError(
        f"{where}({', '.join(map(repr, markers))}, ...)",
        needed=f"a query that can be asked of pieces of the stream, without {' and '.join(map(repr, markers))}",
        came=str(query) if isinstance(query, Query) else repr(query),
        hint="total(cur, 'v'); variance, prefix_sum, fill and all that is true or false are about the whole stream",
    )
