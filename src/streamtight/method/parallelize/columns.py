"""Rows of Arrow as what a worker needs: times in NumPy, events or blocks on demand; and outputs as rows again.

Nothing is made for a row that is not asked for: a batch stays a batch, windows of it are slices, and only where the
program takes events one by one does Python make objects of them.
"""

from __future__ import annotations

import io
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from typing import Any

import numpy as np
import pyarrow as pa

from streamtight.errors import InputError
from streamtight.program.fork_join import HEARTBEAT, Block, ForkJoin
from streamtight.program.tags import Bucket, Tags, Values, share_hash
from streamtight.stream.event import Event, Kind, trusted_events, with_one_nan, without_annotation, without_none

KIND = "kind"
"""The column that says of which kind a row is, where a stream has several."""
_KIND_OF = operator.itemgetter(0)
_FAST = {int: pa.types.is_integer, float: pa.types.is_floating, bool: pa.types.is_boolean}


@dataclass(slots=True)
class Rows:
    """Rows of one kind that came one after another on a stream: their times, and their columns."""

    kind: Kind
    ticks: np.ndarray[Any, Any]
    batch: pa.RecordBatch
    """Its columns are the fields of the kind, in their order; the rows are those from `start` on."""
    start: int = 0
    _arrays: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ticks)

    def slice(self, start: int, stop: int) -> Rows:
        """Some of the rows."""
        arrays = {name: array[start:stop] for name, array in self._arrays.items()}
        return Rows(self.kind, self.ticks[start:stop], self.batch, self.start + start, arrays)

    def block(self) -> Block:
        """The rows as columns."""
        return Block(self.kind, _Columns(self), len(self.ticks))

    def column(self, name: str) -> pa.Array:
        """A column as it came."""
        return self.batch.column(self.kind.names.index(name)).slice(self.start, len(self))

    def array(self, name: str) -> Any:
        """A column as an array of NumPy, or as a list where that has no type for it."""
        if name not in self._arrays:
            self._arrays[name] = _array(self.kind, name, self.column(name))
        return self._arrays[name]

    def read_all(self) -> Rows:
        """The same, with its columns taken out of Arrow once and for all slices."""
        for name in self.kind.names:
            self.array(name)
        return self

    def events(self) -> Iterator[Event]:
        """The rows as events."""
        columns = [self.array(name) for name in self.kind.names]
        listed = [column if isinstance(column, list) else column.tolist() for column in columns]
        if all(
            _is_trusted(declared, column) for declared, column in zip(self.kind.fields.values(), columns, strict=True)
        ):
            return trusted_events(self.kind, listed)
        return map(self.kind, *listed) if listed else iter([self.kind() for _ in range(len(self))])


class _Columns(Mapping[str, Any]):
    """The columns of a block, taken out of Arrow when they are asked for."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def __getitem__(self, name: str) -> Any:
        return self._rows.array(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows.kind.names)

    def __len__(self) -> int:
        return len(self._rows.kind.names)


def _is_trusted(declared: Any, column: Any) -> bool:
    """Whether the values need no look: the type of the column says what they are."""
    plain = without_annotation(without_none(declared)[0])
    if isinstance(column, list):
        return plain is str
    return plain in _FAST and not (plain is float and bool(np.isnan(column).any()))


def _array(kind: Kind, name: str, column: pa.Array) -> Any:
    plain, admits_none = without_none(kind.fields[name])
    plain = without_annotation(plain)
    if column.null_count and not admits_none:
        raise InputError(
            f"column {name!r} of {kind.name}",
            needed=f"a value in every row, as {kind!r} says",
            came=f"{column.null_count} nulls",
            hint=f"Kind({kind.name!r}, {name}=... | None)",
        )
    if plain is float and (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        column = _cast(column, pa.float64(), kind, name)
    fits = plain not in _FAST or _FAST[plain](column.type)
    if plain is str:
        fits = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if not fits and not pa.types.is_null(column.type):
        raise InputError(
            f"column {name!r} of {kind.name}", needed=f"{plain.__name__}", came=str(column.type), hint="a cast"
        )
    if plain is int:
        column = _cast(column, pa.int64(), kind, name)
    if column.null_count or plain not in _FAST:
        return _values_of(column)
    return column.to_numpy(zero_copy_only=False)


def _cast(column: pa.Array, type_: pa.DataType, kind: Kind, name: str) -> pa.Array:
    try:
        return column.cast(type_)
    except pa.ArrowInvalid as error:
        raise InputError(
            f"column {name!r} of {kind.name}", needed=f"values that are {type_}", came=str(error), hint="another type"
        ) from error


def _values_of(column: pa.Array) -> list[Any]:
    """The values of a column as events have them: times without a zone are local, and there is one NaN."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz))  # finer ones come as objects of pandas
        if column.type.tz is not None:
            return [each and each.astimezone().replace(tzinfo=None) for each in column.to_pylist()]
    if pa.types.is_floating(column.type):
        return list(map(with_one_nan, column.to_pylist()))
    listed: list[Any] = column.to_pylist()
    return listed


