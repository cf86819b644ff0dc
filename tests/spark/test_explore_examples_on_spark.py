"""The examples of explore on real Spark: what was found without it happens there, and repaired code does not do it."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from load_example import load_example
from pyspark.sql import SparkSession

import streamtight as tight


def test_a_click_comes_out_twice_on_spark_as_well(spark: SparkSession):
    example = load_example("dedup")

    verdict = tight.explore(example.LastClick, example.once, on=example.CLICKS, key="user", job=example.forgets)

    assert verdict.fails
    assert verdict.method.endswith("confirmed on Spark")
    assert [event.id for event in verdict.counterexample.schedule.events] == [1, 2, 1]


def test_a_counterexample_that_spark_does_not_confirm_is_undecided(spark: SparkSession):
    example = load_example("dedup")

    verdict = tight.explore(example.LastClick, example.once, on=example.CLICKS, key="user", job=example.remembers)

    assert verdict.undecided
    assert verdict.reason.startswith("the code alone breaks it on 3 inputs, the job on Spark gives ")


@pytest.mark.parametrize(("job", "closed"), [("sessions", {"ann", "bob"}), ("forgetful", {"bob"})])
@pytest.mark.slow
def test_a_session_of_two_visits_is_closed_unless_the_timer_is_forgotten(spark: SparkSession, job: str, closed: set):
    example = load_example("session_close")
    visit = tight.Kind("TimedVisit", user=str, page=str, at=datetime)
    nine = datetime(2026, 3, 2, 9)
    visits = [
        visit("ann", "home", nine),
        visit("ann", "cart", nine + timedelta(minutes=1)),
        visit("bob", "home", nine + timedelta(hours=1)),
    ]

    ran = tight.run(getattr(example, job), tight.Schedule(tuple(((each,),) for each in visits)), takes=visit)

    assert {row.user for row in ran.events} == closed
