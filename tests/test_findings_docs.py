"""Every name that a verdict, an alarm or the lint can give has a meaning and a page, and every page is of such a name.

The examples that need no JVM are run here, the others in tests/spark/test_finding_examples.py.
"""

from __future__ import annotations

import ast
import functools
import os
import re
from pathlib import Path

import finding_pages as pages
import pytest

from streamtight.findings import MEANINGS, meaning_of
from streamtight.method.typecheck.findings import RULES

SRC = Path(__file__).parents[1] / "src" / "streamtight"
# What looks like a name of a finding and is none: why a pipeline stops, and what an operator has to obey.
OTHERS = {"QUEUE_OVERFLOW", "LEAVES_RANGE", "RAISES", "KEEPS_KEY"}
WORDS = {"ASCII", "DEBUG", "ERROR", "FAILS", "HOLDS", "UNDECIDED", "FIXED", "TRUE", "FALSE", "LTLSPEC", "CTLSPEC"}


@functools.cache
def names_in_the_code() -> dict[str, str]:
    """The names that are given to findings, wherever a counterexample, a finding or an alarm is made."""
    found = {}
    for path in sorted([*SRC.glob("method/**/*.py"), *SRC.glob("spark/*.py")]):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            for text in _given(node):
                if re.fullmatch(r"[A-Z]{2,}(_[A-Z]+)*", text) and text not in OTHERS:
                    found[text] = f"{path.relative_to(SRC)}:{node.lineno}"
    return found


def _given(node: ast.AST) -> list[str]:
    """The texts that a call gives as a finding; those that a function `finding` or `named`, or a lambda, answers."""
    if isinstance(node, ast.Call):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in ("Counterexample", "Finding", "Broken", "Alarm", "found", "_fails", "fails", "_Law", "Difference"):
            given = [*node.args, *(each.value for each in node.keywords if each.arg == "finding")]
            return [text for each in given for text in _texts(each)]
        if called == "replace":
            return [text for each in node.keywords if each.arg in ("name", "finding") for text in _texts(each.value)]
        if called == "_law":
            return [text for each in node.args if isinstance(each, ast.Lambda) for text in _texts(each.body)]
    if isinstance(node, ast.FunctionDef) and node.name in ("finding", "named"):
        returned = [each.value for each in ast.walk(node) if isinstance(each, ast.Return) and each.value is not None]
        return [text for each in returned for text in _texts(each)]
    if isinstance(node, ast.Assign):
        names = {each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)}
        return _texts(node.value) if names & {"finding", "name"} else []
    if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == "finding" and node.value is not None:
        return _texts(node.value)
    return []


def _texts(node: ast.AST) -> list[str]:
    return [each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def test_every_name_in_the_code_has_a_meaning() -> None:
    assert {name: place for name, place in names_in_the_code().items() if name not in MEANINGS} == {}


def test_the_names_are_looked_for_where_they_are_given() -> None:
    # Each way of giving a name to a finding is among those that are looked for.
    assert set(MEANINGS) - set(names_in_the_code()) - set(RULES) - SHOWN_BY_RACES == set()


SHOWN_BY_RACES = {"RACE", "RACE_IN_REFERENCE"}  # a loop over two outputs and their names


@pytest.mark.parametrize("name", sorted({*MEANINGS, *RULES}))
def test_a_finding_has_a_page_that_begins_with_what_it_means(name: str) -> None:
    text = (pages.FOLDER / f"{name}.md").read_text()

    assert text.startswith(f"# {name}\n")
    told = " ".join(text.split())
    assert meaning_of(name)[1:] in told
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## The smallest example",
        "## Why it happens",
        "## What to do",
    ]


def test_every_page_is_of_a_finding_and_is_listed() -> None:
    index = (pages.FOLDER / "index.md").read_text()

    assert set(pages.names()) == set(MEANINGS)
    assert {name for name in MEANINGS if f"| `{name}` | {MEANINGS[name]} |" not in index} == set()


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_rule_of_the_lint_says_what_its_name_means(name: str) -> None:
    assert name == "ORDER_LOST" or RULES[name].why == MEANINGS[name]


def test_several_names_have_several_meanings_and_unknown_ones_none() -> None:
    assert meaning_of("CLOCK or SAMPLE") == f"{MEANINGS['CLOCK']}; {MEANINGS['SAMPLE']}"
    assert meaning_of("MY_OWN") == ""


@pytest.mark.parametrize("name", pages.names())
def test_a_page_shows_the_finding_that_it_is_about(name: str) -> None:
    assert name in pages.printed(name)


@pytest.mark.parametrize("name", [name for name in pages.names() if not pages.needs_spark(name)])
def test_an_example_prints_what_the_page_shows(name: str, tmp_path: Path) -> None:
    told = pages.prints(name, tmp_path)

    if os.environ.get("UPDATE_GOLDEN"):
        pages.write(name, told)
    assert told == pages.printed(name)
