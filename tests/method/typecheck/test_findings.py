"""What a finding tells, and how it is silenced."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamtight.method.typecheck.findings import RULES, Finding, Severity, Shown, is_ignored, sorted_findings
from streamtight.program.relation import Place

DOCS = Path(__file__).parents[3] / "docs" / "lint.md"


def finding(rule: str, line: int, file: str = "job.py", operation: str = "first") -> Finding:
    return Finding(RULES[rule], Place(operation, file, line))


def test_findings_come_by_file_and_line_each_once() -> None:
    one, two, three = finding("CLOCK", 9), finding("RANDOM", 2), finding("CLOCK", 1, "other.py")

    assert sorted_findings([three, one, two, one]) == (two, one, three)


def test_a_finding_is_the_same_whether_it_was_shown_or_not() -> None:
    assert finding("CLOCK", 9) == Finding(RULES["CLOCK"], Place("first", "job.py", 9), shown=Shown.SHOWN)


def test_a_line_says_where_what_why_and_what_to_do() -> None:
    told = str(
        Finding(RULES["LIST_ORDER"], Place("collect_list", "job.py", 3), columns=("path",), shown=Shown.NOT_SHOWN)
    )

    assert told == (
        "job.py:3: LIST_ORDER (error, tried, not shown): collect_list: the rows of a group have no order, and neither "
        "has the list of them; seen in path. Fix: sort_array or array_sort around it"
    )


@pytest.mark.parametrize(
    ("comment", "silenced"),
    [
        ("# streamtight: ignore[CLOCK]", True),
        ("# streamtight: ignore[RANDOM, CLOCK]", True),
        ("#streamtight:ignore[CLOCK]", True),
        ("# streamtight: ignore[RANDOM]", False),
        ("# streamtight: ignore", False),
        ("# CLOCK", False),
    ],
)
def test_a_comment_silences_what_it_names(tmp_path: Path, comment: str, silenced: bool) -> None:
    file = tmp_path / "job.py"
    file.write_text(f"x = 1\ny = now()  {comment}\n")

    assert is_ignored(finding("CLOCK", 2, str(file))) is silenced
    assert not is_ignored(finding("CLOCK", 1, str(file)))


def test_every_rule_has_its_line_in_the_docs_and_nothing_else_has() -> None:
    lines = [line for line in DOCS.read_text().splitlines() if line.startswith("| `") and line.split("`")[1].isupper()]

    assert lines == [f"| `{name}` | {rule.severity.name.lower()} | {rule.why} |" for name, rule in RULES.items()]


def test_what_costs_digits_is_less_than_what_costs_rows() -> None:
    assert RULES["FLOAT_SUM"].severity < RULES["CLOCK"].severity < RULES["FIRST_VALUE"].severity is Severity.ERROR
