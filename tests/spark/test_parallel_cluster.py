"""A plan on a standalone cluster gives the same; an executor that is killed costs time, not results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from standalone import Cluster, cluster

SCRIPT = Path(__file__).with_name("parallel_script.py")
EVENTS, EVERY = 2_000, 100


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for stream in range(2):
        table = pa.table({"time": np.arange(EVENTS), "value": np.arange(EVENTS) + stream})
        pyarrow.parquet.write_table(table, tmp_path / f"values_{stream}.parquet")
    pyarrow.parquet.write_table(pa.table({"time": np.arange(EVERY - 1, EVENTS, EVERY)}), tmp_path / "barriers.parquet")
    return tmp_path


def expected() -> list[list[int]]:
    return [
        [end, sum(2 * time + 1 for time in range(end - EVERY + 1, end + 1))] for end in range(EVERY - 1, EVENTS, EVERY)
    ]


def started(running: Cluster, data: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, str(SCRIPT), running.url, str(data)]
    with (data / "driver.log").open("w") as log:
        driver = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
    assert driver.stdout is not None
    line = driver.stdout.readline()
    assert line.startswith("RUNS"), line + (data / "driver.log").read_text()
    return driver


def ended(driver: subprocess.Popen[str], data: Path) -> list[list[int]]:
    out, _ = driver.communicate(timeout=180)
    assert "OUTPUTS" in out, out + (data / "driver.log").read_text()[-5000:]
    found: list[list[int]] = json.loads(out.split("OUTPUTS", 1)[1].splitlines()[0])
    return found


@pytest.mark.slow
def test_an_executor_that_is_killed_costs_time_and_no_result(data: Path) -> None:
    with cluster(data, sys.executable, workers=2) as running:
        driver = started(running, data)
        time.sleep(3.0)  # the leaves are at work then, for some seconds
        killed = running.kill_executor()

        outputs = ended(driver, data)

        assert outputs == expected()
        assert killed not in running.executors()
        assert "Lost executor" in (data / "driver.log").read_text()
