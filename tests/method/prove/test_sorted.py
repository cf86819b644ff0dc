# ruff: noqa: C416, RUF005, SIM300  the programs are as users may write them
from __future__ import annotations

import operator
from typing import Any

import pytest
from read_and_run import Program, as_read, require_read_as_run

from streamtight.errors import UnsupportedError

PAIR = (int, int)


@pytest.mark.parametrize(
    "program",
    [
        lambda r: r.sortBy(lambda x: -x),
        lambda r: r.sortBy(lambda x: x).map(lambda x: x + 1),
        lambda r: r.sortBy(lambda x: x).collect(),
        lambda r: r.sortBy(lambda x: -x).take(2),
        lambda r: r.sortBy(lambda x: x, ascending=False).take(3),
        lambda r: r.sortBy(lambda x: x, False).first(),
        lambda r: r.sortBy(lambda x: x).first(),
        lambda r: r.sortBy(lambda x: 1 // x),
        lambda r: r.sortBy(lambda x: x).count(),
        lambda r: r.top(2),
        lambda r: r.top(0),
        lambda r: r.top(-1),
        lambda r: r.takeOrdered(-1),
        lambda r: r.takeOrdered(2, key=lambda x: -x),
        lambda r: r.top(1)[0],
        lambda r: r.takeOrdered(3)[0] + 1,
        lambda r: sum(r.top(1)),
        lambda r: len(r.top(3)),
        lambda r: bool(r.takeOrdered(3)),
        lambda r: r.top(1) == [],
        lambda r: r.max(key=lambda x: -x),
        lambda r: r.min(key=lambda x: x),
        lambda r: r.take(1) == [],
        lambda r: [] != r.take(1),
        lambda r: len(r.take(2)) == 2,
        lambda r: 0 if r.take(1) else 1,
        lambda r: not r.filter(lambda x: x > 1).take(3),
        lambda r: len(r.take(0)),
        lambda r: len(r.take(-3)),
        lambda r: r.collect() == [],
        lambda r: not r.collect(),
        lambda r: r.isEmpty(),
        lambda r: r.map(lambda x: x > 0).sum(),
        lambda r: r.map(lambda x: (x, 1)).lookup(1),
        lambda r: r.countByValue() == {},
    ],
    ids=range(35),
)
def test_what_is_sorted_or_taken_is_read_as_it_runs(program: Program):
    require_read_as_run(program, int)


@pytest.mark.parametrize(
    "program",
    [
        lambda p: p.sortByKey().map(lambda row: row[1]),
        lambda p: p.sortByKey(False).keys(),
        lambda p: p.sortBy(lambda row: (row[1], row[0])).take(2),
        lambda p: p.sortBy(lambda row: (row[1], row[0])).first()[1],
        lambda p: p.reduceByKey(operator.add).sortByKey().collectAsMap(),
        lambda p: p.partitionBy(3).mapValues(abs),
        lambda p: p.lookup(1),
        lambda p: p.max(key=lambda row: row[0])[0],
        lambda p: p.countByKey(),
        lambda p: p.subtractByKey(p.filter(lambda row: row[1] > 0)),
    ],
    ids=range(10),
)
def test_what_is_sorted_by_key_is_read_as_it_runs(program: Program):
    require_read_as_run(program, PAIR)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (lambda r: r.first(), "order"),
        (lambda r: r.take(2), "not sorted"),
        (lambda r: r.take(1)[0], "not sorted"),
        (lambda r: sum(r.take(2)), "not sorted"),
        (lambda r: r.sortBy(lambda x: x).map(lambda x: x).first(), "order"),
        (lambda r: r.sortBy(lambda x: x).repartition(3).take(1), "not sorted"),
        (lambda r: r.map(lambda x: 1 // x).take(1) == [], "raise"),
        (lambda r: r.map(lambda x: 1 // x).isEmpty(), "raise"),
        (lambda r: r.sortBy(lambda x: None if x else 1), "compared"),
        (lambda r: r.map(lambda x: None if x else 1).max(), "compared"),
        (lambda r: r.takeOrdered(2, key=lambda x: (x, None if x else 1)), "compared"),
        (lambda r: r.collect()[0], "one by one"),
        (lambda r: [x for x in r.collect()], "one by one"),
        (lambda r: r.collect() == [1], "one by one"),
        (lambda r: r.collect() + [1], "one by one"),
        (lambda r: r.top(2)[1], "one by one"),
        (lambda r: r.countByValue()[1], "one by one"),
        (lambda r: r.take(r.count()), "known"),
        (lambda r: len(r.take(100)), "100"),
        (lambda r: r.map(lambda x: (x, x)).collectAsMap(), "last row"),
        (lambda r: r.map(lambda x: (x, 1)).sortByKey(keyfunc=lambda k: -k), "keyfunc"),
    ],
    ids=range(21),
)
def test_what_depends_on_the_order_of_rows_is_refused(program: Program, reason: str):
    class Unknown(int):
        """A count that is not known as it is."""

    def counted(r: Any) -> Any:
        r.count = lambda: Unknown(1)
        return program(r)

    with pytest.raises(UnsupportedError, match=reason):
        as_read(counted if reason == "known" else program, (int,), ([1, 2],))


def test_rows_that_are_no_pairs_raise_where_spark_takes_them_apart():
    require_read_as_run(lambda p: p.map(lambda row: (row[0], row[1], 1)).reduceByKey(operator.add), PAIR)
    require_read_as_run(lambda p: p.map(lambda row: (row[0], row[1], 1)).mapValues(abs), PAIR)
