"""Tables: sorted batches, cut anywhere, give what a monitor for each key gives."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from streamtight.errors import QueryError
from streamtight.method.watch.columns import Asked
from streamtight.method.watch.tables import SortedTables
from streamtight.properties.query import cur
from streamtight.properties.query_library import count, current, greatest, mean, total
from streamtight.spark.watch import watch


def rows(table: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


def values(table: Any) -> list[Any]:
    return table["value"].to_pylist()


# -- cuts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("changes", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_sorted_batches_cut_anywhere_give_the_answers_of_the_whole(seed: int, changes: bool) -> None:
    rng = random.Random(seed)
    count_of = rng.randint(1, 30)
    whole = pa.table(
        {
            "k": pa.array([rng.choice(["a", "b", None]) for _ in range(count_of)]),
            "t": list(range(count_of)),
            "v": pa.array([rng.choice([0.5, 1.0, math.nan]) for _ in range(count_of)]),
        }
    ).sort_by([("k", "ascending"), ("t", "ascending")])
    asked = Asked(
        {"value": greatest(cur.v)}, ("k",), ("t",), None, None, (), "changes" if changes else "values", False, False, {}
    )
    made, _ = asked.questions({"k": None, "t": "i", "v": "f"})
    prepared = whole.append_column("_streamtight_tag", pa.array([0] * count_of, pa.int32())).append_column(
        "_streamtight_field_0", whole["v"]
    )
    schema = pa.schema([*(whole.schema.field(n) for n in "kt"), ("value", pa.float64()), ("status", pa.string())])
    task = SortedTables(made, 1, ["k"], ["t"], ["k", "t"], False, changes, schema)
    (batch,) = prepared.combine_chunks().to_batches()
    cuts = sorted({0, count_of, *(rng.randrange(count_of) for _ in range(rng.randint(0, 8)))})

    together = pa.Table.from_batches(task([batch]), schema)
    apart = pa.Table.from_batches(task(batch.slice(a, b - a) for a, b in itertools.pairwise(cuts)), schema)

    assert repr(rows(together)) == repr(rows(apart)), seed


def test_each_key_has_answers_of_its_own_in_order() -> None:
    table = pa.table({"k": ["a", "b", "a", None, None], "t": [2, 1, 1, 2, 1], "v": [5, 7, 1, 1, 1]})

    assert rows(watch(total(cur.v), table, key="k", order_by="t")) == [
        ("a", 1, 1, "defined"),
        ("a", 2, 6, "defined"),
        ("b", 1, 7, "defined"),
        (None, 1, 1, "defined"),
        (None, 2, 2, "defined"),
    ]


def test_without_order_by_the_order_of_the_table_counts() -> None:
    table = pa.table({"k": ["b", "a", "b"], "v": [5, 7, 1]})

    assert rows(watch(total(cur.v), table, key="k")) == [("a", 7, "defined"), ("b", 5, "defined"), ("b", 6, "defined")]


@pytest.mark.parametrize(
    ("keys", "counts"),
    [
        (pa.array([math.nan, 1.0, math.nan]), [1, 1, 2]),
        (pa.array([0.0, -0.0, 0.0]), [1, 2, 3]),
        (pa.array([2**53, 2**53 + 1, None]), [1, 1, 1]),
    ],
    ids=["NaN", "-0.0", "large"],
)
def test_keys_are_told_apart_as_numbers_are(keys: Any, counts: list[int]) -> None:
    table = pa.table({"k": keys, "t": [1, 2, 3]})

    assert sorted(values(watch(count(), table, key="k", order_by="t"))) == sorted(counts)


# -- ties and orders -------------------------------------------------------------------------------------------------


def test_different_rows_of_equal_order_are_refused() -> None:
    with pytest.raises(QueryError, match=r"different rows at {'t': 1}"):
        watch(total(cur.v), pa.table({"t": [1, 1], "v": [2**53, 2**53 + 1]}), order_by="t")


def test_equal_rows_of_equal_order_are_harmless() -> None:
    assert values(watch(total(cur.v), pa.table({"t": [1, 1], "v": [5, 5]}), order_by="t")) == [5, 10]


def test_ties_may_be_taken_in_any_order() -> None:
    table = pa.table({"t": [1, 1], "v": [5, 7]})

    assert values(watch(total(cur.v), table, order_by="t", ties="any"))[-1] == 12


def test_a_second_column_may_order_rows_of_equal_time() -> None:
    table = pa.table({"t": [1, 1], "n": [2, 1], "v": [5, 7]})

    assert values(watch(current(cur.v), table, order_by=["t", "n"])) == [7, 5]


def test_a_row_whose_order_is_null_is_refused() -> None:
    with pytest.raises(QueryError, match=r"column 't'.*came null"):
        watch(total(cur.v), pa.table({"t": pa.array([1, None]), "v": [5, 7]}), order_by="t")


# -- outputs ---------------------------------------------------------------------------------------------------------


def test_changes_are_answers_that_differ_from_the_one_before() -> None:
    table = pa.table({"t": [1, 2, 3, 4], "v": [1, 1, 2, 2]})

    assert rows(watch(greatest(cur.v, before=0), table, order_by="t", outputs="changes")) == [
        (1, 1, "defined"),
        (3, 2, "defined"),
    ]


def test_whole_numbers_and_floats_are_compared_for_changes() -> None:
    table = pa.table({"t": [1, 2, 3], "v": [1.0, 2.5, 2.5]})
    found = watch({"q": greatest(cur.v, before=1)}, table, order_by="t", outputs="changes", gives={"q": "double"})

    assert found["q"].to_pylist() == [1.0, 2.5]


def test_alarms_are_rows_at_which_it_is_false() -> None:
    table = pa.table({"t": [1, 2, 3], "v": [1, 9, 2]})

    assert rows(watch(current(cur.v) < 5, table, order_by="t", outputs="alarms")) == [(2, False, "defined")]


def test_alarms_of_a_query_with_a_value_are_refused() -> None:
    with pytest.raises(QueryError, match="true or false"):
        watch(total(cur.v), pa.table({"t": [1], "v": [1]}), order_by="t", outputs="alarms")


def test_rows_without_a_tag_are_refused() -> None:
    with pytest.raises(QueryError, match="a row without a tag"):
        watch(count("a"), pa.table({"t": [1, 2], "kind": ["a", "z"]}), order_by="t", tags="kind")


@pytest.mark.parametrize("tag", ["z", None])
def test_rows_without_a_tag_may_be_ignored(tag: str | None) -> None:
    table = pa.table({"t": [1, 2, 3], "kind": ["a", tag, "a"]})

    assert rows(watch(count("a"), table, order_by="t", tags="kind", others="ignore")) == [
        (1, 1, "defined"),
        (3, 2, "defined"),
    ]


def test_tags_may_be_conditions() -> None:
    table = pa.table({"t": [1, 2, 3], "v": [1, 9, 3]})
    tags = {"high": lambda t: pc.greater(t["v"], 5), "low": lambda t: pc.less_equal(t["v"], 5)}

    assert values(watch(count("high"), table, order_by="t", tags=tags)) == [0, 1, 1]


# -- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["_tag", "_field_0", "_place", "_order_", "_nulls", "a b", "a`b", "a.b", ""])
def test_columns_may_have_any_name(name: str) -> None:
    table = pa.table({name: ["x", "x", "y"], "t": [1, 2, 3], "v": [5, 7, 1]})

    assert rows(watch(total(cur.v), table, key=name, order_by="t")) == [
        ("x", 1, 5, "defined"),
        ("x", 2, 12, "defined"),
        ("y", 3, 1, "defined"),
    ]


def test_a_field_may_have_a_name_with_blanks_and_dots() -> None:
    table = pa.table({"t": [1, 2], "unit price.of": [5, 7]})

    assert values(watch(total(cur["unit price.of"]), table, order_by="t")) == [5, 12]


@pytest.mark.parametrize("queries", [{"t": total(cur.v)}, {"a": total(cur.v), "a_status": count()}], ids=str)
def test_names_of_answers_must_not_clash(queries: Any) -> None:
    with pytest.raises(QueryError, match="names of answers that no column has"):
        watch(queries, pa.table({"t": [1], "v": [5]}), order_by="t")


def test_the_column_value_may_be_read_if_it_is_not_kept() -> None:
    assert values(watch(total(), pa.table({"t": [1, 2], "value": [5, 7]}), order_by="t", value="value")) == [5, 12]


# -- types -----------------------------------------------------------------------------------------------------------


def test_nan_of_pandas_stays_nan() -> None:
    frame = pd.DataFrame({"t": [1, 2], "v": [math.nan, 1.0]})

    assert watch(current(cur.v != cur.v), frame, order_by="t")["value"].tolist() == [True, False]


def test_values_that_do_not_fit_their_type_are_refused() -> None:
    with pytest.raises(QueryError, match="values that fit int64"):
        watch(total(cur.v), pa.table({"t": [1, 2], "v": [2**62, 2**62]}), order_by="t")


def test_answers_of_an_unknown_type_need_gives() -> None:
    table = pa.table({"t": [1], "v": pa.array([1], pa.decimal128(5, 2))})

    with pytest.raises(QueryError, match="the type of its values"):
        watch(current(cur.v + cur.v), table, order_by="t")


def test_a_type_that_nobody_knows_is_refused() -> None:
    with pytest.raises(QueryError, match=r"gives=\.\.\."):
        watch(total(cur.v), pa.table({"t": [1], "v": [1]}), order_by="t", gives={"value": "quux"})


def test_an_empty_table_has_no_answers() -> None:
    table = pa.table({"t": pa.array([], pa.int64()), "v": pa.array([], pa.float64())})

    assert rows(watch(mean(cur.v), table, order_by="t")) == []


def test_nan_as_a_key_of_events_is_one_key() -> None:
    events = [("v", {"k": float("nan")}), ("v", {"k": float("nan")})]

    assert list(watch(count("v"), events, key="k")) == [1, 2]
