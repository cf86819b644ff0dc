"""Blocks of items, with and without keys, give what the monitor gives item by item, however the items are cut."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamtight.errors import QueryError
from streamtight.method.watch.blocks import Blocks, KeyedBlocks
from streamtight.properties.monitor import Compiled
from streamtight.properties.query import Query, any_, atom, cur, iter_, or_, second, split
from streamtight.properties.query_library import count, current, mean, total, variance

sys.path.insert(0, str(Path(__file__).parents[2] / "properties"))
from queries import TAGS, Seeded, any_query, temporal_query, value_query, well_typed

SEEDS = range(15)
FEW = [0, 10**9]
"""Compiled at once; never."""
VALUES: list[list[Any]] = [
    [0, 1, 2, -1, -5, 7],
    [0, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)],
    [0.0, -0.0, 1.5, -2.5, math.nan, math.inf, 1e308],
    [True, False],
    [1, 2.5, True, 10**30],
]


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return repr(one) == repr(other)
    return one is other or bool(one == other)


def run_in_blocks(rng: Seeded, run: Any, items: list[tuple[str, Any]], keys: list[Any] | None) -> list[Any]:
    """The answers, cut anywhere; up to the block that is refused."""
    found: list[Any] = []
    begin = 0
    while begin < len(items):
        end = begin + rng.choice([0, 1, 1, 3, 10])
        tags, values = [tag for tag, _ in items[begin:end]], [value for _, value in items[begin:end]]
        more = {} if keys is None else {"keys": keys[begin:end]}
        try:
            found += run.run(tags, values, **more).listed()
        except QueryError:
            return found
        begin = end
    return found


def one_by_one(compiled: Compiled, items: list[tuple[str, Any]], keys: list[Any]) -> list[Any]:
    monitors: dict[Any, Any] = {}
    found = []
    for (tag, value), key in zip(items, keys, strict=True):
        if key not in monitors:
            monitors[key] = compiled.monitor()
        try:
            found.append(monitors[key].update(tag, value))
        except QueryError:
            return found
    return found


def random_items(rng: Seeded) -> list[tuple[str, Any]]:
    values = rng.choice(VALUES)
    return [(rng.choice(TAGS), rng.choice(values)) for _ in range(rng.randint(0, 30))]


def agree(expected: list[Any], found: list[Any], is_refused: bool) -> bool:
    """The same answers; of a block that is refused there are none."""
    whole = len(found) <= len(expected) if is_refused else len(found) == len(expected)
    return whole and all(map(same, expected, found))


@pytest.mark.parametrize("few", FEW)
@pytest.mark.parametrize("seed", SEEDS)
def test_blocks_cut_anywhere_give_what_the_monitor_gives(seed: int, few: int) -> None:
    rng = Seeded(seed)
    compiled = Compiled(well_typed(rng, rng.choice([any_query, value_query, temporal_query])), TAGS)
    items = random_items(rng)

    expected = one_by_one(compiled, items, [0] * len(items))
    found = run_in_blocks(rng, Blocks(compiled, few=few), items, None)

    assert agree(expected, found, len(expected) < len(items)), rng


@pytest.mark.parametrize("few", FEW)
@pytest.mark.parametrize("seed", SEEDS)
def test_keyed_blocks_cut_anywhere_give_what_a_monitor_for_each_key_gives(seed: int, few: int) -> None:
    rng = Seeded(1000 + seed)
    compiled = Compiled(well_typed(rng, rng.choice([any_query, value_query, temporal_query])), TAGS)
    items = random_items(rng)
    keys = [rng.choice(["a", "b", None, "c"]) for _ in items]

    expected = one_by_one(compiled, items, keys)
    found = run_in_blocks(rng, KeyedBlocks(compiled, few=few), items, keys)

    assert agree(expected, found, len(expected) < len(items)), rng


# -- what is refused changes nothing ---------------------------------------------------------------------------------


@pytest.mark.parametrize("few", FEW)
@pytest.mark.parametrize("place", [0, 2, 4])
def test_a_block_with_an_item_that_is_refused_changes_nothing(place: int, few: int) -> None:
    blocks = Blocks(total(1 / cur).compile(["v"]), few=few)
    before = blocks.run(None, np.array([2.0])) and blocks.state
    column = np.array([4.0] * 5)
    column[place] = 0.0

    with pytest.raises(QueryError, match="ZeroDivisionError"):
        blocks.run(None, column)

    assert blocks.state == before
    assert blocks.run(None, np.array([4.0])).listed() == [0.75]


@pytest.mark.parametrize("few", FEW)
@pytest.mark.parametrize("place", [0, 2, 4])
def test_with_keys_a_block_with_an_item_that_is_refused_changes_no_key(place: int, few: int) -> None:
    blocks = KeyedBlocks(total(1 // cur).compile(["v"]), few=few)
    keys = np.array([7, 8, 7, 8, 7])
    blocks.run(None, np.ones(5, dtype=np.int64), keys=keys)
    before = blocks.states
    column = np.ones(5, dtype=np.int64)
    column[place] = 0

    with pytest.raises(QueryError, match="ZeroDivisionError"):
        blocks.run(None, column, keys=keys)

    assert blocks.states == before


def test_the_item_that_is_refused_is_named() -> None:
    with pytest.raises(QueryError, match=r"at the item \('v', 0\)"):
        Blocks(total(1 / cur).compile(["v"]), few=0).run(None, [1, 0])


# -- types -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize(
    "columns",
    [
        [[1, 2], [0.5], [2**53 + 1]],
        [[0.5], [2**53 + 1], [1]],
        [[True], [3], [2.5], [False]],
        [[2**62, 2**62], [0.5], [1]],
        [[None], [1]],
        [[1, None, 2]],
    ],
    ids=str,
)
def test_types_of_columns_may_change_between_blocks(columns: list[list[Any]], keyed: bool) -> None:
    compiled = current(before=0).compile(["v"]) if any(None in each for each in columns) else total().compile(["v"])
    monitor = compiled.monitor()
    run: Any = KeyedBlocks(compiled, few=0) if keyed else Blocks(compiled, few=0)
    for column in columns:
        more = {"keys": [1] * len(column)} if keyed else {}
        expected = [monitor.update("v", value) for value in column]
        assert all(map(same, expected, run.run(None, pa.array(column), **more).listed()))


def test_a_key_that_has_not_come_yet_starts_with_whole_numbers_after_blocks_of_floats() -> None:
    blocks = KeyedBlocks(total().compile(["v"]), few=0)
    blocks.run(None, np.array([0.5, 0.25]), keys=["a", "a"])
    blocks.run(None, np.array([1.5, 0.0]), keys=["a", "b"])

    assert blocks.run(None, np.array([2**53 + 1]), keys=["c"]).listed() == [2**53 + 1]


@pytest.mark.parametrize("dtype", [np.uint64, object])
def test_numbers_beyond_64_bits_are_exact(dtype: Any) -> None:
    column = np.array([2**64 - 1, 1], dtype=dtype)

    assert Blocks(total().compile(["v"]), few=0).run(None, column).listed() == [2**64 - 1, 2**64]


def test_small_floats_are_calculated_with_as_pythons() -> None:
    column = np.array([0.1, 0.3], dtype=np.float32)
    monitor = variance().compile(["v"]).monitor()

    found = Blocks(variance().compile(["v"]), few=0).run(None, column).listed()
    assert found == [monitor.update("v", value) for value in column.tolist()]


@pytest.mark.parametrize("few", FEW)
def test_an_empty_block_has_no_answers(few: int) -> None:
    assert Blocks(total().compile(["v"]), few=few).run([], []).listed() == []


def test_an_empty_block_with_keys_has_no_answers() -> None:
    assert KeyedBlocks(total().compile(["v"]), few=0).run([], [], keys=[]).listed() == []


def _far_back(n: int) -> Query:
    """The sum of an item with tag a and the n after it, where there is one n items ago."""
    found: Query = split(iter_(any_(0), 0, second), atom("a", cur), second)
    for _ in range(n):
        found = split(found, any_(cur), lambda x, y: x + y)
    return found


@pytest.mark.parametrize("few", FEW)
def test_more_than_64_control_states_give_what_the_monitor_gives(few: int) -> None:
    # Any sum of the item seven, eight, ... before an item: what is kept is a set of places.
    compiled = _far_back(7).compile(TAGS)
    assert compiled.program.controls == 1
    rng = Seeded(5)
    items = [(rng.choice(TAGS), rng.randint(-5, 5)) for _ in range(60)]

    found = run_in_blocks(rng, Blocks(compiled, few=few), items, None)
    assert all(map(same, one_by_one(compiled, items, [0] * 60), found))


@pytest.mark.parametrize("few", FEW)
def test_three_hundred_tags_are_told_apart(few: int) -> None:
    tags = [f"t{number}" for number in range(300)]
    points = or_(atom("t7", 1), atom("t299", 10), any_(0, but=["t7", "t299"]))
    compiled = iter_(points, 0, lambda x, y: x + y).compile(tags)

    assert Blocks(compiled, few=few).run(["t7", "t299", "t43", "t299"], [0] * 4).listed() == [1, 11, 11, 21]


# -- keys ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("few", FEW)
@pytest.mark.parametrize(
    ("keys", "counts"),
    [
        ([1, 2, 1], [1, 1, 2]),
        (["a", None, "a", None], [1, 1, 2, 2]),
        ([math.nan, 1.0, float("nan")], [1, 1, 2]),
        ([0.0, -0.0, 0.0], [1, 2, 3]),
        ([2**63, -1, 2**63, 2**70, -1], [1, 1, 2, 1, 2]),
        ([-5, 2**40, -5], [1, 1, 2]),
        (["1", 1, "1"], [1, 1, 2]),
        ([("a", 1), ("a", 2), ("a", 1)], [1, 1, 2]),
        ([True, False, True], [1, 1, 2]),
        (np.array([1, 2, 1], dtype=np.uint64), [1, 1, 2]),
        (np.array([2**22, 3, 2**22]), [1, 1, 2]),
        (np.array(["a", "b", "a"]), [1, 1, 2]),
        (np.array([math.nan, math.nan, -0.0, 0.0]), [1, 2, 1, 2]),
        (pa.array(["a", None, None]), [1, 1, 2]),
        (pa.chunked_array([["a"], ["b", "a"]]), [1, 1, 2]),
        (pa.array(["a", None, "a", None]).dictionary_encode(), [1, 1, 2, 2]),
    ],
    ids=str,
)
def test_each_key_has_answers_of_its_own(keys: Any, counts: list[int], few: int) -> None:
    blocks = KeyedBlocks(count().compile(["v"]), few=few)

    assert blocks.run(["v"] * len(counts), None, keys=keys).listed() == counts


@pytest.mark.parametrize("few", FEW)
def test_new_keys_may_come_in_each_block(few: int) -> None:
    blocks = KeyedBlocks(total().compile(["v"]), few=few)
    found = [blocks.run(None, [1] * 20, keys=list(range(at, at + 20))).listed() for at in range(0, 100, 10)]

    assert found[0] == [1] * 20
    assert all(each == [2] * 10 + [1] * 10 for each in found[1:])


def test_small_and_other_keys_are_the_same_keys() -> None:
    blocks = KeyedBlocks(count().compile(["v"]), few=0)
    blocks.run(["v"], None, keys=np.array([5]))

    assert blocks.run(["v", "v", "v"], None, keys=[5, 2**50, 5.0]).listed() == [2, 1, 3]


def test_states_can_be_restored() -> None:
    compiled = mean().compile(["v"])
    blocks = KeyedBlocks(compiled, few=0)
    blocks.run(None, np.array([1.0, 3.0, 5.0]), keys=["a", "a", None])

    again = KeyedBlocks(compiled, blocks.states, few=0)
    assert again.run(None, np.array([5.0, 7.0]), keys=["a", None]).listed() == [3.0, 6.0]


# -- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tags", [["v", "w"], ["v", None], np.array([0, 1]), np.array([-1, 0]), ["v", 5]], ids=str)
def test_unknown_tags_are_refused(tags: Any) -> None:
    with pytest.raises(QueryError, match="the tag"):
        Blocks(total(tag="v").compile(["v"]), few=0).run(tags, [1, 2])


def test_a_category_that_no_row_has_is_not_refused() -> None:
    tags = pa.array(["w", "v"]).dictionary_encode()[1:]

    assert Blocks(total(tag="v").compile(["v"])).run(tags, [1]).listed() == [1]


def test_a_missing_column_is_refused() -> None:
    with pytest.raises(QueryError, match="a column for the field 'price'"):
        Blocks(total(cur.price).compile(["v"])).run(None, {"prices": [1]})


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(QueryError, match="columns of one length"):
        Blocks(total().compile(["v"])).run(["v"], [1, 2])


def test_too_few_keys_are_refused() -> None:
    with pytest.raises(QueryError, match="2 keys"):
        KeyedBlocks(total().compile(["v"])).run(None, [1, 2], keys=["a"])


def test_several_tags_must_be_told() -> None:
    with pytest.raises(QueryError, match="the tag of each item"):
        Blocks(count("a").compile(TAGS)).run(None, [1, 2])
