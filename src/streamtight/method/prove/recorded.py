"""RDDs that note what is done with them: a program that is run on these shows what it computes.

Every method that the program calls makes a relation; an action gives a value that stands for the result. Where the
program decides something by such a value, it is run once for each answer.
"""

from __future__ import annotations

import functools
import operator
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from streamtight.errors import UnsupportedError
from streamtight.method.prove.allowed import Snapshot
from streamtight.method.prove.groups import Groups, key_of_pair
from streamtight.method.prove.records import (
    Shape,
    flattened,
    holds_dataclass,
    is_dataclass,
    may_make_records,
    on_records,
    part,
    rebuilt,
    require_keys,
    require_same,
    shape_after,
    shape_of,
    together,
)
from streamtight.method.prove.typed import may_raise, require_combiners_that_merge, require_order
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
    NoRowError,
    Place,
    Product,
    Relation,
    Rows,
    Summary,
    Total,
    Union,
)
from streamtight.solver.symbolic.admit import Composed
from streamtight.solver.symbolic.values import Counted, Symbolic

Value = Callable[[Aggregate], Any]
"""What stands for the value of an aggregate."""

_MOST_TAKEN = 20
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


class _Notes:
    """What is noted while a program is run."""

    def __init__(self) -> None:
        self.calculated: list[tuple[Any, Relation]] = []
        """What Spark calculates at once, and of what."""
        self.functions: list[Snapshot] = []
        """What the program handed over, and what that had captured then."""
        self.refusal: UnsupportedError | None = None


_notes: list[_Notes] = []
"""Of the programs that are run at the moment."""


def _note(made: Any, relation: Relation) -> None:
    if _notes:
        _notes[-1].calculated.append((made, relation))


def noted(program: Callable[..., Any], inputs: Sequence[RecordedRDD]) -> Any:
    """What a program gives.

    What it had calculated and did not use counts as well, if it may raise. What was refused stays refused, whatever the
    program made of that. And functions must see the same when they are run as when they were handed over: Spark looks
    at what they captured at a shuffle, or at an action, and nobody wants to know.
    """
    notes = _Notes()
    _notes.append(notes)
    try:
        result = program(*inputs)
        for made, relation in notes.calculated:
            if made is not result and may_raise(relation):
                _count(relation, made._value)
        for one in notes.functions:
            if (name := one.changed()) is not None:
                _refuse(one.function.__name__, f"that {name}, which it captured, stays as it is")
        return result
    finally:
        _notes.pop()
        if notes.refusal is not None:
            raise notes.refusal


def _noting(cls: type) -> type:
    """The class, whose methods note the functions that they are given, and what they refuse."""
    for name, method in list(vars(cls).items()):
        if isinstance(method, types.FunctionType) and name not in ("__init__", "__getattr__"):
            setattr(cls, name, _noting_method(method))
    return cls


