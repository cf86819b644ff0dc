"""The pytest plugin on real jobs: what fails is kept, tried first, retired; a session is shared, or each worker's."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import streamtight.spark.check
import streamtight.spark.compare  # noqa: F401 - inner runs forget what they load, but not this
from streamtight.source.kept import Kept, all_kept
from streamtight.stream.event import Kind

pytest_plugins = ["pytester"]

JOBS = """
from pyspark.sql import functions as F

def old(orders):
    return orders.where("amount > 0")

def new(orders):
    return orders.where("amount {} 0")

def spread(orders):
    return orders.withColumn("at", F.spark_partition_id())
"""
TESTS = """
import importlib, jobs
import streamtight as tight

importlib.reload(jobs)  # pytest runs several times in one process here
Order = tight.Kind("Order", user=str, amount=int)

def test_new_gives_what_old_gives(tight_session):
    tight_session.compare(jobs.old, jobs.new, on=tight.generated(Order)).require()
"""


@pytest.fixture
def project(
    pytester: pytest.Pytester, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> Iterator[pytest.Pytester]:
    for name in [name for name in os.environ if name.startswith("STREAMTIGHT_")]:
        monkeypatch.delenv(name)
    write(pytester, ">=")
    pytester.makepyfile(test_shop=TESTS)
    yield pytester
    assert spark.range(3).count() == 3, "an inner run stopped the session that it found"


def write(project: pytest.Pytester, sign: str) -> None:
    project.makepyfile(jobs=JOBS.format(sign))


def kept(project: pytest.Pytester) -> list[Kept]:
    return list(all_kept(project.path / ".streamtight"))


def cost(project: pytest.Pytester, folder: str) -> tuple[str, str, str]:
    (verdict,) = json.loads((project.path / folder / "streamtight.json").read_text())["verdicts"]
    return verdict["outcome"], verdict["scope"]["text"], verdict["method"]


@pytest.mark.slow
def test_a_real_failure_is_kept_tried_first_and_retired_when_the_job_is_right(project: pytest.Pytester) -> None:
    first = project.runpytest("--streamtight-report=first", "--streamtight-seed=4")
    (case,) = kept(project)
    again = project.runpytest("--streamtight-report=again")
    only = project.runpytest("--streamtight-only-kept", case.ask["test"])
    write(project, "> 0 and amount >")
    fixed = project.runpytest("--streamtight-report=fixed", "--streamtight-runs=7")

    first.assert_outcomes(failed=1)
    first.stdout.fnmatch_lines(
        [
            "FAILS  new gives the same stream as old*: EXTRA_ROWS *",
            "test_shop.py:8: in test_new_gives_what_old_gives",
            f"again: streamtight replay {case.id}",
        ]
    )
    assert cost(project, "first")[1].endswith("seed 4")
    schedule = case.schedule_of([Kind("Order", user=str, amount=int)])
    assert schedule is not None
    assert [event.amount for event in schedule.events] == [0]  # the two jobs differ on nothing else
    again.assert_outcomes(failed=1)
    assert cost(project, "again")[2] == "an input that failed before, and was kept"
    assert only.ret == pytest.ExitCode.TESTS_FAILED
    fixed.assert_outcomes(passed=1)
    fixed.stdout.fnmatch_lines(
        [f"fixed: {case.id}  new gives the same stream as old*", "report: *fixed/streamtight.html"]
    )
    assert cost(project, "fixed")[:2] == ("HOLDS", "tested on 7 generated inputs, seed 0")
    assert kept(project) == []


@pytest.mark.slow
def test_a_case_that_is_replayed_alone_is_retired_when_the_job_is_right(project: pytest.Pytester) -> None:
    project.runpytest()
    (case,) = kept(project)
    write(project, ">")

    fixed = project.runpytest("--streamtight-only-kept", case.ask["test"])

    assert fixed.ret == pytest.ExitCode.OK
    fixed.stdout.fnmatch_lines([f"fixed: {case.id}  *"])
    assert kept(project) == []


@pytest.mark.slow
def test_laws_are_kept_one_by_one(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_shop="""
        import jobs
        import streamtight as tight

        Order = tight.Kind("Order", user=str, amount=int)

        def test_laws(tight_session):
            tight_session.laws(jobs.spread, on=tight.generated(Order), only=["cuts", "partitions"], runs=5)
            tight_session.require()
        """
    )

    found = project.runpytest("--streamtight-report=out")
    again = project.runpytest("--streamtight-only-kept")

    found.assert_outcomes(failed=1)
    found.stdout.fnmatch_lines(["*PARTITION_DEPENDENT*"])
    data = json.loads((project.path / "out" / "streamtight.json").read_text())["verdicts"]
    outcomes = {verdict["claim"]: verdict["outcome"] for verdict in data}
    assert len(outcomes) == 2
    assert {case.claim for case in kept(project)} == {
        claim for claim, outcome in outcomes.items() if outcome == "FAILS"
    }
    again.assert_outcomes(failed=1)


def test_a_property_is_a_test_like_others(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_shop="""
        import jobs
        import streamtight as tight

        Order = tight.Kind("Order", user=str, amount=int)

        @tight.property(jobs.new, on=Order, runs=50)
        def test_amounts_are_positive():
            return tight.always(tight.all_records("output", lambda row: row.amount > 0), during=3)
        """
    )

    found = project.runpytest()
    (case,) = kept(project)
    again = project.runpytest("--streamtight-only-kept")
    write(project, ">")
    fixed = project.runpytest()

    found.stdout.fnmatch_lines(["FAILS  new keeps *", "test_shop.py:6: in test_amounts_are_positive"])
    again.assert_outcomes(failed=1)
    fixed.assert_outcomes(passed=1)
    fixed.stdout.fnmatch_lines([f"fixed: {case.id}  new keeps *"])
    assert kept(project) == []


def test_a_job_that_raises_is_told_by_its_message_and_the_users_own_lines(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_shop="""
        import streamtight as tight

        Order = tight.Kind("Order", user=str, amount=int)

        def broken(orders):
            return orders.select("no_such_column")

        def dividing(orders):
            return orders.selectExpr("1 / amount as share")

        def test_when_it_is_built(tight_session):
            tight_session.compare(broken, broken, on=tight.generated(Order)).require()

        def test_when_it_runs(tight_session):
            tight_session.compare(dividing, dividing, on=tight.generated(Order)).require()
        """
    )

    result = project.runpytest()

    shown = "".join(line for line in result.stdout.lines if not line.startswith('{"ts": '))  # Spark's own log
    result.stdout.fnmatch_lines(
        [
            "AnalysisException: *no_such_column*",
            "test_shop.py:12: in test_when_it_is_built",
            "test_shop.py:6: in broken",
            "JobError: *",
            "  came  *DIVIDE_BY_ZERO*",
            "test_shop.py:15: in test_when_it_runs",
        ]
    )
    assert "src/streamtight" not in shown
    assert "py4j" not in shown
    assert len(result.stdout.lines) < 80


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [[], ["-n", "2"]], ids=["alone", "workers"])
def test_the_session_is_started_once_for_each_process_in_folders_of_its_own_and_stopped(
    pytester: pytest.Pytester, arguments: list[str]
) -> None:
    pytester.makepyfile(jobs=JOBS.format(">="))
    tests = "".join(
        f"""
