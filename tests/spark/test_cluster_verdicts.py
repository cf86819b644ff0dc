"""On a standalone cluster every verb says what it says on one machine; what executors lack is told by its name.

The executors run a Python that has neither this package nor the module with the jobs, as on another machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from standalone import Cluster, cluster, python_elsewhere

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
HIDDEN = (ROOT, ROOT / "src", HERE)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def elsewhere(home: Path) -> str:
    return python_elsewhere(home, HIDDEN)


@pytest.fixture(scope="module")
def running(home: Path, elsewhere: str) -> Iterator[Cluster]:
    with cluster(home, elsewhere, workers=2) as started:
        yield started


def asked(master: str, folder: Path, python: str, ship: str, *verbs: str) -> dict[str, Any]:
    """What the verbs say on this master."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, str(HERE / "verdict_script.py"), master, str(folder), ship, *verbs]
    environment = {**os.environ, "PYSPARK_PYTHON": python, "SPARK_LOCAL_IP": "127.0.0.1"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert "VERDICTS" in ended.stdout, ended.stdout + ended.stderr[-5000:]
    found: dict[str, Any] = json.loads(ended.stdout.split("VERDICTS", 1)[1])
    return found


@pytest.mark.slow
def test_a_module_that_executors_lack_is_told_by_its_name_and_can_be_shipped(
    running: Cluster, elsewhere: str, tmp_path: Path
) -> None:
    found = asked(running.url, tmp_path / "later", elsewhere, "later", "check", "check")

    assert found["before"].startswith("JobError")
    assert "No module named 'verdict_jobs'" in found["before"]
    assert "tight.ship(spark, 'verdict_jobs')" in found["before"]
    assert found["check"] == {"right": "HOLDS", "wrong": "FAILS VIOLATED"}


@pytest.mark.slow
def test_every_verb_says_on_the_cluster_what_it_says_on_one_machine(
    running: Cluster, elsewhere: str, tmp_path: Path
) -> None:
    here = asked("local[2]", tmp_path / "here", sys.executable, "as_it_is")
    there = asked(running.url, tmp_path / "there", elsewhere, "ship")

    assert there == here
    for verb, found in here.items():
        if verb not in ("query", "parallel"):  # these give values
            assert "HOLDS" in str(found), f"{verb}: {found}"
            assert "FAILS" in str(found), f"{verb}: {found}"


@pytest.mark.slow
def test_no_verb_takes_a_missing_module_for_an_answer(running: Cluster, elsewhere: str, tmp_path: Path) -> None:
    verbs = ("compare", "laws", "explore", "parallel")

    found = asked(running.url, tmp_path / "missing", elsewhere, "as_it_is", "prove", *verbs)

    # A proof needs no executor; a difference does, and without them nobody has seen it.
    assert found["prove"] == {"right": "HOLDS", "wrong": "UNDECIDED", "wrong frames": "UNDECIDED"}
    for verb in verbs:
        assert isinstance(found[verb], str), f"{verb} answered: {found[verb]}"
        assert "verdict_jobs" in found[verb]


@pytest.mark.slow
def test_a_package_that_executors_lack_is_told_with_what_to_install(tmp_path: Path) -> None:
    without = python_elsewhere(tmp_path, HIDDEN, without=("pandas",))
    with cluster(tmp_path, without, workers=1, cores=2) as running:
        found = asked(running.url, tmp_path / "data", without, "ship", "live", "recorded")

    assert found["live"].startswith("UnsupportedError")
    assert "without 'pandas<3'" in found["live"]
    assert found["recorded"]["right"] == "HOLDS", "which needs no pandas"