def _noting_method(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def noting(*given: Any, **named: Any) -> Any:
        if _notes:
            functions = (each for each in (*given[1:], *named.values()) if isinstance(each, types.FunctionType))
            _notes[-1].functions += map(Snapshot, functions)
        try:
            return method(*given, **named)
        except UnsupportedError as error:
            if _notes:
                _notes[-1].refusal = _notes[-1].refusal or error
            raise

    return noting


@_noting
class Collected(Counted):
    """The rows of a relation on the driver: a "list", an "ordered" list or a "dict". Whether there are any is known."""

    def __init__(self, relation: Relation, how: str, value: Value, shape: Shape) -> None:
        self.relation = relation
        self.how = how
        self._value = value
        self._shape = shape
        _note(self, relation)

    def row(self, row: Any) -> Any:
        """A row of the relation as one of these."""
        return rebuilt(row, self._shape)

    def length(self) -> Any:
        return _count(self.relation, self._value)

    def __bool__(self) -> bool:
        return bool(self.length() > 0)

    def __eq__(self, other: object) -> Any:
        if other == ({} if self.how == "dict" else []):
            return not self
        return self._refuse()

    def __ne__(self, other: object) -> Any:
        return not self == other

    def _refuse(self) -> NoReturn:
        place = _place(self.relation.place.operation)
        raise UnsupportedError(
            str(place),
            needed="operations of RDDs",
            came=f"rows that are used one by one on the driver, as a {'dict' if self.how == 'dict' else 'list'}",
            hint="count, sum, max or aggregate of the RDD, or the rows as the result",
        )

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse()

    def __hash__(self) -> int:
        self._refuse()

    def __len__(self) -> int:
        self._refuse()

    def _used(self, *_: object) -> NoReturn:
        self._refuse()

    def __getitem__(self, place: object) -> Any:
        self._refuse()

    def __iter__(self) -> Iterator[Any]:
        self._refuse()

    __contains__ = __reversed__ = __setitem__ = __delitem__ = _used
    __add__ = __radd__ = __iadd__ = __mul__ = __rmul__ = __or__ = __ror__ = __ior__ = _used
    __lt__ = __le__ = __gt__ = __ge__ = _used


@_noting
class Taken(Collected):
    """Some rows, of which only is known how many: which ones Spark takes is not fixed."""

    def __init__(self, relation: Relation, most: int, value: Value, place: Place) -> None:
        self._of, self._most, self._value, self._place = relation, most, value, place
        self.how, self._shape = "list", None

    @property
    def relation(self) -> Relation:  # type: ignore[override]
        """There is none that is the same for every order of the rows."""
        return self._refuse()

    def length(self) -> Any:
        return min(max(self._most, 0), _count(self._of, self._value))

    def __len__(self) -> int:
        return _at_most(self._most, _count(self._of, self._value), self._place)

    def _refuse(self) -> NoReturn:
        raise UnsupportedError(
            str(self._place),
            needed="rows that are the same in whatever order Spark has them",
            came=f"{self._place.operation} of an RDD that is not sorted: which rows these are Spark does not fix",
            hint="sortBy before it, takeOrdered, or count",
        )


@_noting
class Ordered(Collected):
    """The first rows in an order: how many they are, and the first of them, is known."""

    def __init__(self, first: First, value: Value, shape: Shape, row: Callable[[], Any]) -> None:
        super().__init__(first, "ordered", value, shape)
        self._most, self._of, self._row = first.count, first.of, row

    def length(self) -> Any:
        return min(self._most, _count(self._of, self._value))

    def __len__(self) -> int:
        return _at_most(self._most, _count(self._of, self._value), self.relation.place)

    def __getitem__(self, place: object) -> Any:
        if type(place) is not int or (place != 0 and (place, self._most) != (-1, 1)):
            self._refuse()
        if not self:
            raise NoRowError("list index out of range")
        return self._row()

    def __iter__(self) -> Iterator[Any]:
        if self._most != 1:
            self._refuse()
        return iter((self._row(),) if self else ())


def _at_most(most: int, count: Any, place: Place) -> int:
    """A number of rows, which the program has to know as it is: the same program is read for each."""
    if most > _MOST_TAKEN:
        _refuse(place.operation, f"the number of rows out of {most}")
    return next((number for number in range(most) if count == number), max(0, most))


def _count(relation: Relation, value: Value) -> Any:
    return value(Aggregate(relation, Total(lambda row: 1, name="count"), _place("count")))


def _free(rdd: RecordedRDD, name: str, given: Sequence[Any]) -> RecordedRDD | None:
    """What a method gives that does not change the rows, if it is called so that Spark does not raise."""
    _require_parts(name, *given)
    return None if name in ("checkpoint", "localCheckpoint") else rdd


def _require_parts(name: str, *numbers: Any) -> None:
    """Refuse what is no number of partitions, or none that is known: Spark may raise, or lose all rows."""
    for number in numbers:
        if isinstance(number, Symbolic) or (isinstance(number, int) and not isinstance(number, bool) and number < 1):
            _refuse(name, f"a number from 1 that is known, not {number if isinstance(number, int) else 'an aggregate'}")


@_noting
class RecordedRDD:
    """An RDD that notes what is done with it."""

    def __init__(self, relation: Relation, value: Value, *, shape: Shape = None, unique_keys: bool = False) -> None:
        self.relation = relation
        self._value = value
        self._shape = shape
        """Where in its rows there are records, which its relation has as plain tuples."""
        self._unique_keys = unique_keys
        """Whether no two rows have the same key, because it was made so."""

    def row(self, row: Any) -> Any:
        """A row of the relation as a row of the RDD."""
        return rebuilt(row, self._shape)

    def __getattr__(self, name: str) -> Any:
        if name in _FREE:
            return lambda *given, **named: _free(self, name, [*given, *named.values()])
        return self._unknown(name)

    def _unknown(self, name: str) -> NoReturn:
        _refuse(name, _REFUSED.get(name, "a meaning that is not known"))

    def __iter__(self) -> NoReturn:
        _refuse("iter", "rows one by one")

    def __bool__(self) -> NoReturn:
        _refuse("bool", "a truth value")

    def _made(self, relation: Relation, *, shape: Shape = None, unique_keys: bool = False) -> RecordedRDD:
        return RecordedRDD(relation, self._value, shape=shape, unique_keys=unique_keys)

    def _each(self, function: Function, how: How, name: str, *, keeps_keys: bool = False) -> RecordedRDD:
        place = _place(name)
        shape = shape_after(self.relation, self._shape, function, how, place)
        called = on_records(function, (self._shape,), many=how is How.FLAT_MAP)
        made = Each(self.relation, called, how, place)
        return self._made(made, shape=shape, unique_keys=keeps_keys and self._unique_keys)

    def _collected(self, relation: Relation, how: str = "list") -> Collected:
        return Collected(relation, how, self._value, self._shape)

    # -- row by row --------------------------------------------------------------------------------------------------

    def map(self, f: Function, preservesPartitioning: bool = False) -> RecordedRDD:  # noqa: N803
        return self._each(f, How.MAP, "map")

    def filter(self, f: Function) -> RecordedRDD:
        return self._each(f, How.FILTER, "filter", keeps_keys=True)

    def flatMap(self, f: Function, preservesPartitioning: bool = False) -> RecordedRDD:  # noqa: N802, N803
        return self._each(f, How.FLAT_MAP, "flatMap")

    def mapValues(self, f: Function) -> RecordedRDD:  # noqa: N802
        return self._each(_made_of(_on_value, f, "mapValues"), How.MAP, "mapValues", keeps_keys=True)

    def flatMapValues(self, f: Function) -> RecordedRDD:  # noqa: N802
        return self._each(_made_of(_on_each_value, f, "flatMapValues"), How.FLAT_MAP, "flatMapValues")

    def keys(self) -> RecordedRDD:
        return self._each(_key, How.MAP, "keys")

    def values(self) -> RecordedRDD:
        return self._each(_second, How.MAP, "values")

    def keyBy(self, f: Function) -> RecordedRDD:  # noqa: N802
        return self._each(_made_of(_with_key, f, "keyBy"), How.MAP, "keyBy")

    # -- two RDDs ----------------------------------------------------------------------------------------------------

    def cartesian(self, other: RecordedRDD) -> RecordedRDD:
        if may_raise(_other(other, "cartesian").relation):
            _refuse("cartesian", "the rows of the second RDD only if the first has some, and some of them may raise")
        product = Product(self.relation, other.relation, _place("cartesian"))
        return self._made(product, shape=together(self._shape, other._shape))

    def union(self, other: RecordedRDD) -> RecordedRDD:
        place = _place("union")
        shape = require_same(self._shape, _other(other, "union")._shape, place)
        return self._made(Union(self.relation, other.relation, place), shape=shape)

    __add__ = union

    def join(self, other: RecordedRDD, numPartitions: int | None = None) -> RecordedRDD:  # noqa: N803
        _require_parts("join", numPartitions)
        place = _place("join")
        return self._made(self._joined(other, place), shape=self._shape_joined(other, place))

    def leftOuterJoin(self, other: RecordedRDD, numPartitions: int | None = None) -> RecordedRDD:  # noqa: N802, N803
        _require_parts("leftOuterJoin", numPartitions)
        place = _place("leftOuterJoin")
        shape = self._shape_joined(other, place)
        rows = Union(self._joined(other, place), _padded(self.relation, other.relation, _right_none, place), place)
        return self._made(rows, shape=shape)

    def rightOuterJoin(self, other: RecordedRDD, numPartitions: int | None = None) -> RecordedRDD:  # noqa: N802, N803
        _require_parts("rightOuterJoin", numPartitions)
        place = _place("rightOuterJoin")
        shape = self._shape_joined(other, place)
        rows = Union(self._joined(other, place), _padded(other.relation, self.relation, _left_none, place), place)
        return self._made(rows, shape=shape)

    def fullOuterJoin(self, other: RecordedRDD, numPartitions: int | None = None) -> RecordedRDD:  # noqa: N802, N803
        _require_parts("fullOuterJoin", numPartitions)
        place = _place("fullOuterJoin")
        shape = self._shape_joined(other, place)
        left = Union(self._joined(other, place), _padded(self.relation, other.relation, _right_none, place), place)
        return self._made(Union(left, _padded(other.relation, self.relation, _left_none, place), place), shape=shape)

    def _joined(self, other: RecordedRDD, place: Place) -> Relation:
        pairs = Product(self.relation, other.relation, place)
        met = Each(pairs, lambda both: both[0][0] == both[1][0], How.FILTER, place)
        return Each(met, lambda both: (both[0][0], (both[0][1], both[1][1])), How.MAP, place)

    def _shape_joined(self, other: RecordedRDD, place: Place) -> Shape:
        """Where there are records in what two RDDs of pairs are joined to."""
        shapes = [each._require_pairs(place)._shape for each in (self, _other(other, place.operation))]
        key = require_same(part(shapes[0], 0), part(shapes[1], 0), place)
        return together(key, together(part(shapes[0], 1), part(shapes[1], 1)))

    def subtract(self, other: RecordedRDD, numPartitions: int | None = None) -> RecordedRDD:  # noqa: N803
        _require_parts("subtract", numPartitions)
        place = _place("subtract")
        require_keys(self._shape, place)
        kept = Matching(self.relation, _other(other, "subtract").relation, operator.eq, False, place)
        return self._made(kept, shape=self._shape, unique_keys=self._unique_keys)

    def subtractByKey(self, other: RecordedRDD, numPartitions: int | None = None) -> RecordedRDD:  # noqa: N802, N803
        _require_parts("subtractByKey", numPartitions)
        place = _place("subtractByKey")
        for each in (self, _other(other, "subtractByKey")):
            each._require_pairs(place)
        kept = Matching(self.relation, other.relation, _same_key, False, place)
        pairs = Each(kept, _index_pair, How.MAP, place)
        shape = together(part(self._shape, 0), part(self._shape, 1))
        return self._made(pairs, shape=shape, unique_keys=self._unique_keys)

    def intersection(self, other: RecordedRDD) -> RecordedRDD:
        place = _place("intersection")
        require_keys(require_same(self._shape, _other(other, "intersection")._shape, place), place)
        both = Matching(self.relation, other.relation, operator.eq, True, place)
        return self._made(Distinct(both, place), shape=self._shape)

    def distinct(self, numPartitions: int | None = None) -> RecordedRDD:  # noqa: N803
        _require_parts("distinct", numPartitions)
        require_keys(self._shape, _place("distinct"))
        return self._made(Distinct(self.relation, _place("distinct")), shape=self._shape)

    # -- by key ------------------------------------------------------------------------------------------------------

    def reduceByKey(self, func: Function, numPartitions: Any = None, partitionFunc: Any = None) -> RecordedRDD:  # noqa: N802, N803
        _no_partitioner("reduceByKey", numPartitions, partitionFunc)
        return self._reduced_by_key(func, _second, part(self._shape, 1), _place("reduceByKey"))

    def _reduced_by_key(self, func: Function, value: Function, shape: Shape, place: Place) -> RecordedRDD:
        called = on_records(func, (shape, shape), gives=shape)
        return self._grouped(Fold(None, called, called, value, needs_row=True, name=place.operation), shape)

    def foldByKey(self, zeroValue: Any, func: Function, *_: Any, **__: Any) -> RecordedRDD:  # noqa: N802, N803
        _no_partitioner("foldByKey", *_, *__.values())
        return self._grouped(*_fold(zeroValue, func, func, part(self._shape, 1), "foldByKey", _second))

    def aggregateByKey(  # noqa: N802
        self,
        zeroValue: Any,  # noqa: N803
        seqFunc: Function,  # noqa: N803
        combFunc: Function,  # noqa: N803
        *_: Any,
        **__: Any,
    ) -> RecordedRDD:
        _no_partitioner("aggregateByKey", *_, *__.values())
        return self._grouped(*_fold(zeroValue, seqFunc, combFunc, part(self._shape, 1), "aggregateByKey", _second))

    def combineByKey(  # noqa: N802
        self,
        createCombiner: Function,  # noqa: N803
        mergeValue: Function,  # noqa: N803
        mergeCombiners: Function,  # noqa: N803
        *_: Any,
        **__: Any,
    ) -> RecordedRDD:
        place = _place("combineByKey")
        _no_partitioner("combineByKey", *_, *__.values())
        if self._shape is not None or any(map(may_make_records, (createCombiner, mergeValue, mergeCombiners))):
            _refuse("combineByKey", "rows and combiners without namedtuples and dataclasses")
        require_combiners_that_merge(self.relation, createCombiner, mergeValue, mergeCombiners, place)
        # So it is a reduction of combiners of one value each.
        return self._reduced_by_key(mergeCombiners, lambda pair: createCombiner(pair[1]), None, place)

    def _grouped(self, summary: Fold, shape: Shape) -> RecordedRDD:
        place = _place(summary.name)
        self._require_pairs(place)
        grouped = Grouped(self.relation, key_of_pair, (summary,), place)
        return self._made(grouped, shape=together(part(self._shape, 0), shape), unique_keys=True)

    def _require_pairs(self, place: Place) -> RecordedRDD:
        """This RDD, whose rows are taken apart into a key and a value."""
        if is_dataclass(self._shape):
            _refuse(place.operation, "rows that are pairs, not dataclasses")
        require_keys(part(self._shape, 0), place)
        return self

    def countByKey(self) -> Collected:  # noqa: N802
        place = _place("countByKey")
        self._require_pairs(place)
        return self._counted(_key, part(self._shape, 0), place)

    def countByValue(self) -> Collected:  # noqa: N802
        place = _place("countByValue")
        require_keys(self._shape, place)
        return self._counted(_itself, self._shape, place)

    def _counted(self, key: Function, shape: Shape, place: Place) -> Collected:
        count = Total(lambda row: 1, name=place.operation)
        return Collected(Grouped(self.relation, key, (count,), place), "dict", self._value, together(shape, None))

    def groupByKey(self, *_: Any, **__: Any) -> RecordedGroups:  # noqa: N802
        place = _place("groupByKey")
        _no_partitioner("groupByKey", *_, *__.values())
        self._require_pairs(place)
        return RecordedGroups(Groups((self.relation,), place, (self._shape,)), self._value, unique_keys=True)

    def groupBy(self, f: Function, *_: Any, **__: Any) -> RecordedGroups:  # noqa: N802
        place = _place("groupBy")
        _no_partitioner("groupBy", *_, *__.values())
        keyed = self.keyBy(f)._require_pairs(place)
        return RecordedGroups(Groups((keyed.relation,), place, (keyed._shape,)), self._value, unique_keys=True)

    def cogroup(self, other: RecordedRDD, numPartitions: int | None = None) -> RecordedGroups:  # noqa: N803
        _require_parts("cogroup", numPartitions)
        place = _place("cogroup")
        shapes = [each._require_pairs(place)._shape for each in (self, _other(other, "cogroup"))]
        require_same(part(shapes[0], 0), part(shapes[1], 0), place)
        sides = tuple(Each(each, _index_pair, How.MAP, place) for each in (self.relation, other.relation))
        pairs = tuple(together(part(shape, 0), part(shape, 1)) for shape in shapes)
        return RecordedGroups(Groups(sides, place, pairs), self._value, unique_keys=True)

    def groupWith(self, other: RecordedRDD, *others: RecordedRDD) -> RecordedGroups:  # noqa: N802
        if others:
            _refuse("groupWith", "groups of more than two RDDs")
        return self.cogroup(other)

    # -- actions -----------------------------------------------------------------------------------------------------

    def _aggregate(self, summary: Summary, shape: Shape = None) -> Any:
        return rebuilt(self._value(Aggregate(self.relation, summary, _place(summary.name))), shape)

    def count(self) -> Any:
        return self._aggregate(Total(lambda row: 1, name="count"))

    def sum(self) -> Any:
        return self._aggregate(Total(lambda row: 0 + row, name="sum"))

    def isEmpty(self) -> Any:  # noqa: N802
        self._require_all_rows("isEmpty")
        return self.count() == 0

    def mean(self) -> Any:
        count = self.count()
        return 0.0 if count == 0 else self.sum() / count

    def min(self, key: Function | None = None) -> Any:
        return self._extreme("min", key, greatest=False)

    def max(self, key: Function | None = None) -> Any:
        return self._extreme("max", key, greatest=True)

    def _extreme(self, name: str, key: Function | None, *, greatest: bool) -> Any:
        called = self._order_key(key or _itself, _place(name))
        self._require_row(name)
        if key is not None:
            return self._aggregate(_picked(called, name, greatest=greatest), self._shape)
        return self._aggregate(Extreme(_itself, greatest, name), self._shape)

    def _order_key(self, key: Function, place: Place) -> Function:
        """A key by which rows can be put in order."""
        if holds_dataclass(shape_after(self.relation, self._shape, key, How.MAP, place)):
            _refuse(place.operation, "keys that are not dataclasses")
        called = on_records(key, (self._shape,))
        require_order(self.relation, called, place)
        return called

    def reduce(self, f: Function) -> Any:
        self._require_row("reduce")
        called = on_records(f, (self._shape, self._shape), gives=self._shape)
        return self._aggregate(Fold(None, called, called, needs_row=True, name="reduce"), self._shape)

    def treeReduce(self, f: Function, depth: int = 2) -> Any:  # noqa: N802
        _require_parts("treeReduce", depth)
        return self.reduce(f)

    def fold(self, zeroValue: Any, op: Function) -> Any:  # noqa: N803
        return self._aggregate(*_fold(zeroValue, op, op, self._shape, "fold"))

    def aggregate(self, zeroValue: Any, seqOp: Function, combOp: Function) -> Any:  # noqa: N803
        return self._aggregate(*_fold(zeroValue, seqOp, combOp, self._shape, "aggregate"))

    def treeAggregate(self, zeroValue: Any, seqOp: Function, combOp: Function, depth: int = 2) -> Any:  # noqa: N802, N803
        _require_parts("treeAggregate", depth)
        return self._aggregate(*_fold(zeroValue, seqOp, combOp, self._shape, "treeAggregate"))

    def _require_row(self, name: str) -> None:
        if self.count() == 0:
            raise NoRowError(f"Can not {name}() empty RDD")

    def _require_all_rows(self, name: str) -> None:
        """Spark stops when it has enough rows: whether it comes to one that raises depends on their order."""
        if may_raise(self.relation):
            _refuse(name, "the first rows only, of which some may raise")

    def collect(self) -> Collected:
        return self._collected(self.relation)

    def collectAsMap(self) -> Collected:  # noqa: N802
        if not self._unique_keys:
            _refuse("collectAsMap", "the last row of each key, which Spark does not fix")
        return self._collected(self.relation, "dict")

    def lookup(self, key: Any) -> Collected:
        return self.filter(lambda pair: pair[0] == key).values().collect()

    def take(self, num: int) -> Collected:
        self._require_all_rows("take")
        return Taken(self.relation, _whole_number(num, "take"), self._value, _place("take"))

    def first(self) -> Any:
        _refuse("first", "the order of rows, which Spark does not fix; sortBy before it does")

    def takeOrdered(self, num: int, key: Function | None = None) -> Collected:  # noqa: N802
        if _whole_number(num, "takeOrdered") < 0:
            raise NoRowError("top N cannot be negative.")
        return self._in_order(num, key or _itself, "takeOrdered")

    def top(self, num: int, key: Function | None = None) -> Collected:
        return self._in_order(_whole_number(num, "top"), key or _itself, "top", descending=True)

    def _in_order(self, count: int, key: Function, name: str, *, descending: bool = False) -> Collected:
        place = _place(name)
        if count <= 0:
            return self._collected(Rows((), place), "ordered")
        called = self._order_key(key, place)
        first = First(self.relation, count, called, descending, place)
        row = _picked(called, name, greatest=descending)
        return Ordered(first, self._value, self._shape, lambda: self._aggregate(row, self._shape))

    # -- sorted ------------------------------------------------------------------------------------------------------

    def sortBy(self, keyfunc: Function, ascending: bool = True, numPartitions: int | None = None) -> RecordedSorted:  # noqa: N802, N803
        _require_parts("sortBy", numPartitions)
        return self._sorted(keyfunc, ascending, "sortBy")

    def sortByKey(  # noqa: N802
        self,
        ascending: bool | None = True,
        numPartitions: int | None = None,  # noqa: N803
        keyfunc: Function | None = None,
    ) -> RecordedSorted:
        if keyfunc is not None:
            # Spark compares results of the function with keys to find the partition of a row.
            _refuse("sortByKey", "a keyfunc, by which Spark does not sort across partitions; sortBy does")
        _require_parts("sortByKey", numPartitions)
        return self.partitionBy(None)._sorted(_key, ascending, "sortByKey")

    def partitionBy(self, numPartitions: int | None, partitionFunc: Function | None = None) -> RecordedRDD:  # noqa: N802, N803
        _no_partitioner("partitionBy", numPartitions, partitionFunc)
        return self._each(lambda pair: (key_of_pair(pair), pair[1]), How.MAP, "partitionBy", keeps_keys=True)

    def _sorted(self, key: Function, ascending: object, name: str) -> RecordedSorted:
        place = _place(name)
        if type(ascending) not in (bool, int, type(None)):
            _refuse(name, "an order that is known")
        called = self._order_key(key, place)
        # The key of every row is asked for, also where the order does not matter.
        keyed = Each(self.relation, lambda row: (called(row), row), How.MAP, place)
        made = self._made(Each(keyed, _second, How.MAP, place), shape=self._shape, unique_keys=self._unique_keys)
        return RecordedSorted(made, key, descending=not ascending)


@_noting
class RecordedSorted(RecordedRDD):
    """An RDD that was sorted. What is made of it row by row has no order that would be noted."""

    def __init__(self, rows: RecordedRDD, key: Function, *, descending: bool) -> None:
        super().__init__(rows.relation, rows._value, shape=rows._shape, unique_keys=rows._unique_keys)
        self._key, self._descending = key, descending
        _note(self, rows.relation)

    def coalesce(self, numPartitions: int, shuffle: bool = False) -> RecordedRDD:  # noqa: N803
        """The same rows, in whatever order."""
        _require_parts("coalesce", numPartitions)
        return self._made(self.relation, shape=self._shape, unique_keys=self._unique_keys)

    def repartition(self, numPartitions: int) -> RecordedRDD:  # noqa: N803
        return self.coalesce(numPartitions)

    def collect(self) -> Collected:
        return self._in_order(sys.maxsize, self._key, "collect", descending=self._descending)

    def take(self, num: int) -> Collected:
        return self._in_order(_whole_number(num, "take"), self._key, "take", descending=self._descending)

    def first(self) -> Any:
        if self.count() == 0:
            raise NoRowError("RDD is empty")
        called = self._order_key(self._key, _place("first"))
        return self._aggregate(_picked(called, "first", greatest=self._descending), self._shape)


@_noting
class RecordedGroups(RecordedRDD):
    """An RDD with groups in its rows. What is known of them is what functions ask for."""

    def __init__(self, groups: Groups, value: Value, *, unique_keys: bool) -> None:
        self._groups = groups
        self._value = value
        self._unique_keys = unique_keys
        self._shape = None

    @property
    def relation(self) -> Relation:  # type: ignore[override]
        """There is none: all values of a key would be in a row."""
        place = self._groups.place
        raise UnsupportedError(
            str(place),
            needed="functions that ask a group for a sum, a count, a least or greatest value",
            came=f"{place.operation}, whose groups are rows of the result, or rows of what is not map or filter",
            hint="mapValues(sum), mapValues(len), mapValues(max), or reduceByKey",
        )

    def _each(self, function: Function, how: How, name: str, *, keeps_keys: bool = False) -> RecordedRDD:
        after, unique = self._groups.then(function, how), keeps_keys and self._unique_keys
        if isinstance(after, Groups):
            return RecordedGroups(after, self._value, unique_keys=unique)
        relation, shape = after
        return self._made(relation, shape=shape, unique_keys=unique)

    def count(self) -> Any:
        return self._each(lambda row: 1, How.MAP, "count").count()

    def isEmpty(self) -> Any:  # noqa: N802
        return self._each(lambda row: 1, How.MAP, "isEmpty").isEmpty()


def _made_of(make: Callable[[Function], Function], function: Function, name: str) -> Function:
    """What is made of a function of the user, to whose lines a refusal points."""
    place = _place(name)
    return Composed(
        lambda twin, part: make(part), function, besides=(make,), real=make(function), at=(place.line, place.file)
    )


def _on_value(function: Function) -> Function:
    return lambda pair: (pair[0], function(pair[1]))


def _on_each_value(function: Function) -> Function:
    return lambda pair: ((pair[0], each) for each in function(pair[1]))


def _with_key(function: Function) -> Function:
    return lambda row: (function(row), row)


def _fold(
    start: Any, add: Function, merge: Function, shape: Shape, name: str, value: Function | None = None
) -> tuple[Fold, Shape]:
    """A fold of rows of this shape, and the shape of its states: that of the start."""
    state = shape_of(start)
    added, merged = on_records(add, (state, shape), gives=state), on_records(merge, (state, state), gives=state)
    return Fold(flattened(start), added, merged, value, name=name), state


def _padded(rows: Relation, others: Relation, pad: Function, place: Place) -> Relation:
    """The rows without a partner among the others."""
    return Each(Matching(rows, others, _same_key, False, place), pad, How.MAP, place)


def _right_none(pair: Any) -> Any:
    return (pair[0], (pair[1], None))


def _left_none(pair: Any) -> Any:
    return (pair[0], (None, pair[1]))


def _picked(key: Function, name: str, *, greatest: bool) -> Fold:
    """The row with the greatest key, or the least; well defined if rows with equal keys are equal."""

    def greater(one: Any, other: Any) -> Any:
        return other if key(other) > key(one) else one

    def smaller(one: Any, other: Any) -> Any:
        return other if key(other) < key(one) else one

    pick = greater if greatest else smaller
    return Fold(None, pick, pick, needs_row=True, name=name)


def _no_partitioner(name: str, *given: Any) -> None:
    """Refuse a function that says where rows go: it may raise."""
    _require_parts(name, *given)
    if any(callable(one) for one in given):
        _refuse(name, "a partitionFunc, which may raise; leave it out, the rows are the same")


def _whole_number(number: object, name: str) -> int:
    return number if type(number) is int else _refuse(name, f"a number of rows that is known, not {number!r}")


def _key(pair: Any) -> Any:
    return pair[0]


def _index_pair(pair: Any) -> Any:
    return (pair[0], pair[1])


def _second(pair: Any) -> Any:
    return pair[1]


def _itself(row: Any) -> Any:
    return row


def _same_key(one: Any, other: Any) -> Any:
    return one[0] == other[0]


def _other(other: object, name: str) -> RecordedRDD:
    if isinstance(other, RecordedRDD):
        return other
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
