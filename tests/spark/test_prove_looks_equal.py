"""Programs on DataFrames that differ where no small input shows it: none of them may be proved to be equal."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

import streamtight as tight

pytestmark = pytest.mark.usefixtures("spark")

NUMBERS = tight.table(v=int)
KEYED = tight.table(k=int, v=int, d=str)


def sql(text: str) -> Any:
    return lambda t: t.sparkSession.sql(text)


def counted(t: DataFrame) -> DataFrame:
    try:
        n = t.count() // 1000
    except Exception:
        n = 0
    return t.where(sf.col("v") >= n)


def raises_rarely(v):  # type: ignore[no-untyped-def]  # Spark warns of hints
    return 1 // (v * v - 1000000)


LOOK_EQUAL: dict[str, tuple[Any, Any, Any]] = {
    "a sum beside the rows": (
        sql("SELECT * FROM (SELECT k, v, d, sum(v) OVER (PARTITION BY k, d) s FROM t) WHERE v=50 AND k=7 AND d='x'"),
        sql(
            "SELECT * FROM (SELECT k, v, d, sum(abs(v)) OVER (PARTITION BY k, d) s FROM t) WHERE v=50 AND k=7 AND d='x'"
        ),
        KEYED,
    ),
    "a subquery that may be empty": (
        sql("SELECT * FROM t WHERE EXISTS (SELECT max(v) FROM t WHERE v-123000<>456 HAVING max(v) IS NOT NULL)"),
        lambda t: t,
        NUMBERS,
    ),
    "a day in a function of Python": (
        lambda t: t.where(sf.udf(lambda d: d.year == 1999, "boolean")("d")),
        lambda t: t.where(sf.udf(lambda d: d.year == 1998, "boolean")("d")),
        tight.table(d=date),
    ),
    "a decimal in a function of Python": (
        lambda t: t.select(sf.udf(lambda x: x / 2, "decimal(10,2)")("v").alias("w"), "v").where("w + w = v"),
        lambda t: t.select(sf.udf(lambda x: x / 2, "decimal(10,2)")("v").alias("w"), "v"),
        tight.table(v="decimal(10,2)"),
    ),
    "a function of another type than is declared": (
        lambda t: t.select(sf.udf(lambda x: x > 1, "long")("v").alias("x")),
        lambda t: t.selectExpr("CAST(v > 1 AS BIGINT) x"),
        NUMBERS,
    ),
    "an error that is swallowed": (counted, lambda t: t.where("v >= 0"), NUMBERS),
    "a decimal that does not fit": (
        lambda t: t.where("try_cast(p as decimal(4,2)) is null"),
        lambda t: t.where("false"),
        tight.table(p="decimal(10,2)"),
    ),
    "a number that does not fit": (
        lambda t: t.where("try_cast(v as tinyint) is null"),
        lambda t: t.where("false"),
        NUMBERS,
    ),
}


@pytest.mark.parametrize("name", list(LOOK_EQUAL))
def test_what_only_looks_equal_is_not_proved(name: str):
    left, right, table = LOOK_EQUAL[name]
    named = {"t": table}

    verdict = tight.prove(_of_t(left), _of_t(right), inputs=list(named.values()))

    assert not verdict.holds


def _of_t(program: Any) -> Any:
    def of_t(t: DataFrame) -> DataFrame:
        made: DataFrame = program(t)
        return made

    return of_t


def test_a_branch_that_is_not_taken_may_raise():
    def guarded(t: DataFrame) -> DataFrame:
        value = sf.udf(raises_rarely, "long")("v")
        return t.select(sf.when(sf.col("v") * sf.col("v") != 1000000, value).otherwise(0).alias("x"))

    def total(t: DataFrame) -> DataFrame:
        return t.select(sf.udf(lambda v: 0 if v * v == 1000000 else 1 // (v * v - 1000000), "long")("v").alias("x"))

    verdict = tight.prove(guarded, total, inputs=[NUMBERS])

    assert not verdict.holds or "no value makes one of them raise" in verdict.assumptions


def test_the_least_number_of_a_narrow_type_has_no_other_rest_than_in_spark():
    def rest(t: DataFrame) -> DataFrame:
        return t.where("a + 100 < 0 AND b = -128").selectExpr("CAST(pmod(a, b) AS INT) r")

    def wrong(t: DataFrame) -> DataFrame:
        case = "CASE WHEN a + 127 < 0 THEN 0 ELSE a + 128 END"
        return t.where("a + 100 < 0 AND b = -128").selectExpr(f"CAST({case} AS INT) r")

    table = tight.table("a TINYINT NOT NULL, b TINYINT NOT NULL")

    assert not tight.prove(rest, wrong, inputs=[table], overflow=True).holds
