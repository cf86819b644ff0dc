"""Equality: when two events count as the same, if not all of their fields matter or not exactly.

An equality gives every event a *canonical value*; events with the same value are equal. So it is an equivalence by
construction, and it can be hashed. A tolerance such as |a - b| < 0.01 is not: it calls a and b the same, b and c the
same, but not a and c. Rounding and buckets are its honest forms; two values close to an edge may fall apart.

>>> from streamtight.stream.event import Kind
>>> Fare = Kind("Fare", ride=int, cents=float, seen=str)
>>> same_fare = equality(ignore="seen", places={"cents": 1})
>>> same_fare(Fare(1, 2.51, "noon"), Fare(1, 2.49, "later")), same_fare(Fare(1, 2.5, ""), Fare(2, 2.5, ""))
(True, False)
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from streamtight.errors import DependenceError
from streamtight.stream.event import Event, Kind

Canonical = Callable[[Event], Hashable]


@dataclass(frozen=True, slots=True)
class Equality:
    """Two events are equal if they have the same canonical value. Make one with `equality(...)`."""

    only: tuple[str, ...] | None = None
    ignore: frozenset[str] = frozenset()
    places: Mapping[str, int] = field(default_factory=dict)
    buckets: Mapping[str, float] = field(default_factory=dict)
    by: Canonical | None = None
    _known: dict[Kind, Canonical] = field(default_factory=dict, repr=False, compare=False)

    def __call__(self, a: Event, b: Event) -> bool:
        return self.canonical(a) == self.canonical(b)

    def canonical(self, event: Event) -> Hashable:
        """The value by which it is compared."""
        try:
            of_kind = self._known[event.kind]
        except KeyError:
            of_kind = self._known[event.kind] = self._canonical_of(event.kind)
        return of_kind(event)

    def columns(self, names: Iterable[str]) -> list[str]:
        """Those of these fields that it compares."""
        return [n for n in names if n not in self.ignore and (self.only is None or n in self.only)]

    def _canonical_of(self, kind: Kind) -> Canonical:
        if self.by is not None:
            return self._hashable(self.by)
        for name in self.only or ():
            if name not in kind.fields:
                raise DependenceError(
                    f"{self}",
                    needed=f"a field {name!r} in every kind that it compares",
                    came=repr(kind),
                    hint=f"one of {', '.join(kind.names) or '(none)'}, or equality(by=...)",
                )
        compared = [(kind.names.index(name) + 1, self.rounding(name)) for name in self.columns(kind.names)]

        def canonical(event: Event) -> Hashable:
            return (kind, *(event[place] if fix is None else fix(event[place]) for place, fix in compared))

        return canonical

    def _hashable(self, by: Canonical) -> Canonical:
        def canonical(event: Event) -> Hashable:
            value = by(event)
            try:
                hash(value)
            except TypeError:
                raise DependenceError(
                    f"{self}",
                    needed="a value that can be hashed",
                    came=f"{value!r} for {event}",
                    hint="a tuple instead of a list, a frozenset instead of a set",
                ) from None
            return value

        return canonical

    def rounding(self, name: str) -> Callable[[Any], Hashable] | None:
        """What is compared instead of a value of this field; None if the value itself is."""
        if name in self.places:
            places = self.places[name]
            return lambda value: _fixed(value, name, lambda number: round(number, places))
        if name in self.buckets:
            size = self.buckets[name]
            return lambda value: _fixed(value, name, lambda number: _bucket(number, size))
        return None

    def __repr__(self) -> str:
        parts = []
        if self.only is not None:
            parts.append(f"only={self.only!r}")
        if self.ignore:
            parts.append(f"ignore={tuple(sorted(self.ignore))!r}")
        parts += [
            f"{name}={dict(given)!r}" for name, given in (("places", self.places), ("buckets", self.buckets)) if given
        ]
        if self.by is not None:
            parts.append(f"by={getattr(self.by, '__name__', repr(self.by))}")
        return f"equality({', '.join(parts)})"


def _fixed(value: Any, name: str, fix: Callable[[Any], Hashable]) -> Hashable:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return value  # NaN is one object in events, and equal to itself
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise DependenceError(
            f"equality(... {name!r} ...)", needed="a number to round", came=repr(value), hint=f"ignore={name!r}, or by="
        )
    return fix(value)


def _bucket(number: int | float | Decimal, size: float) -> Hashable:
    if isinstance(number, Decimal):
        return math.floor(number / Decimal(str(size)))
    try:
        return math.floor(number / size)
    except OverflowError:
        return number  # so large, or the bucket so narrow, that it shares its bucket with no other float


def equality(
    *,
    only: str | Iterable[str] | None = None,
    ignore: str | Iterable[str] = (),
    places: Mapping[str, int] | None = None,
    buckets: Mapping[str, float] | None = None,
    by: Canonical | None = None,
) -> Equality:
    """When two events count as equal: if they agree on some fields, up to rounding, or on what a function says.

    only      the fields to compare; the others do not matter
    ignore    the fields that do not matter
    places    decimal places to round a number to: {"cents": 2}
    buckets   widths of buckets to put a number into: {"seconds": 0.5}
    by        a function of an event, instead of all these: equal values, equal events
    """
    if by is not None and (only is not None or ignore or places or buckets):
        _refuse("either by= or fields", "both", "compute everything in the function")
    if by is not None and not callable(by):
        _refuse("a function of an event", repr(by), "by=lambda event: event.ride")
    for name, size in (buckets or {}).items():
        if isinstance(size, bool) or not isinstance(size, (int, float)) or not 0 < size < math.inf:
            _refuse(f"a bucket for {name!r} wider than 0", repr(size), f"buckets={{{name!r}: 0.5}}")
    for name, count in (places or {}).items():
        if isinstance(count, bool) or not isinstance(count, int):
            _refuse(f"a whole number of places for {name!r}", repr(count), f"places={{{name!r}: 2}}")
    if both := set(places or ()) & set(buckets or ()):
        _refuse("places or a bucket for a field", f"both for {sorted(both)}", "leave one of them out")
    return Equality(
        None if only is None else _names(only), frozenset(_names(ignore)), dict(places or {}), dict(buckets or {}), by
    )


def _names(given: str | Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _refuse(needed: str, came: str, hint: str) -> None:
    raise DependenceError("equality(...)", needed=needed, came=came, hint=hint)


def equality_of(given: object, where: str) -> Equality | Callable[[Event, Event], bool] | None:
    """What `equal=` accepts: None for plain equality, an Equality, or a function of two events."""
    if given is None or isinstance(given, Equality):
        return given
    if callable(given) and _takes_two(given):
        return given
    raise DependenceError(
        f"{where}(equal=...)",
        needed="an equality, or a function of two events",
        came=repr(given),
        hint="equality(ignore='seen'), equality(by=lambda event: ...), or lambda a, b: ...",
    )


def _takes_two(function: Callable[..., object]) -> bool:
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        return False
    except ValueError:
        pass  # a builtin without a signature; calling it will tell
    return True
