"""Verdicts as a file: text, JSON, or one HTML page that needs nothing else. The file's ending says which."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from streamtight import __version__
from streamtight.errors import ReportError
from streamtight.verdict import Outcome, Verdict


def write_report(verdicts: Verdict | Sequence[Verdict], path: str | Path, *, title: str = "streamtight") -> Path:
    """Write these verdicts to a .txt, .json or .html file; its folder is made if it is not there."""
    if isinstance(verdicts, Verdict):
        verdicts = [verdicts]
    target = Path(path)
    render = _FORMATS.get(target.suffix)
    if render is None:
        raise ReportError(
            f"write_report({str(path)!r})",
            needed="a file name that ends in " + ", ".join(_FORMATS),
            came=target.suffix or "no ending",
            hint=str(target.with_suffix(".html")),
        )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(render(verdicts, title), encoding="utf-8")
    except OSError as error:
        raise ReportError(
            f"write_report({str(path)!r})",
            needed="a file that can be written",
            came=f"{type(error).__name__}: {error}",
            hint="another folder, or other permissions",
        ) from error
    return target


def as_text(verdicts: Sequence[Verdict], title: str) -> str:
    """Every story, then a count of the outcomes."""
    stories = "\n\n".join(verdict.story() for verdict in verdicts)
    return f"{title}\n\n{stories}\n\n{_counted(verdicts)}\n"


def _as_json(verdicts: Sequence[Verdict], title: str) -> str:
    data = {"title": title, "streamtight": __version__, "verdicts": [verdict.as_data() for verdict in verdicts]}
    return json.dumps(data, indent=2) + "\n"


def _counted(verdicts: Sequence[Verdict]) -> str:
    counts = {outcome: sum(verdict.outcome is outcome for verdict in verdicts) for outcome in Outcome}
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


def _as_html(verdicts: Sequence[Verdict], title: str) -> str:
    return _PAGE.format(
        title=html.escape(title),
        counted=html.escape(_counted(verdicts)),
        sections="\n".join(map(_section, verdicts)),
        version=html.escape(__version__),
    )


def _section(verdict: Verdict) -> str:
    parts = [
        f'<section class="{verdict.outcome.name}">',
        f"<h2>{verdict.outcome.name}: {html.escape(verdict.claim)}</h2>",
        f"<p>{html.escape(str(verdict.scope))}</p>",
    ]
    if verdict.assumptions:
        parts.append(f"<p>assuming that {html.escape(' and '.join(verdict.assumptions))}</p>")
    if verdict.method:
        parts.append(f"<p>{html.escape(verdict.method)}</p>")
    if verdict.reason:
        parts.append(f"<p>{html.escape(verdict.reason)}</p>")
    if verdict.counterexample:
        parts.append(f"<pre>{html.escape(verdict.counterexample.story())}</pre>")
        if verdict.counterexample.picture:  # our own SVG, in which texts are escaped
            parts.append(f"<figure>{verdict.counterexample.picture}</figure>")
    if verdict.cost:
        spent = ", ".join(f"{name} {amount:.3g}" for name, amount in verdict.cost.items())
        parts.append(f"<p><small>{html.escape(spent)}</small></p>")
    return "\n".join([*parts, "</section>"])


_FORMATS: dict[str, Callable[[Sequence[Verdict], str], str]] = {
    ".txt": as_text,
    ".json": _as_json,
    ".html": _as_html,
}
