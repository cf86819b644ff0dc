"""Events and schedules as JSON can hold them, and back: what reports show and what is kept of a failing run.

Nothing of it is code, so that a file of another person can be read.

>>> from streamtight.stream.event import Kind
>>> Click = Kind("Click", user=str, at=datetime)
>>> data = plain(Click("a", datetime(2024, 5, 1)))
>>> data
{'kind': 'Click', 'fields': {'user': 'a', 'at': {'datetime': '2024-05-01 00:00:00'}}}
>>> from_plain(data, [Click])
Click(user='a', at=datetime.datetime(2024, 5, 1, 0, 0))
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from streamtight.errors import StreamtightError, TraceError
from streamtight.stream.event import MOST_BITS, Event, Kind, Map, kinds_in
from streamtight.stream.schedule import Restart, Schedule

_MICROSECOND = timedelta(microseconds=1)


def plain(value: object) -> Any:
    """A value of an event as JSON can hold it; what JSON lacks becomes {"its type": "its text"}."""
    match value:
        case Event():
            return {"kind": value.kind.name, "fields": {n: plain(v) for n, v in value.as_dict().items()}}
        case Map():
            return {"map": [[plain(k), plain(v)] for k, v in value.items()]}
        case tuple() | list():
            return [plain(item) for item in value]
        case float() if not math.isfinite(value):
            return {"float": repr(value)}
        case int() if value.bit_length() > MOST_BITS:
            return {"int": hex(value)}
        case None | bool() | int() | float() | str():
            return value
        case bytes():
            return {"bytes": value.hex()}
        case timedelta():
            return {"microseconds": value // _MICROSECOND}
        case frozenset():
            return {"set": sorted((plain(item) for item in value), key=json.dumps)}
    return {type(value).__name__: str(value)}


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "float": float,
    "int": lambda text: int(text, 16),
    "bytes": bytes.fromhex,
    "microseconds": lambda count: count * _MICROSECOND,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "Decimal": Decimal,
}


def from_plain(data: object, kinds: Iterable[Kind]) -> Any:
    """The value that `plain` made this of; events are of these kinds, by their names."""
    known: dict[str, Kind] = {}
    for kind in kinds:
        _collect(kind, known)
    try:
        return _read(data, known)
    except StreamtightError as error:
        raise _unreadable(data, str(error)) from error
    except (ValueError, TypeError, KeyError, ArithmeticError, RecursionError) as error:
        raise _unreadable(data, f"{type(error).__name__}: {error}") from error


def _read(data: Any, kinds: Mapping[str, Kind]) -> Any:
    match data:
        case None | bool() | int() | float() | str():
            return data
        case list():
            return tuple(_read(item, kinds) for item in data)
        case {"kind": str(name), "fields": dict(fields)} if len(data) == 2:
            if name not in kinds:
                raise _unreadable(data, f"an event of {name}, which is not among {', '.join(kinds) or 'no kinds'}")
            return kinds[name](**{field: _read(value, kinds) for field, value in fields.items()})
        case {"map": list(items)} if len(data) == 1:
            return Map({_read(key, kinds): _read(value, kinds) for key, value in items})
        case {"set": list(items)} if len(data) == 1:
            return frozenset(_read(item, kinds) for item in items)
        case dict() if len(data) == 1:
            [(tag, value)] = data.items()
            return _READERS[tag](value)
    raise _unreadable(data, f"{data!r:.100}")


def schedule_data(schedule: Schedule) -> dict[str, Any]:
    """A schedule as JSON can hold it."""
    return {
        "batches": plain(schedule.batches),
        "shuffle_partitions": schedule.shuffle_partitions,
        "restarts": [{"after": restart.after, "replay": restart.replay} for restart in schedule.restarts],
    }


def schedule_from(data: object, kinds: Iterable[Kind]) -> Schedule:
    """The schedule that `schedule_data` made this of."""
    match data:
        case {"batches": list(batches), "shuffle_partitions": int(width), "restarts": list(restarts)}:
            read = from_plain(batches, kinds)
            try:
                stops = tuple(Restart(after=one["after"], replay=one["replay"]) for one in restarts)
                return Schedule(read, shuffle_partitions=width, restarts=stops)
            except (TypeError, KeyError) as error:
                raise _unreadable(data, f"{type(error).__name__}: {error}") from error
    raise _unreadable(data, f"{data!r:.100}")


def _collect(kind: Kind, known: dict[str, Kind]) -> None:
    if kind.name not in known:
        known[kind.name] = kind
        for declared in kind.fields.values():
            for inner in kinds_in(declared):
                _collect(inner, known)


def _unreadable(data: object, came: str) -> TraceError:
    return TraceError(
        "a stored schedule",
        needed="events as this version writes them, of kinds that are still as they were",
        came=came,
        hint="ask the question again, which stores it anew",
    )
