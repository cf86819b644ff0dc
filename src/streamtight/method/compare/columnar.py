"""Are two streams of Arrow tables the same, up to order? The online matcher for bag, total and keyed order, by columns.

>>> matcher = Columnar("keyed", key=("taxi",))
>>> matcher.feed(0, pa.table({"taxi": [1, 2, 1], "x": [10, 20, 30]}))
True
>>> matcher.feed(1, pa.table({"taxi": [2, 1], "x": [20, 30]}))
False
>>> matcher.conflict.position, matcher.conflict.row.to_pylist(), matcher.conflict.against.to_pylist()
(2, [{'taxi': 1, 'x': 30}], [{'taxi': 1, 'x': 10}])

The law is that of the event-by-event matcher (DiffStream, section 4): a new row is set against the unmatched rows of
the other side, oldest first; one that is equal is dropped with it, one that must keep its order with it refutes, and
if there is neither, the new row waits. For these three relations this means: the j-th row of a group goes with the j-th
row of that group on the other side, where a group is a value (bag), a key (keyed) or everything (total). So a whole
batch is matched at once, by a stable sort of both sides by group.

Cost of one `feed`, b rows against u unmatched rows of the other side:

- total: b. Keyed and bag: b too for the rows that come in the order of the other side.
- keyed, other order: b plus the unmatched rows of the other side, read oldest first in blocks until every row of the
  batch has found its partner; all u rows if one of them finds none.
- bag: nothing until as many rows are new as are unmatched (or `_BUFFER`), then one merge of all: constant per row.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from streamtight.errors import TraceError

Way = Literal["bag", "total", "keyed"]
"""Which rows keep their order: none, all, or those of one key."""

_Block = list[pa.Array]
"""Rows that lie together: their columns, and last their positions in the stream."""

_BLOCK = 16_384  # rows: the most that a small batch has to read at once
_SMALL = 1_024  # rows: smaller blocks are read together with the next
_BUFFER = 65_536  # rows of a bag that may wait to be merged
_DIGIT = 12  # bits: Arrow sorts integers of so small a range by counting, ten times as fast as by comparing
_HASH = 3 * _DIGIT  # bits: few rows of a block collide, and three rounds of counting sort them
_WIDEST = 1 << 62  # codes stay below, so that they never wrap

_SIDES = ("left", "right")
_UNITS = ("s", "ms", "us", "ns")
_INT64 = pa.int64()


@dataclass(frozen=True, slots=True)
class Conflict:
    """Why two streams differ: which row came, and which unmatched row of the other side had to come before it.

    `row` and `against` are tables of one row; positions count from 1. `against` is the oldest such row: one equal to it
    was expected in the place of `row`.
    """

    side: int
    position: int
    row: pa.Table
    against: pa.Table
    against_position: int


def supports(schema: pa.Schema) -> str | None:
    """Why rows of this schema cannot be matched by columns; None if they can.

    >>> supports(pa.schema({"x": pa.int64()})) is None
    True
    >>> supports(pa.schema({"x": pa.list_(pa.int64())}))
    "column 'x' is of type list<item: int64>, whose values are compared one by one"
    """
    if not schema.names:
        return "there are no columns"
    twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
    if twice:
        return f"several columns are called {', '.join(map(repr, twice))}"
    for field in schema:
        if _plain_type(field.type) is None:
            return f"column {field.name!r} is of type {field.type}, whose values are compared one by one"
    return None


class Columnar:
    """The matcher: feed it tables of both sides; False says that no continuation can make the streams equivalent.

    Values are equal as in events: null to null, NaN to NaN, 0.0 to -0.0. What is fed after a refutation is ignored.
    """

    seen: list[int]
    """How many rows each side was fed, to the end of the batch that refuted."""
    conflict: Conflict | None
    """The first row of the refuting batch that refutes; None as long as nothing is refuted."""

    def __init__(self, way: Way, *, key: tuple[str, ...] = ()) -> None:
        if way not in ("bag", "total", "keyed"):
            raise TraceError("Columnar(way)", needed="'bag', 'total' or 'keyed'", came=repr(way), hint="'bag'")
        if (way == "keyed") != bool(key):
            raise TraceError(
                f"Columnar({way!r}, key={key!r})",
                needed="key columns for 'keyed', and for nothing else",
                came=repr(key),
                hint="Columnar('keyed', key=('taxi_id',))",
            )
        self.way = way
        self.seen = [0, 0]
        self.conflict = None
        self._held = (_Held(), _Held())
        self._key_names = key
        # Columns as in the first batch, of types that hold the values of all batches; those that say which group a row
        # belongs to, and the others.
        self._names: list[str] = []
        self._types: list[pa.DataType] = []
        self._group: list[int] = []
        self._others: list[int] = []
        self._agreed = [pa.schema([]), pa.schema([])]  # the schema of the last batch of each side
        # Of a bag: how many rows came since both sides were matched, and how many were unmatched then.
        self._new = 0
        self._settled = 0
        self._weak_hash = False

    def feed(self, side: int, table: pa.Table | pa.RecordBatch) -> bool:
        """Can the streams still be made equivalent after these rows of this side, 0 for left and 1 for right?"""
        if side not in (0, 1) or not isinstance(table, pa.Table | pa.RecordBatch):
            raise TraceError(
                "feed(side, table)",
                needed="side 0 or 1, and a pyarrow Table or RecordBatch",
                came=f"side {side!r} and a {type(table).__name__}",
                hint="matcher.feed(0, table)",
            )
        if self.conflict is not None:
            return False
        for columns in self._plain_columns(side, table):
            size = len(columns[0])
            block = [*columns, _counting(size, self.seen[side] + 1)]
            self.seen[side] += size
            if self.conflict is None:  # a very large table is in several pieces, which all count as seen
                self._match(side, block)
        return self.conflict is None

    def unmatched_count(self, side: int) -> int:
        """How many rows of this side have no partner."""
        self._settle()
        return self._held[side].size

    def unmatched(self, side: int) -> tuple[pa.Table, list[int]]:
        """The rows of this side that have no partner, as they arrived, and their positions, which count from 1."""
        self._settle()
        blocks = list(self._held[side].blocks) or [self._nothing()]
        table = pa.concat_tables([self._table(block) for block in blocks])
        return table, [position for block in blocks for position in block[-1].to_pylist()]

    # -- matching ------------------------------------------------------------------------------------------------

    def _match(self, side: int, rows: _Block) -> None:
        own, other = self._held[side], self._held[1 - side]
        if self.way == "bag":
            own.append(rows)
            self._new += _size(rows)
            if self._new > max(_BUFFER, self._settled):
                self._settle()
            return
        rows = self._drop_common_prefix(rows, other)
        if self.way == "total":
            if _size(rows) and other.size:
                self._refute(side, rows, _Clash(0, other.blocks[0], 0))
                return
        else:
            rest = self._drop_partners(rows, other)
            while isinstance(rest, _Clash):
                # The rows before it are tried again without it: one of them may clash with a row further on.
                clash = rest
                rest = self._drop_partners(_slice(rows, 0, clash.row), other)
                if not isinstance(rest, _Clash):
                    self._refute(side, rows, clash)
            rows = rest
        own.append(rows)

    def _settle(self) -> None:
        """Match what a bag has put off."""
        if self._new and self._held[0].size and self._held[1].size:
            fewer, more = sorted(self._held, key=lambda held: held.size)
            rest = self._drop_partners(self._drop_common_prefix(fewer.take_front(fewer.size), more), more)
            if isinstance(rest, _Clash):
                raise AssertionError("rows of a bag never clash")  # pragma: no cover
            fewer.append(rest)
        self._new = 0
        self._settled = self._held[0].size + self._held[1].size

    def _drop_common_prefix(self, rows: _Block, other: _Held) -> _Block:
        """Drop as many rows from the front of both as are equal one by one. The other rows are returned."""
        while _size(rows) and other.size:
            front = other.blocks[0]
            size = min(_size(rows), _size(front))
            same = _common_prefix(rows, front, size)
            if same:
                other.drop_front(same)
                rows = _slice(rows, same)
            if same < size:
                break
        return rows

    def _drop_partners(self, rows: _Block, other: _Held) -> _Block | _Clash:
        """Drop the rows that go with a row of the other side, and those rows there. The other rows are returned.

        If two that go together are not equal, nothing is dropped, and the earliest of them that was found is returned.
        """
        windows: list[_Block] = []
        rests: list[_Block] = []
        left = rows
        while _size(left) and other.size:
            window = other.take_front(max(_size(left), _SMALL))
            windows.append(window)
            pairs = self._pairs(window, left)
            if not len(pairs.here):
                rests.append(window)
                continue
            differ = _differing(window, left, pairs, self._others)
            if differ is not None:
                row = pc.min(pairs.here.filter(differ))
                place = pairs.there[pc.index(pairs.here, row).as_py()].as_py()
                for each in reversed(windows):
                    other.put_back(each)
                # What is left of the rows is not in one piece any more; their positions tell which is which.
                return _Clash(left[-1][row.as_py()].as_py() - rows[-1][0].as_py(), window, place)
            rests.append(_take(window, pairs.rest_there))
            left = _take(left, pairs.rest_here)
        for each in reversed(rests):
            other.put_back(each)
        return left

    def _pairs(self, there: _Block, here: _Block) -> _Pairs:
        """Which rows go together: the first of a group with the first of that group, and so on."""
        if max(_size(there), _size(here)) > 4 * min(_size(there), _size(here)):
            return self._pairs_of_few(there, here)
        if self.way == "bag" and not self._weak_hash:
            hashes = _hashes(there, here, self._group)
            if hashes is not None:
                return self._pairs_by_hash(there, here, hashes)
        return _pairs_by_code(_exact_code(there, here, self._group), _size(there))

    def _pairs_of_few(self, there: _Block, here: _Block) -> _Pairs:
        """The pairs when one side is small: look only at the rows of the large side that may be meant."""
        size = _size(there)
        hashes = _hashes(there, here, self._group) if len(self._group) > 1 else None
        if hashes is None:
            mine, others = _comparable(here[self._group[0]]), _comparable(there[self._group[0]])
        else:
            mine, others = hashes.slice(size), hashes.slice(0, size)
        some_there, some_here = _counting(size), _counting(_size(here))
        if _size(here) < size:
            some_there = pc.indices_nonzero(pc.is_in(others, value_set=mine))
        else:
            some_here = pc.indices_nonzero(pc.is_in(mine, value_set=others))
        if not len(some_there) or not len(some_here):
            return _Pairs.of(_counting(0), size, _counting(0), _size(here))
        return self._pairs_among(there, some_there, here, some_here)

    def _pairs_among(self, there: _Block, some_there: pa.Array, here: _Block, some_here: pa.Array) -> _Pairs:
        """The pairs if only these rows can have a partner."""
        code = _exact_code(_take(there, some_there), _take(here, some_here), self._group)
        pairs = _pairs_by_code(code, len(some_there))
        return _Pairs.of(some_there.take(pairs.there), _size(there), some_here.take(pairs.here), _size(here))

    def _pairs_by_hash(self, there: _Block, here: _Block, hashes: pa.Array) -> _Pairs:
        """The pairs of a bag: by a hash, and once more exactly for the rows whose hash does not tell them apart."""
        size = _size(there)
        pairs = _pairs_by_code(_Code(hashes, _HASH), size)
        differ = _differing(there, here, pairs, self._group)
        if differ is None:
            return pairs
        # All pairs of a hash are equal, or none is trusted: the j-th row of a hash need not be the j-th of its value.
        shared = hashes.take(pairs.there.filter(differ)).unique()
        doubtful = pc.is_in(hashes, value_set=shared)
        some_there = pc.indices_nonzero(doubtful.slice(0, size))
        some_here = pc.indices_nonzero(doubtful.slice(size))
        # Many doubts: these columns do not tell rows apart, and will not do it the next time.
        self._weak_hash = len(some_here) > max(_SMALL, _size(here) // 4)
        again = self._pairs_among(there, some_there, here, some_here)
        sure = pc.invert(doubtful.take(pairs.there))
        return _Pairs.of(
            pa.concat_arrays([pairs.there.filter(sure), again.there]),
            size,
            pa.concat_arrays([pairs.here.filter(sure), again.here]),
            _size(here),
        )

    def _refute(self, side: int, rows: _Block, clash: _Clash) -> None:
        row, against = _slice(rows, clash.row, 1), _slice(clash.window, clash.place, 1)
        self.conflict = Conflict(
            side, row[-1][0].as_py(), self._table(row), self._table(against), against[-1][0].as_py()
        )

    # -- schemas -------------------------------------------------------------------------------------------------

    def _plain_columns(self, side: int, table: pa.Table | pa.RecordBatch) -> list[list[pa.Array]]:
        """The columns in the common order and types, in as few pieces as there can be."""
        if not table.schema.equals(self._agreed[side]):
            self._agree(side, table.schema)
            self._agreed[side] = table.schema
        if isinstance(table, pa.RecordBatch):
            pieces = [table]
        else:
            in_one_piece = all(column.num_chunks <= 1 for column in table.columns)
            pieces = (table if in_one_piece else table.combine_chunks()).to_batches()
        return [
            [
                _cast(piece.column(name), wanted, _where(side, name))
                for name, wanted in zip(self._names, self._types, strict=True)
            ]
            for piece in pieces
            if piece.num_rows
        ]

    def _agree(self, side: int, schema: pa.Schema) -> None:
        """Make the common schema wide enough for this one, or say why there is none."""
        reason = supports(schema)
        if reason is not None:
            raise TraceError(
                f"feed({side}, table)",
                needed="columns of plain values, each with its own name",
                came=reason,
                hint="feed these streams event by event",
            )
        if not self._types:
            self._first_schema(side, schema)
        if set(schema.names) != set(self._names):
            raise TraceError(
                f"feed({side}, table)",
                needed="the columns " + ", ".join(self._names),
                came=f"{', '.join(schema.names)} on the {_SIDES[side]}",
                hint="table.select([...]) or rename_columns, so that both sides have the same columns",
            )
        types = [
            self._common_type(side, name, known, schema.field(name).type)
            for name, known in zip(self._names, self._types, strict=True)
        ]
        if types != self._types:
            where = [_where(side, name) for name in self._names]
            # Both before either is kept: a value that does not fit must leave all as it was.
            cast = [held.cast(types, where) for held in self._held]
            for held, blocks in zip(self._held, cast, strict=True):
                held.blocks = blocks
            self._types = types

    def _first_schema(self, side: int, schema: pa.Schema) -> None:
        missing = [name for name in self._key_names if name not in schema.names]
        if missing:
            raise TraceError(
                f"Columnar('keyed', key={self._key_names!r})",
                needed="key columns that the tables have",
                came=f"a table with {', '.join(schema.names)} on the {_SIDES[side]}",
                hint=f"a key without {', '.join(missing)}",
            )
        self._names = list(schema.names)
        self._types = [_plain_type(field.type) for field in schema]
        group = set(self._key_names or self._names)
        self._group = [place for place, name in enumerate(self._names) if name in group]
        self._others = [place for place, name in enumerate(self._names) if name not in group]

    def _common_type(self, side: int, name: str, known: pa.DataType, new: pa.DataType) -> pa.DataType:
        wider = _wider(known, _plain_type(new))
        if wider is None:
            raise TraceError(
                _where(side, name),
                needed="types of which one holds all values of the other",
                came=f"{known} up to now, {new} on the {_SIDES[side]}",
                hint=f"cast column {name!r} of one side to the type of the other",
            )
        return wider

    def _table(self, block: _Block) -> pa.Table:
        return pa.table(block[:-1], names=self._names)

    def _nothing(self) -> _Block:
        return [*(pa.nulls(0, column) for column in self._types), pa.nulls(0, _INT64)]


@dataclass(frozen=True, slots=True)
class _Clash:
    """A row that must come after another one: its place among the fed ones, and the other's in a window."""

    row: int
    window: _Block
    place: int