# -- batches of a stream -----------------------------------------------------------------------------------------


class StreamReader:
    """Takes the batches of one stream apart: for each of the shares asked for, its rows.

    Raises `InputError` if they do not increase in time, or if a row is of no tag of the stream.
    """

    def __init__(
        self, program: ForkJoin, stream: str, place: int, tags: Sequence[Tags], wanted: Sequence[Tags]
    ) -> None:
        self._program, self._stream, self._place = program, stream, place
        self._tags, self._wanted = tags, wanted
        self._kinds = list(dict.fromkeys(part.kind for part in tags))
        self._last: tuple[float, int] = (-np.inf, -1)

    @property
    def last(self) -> tuple[float, int, int]:
        """The key of the last row: later ones are not before it."""
        return (*self._last, self._place)

    def rows(self, batch: pa.RecordBatch) -> Iterator[tuple[int, Rows]]:
        """The rows of a batch, as the number of the share they are of and the rows."""
        if not batch.num_rows:
            return
        if len(self._kinds) == 1 and KIND not in batch.schema.names:
            self._require_increasing(self._ticks(batch, self._kinds[0]), None)
            yield from self._of_kind(batch, self._kinds[0])
            return
        ranks = self._ranks(batch)
        self._require_increasing(self._ticks(batch, self._kinds[0]), ranks)
        for kind in self._kinds:
            chosen = np.flatnonzero(ranks == self._program.rank(kind))
            if len(chosen):
                yield from self._of_kind(batch if len(chosen) == batch.num_rows else batch.take(pa.array(chosen)), kind)

    def _of_kind(self, batch: pa.RecordBatch, kind: Kind) -> Iterator[tuple[int, Rows]]:
        missing = [name for name in kind.names if name not in batch.schema.names]
        if missing:
            raise InputError(
                f"stream {self._stream!r}",
                needed=f"the columns {', '.join(kind.names)} of {kind.name}",
                came=", ".join(batch.schema.names),
                hint=f"a column {missing[0]!r}",
            )
        ticks = self._ticks(batch, kind)
        rows = Rows(kind, ticks, batch.select(list(kind.names)))
        if any(part.kind is kind and part.fields for part in self._tags):
            known = np.zeros(len(rows), dtype=bool)
            for part in self._tags:
                known |= mask_of(part, rows)
            if not known.all():
                place = int(np.flatnonzero(~known)[0])
                self._refuse(next(rows.slice(place, place + 1).events()))
        for number, part in enumerate(self._wanted):
            if part.kind is not kind:
                continue
            if not part.fields:
                yield number, rows
                continue
            chosen = np.flatnonzero(mask_of(part, rows))
            if len(chosen):
                yield number, Rows(kind, ticks[chosen], rows.batch.take(pa.array(chosen)))

    def _refuse(self, came: object) -> None:
        raise InputError(
            f"stream {self._stream!r}",
            needed=f"events of its tags: {', '.join(map(str, self._tags))}",
            came=f"{came}, for which no worker is responsible",
            hint=f"InputStream({self._stream!r}, ...) with all tags that come on it",
        )

    def _ticks(self, batch: pa.RecordBatch, kind: Kind) -> np.ndarray[Any, Any]:
        name = self._program.time
        if name not in batch.schema.names:
            raise InputError(
                f"stream {self._stream!r}",
                needed=f"a column {name!r}, the time",
                came=", ".join(batch.schema.names),
                hint="time = '...' in the program, the name of the column",
            )
        return ticks_of(batch.column(name), f"stream {self._stream!r}, column {name!r}")

    def _ranks(self, batch: pa.RecordBatch) -> np.ndarray[Any, Any]:
        if KIND not in batch.schema.names:
            raise InputError(
                f"stream {self._stream!r}",
                needed=f"a column {KIND!r} that says which of {', '.join(k.name for k in self._kinds)} a row is",
                came=", ".join(batch.schema.names),
                hint="a stream for each kind, or that column",
            )
        encoded = batch.column(KIND).dictionary_encode()
        names = encoded.dictionary.to_pylist()
        ranks = {kind.name: self._program.rank(kind) for kind in self._kinds}
        ranks[HEARTBEAT] = len(self._program.takes)
        unknown = [name for name in names if name not in ranks]
        if unknown or encoded.null_count:
            self._refuse(f"a row of kind {unknown[0] if unknown else None!r}")
        places: np.ndarray[Any, Any] = encoded.indices.to_numpy()
        found: np.ndarray[Any, Any] = np.array([ranks[name] for name in names], dtype=np.int64)[places]
        return found

    def _require_increasing(self, ticks: np.ndarray[Any, Any], ranks: np.ndarray[Any, Any] | None) -> None:
        if ranks is None:
            ranks = np.full(len(ticks), self._program.rank(self._kinds[0]))
        before = np.concatenate([[self._last[0]], ticks[:-1]])
        rank_before = np.concatenate([[self._last[1]], ranks[:-1]])
        wrong = np.flatnonzero(~((ticks > before) | ((ticks == before) & (ranks >= rank_before))))
        if len(wrong):
            place = int(wrong[0])
            raise InputError(
                f"stream {self._stream!r}",
                needed="events that increase in time, at equal times in the order of takes",
                came=f"time {_plain(ticks[place])} after time {_plain(before[place])}",
                hint="sort the stream by its time; what comes too late cannot be put in its place any more",
            )
        self._last = (ticks[-1].item(), int(ranks[-1]))


