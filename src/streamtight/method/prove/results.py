"""What a program gave, and whether two programs gave the same.

Rows are a bag. Floats are the same if nine digits are, since proofs take them for real numbers. To raise is to raise,
whatever it is: Spark wraps exceptions, and which of several comes first is not fixed.

>>> result_of([0.1 + 0.2, 1]).is_same(result_of([1, 0.3]))
True
>>> Result.raised(ValueError()).is_same(Result.raised(KeyError()))
True
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from streamtight.errors import UnsupportedError

IN_ORDER = "rows in order"
"""The kind of a result whose rows come in one order only."""
_DIGITS = 1e-9
_VALUES = (bool, int, float, str, bytes, Decimal, date)


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """Rows in any order, rows in an order, the entries of a dict, a value, or an exception."""

    kind: str
    values: tuple[Any, ...]

    @classmethod
    def raised(cls, error: BaseException | str) -> Result:
        """That it raised."""
        return cls("raises", (error if isinstance(error, str) else type(error).__name__,))

    def is_same(self, other: Result) -> bool:
        """Whether both gave the same. Rows in an order are compared with others as a bag."""
        if {self.kind, other.kind} == {"rows", IN_ORDER}:
            return same_rows(self.values, other.values)
        if self.kind != other.kind or self.kind == "raises":
            return self.kind == other.kind
        if self.kind in ("rows", "dict"):
            return same_rows(self.values, other.values)
        return is_close(self.values, other.values)

    def __str__(self) -> str:
        if self.kind == "raises":
            return f"raises {self.values[0]}"
        if self.kind == "columns":
            return "\n".join(self.values)
        return "\n".join(map(repr, self.values)) or "no rows"


def result_of(given: Any) -> Result:
    """What a program on RDDs gave. Raises what the rows raise when they are asked for."""
    if callable(getattr(given, "collect", None)):
        return Result("rows", _ordered(given.collect()))
    if isinstance(given, dict):
        return Result("dict", _ordered(given.items()))
    if isinstance(given, list):
        return Result("rows", _ordered(given))
    return Result("value", (given,))


def _ordered(rows: Any) -> tuple[Any, ...]:
    return tuple(sorted(rows, key=repr))


def require_result(given: Any) -> None:
    """Raise if this is nothing that could be compared."""
    if callable(getattr(given, "collect", None)):
        return
    if given is None or not _is_value(given):
        raise UnsupportedError(
            "the result",
            needed="an RDD, or a value: numbers, texts, tuples, lists and dicts of them",
            came="None" if given is None else f"{type(given).__name__} {given!r}"[:100],
            hint="return what should be compared",
        )


def _is_value(given: Any) -> bool:
    if isinstance(given, tuple | list | set | frozenset):
        return all(map(_is_value, given))
    if isinstance(given, dict):
        return all(_is_value(key) and _is_value(value) for key, value in given.items())
    return given is None or isinstance(given, _VALUES) or dataclasses.is_dataclass(given)


def holds_float(value: Any) -> bool:
    """Whether there is a float in it."""
    return isinstance(value, float) or (isinstance(value, tuple | list) and any(map(holds_float, value)))


def same_rows(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether these are the same bag of rows."""
    if len(one) != len(other):
        return False
    left = list(other)
    for row in one:
        place = next((place for place, candidate in enumerate(left) if is_close(row, candidate)), None)
        if place is None:
            return False
        del left[place]
    return True


def is_close(one: Any, other: Any) -> bool:
    """Whether two values are the same, as far as the digits of floats go."""
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        return len(one) == len(other) and all(map(is_close, one, other))
    if isinstance(one, float) or isinstance(other, float):
        if not isinstance(one, int | float) or not isinstance(other, int | float):
            return False
        if one != one or other != other:
            return one != one and other != other
        return _is_close_number(one, other)
    if isinstance(one, dict) and isinstance(other, dict):
        return same_rows(list(one.items()), list(other.items()))
    return bool(one == other)


def _is_close_number(one: float, other: float) -> bool:
    try:
        return one == other or math.isclose(one, other, rel_tol=_DIGITS, abs_tol=_DIGITS)
    except OverflowError:  # a whole number that is no float
        return False


def run(
    program: Callable[[], Any], name_of: Callable[[Exception], str] = lambda error: type(error).__name__
) -> Result | None:
    """What a program on RDDs gives, or that it raises; None if it does what is not known here."""
    try:
        given = program()
    except UnsupportedError:
        return None
    except Exception as error:  # the border of user code
        return Result.raised(name_of(error))
    require_result(given)
    try:
        return result_of(given)
    except UnsupportedError:
        return None
    except Exception as error:
        return Result.raised(name_of(error))
