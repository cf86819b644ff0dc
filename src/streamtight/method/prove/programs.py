"""What the search needs of two programs, whatever they are written in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from streamtight.method.prove.draw import Row, Tables
from streamtight.method.prove.results import Result
from streamtight.solver.equivalence import Equivalence

Program = Callable[..., Any]
ORDER_DOES_NOT_MATTER = "the order of rows does not matter"
"""What is assumed if programs that sort are compared as bags."""


@dataclass(frozen=True, slots=True)
class Run:
    """A program on rows that are spread over so many partitions."""

    program: Program
    tables: Tables
    partitions: int = 1

    @property
    def name(self) -> str:
        """What the program is called."""
        return called(self.program, "the program")


def called(function: Callable[..., Any], otherwise: str) -> str:
    """The name of a function, if it has one that can be written."""
    name = getattr(function, "__name__", "")
    return name if name.isidentifier() else otherwise


@dataclass(frozen=True, slots=True)
class Difference:
    """Two runs that give different results: of two programs, or of one that is given its rows in two ways."""

    one: Run
    other: Run
    results: tuple[Result, Result]
    finding: str = "DIFFERENT"
    reruns: int = 0
    """How often both were run on Spark."""
    failing_reruns: int = 0
    """How often they differed there."""

    @property
    def is_one_program(self) -> bool:
        """Whether it is a program that differs from itself."""
        return self.finding == "NOT_WELL_DEFINED"


@dataclass(frozen=True, slots=True)
class NotProved:
    """Why a proof was not found; and rows of the inputs on which the programs may differ."""

    reason: str
    rows: Sequence[tuple[str, Row]] = ()


class Programs(Protocol):
    """Two programs of one kind, and what can be done with them without Spark."""

    names: Sequence[str]
    """What the inputs are called."""

    def require_allowed(self) -> None:
        """Raise if these programs must not be run, or cannot be judged."""

    def is_quick(self, program: Program) -> bool:
        """Whether this program can be run without Spark."""

    def constants(self) -> list[Any]:
        """The values that the programs name."""

    def allows(self, place: int, rows: Sequence[Row]) -> bool:
        """Whether the input at this place may have these rows."""

    def at_once(self) -> Difference | None:
        """A difference that is there on every input."""

    def result(self, run: Run) -> Result | None:
        """What a program gives; None if it is not known without Spark."""

    def ways(self, program: Program, tables: Tables) -> Iterator[Run]:
        """The same rows, given otherwise: in another order, in other partitions."""

    def prove(self, equivalence: Equivalence) -> NotProved | None:
        """None if the programs are proved to be equal."""

    def assumptions(self) -> Sequence[str]:
        """What is taken for granted, besides what the solver says."""


def in_other_ways(program: Program, tables: Tables) -> Iterator[Run]:
    """In more partitions, and from the last row to the first."""
    yield Run(program, tables, 3)
    reverse = tuple(rows[::-1] for rows in tables)
    if reverse != tables:
        yield Run(program, reverse, 1)
        yield Run(program, reverse, 2)
