"""Where the session is led: what tests brought is collected, from whichever process; the report; the summary."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from streamtight.pytest_plugin.settings import Settings
from streamtight.pytest_plugin.stories import Story, printable

MOST_LISTED = 10
"""So many cases of a kind are listed in the summary."""


class Telling:
    """Collects what the reports of tests carry, from whichever process they come; writes the report and sums up."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self.config = config
        self.settings = settings
        self.phases: dict[tuple[str, str], dict[str, Any]] = {}
        """What each phase of each test brought; the last time, if it ran several times."""
        self.written = ""
        """The page, or why there is none."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker of pytest-xdist where to keep: paths are meant from here."""
        node.workerinput["streamtight_keep"] = None if self.settings.keep is None else str(self.settings.keep)

    def pytest_report_header(self) -> str | None:
        said = {name: getattr(self.settings, name) for name in ("seed", "runs", "limit")}
        told = [f"{name} {value:g}" for name, value in said.items() if value is not None]
        told += ["only what was kept"] if self.settings.only_kept else []
        return f"streamtight: {', '.join(told)}" if told else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        carried = getattr(report, "streamtight", None)
        if carried is None:
            return
        data = json.loads(carried)
        story = data.pop("story", None)
        if story is not None and isinstance(report.longrepr, str):  # it came from another process, as plain text
            report.longrepr = Story(*story)  # type: ignore[assignment]
        self.add(report.nodeid, report.when, data)

    def add(self, nodeid: str, when: str, data: dict[str, Any]) -> None:
        """Note what a phase of a test has brought."""
        self.phases[nodeid, when] = data

    def pytest_sessionfinish(self) -> None:
        if self.settings.report is None or self.config.option.collectonly:
            return
        from streamtight.report.write import render

        title = f"streamtight: {self.config.rootpath.name}"
        page = self.settings.report / "streamtight.html"
        try:
            self.settings.report.mkdir(parents=True, exist_ok=True)
            for form in ("json", "html"):
                page.with_suffix(f".{form}").write_text(render(self._verdicts(), form, title), encoding="utf-8")
            self.written = f"report: {page}"
        except OSError as error:
            self.written = f"no report: {type(error).__name__}: {error}"

    def _verdicts(self) -> list[dict[str, Any]]:
        return [verdict for data in self.phases.values() for verdict in data["verdicts"]]

    # -- the summary ---------------------------------------------------------------------------------------------------

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        told = list(self._summary(terminalreporter.verbosity))
        if told:
            terminalreporter.section("streamtight", bold=True)
            for style, line in told:
                terminalreporter.write_line(printable(line), **Story.STYLES.get(style, {}))

    def _summary(self, verbosity: int) -> Iterator[tuple[str, str]]:
        phases = self.phases.values()
        verdicts = self._verdicts()
        if verdicts:
            tests = len({verdict["test"] for verdict in verdicts})
            counts = [
                (name, sum(one["outcome"] == name for one in verdicts)) for name in ("HOLDS", "FAILS", "UNDECIDED")
            ]
            said = ", ".join(f"{count} {name}" for name, count in counts if count)
            yield "", f"{_counted(len(verdicts), 'verdict')} required in {_counted(tests, 'test')}: {said}"
        if expected := sum(data["expected"] for data in phases):
            yield "", f"{_counted(expected, 'verdict')} besides did not hold, as the tests expected"
        listed = verbosity >= 0
        yield from _several("weak", [_weak(one) for one in verdicts if _is_weak(one)], listed, "")
        kept = {name: one for data in phases for name, one in data["kept"].items()}
        again = [f"{name}  {one['finding']}  {one['claim']}" for name, one in kept.items()]
        yield from _several("kept", again, True, "red")
        retired = {name: one for data in phases for name, one in data["retired"].items() if name not in kept}
        yield from _several("fixed", [f"{name}  {one['claim']}" for name, one in retired.items()], True, "")
        asked = [line for data in phases for line in data["not_required"]]
        yield from _several("asked, but not required", asked, listed, "yellow")
        if not_kept := next((data["not_kept"] for data in phases if data["not_kept"]), ""):
            yield "yellow", f"nothing could be kept in {self.settings.keep}: {not_kept}"
        if kept:
            yield "", "`streamtight replay` tries again what was kept; the tests do so by themselves"
        if self.written:
            yield "" if self.written.startswith("report") else "red", self.written


def _several(what: str, lines: Sequence[str], listed: bool, style: str) -> Iterator[tuple[str, str]]:
    shown = lines[:MOST_LISTED] if listed else []
    for line in shown:
        yield style, f"{what}: {line}"
    if left := len(lines) - len(shown):
        yield style, f"{what}: {left}{' more' if shown else ''}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _is_weak(verdict: dict[str, Any]) -> bool:
    from streamtight.verdict import FEW_INPUTS

    scope = verdict["scope"]
    tested = scope["strength"] in ("TESTED", "OBSERVED")
    return verdict["outcome"] == "HOLDS" and tested and (scope["count"] or 0) < FEW_INPUTS


def _weak(verdict: dict[str, Any]) -> str:
    return f"{verdict['claim']}: only {verdict['scope']['text']}  ({verdict['test']})"
