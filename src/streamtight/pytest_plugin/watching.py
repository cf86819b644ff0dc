"""Where tests run: which verdicts does a test require, what of it is kept, and what is told if it fails?"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from streamtight.errors import StreamtightError
from streamtight.pytest_plugin.asking import verdicts_of
from streamtight.pytest_plugin.settings import Settings
from streamtight.pytest_plugin.stories import again, is_from_called_code, story_of

if TYPE_CHECKING:
    from streamtight.source.kept import Keeper, Kept
    from streamtight.verdict import Verdict


@dataclass(slots=True)
class Record:
    """What is known of a test while it runs."""

    nodeid: str
    keeper: Keeper | None
    when: str = "setup"
    required: dict[str, list[Verdict]] = field(default_factory=dict)
    """The verdicts that each phase required."""
    seen: set[int] = field(default_factory=set)
    """The same as numbers: a property may require something for every input that it draws."""
    refused: list[Verdict] = field(default_factory=list)
    """Those for which it failed, or a part of it did."""
    asked: list[Verdict] = field(default_factory=list)
    """Those that were asked for through tight_session."""
    kept: list[tuple[Verdict, Kept]] = field(default_factory=list)
    """What there is to replay of them; it has a path if it was written."""
    not_kept: str = ""
    """Why something could not be."""

    def is_empty(self) -> bool:
        """Is there nothing to tell of a phase that went well?"""
        return not (self.required or self.asked or (self.keeper is not None and self.keeper.retired))

    def all_required(self) -> list[Verdict]:
        return [verdict for verdicts in self.required.values() for verdict in verdicts]


RECORD = pytest.StashKey[Record]()
_OPEN: list[Watching] = []
"""Who is watching, the innermost last: pytest may run inside a test."""


class Watching:
    """Sees what tests require, keeps what fails, and puts the story on the test's report."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self.config = config
        self.settings = settings
        self.record: Record | None = None

    # -- phases --------------------------------------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        if not session.items:
            return (yield)
        from streamtight.verdict import witnessed

        _OPEN.append(self)
        try:
            with witnessed(self._saw):
                return (yield)
        finally:
            _OPEN.remove(self)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        if self.settings.keep is None:
            return (yield)
        from streamtight.source.kept import Keeper, keeping

        with keeping(Keeper(self.settings.keep, {"test": item.nodeid}, only=self.settings.only_kept)):
            return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        from streamtight.source.kept import keeper_in_charge

        self.record = item.stash[RECORD] = Record(item.nodeid, keeper_in_charge() if self.settings.keep else None)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self) -> None:
        if self.record is not None:
            self.record.when = "call"

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self) -> None:
        if self.record is not None:
            self.record.when = "teardown"

    def _saw(self, verdict: Verdict) -> bool:
        """Note a verdict; True excuses one that does not hold."""
        if self.record is None or not _OPEN or _OPEN[-1] is not self:
            return False
        if self.settings.only_kept:
            from streamtight.source.kept import NOTHING_KEPT

            if verdict.reason == NOTHING_KEPT:  # it is another question of the test that is tried again
                return True
        if id(verdict) not in self.record.seen:
            self.record.seen.add(id(verdict))
            self.record.required.setdefault(self.record.when, []).append(verdict)
        return False

    # -- what is run ---------------------------------------------------------------------------------------------------

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """With --streamtight-only-kept, leave out tests of which nothing is kept."""
        if not self.settings.only_kept:
            return
        from streamtight.source.kept import all_kept

        kept = [] if self.settings.keep is None else list(all_kept(self.settings.keep))
        named = {one.ask.get("test") for one in kept}
        left_out = [item for item in items if item.nodeid not in named]
        if left_out:
            items[:] = [item for item in items if item.nodeid in named]
            config.hook.pytest_deselected(items=left_out)

    # -- what is told --------------------------------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        record = item.stash.get(RECORD, None)
        if record is None or (not report.failed and record.is_empty()):
            return report
        error = call.excinfo.value if report.failed and call.excinfo is not None else None
        refused = [] if error is None else verdicts_of(error)
        kept = self._keep(record, refused)
        if call.when == "call" and report.passed:
            _retire_what_holds(record)
        story = None
        if error is not None and call.excinfo is not None:
            if self._wants_traceback():
                report.sections += [("streamtight", line) for line in again(kept)]
            elif refused or isinstance(error, StreamtightError) or is_from_called_code(call.excinfo):
                story = story_of(item, call.excinfo, refused, kept)
                report.longrepr = story  # type: ignore[assignment]  # pytest asks only for toterminal and reprcrash
        required = record.required.get(call.when, [])
        record.refused += refused
        told = [v for v in required if report.failed or v.holds or any(v is other for other in record.refused)]
        _tell_junit(item, report, told, kept)
        data = _data(record, call.when, told, len(required) - len(told))
        if story is not None:
            data["story"] = story.as_data()
        if any(data.values()):
            # As text: whatever carries reports from process to process knows that, odd characters and all.
            report.streamtight = json.dumps(data, default=str)  # type: ignore[attr-defined]
        return report

    def _keep(self, record: Record, refused: Sequence[Verdict]) -> list[Kept]:
        """What is kept of the verdicts for which a test failed. Those of a shared fixture are kept where it ran."""
        from streamtight.source.kept import Kept

        kept: list[Kept] = []
        for verdict in refused:
            if not verdict.fails or id(verdict) not in record.seen:
                continue
            one = Kept.of(verdict, {"test": record.nodeid})
            if self.settings.keep is not None:
                try:
                    one = one.write(self.settings.keep)
                except OSError as error:  # a test run goes on where nothing can be written
                    record.not_kept = f"{type(error).__name__}: {error}"
            kept.append(one)
            record.kept.append((verdict, one))
        return kept

    def _wants_traceback(self) -> bool:
        option = self.config.option
        return option.fulltrace or option.verbose >= 2 or option.tbstyle in ("long", "native")

    # -- Ctrl-C --------------------------------------------------------------------------------------------------------

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """What the test that was stopped has found out by then has no report of its own; it is told as if it had."""
        record, telling = self.record, self.config.pluginmanager.get_plugin("streamtight-telling")
        if record is None or telling is None:
            return
        known = record.required.get(record.when, [])
        if (verdict := getattr(excinfo.value, "verdict", None)) is not None:
            known = [*known, verdict]
        telling.add(record.nodeid, record.when, _data(record, record.when, known, 0))


