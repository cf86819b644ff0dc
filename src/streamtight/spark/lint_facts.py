"""What the order lint knows of the rows of an operator: what columns depend on, keys, orders, partitions, watermarks.

A *cause* is a finding that reaches a value, or the number of rows. The order of elements of a list is told apart from
the elements, and values that tied rows may swap from values that vary: both can be made good further up in the plan.

>>> Rows({1: FIXED, 2: FIXED, 3: FIXED}, keys=(frozenset({1}),)).closure({1}) == {1, 2, 3}
True
>>> Rows({1: FIXED, 2: FIXED, 3: FIXED}, determines=((frozenset({1}), 2),)).closure({1}) == {1, 2}
True
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from streamtight.method.typecheck.findings import Finding

Id = int
"""The number that Spark gives a column."""
NO_COLUMN: Id = -1
Ids = frozenset[Id]
Causes = frozenset[Finding]
NONE: Causes = frozenset()


@dataclass(frozen=True, slots=True)
class Tie:
    """Rows that agree in the columns that `base` determines may swap their values."""

    cause: Finding
    base: Ids


@dataclass(frozen=True, slots=True)
class Value:
    """What the value of a column, or of an expression, depends on."""

    varies: Causes = NONE
    listing: Causes = NONE
    """Only the order of the elements of this array depends on these."""
    ties: frozenset[Tie] = frozenset()
    partial: str | None = None
    """The function, if merging these values with it again makes up for groups that were too small."""
    whole: Causes = NONE
    """What the merged value depends on."""
    is_name: bool = False
    """Whether it only names a row, no two of them the same: groups by it are the same whatever the names are."""

    @property
    def causes(self) -> Causes:
        """What it depends on if the order of elements counts."""
        return self.varies | self.listing

    @property
    def all_causes(self) -> Causes:
        """What it depends on if it counts, too, which of tied rows has it."""
        return self.causes | {tie.cause for tie in self.ties}


FIXED = Value()


def joined(values: Iterable[Value]) -> Value:
    """What depends on all of these."""
    given = list(values)
    return Value(
        NONE.union(*(value.varies for value in given)),
        NONE.union(*(value.listing for value in given)),
        frozenset().union(*(value.ties for value in given)),
    )


def all_causes(values: Iterable[Value]) -> Causes:
    """Whatever one of these depends on."""
    return joined(values).all_causes


@dataclass(frozen=True, slots=True)
class Order:
    """The order of rows: what its columns determine, what it depends on, and where it is seen."""

    columns: Ids
    causes: Causes
    is_global: bool
    """Whether one partition comes after the other; else only each is sorted."""
    within: Ids | None
    """Rows that agree in these columns are in one partition; None if that is known of no columns."""


@dataclass(frozen=True, slots=True)
class Rows:
    """What is known of the rows of an operator.

    Facts about columns that are no longer there stay true of the rows that came from them, and are kept.
    """

    columns: Mapping[Id, Value]
    """In the order of the output."""
    varies: Causes = NONE
    """What the number of the rows depends on."""
    merges: Causes = NONE
    """The part of it that goes if partial results are merged again: groups that were told apart at random."""
    keys: tuple[Ids, ...] = ()
    determines: tuple[tuple[Ids, Id], ...] = ()
    order: Order | None = None
    partitioned: Ids | None = None
    """Rows that agree in these columns are in one partition; None if that is known of no columns."""
    keeps_arrival: bool = False
    """Whether rows of one partition of the input are still in one partition, in their order."""
    streaming: bool = False
    times: Ids = frozenset()
    """Columns that the watermark bounds."""
    delays: frozenset[str] = frozenset()
    """The watermarks below."""

    @property
    def ids(self) -> Ids:
        """Its columns."""
        return frozenset(self.columns)

    @property
    def all_causes(self) -> Causes:
        """Whatever of these rows depends on something."""
        return self.varies | all_causes(self.columns.values())

    def closure(self, base: Iterable[Id]) -> Ids:
        """The columns that have one value for each value of these."""
        found = set(base)
        grew = True
        while grew:
            grew = False
            if any(key <= found for key in self.keys) and not found.issuperset(self.columns):
                found |= set(self.columns) | {made for _, made in self.determines}
                grew = True
            for of, made in self.determines:
                if made not in found and of <= found:
                    found.add(made)
                    grew = True
        return frozenset(found)

    def has_one_row(self, base: Iterable[Id]) -> bool:
        """Whether no two rows agree in these columns."""
        fixed = self.closure(base)
        return any(key <= fixed for key in self.keys)

    def settled(self, value: Value, used: Ids) -> Value:
        """The value, where it is looked at together with these columns: tied rows swap all of them, or it varies."""
        lost = {tie for tie in value.ties if not self._swaps(tie, used)}
        if not lost:
            return value
        return replace(value, varies=value.varies | {tie.cause for tie in lost}, ties=value.ties - lost)

    def _swaps(self, tie: Tie, used: Ids) -> bool:
        agreed = self.closure(tie.base)
        return all(id_ in agreed or tie in self.columns.get(id_, FIXED).ties for id_ in used)

    def settled_columns(self) -> dict[Id, Value]:
        """The columns, where all of them are looked at together."""
        return {id_: self.settled(value, self.ids) for id_, value in self.columns.items()}

    def shuffled(self) -> Rows:
        """The same rows, in no order."""
        return replace(self, order=None, partitioned=None, keeps_arrival=False)


def both_ways(one: Id, other: Id) -> list[tuple[Ids, Id]]:
    """Two columns that have the same value determine each other."""
    return [(frozenset({one}), other), (frozenset({other}), one)]
