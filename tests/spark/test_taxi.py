"""The example of the README, with few runs."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from streamtight import Outcome

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture
def taxi() -> ModuleType:
    path = Path(__file__).parents[2] / "examples" / "taxi.py"
    spec = importlib.util.spec_from_file_location("taxi", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_job_that_spreads_rows_loses_the_order_of_a_taxi(taxi: ModuleType) -> None:
    verdict = taxi.judge(taxi.loses_order, runs=5, seed=7)

    assert verdict.outcome is Outcome.FAILS
    found = verdict.counterexample
    assert found.finding == "ORDER_LOST"
    assert len(found.schedule.events) == 2
    assert len({event.taxi_id for event in found.schedule.events}) == 1
    assert found.expected == taxi.located(found.schedule)
    assert found.failing_reruns == found.reruns == 3


def test_the_job_that_keeps_rows_together_keeps_the_order(taxi: ModuleType) -> None:
    verdict = taxi.judge(taxi.keeps_order, runs=4, seed=7)

    assert verdict.outcome is Outcome.HOLDS
    assert verdict.scope.count == 4
