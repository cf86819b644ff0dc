"""The same jobs through Spark Connect: same rows, same steps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # a server of its own, with a Spark of its own


@pytest.fixture(scope="module")
def found():
    """What the script found; it runs in a process of its own, with a local Connect server."""
    script = Path(__file__).with_name("connect_script.py")
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        timeout=500,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


def test_a_stream_has_exactly_the_batches_and_partitions_of_its_schedule(found):
    assert found["stream"] == [
        [0, "DATA", [[["a", 2], ["a", 6]], [["b", 4]]]],
        [1, "DATA", [[["b", 8]], [["a", 10]]]],
    ]


def test_a_static_frame_has_exactly_the_partitions_of_its_schedule(found):
    assert found["batch"] == [[0, "DATA", [[["a", 2], ["a", 6], ["b", 8]], [["b", 4], ["a", 10]]]]]


def test_a_job_restarts_and_replays_and_has_nothing_to_flush(found):
    steps = [
        (batch, cause, sorted(row for part in partitions for row in part))
        for batch, cause, partitions in found["restarted"]
    ]

    assert steps == [
        (0, "DATA", [["a", 4], ["b", 2]]),
        (1, "DATA", [["a", 9], ["b", 6]]),
        (1, "REPLAY", [["a", 9], ["b", 6]]),
    ]


def test_a_jobs_own_error_comes_back_with_its_batch(found):
    assert found["failed"] == [1, "ValueError: no 4"]


def test_what_cannot_be_done_is_said(found):
    assert found["packed"] == "a Spark Connect session does not show the plan"


def test_the_session_is_as_before(found):
    before, after = found["setting"]

    assert before == after
    assert found["queries"] == 0
