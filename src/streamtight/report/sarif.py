"""Findings as JSON: plain, or as SARIF 2.1.0, which code hosts show beside the lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from streamtight import __version__
from streamtight.method.typecheck.findings import RULES, Finding, Rule, Shown

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def as_sarif(findings: Sequence[Finding]) -> str:
    """One run with these findings as its results, and the rules that they are of."""
    used = [rule for name, rule in RULES.items() if any(one.rule.name == name for one in findings)]
    driver = {"name": "streamtight", "version": __version__, "rules": [_rule(rule) for rule in used]}
    places = {rule.name: place for place, rule in enumerate(used)}
    results = [_result(one, places[one.rule.name]) for one in findings]
    data = {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    return json.dumps(data, indent=2)


def findings_json(findings: Sequence[Finding], unknown: Sequence[str]) -> str:
    """The findings, and what could not be read."""
    return json.dumps({"findings": [one.as_data() for one in findings], "unknown": list(unknown)}, indent=2)


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.name,
        "shortDescription": {"text": rule.why},
        "help": {"text": f"Fix: {rule.fix}. See docs/lint.md#{rule.name.lower()}"},
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
        region = {"startLine": max(1, finding.place.line)}
        file = {"uri": PurePath(finding.place.file).as_posix()}
        result["locations"] = [{"physicalLocation": {"artifactLocation": file, "region": region}}]
    return result
