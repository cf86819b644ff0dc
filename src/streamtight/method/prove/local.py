"""RDDs in plain Python: slow, obvious, and with PySpark's meaning to the letter.

What a program gives here it gives on Spark, for the same rows in the same partitions, so that many small inputs can be
tried without a JVM. Each method does what the method of its name in `pyspark/core/rdd.py` does.

>>> numbers = LocalRDD.of([1, 2, 3, 4], partitions=2)
>>> numbers.filter(lambda n: n > 1).map(lambda n: n * n).collect()
[4, 9, 16]
>>> numbers.fold(0, lambda count, n: count + 1)  # Spark merges partitions with the same function: it counts those
2

A function that raises, raises here as it is; Spark wraps it. A shuffle has as many partitions as the RDD before it,
which is Spark's rule where `spark.default.parallelism` is not set, and strings go to partitions by a hash that is the
same in every process.
"""

# ruff: noqa: N802, N803 (the names are PySpark's)

from __future__ import annotations

import bisect
import copy
import functools
import heapq
import itertools
import math
import operator
import sys
import zlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

from streamtight.errors import SourceError, UnsupportedError

Element = Any
Function = Callable[..., Any]
Partition = Callable[[], Iterable[Element]]
"""Gives the elements of a partition, calculated anew with every call."""

_SEES_PARTITIONS = "shows how the rows were spread over partitions, which is not a part of the input"
_REFUSED = {
    "glom": _SEES_PARTITIONS,
    "zip": "pairs rows by their places in partitions, and an RDD has no order that could be relied on",
    "zipWithIndex": "numbers rows by their places in partitions",
    "zipWithUniqueId": "numbers rows by their places in partitions",
    "mapPartitions": _SEES_PARTITIONS,
    "mapPartitionsWithIndex": _SEES_PARTITIONS,
    "foreachPartition": _SEES_PARTITIONS,
    "getNumPartitions": _SEES_PARTITIONS,
    "context": "is the SparkContext, not a part of the input",
    "ctx": "is the SparkContext, not a part of the input",
    "sample": "takes rows at random",
    "takeSample": "takes rows at random",
    "randomSplit": "takes rows at random",
}

_in_task = False  # whether a function of a transformation is running, as Spark would run it on a worker


class Group:
    """The values of a key, as `groupByKey` and `cogroup` give them: to iterate over as often as wanted, with a length.

    Like PySpark's ResultIterable it is equal to itself only.
    """

    def __init__(self, values: Sequence[Element]) -> None:
        self.data = values

    def __iter__(self) -> Iterator[Element]:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        return f"Group({self.data!r})"


