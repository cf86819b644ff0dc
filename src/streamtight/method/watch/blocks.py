"""Queries on blocks of items: arrays in, arrays out, from a state to a state; with keys, a state for each.

Small blocks are done in Python. Larger ones are compiled, if numba is there and their values have types that it knows;
what a kernel cannot do exactly is done in Python, so that both give the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamtight.errors import QueryError
from streamtight.method.watch.kernel import (
    BOOL,
    DTYPES,
    EXACT,
    FLOAT,
    INT,
    MIXED,
    RAISED,
    SMALL,
    NotTyped,
    Types,
    column_type,
    is_available,
    kernel,
    kernel_text,
)
from streamtight.properties.code import as_values
from streamtight.properties.monitor import Compiled, State, short
from streamtight.properties.term import Value
from streamtight.properties.transducer import Status

Array = np.ndarray[Any, Any]
Column = Any
"""An array of NumPy or Arrow, or a sequence of values."""
FEW = 20_000
"""So many items are done in Python before anything is compiled: that takes some hundredths of a second."""
_SMALL_KEYS = 2**22
"""Keys that are whole numbers below this are looked up in a table."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers to a block: a status and, where that is 1, a value for each item."""

    status: Array
    values: Array | list[Value]

    def __len__(self) -> int:
        return len(self.status)

    def listed(self) -> list[Value]:
        """One by one: values, `UNDEFINED` or `CONFLICT`."""
        values = self.values.tolist() if isinstance(self.values, np.ndarray) else self.values
        return as_values(self.status.tolist(), values)

    def column(self, data_type: Any = None) -> pa.Array:
        """The values as a column of Arrow, null where there is none; of this type, if one is given."""
        is_missing = self.status != int(Status.ONE)
        try:
            if isinstance(self.values, np.ndarray):
                column = pa.array(self.values, mask=is_missing if is_missing.any() else None)
                return column if data_type is None else column.cast(data_type)
            values = [None if missing else value for value, missing in zip(self.values, is_missing, strict=True)]
            return pa.array(values, data_type)
        except (pa.ArrowException, OverflowError) as error:
            raise QueryError(
                "the answers",
                needed=f"values that fit {data_type or 'one type'}",
                came=str(error),
                hint="gives={...} with another type, or operations that give smaller values",
            ) from error


class Blocks:
    """A query at work on blocks of items.

    >>> from streamtight.properties.query import atom, cur, iter_
    >>> total = Blocks(iter_(atom("v", cur), 0, lambda total, value: total + value).compile())
    >>> total.run(["v", "v"], [5, 2]).listed(), total.run(["v"], [1]).listed()
    ([5, 7], [8])
    """

    def __init__(self, compiled: Compiled, state: State | None = None, *, few: int = FEW) -> None:
        """few   after so many items, blocks are compiled"""
        self._compiled = compiled
        self._engine = _Engine(compiled, few)
        self.state = compiled.start if state is None else state
        """The state after all that was run."""

    def run(self, tags: Column | None, values: Column | Mapping[str, Column] | None = None) -> Answers:
        """The answers after each of these items.

        tags     their tags, by name or by number; None if there is only one
        values   their values, or a column for each field; not needed if the query reads none
        """
        numbers, columns = _items(self._compiled, tags, values)
        if self._engine.is_ready(len(numbers)):
            answers = self._by_kernel(numbers, columns)
            if answers is not None:
                return answers
        listed = [_listed(column) for column in columns]
        status, plain, self.state = self._compiled.block(numbers.tolist(), listed, self.state)
        return Answers(np.frombuffer(status, dtype=np.uint8), plain)

    def _by_kernel(self, numbers: Array, columns: list[Array]) -> Answers | None:
        found = self._engine.code(columns, keyed=False)
        registers = None if found is None else typed_states([self.state], found[0])
        if found is None or registers is None:
            return None
        types, code, columns = found
        answers = _empty_answers(len(numbers), types)
        try:
            state = code(numbers, *columns, *(each[0] for each in registers), answers.status, answers.values)
        except RAISED:
            return None
        self.state = _plain_state(state, types, self._compiled.start)
        return answers