def _data(record: Record, when: str, told: Sequence[Verdict], expected: int) -> dict[str, Any]:
    """What a report carries: all that this phase has brought so far."""
    keeper = record.keeper
    verdicts = []
    for verdict in _without_repeats(told):
        of_it = [{"id": one.id, "token": one.token} for other, one in record.kept if other is verdict]
        verdicts.append({**verdict.as_data(), "test": record.nodeid, **({"kept": of_it[0]} if of_it else {})})
    data: dict[str, Any] = {
        "verdicts": verdicts,
        "expected": expected,
        "kept": {
            one.id: {"finding": one.finding, "claim": one.claim} for _, one in record.kept if one.path is not None
        },
        "retired": {} if keeper is None else {one.id: {"claim": one.claim} for one in keeper.retired},
        "not_kept": record.not_kept,
        "not_required": [],
    }
    if when == "teardown":
        unheard = [verdict for verdict in record.asked if not verdict.holds and id(verdict) not in record.seen]
        data["not_required"] = [str(verdict) for verdict in unheard]
    return data


def _without_repeats(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Each claim once for each outcome and scope: a test may require the same in a loop."""
    return list({(one.claim, one.outcome, one.scope, one.reason): one for one in verdicts}.values())


def _retire_what_holds(record: Record) -> None:
    """Forget cases of questions that have no way to try them first, but were asked again, and hold."""
    if record.keeper is None:
        return
    claims = {verdict.claim for verdict in record.required.get("call", ()) if verdict.holds}
    claims -= {verdict.claim for verdict in record.all_required() if not verdict.holds}
    for claim in claims:
        tried = {one.id for one in record.keeper.tried}
        for kept in record.keeper.of(claim):
            if kept.id not in tried:
                record.keeper.retire(kept)


def _tell_junit(item: pytest.Item, report: pytest.TestReport, told: Sequence[Verdict], kept: Sequence[Kept]) -> None:
    if not told or report.when == "teardown":
        return
    worst = min(told, key=lambda verdict: verdict.outcome)
    ours: list[tuple[str, object]] = [("streamtight_outcome", worst.outcome.name)]
    ours += [] if worst.scope.seed is None else [("streamtight_seed", str(worst.scope.seed))]
    ours += [("streamtight_replay", one.token) for one in kept]
    for properties in (item.user_properties, report.user_properties):
        properties[:] = [one for one in properties if not one[0].startswith("streamtight_")] + ours
