"""The queries of the library, each against a slow calculation of what its name says."""

from __future__ import annotations

import functools
import math
from random import Random

import pytest
from queries import word
from query_oracle import same

from streamtight.errors import QueryError
from streamtight.properties.query import Level, atom, eps, fill, iter_, or_
from streamtight.properties.query_library import (
    always_within,
    change,
    count,
    current,
    deviation,
    drawdown,
    each,
    greatest,
    historically_within,
    holds,
    least,
    mean,
    mean_of_last,
    once_within,
    per,
    sessions,
    since_within,
    top,
    total,
    variance,
    window,
)
from streamtight.properties.term import cur
from streamtight.properties.transducer import UNDEFINED

TAGS = ("v", "w", "m", "n", "x")
WHICH = [None, "v"]
"""Every item counts, or those with a tag."""


def add(x, y):
    return x + y


def words(seed: int, tags=TAGS, most=14):
    """Some words, of numbers of all kinds; the empty one first."""
    rng = Random(seed)
    return [[], *(word(rng, most, tags) for _ in range(25))]


def prefixes(items):
    return [items[:end] for end in range(len(items) + 1)]


def values(items, tag=None):
    return [value for each_tag, value in items if tag in (None, each_tag)]


def folded(op, start, those):
    return functools.reduce(op, those, start)


def require_same(query, slow, *, seed, tags=TAGS, is_close=False):
    """The query answers on every prefix what the slow function says of it."""
    compiled = query.compile(tags)
    for items in words(seed, tags):
        try:
            wanted = [slow(prefix) for prefix in prefixes(items)]
        except OverflowError:  # huge numbers have no mean as a float, and the query says so
            with pytest.raises(QueryError, match="OverflowError"):
                compiled.run(items)
            continue
        found = compiled.run(items)
        for one, other in zip(found, wanted, strict=True):
            assert close(one, other) if is_close else same(one, other), (items, found, wanted)


def close(one, other):
    return same(one, other) or math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)


def slow_mean(those, before=0):
    return folded(add, 0, those) / len(those) if those else before


# -- one item --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tag", WHICH)
def test_current_is_the_last_value(tag):
    query = current(cur, tag, before=-7)

    require_same(query, lambda items: [-7, *values(items, tag)][-1], seed=1)


@pytest.mark.parametrize("tag", WHICH)
@pytest.mark.parametrize("before", [False, True])
def test_holds_is_whether_it_is_so_of_the_last_item(tag, before):
    query = holds(cur > 0, tag, before=before)

    assert query.level is Level.TEMPORAL
    require_same(query, lambda items: [before, *(each > 0 for each in values(items, tag))][-1], seed=2)


@pytest.mark.parametrize("tag", WHICH)
def test_change_is_the_last_value_minus_the_one_before(tag):
    def slow(items):
        those = [5, *values(items, tag)]
        return those[-1] - those[-2] if len(those) > 1 else 0

    require_same(change(cur, tag, before=5), slow, seed=3)


# -- all items -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tag", WHICH)
def test_count_is_how_many_there_were(tag):
    require_same(count(tag), lambda items: len(values(items, tag)), seed=4)
    positive = count(tag, where=cur > 0)
    require_same(positive, lambda items: sum(each > 0 for each in values(items, tag)), seed=5)


@pytest.mark.parametrize("tag", WHICH)
def test_total_is_the_sum(tag):
    require_same(total(cur, tag), lambda items: folded(add, 0, values(items, tag)), seed=6)


@pytest.mark.parametrize("tag", WHICH)
def test_mean_is_the_sum_by_the_count(tag):
    require_same(mean(cur, tag, before=-1), lambda items: slow_mean(values(items, tag), -1), seed=7)


def test_the_means_of_numbers_beyond_floats_are_refused_at_their_item():
    with pytest.raises(QueryError, match=r"OverflowError.* at the item \('v', 1000"):
        mean(cur, "v").run([("v", 10**400)])


