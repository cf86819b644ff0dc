"""`prove` for programs on DataFrames and in SQL."""

from __future__ import annotations

import time
from datetime import date, datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import streamtight as tight
from streamtight.errors import SourceError

pytestmark = pytest.mark.usefixtures("spark")

T = tight.table(k=int | None, v=int | None)
Program = Any


def ask(left: Program, right: Program, *inputs: Any, **settings: Any) -> tight.Verdict:
    return tight.prove(left, right, inputs=list(inputs or [T]), **settings)


# -- answers ---------------------------------------------------------------------------------------------------------


def pushed_down(t: DataFrame) -> DataFrame:
    return t.where("v >= 50").select("k", (sf.col("v") * 2).alias("d"))


def projected(t: DataFrame) -> DataFrame:
    return t.select("k", (sf.col("v") * 2).alias("d")).where("d >= 100")


def test_a_proof_tells_its_method_and_what_it_assumes():
    verdict = ask(projected, pushed_down).require()

    assert str(verdict) == (
        "HOLDS  pushed_down gives what projected gives (proved for every input, assuming that integers do not overflow)"
    )
    assert verdict.method.startswith("NoAgg")
    assert verdict.assumptions == ("integers do not overflow",)


def test_what_differs_is_seen_on_spark_and_can_be_pasted(capsys: pytest.CaptureFixture[str]):
    def not_new(t: DataFrame) -> DataFrame:
        return t.where("v != 1")

    def new_or_null(t: DataFrame) -> DataFrame:
        return t.where("NOT v <=> 1")

    found = ask(not_new, new_or_null).counterexample
    assert found.table.rows == (("(0, None)", "no rows", "(0, None)"),)
    assert (found.reruns, found.failing_reruns) == (2, 2)

    exec(found.replay, {"not_new": not_new, "new_or_null": new_or_null})
    assert capsys.readouterr().out == "[]\n[Row(k=0, v=None)]\n"


@pytest.mark.slow
def test_dates_and_decimals_can_be_pasted(capsys: pytest.CaptureFixture[str]):
    def early(t: DataFrame) -> DataFrame:
        return t.where("d < '2024-01-01' AND c > 1.5")

    def late(t: DataFrame) -> DataFrame:
        return t.where("d <= '2024-01-01' AND c > 1.5")

    found = ask(early, late, tight.table(d=date, c="decimal(6,2)")).counterexample

    exec(found.replay, {"early": early, "late": late})
    assert capsys.readouterr().out.startswith("[]\n[Row(d=datetime.date(2024, 1, 1), c=Decimal(")


@pytest.mark.slow
def test_sql_finds_the_tables_by_the_parameters_of_the_first_program(spark: SparkSession):
    def in_sql(orders: DataFrame, users: DataFrame) -> DataFrame:
        return spark.sql("SELECT users.k, v FROM orders JOIN users ON orders.k = users.k WHERE v > 10")

    def in_python(t: DataFrame, u: DataFrame) -> DataFrame:
        return t.where("v > 10").join(u, "k").select(u.k, "v")

    users = tight.table(k=int | None)
    assert ask(in_sql, in_python, T, users).holds
    off = ask(in_sql, lambda t, u: t.where("v >= 10").join(u, "k").select(u.k, "v"), T, users)
    assert "orders.createOrReplaceTempView('orders')" in off.counterexample.replay


def test_python_functions_are_read():
    plus = sf.udf(lambda v: None if v is None else v + 1, "long")

    assert ask(lambda t: t.select(plus("v").alias("w")), lambda t: t.selectExpr("v + 1 AS w")).holds
    assert ask(lambda t: t.select(plus("v").alias("w")), lambda t: t.selectExpr("coalesce(v, 0) + 1 AS w")).fails


@pytest.mark.parametrize(
    "other",
    [
        lambda t: t.select("k", sf.col("v").alias("w")),
        lambda t: t.select("k", sf.col("v").cast("int")),
        lambda t: t.select("k"),
        lambda t: t.select("v", "k"),
    ],
)
def test_other_columns_are_a_difference_on_every_input(other: Program):
    verdict = ask(lambda t: t, other)

    assert verdict.counterexample.finding == "DIFFERENT_COLUMNS"
    assert verdict.counterexample.table.rows[0][:2] == ("no rows", "k bigint\nv bigint")


def test_whether_a_column_may_be_null_is_no_difference():
    assert ask(lambda t: t.where("v IS NOT NULL"), lambda t: t.na.drop(subset=["v"])).holds


# -- order -----------------------------------------------------------------------------------------------------------


