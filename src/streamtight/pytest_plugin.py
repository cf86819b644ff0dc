"""The pytest plugin: what a test requires is told by its story, kept if it fails, tried first the next time, reported.

Three parts, which know each other only by what stands on test reports, so that they may be in different processes:

    Settings    what the command line, the environment and the configuration file say
    _Watching   where tests run: sees which verdicts a test requires, keeps what fails, tells the story
    _Telling    where the session is led: collects that, writes the report, sums up

Nothing but pytest and the errors is loaded when pytest starts; the rest is when the first test runs.
"""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import pytest

from streamtight.errors import StreamtightError

if TYPE_CHECKING:
    from streamtight.source.kept import Keeper, Kept
    from streamtight.verdict import Verdict

KEEP = ".streamtight"
"""Where counterexamples are kept, if nobody says: below the folder of the configuration file."""
FEW = 20
"""A claim that was tested on fewer inputs than this is told to be weak."""
MOST_LINES, LONGEST_LINE = 300, 2000
"""So much of a story is shown; all of it is in the report, and with -vv."""
LONGEST_TOKEN = 1000
MOST_LISTED = 10
"""So many cases of a kind are listed in the summary."""
OURS = Path(__file__).parent


# -- what is said ------------------------------------------------------------------------------------------------------


class _Option(NamedTuple):
    name: str
    metavar: str
    help: str

    @property
    def flag(self) -> str:
        return f"--streamtight-{self.name}"

    @property
    def variable(self) -> str:
        return f"STREAMTIGHT_{self.name.upper()}"

    @property
    def key(self) -> str:
        return f"streamtight_{self.name}"