class KeyedBlocks:
    """A query at work on blocks of items with keys: a state for each key.

    >>> from streamtight.properties.query import atom, cur, iter_
    >>> total = KeyedBlocks(iter_(atom("v", cur), 0, lambda total, value: total + value).compile())
    >>> total.run(["v", "v", "v"], [5, 2, 1], keys=["a", "b", "a"]).listed(), total.states
    ([5, 2, 6], {'a': (0, 6), 'b': (0, 2)})
    """

    def __init__(self, compiled: Compiled, states: Mapping[Any, State] | None = None, *, few: int = FEW) -> None:
        self._compiled = compiled
        self._engine = _Engine(compiled, few)
        self._rows: dict[Any, int]
        self._table: Array
        self._plain: list[State]
        self._arrays: list[Array] | None  # instead of them, while the states have types
        self._types: Types | None
        self.restart(states or {})

    @property
    def states(self) -> dict[Any, State]:
        """The state of each key that has come."""
        states = self._listed_states()
        return {key: states[row] for key, row in self._rows.items()}

    def state_of(self, key: Any) -> State:
        """The state of a key."""
        row = self._rows[_key(key)]
        if self._arrays is None or self._types is None:
            return self._plain[row]
        self._grow()
        return _plain_state([array[row] for array in self._arrays], self._types, self._compiled.start)

    def restart(self, states: Mapping[Any, State]) -> None:
        """Forget all keys but these."""
        self._rows, self._table = {}, np.zeros(0, dtype=np.int64)
        self._plain, self._arrays, self._types = [], None, None
        for key, state in states.items():
            self._rows[_key(key)] = len(self._plain)
            self._plain.append(tuple(state))

    def run(self, tags: Column | None, values: Column | Mapping[str, Column] | None = None, *, keys: Column) -> Answers:
        """The answers after each of these items, each for its key."""
        numbers, columns = _items(self._compiled, tags, values)
        rows = self._numbered(keys, len(numbers))
        if self._engine.is_ready(len(numbers)):
            answers = self._by_kernel(numbers, rows, columns)
            if answers is not None:
                return answers
        self._to_plain()
        listed = [_listed(column) for column in columns]
        before = {row: self._plain[row] for row in np.unique(rows).tolist()}  # an item that is refused changes nothing
        try:
            status, plain = self._compiled.keyed_block(numbers.tolist(), rows.tolist(), listed, self._plain)
        except QueryError:
            for row, state in before.items():
                self._plain[row] = state
            raise
        return Answers(np.frombuffer(status, dtype=np.uint8), plain)

    def _by_kernel(self, numbers: Array, rows: Array, columns: list[Array]) -> Answers | None:
        found = self._engine.code(columns, keyed=True)
        if found is None:
            return None
        types, code, columns = found
        if types != self._types or self._arrays is None:
            arrays = typed_states(self._listed_states(), types)
            if arrays is None:
                return None
            self._arrays, self._types, self._plain = arrays, types, []
        self._grow()
        # What is touched is copied first: if the kernel raises, nothing has happened.
        touched = np.unique(rows) if len(self._rows) > 4 * len(rows) else None
        local = rows if touched is None else np.searchsorted(touched, rows)
        arrays = [each.copy() if touched is None else each[touched] for each in self._arrays]
        answers = _empty_answers(len(numbers), types)
        try:
            code(numbers, local, *columns, *arrays, answers.status, answers.values)
        except RAISED:
            return None
        if touched is None:
            self._arrays = arrays
        else:
            for whole, part in zip(self._arrays, arrays, strict=True):
                whole[touched] = part
        return answers

    def _numbered(self, keys: Column, count: int) -> Array:
        """The row of each key; new keys get the next ones."""
        if isinstance(keys, np.ndarray) and keys.dtype.kind in "iu" and len(keys) == count > 0:
            rows = self._looked_up(keys)
            if rows is not None:
                return rows
        if len(keys) != count:
            raise QueryError(
                short(self._compiled.query), needed=f"{count} keys", came=f"{len(keys)}", hint="one for each item"
            )
        different, places = _encoded(keys)
        return self._rows_of(different)[places]

    def _looked_up(self, keys: Array) -> Array | None:
        """The same for small whole numbers: one look into a table for each; None if a key is not small."""
        highest = int(keys.max())
        if highest >= _SMALL_KEYS or int(keys.min()) < 0:
            return None
        if highest >= len(self._table):
            more = max(1024, 2 * highest) - len(self._table)
            self._table = np.concatenate([self._table, np.full(more, -1, dtype=np.int64)])
        rows: Array = self._table[keys]
        if rows.min() < 0:
            new = np.unique(keys[rows < 0])
            self._table[new] = self._rows_of(new.tolist())
            rows = self._table[keys]
        return rows

    def _rows_of(self, keys: list[Any]) -> Array:
        rows = self._rows
        places = [rows.setdefault(_key(key), len(rows)) for key in keys]
        if self._arrays is None:
            self._plain += [self._compiled.start] * (len(rows) - len(self._plain))
        return np.array(places, dtype=np.int64)

    def _grow(self) -> None:
        """Room in the arrays for keys that are new."""
        if self._arrays is None or self._types is None:
            return
        more = len(self._rows) - len(self._arrays[0])
        if more > 0:
            start = _typed_state(self._compiled.start, self._types)
            self._arrays = [
                np.concatenate([each, np.full(max(more, 0), value, dtype=each.dtype)])
                for each, value in zip(self._arrays, start, strict=True)
            ]

    def _listed_states(self) -> list[State]:
        if self._arrays is None or self._types is None:
            return self._plain
        self._grow()
        types, start = self._types, self._compiled.start
        listed = zip(*(array.tolist() for array in self._arrays), strict=True)
        return [_plain_state(each, types, start) for each in listed]

    def _to_plain(self) -> None:
        if self._arrays is not None:
            self._plain, self._arrays, self._types = self._listed_states(), None, None