class LocalRDD:
    """An RDD without Spark. Transformations wait until an action asks for rows, as they do on Spark."""

    def __init__(self, partitions: Iterable[Partition]) -> None:
        _refuse_in_task("a transformation")
        self._partitions = tuple(partitions)

    @classmethod
    def of(cls, rows: Iterable[Element], partitions: int = 2, deal: str | Sequence[int] = "blocks") -> LocalRDD:
        """These rows, dealt to partitions: in equal "blocks" as by `parallelize`, "one each" in turns, or by sizes.

        >>> [list(part()) for part in LocalRDD.of("abcde", 2, "one each")._partitions]
        [['a', 'c', 'e'], ['b', 'd']]
        >>> [list(part()) for part in LocalRDD.of("abcde", deal=[0, 4, 1])._partitions]
        [[], ['a', 'b', 'c', 'd'], ['e']]
        """
        rows = list(rows)
        if isinstance(deal, str):
            if partitions < 0 or (rows and partitions < 1):
                raise _bad_deal("at least one partition for rows", f"partitions={partitions}")
            if deal == "blocks":
                ends = [len(rows) * i // partitions for i in range(partitions + 1)] if partitions else [0]
                parts = [rows[start:end] for start, end in itertools.pairwise(ends)]
            elif deal == "one each":
                parts = [rows[i::partitions] for i in range(partitions)]
            else:
                raise _bad_deal("'blocks', 'one each' or a list of sizes", f"deal={deal!r}")
        else:
            if sum(deal) != len(rows) or any(size < 0 for size in deal):
                raise _bad_deal(f"sizes of partitions for {len(rows)} rows", f"deal={list(deal)}")
            left = iter(rows)
            parts = [list(itertools.islice(left, size)) for size in deal]
        # Spark gives tasks copies, so a function that changes its argument does not change the input.
        return cls([functools.partial(copy.deepcopy, part) for part in parts])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise UnsupportedError(
            f"rdd.{name}",
            needed="a method of RDDs whose result depends on the rows alone and is known here",
            came=f".{name}" + (f", which {_REFUSED[name]}" if name in _REFUSED else ", which is not known"),
            hint="write it with map, filter, joins, reductions by key and aggregates",
        )

    def _map_partitions(self, function: Callable[[Iterator[Element]], Iterable[Element]]) -> LocalRDD:
        def mapped(part: Partition) -> Partition:
            return lambda: function(iter(part()))

        return LocalRDD([mapped(part) for part in self._partitions])

    def _run(self, function: Callable[[Iterator[Element]], Element], parts: range | None = None) -> list[Element]:
        """A job: what the function makes of each partition."""
        global _in_task
        _refuse_in_task("an action")
        _in_task = True
        try:
            chosen = self._partitions if parts is None else [self._partitions[i] for i in parts]
            return [function(iter(part())) for part in chosen]
        finally:
            _in_task = False

    # -- each row by itself ------------------------------------------------------------------------------------------

    def map(self, f: Function, preservesPartitioning: bool = False) -> LocalRDD:
        return self._map_partitions(lambda rows: map(_never_stops(f), rows))

    def filter(self, f: Function) -> LocalRDD:
        return self._map_partitions(lambda rows: filter(_never_stops(f), rows))

    def flatMap(self, f: Function, preservesPartitioning: bool = False) -> LocalRDD:
        return self._map_partitions(lambda rows: itertools.chain.from_iterable(map(_never_stops(f), rows)))

    def mapValues(self, f: Function) -> LocalRDD:
        return self.map(lambda pair: (pair[0], f(pair[1])))

    def flatMapValues(self, f: Function) -> LocalRDD:
        return self.flatMap(lambda pair: ((pair[0], value) for value in f(pair[1])))

    def keys(self) -> LocalRDD:
        return self.map(lambda pair: pair[0])

    def values(self) -> LocalRDD:
        return self.map(lambda pair: pair[1])

    def keyBy(self, f: Function) -> LocalRDD:
        return self.map(lambda row: (f(row), row))

    # -- two RDDs ----------------------------------------------------------------------------------------------------

    def union(self, other: LocalRDD) -> LocalRDD:
        return LocalRDD(self._partitions + _other(other, "union")._partitions)

    def __add__(self, other: object) -> LocalRDD:
        if not isinstance(other, LocalRDD):
            raise TypeError
        return self.union(other)

    def cartesian(self, other: LocalRDD) -> LocalRDD:
        def product(left: Partition, right: Partition) -> Partition:
            return lambda: itertools.product(left(), right())

        others = _other(other, "cartesian")._partitions
        return LocalRDD([product(left, right) for left in self._partitions for right in others])

    def join(self, other: LocalRDD, numPartitions: int | None = None) -> LocalRDD:
        return self._join(other, numPartitions, keep_left=False, keep_right=False)

    def leftOuterJoin(self, other: LocalRDD, numPartitions: int | None = None) -> LocalRDD:
        return self._join(other, numPartitions, keep_left=True, keep_right=False)

    def rightOuterJoin(self, other: LocalRDD, numPartitions: int | None = None) -> LocalRDD:
        return self._join(other, numPartitions, keep_left=False, keep_right=True)

    def fullOuterJoin(self, other: LocalRDD, numPartitions: int | None = None) -> LocalRDD:
        return self._join(other, numPartitions, keep_left=True, keep_right=True)

    def _join(self, other: LocalRDD, count: int | None, *, keep_left: bool, keep_right: bool) -> LocalRDD:
        def pairs(groups: tuple[Group, Group]) -> Iterable[tuple[Element, Element]]:
            left, right = list(groups[0]), list(groups[1])
            if keep_right and not left:
                left = [None]
            if keep_left and not right:
                right = [None]
            return itertools.product(left, right)

        return self.cogroup(other, count).flatMapValues(pairs)

    def cogroup(self, other: LocalRDD, numPartitions: int | None = None) -> LocalRDD:
        left = self.mapValues(lambda value: (0, value))
        right = _other(other, "cogroup").mapValues(lambda value: (1, value))

        def sides(values: Group) -> tuple[Group, Group]:
            buffers: tuple[list[Element], list[Element]] = ([], [])
            for side, value in values:
                buffers[side].append(value)
            return Group(buffers[0]), Group(buffers[1])

        return left.union(right).groupByKey(numPartitions).mapValues(sides)

    def groupWith(self, other: LocalRDD, *others: LocalRDD) -> LocalRDD:
        if others:
            self.__getattr__("groupWith")
        return self.cogroup(other)

    def intersection(self, other: LocalRDD) -> LocalRDD:
        """Rows that are in both, once each."""
        left, right = (rdd.map(lambda row: (row, None)) for rdd in (self, _other(other, "intersection")))
        return left.cogroup(right).filter(lambda pair: all(pair[1])).keys()

    def subtract(self, other: LocalRDD, numPartitions: int | None = None) -> LocalRDD:
        """The rows of the left, as often as they come, that the right does not have at all."""
        left, right = (rdd.map(lambda row: (row, True)) for rdd in (self, _other(other, "subtract")))
        return left.subtractByKey(right, numPartitions).keys()

    def subtractByKey(self, other: LocalRDD, numPartitions: int | None = None) -> LocalRDD:
        groups = self.cogroup(other, numPartitions).filter(lambda pair: pair[1][0] and not pair[1][1])
        return groups.flatMapValues(lambda sides: sides[0])

    # -- shuffles ----------------------------------------------------------------------------------------------------

    def partitionBy(self, numPartitions: int | None, partitionFunc: Function | None = None) -> LocalRDD:
        count = len(self._partitions) if numPartitions is None else numPartitions
        place = partitionFunc or portable_hash

        @functools.cache  # as Spark keeps the files of a shuffle
        def written() -> list[list[tuple[Element, Element]]]:
            buckets: list[list[tuple[Element, Element]]] = [[] for _ in range(count)]
            for part in self._partitions:
                for key, value in part():
                    buckets[place(key) % count].append((key, value))
            return buckets

        def bucket(i: int) -> Partition:
            return lambda: copy.deepcopy(written()[i])

        return LocalRDD([bucket(i) for i in range(count)])

    def combineByKey(
        self,
        createCombiner: Function,
        mergeValue: Function,
        mergeCombiners: Function,
        numPartitions: int | None = None,
        partitionFunc: Function | None = None,
    ) -> LocalRDD:
        def merged(create: Function, merge: Function) -> Callable[[Iterator[Element]], Iterable[Element]]:
            def of(rows: Iterator[Element]) -> Iterable[Element]:
                combined: dict[Element, Element] = {}
                for key, value in rows:
                    combined[key] = merge(combined[key], value) if key in combined else create(value)
                return combined.items()

            return of

        in_partitions = self._map_partitions(merged(_never_stops(createCombiner), _never_stops(mergeValue)))
        shuffled = in_partitions.partitionBy(numPartitions, partitionFunc)
        return shuffled._map_partitions(merged(lambda combiner: combiner, _never_stops(mergeCombiners)))

    def reduceByKey(
        self, func: Function, numPartitions: int | None = None, partitionFunc: Function | None = None
    ) -> LocalRDD:
        return self.combineByKey(lambda value: value, func, func, numPartitions, partitionFunc)

    def foldByKey(
        self,
        zeroValue: Element,
        func: Function,
        numPartitions: int | None = None,
        partitionFunc: Function | None = None,
    ) -> LocalRDD:
        return self.aggregateByKey(zeroValue, func, func, numPartitions, partitionFunc)

    def aggregateByKey(
        self,
        zeroValue: Element,
        seqFunc: Function,
        combFunc: Function,
        numPartitions: int | None = None,
        partitionFunc: Function | None = None,
    ) -> LocalRDD:
        """The zero value is where a key starts in every partition that has it, and is not used in the merge."""

        def start(value: Element) -> Element:
            return seqFunc(copy.deepcopy(zeroValue), value)

        return self.combineByKey(start, seqFunc, combFunc, numPartitions, partitionFunc)

    def groupByKey(self, numPartitions: int | None = None, partitionFunc: Function | None = None) -> LocalRDD:
        lists = self.combineByKey(
            lambda value: [value],
            lambda values, value: [*values, value],
            operator.add,
            numPartitions,
            partitionFunc,
        )
        return lists.mapValues(Group)

    def groupBy(self, f: Function, numPartitions: int | None = None, partitionFunc: Function | None = None) -> LocalRDD:
        return self.keyBy(f).groupByKey(numPartitions, partitionFunc)

    def distinct(self, numPartitions: int | None = None) -> LocalRDD:
        return self.map(lambda row: (row, None)).reduceByKey(lambda one, _: one, numPartitions).keys()

    def sortBy(self, keyfunc: Function, ascending: bool = True, numPartitions: int | None = None) -> LocalRDD:
        return self.keyBy(keyfunc).sortByKey(ascending, numPartitions).values()

    def sortByKey(
        self,
        ascending: bool | None = True,
        numPartitions: int | None = None,
        keyfunc: Function = lambda key: key,
    ) -> LocalRDD:
        """Sorted by key, rows with equal keys in the order they had. Runs a job at once, like Spark's."""
        count = len(self._partitions) if numPartitions is None else numPartitions

        def in_order(rows: Iterator[Element]) -> Iterable[Element]:
            return sorted(rows, key=lambda pair: keyfunc(pair[0]), reverse=not ascending)

        if count == 1:
            return self.coalesce(1)._map_partitions(in_order)
        # Spark takes a sample of the keys if they are many; that moves the bounds, not the order of the rows.
        keys = sorted(self.keys().collect(), key=keyfunc)
        if not keys:
            return self
        bounds = [keys[int(len(keys) * (i + 1) / count)] for i in range(count - 1)]

        def place(key: Element) -> int:
            # Spark, too, compares a result of `keyfunc` with keys: an error if they are of different types.
            found = bisect.bisect_left(bounds, keyfunc(key))
            return found if ascending else count - 1 - found

        return self.partitionBy(count, place)._map_partitions(in_order)

    # -- what changes no row -----------------------------------------------------------------------------------------

    def coalesce(self, numPartitions: int, shuffle: bool = False) -> LocalRDD:
        if not numPartitions > 0:
            raise ValueError("Number of partitions must be positive.")
        if shuffle:
            turns = itertools.cycle(range(numPartitions))
            numbered = LocalRDD([lambda: ((next(turns), row) for part in self._partitions for row in part())])
            return numbered.partitionBy(numPartitions).values()
        if numPartitions >= len(self._partitions):
            return self

        def together(parts: tuple[Partition, ...]) -> Partition:
            return lambda: itertools.chain.from_iterable(part() for part in parts)

        ends = [len(self._partitions) * i // numPartitions for i in range(numPartitions + 1)]
        return LocalRDD([together(self._partitions[start:end]) for start, end in itertools.pairwise(ends)])

    def repartition(self, numPartitions: int) -> LocalRDD:
        return self.coalesce(numPartitions, shuffle=True)

    def cache(self) -> LocalRDD:
        return self

    def persist(self, storageLevel: object = None) -> LocalRDD:
        return self

    def unpersist(self, blocking: bool = False) -> LocalRDD:
        return self

    # -- actions -----------------------------------------------------------------------------------------------------

    def collect(self) -> list[Element]:
        return list(itertools.chain.from_iterable(self._run(list)))

    def reduce(self, f: Function) -> Element:
        f = _never_stops(f)

        def reduced(rows: Iterator[Element]) -> list[Element]:
            return [functools.reduce(f, rows, first) for first in itertools.islice(rows, 1)]

        values = list(itertools.chain.from_iterable(self._run(reduced)))
        if not values:
            raise ValueError("Can not reduce() empty RDD")
        return functools.reduce(f, values)

    def fold(self, zeroValue: Element, op: Function) -> Element:
        return self.aggregate(zeroValue, op, op)

    def aggregate(self, zeroValue: Element, seqOp: Function, combOp: Function) -> Element:
        """The zero value is where every partition starts, also one without rows, and where the merge starts."""
        values = self._run(lambda rows: functools.reduce(_never_stops(seqOp), rows, copy.deepcopy(zeroValue)))
        return functools.reduce(combOp, values, zeroValue)

    def treeAggregate(self, zeroValue: Element, seqOp: Function, combOp: Function, depth: int = 2) -> Element:
        """Like `aggregate`, but the zero value is only where partitions start, not where the merge does."""
        if depth < 1:
            raise ValueError(f"Depth cannot be smaller than 1 but got {depth}.")
        if not self._partitions:
            return zeroValue

        def start(rows: Iterator[Element]) -> list[Element]:
            return [functools.reduce(seqOp, rows, copy.deepcopy(zeroValue))]

        partial = self._map_partitions(start)
        count: float = len(partial._partitions)
        scale = max(math.ceil(count ** (1.0 / depth)), 2)
        while count > scale + count / scale:
            count /= scale
            fewer = int(count)
            numbered = [part._numbered(i % fewer) for i, part in enumerate(partial._each())]
            partial = functools.reduce(LocalRDD.union, numbered).reduceByKey(combOp, fewer).values()
        return partial.reduce(combOp)

    def _each(self) -> list[LocalRDD]:
        return [LocalRDD([part]) for part in self._partitions]

    def _numbered(self, number: int) -> LocalRDD:
        return self.map(lambda row: (number, row))

    def treeReduce(self, f: Function, depth: int = 2) -> Element:
        nothing = (None, True)

        def merge(one: tuple[Element, bool], other: tuple[Element, bool]) -> tuple[Element, bool]:
            if one[1]:
                return other
            if other[1]:
                return one
            return f(one[0], other[0]), False

        value, is_nothing = self.map(lambda row: (row, False)).treeAggregate(nothing, merge, merge, depth)
        if is_nothing:
            raise ValueError("Cannot reduce empty RDD.")
        return value

    def count(self) -> int:
        return sum(self._run(lambda rows: sum(1 for _ in rows)))

    def sum(self) -> Element:
        return functools.reduce(operator.add, self._run(sum), 0)

    def min(self, key: Function | None = None) -> Element:
        return self.reduce(functools.partial(min, key=key))

    def max(self, key: Function | None = None) -> Element:
        return self.reduce(functools.partial(max, key=key))

    def mean(self) -> float:
        """0.0 for no rows in some partitions."""

        def add(mean: tuple[int, float], value: Element) -> tuple[int, float]:
            return mean[0] + 1, mean[1] + (value - mean[1]) / (mean[0] + 1)

        means = self._run(lambda rows: functools.reduce(add, rows, (0, 0.0)))
        if not means:
            raise ValueError("Can not reduce() empty RDD")
        return float(functools.reduce(_merged_means, means)[1])

    def isEmpty(self) -> bool:
        return not self._partitions or not self.take(1)

    def first(self) -> Element:
        taken = self.take(1)
        if not taken:
            raise ValueError("RDD is empty")
        return taken[0]

    def take(self, num: int) -> list[Element]:
        taken: list[Element] = []
        scanned = 0
        while len(taken) < num and scanned < len(self._partitions):
            # How many partitions are tried at once decides only whose rows may raise without being wanted.
            tried = 1
            if scanned and not taken:
                tried = scanned * 4
            elif scanned:
                tried = min(max(int(1.5 * num * scanned / len(taken)) - scanned, 1), scanned * 4)
            parts = range(scanned, min(scanned + tried, len(self._partitions)))
            found = self._run(lambda rows: list(itertools.islice(rows, num - len(taken))), parts)
            taken.extend(itertools.chain.from_iterable(found))
            scanned += tried
        return taken[:num]

    def top(self, num: int, key: Function | None = None) -> list[Element]:
        tops = self._map_partitions(lambda rows: [heapq.nlargest(num, rows, key=key)])
        return list(tops.reduce(lambda one, other: heapq.nlargest(num, one + other, key=key)))

    def takeOrdered(self, num: int, key: Function | None = None) -> list[Element]:
        if num < 0:
            raise ValueError("top N cannot be negative.")
        if num == 0 or not self._partitions:
            return []
        firsts = self._map_partitions(lambda rows: [heapq.nsmallest(num, rows, key)])
        return list(firsts.reduce(lambda one, other: heapq.nsmallest(num, one + other, key)))

    def countByValue(self) -> dict[Element, int]:
        def counted(rows: Iterable[Element]) -> list[dict[Element, int]]:
            counts: dict[Element, int] = defaultdict(int)
            for row in rows:
                counts[row] += 1
            return [counts]

        def merge(one: dict[Element, int], other: dict[Element, int]) -> dict[Element, int]:
            for row, count in other.items():
                one[row] += count
            return one

        counts: dict[Element, int] = self._map_partitions(counted).reduce(merge)
        return counts

    def countByKey(self) -> dict[Element, int]:
        return self.keys().countByValue()

    def collectAsMap(self) -> dict[Element, Element]:
        return dict(self.collect())

    def lookup(self, key: Element) -> list[Element]:
        return self.filter(lambda pair: pair[0] == key).values().collect()


def portable_hash(key: Hashable) -> int:
    """Which partition of a shuffle a key goes to. Equal keys have equal hashes."""
    if key is None:
        return 0
    if isinstance(key, tuple):
        mixed = 0x345678
        for part in key:
            mixed = ((mixed ^ portable_hash(part)) * 1000003) & sys.maxsize
        return mixed ^ len(key)
    if isinstance(key, str):
        return zlib.crc32(key.encode("utf-8", "surrogatepass"))  # Python's own differs from process to process
    return hash(key)


def _merged_means(one: tuple[int, float], other: tuple[int, float]) -> tuple[int, float]:
    # The cases of PySpark's StatCounter, which round differently.
    (n, mean), (others, their_mean) = one, other
    if not n or not others:
        return other if not n else one
    difference = their_mean - mean
    if others * 10 < n:
        return n + others, mean + (difference * others) / (n + others)
    if n * 10 < others:
        return n + others, their_mean - (difference * n) / (n + others)
    return n + others, (mean * n + their_mean * others) / (n + others)


def _never_stops(f: Function) -> Function:
    """A StopIteration out of the user's function would end the rows without a word; it is an error, as on Spark."""

    @functools.wraps(f)
    def called(*args: Element) -> Element:
        try:
            return f(*args)
        except StopIteration as stop:
            raise RuntimeError(f"StopIteration raised by {getattr(f, '__name__', f)!s}") from stop

    return called


def _refuse_in_task(what: str) -> None:
    if _in_task:
        raise UnsupportedError(
            f"{what} on an RDD",
            needed="it on the driver",
            came="it inside a function of another RDD, where Spark has no RDDs",
            hint="do it before, and use the result in the function",
        )


def _other(other: object, method: str) -> LocalRDD:
    if not isinstance(other, LocalRDD):
        raise UnsupportedError(
            f"rdd.{method}(...)",
            needed="another RDD",
            came=f"{type(other).__name__} {other!r}",
            hint=f"rdd.{method}(other_rdd)",
        )
    return other


def _bad_deal(needed: str, came: str) -> SourceError:
    return SourceError(
        "LocalRDD.of(...)", needed=needed, came=came, hint="LocalRDD.of(rows, partitions=2, deal='blocks')"
    )
