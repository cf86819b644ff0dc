"""The commands that pages show are commands that there are: with these arguments and these options."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer.main

from streamtight.cli.app import app

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def shown() -> list[tuple[str, str]]:
    """Each line of a block that begins with `streamtight`, and the page that has it."""
    found = []
    for page in PAGES:
        for block in FENCE.findall(page.read_text()):
            for line in block.splitlines():
                command = re.match(r"^(?:\s*- run: )?(?:\$ )?(streamtight .*)$", line)
                if command:
                    found.append((str(page.relative_to(ROOT)), command[1]))
    return found


@pytest.mark.parametrize(("page", "line"), shown(), ids=lambda text: text[:60])
def test_a_command_on_a_page_can_be_given(page: str, line: str) -> None:
    name, *given = shlex.split(re.split(r" \|\| | > | #", line)[0])[1:]
    command = typer.main.get_command(app).commands[name]

    command.make_context(name, given)  # raises if an argument is missing or an option is not known


def test_a_wrong_option_would_be_found() -> None:
    with pytest.raises(Exception, match="No such option"):
        typer.main.get_command(app).commands["doctor"].make_context("doctor", ["--nonsense"])


def test_the_options_of_pytest_on_pages_are_those_of_the_plugin(pytestconfig: pytest.Config) -> None:
    named = {name for page in PAGES for name in re.findall(r"--streamtight-[a-z-]+", page.read_text())}

    assert named >= {"--streamtight-report"}
    for name in sorted(named):
        pytestconfig.getoption(name)  # raises ValueError if there is none
