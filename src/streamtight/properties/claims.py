"""Claims about pipelines that have a name: what `explore` is asked most.

>>> live(), live(within=3), no_full_queues()
(live(), live(within=3), no_full_queues())
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streamtight.errors import FormulaError
from streamtight.program.pipeline import Pipeline
from streamtight.properties.query import Query
from streamtight.properties.temporal import source_text


class Claim:
    """What should hold of a pipeline on every input."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, repr=False)
class Live(Claim):
    """There can always be one more event on a pipe (AG EF); or one is never longer than `within` pushes away."""

    pipe: str | None = None
    within: int | None = None

    def __repr__(self) -> str:
        parts = [repr(self.pipe)] if self.pipe else []
        return f"live({', '.join([*parts, *([f'within={self.within}'] if self.within else [])])})"


@dataclass(frozen=True, slots=True, repr=False)
class NoFullQueues(Claim):
    """No queue holds as many events as it can."""

    queues: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"no_full_queues({', '.join(map(repr, self.queues))})"


@dataclass(frozen=True, slots=True, repr=False)
class SameSteps(Claim):
    """Another pipeline gives the same event, or none as well, at every push."""

    other: Pipeline

    def __repr__(self) -> str:
        return f"same_steps({self.other.name})"


@dataclass(frozen=True, slots=True, repr=False)
class SameSequence(Claim):
    """Another pipeline gives the same events in the same order, perhaps at other pushes."""

    other: Pipeline

    def __repr__(self) -> str:
        return f"same_sequence({self.other.name})"


@dataclass(frozen=True, slots=True, repr=False)
class Approximates(Claim):
    """Wherever this pipeline says True, another does; both speak at the same pushes."""

    other: Pipeline

    def __repr__(self) -> str:
        return f"approximates({self.other.name})"


@dataclass(frozen=True, slots=True, repr=False)
class StaysTrue(Claim):
    """A pipe never carries False."""

    pipe: str | None = None

    def __repr__(self) -> str:
        return f"stays_true({repr(self.pipe) if self.pipe else ''})"


@dataclass(frozen=True, slots=True, repr=False)
class NeverStops(Claim):
    """No function raises, no whole number leaves its domain, no event comes to a full queue."""

    def __repr__(self) -> str:
        return "never_stops()"


@dataclass(frozen=True, slots=True, repr=False)
class Stays(Claim):
    """The value of a query on what pipes carry passes a test after every push, where it has a value."""

    query: Query
    test: Callable[[Any], object] | None = None

    def __repr__(self) -> str:
        test = "" if self.test is None else f", {source_text(self.test)}"
        return f"stays({self.query}{test})"


def live(pipe: str | None = None, *, within: int | None = None) -> Claim:
    """There can always be one more event on a pipe, the only output if none is named.

    Whatever came in so far, some input brings an event out. With `within`, whatever comes in brings one: it is silent
    for fewer than so many pushes.
    """
    if within is not None and (type(within) is not int or within < 1):
        raise FormulaError("live(within=...)", needed="a number of pushes", came=repr(within), hint="live(within=3)")
    return Live(pipe, within)


def no_full_queues(*queues: str) -> Claim:
    """No queue ever holds as many events as it can; or none of these, by their names. Then one place less is enough."""
    return NoFullQueues(queues)


def same_steps(other: Pipeline) -> Claim:
    """This pipeline gives the same as another at every push: the same event, or nothing."""
    return SameSteps(_pipeline(other, "same_steps"))


def same_sequence(other: Pipeline) -> Claim:
    """This pipeline gives the same events as another in the same order, whenever they come."""
    return SameSequence(_pipeline(other, "same_sequence"))


def approximates(other: Pipeline) -> Claim:
    """This pipeline says True only where another does, and speaks at the same pushes: a conservative approximation."""
    return Approximates(_pipeline(other, "approximates"))


def stays_true(pipe: str | None = None) -> Claim:
    """A pipe never carries False; the only output if none is named. For pipelines that watch something."""
    return StaysTrue(pipe)


def stays(query: Query, test: Callable[[Any], object] | None = None) -> Claim:
    """The value of a query always passes the test, or is true if there is none. Its tags are names of pipes, and its
    items what these carry.
    """
    if not isinstance(query, Query):
        raise FormulaError(
            "stays(query, test)", needed="a query", came=repr(query), hint="tight.query.total(cur, 'out')"
        )
    return Stays(query, test)


def never_stops() -> Claim:
    """No function raises, no whole number leaves its domain, and no event comes to a full queue."""
    return NeverStops()


def _pipeline(given: object, where: str) -> Pipeline:
    if isinstance(given, Pipeline):
        return given
    raise FormulaError(f"{where}(...)", needed="another pipeline", came=repr(given), hint=f"{where}(other)")
