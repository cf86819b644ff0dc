"""RDDs in plain Python: what PySpark's methods mean, also where that surprises."""

from __future__ import annotations

import operator
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from streamtight.errors import SourceError, UnsupportedError
from streamtight.method.prove.local import Group, LocalRDD, portable_hash


def pairs(*rows: tuple[Any, Any], partitions: int = 2) -> LocalRDD:
    return LocalRDD.of(rows, partitions)


def bag(rdd: LocalRDD) -> Counter[Any]:
    return Counter(rdd.collect())


# -- where rows are --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("partitions", "deal", "firsts"),
    [
        (1, "blocks", [1]),
        (2, "blocks", [1, 3]),
        (2, "one each", [1, 2]),
        (7, "one each", [1, 2, 3, 4, 5]),
        (9, [4, 0, 1], [1, 5]),
    ],
)
def test_rows_are_dealt_to_partitions(partitions: int, deal: Any, firsts: list[int]) -> None:
    dealt = LocalRDD.of([1, 2, 3, 4, 5], partitions, deal)

    # The first of each partition that has rows.
    assert dealt.aggregate([], lambda first, n: first or [n], operator.add) == firsts


@pytest.mark.parametrize(
    ("partitions", "deal", "came"),
    [(0, "blocks", "partitions=0"), (2, "by colour", "by colour"), (2, [1, 1], "deal=[1, 1]"), (2, [4, -1], "-1")],
)
def test_a_deal_that_cannot_be_is_refused(partitions: int, deal: Any, came: str) -> None:
    with pytest.raises(SourceError) as error:
        LocalRDD.of([1, 2, 3], partitions, deal)

    assert came in error.value.came


def test_an_rdd_may_have_no_partitions_at_all() -> None:
    nothing = LocalRDD.of([], 0)

    assert nothing.collect() == []
    assert nothing.isEmpty()
    assert nothing.count() == 0
    assert nothing.fold(7, operator.add) == 7
    assert nothing.treeAggregate(7, operator.add, operator.add) == 7


@pytest.mark.parametrize(
    ("key", "equal"), [(1, True), (2, 2.0), (None, None), ("a", "a"), (("a", (None, 1.0)), ("a", (None, True)))]
)
def test_equal_keys_go_to_the_same_partition(key: Any, equal: Any) -> None:
    assert portable_hash(key) == portable_hash(equal)


# -- refused ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["glom", "zip", "mapPartitions", "sample", "context", "toDF"])
def test_a_method_that_is_not_known_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(UnsupportedError, match=rf"rdd\.{name}"):
        getattr(LocalRDD.of([1]), name)


def test_an_rdd_inside_a_function_of_another_is_refused_as_on_spark() -> None:
    left, right = LocalRDD.of([1]), LocalRDD.of([2])

    with pytest.raises(UnsupportedError, match="an action on an RDD"):
        left.map(lambda n: right.count()).collect()
    with pytest.raises(UnsupportedError, match="a transformation on an RDD"):
        left.map(lambda n: right.map(abs)).collect()
    assert left.map(lambda n: n + 1).collect() == [2]  # and the next job runs


def test_a_join_with_a_list_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"rdd\.cogroup"):
        pairs((1, 2)).join([(1, 2)])  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        operator.add(pairs((1, 2)), [(1, 2)])


# -- when functions run ----------------------------------------------------------------------------------------------


