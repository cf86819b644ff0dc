"""The catalogue's answers, tried out on Spark: witnesses differ there, and equal programs agree."""

from __future__ import annotations

import itertools
import random
import sys
import types
import typing
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark import RDD
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BooleanType, DataType, DateType, DoubleType, LongType, StringType, StructField, StructType

CATALOGUE = Path(__file__).parents[1] / "catalogue"
sys.path.append(str(CATALOGUE))

import pairs as catalogue  # noqa: E402
from frame_pairs import FRAME_PAIRS  # noqa: E402
from pairs import Pair, Rows  # noqa: E402
from rdd_pairs import RDD_PAIRS  # noqa: E402

pytestmark = pytest.mark.slow

TYPES: dict[type, DataType] = {
    int: LongType(),
    str: StringType(),
    bool: BooleanType(),
    float: DoubleType(),
    date: DateType(),
}
ROUNDS = {"rdd": 1, "frame": 3}
"""How many random inputs equal programs are run on. Plain Python has tried many more for RDDs."""


@pytest.fixture(scope="module", autouse=True)
def functions_by_value() -> Any:
    """The workers do not have the catalogue's folder on their path."""
    from pyspark import cloudpickle

    modules = [sys.modules[name] for name in ("rdd_pairs", "frame_pairs")]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    yield
    for module in modules:
        cloudpickle.unregister_pickle_by_value(module)


def of(verdict: str, pairs: list[Pair]) -> Any:
    return pytest.mark.parametrize("pair", [pair for pair in pairs if pair.verdict == verdict], ids=str)


def schema_of(columns: dict[str, Any]) -> StructType:
    fields = []
    for name, kind in columns.items():
        parts = typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
        [plain] = [part for part in parts if part is not type(None)]
        fields.append(StructField(name, TYPES[plain], nullable=len(parts) > 1))
    return StructType(fields)


def spread(spark: SparkSession, rows: Rows, sizes: list[int]) -> RDD[Any]:
    left = iter(rows)
    partitions = [list(itertools.islice(left, size)) for size in sizes]
    return spark.sparkContext.parallelize(partitions, len(partitions)).flatMap(lambda part: part)


def built(spark: SparkSession, pair: Pair, tables: tuple[Rows, ...], sizes: list[list[int]]) -> list[Any]:
    if pair.api == "rdd":
        return [spread(spark, rows, dealt) for rows, dealt in zip(tables, sizes, strict=True)]
    return [
        spark.createDataFrame(spread(spark, rows, dealt), schema_of(columns), verifySchema=False)
        for rows, columns, dealt in zip(tables, pair.inputs, sizes, strict=True)
    ]


def in_halves(rows: Rows) -> list[int]:
    return [len(rows) // 2, len(rows) - len(rows) // 2]


def results(spark: SparkSession, pair: Pair, tables: tuple[Rows, ...]) -> tuple[Any, Any]:
    inputs = built(spark, pair, tables, [in_halves(rows) for rows in tables])
    return catalogue.outcome(pair.left, inputs), catalogue.outcome(pair.right, inputs)


@of("FAILS", RDD_PAIRS + FRAME_PAIRS)
def test_the_witness_tells_the_programs_apart(spark: SparkSession, pair: Pair) -> None:
    assert pair.witness is not None
    left, right = results(spark, pair, pair.witness)

    assert left != right
    assert (catalogue.RAISES in (left, right)) == ("raises" in pair.why), "raises, and not by intention"


@of("HOLDS", RDD_PAIRS + FRAME_PAIRS)
def test_programs_that_are_equal_agree(spark: SparkSession, pair: Pair) -> None:
    rng = random.Random(pair.name)
    for tables in (
        tuple([] for _ in pair.inputs),
        *(catalogue.drawn_inputs(pair, rng) for _ in range(ROUNDS[pair.api])),
    ):
        left, right = results(spark, pair, tables)
        assert left == right, f"{pair} on {tables}"


@of("NOT_WELL_DEFINED", RDD_PAIRS + FRAME_PAIRS)
def test_the_witness_gives_different_results(spark: SparkSession, pair: Pair) -> None:
    assert pair.witness is not None
    ways = list(itertools.product(*(list(catalogue.arrangements(rows)) for rows in pair.witness)))
    random.Random(pair.name).shuffle(ways)
    seen: dict[Any, set[str]] = {pair.left: set(), pair.right: set()}
    for way in ways:
        inputs = built(spark, pair, tuple(rows for rows, _ in way), [sizes for _, sizes in way])
        for program, outcomes in seen.items():
            outcomes.add(repr(catalogue.outcome(program, inputs)))
            if len(outcomes) > 1:
                return
    pytest.fail(f"always {seen}")


@pytest.mark.parametrize("pair", FRAME_PAIRS, ids=str)
def test_both_programs_give_the_same_columns(spark: SparkSession, pair: Pair) -> None:
    tables = built(spark, pair, tuple([] for _ in pair.inputs), [[0] for _ in pair.inputs])
    left, right = pair.left(*tables), pair.right(*tables)

    assert isinstance(left, DataFrame)
    assert left.dtypes == right.dtypes
