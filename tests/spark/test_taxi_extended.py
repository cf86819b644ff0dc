"""More taxi jobs: days and months, places, punctuations (Figures 5, 6 and 7 of the DiffStream paper)."""

from __future__ import annotations

import pytest
from load_example import load_example

import streamtight as tight

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.slow]

taxi = load_example("taxi_extended")
EndOfDay, EndOfMonth, Located = taxi.EndOfDay, taxi.EndOfMonth, taxi.Located
Passed, Punctuation, Seen = taxi.Passed, taxi.Punctuation, taxi.Seen

A_PLACE = Located(1, 0, 0)


# -- days and months -------------------------------------------------------------------------------------------------


def test_the_end_of_a_month_may_pass_positions_but_not_the_end_of_a_day() -> None:
    upto = taxi.COMES_OUT

    assert upto.independent(EndOfMonth(1), A_PLACE)
    assert upto.depends(EndOfMonth(1), EndOfDay(2))
    assert upto.depends(EndOfMonth(1), EndOfMonth(2))
    assert upto.depends(EndOfDay(2), A_PLACE)


def test_all_rows_in_one_partition_keep_the_days() -> None:
    def in_one_partition(rows):
        return taxi.in_metres(rows.repartition(1))

    assert taxi.keeps_the_days(in_one_partition, runs=10).require().scope.count == 10


def test_a_job_that_keeps_only_the_taxis_together_lets_positions_pass_the_end_of_a_day() -> None:
    verdict = taxi.keeps_the_days(taxi.keeps_taxis_only)

    assert verdict.fails
    found = verdict.counterexample
    assert found.finding == "RACE"
    assert "barrier(EndOfDay)" in found.explanation
    assert len(found.schedule.events) == 2


def test_a_job_that_puts_the_months_apart_lets_them_pass_the_end_of_a_day() -> None:
    verdict = taxi.keeps_the_days(taxi.months_on_their_own)

    assert verdict.fails
    found = verdict.counterexample
    assert found.finding == "RACE"
    assert {event.kind for event in found.schedule.events} == {EndOfDay, EndOfMonth}


# -- places ----------------------------------------------------------------------------------------------------------


def test_a_job_that_keeps_each_city_together_keeps_the_order_of_close_positions() -> None:
    assert taxi.keeps_close_ones(taxi.by_city, runs=15).require().scope.count == 15


def test_a_job_that_keeps_each_square_together_loses_the_order_across_its_edges() -> None:
    verdict = taxi.keeps_close_ones(taxi.by_square)

    assert verdict.fails
    found = verdict.counterexample
    assert found.finding == "RACE"
    one, other = found.schedule.events
    assert taxi.are_close(one, other)
    assert (one.x // 1, one.y // 1) != (other.x // 1, other.y // 1)


# -- punctuations ----------------------------------------------------------------------------------------------------


def test_a_job_that_sorts_by_time_changes_nothing_if_nothing_is_late() -> None:
    verdict = taxi.keeps_late_ones_late(taxi.sorted_by_time, on=taxi.all_on_time, runs=10)

    assert verdict.require().scope.count == 10


def test_a_job_that_sorts_by_time_makes_late_positions_look_as_if_they_had_been_on_time() -> None:
    verdict = taxi.keeps_late_ones_late(taxi.sorted_by_time, on=taxi.some_late)

    assert verdict.fails
    found = verdict.counterexample
    assert found.finding == "ORDER_LOST"
    mark, late = found.expected
    assert (mark.kind, late.kind) == (Punctuation, Passed)
    assert late.time < mark.time
    assert found.actual == (late, mark)


def test_taken_as_barriers_punctuations_would_accuse_the_job_that_sorts_what_is_on_time() -> None:
    as_barriers = tight.barrier(Punctuation)

    verdict = taxi.keeps_late_ones_late(taxi.sorted_by_time, on=taxi.all_on_time, upto=as_barriers)

    assert verdict.fails
    assert verdict.counterexample.finding == "ORDER_LOST"
    early, mark = verdict.counterexample.expected
    assert early.time >= mark.time


def test_a_job_that_leaves_the_order_alone_keeps_late_positions_late() -> None:
    def in_order_too(rows):
        return rows.repartition(1)

    assert taxi.keeps_late_ones_late(in_order_too, on=taxi.some_late, runs=10).require().scope.count == 10