def _key(key: Any) -> Any:
    return _NAN if isinstance(key, float) and key != key else key


_NAN = float("nan")


class _Engine:
    """Decides whether a block is compiled, and finds the kernel for its types."""

    def __init__(self, compiled: Compiled, few: int) -> None:
        self._compiled = compiled
        self._left = few
        self._types: dict[tuple[str, ...], Types | None] = {}

    def is_ready(self, count: int) -> bool:
        """Whether so many more items are worth a kernel."""
        self._left -= count
        return self._left < 0 and is_available()

    def known_types(self, columns: Sequence[Array]) -> Types | None:
        """The types of the program for such columns; None if it has none."""
        try:
            fields = tuple(column_type(column.dtype) for column in columns)
        except NotTyped:
            return None
        if fields not in self._types:
            try:
                self._types[fields] = Types.of(self._compiled.program, fields)
            except NotTyped:
                self._types[fields] = None
        return self._types[fields]

    def code(self, columns: Sequence[Array], *, keyed: bool) -> tuple[Types, Any, list[Array]] | None:
        """The types and the kernel for such columns, and the columns as it wants them."""
        types = self.known_types(columns)
        if types is None:
            return None
        # Python has no smaller numbers: what is calculated from them needs 64 bits.
        wide: list[Array] = [
            np.ascontiguousarray(each, DTYPES[kind]) for each, kind in zip(columns, types.fields, strict=True)
        ]
        return types, kernel(kernel_text(self._compiled.program, types, is_keyed=keyed)), wide


def typed_states(states: Sequence[State], types: Types) -> list[Array] | None:
    """States as arrays: the control states, then each register; None if one has a value of another type."""
    try:
        typed = [_typed_state(state, types) for state in states]
    except NotTyped:
        return None
    dtypes = [np.int64, *(DTYPES[kind] for kind in types.registers)]
    parts = zip(*typed, strict=True) if typed else [() for _ in dtypes]
    return [np.array(part, dtype=dtype) for part, dtype in zip(parts, dtypes, strict=True)]


def _typed_state(state: State, types: Types) -> list[Any]:
    """A state as values of these types."""
    found: list[Any] = [state[0]]
    for value, kind in zip(state[1:], types.registers, strict=True):
        if value is None:  # nobody reads it before it is set
            found.append(DTYPES[kind](0))
            continue
        if type(value) not in _FITS[kind]:
            raise NotTyped(f"{value!r} in a register of type {kind}")
        if type(value) is int and abs(value) >= (EXACT if kind == MIXED else 2**63):
            raise NotTyped(f"{value!r} is too large")
        found.append(DTYPES[kind](value))
    return found


def _plain_state(state: Sequence[Any], types: Types, start: State) -> State:
    """A typed state as Python has it; a whole number at the start is one again."""
    python = {BOOL: bool, FLOAT: float, MIXED: float}
    values = [python.get(kind, int)(value) for value, kind in zip(state[1:], types.registers, strict=True)]
    known = zip(values, types.registers, start[1:], strict=True)
    return (int(state[0]), *(first if kind == MIXED and value == first else value for value, kind, first in known))