def test_an_order_of_one_program_is_left_out_and_that_is_told():
    verdict = ask(lambda t: t.orderBy("v"), lambda t: t)

    assert verdict.assumptions == ("the order of rows does not matter",)


def test_orders_of_both_are_compared():
    assert ask(lambda t: t.orderBy("v").where("k > 0"), lambda t: t.where("k > 0").orderBy("v")).holds
    assert ask(lambda t: t.orderBy("v", "k"), lambda t: t.orderBy("k", "v")).fails
    assert ask(lambda t: t.orderBy("v", "k"), lambda t: t.orderBy(sf.desc("v"), "k")).fails
    assert ask(lambda t: t.orderBy("v", "k"), lambda t: t.orderBy(sf.asc_nulls_last("v"), "k")).fails


def test_what_ties_leave_open_is_not_decided():
    verdict = ask(lambda t: t.orderBy("v"), lambda t: t.orderBy("v", "k"))

    assert verdict.undecided
    assert "same order" in verdict.reason


def test_a_limit_without_an_order_is_not_well_defined(capsys: pytest.CaptureFixture[str]):
    def one(t: DataFrame) -> DataFrame:
        return t.limit(1)

    verdict = ask(one, one)

    assert verdict.counterexample.finding == "NOT_WELL_DEFINED"
    assert verdict.counterexample.table.columns[1:] == (
        "in 1 partition",
        "in 1 partition, from the last row to the first",
    )
    exec(verdict.counterexample.replay, {"one": one})
    first, second = capsys.readouterr().out.splitlines()
    assert first != second


# -- what is declared ------------------------------------------------------------------------------------------------


def test_a_condition_holds_for_all_rows():
    some = tight.table(v=int).where("v >= 0").where("v < 100")

    assert ask(lambda t: t, lambda t: t.where("v BETWEEN 0 AND 99"), some).holds
    assert ask(lambda t: t, lambda t: t.where("v BETWEEN 1 AND 99"), some).counterexample.table.rows[0][0] == "(0,)"


def test_counterexamples_keep_the_key():
    by_key = tight.table(k=int, v=int).key("k")

    verdict = ask(lambda t: t.groupBy("k").agg(sf.max("v").alias("v")), lambda t: t.where("v > 0"), by_key)
    assert verdict.counterexample.table.rows == (("(0, 0)", "(0, 0)", "no rows"),)
    assert not ask(lambda t: t.distinct(), lambda t: t, by_key).fails


def test_a_sample_stands_for_all_tables_with_its_columns(spark: SparkSession):
    sample = spark.createDataFrame([(1, "a")], "k INT, s STRING")

    assert ask(lambda t: t.where("s = 'a' AND k > 1"), lambda t: t.where("k > 1").where("s = 'a'"), sample).holds


def test_a_condition_that_cannot_be_one_is_told():
    with pytest.raises(SourceError, match="zz"):
        ask(lambda t: t, lambda t: t, tight.table(v=int).where("zz > 0"))


# -- what is not read ------------------------------------------------------------------------------------------------


def test_what_cannot_be_read_is_tried_on_spark():
    def numbered(t: DataFrame) -> DataFrame:
        return t.select(sf.concat_ws("-", "k", "v").alias("s"))

    def put_together(t: DataFrame) -> DataFrame:
        return t.select(sf.concat(sf.col("k"), sf.lit("-"), sf.col("v")).alias("s"))

    refuted = ask(numbered, put_together)
    assert refuted.fails

    same = ask(numbered, numbered)
    assert same.undecided
    assert "ConcatWs" in same.reason
    assert "test_prove_frames.py" in same.reason
    assert same.scope.count > 3


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (lambda t: t.count(), "an action"),
        (lambda t: t.rdd.map(lambda row: row), "leaves DataFrames"),
        (lambda t: 5, "int"),
        (lambda t: None, "NoneType"),
        (lambda t: t.withColumn("r", sf.rand()), "Rand"),
        (lambda t: t.where(f"v > {print('x')}"), "print"),
        (lambda t: remembered.append(1) or t, "changes remembered"),
    ],
)
def test_what_is_no_description_of_a_table_is_not_decided(program: Program, reason: str):
    verdict = ask(program, program)

    assert verdict.undecided
    assert reason in verdict.reason


remembered: list[int] = []


def test_what_differs_from_run_to_run_is_no_difference():
    verdict = ask(lambda t: t.withColumn("r", sf.rand()), lambda t: t.withColumn("r", sf.rand()))

    assert verdict.undecided
    assert "for the same rows" in verdict.reason


def test_a_table_from_elsewhere_is_told(spark: SparkSession):
    other = spark.range(3)

    verdict = ask(lambda t: t.crossJoin(other), lambda t: t.crossJoin(other))

    assert "uses other, a DataFrame that is no input of it" in verdict.reason


