"""Figure 12 of the DiffStream paper, as our example fills it: five reducers, three needs."""

from __future__ import annotations

import pytest
from load_example import load_example
from pyspark.sql import DataFrame

import streamtight as tight

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.slow]

mapreduce = load_example("mapreduce")
PATTERNS = mapreduce.PATTERNS
Item = mapreduce.Item

WITH_GOOD_INPUT = ["SingleItem", "IndexValuePair", "MaxRow", "FirstN"]
WHERE_ANY_RIGHT_RESULT_WILL_DO = ["MaxRow", "FirstN", "StrConcat", "StrConcat, streamed"]


def test_each_question_is_asked_of_the_reducers_of_figure_12() -> None:
    assert [name for name, pattern in PATTERNS.items() if pattern.good_input] == WITH_GOOD_INPUT
    assert [name for name, pattern in PATTERNS.items() if pattern.any_right] == WHERE_ANY_RIGHT_RESULT_WILL_DO


# -- always the same: five bugs --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "finding"),
    [
        ("SingleItem", "WRONG_ROWS"),
        ("IndexValuePair", "WRONG_ROWS"),
        ("MaxRow", "WRONG_ROWS"),
        ("FirstN", "WRONG_ROWS"),
        ("StrConcat", "WRONG_ROWS"),
        ("StrConcat, streamed", "ORDER_LOST"),
    ],
)
def test_no_reducer_gives_always_the_same(name: str, finding: str) -> None:
    verdict = mapreduce.deterministic(PATTERNS[name])

    assert verdict.fails
    found = verdict.counterexample
    assert found.finding == finding
    assert found.failing_reruns == found.reruns
    assert len(found.schedule.events) <= 4


def test_a_reducer_of_a_stream_gives_not_always_the_same() -> None:
    verdict = mapreduce.deterministic(PATTERNS["FirstN"], mode="complete")

    assert verdict.fails
    assert verdict.counterexample.finding == "WRONG_ROWS"


def test_a_reducer_that_gets_its_rows_in_order_is_not_accused() -> None:
    def in_order_too(items: DataFrame) -> DataFrame:
        return mapreduce.single_item(items.coalesce(1))

    verdict = tight.compare(
        mapreduce.sequential(mapreduce.single_item),
        in_order_too,
        on=mapreduce.any_items,
        takes=Item,
        gives=mapreduce.Picked,
        mode="batch",
        runs=12,
    )

    assert verdict.require().scope.count == 12


# -- the same on good input: four false alarms avoided ---------------------------------------------------------------


@pytest.mark.parametrize("name", WITH_GOOD_INPUT)
def test_on_good_input_a_reducer_gives_always_the_same(name: str) -> None:
    verdict = mapreduce.deterministic_on_good_input(PATTERNS[name], runs=10)

    assert verdict.require().scope.count == 10


# -- any right result: three false alarms avoided, and wrong values still found --------------------------------------


@pytest.mark.parametrize("name", WHERE_ANY_RIGHT_RESULT_WILL_DO)
def test_any_right_result_is_accepted(name: str) -> None:
    verdict = mapreduce.right(PATTERNS[name], runs=10)

    assert verdict.require().scope.count == 10


@pytest.mark.parametrize(
    ("name", "mutant", "finding"),
    [
        ("MaxRow", mapreduce.min_row, "NOT_ALLOWED"),
        ("FirstN", mapreduce.first_n_and_one, "NOT_ALLOWED"),
        ("FirstN", mapreduce.first_n_with_a_foreign_one, "NOT_ALLOWED"),
        ("StrConcat", mapreduce.str_concat_of_others, "WRONG_ROWS"),
        ("StrConcat, streamed", mapreduce.str_stream_of_others, "WRONG_ROWS"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_wrong_value_is_found_where_any_right_result_will_do(name: str, mutant: object, finding: str) -> None:
    verdict = mapreduce.right(PATTERNS[name], mutant)

    assert verdict.fails
    assert verdict.counterexample.finding == finding


def test_compared_as_sets_a_lost_and_a_doubled_item_are_not_seen() -> None:
    as_sets = tight.equality(by=lambda joined: (joined.key, frozenset(joined.text.split("@"))))
    jobs = (mapreduce.sequential(mapreduce.str_concat), mapreduce.parallel(mapreduce.str_concat_of_others))

    verdict = tight.compare(
        *jobs, on=mapreduce.any_items, equal=as_sets, takes=Item, gives=mapreduce.Joined, mode="batch", runs=5
    )

    assert verdict.holds


# -- RDDs ------------------------------------------------------------------------------------------------------------


def test_a_reducer_of_rdds_gives_another_map_when_two_rows_with_one_x_change_places() -> None:
    # Row 4 is dealt to the worker of row 0, so it comes before row 1.
    items = [Item("a", 0, 0), Item("a", 1, 1), Item("a", 2, 0), Item("a", 3, 0), Item("a", 1, 2)]
    jobs = (mapreduce.sequential_rdd, mapreduce.parallel_rdd)

    verdict = tight.compare(*jobs, on=tight.listed(items), takes=Item, gives=mapreduce.Index, mode="rdd", runs=2)

    assert verdict.fails
    assert verdict.counterexample.finding == "WRONG_ROWS"
    (expected,), (actual,) = verdict.counterexample.expected, verdict.counterexample.actual
    assert (expected.y_of_x[1], actual.y_of_x[1]) == (2, 1)


def test_a_reducer_of_rdds_gives_the_same_map_if_y_is_a_function_of_x() -> None:
    jobs = (mapreduce.sequential_rdd, mapreduce.parallel_rdd)

    verdict = tight.compare(*jobs, on=mapreduce.one_y_for_each_x, takes=Item, gives=mapreduce.Index, mode="rdd", runs=4)

    assert verdict.holds
