"""Dataclasses and named tuples as JSON can hold them, and back: by the types that their fields declare.

Nothing is read but what the types ask for, so reading runs no code but the constructors of those classes. Events are of
kinds that the reader knows.

>>> from typing import NamedTuple
>>> class Seen(NamedTuple):
...     at: datetime
...     counts: dict[tuple[int, str], int]
>>> data = record_data(Seen(datetime(2024, 5, 1), {(1, "left"): 3}), Seen, [])
>>> data
{'at': '2024-05-01T00:00:00', 'counts': [[[1, 'left'], 3]]}
>>> record_from(data, Seen, [])
Seen(at=datetime.datetime(2024, 5, 1, 0, 0), counts={(1, 'left'): 3})
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from streamtight.errors import StreamtightError, TraceError
from streamtight.stream.event import Event, Kind
from streamtight.stream.packed import pack, unpack
from streamtight.stream.plain import schedule_data, schedule_from
from streamtight.stream.schedule import Schedule


def record_data(value: Any, declared: Any, kinds: Sequence[Kind]) -> Any:
    """A value of this type as JSON can hold it."""
    inner = functools.partial(record_data, kinds=kinds)
    if value is None or declared in (bool, int, float, str):
        return value
    if declared is Event:
        return pack([value], kinds)
    if declared is Schedule:
        return schedule_data(value)
    if declared is datetime:
        return value.isoformat()
    origin, arguments = typing.get_origin(declared), typing.get_args(declared)
    if origin in (typing.Union, types.UnionType):
        return inner(value, _present(declared))
    if origin is tuple and arguments[-1] is not ...:
        return [inner(item, kind) for item, kind in zip(value, arguments, strict=True)]
    if arguments[:1] == (Event,):
        return pack(value, kinds)  # many at once, column by column
    if origin in (tuple, list):
        return [inner(item, arguments[0]) for item in value]
    if origin is dict:
        return [[inner(k, arguments[0]), inner(v, arguments[1])] for k, v in value.items()]
    return {name: inner(getattr(value, name), of) for name, of in _fields(declared).items()}


def record_from(data: object, declared: Any, kinds: Sequence[Kind]) -> Any:
    """The value that `record_data` made this of. Raises TraceError for anything else."""
    try:
        return _read(data, declared, kinds)
    except StreamtightError as error:
        raise _unreadable(declared, error.came) from error
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError) as error:
        raise _unreadable(declared, f"{type(error).__name__}: {error}"[:200]) from error


def _read(data: Any, declared: Any, kinds: Sequence[Kind]) -> Any:
    origin, arguments = typing.get_origin(declared), typing.get_args(declared)
    if origin in (typing.Union, types.UnionType):
        return None if data is None else _read(data, _present(declared), kinds)
    if declared in (bool, int, str) and type(data) is declared:
        return data
    if declared is float and type(data) in (int, float):
        return float(data)
    if declared is datetime and type(data) is str:
        return datetime.fromisoformat(data)
    if declared is Event:
        [event] = unpack(data, kinds)
        return event
    if declared is Schedule:
        return schedule_from(data, kinds)
    if arguments[:1] == (Event,) and isinstance(data, dict):
        return origin(unpack(data, kinds))
    if origin is tuple and arguments[-1] is not ... and isinstance(data, list):
        return tuple(_read(item, kind, kinds) for item, kind in zip(data, arguments, strict=True))
    if origin in (tuple, list) and isinstance(data, list):
        return origin(_read(item, arguments[0], kinds) for item in data)
    if origin is dict and isinstance(data, list):
        return {_read(k, arguments[0], kinds): _read(v, arguments[1], kinds) for k, v in data}
    if origin is None and isinstance(data, dict):
        fields = _fields(declared)
        if data.keys() != fields.keys():
            raise ValueError(f"{', '.join(data)} instead of {', '.join(fields)}"[:200])
        return declared(**{name: _read(data[name], of, kinds) for name, of in fields.items()})
    raise TypeError(f"{data!r:.50} instead of {declared}")


def _present(declared: Any) -> Any:
    """What a type is apart from None; another union is none of ours."""
    [present] = [one for one in typing.get_args(declared) if one is not types.NoneType]
    return present


@functools.lru_cache(maxsize=1000)
def _fields(declared: Any) -> Mapping[str, Any]:
    hints = typing.get_type_hints(declared)
    if dataclasses.is_dataclass(declared):
        return {one.name: hints[one.name] for one in dataclasses.fields(declared)}
    return {name: hints[name] for name in declared._fields}


def _unreadable(declared: Any, came: str) -> TraceError:
    return TraceError(
        f"a stored {getattr(declared, '__name__', declared)}",
        needed="what this version writes",
        came=came,
        hint="begin anew, in a new folder",
    )
