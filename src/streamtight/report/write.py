"""Verdicts as a file: text, JSON, JUnit XML, or one HTML page that needs nothing else. The file's ending says which.

All of them are made of the same data, that of `Verdict.as_data`, so a page can also be made later of JSON files, by
`read_report` and `render`. What such a file holds is checked, since another person may have written it.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from streamtight import __version__
from streamtight.errors import ReportError
from streamtight.redaction import data_without_secrets
from streamtight.report.junit import as_junit
from streamtight.report.page import OUTCOMES, as_page
from streamtight.stream.clean import cleaned
from streamtight.verdict import Verdict

Data = Mapping[str, Any]


def write_report(
    verdicts: Verdict | Sequence[Verdict], path: str | os.PathLike[str], *, title: str = "streamtight"
) -> Path:
    """Write these verdicts to a .txt, .json, .xml (JUnit) or .html file; its folder is made if it is not there."""
    if isinstance(verdicts, Verdict):
        verdicts = [verdicts]
    target = Path(path)
    name = _ENDINGS.get(target.suffix)
    if name is None:
        raise ReportError(
            f"write_report({str(path)!r})",
            needed="a file name that ends in " + ", ".join(_ENDINGS),
            came=target.suffix or "no ending",
            hint=str(target.with_suffix(".html")),
        )
    return write_text(target, render([verdict.as_data() for verdict in verdicts], name, title))


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write a report that was rendered; its folder is made if it is not there."""
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # A text of a user may have halves of letters, which no encoding has.
        target.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise ReportError(
            f"write_report({str(path)!r})",
            needed="a file that can be written",
            came=f"{type(error).__name__}: {error}",
            hint="another folder, or other permissions",
        ) from error
    return target


def render(
    data: Sequence[Data],
    format: str,  # noqa: A002 - what users call it
    title: str = "streamtight",
    notes: Sequence[str] = (),
) -> str:
    """Verdicts, as data, in one of the FORMATS; with notes on all of them, each a line or more.

    >>> from streamtight.verdict import Outcome, Scope, Verdict
    >>> print(render([Verdict("a", Outcome.HOLDS, Scope.proved()).as_data()], "text", "Jobs"))
    Jobs
    <BLANKLINE>
    HOLDS  a (proved for every input)
    <BLANKLINE>
    1 HOLDS
    <BLANKLINE>
    """
    made = _FORMATS.get(format)
    if made is None:
        raise ReportError("render(format=...)", needed=f"one of {', '.join(FORMATS)}", came=repr(format), hint="html")
    return made([_told(verdict) for verdict in data], title, data_without_secrets(list(notes)))


def _told(verdict: Data) -> Data:
    """The same without secrets in its texts. Rows are left as they are: they are the user's data."""
    told = {name: data_without_secrets(part) if name in _TEXTS else part for name, part in verdict.items()}
    found = verdict.get("counterexample")
    if isinstance(found, Mapping):
        told["counterexample"] = {
            name: data_without_secrets(part) if name in _TEXTS else part for name, part in found.items()
        }
    return told


_TEXTS = frozenset({"claim", "reason", "method", "assumptions", "story", "explanation", "replay", "table"})


