"""What the programs take: types of rows, and rows of these types.

>>> rdd((int, str | None))
rdd((int, str | None))
"""

from __future__ import annotations

import random
import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from streamtight.errors import SourceError

_KNOWN = (int, bool, str, float)


@dataclass(frozen=True, slots=True)
class RDDInput:
    """An RDD whose rows have this type."""

    row: Any

    def __repr__(self) -> str:
        return f"rdd({type_text(self.row)})"


def rdd(row: Any) -> RDDInput:
    """An input that is an RDD of rows of this type: int, bool, str, float, a tuple of types, or `T | None`."""
    _require_type(row, row)
    return RDDInput(row)


def _require_type(part: Any, whole: Any) -> None:
    if isinstance(part, tuple):
        for inner in part:
            _require_type(inner, whole)
    elif part not in _KNOWN and (len(_options(part)) != 2 or type(None) not in _options(part)):
        raise SourceError(
            f"rdd({whole!r})",
            needed="int, bool, str, float, a tuple of these, or one of them or None",
            came=repr(part),
            hint="rdd((int, str | None))",
        )


def _options(type_: Any) -> tuple[Any, ...]:
    return typing.get_args(type_) if isinstance(type_, types.UnionType) else (type_,)


def type_text(type_: Any) -> str:
    """A type as it is written."""
    if isinstance(type_, tuple):
        inner = ", ".join(map(type_text, type_))
        return f"({inner},)" if len(type_) == 1 else f"({inner})"
    return type_.__name__ if isinstance(type_, type) else str(type_)


def some_rows(type_: Any, near: Sequence[Any], chance: random.Random, most: int = 4) -> list[Any]:
    """A few rows of a type; of values near those that the programs have in them, and some of them more than once."""
    rows = [_some_value(type_, near, chance) for _ in range(chance.randint(0, most))]
    return rows + [chance.choice(rows) for _ in range(chance.randint(0, 2)) if rows and chance.random() < 0.5]


def _some_value(type_: Any, near: Sequence[Any], chance: random.Random) -> Any:
    if isinstance(type_, tuple):
        return tuple(_some_value(part, near, chance) for part in type_)
    options = _options(type_)
    if len(options) > 1:
        inner = next(option for option in options if option is not type(None))
        return None if chance.random() < 0.3 else _some_value(inner, near, chance)
    if type_ is bool:
        return chance.random() < 0.5
    known = [value for value in near if type(value) is type_]
    if type_ is str:
        return chance.choice([*known, "", "a", "b"])
    numbers = [value for value in near if isinstance(value, int | float) and not isinstance(value, bool)]
    if numbers and chance.random() < 0.5:
        value = chance.choice(numbers) + chance.randint(-1, 1)
    else:
        value = chance.randint(-3, 3)
    return int(value) if type_ is int else float(value)
