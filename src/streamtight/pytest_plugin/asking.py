"""tight_session: the questions of streamtight, asked as the settings say, for one test."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from streamtight.errors import StreamtightError
from streamtight.pytest_plugin.settings import Settings

if TYPE_CHECKING:
    from streamtight.verdict import Verdict


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
            refused.sort(key=lambda error: verdicts_of(error)[0].outcome)
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
    verdicts = [verdict for error in refused for verdict in verdicts_of(error)]
    together.verdict, together.verdicts = verdicts[0], verdicts  # type: ignore[attr-defined]
    return together


def verdicts_of(error: BaseException) -> list[Verdict]:
    """The verdicts that an exception is about: its own, or those of what caused it."""
    if isinstance(error, BaseExceptionGroup):
        return [verdict for one in error.exceptions for verdict in verdicts_of(one)]
    if not isinstance(error, StreamtightError) and isinstance(verdict := getattr(error, "verdict", None), _verdict()):
        return list(getattr(error, "verdicts", [verdict]))
    return [] if error.__cause__ is None else verdicts_of(error.__cause__)


def _verdict() -> type[Verdict]:
    from streamtight.verdict import Verdict

    return Verdict
