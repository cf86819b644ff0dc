"""Rows side by side: which row of one side belongs to which of the other, which cells differ, and what to show of many.

Rows are as `as_data` gives them, so that files of others can be shown too.

>>> one, other = {"kind": "N", "fields": {"k": 1, "n": 2}}, {"kind": "N", "fields": {"k": 1, "n": 3}}
>>> [(pair.left, pair.right, sorted(pair.differing)) for pair in paired([one], [other])]
[(0, 0, ['n'])]
"""

from __future__ import annotations

import bisect
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]

MOST_COMPARED = 40_000
"""Up to so many pairs of rows that have no equal, each is compared with each; else only those that begin alike."""
MOST_ROWS, MOST_DIFFERENT, ENDS, FEWEST = 60, 40, 2, 12
"""So many rows are shown of a table, so many that differ among them, so many at both ends, and at least so many."""
MOST_COLUMNS, FIRST_COLUMNS, FEW_COLUMNS = 24, 4, 8
"""So many columns are shown; if there are more, so many at the beginning, those that differ, and so many in all."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A line of two tables side by side: the places of its rows, if there are rows, and the fields that differ."""

    left: int | None
    right: int | None
    differing: frozenset[str] = frozenset()
    moved: bool = False
    """Whether equal rows are at another place on the other side, seen from those that are not."""

    @property
    def is_same(self) -> bool:
        """Do both sides have it?"""
        return self.left is not None and self.right is not None and not self.differing


def fields_of(row: Any) -> Mapping[str, Any]:
    """The fields of a row, whatever the row is."""
    fields = row.get("fields") if isinstance(row, Mapping) else None
    return fields if isinstance(fields, Mapping) else {"": row}


def kind_of(row: Any) -> str:
    """The name of its kind; nothing if it has none."""
    return str(row.get("kind", "")) if isinstance(row, Mapping) else ""


def paired(left: Sequence[Row], right: Sequence[Row]) -> list[Pair]:
    """Equal rows together, then the most similar ones, then those that one side alone has; in the order of the left."""
    keys = [[json.dumps(row, sort_keys=True) for row in side] for side in (left, right)]
    places: dict[str, list[int]] = {}
    for place in range(len(right) - 1, -1, -1):
        places.setdefault(keys[1][place], []).append(place)
    equal = {place: places[key].pop() for place, key in enumerate(keys[0]) if places.get(key)}
    taken = set(equal.values())
    alone_left = [place for place in range(len(left)) if place not in equal]
    alone_right = [place for place in range(len(right)) if place not in taken]
    similar = _most_similar(left, right, alone_left, alone_right)
    kept = _in_order(equal) if not alone_left and not alone_right else set(equal)
    pairs = [
        (place, Pair(place, equal[place], moved=place not in kept))
        if place in equal
        else (place, Pair(place, similar[place], _differing(left[place], right[similar[place]])))
        if place in similar
        else (place, Pair(place, None))
        for place in range(len(left))
    ]
    # What only the right has stands after what comes before it there.
    known = sorted((pair.right, place) for place, pair in pairs if pair.right is not None)
    rights = [there for there, _ in known]
    found = set(similar.values())
    placed: list[tuple[float, int, Pair]] = [(float(place), -1, pair) for place, pair in pairs]
    for there in alone_right:
        if there not in found:
            before = bisect.bisect_left(rights, there)
            at = known[before - 1][1] + 0.5 if before else -0.5
            placed.append((at, there, Pair(None, there)))
    return [pair for _, _, pair in sorted(placed, key=lambda one: one[:2])]