def test_nothing_runs_before_an_action() -> None:
    failing = LocalRDD.of([0]).map(lambda n: 1 // n).filter(bool).union(LocalRDD.of([1])).distinct()

    with pytest.raises(ZeroDivisionError):
        failing.collect()


def test_sorting_runs_a_job_at_once() -> None:
    failing = LocalRDD.of([0, 1]).map(lambda n: 1 // n)

    with pytest.raises(ZeroDivisionError):
        failing.sortBy(lambda n: n)


def test_rows_that_are_not_asked_for_cannot_fail() -> None:
    assert LocalRDD.of([1, 0], 1).map(lambda n: 1 // n).first() == 1
    assert LocalRDD.of([1, 1, 0, 0], 2).map(lambda n: 1 // n).take(2) == [1, 1]


def test_a_stop_iteration_of_a_function_does_not_end_the_rows() -> None:
    def stop(n: int) -> int:
        raise StopIteration

    for failing in (
        lambda: LocalRDD.of([1]).map(stop).collect(),
        lambda: LocalRDD.of([1]).fold(0, lambda a, n: stop(n)),
    ):
        with pytest.raises(RuntimeError, match="StopIteration"):
            failing()


def test_functions_that_change_their_arguments_change_neither_the_input_nor_a_later_run() -> None:
    lists = LocalRDD.of([(1, [1]), (1, [2])], 1)
    joined = lists.reduceByKey(lambda one, other: one.extend(other) or one)

    assert joined.collect() == [(1, [1, 2])]
    assert joined.collect() == [(1, [1, 2])]
    assert lists.collect() == [(1, [1]), (1, [2])]


def test_a_mutable_zero_is_anew_in_every_partition() -> None:
    def add(seen: list[int], n: int) -> list[int]:
        seen.append(n)
        return seen

    numbers = LocalRDD.of([1, 2, 3, 4], 2)
    assert numbers.aggregate([], add, lambda one, other: one + other) == [1, 2, 3, 4]
    assert numbers.keyBy(lambda n: n % 2).aggregateByKey([], add, lambda one, other: one + other).collectAsMap() == {
        0: [2, 4],
        1: [1, 3],
    }


# -- zero values -----------------------------------------------------------------------------------------------------


def test_fold_starts_with_the_zero_in_every_partition_and_in_the_merge() -> None:
    assert LocalRDD.of([1, 2], 1).fold(10, operator.add) == 23
    assert LocalRDD.of([1, 2], 2).fold(10, operator.add) == 33
    assert LocalRDD.of([1, 2], 5).fold(10, operator.add) == 63  # also in those without rows


def test_fold_merges_with_the_function_that_adds() -> None:
    count_rows = lambda count, _: count + 1  # noqa: E731
    assert LocalRDD.of([5, 6, 7], 2).fold(0, count_rows) == 2
    assert LocalRDD.of([5, 6, 7], 2).aggregate(0, count_rows, operator.add) == 3
    assert LocalRDD.of([5, 6], 1).fold(0, operator.sub) == 11  # 0 - (0 - 5 - 6)


def test_a_tree_aggregate_has_no_zero_in_its_merge() -> None:
    assert LocalRDD.of([1, 2], 2).aggregate(10, operator.add, operator.add) == 33
    assert LocalRDD.of([1, 2], 2).treeAggregate(10, operator.add, operator.add) == 23


def test_a_fold_by_key_starts_once_for_a_key_in_each_partition_that_has_it() -> None:
    rows = [("a", 1), ("a", 2), ("b", 3)]
    assert LocalRDD.of(rows, deal=[3]).foldByKey(10, operator.add).collectAsMap() == {"a": 13, "b": 13}
    assert LocalRDD.of(rows, deal=[1, 2]).foldByKey(10, operator.add).collectAsMap() == {"a": 23, "b": 13}
    assert LocalRDD.of(rows, deal=[1, 2]).foldByKey(0, lambda count, _: count + 1).lookup("a") == [2]
    assert LocalRDD.of([("a", 1)] * 3, deal=[2, 1]).foldByKey(0, lambda count, _: count + 1).lookup("a") == [3]
    assert LocalRDD.of([("a", 1)] * 4, deal=[2, 2]).foldByKey(0, lambda count, _: count + 1).lookup("a") == [3]


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("partitions", [1, 2, 5, 9, 20])
def test_trees_give_what_the_flat_ones_give(depth: int, partitions: int) -> None:
    rows = LocalRDD.of(range(1, 12), partitions)

    assert rows.treeAggregate(0, operator.add, operator.add, depth) == 66
    assert rows.treeReduce(operator.add, depth) == 66


# -- nothing at all --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "action",
    [
        lambda r: r.reduce(operator.add),
        lambda r: r.treeReduce(operator.add),
        lambda r: r.min(),
        lambda r: r.max(),
        lambda r: r.first(),
    ],
)
def test_what_has_no_value_without_rows_raises(action: Callable[[LocalRDD], Any]) -> None:
    with pytest.raises(ValueError, match="empty"):
        action(LocalRDD.of([]))


def test_other_actions_have_a_value_without_rows() -> None:
    nothing = LocalRDD.of([])
    assert (nothing.sum(), nothing.count(), nothing.mean()) == (0, 0, 0.0)
    assert (nothing.take(1), nothing.top(1), nothing.takeOrdered(1), nothing.countByValue()) == ([], [], [], {})


def test_some_need_at_least_a_partition() -> None:
    for action in (LocalRDD.mean, LocalRDD.countByValue, lambda rdd: rdd.top(1)):
        with pytest.raises(ValueError, match="empty"):
            action(LocalRDD.of([], 0))
    assert LocalRDD.of([], 0).takeOrdered(1) == []


# -- bags ------------------------------------------------------------------------------------------------------------


def test_subtract_keeps_duplicates_and_intersection_does_not() -> None:
    left, right = LocalRDD.of([1, 1, 2, 2, 3]), LocalRDD.of([2, 3, 3])

    assert bag(left.subtract(right)) == {1: 2}
    assert bag(left.intersection(right)) == {2: 1, 3: 1}
    assert bag(left.union(right)) == bag(left + right) == {1: 2, 2: 3, 3: 3}
    assert bag(left.distinct()) == {1: 1, 2: 1, 3: 1}


def test_true_and_one_are_one_row() -> None:
    assert LocalRDD.of([1, True, 1.0, 0, False], 3).distinct().count() == 2
    assert LocalRDD.of([(1, None), (True, None)], 2).distinct().count() == 1
    assert LocalRDD.of([True]).subtract(LocalRDD.of([1])).isEmpty()


def test_none_is_a_key_like_any_other() -> None:
    left, right = pairs((None, 1), (None, 2)), pairs((None, 3))

    assert bag(left.join(right)) == {(None, (1, 3)): 1, (None, (2, 3)): 1}
    assert left.subtractByKey(right).isEmpty()


def test_joins() -> None:
    left, right = pairs((1, "a"), (1, "b"), (2, "c")), pairs((1, "x"), (3, "y"))
    both = {(1, ("a", "x")): 1, (1, ("b", "x")): 1}

    assert bag(left.join(right)) == both
    assert bag(left.leftOuterJoin(right)) == both | {(2, ("c", None)): 1}
    assert bag(left.rightOuterJoin(right)) == both | {(3, (None, "y")): 1}
    assert bag(left.fullOuterJoin(right)) == both | {(2, ("c", None)): 1, (3, (None, "y")): 1}
    assert bag(left.subtractByKey(right)) == {(2, "c"): 1}


def test_a_self_product_pairs_each_row_with_each() -> None:
    numbers = LocalRDD.of([1, 2])

    assert numbers.cartesian(numbers).filter(lambda pair: pair[0] > pair[1]).collect() == [(2, 1)]


def test_groups_have_a_length_can_be_read_twice_and_are_equal_to_themselves_only() -> None:
    [(key, group)] = pairs((1, "a"), (1, "b")).groupByKey().collect()

    assert (key, len(group), list(group), list(group)) == (1, 2, ["a", "b"], ["a", "b"])
    assert group == group
    assert Group([1]) != Group([1])
    assert repr(group) == "Group(['a', 'b'])"


def test_group_with_is_a_cogroup_of_two() -> None:
    groups = pairs((1, "a")).groupWith(pairs((1, "x"))).mapValues(lambda sides: tuple(map(list, sides)))

    assert groups.collect() == [(1, (["a"], ["x"]))]
    with pytest.raises(UnsupportedError, match=r"rdd\.groupWith"):
        pairs((1, "a")).groupWith(pairs((1, "x")), pairs((1, "y")))


def test_a_cogroup_has_every_key_of_either_side() -> None:
    groups = pairs((1, "a"), (1, "b")).cogroup(pairs((2, "x"))).mapValues(lambda sides: tuple(map(list, sides)))

    assert groups.collectAsMap() == {1: (["a", "b"], []), 2: ([], ["x"])}


def test_group_by_and_combine_by_key() -> None:
    numbers = LocalRDD.of([1, 2, 3, 4], 3)
    spans = numbers.keyBy(lambda n: n % 2).combineByKey(
        lambda n: (n, n), lambda span, n: (min(span[0], n), max(span[1], n)), lambda a, b: (min(a + b), max(a + b))
    )

    assert numbers.groupBy(lambda n: n % 2).mapValues(sorted).collectAsMap() == {0: [2, 4], 1: [1, 3]}
    assert spans.collectAsMap() == {0: (2, 4), 1: (1, 3)}


def test_a_row_that_is_not_a_pair_fails_at_the_shuffle() -> None:
    assert LocalRDD.of([(1, 2, 3)]).keys().collect() == [1]
    with pytest.raises(ValueError, match="too many values"):
        LocalRDD.of([(1, 2, 3)]).reduceByKey(operator.add).collect()


def test_rows_as_dicts_keep_the_last_of_a_key() -> None:
    assert pairs((1, "a"), (1, "b")).collectAsMap() == {1: "b"}
    assert pairs((1, "a"), (1, "b")).lookup(1) == ["a", "b"]
    assert pairs((1, "a"), (1, "b")).countByKey() == {1: 2}
    assert pairs((1, "a"), (1, "b")).flatMapValues(lambda letter: letter * 2).count() == 4


# -- order -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("partitions", [1, 2, 3, 7])
def test_sorting_is_stable_both_ways(partitions: int, ascending: bool) -> None:
    rng = random.Random(partitions)
    rows = [(rng.randrange(4), i) for i in range(30)]

    sorted_rows = LocalRDD.of(rows, partitions).sortByKey(ascending).collect()

    assert sorted_rows == sorted(rows, key=lambda row: row[0], reverse=not ascending)


def test_sorting_by_a_function_of_the_key_of_another_type_fails_in_several_partitions() -> None:
    words = pairs(("bb", 1), ("a", 2))

    assert words.sortByKey(numPartitions=1, keyfunc=len).keys().collect() == ["a", "bb"]
    with pytest.raises(TypeError):
        words.sortByKey(keyfunc=len).collect()


def test_tops_of_equal_keys_take_the_first() -> None:
    rows = [(1, "a"), (1, "b"), (0, "c"), (1, "d")]

    assert LocalRDD.of(rows, 2).top(2, key=lambda row: row[0]) == [(1, "a"), (1, "b")]
    assert LocalRDD.of(rows, 2).takeOrdered(2, key=lambda row: -row[0]) == [(1, "a"), (1, "b")]
    assert LocalRDD.of(rows, 2).max(key=lambda row: row[0]) == (1, "a")
    with pytest.raises(ValueError, match="negative"):
        LocalRDD.of(rows).takeOrdered(-1)


@pytest.mark.parametrize("count", [-1, 0, 1, 3, 5, 9])
def test_take_goes_through_the_partitions_in_turn(count: int) -> None:
    rows = LocalRDD.of([1, 2, 3, 4, 5], deal=[0, 1, 0, 0, 0, 0, 0, 2, 0, 2])

    assert rows.take(count) == [1, 2, 3, 4, 5][: max(count, 0)]


@pytest.mark.parametrize("partitions", [1, 2, 3, 8])
def test_repartitioning_changes_no_rows(partitions: int) -> None:
    rows = LocalRDD.of([1, 1, 2, 3, 4], 3)

    for moved in (rows.repartition(partitions), rows.coalesce(partitions), rows.cache().persist().unpersist()):
        assert bag(moved) == bag(rows)
    with pytest.raises(ValueError, match="positive"):
        rows.repartition(0)


def test_repartitioning_moves_rows() -> None:
    count_partitions = lambda rdd: rdd.fold(0, lambda count, _: count + 1)  # noqa: E731
    rows = LocalRDD.of([1, 2, 3], 3)

    assert [count_partitions(rdd) for rdd in (rows, rows.coalesce(2), rows.coalesce(5), rows.repartition(5))] == [
        3,
        2,
        3,
        5,
    ]


def test_the_mean_is_spark_s_running_mean() -> None:
    assert LocalRDD.of([1, 2, 4], 2).mean() == pytest.approx(7 / 3)
    assert LocalRDD.of(range(100), deal=[99, 1]).mean() == pytest.approx(49.5)
    assert LocalRDD.of(range(100), deal=[1, 99]).mean() == pytest.approx(49.5)
