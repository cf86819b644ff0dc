"""Pairs of Spark programs with the answer that is right for them, and what the tests of the catalogue share."""

from __future__ import annotations

import itertools
import math
import random
import types
import typing
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Literal

Verdict = Literal["HOLDS", "FAILS", "NOT_WELL_DEFINED", "UNDECIDED"]
Program = Callable[..., Any]
Rows = list[Any]


@dataclass(frozen=True)
class Pair:
    """Two programs of the same inputs.

    HOLDS: equal on every input. FAILS: not on the witness. NOT_WELL_DEFINED: on the witness a program gives different
    results for different orders or partitions of the rows. UNDECIDED: programs that are not to be answered for.

    Equal is: as bags for RDDs and DataFrames, by `==` for other results, and both raise. Every RDD has a partition.
    """

    name: str
    inputs: tuple[Any, ...]
    """Of each RDD the type of its rows, `(str, int | None)`; of each table its columns, `{"k": int | None}`."""
    left: Program
    right: Program
    verdict: Verdict
    witness: tuple[Rows, ...] | None
    """Rows of each input; of a table, tuples of the columns in turn."""
    why: str
    api: Literal["rdd", "frame"]
    source: str
    keys: tuple[tuple[str, ...], ...] = ()
    """Of each table the columns that no two rows share, or ()."""
    assumes: tuple[str, ...] = ()
    """What HOLDS needs besides: "no overflow"."""

    def __post_init__(self) -> None:
        needs_witness = self.verdict in ("FAILS", "NOT_WELL_DEFINED")
        assert needs_witness == (self.witness is not None), f"{self.name}: a witness for what fails, and only for that"
        assert self.witness is None or len(self.witness) == len(self.inputs), f"{self.name}: rows for each input"
        assert not self.keys or len(self.keys) == len(self.inputs), f"{self.name}: a key or () for each input"

    @property
    def overflows(self) -> bool:
        """Whether the witness is at the ends of a type, where integers overflow."""
        cells = [cell for rows in self.witness or () for row in rows if isinstance(row, tuple) for cell in row]
        return any(isinstance(cell, int) and abs(cell) >= 2**62 for cell in cells) and self.api == "frame"

    def __str__(self) -> str:
        return f"{self.name} ({self.api}, {self.source})"


# -- results ---------------------------------------------------------------------------------------------------------

RAISES = "raises"


def outcome(program: Program, inputs: list[Any]) -> Any:
    """What a program gives, to be compared by `==`: the bag of an RDD or a table, another value, or that it raised."""
    try:
        return canonical(program(*inputs))
    except Exception:  # whatever it is: Spark wraps it, and both programs have to raise
        return RAISES


def canonical(result: Any) -> Any:
    if hasattr(result, "collect"):
        return "bag", Counter(value_of(row) for row in result.collect())
    return value_of(result)


def value_of(value: Any) -> Any:
    """A value that can be hashed; floats with nine digits, since proofs take them for real numbers."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else 0.0 if abs(value) < 1e-9 else float(f"{value:.9g}")
    if isinstance(value, tuple):
        return tuple(map(value_of, value))
    if isinstance(value, list):
        return "list", tuple(map(value_of, value))
    if isinstance(value, dict):
        return "dict", frozenset((value_of(key), value_of(part)) for key, part in value.items())
    return value


# -- inputs ----------------------------------------------------------------------------------------------------------


def drawn_inputs(pair: Pair, rng: random.Random) -> tuple[Rows, ...]:
    """Some rows for each input: small numbers, and those next to the numbers that the programs name."""
    numbers = sorted({*range(-3, 4), *(n + d for n in constants_of(pair.left, pair.right) for d in (-1, 0, 1))})
    drawn = []
    for i, kind in enumerate(pair.inputs):
        rows = [drawn_value(kind, rng, numbers) for _ in range(rng.choice((0, 1, 1, 2, 3, 4, 6)))]
        if pair.keys and pair.keys[i]:
            places = [list(kind).index(column) for column in pair.keys[i]]
            rows = list({tuple(row[place] for place in places): row for row in rows}.values())
        drawn.append(rows)
    return tuple(drawn)


def drawn_value(kind: Any, rng: random.Random, numbers: list[int]) -> Any:
    if isinstance(kind, dict):
        return tuple(drawn_value(column, rng, numbers) for column in kind.values())
    if isinstance(kind, tuple):
        return tuple(drawn_value(part, rng, numbers) for part in kind)
    if isinstance(kind, types.UnionType):
        [of] = [part for part in typing.get_args(kind) if part is not type(None)]
        return None if rng.random() < 0.25 else drawn_value(of, rng, numbers)
    if kind is int:
        return rng.choice(numbers if rng.random() < 0.4 else range(-2, 3))
    if kind is float:
        return rng.choice((*numbers, 0.5, -0.5, 9.5))
    if kind is bool:
        return rng.random() < 0.5
    if kind is str:
        return rng.choice(("", "a", "b", "ab", "ba"))
    if kind is date:
        return date(2024, 2, 27) + timedelta(rng.randint(0, 4))
    raise AssertionError(f"no values of {kind!r}")


def constants_of(*functions: Any) -> set[int]:
    """The numbers that functions name, also inside of them and in what they capture or call."""
    found: set[int] = set()
    seen: set[int] = set()
    waiting: list[Any] = list(functions)
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, int):
            found.add(int(thing))
        elif isinstance(thing, types.FunctionType):
            waiting += [thing.__code__, *(thing.__defaults__ or ())]
            waiting += [cell.cell_contents for cell in thing.__closure__ or ()]
            named = (thing.__globals__.get(name) for name in names_in(thing.__code__))
            waiting += [value for value in named if isinstance(value, types.FunctionType)]
        elif isinstance(thing, types.CodeType):
            waiting += thing.co_consts
        elif isinstance(thing, (tuple, list)):
            waiting += thing
        elif isinstance(thing, dict):
            waiting += [*thing, *thing.values()]
    return {n for n in found if abs(n) < 10_000}


def names_in(code: types.CodeType) -> set[str]:
    inner = (names_in(const) for const in code.co_consts if isinstance(const, types.CodeType))
    return set(code.co_names).union(*inner)


def deals(rows: Rows, rng: random.Random) -> list[int]:
    """Sizes of partitions for these rows, some of them perhaps 0."""
    count = rng.randint(1, 4)
    ends = sorted(rng.randint(0, len(rows)) for _ in range(count - 1))
    return [end - start for start, end in itertools.pairwise([0, *ends, len(rows)])]


def arrangements(rows: Rows) -> Iterator[tuple[Rows, list[int]]]:
    """Ways to spread a few rows: orders, and sizes of up to three partitions."""
    for order in itertools.islice(itertools.permutations(rows), 24):
        for one in range(len(rows) + 1):
            yield list(order), [one, len(rows) - one] if one else [len(rows)]
        yield list(order), [len(rows), 0, 0]
