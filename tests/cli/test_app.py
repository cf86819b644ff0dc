"""The command line, without a JVM."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

import streamtight
from streamtight.cli.app import app, main
from streamtight.spark.session import Check


def say(monkeypatch: pytest.MonkeyPatch, *found: Check) -> None:
    def doctor() -> Iterator[Check]:
        yield from found

    monkeypatch.setattr("streamtight.spark.session.doctor", doctor)


def test_the_version_is_printed() -> None:
    result = CliRunner().invoke(app, ["--version"])

    assert (result.exit_code, result.stdout) == (0, f"streamtight {streamtight.__version__}\n")


def test_a_doctor_who_finds_nothing_wrong_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, Check("Java", True, "17"), Check("pandas", True, "not installed", "pip install pandas"))

    result = CliRunner().invoke(app, ["doctor"])

    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "ok       Java: 17",
        "ok       pandas: not installed",
        "         pip install pandas",
        "Spark can start.",
    ]


def test_a_doctor_who_finds_a_problem_ends_with_3(monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, Check("Python", True, "3.12"), Check("Java", False, "none", "install it"))

    result = CliRunner().invoke(app, ["doctor"])

    assert result.exit_code == 3
    assert "PROBLEM  Java: none\n         install it\n" in result.stdout
    assert "Spark can start." not in result.stdout


def test_the_real_doctor_looks_at_java_and_pyspark() -> None:
    result = CliRunner().invoke(app, ["doctor"])

    assert "Java: " in result.stdout
    assert "PySpark: " in result.stdout


def test_no_command_shows_the_help() -> None:
    result = CliRunner().invoke(app, [])

    assert "doctor" in result.output


@pytest.mark.parametrize("arguments", [["cure"], ["prove"], ["prove", "a.py:f", "a.py:g", "--seconds", "soon"]])
def test_wrong_arguments_end_with_3_since_2_is_an_answer(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["streamtight", *arguments])

    with pytest.raises(SystemExit) as end:
        main()

    assert end.value.code == 3
    assert "Usage: " in capsys.readouterr().err


def test_every_command_has_an_example_in_its_help() -> None:
    names = re.findall(r"^  (\w+)  ", CliRunner().invoke(app, ["--help"]).stdout.split("Commands:")[1], re.MULTILINE)

    assert {"compare", "check", "prove", "typecheck", "parallelize", "watch", "explore"} < set(names)
    assert {"lint", "laws", "replay", "report", "doctor", "demo"} < set(names)
    for name in names:
        assert f"Example: streamtight {name}" in CliRunner().invoke(app, [name, "--help"]).stdout


def test_the_command_line_starts_without_spark_and_solvers() -> None:
    heavy = ["pyspark", "z3", "hypothesis", "pandas"]
    code = f"import sys, streamtight.cli.app; print([name for name in {heavy} if name in sys.modules])"

    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert printed.strip() == "[]"
