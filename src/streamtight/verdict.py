"""Verdicts: the one kind of answer that every question gets.

>>> v = Verdict("job keeps the order of each taxi", Outcome.HOLDS, Scope.tested(200, seed=7))
>>> print(v)
HOLDS  job keeps the order of each taxi (tested on 200 generated inputs, seed 7)
>>> v.require() is v
True
"""

from __future__ import annotations

import enum
import html
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from streamtight.errors import VerdictError
from streamtight.redaction import without_secrets
from streamtight.stream.event import Event
from streamtight.stream.plain import plain, schedule_data
from streamtight.stream.schedule import Schedule
from streamtight.stream.svg import cut

MOST_IN_NOTEBOOK = 20_000
"""So many letters of a story are shown in a notebook."""


class Outcome(enum.IntEnum):
    """No, don't know, yes: in this order, so that the worst of several is the smallest."""

    FAILS = 0
    UNDECIDED = 1
    HOLDS = 2


FEW_INPUTS = 20
"""A claim that was tested on fewer inputs, and holds, is told to be weak."""


class Strength(enum.IntEnum):
    """How much of all possible inputs an answer speaks of, the least first."""

    OBSERVED = 0
    TESTED = 1
    EXPLORED = 2
    PROVED = 3


@dataclass(frozen=True, slots=True)
class Scope:
    """Which inputs an answer speaks of. A narrower scope is smaller: of less strength, or as strong on fewer inputs."""

    strength: Strength
    count: int | None = None
    seed: int | None = None
    within: str = ""
    """Which streams are meant, if not all or not so many."""

    @classmethod
    def proved(cls, within: str = "") -> Scope:
        """Every input; or every stream that is so."""
        return cls(Strength.PROVED, within=within)

    @classmethod
    def every_stream(cls, within: str) -> Scope:
        """Every stream of any length that is so, by going through all states that can be reached."""
        return cls(Strength.EXPLORED, within=within)

    @classmethod
    def explored(cls, size: int) -> Scope:
        """All inputs up to this size."""
        return cls(Strength.EXPLORED, size)

    @classmethod
    def tested(cls, count: int, *, seed: int | None = None) -> Scope:
        """So many inputs, generated from this seed or given."""
        return cls(Strength.TESTED, count, seed)

    @classmethod
    def observed(cls, count: int) -> Scope:
        """So many inputs that were seen to happen."""
        return cls(Strength.OBSERVED, count)

    def __lt__(self, other: Scope) -> bool:
        return self._rank() < other._rank()

    def _rank(self) -> tuple[int, float]:
        return (self.strength, math.inf if self.count is None else self.count)

    def __str__(self) -> str:
        noun = "input" if self.count == 1 else "inputs"
        match self.strength:
            case Strength.PROVED:
                return f"proved for every stream {self.within}" if self.within else "proved for every input"
            case Strength.EXPLORED if self.within:
                return f"explored for every stream {self.within}"
            case Strength.EXPLORED:
                return f"explored for all inputs up to size {self.count}"
            case Strength.OBSERVED:
                return f"observed on {self.count} {'event' if self.count == 1 else 'events'}"
        if self.seed is None:
            return f"tested on {self.count} given {noun}"
        return f"tested on {self.count} generated {noun}, seed {self.seed}"


