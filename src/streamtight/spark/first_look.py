"""The first look at a job: which laws does it keep, what does its plan say, and what was not looked at?

Given a function and what goes in, and nothing else. A job that cannot be a stream is asked whether it is deterministic.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from streamtight.method.compare.jobs import LAWS
from streamtight.method.typecheck.findings import Finding, Severity
from streamtight.source.generate import source_of
from streamtight.source.streams import StreamGenerator
from streamtight.spark.compare import compare, laws
from streamtight.spark.given import Given
from streamtight.spark.lint_lines import short
from streamtight.spark.pack import grouping_columns
from streamtight.spark.run import STATIC, Job, refused_modes
from streamtight.spark.session import session
from streamtight.spark.typecheck import examine
from streamtight.stream.dependence import Dependence, unordered
from streamtight.stream.event import Kind
from streamtight.verdict import Verdict

AUTO = "auto"
STREAMING = ("append", "update", "complete")


@dataclass(slots=True)
class FirstLook:
    """What was found besides the verdicts, so far."""

    mode: str = ""
    findings: tuple[Finding, ...] = ()
    notes: list[str] = field(default_factory=list)
    """What a person should know to read the verdicts."""

    @property
    def weighty(self) -> list[Finding]:
        """What was found in the plan and is more than a note."""
        return [one for one in self.findings if one.rule.severity > Severity.NOTE]

    def not_looked_at(self) -> list[str]:
        """What these verdicts do not speak of."""
        unseen = ["whether the result is what you mean: ask compare, check or prove"]
        unseen.append("inputs of more than some dozen rows, speed and memory")
        if self.mode == "batch":
            unseen.append("the job as a stream, since Spark does not run it so")
        unseen.append("where the rows come from and go to: streamtight lint reads a whole script with its sinks")
        return unseen


def first_look(
    job: Job,
    given: Given,
    *,
    mode: str = AUTO,
    only: Sequence[str] = LAWS,
    upto: Dependence = unordered,
    key: Sequence[str] = (),
    runs: int = 20,
    seed: int = 0,
    limit: float = 120.0,
    look: FirstLook,
    tell: Callable[[Verdict], None],
) -> None:
    """Tell verdict by verdict, so that somebody who stops it has what is known by then; and fill `look`."""
    asked: dict[str, Any] = {"on": given.source, "upto": upto, "runs": runs, "seed": seed, "limit": limit}
    asked |= {} if given.takes is None else {"takes": given.takes}
    takes = given.takes if given.takes is not None else _kinds(given)
    look.mode, why = _mode_for(job, takes, key) if mode == AUTO else (mode, "")
    if why:
        look.notes.append(f"it is asked in mode {look.mode}, since Spark does not run it in mode append: {why}")
    if look.mode in STATIC:
        tell(compare(job, job, mode=look.mode, **asked))
    else:
        by_key: dict[str, Any] = {"key": tuple(key)} if key and look.mode == "update" else {}
        for law in only:
            tell(laws(job, mode=look.mode, only=law, **asked, **by_key)[law])
    _read_plan(job, given, look)


def _mode_for(job: Job, takes: Any, key: Sequence[str]) -> tuple[str, str]:
    """The first mode in which Spark runs a job, a batch if it is no stream; and why it is not append, if it is not."""
    spark = session()
    refused = refused_modes(job, takes=takes, spark=spark)
    if "update" not in refused and not key and grouping_columns(job, takes=takes, spark=spark) is None:
        refused["update"] = "which row an update replaces is not known"
    mode = next((mode for mode in STREAMING if mode not in refused), "batch")
    return mode, _own_words(refused.get("append", ""))


def _own_words(text: str) -> str:
    """The sentences of Spark's message, without its codes."""
    return re.sub(r"^\[[\w.]+\]\s*|\s*SQLSTATE: \w+\s*$|;\s*$", "", text).rstrip(".")


def _read_plan(job: Job, given: Given, look: FirstLook) -> None:
    takes: Any = list(given.tables) or _kinds(given)
    examined = examine(job, takes=takes, mode=look.mode, confirm=False)
    look.findings = tuple(replace(one, place=short(one.place)) for one in examined.findings)
    look.notes += [
        f"{short(place)} is not known to the lint, and may depend on an order" for place in examined.reading.unknown
    ]
    if not examined.findings and not examined.reading.unknown and examined.verdict.undecided:
        look.notes.append(f"the plan was not read: {examined.verdict.reason}")


def _kinds(given: Given) -> list[Kind]:
    return list((given.source if isinstance(given.source, StreamGenerator) else source_of(given.source)).kinds)