@pytest.mark.parametrize("tag", WHICH)
def test_variance_is_the_mean_square_of_the_distance_to_the_mean(tag):
    def slow(items):
        those = values(items, tag)
        average = slow_mean(those)
        return slow_mean([(each - average) ** 2 for each in those])

    rng = Random(8)
    compiled = variance(cur, tag).compile(TAGS)
    for _ in range(20):
        items = [(rng.choice(TAGS), rng.choice([rng.gauss(1000, 3), rng.randrange(-50, 50)])) for _ in range(30)]
        assert all(map(close, compiled.run(items), map(slow, prefixes(items))))
    # From here on, there is no variance.
    assert math.isnan(compiled.run([("v", 1), ("v", math.nan), ("v", 3)])[-1])


def test_variance_keeps_the_digits_of_values_that_are_far_from_0():
    items = [("v", 1e9 + each) for each in (4, 7, 13, 16)]

    assert variance(cur, "v").run(items)[-1] == pytest.approx(22.5, rel=1e-12)


@pytest.mark.parametrize("tag", WHICH)
def test_deviation_is_the_root_of_the_variance(tag):
    items = [("v", each) for each in (2, 4, 4, 4, 5, 5, 7, 9)]

    assert deviation(cur, tag).run(items, tags=TAGS)[-1] == pytest.approx(2)
    assert deviation(cur, tag).run([("v", 5)], tags=TAGS) == [0, 0]


@pytest.mark.parametrize("tag", WHICH)
def test_least_and_greatest_are_the_least_and_the_greatest(tag):
    require_same(least(cur, tag), lambda items: folded(min, math.inf, values(items, tag)), seed=9)
    require_same(greatest(cur, tag), lambda items: folded(max, -math.inf, values(items, tag)), seed=10)
    query = greatest(cur, tag, before=0)
    require_same(query, lambda items: folded(max, 0, values(items, tag)), seed=11)


@pytest.mark.parametrize("tag", WHICH)
def test_drawdown_is_the_largest_drop_below_a_greatest_value(tag):
    def slow(items):
        those = values(items, tag)
        return folded(max, 0, [folded(max, -math.inf, those[: end + 1]) - those[end] for end in range(len(those))])

    require_same(drawdown(cur, tag), slow, seed=12)


# -- the last items --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tag", WHICH)
@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_a_window_is_the_last_values_folded_oldest_first(n, tag):
    def minus(x, y):
        return 2 * x - y

    require_same(window(cur, n, 1, minus, tag), lambda items: folded(minus, 1, values(items, tag)[-n:]), seed=n)
    require_same(
        mean_of_last(cur, n, tag, before=-1),
        lambda items: slow_mean(values(items, tag)[-n:], -1),
        seed=n + 10,
    )


def test_what_left_the_window_is_forgotten():
    items = [("v", each) for each in (math.nan, 1e300, 0.1, 0.2, 0.3)]

    assert window(cur, 3, 0, add, "v").run(items)[-1] == 0 + 0.1 + 0.2 + 0.3


@pytest.mark.parametrize("tag", WHICH)
def test_always_within_is_whether_no_value_was_far_from_the_mean_of_the_last(tag):
    def slow(items):
        those = values(items, tag)
        return all(abs(those[end] - slow_mean(those[max(0, end - 2) : end + 1])) <= 2 for end in range(len(those)))

    require_same(always_within(cur, 2, 3, tag), slow, seed=14)


@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_a_window_keeps_one_value_less_than_it_has_and_has_one_control_state(n):
    bound = window(cur, n, 0, add).bound(TAGS)

    assert (bound.registers, bound.operations, bound.controls) == (n - 1, n, 1)


# -- pieces ----------------------------------------------------------------------------------------------------------


def pieces(items, marker):
    """The pieces that the marker has ended, and the one that it has not."""
    found = [[]]
    for item in items:
        if item[0] == marker:
            found.append([])
        else:
            found[-1].append(item)
    return found[:-1], found[-1]


