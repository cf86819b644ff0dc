"""RDDs in plain Python give what PySpark's give: the same programs, rows and partitions on both."""

from __future__ import annotations

import math
import operator
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from pyspark import RDD
from pyspark.sql import SparkSession

from streamtight.method.prove.local import LocalRDD

pytestmark = pytest.mark.slow

Rows = list[list[Any]]
"""The rows of each partition."""

# Of two RDDs of numbers, n and m, and two of pairs, p and q.
BAGS: dict[str, Callable[..., Any]] = {
    "map": lambda n, m, p, q: n.map(lambda x: x * 2),
    "filter by truth": lambda n, m, p, q: n.filter(lambda x: x % 3),
    "flatMap": lambda n, m, p, q: n.flatMap(lambda x: range(x)),
    "flatMap of strings": lambda n, m, p, q: n.flatMap(str),
    "mapValues": lambda n, m, p, q: p.mapValues(lambda v: v is None),
    "flatMapValues": lambda n, m, p, q: p.flatMapValues(lambda v: [v, v] if v else []),
    "keys": lambda n, m, p, q: p.keys(),
    "values": lambda n, m, p, q: p.values(),
    "keyBy": lambda n, m, p, q: n.keyBy(lambda x: x % 2),
    "cartesian": lambda n, m, p, q: n.cartesian(m),
    "self product": lambda n, m, p, q: n.cartesian(n).filter(lambda xy: xy[0] > xy[1]),
    "join": lambda n, m, p, q: p.join(q),
    "self join": lambda n, m, p, q: p.join(p),
    "leftOuterJoin": lambda n, m, p, q: p.leftOuterJoin(q),
    "rightOuterJoin": lambda n, m, p, q: p.rightOuterJoin(q, 3),
    "fullOuterJoin": lambda n, m, p, q: p.fullOuterJoin(q),
    "join of joins": lambda n, m, p, q: p.join(q).leftOuterJoin(p),
    "cogroup": lambda n, m, p, q: p.cogroup(q).mapValues(lambda s: (len(s[0]), sorted(map(str, s[1])))),
    "groupByKey": lambda n, m, p, q: p.groupByKey().mapValues(lambda vs: (len(vs), sorted(map(str, vs)))),
    "groupBy": lambda n, m, p, q: n.groupBy(lambda x: x % 3).mapValues(sorted),
    "union": lambda n, m, p, q: n.union(m).union(n),
    "plus": lambda n, m, p, q: n + m,
    "distinct": lambda n, m, p, q: n.distinct(),
    "distinct pairs": lambda n, m, p, q: p.union(q).distinct(),
    "subtract": lambda n, m, p, q: n.subtract(m),
    "subtract pairs": lambda n, m, p, q: p.subtract(q),
    "subtractByKey": lambda n, m, p, q: p.subtractByKey(q),
    "intersection": lambda n, m, p, q: n.intersection(m),
    "reduceByKey": lambda n, m, p, q: n.keyBy(lambda x: x % 3).reduceByKey(operator.add),
    "foldByKey": lambda n, m, p, q: n.keyBy(lambda x: x % 3).foldByKey(0, operator.add),
    "foldByKey that is not neutral": lambda n, m, p, q: n.keyBy(lambda x: x % 3).foldByKey(10, operator.add),
    "foldByKey as count": lambda n, m, p, q: n.keyBy(lambda x: x % 3).foldByKey(0, lambda c, x: c + 1),
    "aggregateByKey": lambda n, m, p, q: p.aggregateByKey(1, lambda c, v: c + 1, operator.add),
    "aggregateByKey of tuples": lambda n, m, p, q: n.keyBy(lambda x: x % 3).aggregateByKey(
        (0, 0), lambda c, x: (c[0] + x, c[1] + 1), lambda a, b: (a[0] + b[0], a[1] + b[1])
    ),
    "combineByKey": lambda n, m, p, q: p.combineByKey(lambda v: [v], lambda vs, v: [*vs, v], operator.add).mapValues(
        len
    ),
    "sortBy": lambda n, m, p, q: n.sortBy(lambda x: -x),
    "sortByKey": lambda n, m, p, q: p.sortByKey(),
    "repartition": lambda n, m, p, q: n.repartition(3),
    "coalesce": lambda n, m, p, q: n.coalesce(2),
    "cache": lambda n, m, p, q: n.cache().persist(),
    "partitionBy": lambda n, m, p, q: p.partitionBy(3),
}

