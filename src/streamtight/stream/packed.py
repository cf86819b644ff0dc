"""Events of known kinds as JSON, column by column, and back: for many rows, and exact for every value of a field.

What `plain` makes tells its types, for readers that know nothing; here both sides know the kinds, so that most columns
are written as they are. Reading makes events of data, and runs nothing.

>>> from streamtight.stream.event import Kind
>>> Tip = Kind("Tip", cents=int, at=datetime | None)
>>> data = pack([Tip(1, datetime(2024, 5, 1)), Tip(2, None)], [Tip])
>>> data
{'kinds': [0, 0], 'columns': [[[1, 2], ['2024-05-01T00:00:00', None]]]}
>>> unpack(data, [Tip])
[Tip(cents=1, at=datetime.datetime(2024, 5, 1, 0, 0)), Tip(cents=2, at=None)]
"""

from __future__ import annotations

import functools
import typing
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from streamtight.errors import StreamtightError, TraceError
from streamtight.stream.event import (
    MOST_BITS,
    Event,
    FieldType,
    Kind,
    Map,
    kinds_in,
    origin,
    without_annotation,
    without_none,
)
from streamtight.stream.plain import from_plain, plain

_Convert = Callable[[Any], Any]
_MICROSECOND = timedelta(microseconds=1)


def pack(events: Iterable[Event], kinds: Sequence[Kind]) -> dict[str, Any]:
    """Events of these kinds as JSON can hold them."""
    numbers = {kind: number for number, kind in enumerate(kinds)}
    order: list[int] = []
    rows: list[list[Event]] = [[] for _ in kinds]
    for event in events:
        number = numbers[event[0]]
        order.append(number)
        rows[number].append(event)
    columns = []
    for kind, some in zip(kinds, rows, strict=True):
        values = list(zip(*some, strict=True))[1:] or [()] * len(kind.names)
        writers = (_writer(declared) for declared in kind.fields.values())
        columns.append([_each(write, column) for write, column in zip(writers, values, strict=True)])
    return {"kinds": order, "columns": columns}


def unpack(data: object, kinds: Sequence[Kind]) -> list[Event]:
    """The events that `pack` made this of. Raises TraceError for anything else."""
    try:
        match data:
            case {"kinds": list(order), "columns": list(columns)} if len(columns) == len(kinds):
                counts = Counter(order)
                if not set(counts) <= set(range(len(kinds))):
                    raise ValueError("a number that no kind has")
                made = [
                    iter(_events(kind, some, counts[number]))
                    for number, (kind, some) in enumerate(zip(kinds, columns, strict=True))
                ]
                return [next(made[number]) for number in order]
    except StreamtightError as error:
        raise _unreadable(str(error)) from error
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError) as error:
        raise _unreadable(f"{type(error).__name__}: {error}"[:200]) from error
    raise _unreadable(f"{data!r:.100}")


def _events(kind: Kind, columns: Any, count: int) -> list[Event]:
    if len(_listed(columns)) != len(kind.names) or any(len(_listed(column)) != count for column in columns):
        raise ValueError(f"not {count} values for each field of {kind.name}")
    if not columns:
        return [kind()] * count
    readers = (_reader(declared) for declared in kind.fields.values())
    values = [_each(read, column) for read, column in zip(readers, columns, strict=True)]
    return [kind(*row) for row in zip(*values, strict=True)]


def _each(convert: _Convert | None, column: Iterable[Any]) -> list[Any]:
    return list(column) if convert is None else [None if value is None else convert(value) for value in column]


# None stands for a column that JSON holds as it is. Python's JSON has NaN and the infinities, keeps the sign of zero,
# and writes floats so that the same is read.
_WRITERS: Mapping[object, _Convert | None] = {
    **dict.fromkeys((float, str, bool)),
    int: lambda value: hex(value) if value.bit_length() > MOST_BITS else value,
    bytes: bytes.hex,
    date: date.isoformat,
    datetime: datetime.isoformat,
    timedelta: lambda value: value // _MICROSECOND,
    Decimal: str,
}
_READERS: Mapping[object, _Convert | None] = {
    **dict.fromkeys((float, str, bool)),
    int: lambda value: _huge(value) if isinstance(value, str) else value,
    bytes: bytes.fromhex,
    date: date.fromisoformat,
    datetime: datetime.fromisoformat,
    timedelta: lambda count: _whole(count) * _MICROSECOND,
    Decimal: lambda text: Decimal(_text(text)),
}


@functools.lru_cache(maxsize=1000)
def _writer(declared: FieldType) -> _Convert | None:
    bare = _bare(declared)
    if bare in _WRITERS:
        return _WRITERS[bare]
    arguments = typing.get_args(bare)
    if isinstance(bare, Kind):
        fields = [_writer(inner) for inner in bare.fields.values()]
        return lambda event: [_one(write, value) for write, value in zip(fields, event[1:], strict=True)]
    if origin(bare) is tuple:
        return functools.partial(_each, _writer(arguments[0]))
    if origin(bare) is dict:
        key, item = _writer(arguments[0]), _writer(arguments[1])
        return lambda items: [[_one(key, k), _one(item, v)] for k, v in items.items()]
    return plain


@functools.lru_cache(maxsize=1000)
def _reader(declared: FieldType) -> _Convert | None:
    bare = _bare(declared)
    if bare in _READERS:
        return _READERS[bare]
    arguments = typing.get_args(bare)
    if isinstance(bare, Kind):
        fields, kind = [_reader(inner) for inner in bare.fields.values()], bare
        return lambda values: kind(*(_one(read, value) for read, value in zip(fields, values, strict=True)))
    if origin(bare) is tuple:
        return lambda values: tuple(_each(_reader(arguments[0]), _listed(values)))
    if origin(bare) is dict:
        key, item = _reader(arguments[0]), _reader(arguments[1])
        return lambda pairs: Map({_one(key, k): _one(item, v) for k, v in _listed(pairs)})
    return functools.partial(from_plain, kinds=kinds_in(declared))


def _one(convert: _Convert | None, value: Any) -> Any:
    return value if convert is None or value is None else convert(value)


def _bare(declared: FieldType) -> FieldType:
    return without_annotation(without_none(without_annotation(declared))[0])


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"a list was needed, {value!r:.50} came")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a text was needed, {value!r:.50} came")
    return value


def _huge(text: str) -> int:
    if not text.startswith(("0x", "-0x")):
        raise ValueError(f"a whole number was needed, {text!r:.50} came")
    return int(text, 16)


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"a whole number was needed, {value!r:.50} came")
    return value


def _unreadable(came: str) -> TraceError:
    return TraceError(
        "stored events",
        needed="events as this version writes them, of kinds that are still as they were",
        came=came,
        hint="begin anew, in a new folder",
    )