OF_PIECES = [
    (total(cur, "v"), lambda items: folded(add, 0, values(items, "v"))),
    (mean(cur), lambda items: slow_mean(values(items))),
    (current(cur, "v"), lambda items: [0, *values(items, "v")][-1]),
    (per("n", total(cur, "v")), lambda items: folded(add, 0, values(pieces(items, "n")[1], "v"))),
    (mean(cur, "v"), lambda items: slow_mean(values(items, "v"))),
    (greatest(cur, "v"), lambda items: folded(max, -math.inf, values(items, "v"))),
    (window(cur, 2, 0, add, "v"), lambda items: folded(add, 0, values(items, "v")[-2:])),
    (change(cur, "v"), lambda items: (lambda a: a[-1] - a[-2])([0, 0, *values(items, "v")])),
]


@pytest.mark.parametrize(("query", "slow"), OF_PIECES)
def test_per_is_the_value_since_the_last_marker(query, slow):
    require_same(per("m", query), lambda items: slow(pieces(items, "m")[1]), seed=15)


@pytest.mark.parametrize(("query", "slow"), OF_PIECES)
def test_each_folds_the_pieces_that_have_ended(query, slow):
    def minus(x, y):
        return 2 * x - y

    def slow_each(op, start):
        return lambda items: folded(op, start, [slow(piece) for piece in pieces(items, "m")[0]])

    require_same(each("m", query, 1, minus), slow_each(minus, 1), seed=16)
    require_same(top("m", query), slow_each(max, -math.inf), seed=17)


def test_sessions_are_folded_when_they_are_closed():
    query = sessions("m", "n", total(cur, "v"), 0, max)

    def slow(items):
        is_open, sums, current_sum = False, [], 0
        for tag, value in items:
            if tag in ("m", "n"):
                if is_open == (tag == "m"):
                    return UNDEFINED
                sums, current_sum, is_open = (sums if tag == "m" else [*sums, current_sum]), 0, tag == "m"
            elif tag == "v":
                current_sum += value
        return folded(max, 0, sums)

    require_same(query, slow, seed=18)


def test_sessions_may_follow_each_other_at_once():
    query = sessions("m", "n", count("v"), 0, add)

    assert query.run([("m", 0), ("v", 0), ("n", 0), ("m", 0), ("n", 0)]) == [0, 0, 0, 1, 1, 1]


# -- the past, so far back -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_past_operators_look_so_many_items_back(n):
    positive, big = holds(cur > 0), holds(cur > 2, "v")

    def is_positive(items):
        return bool(items) and bool(items[-1][1] > 0)

    def is_big(items):
        return bool(values(items, "v")) and bool(values(items, "v")[-1] > 2)

    def last(items):
        return prefixes(items)[-n:]

    def slow_since(items):
        found = last(items)
        return any(
            is_big(each_one) and all(is_positive(later) for later in found[at + 1 :])
            for at, each_one in enumerate(found)
        )

    require_same(once_within(big, n), lambda items: any(map(is_big, last(items))), seed=19)
    require_same(historically_within(positive, n), lambda items: all(map(is_positive, last(items))), seed=20)
    require_same(since_within(positive, big, n), slow_since, seed=21)


@pytest.mark.parametrize("n", [1, 10, 1_000_000])
def test_how_far_back_costs_nothing(n):
    positive, big = holds(cur > 0), holds(cur > 2)
    for query, operations in ((once_within(big, n), 6), (historically_within(big, n), 7)):
        assert query.bound(TAGS)[:3] == (1, operations, 1)
    assert since_within(positive, big, n).bound(TAGS)[:3] == (1, 11, 1)


def test_past_operators_can_be_put_into_each_other():
    query = once_within(historically_within(holds(cur > 0), 2), 2)

    assert query.run([("item", each) for each in (1, 2, 3, -1, -1)]) == [False, False, True, True, True, False]


# -- costs and tags --------------------------------------------------------------------------------------------------

