"""What the order lint can find: a rule for each way in which a result depends on something that Spark does not fix.

>>> print(Finding(RULES["LIMIT_WITHOUT_ORDER"], Place("limit", "job.py", 12)))
job.py:12: LIMIT_WITHOUT_ORDER (error): limit: which rows are kept is up to Spark. Fix: orderBy a unique key first
"""

from __future__ import annotations

import enum
import linecache
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from streamtight.findings import MEANINGS
from streamtight.program.relation import Place
from streamtight.verdict import Counterexample


class Severity(enum.IntEnum):
    """How bad it is: the last digits, what may be meant so, a wrong result."""

    NOTE = 1
    WARNING = 2
    ERROR = 3


class Shown(enum.Enum):
    """Whether a run on Spark showed it."""

    NOT_TRIED = "not tried"
    NOT_SHOWN = "tried, not shown"
    TOGETHER = "shown, together with others"
    SHOWN = "shown"

    @property
    def is_seen(self) -> bool:
        """Whether runs on Spark differed."""
        return self in (Shown.TOGETHER, Shown.SHOWN)


@dataclass(frozen=True, slots=True)
class Rule:
    """A way in which a result depends on what Spark does not fix."""

    name: str
    severity: Severity
    why: str
    fix: str
    runs_differ: bool = True
    """Whether two runs can show it: what grows without bound, or is written twice after a failure, they cannot."""


def _rule(severity: Severity, name: str, fix: str, *, why: str = "", runs_differ: bool = True) -> tuple[str, Rule]:
    return name, Rule(name, severity, why or MEANINGS[name], fix, runs_differ)


_ERROR, _WARNING, _NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE

RULES: Mapping[str, Rule] = dict(
    [
        _rule(_ERROR, "FIRST_VALUE", "min_by or max_by a column without ties, or min or max"),
        _rule(_ERROR, "LIST_ORDER", "sort_array or array_sort around it"),
        _rule(
            _ERROR,
            "TEXT_ORDER",
            "sort_array before the text is joined, or WITHIN GROUP (ORDER BY ...) over a unique key",
        ),
        _rule(_ERROR, "TIED_ORDER", "order by a unique key as well"),
        _rule(_ERROR, "LIMIT_WITHOUT_ORDER", "orderBy a unique key first"),
        _rule(_ERROR, "DUPLICATE_CHOICE", "groupBy the key with min_by or max_by, or row_number over a total order"),
        _rule(_ERROR, "RANDOM", "a hash of a key: xxhash64(key)"),
        _rule(_ERROR, "SAMPLE", "where(pmod(xxhash64(key), 100) < 10)"),
        _rule(_ERROR, "ROW_ID", "a key that the rows have, or row_number over a total order"),
        _rule(_WARNING, "CLOCK", "give the time as a parameter or a column"),
        _rule(_ERROR, "UDF_VARIES", "give the seed, the time or the id as an argument"),
        _rule(_ERROR, "GROUP_FUNCTION_ORDER", "sort_values by a unique key first"),
        _rule(_ERROR, "REDUCE_ORDER", "a function that is associative and commutative"),
        _rule(_NOTE, "FLOAT_SUM", "cast to a decimal first, or compare with a tolerance"),
        _rule(_WARNING, "APPROXIMATE", "an exact function, such as percentile"),
        _rule(
            _ERROR,
            "ORDER_LOST",
            "repartition by the key, or into one partition, and sortWithinPartitions at the end",
            why="gives= promises an order that is not kept here",
        ),
        _rule(_ERROR, "NO_WATERMARK", "withWatermark on the event time before it", runs_differ=False),
        _rule(
            _ERROR,
            "UNBOUNDED_STATE",
            "group by a window of the event time, or bound the difference of the times in the join",
            runs_differ=False,
        ),
        _rule(_WARNING, "SHARED_WATERMARK", "the same delay for both, or a query for each stream", runs_differ=False),
        _rule(
            _ERROR,
            "SINK_APPENDS_AGAIN",
            "use the batch id: overwrite its partition, MERGE, or skip a batch that was written",
            runs_differ=False,
        ),
        _rule(
            _ERROR,
            "MODE_COUNTS_TWICE",
            'outputMode("append") with a watermark, or a sink that replaces rows by their key',
            runs_differ=False,
        ),
    ]
)


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that applies at a place, and the columns of the result that it reaches."""

    rule: Rule
    place: Place
    """The operator, and the line of the user."""
    detail: str = ""
    columns: tuple[str, ...] | None = field(default=None, compare=False)
    """None if how many rows there are depends on it, too, or if the rule does not speak of columns."""
    shown: Shown = field(default=Shown.NOT_TRIED, compare=False)
    because: str = field(default="", compare=False)
    """Why it was not tried, or not shown."""
    counterexample: Counterexample | None = field(default=None, compare=False, repr=False)
    """What shows it."""

    @property
    def message(self) -> str:
        """What and why, in a line."""
        told = f"{self.place.operation}: {self.rule.why}"
        if self.detail:
            told += f" ({self.detail})"
        return told + (f"; seen in {', '.join(self.columns)}" if self.columns else "")

    def __str__(self) -> str:
        where = f"{self.place.file}:{self.place.line}: " if self.place.file else ""
        shown = "" if self.shown is Shown.NOT_TRIED else f", {self.shown.value}"
        return (
            f"{where}{self.rule.name} ({self.rule.severity.name.lower()}{shown}): {self.message}. Fix: {self.rule.fix}"
        )

    def as_data(self) -> dict[str, Any]:
        """The finding as dicts, lists, strings and numbers."""
        return {
            "rule": self.rule.name,
            "severity": self.rule.severity.name.lower(),
            "file": self.place.file or None,
            "line": self.place.line or None,
            "operator": self.place.operation,
            "message": self.message,
            "fix": self.rule.fix,
            "columns": None if self.columns is None else list(self.columns),
            "shown": self.shown.value,
            "because": self.because or None,
        }


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read of one job: what was found in it, and what is not known."""

    findings: tuple[Finding, ...]
    unknown: tuple[Place, ...] = ()
    """Operators that are not known, which may depend on anything."""
    assumptions: tuple[str, ...] = ()


def sorted_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """By file and line, each once."""
    key = {one: (one.place.file, one.place.line, one.rule.name, one.place.operation, one.detail) for one in findings}
    return tuple(sorted(key, key=key.__getitem__))


_IGNORED = re.compile(r"#\s*streamtight:\s*ignore\[([\w\s,]+)\]")


def is_ignored(finding: Finding) -> bool:
    """Whether the line has a comment that silences it: `# streamtight: ignore[CLOCK]`."""
    found = _IGNORED.search(linecache.getline(finding.place.file, finding.place.line)) if finding.place.file else None
    return found is not None and finding.rule.name in re.split(r"[\s,]+", found[1].strip())
