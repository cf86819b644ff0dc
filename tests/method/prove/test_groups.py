# ruff: noqa: C400, C401, C416, C417, E731, RUF005, RUF015  the functions are as users may write them
from __future__ import annotations

import functools
import operator
import random
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from read_and_run import Program, as_read, require_read_as_run

from streamtight.errors import UnsupportedError

PAIR = (int, int)
LIMIT = 2
WEIGHTS = {0: 3, 1: 5}


class Sale(NamedTuple):
    shop: int
    price: int

    def doubled(self) -> int:
        return 2 * self.price


@dataclass(frozen=True)
class Order:
    customer: int
    price: int


def twice(x: int) -> int:
    return 2 * x


OF_A_GROUP = [
    sum,
    len,
    min,
    max,
    any,
    all,
    lambda g: sum(g) / len(g),
    lambda g: sum(x * x for x in g),
    lambda g: sum(1 for x in g if x > 0),
    lambda g: sum(x > 0 for x in g),
    lambda g: max(abs(x - 1) for x in g),
    lambda g: min(-x for x in g) + max(g),
    lambda g: any(x > LIMIT for x in g),
    lambda g: all(x % 2 == 0 for x in g),
    lambda g: len(set(g)),
    lambda g: sum(set(g)),
    lambda g: len(set(x % 2 for x in g)),
    lambda g: sorted(g)[0],
    lambda g: sorted(g)[-1],
    lambda g: sorted(g, reverse=True)[0],
    lambda g: sorted(x * x for x in g)[-1],
    lambda g: len(sorted(g)),
    lambda g: len(list(g)),
    lambda g: sum(list(g)),
    lambda g: len(tuple(x for x in g if x)),
    lambda g: functools.reduce(operator.add, g),
    lambda g: functools.reduce(lambda a, b: a if a > b else b, g),
    lambda g: functools.reduce(lambda a, b: a + b, g, 0),
    lambda g: sum(map(twice, g)),
    lambda g: sum(map(lambda x: x + 1, g)),
    lambda g: max(map(abs, g)),
    lambda g: len(list(filter(lambda x: x > 0, g))),
    lambda g: sum(filter(None, g)),
    lambda g: sum(y for x in g for y in (x, -x, 1)),
    lambda g: sum(x + 1 for x in (y * 2 for y in g if y < 3)),
    lambda g: sum(twice(x) for x in g if x in (1, 2)),
    lambda g: sum(WEIGHTS.get(x, 0) for x in g),
    lambda g: 1 in g,
    lambda g: sum(g, 10),
    lambda g: "many" if len(g) > 2 else "few" if len(g) > 1 else "one",
    lambda g: (min(g), max(g), len(g)),
    lambda g: (lambda top: sum(x for x in g if x > 1) + top)(max(g)),
    lambda g: 1 if g else 0,
    lambda g: min(g, default=7),
    lambda g: sum(iter(g)),
    lambda g: sum([x * x for x in g]),
    lambda g: len([x for x in g if x > LIMIT - 1]),
    lambda g: sorted([-x for x in g])[0],
    lambda g: sum([y for y in [1, 2, 3]]) + len(g),
    lambda g: sum([x + y for y in [1, 2] for x in [3, 4]]) * len(g),
    lambda g: max(g, key=lambda x: -x),
    lambda g: min(g, key=abs) ** 2,
    lambda g: max((x + 1 for x in g), key=twice),
    lambda g: max(g, key=None),
    lambda g: 0 if max(g) == min(g) else sum(g) // (max(g) - min(g)),
]


@pytest.mark.parametrize("function", OF_A_GROUP, ids=range(len(OF_A_GROUP)))
def test_what_a_function_asks_of_a_group_is_read_as_it_is(function: Any):
    require_read_as_run(lambda p: p.groupByKey().mapValues(function), PAIR)


