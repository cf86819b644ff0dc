"""The catalogue's answers for RDD programs, tried out in plain Python. tests/spark tries all of them on Spark."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any

import pytest
from frame_pairs import FRAME_PAIRS
from pairs import RAISES, Pair, Rows, arrangements, deals, drawn_inputs, outcome
from rdd_pairs import RDD_PAIRS

from streamtight.errors import UnsupportedError
from streamtight.method.prove.local import LocalRDD


def of(verdict: str) -> Any:
    return pytest.mark.parametrize("pair", [pair for pair in RDD_PAIRS if pair.verdict == verdict], ids=str)


def local(rows: Rows, sizes: list[int]) -> LocalRDD:
    return LocalRDD.of(rows, deal=sizes)


@of("FAILS")
def test_the_witness_tells_the_programs_apart_in_whatever_partitions(pair: Pair) -> None:
    rng = random.Random(pair.name)
    assert pair.witness is not None
    for _ in range(10):
        inputs = [local(rows, deals(rows, rng)) for rows in pair.witness]
        left, right = outcome(pair.left, inputs), outcome(pair.right, inputs)
        assert left != right
        assert (RAISES in (left, right)) == ("raises" in pair.why), "raises, and not by intention"


@of("HOLDS")
def test_programs_that_are_equal_agree_on_random_inputs(pair: Pair) -> None:
    rng = random.Random(pair.name)
    raised = 0
    for _ in range(100):
        tables = drawn_inputs(pair, rng)
        left, right = (
            outcome(program, [local(rows, deals(rows, rng)) for rows in tables]) for program in (pair.left, pair.right)
        )
        assert left == right, f"{pair} on {tables}"
        raised += left == RAISES
    assert raised < 50, "raises mostly: says little"


@of("NOT_WELL_DEFINED")
def test_the_witness_gives_different_results_in_different_partitions(pair: Pair) -> None:
    assert pair.witness is not None
    ways = itertools.product(*(list(arrangements(rows)) for rows in pair.witness))
    inputs = [[local(rows, sizes) for rows, sizes in way] for way in ways]

    assert any(len({repr(outcome(program, rdds)) for rdds in inputs}) > 1 for program in (pair.left, pair.right))


@pytest.mark.parametrize("method", ["zip", "glom", "mapPartitions", "sample", "zipWithIndex"])
def test_what_shows_partitions_is_refused(method: str) -> None:
    [pair] = [pair for pair in RDD_PAIRS if pair.verdict == "UNDECIDED" and pair.why == method]

    with pytest.raises(UnsupportedError, match=method):
        pair.left(LocalRDD.of([1]))


def test_names_are_different() -> None:
    assert [name for name, count in Counter(pair.name for pair in RDD_PAIRS + FRAME_PAIRS).items() if count > 1] == []


def test_about_half_of_the_catalogue_is_false() -> None:
    for pairs in (RDD_PAIRS, FRAME_PAIRS):
        false = sum(pair.verdict in ("FAILS", "NOT_WELL_DEFINED") for pair in pairs)
        assert 0.4 < false / len(pairs) < 0.6
