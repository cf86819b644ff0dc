"""RDDs that note what is done with them: a program that is run on these shows what it computes.

Every method that the program calls makes a relation; an action gives a value that stands for the result. Where the
program decides something by such a value, it is run once for each answer.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from streamtight.errors import UnsupportedError
from streamtight.program.relation import (
    Aggregate,
    Distinct,
    Each,
    Extreme,
    First,
    Fold,
    Function,
    Grouped,
    How,
    Matching,
    Place,
    Product,
    Relation,
    Total,
    Union,
)

Value = Callable[[Aggregate], Any]
"""What stands for the value of an aggregate."""

_FREE = ("cache", "persist", "unpersist", "checkpoint", "localCheckpoint", "coalesce", "repartition", "setName")
"""Methods that do not change what is in an RDD."""
_REFUSED = {
    "zip": "the order of rows, which Spark does not fix",
    "zipWithIndex": "the order of rows, which Spark does not fix",
    "zipWithUniqueId": "the partitions",
    "glom": "the partitions",
    "mapPartitions": "the partitions",
    "mapPartitionsWithIndex": "the partitions",
    "getNumPartitions": "the partitions",
    "foreachPartition": "the partitions",
    "foreach": "side effects",
    "sample": "chance",
    "takeSample": "chance",
    "randomSplit": "chance",
    "pipe": "another program",
    "saveAsTextFile": "files",
    "toDF": "a SparkSession",
    "context": "the SparkContext",
    "ctx": "the SparkContext",
}


@dataclass(frozen=True, slots=True)
class Collected:
    """The rows of a relation as a list; in the order of a key if there is one."""

    relation: Relation
    how: str = "list"


class RecordedRDD:
    """An RDD that notes what is done with it."""

    def __init__(self, relation: Relation, value: Value) -> None:
        self.relation = relation
        self._value = value

    def __getattr__(self, name: str) -> Any:
        if name in _FREE:
            return lambda *_, **__: self
        return _refuse(name, _REFUSED.get(name, "a meaning that is not known"))

    def __iter__(self) -> NoReturn:
        _refuse("iter", "rows one by one")

    def __bool__(self) -> NoReturn:
        _refuse("bool", "a truth value")

    def _made(self, relation: Relation) -> RecordedRDD:
        return RecordedRDD(relation, self._value)

    def _each(self, function: Function, how: How, name: str) -> RecordedRDD:
        return self._made(Each(self.relation, function, how, _place(name)))

    # -- row by row --------------------------------------------------------------------------------------------------

    def map(self, f: Function, preservesPartitioning: bool = False) -> RecordedRDD:  # noqa: N803
        return self._each(f, How.MAP, "map")

    def filter(self, f: Function) -> RecordedRDD:
        return self._each(f, How.FILTER, "filter")

    def flatMap(self, f: Function, preservesPartitioning: bool = False) -> RecordedRDD:  # noqa: N802, N803
        return self._each(f, How.FLAT_MAP, "flatMap")

    def mapValues(self, f: Function) -> RecordedRDD:  # noqa: N802
        return self._each(lambda pair: (pair[0], f(pair[1])), How.MAP, "mapValues")

    def flatMapValues(self, f: Function) -> RecordedRDD:  # noqa: N802
        return self._each(lambda pair: [(pair[0], each) for each in f(pair[1])], How.FLAT_MAP, "flatMapValues")

    def keys(self) -> RecordedRDD:
        return self._each(_key, How.MAP, "keys")

    def values(self) -> RecordedRDD:
        return self._each(_second, How.MAP, "values")

    def keyBy(self, f: Function) -> RecordedRDD:  # noqa: N802
        return self._each(lambda row: (f(row), row), How.MAP, "keyBy")

    # -- two RDDs ----------------------------------------------------------------------------------------------------

    def cartesian(self, other: RecordedRDD) -> RecordedRDD:
        return self._made(Product(self.relation, _other(other, "cartesian"), _place("cartesian")))

    def union(self, other: RecordedRDD) -> RecordedRDD:
        return self._made(Union(self.relation, _other(other, "union"), _place("union")))

    __add__ = union

    def join(self, other: RecordedRDD, numPartitions: int | None = None) -> RecordedRDD:  # noqa: N803
        return self._made(self._joined(other, "join"))

    def leftOuterJoin(self, other: RecordedRDD, numPartitions: int | None = None) -> RecordedRDD:  # noqa: N802, N803
        place = _place("leftOuterJoin")
        alone = Matching(self.relation, _other(other, "leftOuterJoin"), _same_key, False, place)
        padded = Each(alone, lambda pair: (pair[0], (pair[1], None)), How.MAP, place)
        return self._made(Union(self._joined(other, "leftOuterJoin"), padded, place))

    def rightOuterJoin(self, other: RecordedRDD, numPartitions: int | None = None) -> RecordedRDD:  # noqa: N802, N803
        place = _place("rightOuterJoin")
        alone = Matching(_other(other, "rightOuterJoin"), self.relation, _same_key, False, place)
        padded = Each(alone, lambda pair: (pair[0], (None, pair[1])), How.MAP, place)
        return self._made(Union(self._joined(other, "rightOuterJoin"), padded, place))

    def fullOuterJoin(self, other: RecordedRDD, numPartitions: int | None = None) -> RecordedRDD:  # noqa: N802, N803
        place = _place("fullOuterJoin")
        left = self.leftOuterJoin(other).relation
        alone = Matching(_other(other, "fullOuterJoin"), self.relation, _same_key, False, place)
        return self._made(Union(left, Each(alone, lambda pair: (pair[0], (None, pair[1])), How.MAP, place), place))

    def _joined(self, other: RecordedRDD, name: str) -> Relation:
        place = _place(name)
        pairs = Product(self.relation, _other(other, name), place)
        met = Each(pairs, lambda both: both[0][0] == both[1][0], How.FILTER, place)
        return Each(met, lambda both: (both[0][0], (both[0][1], both[1][1])), How.MAP, place)

    def subtract(self, other: RecordedRDD, numPartitions: int | None = None) -> RecordedRDD:  # noqa: N803
        return self._made(Matching(self.relation, _other(other, "subtract"), operator.eq, False, _place("subtract")))

    def subtractByKey(self, other: RecordedRDD, numPartitions: int | None = None) -> RecordedRDD:  # noqa: N802, N803
        place = _place("subtractByKey")
        return self._made(Matching(self.relation, _other(other, "subtractByKey"), _same_key, False, place))

    def intersection(self, other: RecordedRDD) -> RecordedRDD:
        place = _place("intersection")
        both = Matching(self.relation, _other(other, "intersection"), operator.eq, True, place)
        return self._made(Distinct(both, place))

    def distinct(self, numPartitions: int | None = None) -> RecordedRDD:  # noqa: N803
        return self._made(Distinct(self.relation, _place("distinct")))

    # -- by key ------------------------------------------------------------------------------------------------------

    def reduceByKey(self, func: Function, numPartitions: Any = None, partitionFunc: Any = None) -> RecordedRDD:  # noqa: N802, N803
        return self._grouped(Fold(None, func, func, _second, needs_row=True, name="reduceByKey"))

    def foldByKey(self, zeroValue: Any, func: Function, *_: Any) -> RecordedRDD:  # noqa: N802, N803
        return self._grouped(Fold(zeroValue, func, func, _second, name="foldByKey"))

    def aggregateByKey(self, zeroValue: Any, seqFunc: Function, combFunc: Function, *_: Any) -> RecordedRDD:  # noqa: N802, N803
        return self._grouped(Fold(zeroValue, seqFunc, combFunc, _second, name="aggregateByKey"))

    def _grouped(self, summary: Any) -> RecordedRDD:
        return self._made(Grouped(self.relation, _key, (summary,), _place(summary.name)))

    def countByKey(self) -> Collected:  # noqa: N802
        count = Total(lambda row: 1, name="countByKey")
        return Collected(Grouped(self.relation, _key, (count,), _place("countByKey")), "dict")

    def countByValue(self) -> Collected:  # noqa: N802
        count = Total(lambda row: 1, name="countByValue")
        return Collected(Grouped(self.relation, lambda row: row, (count,), _place("countByValue")), "dict")

    def groupByKey(self, *_: Any) -> NoReturn:  # noqa: N802
        _refuse("groupByKey", "all values of a key at once; reduceByKey says the same for a sum, a minimum or a count")

    # -- actions -----------------------------------------------------------------------------------------------------

    def _aggregate(self, summary: Any) -> Any:
        return self._value(Aggregate(self.relation, summary, _place(summary.name)))

    def count(self) -> Any:
        return self._aggregate(Total(lambda row: 1, name="count"))

    def sum(self) -> Any:
        return self._aggregate(Total(lambda row: row, name="sum"))

    def isEmpty(self) -> Any:  # noqa: N802
        return self.count() == 0

    def mean(self) -> Any:
        count = self.count()
        return 0.0 if count == 0 else self.sum() / count

    def min(self, key: Function | None = None) -> Any:
        return self._extreme("min", key, greatest=False)

    def max(self, key: Function | None = None) -> Any:
        return self._extreme("max", key, greatest=True)

    def _extreme(self, name: str, key: Function | None, *, greatest: bool) -> Any:
        if key is not None:
            _refuse(name, "a key, where several rows may be the one")
        self._require_row(name)
        return self._aggregate(Extreme(lambda row: row, greatest, name))

    def reduce(self, f: Function) -> Any:
        self._require_row("reduce")
        return self._aggregate(Fold(None, f, f, needs_row=True, name="reduce"))

    treeReduce = reduce  # noqa: N815

    def fold(self, zeroValue: Any, op: Function) -> Any:  # noqa: N803
        return self._aggregate(Fold(zeroValue, op, op, name="fold"))

    def aggregate(self, zeroValue: Any, seqOp: Function, combOp: Function) -> Any:  # noqa: N803
        return self._aggregate(Fold(zeroValue, seqOp, combOp, name="aggregate"))

    def treeAggregate(self, zeroValue: Any, seqOp: Function, combOp: Function, depth: int = 2) -> Any:  # noqa: N802, N803
        return self._aggregate(Fold(zeroValue, seqOp, combOp, name="treeAggregate"))

    def _require_row(self, name: str) -> None:
        if self.count() == 0:
            raise ValueError(f"Can not {name}() empty RDD")

    def collect(self) -> Collected:
        return Collected(self.relation)

    def collectAsMap(self) -> NoReturn:  # noqa: N802
        _refuse("collectAsMap", "the last row of each key, which Spark does not fix")

    def takeOrdered(self, num: int, key: Function | None = None) -> Collected:  # noqa: N802
        return Collected(First(self.relation, num, key or _itself, place=_place("takeOrdered")), "ordered")

    def top(self, num: int, key: Function | None = None) -> Collected:
        return Collected(First(self.relation, num, key or _itself, descending=True, place=_place("top")), "ordered")


def _key(pair: Any) -> Any:
    return pair[0]


def _second(pair: Any) -> Any:
    return pair[1]


def _itself(row: Any) -> Any:
    return row


def _same_key(one: Any, other: Any) -> Any:
    return one[0] == other[0]


def _other(other: object, name: str) -> Relation:
    if isinstance(other, RecordedRDD):
        return other.relation
    return _refuse(name, f"an RDD that is no input, {other!r}")


def _place(operation: str) -> Place:
    """Where the user called a method: the first frame outside of this module."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    return Place(operation, frame.f_code.co_filename, frame.f_lineno)


def _refuse(name: str, needs: str) -> NoReturn:
    place = _place(name)
    raise UnsupportedError(
        str(place),
        needed="an operation whose meaning is known, and does not depend on how rows are spread and ordered",
        came=f"{name}, which needs {needs}",
        hint="map, filter, join, reduceByKey, aggregate; or tight.compare, which runs both programs",
    )
