"""Findings as JSON: plain, or as SARIF 2.1.0, which code hosts show beside the lines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from streamtight import __version__
from streamtight.findings import meaning_of
from streamtight.method.typecheck.findings import RULES, Finding, Rule, Shown
from streamtight.redaction import data_without_secrets

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def as_sarif(findings: Sequence[Finding]) -> str:
    """One run with these findings as its results, and the rules that they are of."""
    used = [rule for name, rule in RULES.items() if any(one.rule.name == name for one in findings)]
    places = {rule.name: place for place, rule in enumerate(used)}
    return _run([_rule(rule) for rule in used], [_result(one, places[one.rule.name]) for one in findings])


def _run(rules: Sequence[Mapping[str, Any]], results: Sequence[Mapping[str, Any]]) -> str:
    driver = {"name": "streamtight", "version": __version__, "rules": rules}
    data = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": data_without_secrets(results)}],
    }
    return json.dumps(data, indent=2)


def verdicts_sarif(verdicts: Sequence[Mapping[str, Any]], place: tuple[str, int] | None) -> str:
    """Verdicts as results: FAILS are errors, UNDECIDED warnings; what holds is no result.

    `verdicts` are as `Verdict.as_data` gives them; `place` is the file and the line of the job.
    """
    told = [one for one in verdicts if one["outcome"] != "HOLDS"]
    names = list(dict.fromkeys(map(_finding_of, told)))
    rules = [{"id": name, "shortDescription": {"text": meaning_of(name) or "no answer"}} for name in names]
    results = []
    for one in told:
        name = _finding_of(one)
        result: dict[str, Any] = {
            "ruleId": name,
            "ruleIndex": names.index(name),
            "level": "error" if one["outcome"] == "FAILS" else "warning",
            "message": {"text": one["story"]},
        }
        if one.get("kept"):
            result["properties"] = {"replay": one["kept"]["token"]}
        if place is not None:
            result["locations"] = [_location(*place)]
        results.append(result)
    return _run(rules, results)


def _finding_of(verdict: Mapping[str, Any]) -> str:
    found = verdict["counterexample"]
    return str(found["finding"]) if found else "UNDECIDED"


def findings_json(findings: Sequence[Finding], unknown: Sequence[str]) -> str:
    """The findings, and what could not be read."""
    data = {"findings": [one.as_data() for one in findings], "unknown": list(unknown)}
    return json.dumps(data_without_secrets(data), indent=2)


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.name,
        "shortDescription": {"text": rule.why},
        "help": {"text": f"Fix: {rule.fix}. See docs/findings/{rule.name}.md"},
        "defaultConfiguration": {"level": rule.severity.name.lower()},
    }


def _result(finding: Finding, rule: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.rule.name,
        "ruleIndex": rule,
        "level": finding.rule.severity.name.lower(),
        "message": {"text": f"{finding.message}. Fix: {finding.rule.fix}"},
        "properties": {"shown": finding.shown.value},
    }
    if finding.shown is not Shown.NOT_TRIED:
        result["properties"]["because"] = finding.because
    if finding.place.file:
        result["locations"] = [_location(finding.place.file, finding.place.line)]
    return result


def _location(file: str, line: int) -> dict[str, Any]:
    where = {"artifactLocation": {"uri": PurePath(file).as_posix()}, "region": {"startLine": max(1, line)}}
    return {"physicalLocation": where}
