"""Findings as SARIF 2.1.0: what its schema requires is there."""

from __future__ import annotations

import json

from streamtight.method.typecheck.findings import RULES, Finding, Shown
from streamtight.program.relation import Place
from streamtight.report.sarif import as_sarif, findings_json

FOUND = [
    Finding(RULES["CLOCK"], Place("current_timestamp", "jobs/a.py", 7), columns=("at",)),
    Finding(RULES["LIMIT_WITHOUT_ORDER"], Place("limit", "jobs/a.py", 9), shown=Shown.SHOWN),
    Finding(RULES["CLOCK"], Place("current_date")),
]


def test_sarif_has_what_the_schema_requires() -> None:
    data = json.loads(as_sarif(FOUND))

    assert data["version"] == "2.1.0"
    (run,) = data["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "streamtight"
    assert [rule["id"] for rule in driver["rules"]] == ["LIMIT_WITHOUT_ORDER", "CLOCK"]
    for result, finding in zip(run["results"], FOUND, strict=True):
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == finding.rule.name
        assert result["level"] in ("none", "note", "warning", "error")
        assert result["message"]["text"].startswith(finding.place.operation)


def test_a_place_is_a_relative_uri_and_a_line_from_1() -> None:
    results = json.loads(as_sarif(FOUND))["runs"][0]["results"]

    place = results[0]["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "jobs/a.py"}, "region": {"startLine": 7}}
    assert "locations" not in results[2]


def test_whether_it_was_shown_is_told() -> None:
    results = json.loads(as_sarif(FOUND))["runs"][0]["results"]

    assert [one["properties"]["shown"] for one in results] == ["not tried", "shown", "not tried"]


def test_nothing_found_is_a_run_without_results() -> None:
    assert json.loads(as_sarif([]))["runs"][0]["results"] == []


def test_plain_json_has_the_findings_and_what_is_not_known() -> None:
    data = json.loads(findings_json(FOUND[:1], ["ScalaUDF (a.py:3) is not known"]))

    assert data["unknown"] == ["ScalaUDF (a.py:3) is not known"]
    assert data["findings"][0]["rule"] == "CLOCK"
    assert data["findings"][0]["columns"] == ["at"]