@dataclass(frozen=True, slots=True)
class Table:
    """What happened: a line for each step, or for each input."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """A cell for each column; a cell may have several lines."""
    title: str = "step by step"

    def __str__(self) -> str:
        lines = [[cell.splitlines() or [""] for cell in row] for row in (self.columns, *self.rows)]
        widths = [max(len(line) for row in lines for line in row[place]) for place in range(len(self.columns))]
        told = []
        for row in lines:
            for number in range(max(map(len, row))):
                cells = (cell[number] if number < len(cell) else "" for cell in row)
                told.append("  ".join(f"{cell:{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip())
        return "\n".join(told)


@dataclass(frozen=True, slots=True)
class Counterexample:
    """An input that fails, as small as it could be made, and how to see it fail again."""

    finding: str
    """The name of what is wrong, such as ORDER_LOST."""
    explanation: str
    """What happened, in a sentence."""
    schedule: Schedule | None = None
    """The input; None if no job was run, as when two given streams are compared."""
    expected: tuple[Event, ...] | None = None
    actual: tuple[Event, ...] | None = None
    table: Table | None = None
    """The run step by step, where that tells more than what came in the end."""
    replay: str = ""
    """The few lines of Python that show it again."""
    picture: str = field(default="", repr=False)
    """What a person looks at: SVG, or nothing."""
    reruns: int = 0
    """How often it was run again before it was reported."""
    failing_reruns: int = 0
    """How many of these failed as well."""

    def __post_init__(self) -> None:
        # What Spark and the user's code said may be in it. Rows, and the code that shows them, are left as they are.
        object.__setattr__(self, "explanation", without_secrets(self.explanation))

    def story(self, *, code: bool = True) -> str:
        """What a person reads first: what is wrong, on which input, what was expected, what came, how to see it.

        Without `code`, the lines of Python that show it again are left out.
        """
        parts = [f"{self.finding}: {self.explanation}"]
        if self.table is not None:
            parts.append(f"{self.table.title}\n" + _indented(str(self.table)))
        elif self.schedule is not None:
            parts.append("input\n" + _indented(str(self.schedule)))
        if self.schedule is not None and self.schedule.shuffle_partitions != 1:
            parts[-1] += f"\n  with {self.schedule.shuffle_partitions} shuffle partitions"
        if self.expected is not None:
            parts.append("expected\n" + _listed(self.expected))
        if self.actual is not None:
            parts.append("came\n" + _listed(self.actual))
        if self.reruns:
            parts.append(f"run again: failed {self.failing_reruns} of {self.reruns} times")
        if self.replay and code:
            parts.append("to see it again\n" + _indented(self.replay))
        return "\n".join(parts)


@dataclass(frozen=True, slots=True)
class Verdict:
    """An answer: the claim, whether it holds, for which inputs, and the evidence or the reason.

    FAILS carries a counterexample, UNDECIDED a reason.
    """

    claim: str
    outcome: Outcome
    scope: Scope
    counterexample: Counterexample | None = None
    reason: str | None = None
    cost: Mapping[str, float] = field(default_factory=dict, compare=False)
    """What the answer took: seconds, runs, batches, whatever the method counts."""
    method: str = ""
    """How it was decided, if there are several ways."""
    assumptions: tuple[str, ...] = ()
    """What was taken for granted, each as it follows "assuming that"."""

    def __post_init__(self) -> None:
        if self.reason is not None:
            object.__setattr__(self, "reason", without_secrets(self.reason))
        if not isinstance(self.outcome, Outcome):
            raise VerdictError(
                f"Verdict({self.claim!r})", needed="an Outcome", came=repr(self.outcome), hint="Outcome.HOLDS"
            )
        if (self.outcome is Outcome.FAILS) != (self.counterexample is not None):
            raise VerdictError(
                f"Verdict({self.claim!r})",
                needed="a counterexample with FAILS, and only with FAILS",
                came=f"{self.outcome.name} {'without' if self.counterexample is None else 'with'} one",
                hint="UNDECIDED with a reason, if nothing was shown to fail",
            )
        if self.outcome is Outcome.UNDECIDED and not self.reason:
            raise VerdictError(
                f"Verdict({self.claim!r})",
                needed="the reason why it is undecided",
                came="none",
                hint="reason='...'",
            )

    @property
    def holds(self) -> bool:
        """Is the answer yes?"""
        return self.outcome is Outcome.HOLDS

    @property
    def fails(self) -> bool:
        """Is the answer no?"""
        return self.outcome is Outcome.FAILS

    @property
    def undecided(self) -> bool:
        """Is there no answer?"""
        return self.outcome is Outcome.UNDECIDED

    def __bool__(self) -> bool:
        raise VerdictError(
            f"bool({self.claim!r})",
            needed="one of .holds, .fails, .undecided",
            came="a verdict where True or False was wanted",
            hint="verdict.require(), which raises unless it holds",
        )

    def __str__(self) -> str:
        because = f": {self.reason}" if self.reason else ""
        found = f": {self.counterexample.finding}" if self.counterexample else ""
        assuming = f", assuming that {' and '.join(self.assumptions)}" if self.assumptions else ""
        return f"{self.outcome.name}  {self.claim}{found}{because} ({self.scope}{assuming})"

    def story(self, *, code: bool = True) -> str:
        """The line, and under it how it was decided and the counterexample, with the code that shows it or without."""
        parts = [f"decided by {self.method}"] if self.method else []
        if self.counterexample is not None:
            parts.append(self.counterexample.story(code=code))
        return "\n".join([str(self), *map(_indented, parts)])

    def require(self) -> Verdict:
        """This verdict if it holds; else an AssertionError that tells the story."""
        __tracebackhide__ = True
        excused = [tell(self) is True for tell in _WITNESSES]
        if not self.holds and not any(excused):
            raise NotHeld(self)
        return self

    def picture(self) -> str:
        """The counterexample as SVG, where there is a picture of it; else nothing."""
        return "" if self.counterexample is None else self.counterexample.picture

    def _repr_html_(self) -> str:
        """What a notebook shows: the story, and the picture under it."""
        colour = {Outcome.FAILS: "#cf222e", Outcome.UNDECIDED: "#9a6700", Outcome.HOLDS: "#1a7f37"}[self.outcome]
        story = html.escape(cut(self.story(), MOST_IN_NOTEBOOK))
        drawn = self.picture()
        figure = f'<div style="overflow-x: auto">{drawn}</div>' if drawn else ""
        return (
            f'<div style="border-left: 5px solid {colour}; padding-left: 0.8em">'
            f'<pre style="white-space: pre-wrap">{story}</pre>{figure}</div>'
        )

    def to_json(self) -> str:
        """The verdict as JSON, for other programs."""
        return json.dumps(self.as_data(), indent=2)

    def as_data(self) -> dict[str, Any]:
        """The verdict as dicts, lists, strings and numbers."""
        counterexample = self.counterexample
        return {
            "claim": self.claim,
            "outcome": self.outcome.name,
            "scope": {
                "strength": self.scope.strength.name,
                "count": self.scope.count,
                "seed": self.scope.seed,
                "text": str(self.scope),
            },
            "reason": self.reason,
            "method": self.method,
            "assumptions": list(self.assumptions),
            "cost": dict(self.cost),
            "story": self.story(),
            "counterexample": None if counterexample is None else _counterexample_data(counterexample),
        }


class NotHeld(AssertionError):
    """A verdict was required to hold, and does not. `verdict` is the one."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.story())
        self.verdict = verdict

    def __reduce__(self) -> tuple[object, ...]:
        return (NotHeld, (self.verdict,))