_OPTIONS = (
    _Option("report", "DIR", "write every verdict that a test required to DIR/streamtight.html and .json"),
    _Option("seed", "N", "the seed of what is asked through tight_session"),
    _Option("runs", "N", "on how many inputs what is asked through tight_session is tried"),
    _Option("limit", "SECONDS", "how long a query, or a proof, may take of what is asked through tight_session"),
    _Option("keep", "DIR", f"where failing inputs are kept and tried first; '' for nowhere (default: {KEEP})"),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line says; else the environment; else the configuration file."""

    report: Path | None = None
    keep: Path | None = None
    only_kept: bool = False
    seed: int | None = None
    runs: int | None = None
    limit: float | None = None

    @classmethod
    def of(cls, config: pytest.Config) -> Settings:
        """The settings of a session; raises pytest.UsageError if one of them cannot be."""
        given = {option.name: _given(config, option) for option in _OPTIONS}
        keep = given["keep"]
        return cls(
            report=_folder(given["report"]),
            keep=config.rootpath / KEEP if keep is None else _folder(keep),
            only_kept=_only_kept(config),
            seed=_number(given["seed"], int, 0),
            runs=_number(given["runs"], int, 1),
            limit=_number(given["limit"], float, 0),
        )


class _Given(NamedTuple):
    """What was said, where, and from which folder paths are meant."""

    where: str
    text: str
    base: Path


def _given(config: pytest.Config, option: _Option) -> _Given | None:
    here = config.invocation_params.dir
    if (text := config.getoption(option.key)) is not None:
        return _Given(option.flag, text, here)
    if (text := os.environ.get(option.variable)) is not None and (text or option.metavar == "DIR"):
        return _Given(option.variable, text, here)
    text = config.getini(option.key)
    return None if text is None else _Given(option.key, str(text), config.rootpath)


def _folder(given: _Given | None) -> Path | None:
    if given is None or not given.text.strip():
        return None
    return Path(os.path.abspath(given.base / Path(given.text.strip()).expanduser()))


def _number(given: _Given | None, kind: type[Any], least: int) -> Any:
    if given is None or not given.text.strip():
        return None
    needed = f"a {'whole ' if kind is int else ''}number {f'from {least}' if kind is int else 'above 0'}"
    try:
        number = kind(given.text)
        if number < least or (kind is float and not 0 < number < float("inf")):
            raise ValueError
    except ValueError:
        raise _usage(given.where, needed, repr(given.text), f"{given.where}={20 if least else 7}") from None
    return number


def _only_kept(config: pytest.Config) -> bool:
    if config.getoption("streamtight_only_kept"):
        return True
    text = os.environ.get("STREAMTIGHT_ONLY_KEPT", "").strip().lower()
    if text not in ("", "0", "1", "true", "false", "yes", "no"):
        raise _usage("STREAMTIGHT_ONLY_KEPT", "1 or 0", repr(text), "STREAMTIGHT_ONLY_KEPT=1")
    return text in ("1", "true", "yes")


def _usage(where: str, needed: str, came: str, hint: str) -> pytest.UsageError:
    return pytest.UsageError(str(StreamtightError(where, needed=needed, came=came, hint=hint)))


def _require_writable(folder: Path) -> None:
    """Raise if the report cannot be written there: now, and not after an hour of tests."""
    attempt = folder / f".streamtight-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        attempt.write_text("")
        attempt.unlink()
    except OSError as error:
        came = f"{type(error).__name__}: {error}"
        raise _usage("--streamtight-report", "a folder that can be written", came, "another folder") from None


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, each with a key of the configuration file and a variable of the environment."""
    group = parser.getgroup("streamtight", "streamtight (are PySpark jobs right?)")
    for option in _OPTIONS:
        known = f"{option.help}; also {option.key} in the configuration file, and {option.variable}"
        group.addoption(option.flag, dest=option.key, metavar=option.metavar, default=None, help=known)
        parser.addini(option.key, f"{option.help} (as {option.flag})", type="string", default=None)
    group.addoption(
        "--streamtight-only-kept",
        dest="streamtight_only_kept",
        action="store_true",
        default=False,
        help="run only tests of which a failing input is kept, and try nothing but that; also STREAMTIGHT_ONLY_KEPT",
    )


_SETTINGS = pytest.StashKey[Settings]()


def pytest_configure(config: pytest.Config) -> None:
    """Read the settings; watch where tests run, and tell where the session is led."""
    settings = Settings.of(config)
    led_from: dict[str, Any] | None = getattr(config, "workerinput", None)
    if led_from is not None:  # a worker of pytest-xdist, whose folder may be another one
        keep = led_from.get("streamtight_keep")
        settings = Settings(None, keep and Path(keep), *_rest(settings))
    elif settings.report is not None and not (config.option.help or config.option.collectonly):
        _require_writable(settings.report)
    config.stash[_SETTINGS] = settings
    config.pluginmanager.register(_Watching(config, settings), "streamtight-watching")
    if led_from is None:
        config.pluginmanager.register(_Telling(config, settings), "streamtight-telling")


def _rest(settings: Settings) -> tuple[Any, ...]:
    return (settings.only_kept, settings.seed, settings.runs, settings.limit)


# -- fixtures ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The Spark session of all tests; write a fixture of this name into conftest.py to have your own.

    A session that already runs is used, and left running. A new one is on this machine, set up for small runs, with
    folders of its own, so that workers of pytest-xdist are not in each other's way; it is stopped at the end.
    """
    from streamtight.spark.session import running_session, session

    running = running_session()
    if running is not None:
        yield running
        return
    folder = tmp_path_factory.mktemp("spark")
    started = session(
        spark__sql__warehouse__dir=str(folder / "warehouse"),
        spark__checkpoint__dir=str(folder / "checkpoints"),
    )
    yield started
    started.stop()


@pytest.fixture
def tight_session(request: pytest.FixtureRequest) -> TightSession:
    """The questions of streamtight, asked with the seed, the runs and the limit of the command line."""
    session = TightSession(request, request.config.stash[_SETTINGS])
    if (record := request.node.stash.get(_RECORD, None)) is not None:
        record.asked = session.verdicts
    return session


class TightSession:
    """Asks what `streamtight` asks, with the same arguments, for one test.

    seed, runs and limit come from --streamtight-seed, --streamtight-runs and --streamtight-limit, and spark from the
    fixture of that name; what a call says itself comes first. Answers are collected in `verdicts`.
    """

    def __init__(self, request: pytest.FixtureRequest, settings: Settings) -> None:
        self._request = request
        self._settings = settings
        self.verdicts: list[Verdict] = []
        """All answers so far."""

    @property
    def spark(self) -> Any:
        """The session of the fixture `spark`: the user's own, if conftest.py has one. Started when asked for."""
        return self._request.getfixturevalue("spark")

    @property
    def seed(self) -> int:
        """The seed of generated inputs."""
        return self._settings.seed or 0

    @property
    def runs(self) -> int | None:
        """How many inputs are tried; None for as many as each question tries by default."""
        return self._settings.runs

    @property
    def limit(self) -> float | None:
        """How many seconds a query or a proof may take; None for what each question has by default."""
        return self._settings.limit

    def compare(self, *jobs: Any, **options: Any) -> Verdict:
        """Do two jobs give the same stream? As `streamtight.compare`."""
        return self._one("compare", jobs, options)

    def laws(self, job: Any, **options: Any) -> dict[str, Verdict]:
        """Does a streaming job mean the same however it is run? As `streamtight.laws`."""
        verdicts: dict[str, Verdict] = self._ask("laws", (job,), options)
        self.verdicts += verdicts.values()
        return verdicts

    def check(self, job: Any, formula: Any, **options: Any) -> Verdict:
        """Does every run of a job keep a property? As `streamtight.check`."""
        return self._one("check", (job, formula), options)

    def prove(self, left: Any, right: Any, **options: Any) -> Verdict:
        """Are two programs equal on every input? As `streamtight.prove`."""
        return self._one("prove", (left, right), options)

    def deterministic(self, program: Any, **options: Any) -> Verdict:
        """Is a result the same however rows are spread? As `streamtight.deterministic`."""
        return self._one("deterministic", (program,), options)

    def typecheck(self, job: Any, **options: Any) -> Verdict:
        """Does a result depend on an order that Spark does not fix? As `streamtight.typecheck`."""
        return self._one("typecheck", (job,), options)

    def consistent(self, program: Any, **options: Any) -> Verdict:
        """Does a program give the same on any number of workers? As `streamtight.consistent`."""
        return self._one("consistent", (program,), options)

    def explore(self, program: Any, claim: Any, **options: Any) -> Verdict:
        """What can a pipeline, or stateful code, do on any input? As `streamtight.explore`."""
        return self._one("explore", (program, claim), options)

    def require(self) -> None:
        """Raise an AssertionError with the stories of all answers so far that do not hold, if there are any."""
        __tracebackhide__ = True
        refused: list[AssertionError] = []
        for verdict in self.verdicts:
            try:
                verdict.require()
            except AssertionError as error:
                refused.append(error)
        if refused:
            # What fails says more than what is not decided, so it comes first.
            refused.sort(key=lambda error: _verdicts_of(error)[0].outcome)
            raise _all_of(refused)

    def _one(self, verb: str, arguments: Sequence[Any], options: dict[str, Any]) -> Verdict:
        __tracebackhide__ = True
        verdict: Verdict = self._ask(verb, arguments, options)
        self.verdicts.append(verdict)
        return verdict

    def _ask(self, verb: str, arguments: Sequence[Any], options: dict[str, Any]) -> Any:
        __tracebackhide__ = True
        import streamtight

        question: Callable[..., Any] = getattr(streamtight, verb)
        return question(*arguments, **self._defaults(question, options), **options)

    def _defaults(self, question: Callable[..., Any], options: dict[str, Any]) -> dict[str, Any]:
        """What this question takes of the settings, and the call does not say itself."""
        known = set(inspect.signature(question).parameters) - set(options)
        said = {
            "seed": self._settings.seed,
            "runs": self.runs,
            "cases": self.runs,
            "limit": self.limit,
            "seconds": self.limit,
        }
        taken = {name: value for name, value in said.items() if name in known and value is not None}
        return taken | ({"spark": self.spark} if "spark" in known else {})


def _all_of(refused: Sequence[AssertionError]) -> AssertionError:
    if len(refused) == 1:
        return refused[0].with_traceback(None)
    together = AssertionError("\n\n".join(map(str, refused)))
    verdicts = [verdict for error in refused for verdict in _verdicts_of(error)]
    together.verdict, together.verdicts = verdicts[0], verdicts  # type: ignore[attr-defined]
    return together


# -- where tests run ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Record:
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


_RECORD = pytest.StashKey[_Record]()
_OPEN: list[_Watching] = []
"""Who is watching, the innermost last: pytest may run inside a test."""


class _Watching:
    """Sees what tests require, keeps what fails, and puts the story on the test's report."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self.config = config
        self.settings = settings
        self.record: _Record | None = None

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

        self.record = item.stash[_RECORD] = _Record(item.nodeid, keeper_in_charge() if self.settings.keep else None)

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
        record = item.stash.get(_RECORD, None)
        if record is None or (not report.failed and record.is_empty()):
            return report
        error = call.excinfo.value if report.failed and call.excinfo is not None else None
        refused = [] if error is None else _verdicts_of(error)
        kept = self._keep(record, refused)
        if call.when == "call" and report.passed:
            _retire_what_holds(record)
        story = None
        if error is not None and call.excinfo is not None:
            if self._wants_traceback():
                report.sections += [("streamtight", line) for line in _again(kept)]
            elif refused or isinstance(error, StreamtightError) or _is_from_called_code(call.excinfo):
                story = self._story(item, call.excinfo, refused, kept)
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

    def _keep(self, record: _Record, refused: Sequence[Verdict]) -> list[Kept]:
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

    def _story(
        self, item: pytest.Item, excinfo: pytest.ExceptionInfo[BaseException], refused: list[Verdict], kept: list[Kept]
    ) -> _Story:
        lines: list[tuple[str, str]] = []
        for number, verdict in enumerate(refused):
            told = verdict.story().splitlines() or [""]
            lines += [("", "")] if number else []
            lines += [("red" if verdict.fails else "yellow", told[0]), *(("", line) for line in told[1:])]
        if not refused:
            first, *more = _told_error(excinfo.value)
            lines += [("red", first), *(("", line) for line in more)]
        lines = _cut(lines)
        places = _places(item, excinfo)
        for place in places:
            lines += [("", ""), ("place", f"{place.path}:{place.line}: in {place.name}")]
            lines += [("", f"    {line}") for line in place.code.splitlines()]
        again = _again(kept)
        lines += [("", "")] if again else []
        lines += [("cyan", line) for line in again]
        first = lines[0][1] if refused else _printable(next(iter(str(excinfo.value).splitlines()), ""))
        message = first if refused else f"{type(excinfo.value).__name__}: {first}"
        return _Story(lines, places[-1].path, places[-1].line, message)

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


def _data(record: _Record, when: str, told: Sequence[Verdict], expected: int) -> dict[str, Any]:
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


def _retire_what_holds(record: _Record) -> None:
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


def _verdicts_of(error: BaseException) -> list[Verdict]:
    """The verdicts that an exception is about: its own, or those of what caused it."""
    if isinstance(error, BaseExceptionGroup):
        return [verdict for one in error.exceptions for verdict in _verdicts_of(one)]
    if not isinstance(error, StreamtightError) and isinstance(verdict := getattr(error, "verdict", None), _verdict()):
        return list(getattr(error, "verdicts", [verdict]))
    return [] if error.__cause__ is None else _verdicts_of(error.__cause__)


def _verdict() -> type[Verdict]:
    from streamtight.verdict import Verdict

    return Verdict


# -- stories -----------------------------------------------------------------------------------------------------------


class _Place(NamedTuple):
    """A line of the user's own code."""

    path: str
    line: int
    name: str
    code: str


def _is_ours(path: Path | str) -> bool:
    return Path(path).is_relative_to(OURS)


def _is_sparks(path: Path | str) -> bool:
    return not {"pyspark", "py4j"}.isdisjoint(Path(path).parts)


def _is_from_called_code(excinfo: pytest.ExceptionInfo[BaseException]) -> bool:
    """Was it raised by a job that we called? Then our lines are of no use to anybody; else they may show a bug."""
    # The hooks of this file are on the way to every test.
    paths = [Path(e.path) for e in excinfo.traceback if not _is_sparks(e.path) and Path(e.path) != Path(__file__)]
    return bool(paths) and any(map(_is_ours, paths)) and not _is_ours(paths[-1])


def _places(item: pytest.Item, excinfo: pytest.ExceptionInfo[BaseException]) -> list[_Place]:
    """The user's own lines, from the test to where it failed; the test itself if there is none."""
    here = item.config.invocation_params.dir
    entries = excinfo.traceback.cut(path=item.path)
    own = [
        _Place(_relative(Path(entry.path), here), entry.lineno + 1, entry.name, str(entry.statement).strip())
        for entry in entries
        if not _is_ours(entry.path) and not _is_sparks(entry.path) and not entry.ishidden(excinfo)
    ]
    if own and any(Path(entry.path) == item.path for entry in entries):
        return [own[0], *own[-3:]] if len(own) > 4 else own
    path, line, name = item.location
    return [_Place(_relative(item.config.rootpath / path, here), (line or 0) + 1, name, "")]


def _relative(path: Path, here: Path) -> str:
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _told_error(error: BaseException) -> list[str]:
    """A wrong question, part by part; then what it says besides, and what caused it."""
    where = getattr(error, "where", None)
    told = [f"{type(error).__name__}: {where}"]
    if where is None:
        told = [f"{type(error).__name__}: {error}"]
    else:
        told += [f"  needed  {error.needed}", f"  came    {error.came}", f"  try     {error.hint}"]  # type: ignore[attr-defined]
        parts = f"{where}: needed {error.needed}; came {error.came}. Try: {error.hint}"  # type: ignore[attr-defined]
        told.append(str(error).removeprefix(parts).strip())
    told += getattr(error, "__notes__", [])
    if (cause := error.__cause__) is not None:
        first = next(iter(str(cause).strip().splitlines()), "")
        told += [] if first and first in str(error) else [f"because of {type(cause).__name__}: {first}"]
    return [line for part in told for line in part.splitlines()]


def _cut(lines: list[tuple[str, str]]) -> list[tuple[str, str]]:
    left_out = len(lines) - MOST_LINES
    if left_out > 1:
        last = MOST_LINES // 5
        gap = [("yellow", f"... {left_out:,} more lines: -vv shows them, and so does --streamtight-report=DIR ...")]
        lines = lines[: MOST_LINES - last] + gap + lines[-last:]
    return [(style, _printable(line)) for style, line in lines]


def _printable(line: str) -> str:
    """The line, not too long, without what a terminal would take for a command or could not encode."""
    if len(line) > LONGEST_LINE:
        line = f"{line[:LONGEST_LINE]}... and {len(line) - LONGEST_LINE:,} more characters"
    line = "".join(c if c.isprintable() or c == "\t" else repr(c)[1:-1] for c in line)
    return line.encode("utf-8", "backslashreplace").decode()


def _again(kept: Sequence[Kept]) -> list[str]:
    """How to see it fail again: by its name where it was kept, else by a token if that is short enough to be copied."""
    names = [one.token if one.path is None else one.id for one in kept]
    return [f"again: streamtight replay {name}" for name in names if len(name) <= LONGEST_TOKEN]


class _Story:
    """What is shown of a failed test instead of a traceback."""

    STYLES: ClassVar[dict[str, dict[str, bool]]] = {
        "red": {"red": True, "bold": True},
        "yellow": {"yellow": True, "bold": True},
        "cyan": {"cyan": True},
        "place": {"bold": True},
    }

    def __init__(self, lines: Sequence[tuple[str, str]], path: str, line: int, message: str) -> None:
        self.lines = [(style, text) for style, text in lines]
        self.reprcrash = _Crash(path, line, message)

    def as_data(self) -> list[Any]:
        crash = self.reprcrash
        return [self.lines, crash.path, crash.lineno, crash.message]

    def toterminal(self, tw: Any) -> None:
        """Write it, in colours if they are wanted: pytest knows."""
        for style, text in self.lines:
            tw.line(text, **self.STYLES.get(style, {}))

    def __str__(self) -> str:
        return "\n".join(text for _, text in self.lines)


class _Crash(NamedTuple):
    """What pytest's own short summary is made from."""

    path: str
    lineno: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.lineno}: {self.message}"


# -- where the session is led ------------------------------------------------------------------------------------------


class _Telling:
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
            report.longrepr = _Story(*story)  # type: ignore[assignment]
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
                terminalreporter.write_line(_printable(line), **_Story.STYLES.get(style, {}))

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
    scope = verdict["scope"]
    tested = scope["strength"] in ("TESTED", "OBSERVED")
    return verdict["outcome"] == "HOLDS" and tested and (scope["count"] or 0) < FEW


def _weak(verdict: dict[str, Any]) -> str:
    return f"{verdict['claim']}: only {verdict['scope']['text']}  ({verdict['test']})"
