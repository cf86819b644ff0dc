"""The order lint on plans: every label of the catalogue, what is shown, and what is not known."""

from __future__ import annotations

import linecache
import sys
from pathlib import Path

import pytest
from pyspark import RDD
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

import streamtight as tight
from streamtight.errors import SourceError, TraceError
from streamtight.method.typecheck.findings import RULES, Shown
from streamtight.spark.lint_known import ONE_ZERO, OPAQUE, ROUGH, SOURCES
from streamtight.spark.run import Job
from streamtight.spark.typecheck import examine, second_opinion, typecheck

sys.path.append(str(Path(__file__).parents[1] / "catalogue" / "lint_jobs"))

from all_jobs import JOBS, LintJob

pytestmark = [
    pytest.mark.usefixtures("spark"),
    pytest.mark.filterwarnings("ignore:Cannot infer the eval type"),
    pytest.mark.filterwarnings("ignore:It is preferred to use 'applyInPandas'"),
]
by_name = {one.name: one for one in JOBS}
table = tight.table(k=int, v=int, d=float)


@pytest.mark.parametrize("one", JOBS, ids=str)
def test_what_is_found_is_what_the_label_says(one: LintJob) -> None:
    found = examine(one.function, takes=one.takes, gives=one.gives, mode=one.mode, confirm=False)

    assert {(each.rule.name, each.place.line) for each in found.findings} == one.expected
    assert bool(found.reading.unknown) is one.unknown
    assert found.verdict.undecided if one.expected or one.unknown else found.verdict.holds


def test_half_of_the_catalogue_is_clean_and_the_12_cases_of_the_paper_are_in_it() -> None:
    clean = [one for one in JOBS if not one.expected]
    reducers = [one for one in JOBS if one.function.__module__ == "mapreduce_jobs"]

    assert len(JOBS) >= 60
    assert len(clean) >= 30
    assert (len(reducers), sum(not one.expected for one in reducers)) == (12, 6)
    assert len(by_name) == len(JOBS)


def test_every_rule_is_found_in_the_catalogue_or_has_tests_of_its_own() -> None:
    # RDDs are asked below; sinks, on the command line.
    elsewhere = {"REDUCE_ORDER", "SINK_APPENDS_AGAIN", "MODE_COUNTS_TWICE"}

    assert {name for one in JOBS for name, _ in one.expected} == set(RULES) - elsewhere


@pytest.mark.parametrize(
    "name",
    [
        "a_handful",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("landing_page", "one_row_for_each_user", "loaded_at")
        ),
    ],
)
def test_a_finding_that_runs_show_fails_with_two_of_them(name: str) -> None:
    one = by_name[name]

    found = examine(one.function, takes=one.takes, mode=one.mode)

    (finding,) = found.findings
    assert finding.shown is Shown.SHOWN
    assert found.verdict.fails
    assert found.verdict.counterexample.finding == finding.rule.name
    assert found.verdict.counterexample.failing_reruns > 0


@pytest.mark.slow
def test_of_two_findings_each_is_shown_where_the_other_does_not_reach() -> None:
    def two(df: DataFrame) -> DataFrame:
        return df.groupBy("k").agg(sf.first("v").alias("f"), sf.sum("v").alias("s"), sf.collect_list("v").alias("all"))

    found = examine(two, takes=table, runs=6)

    assert [(one.rule.name, one.columns, one.shown) for one in found.findings] == [
        ("FIRST_VALUE", ("f",), Shown.SHOWN),
        ("LIST_ORDER", ("all",), Shown.SHOWN),
    ]


@pytest.mark.slow
def test_what_a_comment_ignores_does_not_show_another_finding() -> None:
    def stamped(df: DataFrame) -> DataFrame:
        one = df.limit(100_000)
        return one.withColumn("at", sf.current_timestamp())  # streamtight: ignore[CLOCK]

    found = examine(stamped, takes=table, runs=3)

    (finding,) = found.findings
    assert (finding.rule.name, finding.shown) == ("LIMIT_WITHOUT_ORDER", Shown.NOT_SHOWN)
    assert found.verdict.undecided


def test_what_cannot_be_shown_is_told_apart_and_does_not_fail() -> None:
    def never_cut(df: DataFrame) -> DataFrame:
        return df.limit(100_000)

    verdict = typecheck(never_cut, takes=table, runs=3)

    assert verdict.undecided
    assert "LIMIT_WITHOUT_ORDER (error, tried, not shown)" in verdict.reason


def test_without_confirm_nothing_is_run() -> None:
    def raises_when_run(df: DataFrame) -> DataFrame:
        return df.where(sf.raise_error(sf.lit("run")).isNull()).limit(1)

    verdict = typecheck(raises_when_run, takes=table, confirm=False)

    assert verdict.undecided
    assert "seconds on Spark" not in verdict.cost


def test_nothing_found_holds_for_every_input_and_says_what_it_assumes() -> None:
    verdict = typecheck(lambda df: df.groupBy("k").agg(sf.sum("v")), takes=table)

    assert str(verdict.scope) == "proved for every input"
    assert verdict.assumptions == ("no sum of integers or decimals overflows",)


@pytest.mark.parametrize(
    "job",
    [
        lambda df: df.groupBy("k").agg(sf.max("d").cast("string")),
        lambda df: df.groupBy("d").agg(sf.first(sf.col("d").cast("string"))),
        lambda df: df.dropDuplicates(["d"]).select(sf.col("d").cast("string")),
        lambda df: df.select("d").distinct(),
        lambda df: df.select("d").orderBy("d").limit(1),
    ],
    ids=["max", "key", "duplicates", "distinct", "limit"],
)
def test_equal_zeros_that_can_be_told_apart_are_an_assumption(job: Job) -> None:
    assert typecheck(job, takes=table).require().assumptions == (ONE_ZERO,)