class Interrupted(KeyboardInterrupt):
    """Somebody pressed Ctrl-C. `verdict` says what was known by then."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(str(verdict))
        self.verdict = verdict


_WITNESSES: list[Callable[[Verdict], object]] = []


@contextmanager
def witnessed(tell: Callable[[Verdict], object]) -> Iterator[None]:
    """While this is open, `tell` is told of every verdict that is required to hold, before it is known whether it does.

    A verdict that does not hold is excused where it returns True: nothing is raised.

    >>> seen: list[Verdict] = []
    >>> with witnessed(seen.append):
    ...     _ = Verdict("a", Outcome.HOLDS, Scope.proved()).require()
    >>> [verdict.claim for verdict in seen]
    ['a']
    """
    _WITNESSES.append(tell)
    try:
        yield
    finally:
        _WITNESSES.remove(tell)


def combine(verdicts: Iterable[Verdict], *, claim: str) -> Verdict:
    """Do all of these hold? The worst outcome, the narrowest scope, the first counterexample or reason for it.

    Methods and assumptions are those of all, or of the one that fails.

    >>> good = Verdict("a", Outcome.HOLDS, Scope.proved())
    >>> print(combine([good, Verdict("b", Outcome.HOLDS, Scope.observed(9))], claim="both"))
    HOLDS  both (observed on 9 events)
    """
    listed = list(verdicts)
    if not listed:
        raise VerdictError(
            f"combine({claim!r})",
            needed="one verdict or more",
            came="none",
            hint="an UNDECIDED verdict with a reason",
        )
    worst = min(listed, key=lambda verdict: verdict.outcome)
    cost: dict[str, float] = {}
    for verdict in listed:
        for name, amount in verdict.cost.items():
            cost[name] = cost.get(name, 0) + amount
    # A single failing input refutes all of them, so a FAILS keeps the scope in which it was found.
    scope = worst.scope if worst.fails else min(verdict.scope for verdict in listed)
    reason = worst.reason if worst.reason is None else f"{worst.claim}: {worst.reason}"
    told = [worst] if worst.fails else listed
    methods = dict.fromkeys(part for verdict in told if verdict.method for part in verdict.method.split("; "))
    assumptions = tuple(dict.fromkeys(part for verdict in told for part in verdict.assumptions))
    return Verdict(claim, worst.outcome, scope, worst.counterexample, reason, cost, "; ".join(methods), assumptions)


def _counterexample_data(counterexample: Counterexample) -> dict[str, Any]:
    schedule = counterexample.schedule
    return {
        "finding": counterexample.finding,
        "explanation": counterexample.explanation,
        **(
            dict.fromkeys(("batches", "shuffle_partitions", "restarts"))
            if schedule is None
            else schedule_data(schedule)
        ),
        "expected": plain(counterexample.expected),
        "actual": plain(counterexample.actual),
        "table": None
        if counterexample.table is None
        else {
            "title": counterexample.table.title,
            "columns": list(counterexample.table.columns),
            "rows": [list(row) for row in counterexample.table.rows],
        },
        "picture": counterexample.picture,
        "replay": counterexample.replay,
        "reruns": counterexample.reruns,
        "failing_reruns": counterexample.failing_reruns,
    }


def _listed(events: tuple[Event, ...]) -> str:
    return "\n".join(f"  {event}" for event in events) or "  (nothing)"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" if line else line for line in text.splitlines())