def read_report(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The verdicts of a JSON file, as data: of a report, of one verdict, or of a list of them.

    The file may be another person's: what is no verdict is refused, and pictures keep shapes and texts only.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise _unreadable(path, "a JSON file that can be read", f"{type(error).__name__}: {error}") from error
    found = data.get("verdicts", [data]) if isinstance(data, dict) else data
    if not isinstance(found, list):
        raise _unreadable(path, "verdicts", type(found).__name__)
    for number, verdict in enumerate(found):
        if problem := _problem(verdict):
            raise _unreadable(path, "verdicts as `write_report` writes them", f"in verdict {number + 1}, {problem}")
        for part in (verdict, verdict.get("counterexample") or {}):
            if part.get("picture"):
                part["picture"] = cleaned(part["picture"])
    return found


def _unreadable(path: object, needed: str, came: str) -> ReportError:
    hint = "tight.write_report(verdicts, 'report.json'), or --format json"
    return ReportError(f"read_report({str(path)!r})", needed=needed, came=came, hint=hint)


_SHAPE: Mapping[str, type | tuple[type, ...]] = {
    "claim": str, "scope": dict, "reason": (str, type(None)), "method": str, "assumptions": list, "cost": dict,
    "story": str, "picture": str, "kept": dict, "counterexample": (dict, type(None)),
}  # fmt: skip
_FOUND_SHAPE: Mapping[str, type | tuple[type, ...]] = {
    "finding": str, "explanation": str, "replay": str, "picture": str, "reruns": int, "failing_reruns": int,
    "expected": (list, type(None)), "actual": (list, type(None)), "table": (dict, type(None)),
    "batches": (list, type(None)), "restarts": (list, type(None)), "shuffle_partitions": (int, type(None)),
}  # fmt: skip


def _problem(verdict: object) -> str | None:
    """Why this is not the data of a verdict; None if it is."""
    if not isinstance(verdict, dict):
        return f"there is {type(verdict).__name__}"
    if verdict.get("outcome") not in OUTCOMES:
        return f"the outcome is {str(verdict.get('outcome'))[:60]!r}"
    if "claim" not in verdict:
        return "there is no claim"
    if problem := _misshapen(verdict, _SHAPE):
        return problem
    found = verdict.get("counterexample")
    if found is None:
        return "there is no counterexample, though it fails" if verdict["outcome"] == "FAILS" else None
    if problem := _misshapen(found, _FOUND_SHAPE):
        return problem
    table = found.get("table") or {"columns": [], "rows": []}
    rows = table.get("rows")
    if not isinstance(table.get("columns"), list) or not isinstance(rows, list):
        return "the table has no columns or rows"
    if not all(isinstance(row, list) for row in rows):
        return "a row of the table is no list"
    batches = found.get("batches") or ()
    if not all(isinstance(batch, list) and all(isinstance(part, list) for part in batch) for batch in batches):
        return "the batches are no lists of partitions"
    if not all(isinstance(restart, dict) for restart in found.get("restarts") or ()):
        return "a restart is no restart"
    return None


def _misshapen(data: Mapping[str, Any], shape: Mapping[str, type | tuple[type, ...]]) -> str | None:
    for name, wanted in shape.items():
        if name in data and not isinstance(data[name], wanted):
            return f"{name} is {type(data[name]).__name__}"
    return None


def _as_text(verdicts: Sequence[Data], title: str, notes: Sequence[str]) -> str:
    """Every story, then the notes, and a count of the outcomes."""
    stories = "\n\n".join(str(verdict.get("story") or _line(verdict)) for verdict in verdicts)
    counts = Counter(verdict["outcome"] for verdict in verdicts)
    counted = ", ".join(f"{counts[name]} {name}" for name in OUTCOMES if counts[name]) or "no verdict"
    return "\n\n".join([title, stories, *(["\n".join(notes)] if notes else []), f"{counted}\n"])


def _line(verdict: Data) -> str:
    return f"{verdict['outcome']}  {verdict['claim']}"


def _as_json(verdicts: Sequence[Data], title: str, notes: Sequence[str]) -> str:
    noted = {"notes": list(notes)} if notes else {}
    data = {"title": title, "streamtight": __version__, "verdicts": list(verdicts), **noted}
    return json.dumps(data, indent=2) + "\n"


_FORMATS: Mapping[str, Callable[[Sequence[Data], str, Sequence[str]], str]] = {
    "text": _as_text,
    "json": _as_json,
    "junit": as_junit,
    "html": as_page,
}
FORMATS = tuple(_FORMATS)
"""What `render` makes."""
_ENDINGS = {".txt": "text", ".json": "json", ".xml": "junit", ".html": "html"}