@pytest.mark.parametrize(
    "function",
    [
        lambda g: max(x for x in g if x > 0),
        lambda g: sum(x // y for x in g for y in (0, 1)),
        lambda g: list(g),
        lambda g: list(g)[0],
        lambda g: [x for x in g],
        lambda g: [x for x in g][0],
        lambda g: sum([x for x in g if x > max([y for y in g])]),
        lambda g: next(iter(g)),
        lambda g: sorted(g, key=abs)[0],
        lambda g: sorted(g)[1],
        lambda g: sum(x - max(g) for x in g),
        lambda g: [*g],
        lambda g: list(g) + [1],
        lambda g: g == g,
        lambda g: {g: 1},
        lambda g: str(list(g)),
        lambda g: list(g).index(1),
        lambda g: g.data,
        lambda g: sum(enumerate(g)),
        lambda g: functools.reduce(lambda a, b: (a, b), g),
        lambda g: functools.reduce(lambda a, b: (a + b) / 2, g),
        lambda g: set(g) | {1},
        lambda g: sum(x for x in g) if g < 3 else 0,
        lambda g: (lambda it: sum(it) + sum(it))(map(abs, g)),
        lambda g: (lambda it: (any(it), sum(it))[1])(x for x in g),
        lambda g: -sum(len(str(x)) for x in g),
    ],
    ids=range(26),
)
def test_what_depends_on_more_than_summaries_is_refused(function: Any):
    program = lambda p: p.groupByKey().mapValues(function)
    with pytest.raises(UnsupportedError):
        as_read(program, (PAIR,), ([(0, 1), (0, 2)],))


def test_a_loop_over_a_group_is_refused_with_its_line():
    def total(group):
        found = 0
        for x in group:  # here
            found += x
        return found

    line = total.__code__.co_firstlineno + 2
    with pytest.raises(UnsupportedError, match=f"line {line}.*goes through a group"):
        as_read(lambda p: p.groupByKey().mapValues(total), (PAIR,), ([(0, 1)],))


def test_a_generator_is_used_once():
    def sums(group):
        values = (x for x in group)
        return sum(values), sum(values)

    require_read_as_run(lambda p: p.groupByKey().mapValues(sums), PAIR)


@pytest.mark.parametrize(
    "program",
    [
        lambda p: p.groupByKey().map(lambda row: row[0] + sum(row[1])),
        lambda p: p.groupByKey().count(),
        lambda p: p.groupByKey().keys(),
        lambda p: p.groupByKey().values().map(len),
        lambda p: p.groupByKey().isEmpty(),
        lambda p: p.groupByKey().filter(lambda row: len(row[1]) > 1).mapValues(sum),
        lambda p: p.groupByKey().filter(lambda row: row[0] > 0).filter(lambda row: sum(row[1]) > 0).count(),
        lambda p: p.groupByKey().mapValues(list).mapValues(len),
        lambda p: p.groupByKey().mapValues(lambda g: (g, 1)).mapValues(lambda pair: sum(pair[0]) + pair[1]),
        lambda p: p.groupByKey().flatMap(lambda row: [row[0], len(row[1])]),
        lambda p: p.groupByKey().flatMap(lambda row: [] if len(row[1]) > 1 else [row[0]]),
        lambda p: p.groupByKey().flatMapValues(lambda g: g),
        lambda p: p.groupByKey().flatMapValues(lambda g: (x + 1 for x in g if x > 0)),
        lambda p: p.groupByKey().flatMapValues(lambda g: (x - max(g) for x in g)),
        lambda p: p.groupByKey().flatMap(lambda row: ((row[0], x, len(row[1])) for x in row[1])),
        lambda p: p.groupByKey().flatMapValues(sorted),
        lambda p: p.groupByKey().mapValues(list).flatMapValues(lambda x: x),
        lambda p: p.groupByKey().flatMapValues(lambda g: [x - 1 for x in g if x]),
        lambda p: p.groupByKey().flatMapValues(lambda g: (x for x in g if x == max([y for y in g]))),
        lambda p: p.groupByKey().flatMapValues(lambda g: map(abs, g)),
        lambda p: p.groupByKey().filter(lambda row: len(row[1]) > 1).flatMapValues(list),
        lambda p: p.groupByKey().flatMapValues(lambda g: list(x * 2 for x in g)).map(lambda row: row[1]),
        lambda p: p.groupBy(lambda row: row[1] % 2).mapValues(lambda g: sum(x[0] for x in g)),
        lambda p: p.groupByKey(numPartitions=2).mapValues(sum).reduceByKey(max),
        lambda p: p.groupByKey().mapValues(sum).groupByKey().mapValues(len),
        lambda p: p.groupByKey().mapValues(sum).collectAsMap(),
        lambda p: p.groupByKey().mapValues(len).join(p.reduceByKey(operator.add)),
        lambda p: p.reduceByKey(max).collectAsMap(),
        lambda p: p.combineByKey(
            lambda v: (v, 1), lambda c, v: (c[0] + v, c[1] + 1), lambda a, b: (a[0] + b[0], a[1] + b[1])
        ),
        lambda p: p.combineByKey(twice, lambda c, v: max(c, 2 * v), max),
        lambda p: p.foldByKey(0, operator.add, numPartitions=2),
        lambda p: p.aggregateByKey((0, 0), lambda a, v: (a[0] + v, a[1] + 1), lambda a, b: (a[0] + b[0], a[1] + b[1])),
    ],
    ids=range(32),
)
def test_programs_with_groups_are_read_as_they_run(program: Program):
    require_read_as_run(program, PAIR)


@pytest.mark.parametrize(
    "program",
    [
        lambda p, q: p.cogroup(q).mapValues(lambda groups: len(groups[0]) * len(groups[1])),
        lambda p, q: p.cogroup(q).mapValues(lambda groups: sum(groups[0]) + sum(len(x) for x in groups[1])),
        lambda p, q: p.cogroup(q).filter(lambda row: len(row[1][1]) == 0).flatMapValues(lambda groups: groups[0]),
        lambda p, q: p.cogroup(q).flatMapValues(lambda groups: groups[1]),
        lambda p, q: p.cogroup(q).flatMapValues(lambda groups: ((x, len(groups[0])) for x in groups[1])),
        lambda p, q: p.cogroup(q).flatMapValues(
            lambda groups: (x for x in groups[0] if not groups[1] and len(groups[0]) > 1)
        ),
        lambda p, q: p.cogroup(q).mapValues(lambda groups: max(groups[0]) if groups[0] else -1),
        lambda p, q: p.cogroup(q).mapValues(lambda groups: max(groups[0], default=-1)),
        lambda p, q: p.cogroup(q).mapValues(lambda groups: max(groups[0])),
        lambda p, q: p.cogroup(q).mapValues(lambda groups: sorted(groups[1])[0]),
        lambda p, q: p.cogroup(q).mapValues(lambda groups: functools.reduce(operator.add, groups[0], 0)),
        lambda p, q: p.cogroup(q).mapValues(lambda groups: (any(groups[0]), all(x == "a" for x in groups[1]))),
        lambda p, q: p.cogroup(q).mapValues(lambda groups: len(set(groups[0])) + len(groups[1])),
        lambda p, q: p.cogroup(q).count(),
        lambda p, q: p.cogroup(q).mapValues(lambda groups: [len(group) for group in groups]).map(lambda row: row[1][0]),
        lambda p, q: (
            p.cogroup(q).mapValues(lambda groups: (list(groups[0]), groups[1])).mapValues(lambda both: len(both[0]))
        ),
        lambda p, q: p.groupWith(q).keys(),
    ],
    ids=range(17),
)
def test_programs_with_cogroup_are_read_as_they_run(program: Program):
    require_read_as_run(program, PAIR, (int, str))


@pytest.mark.parametrize(
    "program",
    [
        lambda p: p.map(lambda row: Sale(*row)).map(lambda sale: sale.price),
        lambda p: p.map(lambda row: Sale(*row)),
        lambda p: p.map(lambda row: Order(*row)),
        lambda p: (
            p.map(lambda row: Order(*row)).filter(lambda order: order.customer > 0).map(lambda order: order.price)
        ),
        lambda p: p.map(lambda row: Sale(*row)).map(Sale.doubled),
        lambda p: p.map(lambda row: Sale(*row)).map(lambda sale: sale._replace(price=0)).distinct(),
        lambda p: p.map(lambda row: Sale(*row)).reduceByKey(operator.add),
        lambda p: p.map(lambda row: (row[0], Sale(*row))).reduceByKey(lambda a, b: Sale(a.shop, a.price + b.price)),
        lambda p: (
            p.map(lambda row: Sale(*row)).groupBy(lambda sale: sale.shop).mapValues(lambda g: sum(s.price for s in g))
        ),
        lambda p: (
            p.map(lambda row: Order(*row)).groupBy(lambda o: o.customer).mapValues(lambda g: max(o.price for o in g))
        ),
        lambda p: p.groupByKey().map(lambda row: Sale(row[0], sum(row[1]))).map(lambda sale: sale.doubled()),
        lambda p: p.map(lambda row: (Sale(*row), 1)).groupByKey().map(lambda row: row[0].price + sum(row[1])),
        lambda p: (
            p.map(lambda row: Sale(*row)).keyBy(lambda sale: sale.shop).join(p).mapValues(lambda both: both[0].price)
        ),
        lambda p: p.map(lambda row: Sale(*row)).aggregate(0, lambda a, sale: a + sale.price, operator.add),
        lambda p: (
            p.map(lambda row: Sale(*row)).sortBy(lambda sale: (sale.price, sale.shop)).map(lambda sale: sale.shop)
        ),
        lambda p: p.map(lambda row: Sale(*row)).takeOrdered(2, key=lambda sale: (sale.price, sale.shop)),
        lambda p: p.flatMap(lambda row: [Sale(row[0], 1), Sale(row[1], 2)]).map(lambda sale: sale.shop),
        lambda p: (
            p.map(lambda row: Sale(*row)).fold(Sale(0, 0), lambda a, b: Sale(a.shop + b.shop, a.price + b.price)).price
        ),
        lambda p: p.map(lambda row: Sale(*row)).reduce(lambda a, b: max(a, b)).price,
        lambda p: p.map(lambda row: Sale(*row)).cartesian(p).map(lambda both: both[0].price + both[1][0]),
        lambda p: p.map(lambda row: Sale(*row)).union(p.map(lambda row: Sale(1, 1))).map(lambda sale: sale.price),
        lambda p: p.map(lambda row: Sale(*row)).countByValue(),
        lambda p: p.map(lambda row: Sale(*row)).subtract(p.map(lambda row: (1, row[1]))).map(lambda sale: sale.price),
    ],
    ids=range(23),
)
def test_namedtuples_and_dataclasses_are_seen_as_what_they_are(program: Program):
    require_read_as_run(program, PAIR)


@pytest.mark.parametrize(
    "program",
    [
        lambda p: p.map(lambda row: Sale(*row) if row[0] else row),
        lambda p: p.map(lambda row: Sale(*row)).union(p).map(lambda row: row[0]),
        lambda p: p.map(lambda row: Sale(*row)).reduce(lambda a, b: (a[0] + b[0], a[1] + b[1])),
        lambda p: p.map(lambda row: Order(*row)).sortBy(lambda order: order),
        lambda p: p.map(lambda row: Sale(*row)).groupBy(lambda s: s.shop).mapValues(lambda g: max(g).price),
        lambda p: p.map(lambda row: Order(*row)).reduceByKey(operator.add),
    ],
    ids=range(6),
)
def test_rows_of_several_kinds_are_refused(program: Program):
    with pytest.raises(UnsupportedError):
        as_read(program, (PAIR,), ([(0, 1), (1, 2)],))


BEFORE = [
    lambda p: p,
    lambda p: p.mapValues(lambda v: v * 2 - 1),
    lambda p: p.map(lambda row: (row[1] % 2, row[0])),
    lambda p: p.filter(lambda row: row[1] > 0),
    lambda p: p.union(p.mapValues(lambda v: v + 1)),
    lambda p: p.distinct(),
    lambda p: p.reduceByKey(operator.add),
]
GROUPED = [
    lambda p: p.groupByKey(),
    lambda p: p.groupBy(lambda row: row[0] > 0).mapValues(lambda g: map(lambda row: row[1], g)),
    lambda p: p.groupByKey().filter(lambda row: len(row[1]) > 1),
    lambda p: p.cogroup(p.filter(lambda row: row[1] > 1)).mapValues(lambda groups: groups[0]),
    lambda p: p.groupByKey().mapValues(list),
]
AFTER = [
    lambda q: q,
    lambda q: q.keys(),
    lambda q: q.count(),
    lambda q: q.collectAsMap(),
    lambda q: q.map(lambda row: (row[1], 1)).reduceByKey(operator.add),
    lambda q: q.groupBy(lambda row: row[1]).mapValues(len),
    lambda q: q.filter(lambda row: row[0] == 1),
    lambda q: q.takeOrdered(2, key=lambda row: row[0]),
    lambda q: q.sortByKey().collect(),
    lambda q: q.leftOuterJoin(q.filter(lambda row: row[0] > 0)),
]


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_with_groups_are_read_as_they_run(seed: int):
    chance = random.Random(seed)
    before, grouped, function, after = (chance.choice(each) for each in (BEFORE, GROUPED, OF_A_GROUP, AFTER))
    program = lambda p: after(grouped(before(p)).mapValues(function))

    try:
        require_read_as_run(program, PAIR, seed=seed, tries=15)
    except UnsupportedError:
        pytest.skip("refused")
