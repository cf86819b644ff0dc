"""The example of the README, with few runs."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import streamtight as tight
from streamtight import Verdict

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


def compared(taxi: ModuleType, job: str, runs: int) -> Verdict:
    return tight.compare(
        taxi.sequential,
        getattr(taxi, job),
        on=taxi.DRIVES,
        upto=taxi.EACH_TAXI_IN_ORDER,
        gives=taxi.Located,
        runs=runs,
        seed=7,
    )


def test_the_job_that_spreads_rows_loses_the_order_of_a_taxi(taxi: ModuleType) -> None:
    found = compared(taxi, "loses_order", 20).counterexample

    assert found is not None
    assert found.finding == "ORDER_LOST"
    assert found.schedule is not None
    assert len(found.schedule.events) == 2
    assert len({event.taxi_id for event in found.schedule.events}) == 1
    assert found.failing_reruns == found.reruns == 3


@pytest.mark.slow
def test_the_job_that_keeps_rows_together_keeps_the_order(taxi: ModuleType) -> None:
    verdict = compared(taxi, "keeps_order", 20)

    assert verdict.holds
    assert verdict.scope.count == 20


def test_the_test_that_a_user_writes_is_short() -> None:
    page = (Path(__file__).parents[2] / "docs" / "compare.md").read_text()
    first_block = page.split("```python\n")[1].split("```")[0]
    test = first_block.split("def test_")[1]

    assert len(test.strip().splitlines()) <= 13