def _most_similar(
    left: Sequence[Row], right: Sequence[Row], ones: Sequence[int], others: Sequence[int]
) -> dict[int, int]:
    """Rows that have no equal: each with the one that agrees with it on most fields, if on any."""
    found: dict[int, int] = {}
    if len(ones) * len(others) > MOST_COMPARED:
        waiting: dict[str, list[int]] = {}
        for place in reversed(others):
            waiting.setdefault(_beginning(right[place]), []).append(place)
        for place in ones:
            if same := waiting.get(_beginning(left[place])):
                found[place] = same.pop()
        return found
    scored = []
    for number, one in enumerate(ones):
        for other_number, other in enumerate(others):
            if kind_of(left[one]) == kind_of(right[other]):
                mine, theirs = fields_of(left[one]), fields_of(right[other])
                score = sum(name in theirs and _same(value, theirs[name]) for name, value in mine.items())
                if score or len(mine) == 1:
                    scored.append((-score, abs(number - other_number), one, other))
    taken: set[int] = set()
    for _, _, one, other in sorted(scored):
        if one not in found and other not in taken:
            found[one] = other
            taken.add(other)
    return found


def _beginning(row: Row) -> str:
    first = next(iter(fields_of(row).values()), None)
    return f"{kind_of(row)} {json.dumps(first, sort_keys=True)}"


def _same(one: Any, other: Any) -> bool:
    # 1 is True and 1.0 for Python, but not for a person who looks for a difference.
    return type(one) is type(other) and bool(one == other)


def _differing(one: Row, other: Row) -> frozenset[str]:
    mine, theirs = fields_of(one), fields_of(other)
    names = dict.fromkeys((*mine, *theirs))
    return frozenset(
        name for name in names if name not in mine or name not in theirs or not _same(mine[name], theirs[name])
    )


def _in_order(equal: Mapping[int, int]) -> set[int]:
    """Of these pairs as many as are in one order on both sides: a longest increasing subsequence."""
    tails: list[int] = []
    ends: list[int] = []
    before: dict[int, int | None] = {}
    for place in sorted(equal):
        length = bisect.bisect_left(tails, equal[place])
        before[place] = ends[length - 1] if length else None
        tails[length : length + 1] = [equal[place]]
        ends[length : length + 1] = [place]
    kept: set[int] = set()
    at = ends[-1] if ends else None
    while at is not None:
        kept.add(at)
        at = before[at]
    return kept


# -- what is shown of many ---------------------------------------------------------------------------------------------


def sampled(count: int, interesting: Iterable[int] = ()) -> list[int]:
    """Which of so many places are shown: both ends, and what is interesting with what stands next to it."""
    if count <= MOST_ROWS:
        return list(range(count))
    chosen = {*range(ENDS), *range(count - ENDS, count)}
    for number, place in enumerate(interesting):
        if number >= MOST_DIFFERENT:
            break
        chosen |= {one for one in (place - 1, place, place + 1) if 0 <= one < count and len(chosen) < MOST_ROWS}
        chosen.add(place)
    for place in range(count):  # what room is left, from the beginning
        if len(chosen) >= FEWEST:
            break
        chosen.add(place)
    return sorted(chosen)


def with_gaps(places: Sequence[int], count: int) -> Iterator[tuple[int | None, int]]:
    """Each place; and where some are left out, None and how many."""
    expected = 0
    for place in [*places, count]:
        if place > expected:
            yield None, place - expected
        if place < count:
            yield place, 1
        expected = place + 1


def columns_of(rows: Iterable[Row], differing: Iterable[str] = ()) -> tuple[list[str], int]:
    """The columns that are shown of these rows, those that differ among them, and how many there are."""
    names = list(dict.fromkeys(name for row in rows for name in fields_of(row)))
    if len(names) <= MOST_COLUMNS:
        return names, len(names)
    different = set(differing)
    chosen = list(dict.fromkeys([*names[:FIRST_COLUMNS], *(name for name in names if name in different)]))
    kept = set(chosen[:MOST_COLUMNS] if len(chosen) >= FEW_COLUMNS else dict.fromkeys([*chosen, *names[:FEW_COLUMNS]]))
    return [name for name in names if name in kept], len(names)