def test_a_function_over_a_window_is_called_by_its_own_name() -> None:
    def running(df: DataFrame) -> DataFrame:
        rows = Window.partitionBy("k").orderBy("k").rowsBetween(Window.unboundedPreceding, 0)
        return df.select("k", "d", sf.max("v").over(rows).alias("most"))

    (finding,) = examine(running, takes=table, confirm=False).findings

    assert (finding.rule.name, finding.place.operation) == ("TIED_ORDER", "max")


def test_an_operator_that_is_not_known_is_undecided_with_its_line() -> None:
    def mapped(df: DataFrame) -> DataFrame:
        return df.mapInPandas(lambda batches: batches, "k bigint, v bigint, d double")

    verdict = typecheck(mapped, takes=table)

    assert verdict.undecided
    assert "mapInPandas (" in verdict.reason
    assert "test_lint.py:" in verdict.reason


def test_a_job_that_runs_an_action_is_undecided() -> None:
    verdict = typecheck(lambda df: df if df.count() else df.limit(1), takes=table)

    assert verdict.undecided
    assert "runs an action" in verdict.reason


def test_what_a_comment_ignores_is_an_assumption() -> None:
    def loaded(df: DataFrame) -> DataFrame:
        return df.withColumn("at", sf.current_timestamp())  # streamtight: ignore[CLOCK]

    assert "ignore" in " ".join(typecheck(loaded, takes=table).require().assumptions)


def test_a_function_that_merges_in_no_order_is_shown_with_its_line() -> None:
    def last(numbers: RDD[int]) -> int:
        return numbers.map(lambda x: x + 1).reduce(lambda a, b: a - b)  # here

    found = examine(last, takes=tight.rdd(int))

    (finding,) = found.findings
    assert (finding.rule.name, finding.place.operation, finding.shown) == ("REDUCE_ORDER", "reduce", Shown.SHOWN)
    assert linecache.getline(finding.place.file, finding.place.line).rstrip().endswith("# here")
    assert found.verdict.fails


def test_a_function_that_merges_in_any_order_holds() -> None:
    assert typecheck(lambda numbers: numbers.reduce(max), takes=[tight.rdd(int)]).holds


def test_rdds_and_tables_do_not_mix() -> None:
    with pytest.raises(SourceError, match="RDDs alone"):
        typecheck(lambda one, other: one, takes=[tight.rdd(int), table])  # type: ignore[list-item]


def test_a_wrong_mode_is_refused() -> None:
    with pytest.raises(TraceError, match="batch, append"):
        typecheck(lambda df: df, takes=table, mode="rdd")


@pytest.mark.slow
def test_functions_that_spark_calls_not_deterministic_are_known_as_such(spark: SparkSession) -> None:
    """A second way: Spark's own descriptions of its functions."""
    rows = spark.sql("SHOW FUNCTIONS").collect()
    told = set()
    for (name,) in rows:
        text = "\n".join(row[0] for row in spark.sql(f"DESCRIBE FUNCTION EXTENDED `{name}`").collect())
        if "non-deterministic" in text:
            told.add(text.split("Class: org.apache.spark.sql.catalyst.expressions.")[1].split("\n")[0].split(".")[-1])
    known = set(SOURCES) | OPAQUE | ROUGH | {"First", "Last", "AnyValue", "CollectList", "CollectSet", "MaxBy", "MinBy"}
    known |= {"Mode", "ModeBuilder", "ListAgg", "MaxByBuilder", "MinByBuilder"}
    known |= {"CollectUnion"}  # not known as an aggregate, so that nothing is said of it

    assert told
    assert told - known == set()


@pytest.mark.slow
@pytest.mark.parametrize("one", [one for one in JOBS if not one.expected and not one.unknown], ids=str)
def test_where_nothing_is_found_no_two_runs_differ(one: LintJob) -> None:
    if one.name == "meant_so":
        return  # it does differ, and a comment says that this is meant
    assert not second_opinion(one.function, takes=one.takes, gives=one.gives, mode=one.mode, runs=6).fails


@pytest.mark.slow
@pytest.mark.parametrize("one", [one for one in JOBS if one.expected and one.mode == "batch"], ids=str)
def test_what_is_found_is_shown_by_two_runs(one: LintJob) -> None:
    found = examine(one.function, takes=one.takes, gives=one.gives)

    assert all(each.shown.is_seen for each in found.findings) or one.name in NOT_SHOWN


NOT_SHOWN = {
    "a_clock_in_a_case",
    "about_the_median",
    "distinct_pages",
    "favourite_page",
    "first_of_what_does_not_determine",
    "floating_sum_as_a_condition",
    "join_that_multiplies_the_key",
    "joined_with_any_event",
    "recent_orders",
    "revenue",
    "seen_pages_of_a_list",
    "sums_of_roots_and_halves",
    "union_of_keys",
}
"""Jobs whose finding is real, and which small inputs on one machine do not show."""


def test_an_operator_with_columns_of_its_own_that_is_not_known_is_told_once() -> None:
    def largest(rows: DataFrame) -> DataFrame:
        def keep(key, frames, state):  # not run: its plan is read
            yield from frames

        return rows.groupBy("k").applyInPandasWithState(keep, "k BIGINT", "largest BIGINT", "append", "NoTimeout")

    found = examine(largest, takes=table, mode="append", confirm=False)

    assert found.findings == ()
    assert len(found.reading.unknown) == 1
    assert found.verdict.undecided
