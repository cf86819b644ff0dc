"""Rows side by side: every row is somewhere, equal ones together, and what differs is marked."""

from __future__ import annotations

import json
import random

import pytest

from streamtight.report.rows import MOST_COLUMNS, MOST_ROWS, columns_of, paired, sampled, with_gaps


def row(**fields):
    return {"kind": "N", "fields": fields}


@pytest.mark.parametrize("seed", range(30))
def test_every_row_stands_in_one_pair_and_as_many_equal_ones_as_there_are_together(seed):
    chance = random.Random(seed)
    left, right = (
        [row(k=chance.randint(0, 2), v=chance.randint(0, 2)) for _ in range(chance.randint(0, 8))] for _ in "ab"
    )

    pairs = paired(left, right)

    assert sorted(p.left for p in pairs if p.left is not None) == list(range(len(left)))
    assert sorted(p.right for p in pairs if p.right is not None) == list(range(len(right)))
    assert [p.left for p in pairs if p.left is not None] == sorted(p.left for p in pairs if p.left is not None)
    both = [(p, left[p.left], right[p.right]) for p in pairs if p.left is not None and p.right is not None]
    for pair, one, other in both:
        assert pair.differing == {name for name in ("k", "v") if one["fields"][name] != other["fields"][name]}
    texts = [[json.dumps(one) for one in side] for side in (left, right)]
    most_equal = sum(min(texts[0].count(text), texts[1].count(text)) for text in set(texts[0]))
    assert sum(p.is_same for p in pairs) == most_equal


def test_the_most_similar_rows_are_paired():
    pairs = paired([row(a=1, b=2, c=3)], [row(a=9, b=9, c=3), row(a=1, b=2, c=4)])

    assert [(p.left, p.right, sorted(p.differing)) for p in pairs] == [(None, 0, []), (0, 1, ["c"])]


def test_a_number_is_not_a_text_nor_a_truth_value():
    assert [sorted(p.differing) for p in paired([row(a=1, b=0)], [row(a="1", b=0)])] == [["a"]]
    assert [sorted(p.differing) for p in paired([row(a=1, b=0)], [row(a=True, b=0)])] == [["a"]]


def test_rows_in_another_order_are_told_to_have_moved():
    rows = [row(n=n) for n in range(5)]

    pairs = paired(rows, [*rows[1:], rows[0]])

    assert [p.moved for p in pairs] == [True, False, False, False, False]


@pytest.mark.slow
def test_a_hundred_thousand_rows_are_paired():
    left = [row(k=n, v=n) for n in range(100_000)]
    right = [row(k=n, v=n + (n % 100 == 7)) for n in range(100_000)]

    pairs = paired(left, right)

    assert sum(bool(p.differing) for p in pairs) == 1_000
    assert all(p.left == p.right for p in pairs)


def test_a_sample_has_both_ends_and_what_is_interesting():
    shown = sampled(100_000, [500, 70_000])

    assert {0, 1, 499, 500, 501, 69_999, 70_000, 70_001, 99_998, 99_999} <= set(shown)
    assert len(shown) <= MOST_ROWS
    assert len(sampled(100_000, range(100_000))) <= MOST_ROWS + 40
    assert sampled(MOST_ROWS) == list(range(MOST_ROWS))


def test_gaps_and_places_are_all_there_is():
    told = list(with_gaps([1, 2, 7], 10))

    assert told == [(None, 1), (1, 1), (2, 1), (None, 4), (7, 1), (None, 2)]


def test_of_many_columns_the_first_and_those_that_differ_are_shown():
    names, count = columns_of([row(**{f"c{n}": n for n in range(300)})], {"c250"})

    assert count == 300
    assert names[:4] == ["c0", "c1", "c2", "c3"]
    assert "c250" in names
    assert len(names) <= MOST_COLUMNS