@pytest.mark.parametrize(
    ("left", "inputs", "told"),
    [
        (lambda t: t.where("zz > 0"), [T], "zz"),
        (lambda t, u: t, [T], "as many inputs"),
        (lambda t: t, [tight.table(k=int), tight.rdd(int)], "as many inputs"),
        (lambda t, u: t, [tight.table(k=int), tight.rdd(int)], "RDDs alone, or tables alone"),
    ],
)
def test_wrong_questions_are_told(left: Program, inputs: list[Any], told: str):
    with pytest.raises(SourceError, match=told):
        tight.prove(left, left, inputs=inputs)


def test_what_spark_does_not_calculate_does_not_raise():
    """Spark asks before it divides, although the program divides first."""

    def divided_first(t):
        return t.withColumn("share", sf.lit(10) / sf.col("k")).where("k != 0").select("share")

    def asked_first(t):
        return t.where("k != 0").select((sf.lit(10) / sf.col("k")).alias("share"))

    verdict = tight.prove(divided_first, asked_first, inputs=[tight.table(k=int)])

    assert verdict.holds
    assert "no value makes one of them raise" in verdict.assumptions


# -- wrong questions, and programs without an end --------------------------------------------------------------------


def endless(t: DataFrame) -> DataFrame:
    while True:
        pass


def endless_on_spark(t: DataFrame) -> DataFrame:
    while True:
        t = t.select("*")


@pytest.mark.parametrize("program", [endless, endless_on_spark])
def test_a_program_without_an_end_is_stopped_and_spark_goes_on(program: Program):
    started = time.monotonic()
    verdict = ask(program, lambda t: t, seconds=1)

    assert verdict.undecided
    assert "no end within" in verdict.reason
    assert time.monotonic() - started < 15
    ask(projected, pushed_down).require()


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (lambda t: t.sparkSession.sql("selct * from t"), "PARSE_SYNTAX_ERROR.*selct"),
        (lambda t: t.sparkSession.sql("select * from orders"), "named after the parameters of the first program: t"),
    ],
    ids=["syntax", "view"],
)
def test_what_spark_says_of_wrong_sql_is_told(program: Program, told: str):
    with pytest.raises(SourceError, match=told):
        ask(program, lambda t: t)


def test_one_input_needs_no_list():
    assert tight.prove(projected, pushed_down, inputs=T).holds
    with pytest.raises(SourceError, match="a list"):
        tight.prove(projected, pushed_down, inputs=5)


@pytest.mark.parametrize(
    ("left", "right", "table"),
    [
        ("d = date'9999-12-31'", "d < date'9999-12-31'", tight.table(d=date)),
        ("d = date'0001-01-01'", "d > date'0001-01-01'", tight.table(d=date)),
        ("d = timestamp'9999-12-31 23:59:59'", "d < timestamp'9999-12-31 23:59:59'", tight.table(d=datetime)),
        ("d >= 1000000000000000000000000000000", "d > 1000000000000000000000000000000", tight.table(d="decimal(38,2)")),
        ("d BETWEEN -128 AND 127", "d > -128", tight.table(d="tinyint")),
    ],
    ids=["last day", "first day", "last second", "large decimal", "least number"],
)
def test_the_ends_of_types_can_be_tried_and_pasted(
    left: str, right: str, table: Any, capsys: pytest.CaptureFixture[str]
):
    programs = {"one": lambda t: t.where(left), "other": lambda t: t.where(right)}
    for name, program in programs.items():
        program.__name__ = name
    found = ask(programs["one"], programs["other"], table).counterexample

    exec(found.replay, programs)
    one, other = capsys.readouterr().out.splitlines()
    assert one != other


def test_a_condition_that_no_row_satisfies_proves_nothing():
    verdict = ask(lambda t: t, lambda t: t.where("k > 0"), T.where("k > 0 AND k < 0"))
    assert verdict.undecided
    assert "no row was found" in verdict.reason

    rare = tight.table(k=int).where("k > 5000 AND k % 97 = 5")
    assert ask(lambda t: t.where("k > 0"), lambda t: t, rare).holds


@pytest.mark.slow
def test_a_lambda_can_be_pasted_under_the_name_program(capsys: pytest.CaptureFixture[str]):
    def first(t: DataFrame) -> DataFrame:
        return t.limit(1)

    found = tight.deterministic(lambda t: first(t), inputs=[tight.table(k=int)]).counterexample

    exec(found.replay, {"program": first})
    one, other = capsys.readouterr().out.splitlines()
    assert one != other
