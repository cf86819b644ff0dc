"""`prove` on real Spark: what differs is seen to differ there before it is told."""

from __future__ import annotations

import pytest

import streamtight as tight
from streamtight.errors import SourceError

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


def test_an_exception_in_a_task_is_a_result_like_others():
    verdict = tight.prove(divided, divided_if_possible, inputs=NUMBERS)

    assert verdict.counterexample.table.rows == (("0", "raises ZeroDivisionError", "0"),)


def test_what_is_pasted_shows_both_results(capsys):
    replay = tight.prove(doubled, off_by_one, inputs=NUMBERS).counterexample.replay

    exec(replay, {"doubled": doubled, "off_by_one": off_by_one})

    assert capsys.readouterr().out == "[100]\n[]\n"


@pytest.mark.parametrize(
    ("inputs", "told"), [([int], "tight.rdd"), ([tight.rdd(int), tight.rdd(int)], "a function of 2 RDDs")]
)
def test_wrong_inputs_are_told(inputs, told):
    with pytest.raises(SourceError, match=told):
        tight.prove(doubled, filtered, inputs=inputs)
