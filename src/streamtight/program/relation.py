"""Bag programs: what `prove` reads, whatever API they were written in, and their plain meaning.

A relation is a bag of rows, made out of inputs by a few operations. What users write, such as a left outer join, is put
together from these. Rows are Python values: a row of a table is a tuple.

>>> numbers = Input("r", int)
>>> evens = Each(numbers, lambda n: n % 2 == 0, How.FILTER)
>>> sorted(rows_of(Union(evens, evens), {"r": [1, 2, 2]}))
[2, 2, 2, 2]
>>> value_of(Aggregate(evens, Total(lambda n: n)), {"r": [1, 2, 2]})
4
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Function = Callable[..., Any]
"""A function of rows: of Python, or an expression of SQL."""
Tables = Mapping[str, Sequence[Any]]
"""The rows of each input."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the user wrote an operation."""

    operation: str
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        return f"{self.operation} ({self.file}:{self.line})" if self.file else self.operation


NOWHERE = Place("")


class How(enum.Enum):
    """What the function of an `Each` gives for a row."""

    MAP = "the row that takes its place"
    FILTER = "whether it stays"
    FLAT_MAP = "the rows that take its place"


class Relation:
    """A bag of rows."""

    __slots__ = ()
    place: Place

    @property
    def parts(self) -> tuple[Relation, ...]:
        """The relations that it is made of."""
        return ()


@dataclass(frozen=True, slots=True, eq=False)
class Input(Relation):
    """An input of the program, by its name; `type` is what its rows are."""

    name: str
    type: Any
    place: Place = NOWHERE
    keys: tuple[tuple[int, ...], ...] = ()
    """Positions of columns that no two of its rows share the values of."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows(Relation):
    """These rows."""

    rows: tuple[Any, ...]
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True, eq=False)
class Each(Relation):
    """What a function makes of each row by itself."""

    of: Relation
    function: Function
    how: How
    place: Place = NOWHERE

    @property
    def parts(self) -> tuple[Relation, ...]:
        return (self.of,)


@dataclass(frozen=True, slots=True, eq=False)
class Product(Relation):
    """Every row of the left with every row of the right, as a pair."""

    left: Relation
    right: Relation
    place: Place = NOWHERE

    @property
    def parts(self) -> tuple[Relation, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True, eq=False)
class Union(Relation):
    """The rows of both, as often as they come."""

    left: Relation
    right: Relation
    place: Place = NOWHERE

    @property
    def parts(self) -> tuple[Relation, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True, eq=False)
class Distinct(Relation):
    """Each different row once."""

    of: Relation
    place: Place = NOWHERE

    @property
    def parts(self) -> tuple[Relation, ...]:
        return (self.of,)


@dataclass(frozen=True, slots=True, eq=False)
class Matching(Relation):
    """The rows of the left, as often as they come, for which some row of the right matches; or none does."""

    left: Relation
    right: Relation
    matches: Function
    """Of a row of the left and a row of the right."""
    some: bool
    place: Place = NOWHERE

    @property
    def parts(self) -> tuple[Relation, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class Fold:
    """A summary of rows: a start, how a row is added to a state, and how two states are merged.

    Spark starts anew in every partition, and merges in any order.
    """

    start: Any
    add: Function
    merge: Function
    value: Function | None = None
    """What of a row is added; the row itself if None."""
    needs_row: bool = False
    """Whether it has no value without a row: a reduce, whose start is its first value."""
    name: str = "fold"


@dataclass(frozen=True, slots=True)
class Total:
    """The sum of a number of each row; 0 of no rows."""

    number: Function
    once_for: Function | None = None
    """If given, rows that agree in this count once."""
    name: str = "sum"


@dataclass(frozen=True, slots=True)
class Extreme:
    """The smallest or the greatest value of the rows; None of no rows."""

    value: Function
    greatest: bool
    name: str = "max"


Summary = Fold | Total | Extreme


@dataclass(frozen=True, slots=True, eq=False)
class Grouped(Relation):
    """For each key among the rows, a row: the key, and each summary of the rows with this key."""

    of: Relation
    key: Function
    summaries: tuple[Summary, ...]
    place: Place = NOWHERE

    @property
    def parts(self) -> tuple[Relation, ...]:
        return (self.of,)


@dataclass(frozen=True, slots=True, eq=False)
class First(Relation):
    """The first so many rows in the order of a key; of rows with equal keys, any."""

    of: Relation
    count: int
    key: Function
    descending: bool = False
    place: Place = NOWHERE

    @property
    def parts(self) -> tuple[Relation, ...]:
        return (self.of,)


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate:
    """One value out of a relation."""

    of: Relation
    summary: Summary
    place: Place = NOWHERE


class NoRowError(ValueError):
    """A reduce, a minimum or a maximum of no rows."""


def rows_of(relation: Relation, tables: Tables) -> list[Any]:
    """The plain meaning: slow, and obvious."""
    match relation:
        case Input(name):
            return list(tables[name])
        case Rows(rows):
            return list(rows)
        case Each(of, function, how):
            given = rows_of(of, tables)
            if how is How.MAP:
                return [function(row) for row in given]
            if how is How.FILTER:
                return [row for row in given if function(row)]
            return [made for row in given for made in function(row)]
        case Product(left, right):
            others = rows_of(right, tables)
            return [(row, other) for row in rows_of(left, tables) for other in others]
        case Union(left, right):
            return rows_of(left, tables) + rows_of(right, tables)
        case Distinct(of):
            return list(dict.fromkeys(rows_of(of, tables)))
        case Matching(left, right, matches, some):
            others = rows_of(right, tables)
            return [row for row in rows_of(left, tables) if any(matches(row, other) for other in others) is some]
        case Grouped(of, key, summaries):
            groups: dict[Any, list[Any]] = {}
            for row in rows_of(of, tables):
                groups.setdefault(key(row), []).append(row)
            return [(one, *(summed_up(summary, rows) for summary in summaries)) for one, rows in groups.items()]
        case First(of, count, key, descending):
            return sorted(rows_of(of, tables), key=key, reverse=descending)[:count]
    raise TypeError(relation)  # pragma: no cover


def value_of(aggregate: Aggregate, tables: Tables) -> Any:
    """The value of an aggregate, all rows in one partition."""
    return summed_up(aggregate.summary, rows_of(aggregate.of, tables))


def summed_up(summary: Summary, rows: Sequence[Any]) -> Any:
    """The value of a summary of these rows, in this order."""
    match summary:
        case Total(number, once_for):
            kept = rows if once_for is None else [*{once_for(row): row for row in rows}.values()]
            return sum(number(row) for row in kept)
        case Extreme(value, greatest):
            return (max if greatest else min)(map(value, rows), default=None)
    values = rows if summary.value is None else [summary.value(row) for row in rows]
    if not summary.needs_row:
        return functools.reduce(summary.add, values, summary.start)
    if not values:
        raise NoRowError(f"{summary.name} of no rows")
    return functools.reduce(summary.add, values)
