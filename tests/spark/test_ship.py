"""Modules that are sent to tasks; what cannot be sent, and what is told of what is missing."""

from __future__ import annotations

import importlib
import io
import py_compile
import socket
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import streamtight as tight
from streamtight.errors import SourceError, UnsupportedError
from streamtight.spark import parallel_run
from streamtight.spark import ship as shipping
from streamtight.spark.failure import missing_module_hint


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package of a user's, which the driver can import and nobody else."""
    name = f"sent_{tmp_path.name.replace('-', '_')}"
    folder = tmp_path / "home" / name
    (folder / "inner").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "inner" / "__init__.py").write_text("from pathlib import PurePath\n")
    (folder / "inner" / "jobs.py").write_text("def tripled(value):\n    return 3 * value\n")
    monkeypatch.syspath_prepend(str(folder.parent))
    return name


def test_all_of_a_package_travels_for_one_of_its_modules(spark: SparkSession, package: str) -> None:
    jobs = importlib.import_module(f"{package}.inner.jobs")

    tight.ship(spark, jobs)

    assert spark.sparkContext.parallelize([1, 2]).map(jobs.tripled).collect() == [3, 6]


def test_on_one_machine_a_job_may_use_what_the_driver_can_import(spark: SparkSession, package: str) -> None:
    jobs = importlib.import_module(f"{package}.inner.jobs")
    Number = tight.Kind("Number", value=int)  # noqa: N806

    def by_function(rows: Any) -> Any:
        return rows.select(sf.udf(jobs.tripled, "long")("value").alias("value"))

    run = tight.run(by_function, tight.Schedule.of([Number(2)]), takes=Number)

    assert [event.value for event in run.events] == [6]


def test_an_archive_has_what_python_made_of_the_sources_and_python_takes_it(tmp_path: Path, package: str) -> None:
    py_compile.compile(str(importlib.import_module(f"{package}.inner.jobs").__file__))

    data = shipping._archive(*shipping._root(package))

    names = zipfile.ZipFile(io.BytesIO(data)).namelist()
    assert f"{package}/inner/jobs.py" in names
    assert f"{package}/inner/jobs.pyc" in names
    assert not [name for name in names if "__pycache__" in name]
    (tmp_path / "sent.zip").write_bytes(data)
    code = f"import {package}.inner.jobs as jobs; print(jobs.__spec__.cached or jobs.__file__, jobs.tripled(2))"
    told = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(tmp_path / "sent.zip")},
        capture_output=True,
        text=True,
    )
    assert told.stdout.endswith("jobs.pyc 6\n"), told.stderr


def test_what_was_compiled_of_another_source_stays_at_home(package: str) -> None:
    jobs = importlib.import_module(f"{package}.inner.jobs")
    path = Path(str(jobs.__file__))
    py_compile.compile(str(path))
    path.write_text("def tripled(value):\n    return 30 * value\n")

    names = zipfile.ZipFile(io.BytesIO(shipping._archive(*shipping._root(package)))).namelist()

    assert f"{package}/inner/jobs.pyc" not in names


def test_the_same_sources_are_the_same_archive(package: str) -> None:
    root = shipping._root(package)

    assert shipping._archive(*root) == shipping._archive(*root)


def test_what_cannot_travel_is_refused(spark: SparkSession, tmp_path: Path, package: str) -> None:
    (tmp_path / "home" / package / "fast.so").write_bytes(b"\x7fELF")
    for given, words in (
        (package, "fast.so, which is compiled"),
        ("sys", "which has no file of it"),
        ("no_such_module_at_all", "No module named"),
        (tmp_path / "nothing.py", "nothing.py"),
        (sys.modules["__main__"], "the script that runs"),
    ):
        with pytest.raises(SourceError, match="ship") as raised:
            tight.ship(spark, given)
        assert words in raised.value.came, given


def test_a_missing_module_of_the_users_can_be_shipped_and_one_of_others_must_be_installed(package: str) -> None:
    assert missing_module_hint("ValueError: no") is None
    mine = missing_module_hint(f"ModuleNotFoundError: No module named '{package}.inner'")
    assert mine is not None
    assert f"tight.ship(spark, {package!r})" in mine
    theirs = missing_module_hint("ModuleNotFoundError: No module named 'pandas'")
    assert theirs is not None
    assert "install it where they run" in theirs


def test_tasks_look_for_a_file_where_they_run(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "there").touch()

    assert shipping._hosts_without(spark, str(tmp_path / "there")) == []
    assert shipping._hosts_without(spark, str(tmp_path / "not there")) == [socket.gethostname()]


def test_a_folder_that_an_executor_does_not_see_is_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    monkeypatch.setattr(shipping, "is_local", lambda spark: False)
    monkeypatch.setattr(shipping, "_hosts_without", lambda spark, path: looked.append(path) or ["node7"])

    for given in (tmp_path / "state", f"file://{tmp_path}/state"):
        with pytest.raises(UnsupportedError, match="which is another one on node7"):
            shipping.require_shared(spark, "compare_live(checkpoint=...)", given)
    shipping.require_shared(spark, "compare_live(checkpoint=...)", "s3a://bucket/state")

    assert [Path(path).parent for path in looked] == [tmp_path / "state"] * 2
    assert list((tmp_path / "state").iterdir()) == [], "what was put there to look for is gone"


def test_executors_that_come_back_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    there = iter([0, 1, 2])
    monkeypatch.setattr(parallel_run, "is_local", lambda spark: False)
    monkeypatch.setattr(parallel_run, "_slots", lambda spark: next(there))
    parallel_run._require_slots(None, 2)  # type: ignore[arg-type]
    assert next(there, None) is None

    monkeypatch.setattr(parallel_run, "_slots", lambda spark: 1)
    monkeypatch.setattr(parallel_run, "PATIENCE", 0.5)
    with pytest.raises(UnsupportedError, match="2 tasks at once"):
        parallel_run._require_slots(None, 2)  # type: ignore[arg-type]