def _plain(number: Any) -> Any:
    return number.item() if hasattr(number, "item") else number


def ticks_of(column: pa.Array, where: str) -> np.ndarray[Any, Any]:
    """A column of times as numbers in the order of time."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    if column.null_count or not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        came = f"{column.null_count} nulls" if column.null_count else str(column.type)
        raise InputError(where, needed="times: whole numbers, floats or timestamps", came=came, hint="no nulls there")
    if pa.types.is_integer(column.type):
        column = column.cast(pa.int64())
    found: np.ndarray[Any, Any] = column.to_numpy(zero_copy_only=False)
    return found


def mask_of(part: Tags, rows: Rows) -> np.ndarray[Any, Any]:
    """Which of the rows have one of these tags."""
    mask = np.full(len(rows), part.kind is rows.kind)
    if part.kind is rows.kind:
        for name, values in part.fields:
            mask &= _among(rows.column(name), values)
    return mask


def _among(column: pa.Array, values: Values) -> np.ndarray[Any, Any]:
    if values is None:
        return np.ones(len(column), dtype=bool)
    encoded = column.dictionary_encode(null_encoding="encode")
    distinct = _values_of(encoded.dictionary)
    if isinstance(values, Bucket):
        known = [share_hash(value) % values.of == values.index for value in distinct]
    else:
        known = [value in values for value in distinct]
    places: np.ndarray[Any, Any] = encoded.indices.to_numpy(zero_copy_only=False)
    found: np.ndarray[Any, Any] = np.array(known, dtype=bool)[places]
    return found


# -- outputs -----------------------------------------------------------------------------------------------------


class Outputs:
    """What workers emit: events and blocks, packed as bytes of Arrow, a piece for each kind."""

    def __init__(self, schemas: Mapping[Kind, pa.Schema]) -> None:
        self._schemas = schemas
        self._events: list[Event] = []
        self._pieces: list[tuple[str, bytes]] = []
        self._packed = 0
        self.append = self._events.append

    def __call__(self, event: Event) -> None:
        """Emit one event."""
        self._events.append(event)

    def __len__(self) -> int:
        return len(self._events) + self._packed

    def block(self, kind: Kind, **columns: Any) -> None:
        """Emit as many events as the columns have values."""
        schema = self._schema(kind, f"emit.block({kind.name})")
        if set(columns) != set(schema.names):
            raise InputError(
                f"emit.block({kind.name})",
                needed=f"the columns {', '.join(schema.names)}",
                came=", ".join(columns),
                hint=f"emit.block({kind.name}, {', '.join(f'{name}=...' for name in schema.names)})",
            )
        self._keep(kind, schema, [columns[name] for name in schema.names])

    def pack(self, *, from_: int = 1) -> None:
        """Make columns of the events that wait, if there are so many: the collector of garbage goes through objects."""
        if len(self._events) < from_:
            return
        if not all(isinstance(event, Event) for event in self._events):
            wrong = next(event for event in self._events if not isinstance(event, Event))
            raise InputError("emit(...)", needed="an event", came=repr(wrong)[:200], hint="emit(Total(...))")
        kinds = dict.fromkeys(map(_KIND_OF, self._events))
        for kind in kinds:
            events = self._events if len(kinds) == 1 else [event for event in self._events if event[0] is kind]
            schema = self._schema(kind, "emit")
            self._keep(kind, schema, list(zip(*events, strict=True))[1:])
        self._events.clear()

    def _keep(self, kind: Kind, schema: pa.Schema, columns: Sequence[Any]) -> None:
        arrays = [_packable(kind, field, column) for field, column in zip(schema, columns, strict=True)]
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
        if batch.num_rows:
            self._pieces.append((kind.name, _packed(batch)))
            self._packed += batch.num_rows

    def taken(self) -> list[tuple[str, bytes]]:
        """What was emitted since the last time, as pieces."""
        self.pack()
        pieces = list(self._pieces)
        self._pieces.clear()
        self._packed = 0
        return pieces

    def _schema(self, kind: Kind, where: str) -> pa.Schema:
        if kind not in self._schemas:
            raise InputError(
                where,
                needed=f"one of the kinds that the program gives: {', '.join(k.name for k in self._schemas) or 'none'}",
                came=kind.name,
                hint=f"gives = (..., {kind.name})",
            )
        return self._schemas[kind]


def _packable(kind: Kind, field: pa.Field, column: Any) -> pa.Array:
    if pa.types.is_timestamp(field.type) and field.type.tz is not None:  # events have local times without a zone
        column = column.astype("datetime64[us]").tolist() if isinstance(column, np.ndarray) else column
        column = [each and each.astimezone(UTC) for each in column]
    try:
        packed = pa.array(column, type=field.type)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise InputError(
            f"an output of {kind.name}",
            needed=f"{field.name}: {field.type}",
            came=str(error),
            hint="another type of field",
        ) from error
    if packed.null_count and not without_none(kind.fields[field.name])[1]:
        raise InputError(
            f"an output of {kind.name}",
            needed=f"a value of {field.name} in every row",
            came=f"{packed.null_count} without one",
            hint=f"Kind({kind.name!r}, {field.name}=... | None)",
        )
    return packed


def _packed(batch: pa.RecordBatch) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def pieces_batch(pieces: Sequence[tuple[str, bytes]]) -> pa.RecordBatch:
    """Pieces as rows: the name of a kind, and the bytes."""
    kinds, packed = zip(*pieces, strict=True)
    return pa.RecordBatch.from_arrays([pa.array(kinds, pa.string()), pa.array(packed, pa.binary())], ["kind", "piece"])


def output_batches(pieces: Iterable[tuple[str, bytes]], schema: pa.Schema, *, named: bool) -> Iterator[pa.RecordBatch]:
    """What is in pieces, as rows of this schema; `named` if its first column says of which kind they are."""
    for kind, piece in pieces:
        for batch in pa.ipc.open_stream(piece):
            arrays = [
                pa.array([kind] * batch.num_rows, pa.string())
                if named and place == 0
                else batch.column(field.name).cast(field.type)
                if field.name in batch.schema.names
                else pa.nulls(batch.num_rows, field.type)
                for place, field in enumerate(schema)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def output_table(pieces: Iterable[tuple[str, bytes]], schema: pa.Schema, *, named: bool) -> pa.Table:
    """What is in pieces, as a table of this schema."""
    return pa.Table.from_batches(list(output_batches(pieces, schema, named=named)), schema)


def pieces_of(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, bytes]]:
    """The pieces that were made rows."""
    for batch in batches:
        yield from zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)