ALL = {
    "current": (current(), 0, 0),
    "current of a tag": (current(cur, "v"), 1, 0),
    "holds of a tag": (holds(cur > 3, "v"), 1, 2),
    "change": (change(), 1, 1),
    "change of a tag": (change(cur, "v"), 3, 1),
    "window of a tag": (window(cur, 5, 0, add, "v"), 9, 5),
    "mean of each piece": (each("v", mean(cur, "x"), 0, max), 6, 5),
    "mean since a tag": (per("v", mean(cur)), 2, 5),
    "count of a tag": (count("v"), 1, 1),
    "total of a tag": (total(cur, "v"), 1, 1),
    "mean of a tag": (mean(cur, "v"), 2, 5),
    "variance of a tag": (variance(cur, "v"), 4, 18),
    "deviation of a tag": (deviation(cur, "v"), 4, 19),
    "least of a tag": (least(cur, "v"), 1, 1),
    "greatest of a tag": (greatest(cur, "v"), 1, 1),
    "drawdown of a tag": (drawdown(cur, "v"), 2, 4),
    "mean_of_last": (mean_of_last(cur, 5), 5, 10),
    "always_within": (always_within(cur, 2, 5), 6, 14),
}


@pytest.mark.parametrize("name", ALL)
def test_bounds_are_as_small_as_said(name):
    query, registers, operations = ALL[name]
    bound = query.bound(TAGS)

    assert bound.registers <= registers
    assert bound.operations <= operations
    assert bound.controls == 1


@pytest.mark.parametrize("name", ALL)
def test_queries_have_a_value_whatever_other_tags_come(name):
    query = ALL[name][0]
    items = [("v", 3), ("x", 5), ("y z", 7), ("v", 4), ("x", 1)]

    assert UNDEFINED not in query.run(items, tags=("x", "v", "y z"))
    assert query.ambiguity(("x", "v", "y z")) is None


def test_items_of_other_tags_are_not_even_looked_at():
    for query in (total(cur, "v"), variance(cur, "v"), current(cur, "v"), drawdown(cur, "v"), greatest(cur, "v")):
        query.run([("v", 3), ("w", "text"), ("w", None), ("v", 4)], tags=TAGS)


def test_fields_of_records_are_read():
    items = [("sale", {"price": 3, "name": "a"}), ("offer", {"name": "b"}), ("sale", {"price": 5})]

    assert total(cur.price, "sale").run(items, tags=("sale", "offer")) == [0, 3, 3, 8]


# -- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, -1, 2.0, True, None, "3"])
def test_a_number_of_items_is_a_number_above_0(n):
    condition = holds(cur > 0)
    for make in (
        lambda: window(cur, n, 0, add),
        lambda: mean_of_last(cur, n),
        lambda: always_within(cur, 1, n),
        lambda: once_within(condition, n),
        lambda: historically_within(condition, n),
        lambda: since_within(condition, condition, n),
    ):
        with pytest.raises(QueryError, match="needed a number of items, at least 1"):
            make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: per("day", variance(cur, "v")),
            "needed a query that can be asked of pieces of the stream, without 'day'",
        ),
        (lambda: per("day", holds(cur > 0)), "needed a query that can be asked of pieces of the stream, without 'day'"),
        (lambda: per("day", 5), "came 5"),
        (lambda: each("day", total(cur, "day"), 0, add), r"came atom\(day, cur\)"),
        (lambda: sessions("in", "in", eps(0), 0, add), "needed two tags, one that opens and one that closes"),
        (lambda: once_within(total(cur), 3), "needed something that is true or false; came a query that has a value"),
        (lambda: historically_within(total(cur), 3), "needed something that is true or false"),
        (lambda: since_within(holds(cur), 1, 3), "needed something that is true or false; came 1"),
        (lambda: total(cur, ""), "needed a tag"),
    ],
)
def test_what_makes_no_sense_is_refused(make, message):
    with pytest.raises(QueryError, match=message):
        make()


def test_the_queries_are_made_of_the_combinators_alone():
    by_hand = fill(or_(eps(0), iter_(atom("v", cur), 0, add)))

    assert {type(each_part).__module__ for each_part in total(cur, "v").walk()} == {type(by_hand).__module__}