def test_{number}(spark, tmp_path_factory):
    seen = [spark.sparkContext.applicationId, spark.conf.get("spark.sql.warehouse.dir")]
    spark.sql("create table mine as select {number} as n")
    assert spark.table("mine").collect()[0].n == {number}
    spark.sql("drop table mine")
    assert spark.range(3).checkpoint().count() == 3
    SEEN.joinpath("{number}").write_text("\\n".join(seen))
"""
        for number in range(4)
    )
    pytester.makepyfile(test_sessions=f"import pathlib\nSEEN = pathlib.Path(__file__).parent\n{tests}")

    result = pytester.runpytest_subprocess("--dist=load", *arguments)

    result.assert_outcomes(passed=4)
    seen = [Path(pytester.path, str(number)).read_text().splitlines() for number in range(4)]
    processes = 2 if arguments else 1
    assert len({application for application, _ in seen}) == processes
    assert len({warehouse for _, warehouse in seen}) == processes
    assert not Path(pytester.path, "spark-warehouse").exists()


@pytest.mark.slow
def test_workers_ask_real_questions_side_by_side(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(jobs=JOBS.format(">="), test_shop=TESTS, test_more=TESTS.replace("jobs.new", "jobs.old"))

    result = pytester.runpytest_subprocess(
        "-n", "2", "--dist=loadfile", "--streamtight-report=out", "--streamtight-runs=9"
    )

    result.assert_outcomes(failed=1, passed=1)
    data = json.loads((pytester.path / "out" / "streamtight.json").read_text())["verdicts"]
    assert {verdict["test"].split("::")[0]: verdict["outcome"] for verdict in data} == {
        "test_shop.py": "FAILS",
        "test_more.py": "HOLDS",
    }
    assert [case.ask for case in kept(pytester)] == [{"test": "test_shop.py::test_new_gives_what_old_gives"}]


@pytest.mark.slow
def test_the_first_test_of_the_page_passes_and_finds_the_bug_that_it_names(project: pytest.Pytester) -> None:
    page = Path(__file__).parents[2] / "docs" / "pytest.md"
    block = page.read_text().split("```python\n")[1].split("```")[0]
    project.makepyfile(test_shop=block)
    right = project.runpytest("--streamtight-runs=9")
    project.makepyfile(test_shop=block.replace("not amount <= 2", "amount >= 2"))
    wrong = project.runpytest("-k", "rewritten")

    right.assert_outcomes(passed=2)
    wrong.assert_outcomes(failed=1)
    wrong.stdout.fnmatch_lines(
        [
            "FAILS  large_orders_rewritten gives the same stream as large_orders: *",
            "test_shop.py:17: in test_the_rewritten_job_gives_what_the_old_one_gives",
        ]
    )