# These depend on partitions, on the order inside them, or on a stable sort; nothing here is shuffled before.
VALUES: dict[str, Callable[..., Any]] = {
    "collect": lambda n, m, p, q: n.map(lambda x: x + 1).collect(),
    "reduce": lambda n, m, p, q: n.reduce(operator.sub),
    "treeReduce": lambda n, m, p, q: n.treeReduce(operator.sub),
    "fold": lambda n, m, p, q: n.fold(10, operator.add),
    "fold as count": lambda n, m, p, q: n.fold(0, lambda c, x: c + 1),
    "fold as minus": lambda n, m, p, q: n.fold(1, operator.sub),
    "aggregate": lambda n, m, p, q: n.aggregate(10, lambda c, x: c + 1, operator.add),
    "aggregate of lists": lambda n, m, p, q: n.aggregate([], lambda s, x: s.append(x) or s, operator.add),
    "treeAggregate": lambda n, m, p, q: n.treeAggregate(10, lambda c, x: c + 1, operator.add),
    "deep treeAggregate": lambda n, m, p, q: n.union(m).union(n).treeAggregate(1, operator.add, operator.add, 3),
    "count": lambda n, m, p, q: n.count(),
    "sum": lambda n, m, p, q: n.sum(),
    "min": lambda n, m, p, q: n.min(),
    "max": lambda n, m, p, q: n.max(lambda x: -x),
    "max of pairs with ties": lambda n, m, p, q: p.max(lambda kv: kv[0]),
    "mean": lambda n, m, p, q: n.mean(),
    "isEmpty": lambda n, m, p, q: n.filter(lambda x: x > 2).isEmpty(),
    "first": lambda n, m, p, q: n.filter(lambda x: x > 1).first(),
    "take": lambda n, m, p, q: n.take(3),
    "take none": lambda n, m, p, q: n.take(-1),
    "top": lambda n, m, p, q: n.top(2),
    "top with ties": lambda n, m, p, q: p.top(2, key=lambda kv: kv[0]),
    "takeOrdered with ties": lambda n, m, p, q: p.takeOrdered(2, key=lambda kv: -kv[0]),
    "countByKey": lambda n, m, p, q: p.countByKey(),
    "countByValue": lambda n, m, p, q: n.countByValue(),
    "sortBy with ties": lambda n, m, p, q: p.sortBy(lambda kv: kv[0] % 2).collect(),
    "sortBy descending": lambda n, m, p, q: p.sortBy(lambda kv: kv[0] % 2, ascending=False).collect(),
    "sortByKey by a function": lambda n, m, p, q: p.sortByKey(keyfunc=lambda k: k % 2).collect(),
    "sortByKey by another type": lambda n, m, p, q: p.sortByKey(numPartitions=2, keyfunc=str).collect(),
    "collectAsMap": lambda n, m, p, q: p.collectAsMap(),
    "lookup": lambda n, m, p, q: p.lookup(1),
    "lookup of a shuffled one": lambda n, m, p, q: sorted(p.mapValues(str).partitionBy(2).lookup(1)),
    "a row that raises": lambda n, m, p, q: n.map(lambda x: 1 // (x - 2)).count(),
    "a row that raises behind the first": lambda n, m, p, q: n.map(lambda x: 1 // (x - 2)).first(),
    "True is 1": lambda n, m, p, q: n.map(lambda x: x > 0).union(n).distinct().count(),
}


def on_spark(spark: SparkSession, partitions: Rows) -> RDD[Any]:
    if not partitions:
        return spark.sparkContext.emptyRDD()
    return spark.sparkContext.parallelize(partitions, len(partitions)).flatMap(lambda rows: rows)


def in_python(partitions: Rows) -> LocalRDD:
    return LocalRDD.of([row for part in partitions for row in part], deal=[len(part) for part in partitions])


def drawn(rng: random.Random) -> tuple[Rows, Rows, Rows, Rows]:
    """Rows for n, m, p and q, in a few partitions."""

    def spread(row: Callable[[], Any]) -> Rows:
        return [[row() for _ in range(rng.choice((0, 1, 3, 5)))] for _ in range(rng.randint(1, 3))]

    def number() -> int:
        return rng.randint(-3, 5)

    def pair() -> tuple[int, int | None]:
        return rng.randint(0, 2), rng.choice((None, 0, 1, 2))

    return spread(number), spread(number), spread(pair), spread(pair)


NOTHING: tuple[Rows, ...] = ([[], []],) * 4
NO_PARTITIONS: tuple[Rows, ...] = ([],) * 4


@pytest.mark.parametrize("seed", range(2))
def test_bags_are_those_of_pyspark(spark: SparkSession, seed: int) -> None:
    rows = drawn(random.Random(seed))
    real, local = [on_spark(spark, part) for part in rows], [in_python(part) for part in rows]

    def marked(name: str, rdd: Any) -> Any:
        return rdd.map(lambda row: (name, repr(row)))

    # One job for all.
    everything = spark.sparkContext.union([marked(name, program(*real)) for name, program in BAGS.items()])
    expected: dict[str, Counter[str]] = {name: Counter() for name in BAGS}
    for name, row in everything.collect():
        expected[name][row] += 1
    for name, program in BAGS.items():
        assert Counter(map(repr, program(*local).collect())) == expected[name], f"{name} of {rows} (seed {seed})"


@pytest.mark.parametrize("rows", [drawn(random.Random(7)), NOTHING, NO_PARTITIONS], ids=["some", "none", "no parts"])
def test_values_are_those_of_pyspark(
    spark: SparkSession, rows: tuple[Rows, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without it, PySpark refuses to look up a key of a shuffled RDD.
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    real, local = [on_spark(spark, part) for part in rows], [in_python(part) for part in rows]
    for name, program in VALUES.items():
        expected, came = outcome(program, real), outcome(program, local)
        if isinstance(expected, float):
            assert math.isclose(came, expected, abs_tol=1e-12), f"{name} of {rows}"
        else:
            assert came == expected, f"{name} of {rows}"


def outcome(program: Callable[..., Any], rdds: list[Any]) -> Any:
    try:
        return program(*rdds)
    except Exception as error:
        # Spark wraps what functions raise.
        names = "ValueError", "TypeError", "ZeroDivisionError"
        return next(("raised", name) for name in names if name in f"{type(error).__name__}: {error}")