_FITS: dict[str, tuple[type, ...]] = {
    BOOL: (bool,),
    SMALL: (bool, int),
    INT: (bool, int),
    FLOAT: (float,),
    MIXED: (bool, int, float),
}


def _empty_answers(count: int, types: Types) -> Answers:
    return Answers(np.full(count, int(Status.ONE), dtype=np.uint8), np.zeros(count, dtype=DTYPES[types.answer]))


# -- what comes in ---------------------------------------------------------------------------------------------------


def _items(
    compiled: Compiled, tags: Column | None, values: Column | Mapping[str, Column] | None
) -> tuple[Array, list[Array]]:
    """The numbers of the tags, and a column for each field that is read."""
    given: dict[Any, Column] = {**values} if isinstance(values, Mapping) else {None: values}
    columns: list[Array] = []
    for name in compiled.fields:
        column = given.get(name)
        if column is None:
            known = ", ".join(repr(each) for each in given if each is not None) or "plain values"
            raise QueryError(
                short(compiled.query),
                needed="the values of the items" if name is None else f"a column for the field {name!r}",
                came=known if given.get(None) is not None or isinstance(values, Mapping) else "none",
                hint="run(tags, values), or run(tags, {'price': prices})",
            )
        columns.append(_array(column))
    count = len(columns[0]) if columns else None
    if tags is None:
        if len(compiled.tags) != 1:
            raise QueryError(
                short(compiled.query),
                needed=f"the tag of each item: {', '.join(compiled.tags)}",
                came="no tags",
                hint="run(tags, values)",
            )
        if count is None:
            count = len(next((each for each in given.values() if each is not None), ()))
        numbers = np.zeros(count, dtype=np.uint8)
    else:
        numbers = _tag_numbers(compiled, tags)
    lengths = {len(numbers), *map(len, columns)}
    if len(lengths) > 1:
        raise QueryError(
            short(compiled.query),
            needed="columns of one length",
            came=", ".join(map(str, sorted(lengths))),
            hint="a tag and a value for each item",
        )
    return numbers, columns


def _tag_numbers(compiled: Compiled, tags: Column) -> Array:
    known = {tag: number for number, tag in enumerate(compiled.tags)}
    if isinstance(tags, np.ndarray) and tags.dtype.kind in "iu":
        wrong = (tags < 0) | (tags >= len(known)) if tags.dtype.kind == "i" else tags >= len(known)
        if wrong.any():
            raise compiled.unknown(int(tags[wrong][0]))
        return np.ascontiguousarray(tags, dtype=np.uint8 if len(known) <= 256 else np.int64)
    different, places = _encoded(tags)
    for tag in different:
        if tag not in known:
            raise compiled.unknown(tag)
    numbers = np.array([known[tag] for tag in different], dtype=np.uint8 if len(known) <= 256 else np.int64)
    return np.ascontiguousarray(numbers[places])


def _encoded(column: Column) -> tuple[list[Any], Array]:
    """The different values of a column, and for each row the place of its value among them."""
    if isinstance(column, np.ndarray) and column.dtype != object:
        column = pa.array(column)
    if not isinstance(column, (pa.Array, pa.ChunkedArray)):  # as Python tells values apart
        known: dict[Any, int] = {}
        places = [known.setdefault(value, len(known)) for value in column]
        return list(known), np.array(places, dtype=np.int64)
    if pa.types.is_dictionary(column.type):  # which may have values that no row has
        column = column.cast(column.type.value_type)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    encoded = pc.dictionary_encode(column, null_encoding="encode")
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy(zero_copy_only=False)


def _array(column: Column) -> Array:
    """A column as an array: of numbers where it has no nulls, of Python's values else."""
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        numeric = (
            pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_boolean(column.type)
        )
        if numeric and not column.null_count and column.type != pa.float16():
            return np.ascontiguousarray(
                column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy()
            )
        column = column.to_pylist()
    if isinstance(column, np.ndarray):
        return np.ascontiguousarray(column)
    found = np.empty(len(column), dtype=object)
    found[:] = column
    kinds = set(map(type, column))
    if kinds <= {bool}:
        return found.astype(np.bool_)
    if kinds <= {float}:
        return found.astype(np.float64)
    if kinds <= {int} and all(-(2**63) <= each < 2**63 for each in column):
        return found.astype(np.int64)
    return found


def _listed(column: Array) -> list[Value]:
    return column.tolist()  # type: ignore[no-any-return]
