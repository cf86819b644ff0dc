"""The case studies of `check`: of each job that is right and each that is not, what is found."""

from __future__ import annotations

import pytest
from load_example import load_example

import streamtight as tight

pytestmark = pytest.mark.usefixtures("spark")

banned_users, counts, orders, sessions, windows = (
    load_example(name) for name in ("banned_users", "counts", "orders", "sessions", "windows")
)


def finding(verdict: tight.Verdict) -> str:
    assert verdict.fails, verdict.story()
    assert verdict.counterexample.failing_reruns == 3
    return verdict.counterexample.finding


# -- the counts of section 1 of the paper ----------------------------------------------------------------------------


@pytest.mark.slow
def test_the_count_of_spark_is_right_and_one_less_is_not():
    options = {"on": counts.measured, "mode": "dstream", "gives": counts.Number, "runs": 3, "shrink": 2}

    assert tight.check(counts.count, counts.counted, **options).holds
    assert finding(tight.check(counts.faulty_count, counts.counted, **options)) == "VIOLATED"


@pytest.mark.slow
def test_a_total_grows_by_what_comes_in_and_that_of_different_rows_does_not():
    options = {"on": counts.measured, "mode": "complete", "shrink": 3}

    assert tight.check(counts.total, counts.totals, runs=5, **options).holds
    verdict = tight.check(counts.faulty_total, counts.totals, **options)
    assert finding(verdict) == "VIOLATED"
    events = verdict.counterexample.schedule.events
    assert len(set(events)) < len(events)


# -- the banned users of section 3.3 ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_without_memory_a_bad_user_is_soon_forgotten():
    verdict = tight.check(banned_users.stateless, banned_users.stays_banned, on=banned_users.users, runs=10)

    assert finding(verdict) == "VIOLATED"
    assert len(verdict.counterexample.schedule.batches) == 2
    assert "at batch 0 bad is true" in verdict.counterexample.explanation
    assert "at batch 1 banned is false" in verdict.counterexample.explanation


@pytest.mark.slow
def test_with_memory_bad_users_stay_banned():
    options = {"on": banned_users.users}

    assert tight.check(banned_users.counted, banned_users.stays_banned, runs=8, mode="complete", **options).holds
    assert tight.check(banned_users.remembered, banned_users.stays_banned, runs=2, **options).holds


# -- windows, sessions and joins, with watermarks --------------------------------------------------------------------


@pytest.mark.slow
def test_late_clicks_are_counted_if_the_watermark_waits_for_them():
    options = {"on": windows.traffic, "gives": windows.Clicks, "runs": 6, "shrink": 0}

    assert tight.check(windows.windowed, windows.promises, **options).holds
    verdict = tight.check(windows.impatient, windows.promises, **options)
    assert finding(verdict) == "VIOLATED"
    assert "for Click(" in verdict.counterexample.explanation


@pytest.mark.slow
def test_a_visit_has_all_its_clicks_unless_it_ends_too_early():
    options = {"on": sessions.traffic, "gives": sessions.Visit, "runs": 5, "shrink": 0}

    assert tight.check(sessions.visits, sessions.promises, **options).holds
    assert finding(tight.check(sessions.too_quick, sessions.promises, **options)) == "VIOLATED"


@pytest.mark.slow
def test_every_order_is_answered_if_the_join_keeps_those_without_a_shipment():
    options = {"on": orders.traffic, "takes": orders.STREAMS, "runs": 4, "shrink": 0}

    assert tight.check(orders.followed, orders.always_answered, **options).holds
    assert finding(tight.check(orders.only_shipped, orders.always_answered, **options)) == "VIOLATED"
