"""`prove` on real Spark: what differs is seen to differ there before it is told."""

from __future__ import annotations

import importlib
import io

import pytest

import streamtight as tight
from streamtight.errors import SourceError

asked = importlib.import_module("streamtight.spark.prove")
pytestmark = pytest.mark.usefixtures("spark")


def doubled(numbers):
    return numbers.map(lambda x: 2 * x).filter(lambda x: x >= 100)


def filtered(numbers):
    return numbers.filter(lambda x: x >= 50).map(lambda x: 2 * x)


def off_by_one(numbers):
    return numbers.filter(lambda x: x > 50).map(lambda x: 2 * x)


def counts_partitions(numbers):
    return numbers.fold(0, lambda a, x: a + 1)


def divided(numbers):
    return numbers.map(lambda x: 10 // x)


def divided_if_possible(numbers):
    return numbers.map(lambda x: 10 // x if x else 0)


NUMBERS = [tight.rdd(int)]


def test_programs_that_are_equal_are_proved_to_be():
    verdict = tight.prove(doubled, filtered, inputs=NUMBERS).require()

    assert str(verdict) == "HOLDS  filtered gives what doubled gives (proved for every input)"


def test_programs_that_differ_fail_with_a_row():
    verdict = tight.prove(doubled, off_by_one, inputs=NUMBERS)

    assert verdict.fails
    assert verdict.counterexample.finding == "DIFFERENT"
    assert verdict.counterexample.table.rows == (("50", "100", "no rows"),)


def test_a_fold_that_counts_partitions_is_not_well_defined():
    verdict = tight.prove(counts_partitions, lambda numbers: numbers.count(), inputs=NUMBERS)

    assert verdict.counterexample.finding == "NOT_WELL_DEFINED"
    assert verdict.counterexample.table.columns == ("input 1", "in 1 partition", "in 3 partitions")


def test_what_differs_is_run_on_spark_twice():
    found = tight.prove(doubled, off_by_one, inputs=NUMBERS).counterexample

    assert (found.reruns, found.failing_reruns) == (2, 2)


def test_a_row_may_not_come_first_or_last():
    verdict = tight.prove(lambda numbers: numbers.first(), lambda numbers: numbers.first(), inputs=NUMBERS)

    assert verdict.counterexample.finding == "NOT_WELL_DEFINED"
    assert "from the last row to the first" in verdict.story()


def test_an_exception_in_a_task_is_a_result_like_others():
    verdict = tight.prove(divided, divided_if_possible, inputs=NUMBERS)

    assert verdict.counterexample.table.rows == (("0", "raises ZeroDivisionError", "0"),)


def test_what_is_pasted_shows_both_results(capsys):
    replay = tight.prove(doubled, off_by_one, inputs=NUMBERS).counterexample.replay

    exec(replay, {"doubled": doubled, "off_by_one": off_by_one})

    assert capsys.readouterr().out == "[100]\n[]\n"


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ([int], "tight.rdd"),
        ([], "an input or more"),
        ([tight.rdd(int), tight.rdd(int)], "as many inputs as inputs= says, 2"),
        ([tight.rdd(int), tight.table(k=int)], "as many inputs"),
    ],
)
def test_wrong_inputs_are_told(inputs, told):
    with pytest.raises(SourceError, match=told):
        tight.prove(doubled, filtered, inputs=inputs)


def test_what_is_no_program_is_told():
    with pytest.raises(SourceError, match="a function of RDDs"):
        tight.prove(doubled, "filtered", inputs=NUMBERS)


def test_a_context_that_is_no_input_is_told(spark):
    def united(numbers):
        return numbers.union(spark.sparkContext.parallelize([1]))

    verdict = tight.prove(united, united, inputs=NUMBERS)

    assert verdict.undecided
    assert "uses spark, a SparkSession that is no input of it" in verdict.reason


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_who_waits_at_a_terminal_is_told_for_how_long(monkeypatch):
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    monkeypatch.setattr(asked, "QUIET", 0.01)

    tight.prove(doubled, filtered, inputs=NUMBERS)

    assert "prove: 0 of 10 seconds" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\033[K")  # the line goes when the answer comes


def test_a_program_is_deterministic_or_not():
    assert tight.deterministic(lambda numbers: numbers.reduce(max), inputs=NUMBERS).holds

    verdict = tight.deterministic(counts_partitions, inputs=NUMBERS)

    assert str(verdict).startswith("FAILS  counts_partitions gives the same however its rows are spread")
    assert verdict.counterexample.finding == "NOT_WELL_DEFINED"
