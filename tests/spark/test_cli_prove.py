"""`streamtight prove`: files in, a story and a number out."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from streamtight.cli.app import app
from streamtight.errors import SourceError
from streamtight.spark.load import import_lines, load_function

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bounds.py").write_text("LIMIT = 3\n")
    (tmp_path / "old.py").write_text(
        "from bounds import LIMIT\n\n"
        "def clean(t):\n    return t.where(t.v > LIMIT)\n\n"
        "def large(numbers):\n    return numbers.filter(is_large)\n\n"
        "def is_large(x):\n    return x > LIMIT\n\n"
        "broken = 5\n"
    )
    (tmp_path / "new.py").write_text(
        "def clean(t):\n    return t.where('v >= 4')\n\n"
        "def cleaned(t):\n    return t.where('v >= 3')\n\n"
        "def large(numbers):\n    return numbers.filter(lambda x: x >= 3)\n\n"
        "def unclear(t):\n    return t.where('rlike(string(v), \"[4-9]\")').limit(0)\n"
    )
    (tmp_path / "sample.csv").write_text("k,v\n1,2\n")
    (tmp_path / "sample.json").write_text('{"k": 1, "v": 2}\n')
    (tmp_path / "raises.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["prove", *arguments])
    return result.exit_code, result.output


@pytest.mark.parametrize("how", [["--input", "table[k: int, v: int?]"], ["--sample", "sample.csv"]])
def test_equal_programs_end_with_0(folder: Path, how: list[str]):
    code, told = run("old.py:clean", "new.py:clean", *how)

    assert code == 0
    assert told.startswith("HOLDS  new.py:clean gives what old.py:clean gives (proved for every input")


def test_different_programs_end_with_1(folder: Path):
    code, told = run("old.py:clean", "new.py:cleaned", "--sample", "sample.json", "--keep", "")

    assert code == 1
    assert "new.py:cleaned gives what old.py:clean gives: DIFFERENT" in told
    assert "from old import clean\n" in told
    assert "from new import cleaned\n" in told


def test_functions_of_files_reach_the_tasks(folder: Path):
    code, told = run("old.py:large", "new.py:large", "--input", "rdd[int]", "--keep", "")

    assert code == 1
    assert "3        no rows       3" in told
    assert "from old import large as left\n" in told
    assert "result = left(context.parallelize([3], 1))" in told


def test_undecided_ends_with_2_and_json_is_the_verdict(folder: Path):
    code, told = run(
        "new.py:unclear", "new.py:unclear", "--input", "table[v: int]", "--seconds", "2", "--format", "json"
    )

    assert code == 2
    assert json.loads(told[told.index("{") :])["verdicts"][0]["outcome"] == "UNDECIDED"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["old.py:clean", "new.py:clean"], "neither"),
        (["old.py:clean", "new.py:clean", "--input", "rdd[int]", "--sample", "sample.csv"], "both"),
        (["old.py:clean", "new.py:clean", "--input", "rdd[itn]"], "came itn"),
        (["old.py:clean", "new.py:clean", "--sample", "sample.txt"], "no such file"),
        (["old.py:clean", "new.py:clean", "--input", "rdd[int]", "--input", "rdd[int]"], "as many inputs"),
    ],
)
def test_a_wrong_question_ends_with_3(folder: Path, arguments: list[str], told: str):
    code, said = run(*arguments)

    assert code == 3
    assert told in said


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("old.py", "a function in it"),
        ("gone.py:clean", "a file that is there"),
        ("old.py:cleen", "old.py:clean"),
        ("old.py:broken", "a function"),
        ("raises.py:clean", "ZeroDivisionError"),
        ("no.such.module:clean", "ModuleNotFoundError"),
    ],
)
def test_what_cannot_be_loaded_is_told(folder: Path, place: str, told: str):
    with pytest.raises(SourceError, match=told):
        load_function(place)


def test_a_function_of_a_module_can_be_loaded(folder: Path):
    assert load_function("json:dumps") is json.dumps
    (folder / "module_beside.py").write_text("def same(r):\n    return r\n")
    assert load_function("module_beside:same").__name__ == "same"
    assert str(folder) not in sys.path


@pytest.mark.parametrize(
    ("place", "name", "lines"),
    [
        ("old.py:clean", "clean", ("from old import clean",)),
        ("old.py:clean", "left", ("from old import clean as left",)),
        ("package.jobs:Jobs.clean", "right", ("from package.jobs import Jobs", "right = Jobs.clean")),
        ("jobs/old.py:clean", "clean", ("# in the folder jobs", "from old import clean")),
        ("my-jobs.py:clean", "clean", ("# clean: clean of my-jobs.py",)),
    ],
)
def test_the_lines_that_bring_a_function(folder: Path, place: str, name: str, lines: tuple[str, ...]):
    assert import_lines(place, name) == lines


def test_the_help_shows_what_stands_in_brackets():
    result = CliRunner().invoke(app, ["prove", "--help"])

    assert "'rdd[int]'" in " ".join(result.output.split())
