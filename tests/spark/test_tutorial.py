"""The tutorial as a reader follows it: files are written, commands run in a fresh folder, what they print compared.

`...` on the page stands for anything, of one line or of several.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r'^```(?P<language>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL)


def blocks() -> Iterator[tuple[str, str, str]]:
    """What kind of block it is, the file that it is, and its text."""
    for found in BLOCK.finditer(PAGE.read_text()):
        yield found["language"], found["title"] or "", found["text"]


def commands(text: str) -> list[tuple[str, str]]:
    """Each command of a console with what it prints."""
    parts = re.split(r"^\$ (.*)\n", text, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def matches(shown: str, printed: str) -> bool:
    """Whether this was printed, if `...` stands for anything."""
    parts = [re.escape(part) for part in re.split(r"\.\.\.", shown.strip("\n"))]
    return re.fullmatch(".*?".join(parts), printed.strip("\n"), re.DOTALL) is not None


def test_dots_stand_for_anything_and_nothing_else_does() -> None:
    assert matches("ok ...\n...\nend\n", "ok 3.11\nmore\nand more\nend")
    assert not matches("ok ...\nend\n", "ok 3.11\nends")


def test_the_first_page_shows_lines_of_the_tutorial() -> None:
    first = BLOCK.search((PAGE.parent / "index.md").read_text())
    assert first is not None

    told = [line for _, shown in commands(first["text"]) for line in shown.splitlines()]
    assert told
    assert [line for line in told if line not in PAGE.read_text().splitlines()] == []


@pytest.mark.slow
def test_the_tutorial_prints_what_it_shows(tmp_path: Path) -> None:
    folder = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1", "COLUMNS": "200"}
    code = 0
    for language, title, text in blocks():
        if title:
            (tmp_path / title).write_text(text)
        if language != "console":
            continue
        for command, shown in commands(text):
            if command == "echo $?":
                printed = str(code)
            else:
                done = subprocess.run(
                    shlex.split(command), cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
                )
                printed, code = done.stdout, done.returncode
            assert matches(shown, printed), f"$ {command}\n{printed}\n--- the page shows\n{shown}"
