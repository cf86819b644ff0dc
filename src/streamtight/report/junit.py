"""Verdicts as JUnit XML, which build servers show: a test case for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from streamtight.report.texts import visible

MOST_SECONDS = 1e9
"""More than that is no time that anything took."""


def as_junit(verdicts: Sequence[Mapping[str, Any]], title: str, notes: Sequence[str] = ()) -> str:
    """FAILS is a failure with its story, UNDECIDED an error: what could not be decided did not pass."""
    fails, undecided = (sum(one["outcome"] == name for one in verdicts) for name in ("FAILS", "UNDECIDED"))
    seconds = [_seconds(one) for one in verdicts]
    counted = {"tests": str(len(verdicts)), "failures": str(fails), "errors": str(undecided)}
    root = ElementTree.Element("testsuites", {"name": visible(title), **counted, "time": f"{sum(seconds):.3f}"})
    suite = ElementTree.SubElement(root, "testsuite", {**root.attrib, "skipped": "0"})
    for verdict, took in zip(verdicts, seconds, strict=True):
        name = {"name": visible(str(verdict["claim"])), "classname": visible(title), "time": f"{took:.3f}"}
        case = ElementTree.SubElement(suite, "testcase", name)
        properties = ElementTree.SubElement(case, "properties")
        for key, value in _properties(verdict):
            ElementTree.SubElement(properties, "property", {"name": key, "value": visible(value)})
        story = visible(str(verdict.get("story") or verdict["claim"]))
        found = verdict.get("counterexample") or {}
        if verdict["outcome"] == "FAILS":
            told = {"type": visible(str(found.get("finding", "FAILS"))), "message": visible(_message(found))}
            ElementTree.SubElement(case, "failure", told).text = story
        elif verdict["outcome"] == "UNDECIDED":
            reason = visible(str(verdict.get("reason") or "no reason was given"))
            ElementTree.SubElement(case, "error", {"type": "UNDECIDED", "message": reason}).text = story
    if notes:
        ElementTree.SubElement(suite, "system-out").text = visible("\n".join(notes))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _seconds(verdict: Mapping[str, Any]) -> float:
    seconds = (verdict.get("cost") or {}).get("seconds", 0.0)
    return float(seconds) if isinstance(seconds, int | float) and 0 <= seconds < MOST_SECONDS else 0.0


def _message(found: Mapping[str, Any]) -> str:
    return f"{found.get('finding', '')}: {found.get('explanation', '')}"


def _properties(verdict: Mapping[str, Any]) -> list[tuple[str, str]]:
    scope = verdict.get("scope") or {}
    found = [("streamtight_outcome", str(verdict["outcome"])), ("streamtight_scope", str(scope.get("text", "")))]
    if scope.get("seed") is not None:
        found.append(("streamtight_seed", str(scope["seed"])))
    kept = verdict.get("kept") or {}
    if isinstance(kept, Mapping) and kept.get("token"):
        found.append(("streamtight_replay", str(kept["token"])))
    return found
