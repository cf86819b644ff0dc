"""Events of which the values are not known: what takes the place of a `Kind` that a function uses.

An event is a frozen dataclass here: it has its fields, it is equal to its own kind only, and what else an event can do
is refused. Fields are converted as the kind itself converts them: a number for a float becomes one.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import z3

from streamtight.solver.symbolic.paths import refuse
from streamtight.solver.symbolic.values import StandIn, Symbolic, SymbolicFloat, SymbolicInt
from streamtight.stream.event import Event, Kind, without_none


@functools.cache
def record_class(kind: Kind) -> type:
    """The class of its events while they are not known."""
    parts = {"__doc__": None, "kind": unknown_events(kind)}
    return dataclasses.make_dataclass(kind.name, kind.names, frozen=True, namespace=parts)


class UnknownEvents(StandIn):
    """What takes the place of a kind: called like it, it makes an event of values that may not be known."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self.told = repr(kind)  # with its fields: two kinds may have one name

    def __call__(self, *values: Any, **fields: Any) -> Any:
        kind = self._kind
        given = {**dict(zip(kind.names, values, strict=False)), **fields}
        if len(values) + len(fields) != len(kind.names) or set(given) != set(kind.names):
            refuse(f"makes a {kind.name} of other fields")
        return record_class(kind)(*(_converted(given[name], kind, name) for name in kind.names))


@functools.cache
def unknown_events(kind: Kind) -> UnknownEvents:
    """What takes the place of a kind, one for each: `event.kind is Value` can be asked."""
    return UnknownEvents(kind)


def _converted(value: Any, kind: Kind, field: str) -> Any:
    declared, admits_none = without_none(kind.fields[field])
    if value is None and admits_none:
        return None
    known = value.python if isinstance(value, Symbolic) else type(value)
    if known is declared and declared in (int, float, str, bool):
        return value
    if declared is float and known is int:
        return SymbolicFloat(z3.ToReal(value._term)) if isinstance(value, SymbolicInt) else float(value)
    return refuse(f"gives {kind.name}.{field} a {known.__name__}")


def event_of(row: tuple[Any, ...], kind: Kind) -> Any:
    """The event of these values."""
    return record_class(kind)(*row)


def row_of(event: Any) -> tuple[Any, ...]:
    """Its kind, as text, and the values of an event, whether they are known or not."""
    if isinstance(event, Event):
        return (repr(event.kind), *event[1:])
    kind = getattr(type(event), "kind", None)
    if not isinstance(kind, UnknownEvents):
        refuse(f"emits a {type(event).__name__}, which is no event")
    return (kind.told, *(getattr(event, field.name) for field in dataclasses.fields(event)))


def holds_event(value: Any) -> bool:
    """Whether there is an event in it, whether its values are known or not."""
    if isinstance(value, Event) or dataclasses.is_dataclass(value):
        return True
    return isinstance(value, tuple) and any(map(holds_event, value))
