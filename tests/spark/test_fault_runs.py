"""Some of the fault runs, two of them in `make slow`; `make faults` does all of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))

import run


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[run.Place]:
    made = run.Place(tmp_path_factory.mktemp("faults"))
    yield made
    made.close()


# Late rows and a wrong value in a watched query; a broken record under a formula; the same under a live comparison.
@pytest.mark.parametrize("seed", [*(pytest.param(seed, marks=pytest.mark.slow) for seed in (3, 4)), 24])
def test_a_run_with_faults_is_answered_as_plain_python_says(seed: int, place: run.Place) -> None:
    row = run.one(seed, place)

    assert row["where"] == "local[2]"
    assert row["got"] == row["expected"]
