"""Verdicts as a file: text, JSON, or one HTML page that needs nothing else. The file's ending says which."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from streamtight import __version__
from streamtight.errors import ReportError
from streamtight.verdict import Outcome, Verdict

Data = Mapping[str, Any]
"""A verdict as `Verdict.as_data` gives it."""


def write_report(verdicts: Verdict | Sequence[Verdict], path: str | Path, *, title: str = "streamtight") -> Path:
    """Write these verdicts to a .txt, .json, .xml (JUnit) or .html file; its folder is made if it is not there."""
    if isinstance(verdicts, Verdict):
        verdicts = [verdicts]
    target = Path(path)
    if target.suffix not in ENDINGS:
        raise ReportError(
            f"write_report({str(path)!r})",
            needed="a file name that ends in " + ", ".join(ENDINGS),
            came=target.suffix or "no ending",
            hint=str(target.with_suffix(".html")),
        )
    return write_text(target, render([one.as_data() for one in verdicts], ENDINGS[target.suffix], title))


def write_text(path: Path, text: str) -> Path:
    """Write a file; its folder is made if it is not there."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ReportError(
            f"write_report({str(path)!r})",
            needed="a file that can be written",
            came=f"{type(error).__name__}: {error}",
            hint="another folder, or other permissions",
        ) from error
    return path


def read_report(path: str | Path) -> list[Data]:
    """The verdicts in a JSON file that a report was written to."""
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _unreadable(path, f"{type(error).__name__}: {error}") from error
    match data:
        case {"verdicts": [*verdicts]} if all(isinstance(one, dict) and "outcome" in one for one in verdicts):
            return verdicts
    raise _unreadable(path, "something else")


def _unreadable(path: str | Path, came: str) -> ReportError:
    return ReportError(
        f"read_report({str(path)!r})",
        needed="a file that --format json wrote",
        came=came,
        hint="streamtight laws -o a.json",
    )


def render(verdicts: Sequence[Data], format_: str, title: str) -> str:
    """These verdicts as text, json, junit or html."""
    return FORMATS[format_](verdicts, title)


def as_text(verdicts: Sequence[Data], title: str) -> str:
    """Every story, then a count of the outcomes."""
    stories = "\n\n".join(verdict["story"] for verdict in verdicts)
    return f"{title}\n\n{stories}\n\n{_counted(verdicts)}\n"


def _as_json(verdicts: Sequence[Data], title: str) -> str:
    return json.dumps({"title": title, "streamtight": __version__, "verdicts": verdicts}, indent=2) + "\n"


def _counted(verdicts: Sequence[Data]) -> str:
    counts = {outcome: sum(verdict["outcome"] == outcome.name for verdict in verdicts) for outcome in Outcome}
    return ", ".join(f"{count} {outcome.name}" for outcome, count in counts.items() if count) or "no verdict"


_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
  body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
  section {{ border-left: 6px solid; padding: 0.2rem 1rem; margin: 1rem 0; }}
  pre {{ white-space: pre-wrap; background: #8881; padding: 0.8rem; }}
  figure {{ margin: 0; overflow-x: auto; }}
  .HOLDS {{ border-color: #2a7; }} .FAILS {{ border-color: #c33; }} .UNDECIDED {{ border-color: #c92; }}
</style>
<h1>{title}</h1>
<p>{counted}</p>
{sections}
<footer>streamtight {version}</footer>
</html>
"""


def _as_html(verdicts: Sequence[Data], title: str) -> str:
    return _PAGE.format(
        title=html.escape(title),
        counted=html.escape(_counted(verdicts)),
        sections="\n".join(map(_section, verdicts)),
        version=html.escape(__version__),
    )


def _section(verdict: Data) -> str:
    found = verdict["counterexample"]
    parts = [
        f'<section class="{html.escape(verdict["outcome"])}">',
        f"<h2>{html.escape(verdict['outcome'])}: {html.escape(verdict['claim'])}</h2>",
        f"<pre>{html.escape(verdict['story'])}</pre>",
    ]
    picture = (found or {}).get("picture") or verdict.get("picture")
    if picture:  # our own SVG, in which texts are escaped
        parts.append(f"<figure>{picture}</figure>")
    return "\n".join([*parts, "</section>"])


def _as_junit(verdicts: Sequence[Data], title: str) -> str:
    raise NotImplementedError


FORMATS: dict[str, Callable[[Sequence[Data], str], str]] = {
    "text": as_text,
    "json": _as_json,
    "junit": _as_junit,
    "html": _as_html,
}
ENDINGS = {".txt": "text", ".json": "json", ".xml": "junit", ".html": "html"}