@dataclass(frozen=True, slots=True)
class _Code:
    """Numbers of at most so many bits, for the rows there and then those here: equal if the rows are of one group."""

    numbers: pa.Array
    bits: int


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Rows that go together, as places in two blocks, side by side; and the places of all others, ascending."""

    there: pa.Array
    here: pa.Array
    rest_there: pa.Array
    rest_here: pa.Array

    @staticmethod
    def of(there: pa.Array, size_there: int, here: pa.Array, size_here: int) -> _Pairs:
        return _Pairs(there, here, _others(there, size_there), _others(here, size_here))


class _Held:
    """The unmatched rows of one side, oldest first, in blocks."""

    __slots__ = ("blocks", "size")

    def __init__(self) -> None:
        self.blocks: deque[_Block] = deque()
        self.size = 0

    def append(self, block: _Block) -> None:
        self.size += _size(block)
        for start in range(0, _size(block), _BLOCK):
            piece = _slice(block, start, _BLOCK)
            # A block joins one that is hardly larger, so that a row is copied a few times only, and blocks are few.
            while self.blocks and _size(self.blocks[-1]) < 2 * _size(piece):
                if _size(self.blocks[-1]) + _size(piece) > _BLOCK:
                    break
                piece = _joined([self.blocks.pop(), piece])
            self.blocks.append(_owned(piece))

    def take_front(self, least: int) -> _Block:
        """The oldest rows, at least so many if there are; they are held no more."""
        taken = [self.blocks.popleft()]
        count = _size(taken[0])
        while self.blocks and count < least:
            taken.append(self.blocks.popleft())
            count += _size(taken[-1])
        self.size -= count
        return _joined(taken)

    def put_back(self, block: _Block) -> None:
        """Hold these rows again, as the oldest."""
        self.size += _size(block)
        for start in reversed(range(0, _size(block), _BLOCK)):
            self.blocks.appendleft(_owned(_slice(block, start, _BLOCK)))

    def drop_front(self, count: int) -> None:
        """Hold the oldest rows no more; they are all in the first block."""
        self.size -= count
        first = self.blocks.popleft()
        if count < _size(first):
            self.blocks.appendleft(_owned(_slice(first, count)))

    def cast(self, types: list[pa.DataType], where: list[str]) -> deque[_Block]:
        """The blocks with columns of these types."""
        return deque(
            [*(_cast(*column) for column in zip(block[:-1], types, where, strict=True)), block[-1]]
            for block in self.blocks
        )


# -- blocks ----------------------------------------------------------------------------------------------------------


def _size(block: _Block) -> int:
    return len(block[-1])


def _slice(block: _Block, start: int, length: int | None = None) -> _Block:
    return [column.slice(start, length) for column in block]


def _take(block: _Block, places: pa.Array) -> _Block:
    return [column.take(places) for column in block]


def _joined(blocks: list[_Block]) -> _Block:
    return blocks[0] if len(blocks) == 1 else [pa.concat_arrays(columns) for columns in zip(*blocks, strict=True)]


def _owned(block: _Block) -> _Block:
    """The same rows, copied if they are a small part of what they keep in memory."""
    return [
        pa.concat_arrays([column]) if column.get_total_buffer_size() > 2 * column.nbytes + 1024 else column
        for column in block
    ]


def _counting(size: int, start: int = 0) -> pa.Array:
    """So many numbers, one more each time."""
    if hasattr(pa, "arange"):  # from pyarrow 21
        return pa.arange(start, start + size)
    return pc.cumulative_sum(pa.repeat(pa.scalar(1, _INT64), size), start=start - 1)


def _others(places: pa.Array, size: int) -> pa.Array:
    """The places below `size` that are not among these, ascending."""
    if not len(places):
        return _counting(size)
    # Every place is told the next one that is taken: a run of places ends with it.
    taken = _ascending(places).cast(_INT64)
    ends, nexts = pc.add(taken, _ONE), taken
    if ends[-1].as_py() < size:
        ends, nexts = (pa.concat_arrays([each, pa.array([size], _INT64)]) for each in (ends, nexts))
    counting = _counting(size)
    return counting.filter(pc.not_equal(counting, _spread(nexts, ends)))


def _spread(values: pa.Array, ends: pa.Array) -> pa.Array:
    """Each value for all places from the end before to its own."""
    return pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(ends, values))


_ONE = pa.scalar(1, _INT64)


# -- equality --------------------------------------------------------------------------------------------------------


def _comparable(column: pa.Array) -> pa.Array:
    """The column such that Arrow finds equal what is equal in events: floats are their bits, with one NaN and one 0."""
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), pa.int8())
    if not pa.types.is_floating(column.type):
        return column
    numbers = pc.add(column.cast(pa.float64()), _ZERO)  # -0.0 + 0.0 is 0.0
    if pc.any(pc.is_nan(numbers)).as_py():
        numbers = pc.if_else(pc.is_nan(numbers), _NAN, numbers)
    return numbers.view(_INT64)


_ZERO = pa.scalar(0.0, pa.float64())
_NAN = pa.scalar(float("nan"), pa.float64())


def _common_prefix(one: _Block, other: _Block, size: int) -> int:
    """How many of the first rows are equal one by one."""
    for mine, others in zip(one[:-1], other[:-1], strict=True):
        a, b = _comparable(mine.slice(0, size)), _comparable(others.slice(0, size))
        if not a.equals(b):
            size = pc.index(_equal(a, b), _FALSE).as_py()
    return size


_FALSE = pa.scalar(False)


def _differing(there: _Block, here: _Block, pairs: _Pairs, columns: list[int]) -> pa.Array | None:
    """Which pairs are not equal in these columns; None if all are."""
    equal = None
    for column in columns:
        a = _comparable(there[column].take(pairs.there))
        b = _comparable(here[column].take(pairs.here))
        if not a.equals(b):
            equal = _equal(a, b) if equal is None else pc.and_(equal, _equal(a, b))
    return None if equal is None else pc.invert(equal)


def _equal(a: pa.Array, b: pa.Array) -> pa.Array:
    """Which values are equal, null to null too."""
    equal = pc.equal(a, b)
    if equal.null_count:
        equal = pc.if_else(pc.is_null(equal), pc.and_(pc.is_null(a), pc.is_null(b)), equal)
    return equal


# -- which rows go together ------------------------------------------------------------------------------------------


def _pairs_by_code(code: _Code, split: int) -> _Pairs:
    """Pair the j-th row of a code below `split` with the j-th of that code from there on."""
    order = _stable_order(code)
    border = pa.scalar(split, order.type)
    late = pc.greater_equal(order, border)
    paired = _paired(code.numbers.take(order), late)
    single = pc.invert(paired)
    # In the order of the codes, and of arrival for each, both sides of the pairs stand side by side.
    return _Pairs(
        order.filter(pc.and_not(paired, late)),
        pc.subtract(order.filter(pc.and_(paired, late)), border),
        _ascending(order.filter(pc.and_not(single, late))),
        _ascending(pc.subtract(order.filter(pc.and_(single, late)), border)),
    )


def _paired(groups: pa.Array, late: pa.Array) -> pa.Array:
    """For rows sorted by group, and in it by side: which of them have a partner, that is, are not surplus?"""
    size = len(late)
    same_group = pa.concat_arrays([_NO, pc.equal(groups.slice(1), groups.slice(0, size - 1))])
    other_side = pa.concat_arrays([_NO, pc.xor(late.slice(1), late.slice(0, size - 1))])
    # A run is what one side has of one group. The other side's run, if there is one, is just after or just before.
    first = pc.or_(pc.invert(same_group), other_side)
    if first.true_count == size:  # no side has two of a group, so that partners are neighbours
        return pc.or_(same_group, pa.concat_arrays([same_group.slice(1), _NO]))
    places = _counting(size)
    starts, second = places.filter(first), same_group.filter(first)
    ends = pa.concat_arrays([starts.slice(1), pa.array([size], _INT64)])
    lengths = pc.subtract(ends, starts)
    before = pa.concat_arrays([_NONE, lengths.slice(0, len(lengths) - 1)])
    after = pc.if_else(pa.concat_arrays([second.slice(1), _NO]), pa.concat_arrays([lengths.slice(1), _NONE]), _NONE[0])
    partners = pc.if_else(second, before, after)
    paired_end = pc.add(starts, pc.if_else(pc.less(partners, lengths), partners, lengths))
    return pc.less(places, _spread(paired_end, ends))


_NO = pa.array([False])
_NONE = pa.array([0], _INT64)


def _ascending(places: pa.Array) -> pa.Array:
    if len(places) < 2:
        return places
    return places.take(_stable_order(_Code(places.cast(_INT64), pc.max(places).as_py().bit_length())))


def _stable_order(code: _Code) -> pa.Array:
    """The places in the order of the numbers, equal numbers as they came: by one digit after the other, last first."""
    numbers = code.numbers
    order = None
    for shift in range(0, max(code.bits, 1), _DIGIT):
        digit = numbers if order is None else numbers.take(order)
        if shift:
            digit = pc.shift_right(digit, pa.scalar(shift, _INT64))
        if code.bits > shift + _DIGIT:
            digit = pc.bit_wise_and(digit, _DIGIT_MASK)
        step = pc.array_sort_indices(digit)
        order = step if order is None else order.take(step)
    return order


_DIGIT_MASK = pa.scalar((1 << _DIGIT) - 1, _INT64)


# -- numbers for groups ----------------------------------------------------------------------------------------------


def _hashes(there: _Block, here: _Block, columns: list[int]) -> pa.Array | None:
    """A hash of each row by those columns that are numbers; None if there are none."""
    total = None
    for column in columns:
        numbers = _numbers(pa.concat_arrays([_comparable(there[column]), _comparable(here[column])]))
        if numbers is None:
            continue
        if numbers.null_count:
            numbers = pc.fill_null(numbers, _NULL_HASH)
        numbers = pc.multiply(numbers, _ODD[column % len(_ODD)])
        total = numbers if total is None else pc.add(total, numbers)
    # The upper bits depend on all others.
    return None if total is None else pc.bit_wise_and(pc.shift_right(total, _UPPER), _HASH_MASK)


_NULL_HASH = pa.scalar(0x2545F4914F6CDD1D, _INT64)
_ODD = [pa.scalar((0x9E3779B97F4A7C15 * (2 * n + 1) ** 5 % 2**64 | 1) - 2**63, _INT64) for n in range(64)]
_UPPER = pa.scalar(64 - _HASH, _INT64)
_HASH_MASK = pa.scalar((1 << _HASH) - 1, _INT64)


def _exact_code(there: _Block, here: _Block, columns: list[int]) -> _Code:
    """Numbers that are equal exactly for rows that are equal in these columns."""
    total, total_size = None, 1
    for column in columns:
        numbers, size = _ranks(pa.concat_arrays([_comparable(there[column]), _comparable(here[column])]))
        if total is None:
            total, total_size = numbers, size
            continue
        if total_size * size > _WIDEST:
            total, total_size = _dictionary_ranks(total)
        if total_size * size > _WIDEST:
            numbers, size = _dictionary_ranks(numbers)
        total = pc.add(pc.multiply(total, pa.scalar(size, _INT64)), numbers)
        total_size *= size
    return _Code(total, (total_size - 1).bit_length())


def _ranks(column: pa.Array) -> tuple[pa.Array, int]:
    """A number from 0 on for each value, and how many numbers there can be."""
    numbers = _numbers(column)
    if numbers is not None and numbers.null_count < len(numbers):
        least, most = pc.min_max(numbers).values()
        size = most.as_py() - least.as_py() + 1
        if size < _WIDEST:
            numbers = pc.subtract(numbers, least)
            if numbers.null_count:
                return pc.fill_null(numbers, pa.scalar(size, _INT64)), size + 1
            return numbers, size
    return _dictionary_ranks(column)


def _dictionary_ranks(column: pa.Array) -> tuple[pa.Array, int]:
    encoded = column.dictionary_encode(null_encoding="encode")
    return encoded.indices.cast(_INT64), max(len(encoded.dictionary), 1)


def _numbers(column: pa.Array) -> pa.Array | None:
    """The column as 64-bit integers, one for each value; None if its values are wider than that."""
    kind = column.type
    if kind == _INT64:
        return column
    if pa.types.is_uint64(kind) or (pa.types.is_temporal(kind) and kind.bit_width == 64):
        return column.view(_INT64)
    if pa.types.is_temporal(kind):
        return column.view(pa.int32()).cast(_INT64)
    return column.cast(_INT64) if pa.types.is_integer(kind) or pa.types.is_boolean(kind) else None


# -- types -----------------------------------------------------------------------------------------------------------


def _plain_type(given: pa.DataType) -> pa.DataType | None:
    """The type that such a column is held in; None if it cannot be matched by columns."""
    types = pa.types
    if types.is_dictionary(given):
        return _plain_type(given.value_type)
    if types.is_date(given):
        return pa.date32()
    if types.is_float16(given):
        return pa.float32()
    if types.is_decimal(given) and given.bit_width < 128:
        return pa.decimal128(given.precision, given.scale)
    if _is_text(given) or _is_bytes(given):
        if types.is_fixed_size_binary(given) or str(given).endswith("_view"):
            return pa.string() if _is_text(given) else pa.binary()
        return given
    if isinstance(given, pa.BaseExtensionType) or types.is_interval(given):
        return None
    plain = types.is_primitive(given) or types.is_decimal(given) or types.is_null(given)
    return given if plain else None


def _wider(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """A type that has every value of these two plain types, as the same value; None if there is none."""
    types = pa.types
    if one == other or types.is_null(other):
        return one
    if types.is_null(one):
        return other
    if types.is_integer(one) and types.is_integer(other):
        return _wider_integer(one, other)
    if types.is_floating(one) and types.is_floating(other):
        return one if one.bit_width > other.bit_width else other
    if _is_text(one) and _is_text(other):
        return pa.large_string()
    if _is_bytes(one) and _is_bytes(other):
        return pa.large_binary()
    if types.is_decimal(one) and types.is_decimal(other):
        scale = max(one.scale, other.scale)
        precision = max(one.precision - one.scale, other.precision - other.scale) + scale
        if precision > 76:
            return None
        return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
    for same in (types.is_timestamp, types.is_duration, types.is_time):
        if same(one) and same(other):
            return _wider_time(one, other)
    return None


def _wider_integer(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if pa.types.is_signed_integer(one) == pa.types.is_signed_integer(other):
        return one if one.bit_width > other.bit_width else other
    signed, unsigned = (one, other) if pa.types.is_signed_integer(one) else (other, one)
    if signed.bit_width > unsigned.bit_width:
        return signed
    return {8: pa.int16(), 16: pa.int32(), 32: pa.int64()}.get(unsigned.bit_width)


def _wider_time(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    unit = max(one.unit, other.unit, key=_UNITS.index)
    if pa.types.is_duration(one):
        return pa.duration(unit)
    if pa.types.is_time(one):
        return pa.time64(unit) if unit in ("us", "ns") else pa.time32(unit)
    # With a time zone it is an instant, and the zone only how it is shown; without one it is something else.
    return pa.timestamp(unit, one.tz) if (one.tz is None) == (other.tz is None) else None


def _is_text(given: pa.DataType) -> bool:
    return pa.types.is_string(given) or pa.types.is_large_string(given) or str(given) == "string_view"


def _is_bytes(given: pa.DataType) -> bool:
    types = pa.types
    return (
        types.is_binary(given)
        or types.is_large_binary(given)
        or (types.is_fixed_size_binary(given) and not types.is_decimal(given))
        or str(given) == "binary_view"
    )


def _where(side: int, name: str) -> str:
    return f"feed({side}, table), column {name!r}"


def _cast(column: pa.Array, wanted: pa.DataType, where: str) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.type == wanted:
        return column
    try:
        return column.cast(wanted)
    except pa.ArrowInvalid as error:
        raise TraceError(
            where,
            needed=f"values that fit {wanted}, the common type of both sides",
            came=str(error),
            hint="cast this column to one type on both sides",
        ) from None
