"""The columnar matcher beside its slow twin, which takes row after row and looks through a plain list."""

from __future__ import annotations

import gc
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamtight.errors import TraceError
from streamtight.method.compare import columnar
from streamtight.method.compare.columnar import Columnar, supports

Row = tuple[Any, ...]
NAN = math.nan  # one object, so that it is equal to itself in tuples


# -- the twin ------------------------------------------------------------------------------------------------------


@dataclass
class Twin:
    """Scan the other side, oldest first: equal, then drop it; dependent, then refuted; neither, then wait."""

    depends: Callable[[Row, Row], bool]
    queues: tuple[list[tuple[int, Row]], list[tuple[int, Row]]] = field(default_factory=lambda: ([], []))
    seen: list[int] = field(default_factory=lambda: [0, 0])
    conflict: tuple[int, int, Row, int, Row] | None = None

    def feed(self, side: int, rows: list[Row]) -> bool:
        if self.conflict is None:
            first = self.seen[side] + 1
            self.seen[side] += len(rows)
            for position, row in enumerate(rows, start=first):
                if not self.take(side, position, row):
                    break
        return self.conflict is None

    def take(self, side: int, position: int, row: Row) -> bool:
        other = self.queues[1 - side]
        for place, (waiting_position, waiting) in enumerate(other):
            if alike(waiting) == alike(row):
                del other[place]
                return True
            if self.depends(alike(waiting), alike(row)):
                self.conflict = (side, position, row, waiting_position, waiting)
                return False
        self.queues[side].append((position, row))
        return True


def alike(row: Row) -> Row:
    return tuple(NAN if isinstance(value, float) and math.isnan(value) else value for value in row)


def twin_of(way: str, places: list[int]) -> Twin:
    if way == "bag":
        return Twin(lambda one, other: False)
    if way == "total":
        return Twin(lambda one, other: True)
    return Twin(lambda one, other: all(one[p] == other[p] or one[p] is other[p] for p in places))


def rows_of(table: pa.Table | pa.RecordBatch, names: list[str]) -> list[Row]:
    return [tuple(row[name] for name in names) for row in table.to_pylist()]


def assert_same_state(matcher: Columnar, twin: Twin, names: list[str]) -> None:
    for side in (0, 1):
        table, positions = matcher.unmatched(side)
        assert positions == [position for position, _ in twin.queues[side]]
        # As text, since a row that waits is given back as it came: -0.0, not 0.0.
        assert repr(rows_of(table, names)) == repr([row for _, row in twin.queues[side]])
        assert matcher.unmatched_count(side) == len(twin.queues[side])


def assert_same_conflict(matcher: Columnar, twin: Twin, names: list[str]) -> None:
    assert (matcher.conflict is None) == (twin.conflict is None)
    if matcher.conflict is not None:
        found = matcher.conflict
        [row], [against] = rows_of(found.row, names), rows_of(found.against, names)
        assert repr((found.side, found.position, row, found.against_position, against)) == repr(twin.conflict)


# -- what both are given -------------------------------------------------------------------------------------------

# Few values of each type, so that rows are often equal; among them those that are easily got wrong.
VALUES: dict[pa.DataType, list[Any]] = {
    pa.int64(): [0, 1, None, -1, 2**61, 2**63 - 1, -(2**63)],
    pa.int8(): [0, 1, None, -128],
    pa.uint64(): [0, 2**64 - 1, None, 2**63],
    pa.float64(): [0.0, -0.0, NAN, -NAN, None, -math.inf],
    pa.float32(): [0.0, -0.0, NAN, -NAN, None],
    pa.string(): ["", "a", None, "a\0", "zürich"],
    pa.large_string(): ["", "a", None],
    pa.dictionary(pa.int8(), pa.string()): ["", "a", None],
    pa.binary(): [b"", b"a", None, b"\0"],
    pa.binary(2): [b"ab", b"\0\0", None],
    pa.bool_(): [True, False, None],
    pa.decimal128(38, 2): [Decimal("0.00"), Decimal("1.50"), None, Decimal(f"{10**35}.00")],
    pa.decimal256(60, 0): [Decimal(0), Decimal(10**50), None],
    pa.date32(): [date(2024, 1, 1), date(1, 1, 1), None],
    pa.timestamp("us"): [datetime(2024, 1, 1), datetime(1, 1, 1), None],
    pa.timestamp("us", "UTC"): [datetime(2024, 1, 1, tzinfo=UTC), None],
    pa.time64("us"): [time(1), time(2, 3), None],
    pa.time32("s"): [time(1), None],
    pa.duration("us"): [timedelta(0), timedelta(-1), None],
    pa.null(): [None],
}
COMMON = [pa.int64(), pa.int64(), pa.float64(), pa.string()]


@dataclass
class Case:
    way: str
    key: tuple[str, ...]
    types: list[pa.DataType]
    batches: list[tuple[int, list[Row]]]
    turned: bool
    record_batches: bool
    pieces: int
    look: bool

    @property
    def names(self) -> list[str]:
        return [f"c{place}" for place in range(len(self.types))]

    def table(self, side: int, rows: list[Row]) -> pa.Table | pa.RecordBatch:
        columns = [pa.array([row[p] for row in rows], kind) for p, kind in enumerate(self.types)]
        named = dict(zip(self.names, columns, strict=True))
        if self.turned and side:
            named = dict(reversed(named.items()))
        if self.record_batches:
            return pa.record_batch(named)
        whole = pa.table(named)
        step = max(1, math.ceil(len(rows) / self.pieces))
        return pa.concat_tables([whole.slice(start, step) for start in range(0, max(len(rows), 1), step)])


SIZES = st.sampled_from([3, 2, 6, 1, 10, 15, 20, 0])  # left alone, Hypothesis draws hardly more than a row or two


@st.composite
def cases(draw: st.DrawFn) -> Case:
    types = draw(st.lists(st.sampled_from(COMMON) | st.sampled_from(list(VALUES)), min_size=1, max_size=3))
    domain = st.tuples(*(st.sampled_from(VALUES[kind]) for kind in types))
    pool = draw(st.lists(domain, min_size=1, max_size=6))
    key = draw(st.lists(st.sampled_from(range(len(types))), min_size=1, max_size=2, unique=True))
    way = draw(st.sampled_from(["keyed", "keyed", "bag", "total"]))
    left, right = draw(lists(pool)), draw(lists(pool))
    order = draw(st.sampled_from(["key by key", "any", "same", "other rows"]))
    if order == "same":
        right = left
    elif order == "any":
        right = draw(st.permutations(left))
    elif order == "key by key":  # an equivalent order: that of each key is kept
        turns = draw(st.permutations(range(len(pool))))
        right = sorted(left, key=lambda row: turns[first_of_its_key(row, pool, key)])
    if right and draw(st.booleans()):  # a row is lost, or another one stands in its place
        place = draw(st.integers(0, len(right) - 1))
        right = [*right[:place], *draw(st.lists(st.sampled_from(pool), max_size=1)), *right[place + 1 :]]
    batches = []
    rest = [left, list(right)]
    side = 0
    while any(rest):
        size = draw(SIZES)
        batches.append((side, rest[side][:size]))
        rest[side] = rest[side][size:]
        side = draw(st.sampled_from([1 - side, side])) if rest[1 - side] else side
        side = side if rest[side] else 1 - side
    return Case(
        way,
        tuple(f"c{place}" for place in key) if way == "keyed" else (),
        types,
        batches,
        turned=draw(st.booleans()),
        record_batches=draw(st.booleans()),
        pieces=draw(st.integers(1, 3)),
        look=draw(st.booleans()),
    )


def lists(pool: list[Row]) -> st.SearchStrategy[list[Row]]:
    return SIZES.flatmap(lambda size: st.lists(st.sampled_from(pool), min_size=size, max_size=size))


def first_of_its_key(row: Row, pool: list[Row], places: list[int]) -> int:
    keys = [tuple(alike(each)[place] for place in places) for each in pool]
    return keys.index(tuple(alike(row)[place] for place in places))


SMALL = {"_BLOCK": 3, "_SMALL": 1, "_BUFFER": 2}
TINY = {"_BLOCK": 1, "_SMALL": 1, "_BUFFER": 0}


@contextmanager
def tuned(sizes: dict[str, int], *, weak: bool) -> Iterator[None]:
    """With blocks and buffers of these sizes, and a hash of one bit if it is to be weak, so that most rows collide."""
    real = columnar._hashes

    def one_bit(*blocks: Any) -> pa.Array | None:
        hashes = real(*blocks)
        return None if hashes is None else pc.bit_wise_and(hashes, pa.scalar(1, pa.int64()))

    with mock.patch.multiple(columnar, _hashes=one_bit if weak else real, **sizes):
        yield


@settings(max_examples=150, deadline=None)
@given(case=cases(), sizes=st.sampled_from([{}, SMALL, TINY]), weak=st.booleans())
def test_verdict_batch_conflict_and_state_are_those_of_the_twin(case: Case, sizes: dict[str, int], weak: bool) -> None:
    matcher = Columnar(case.way, key=case.key)
    twin = twin_of(case.way, [case.names.index(name) for name in case.key])

    with tuned(sizes, weak=weak):
        for side, rows in case.batches:
            table = case.table(side, rows)
            assert matcher.feed(side, table) == twin.feed(side, rows_of(table, case.names))
            assert matcher.seen == twin.seen
            if case.look:
                assert_same_state(matcher, twin, case.names)
        assert_same_conflict(matcher, twin, case.names)
        assert_same_state(matcher, twin, case.names)


@pytest.mark.parametrize("kind", [kind for kind in VALUES if not pa.types.is_null(kind)], ids=str)
@pytest.mark.parametrize("way", ["bag", "keyed", "total"])
def test_values_of_every_type_are_told_apart(kind: pa.DataType, way: str) -> None:
    different = {repr(value).replace("-0.0", "0.0"): value for value in VALUES[kind]}.values()
    for one in different:
        for other in different:
            matcher = Columnar(way, key=("k",) if way == "keyed" else ())
            matcher.feed(0, pa.table({"k": [1], "v": pa.array([one], kind)}))
            matcher.feed(1, pa.table({"k": [1], "v": pa.array([other], kind)}))
            assert (matcher.unmatched_count(0) == 0) == (one is other)
            assert (matcher.conflict is None) == (one is other or way == "bag")


@pytest.mark.parametrize("way", ["bag", "keyed", "total"])
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
def test_there_is_one_nan_and_one_zero(kind: pa.DataType, way: str) -> None:
    matcher = Columnar(way, key=("v",) if way == "keyed" else ())

    matcher.feed(0, pa.table({"v": pa.array([NAN, 0.0, -NAN, -0.0, None], kind)}))
    matcher.feed(1, pa.table({"v": pa.array([-NAN, -0.0, NAN, 0.0, None], kind)}))

    assert (matcher.conflict, matcher.unmatched_count(0), matcher.unmatched_count(1)) == (None, 0, 0)


def test_wide_numbers_of_two_key_columns_do_not_run_into_each_other() -> None:
    matcher = Columnar("keyed", key=("i", "j"))

    # Eight values in the second: in 64 bits, 8 * 2**61 is 0.
    second = [0, 2**61, 1, 2, 3, 4, 5, 6]
    assert matcher.feed(0, pa.table({"i": [2**61, *[0] * 7], "j": second, "v": [1] * 8}))
    assert matcher.feed(1, pa.table({"i": [0] * 8, "j": second, "v": [2, *[1] * 7]}))

    assert (matcher.unmatched(0)[1], matcher.unmatched(1)[1]) == ([1], [1])


# -- which row refutes -----------------------------------------------------------------------------------------------


def test_of_two_rows_that_clash_the_one_that_came_first_refutes() -> None:
    matcher = Columnar("keyed", key=("k",))
    matcher.feed(0, pa.table({"k": [1, 2], "v": [0, 0]}))

    matcher.feed(1, pa.table({"k": [2, 1], "v": [9, 9]}))

    assert matcher.conflict is not None
    assert (matcher.conflict.position, matcher.conflict.against_position) == (1, 2)


def test_the_one_that_came_first_refutes_also_if_it_clashes_with_a_row_of_a_later_block() -> None:
    matcher = Columnar("keyed", key=("k",))
    with tuned({"_BLOCK": 2, "_SMALL": 1}, weak=False):
        matcher.feed(0, pa.table({"k": range(1, 13), "v": [0] * 12}))

        matcher.feed(1, pa.table({"k": [2, 12, 9, 4], "v": [0, 0, 9, 9]}))

        assert matcher.conflict is not None
        assert (matcher.conflict.position, matcher.conflict.against_position) == (3, 9)
        assert matcher.unmatched(0)[1] == [1, *range(3, 12)]
        assert matcher.unmatched(1)[1] == []


@pytest.mark.parametrize("way", ["bag", "keyed"])
@pytest.mark.parametrize("group", [("n",), ("s",), ("n", "s")], ids="+".join)
def test_few_rows_find_their_partners_among_many_and_many_among_few(way: str, group: tuple[str, ...]) -> None:
    columns = {
        "n": [n % 50 for n in range(100)],
        "s": [f"{n % 50}" for n in range(100)],
        "v": [n // 50 for n in range(100)],
    }
    many = pa.table(columns) if way == "keyed" else pa.table(columns).select(group)
    few = many.take([99 - 50, 7, 99])
    small, large = (Columnar(way, key=group if way == "keyed" else ()) for _ in range(2))

    small.feed(0, many)
    small.feed(1, few)
    large.feed(1, few)
    large.feed(0, many)

    expected = [n for n in range(1, 101) if n not in (50, 8, 100)]
    assert (small.conflict, small.unmatched(0)[1], small.unmatched(1)[1]) == (None, expected, [])
    assert (large.conflict, large.unmatched(0)[1], large.unmatched(1)[1]) == (None, expected, [])


# -- many rows: sorts by digits, hashes, blocks ----------------------------------------------------------------------


def big_streams(rng: random.Random, rows: int, keys: int, values: int) -> tuple[list[Row], list[Row]]:
    """Two equivalent streams: the order of each key is kept."""
    left = [(f"k{rng.randrange(keys)}", rng.randrange(keys), rng.randrange(values) / 4) for _ in range(rows)]
    queues: dict[Row, list[Row]] = {}
    for row in reversed(left):
        queues.setdefault(row[:2], []).append(row)
    right = [row[:2] for row in left]
    for start in range(0, rows, 3_000):
        block = right[start : start + 3_000]
        rng.shuffle(block)
        right[start : start + 3_000] = block
    return left, [queues[key].pop() for key in right]


def big_table(rows: list[Row]) -> pa.Table:
    return pa.table(
        {"j": [r[0] for r in rows], "k": [r[1] for r in rows], "v": pa.array([r[2] for r in rows], pa.float64())}
    )


@pytest.mark.parametrize("key", [("k",), ("j",), ("j", "k"), ()], ids=["number", "text", "both", "bag"])
@pytest.mark.parametrize(("keys", "values"), [(3, 10**6), (3, 5), (20_000, 10**6)], ids=["few", "equal", "many"])
@pytest.mark.parametrize("batch", [700, 12_000])
def test_long_streams_are_matched_and_the_refuting_row_is_found(
    key: tuple[str, ...], keys: int, values: int, batch: int
) -> None:
    rng = random.Random(f"{key} {keys} {values} {batch}")
    left, right = big_streams(rng, 12_000, keys, values)
    wrong = rng.randrange(9_000, 11_000)
    right[wrong] = (*right[wrong][:2], -1.0)
    # By one of the two key columns the streams are not equivalent, and are refuted where the queues say.
    matcher = Columnar("keyed" if key else "bag", key=key)

    refuted = None
    for start in range(0, len(left), batch):
        assert matcher.feed(0, big_table(left[start : start + batch])) or refuted is not None
        if not matcher.feed(1, big_table(right[start : start + batch])) and refuted is None:
            refuted = start

    if not key:
        assert refuted is None
        surplus = Counter(left) - Counter(right)
        table, positions = matcher.unmatched(0)
        assert Counter(rows_of(table, ["j", "k", "v"])) == surplus
        assert [left[position - 1] for position in positions] == rows_of(table, ["j", "k", "v"])
        assert matcher.unmatched(1)[1] == [wrong + 1]
        return
    expected = first_refutation(left, right, batch, [("j", "k").index(name) for name in key])
    assert matcher.conflict is not None
    assert (matcher.conflict.side, matcher.conflict.position, matcher.conflict.against_position) == expected
    assert refuted is not None
    assert refuted < expected[1] <= refuted + batch or expected[0] == 0


def first_refutation(left: list[Row], right: list[Row], batch: int, places: list[int]) -> tuple[int, int, int]:
    """Where a queue for each key says no: the twin, made quick enough for many rows."""
    waiting: tuple[dict[Row, list[tuple[int, Row]]], ...] = ({}, {})
    for start in range(0, len(left), batch):
        for side, stream in enumerate((left, right)):
            for position, row in enumerate(stream[start : start + batch], start=start + 1):
                key = tuple(row[place] for place in places)
                queue = waiting[1 - side].get(key)
                if not queue:
                    waiting[side].setdefault(key, []).append((position, row))
                elif queue[0][1] == row:
                    queue.pop(0)
                else:
                    return side, position, queue[0][0]
    raise AssertionError("these streams differ")


def test_a_bag_whose_numbers_say_little_is_matched_by_its_text() -> None:
    names = [f"name {n}" for n in range(5_000)]
    matcher = Columnar("bag")

    matcher.feed(0, pa.table({"name": names, "n": [1] * 5_000}))
    matcher.feed(1, pa.table({"name": [*reversed(names[1:]), "other"], "n": [1] * 5_000}))

    assert matcher.unmatched(0)[1] == [1]
    assert matcher.unmatched(1)[1] == [5_000]


# -- memory --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["bag", "total", "keyed"])
def test_what_is_matched_is_not_kept(way: str) -> None:
    rows = 50_000
    table = pa.table({"k": pa.array(range(rows)), "v": pa.array(range(rows))})
    matcher = Columnar(way, key=("k",) if way == "keyed" else ())
    matcher.feed(0, pa.table({"k": [-1], "v": [0]}) if way != "total" else table.slice(0, 0))
    gc.collect()
    before = pa.total_allocated_bytes()

    for _ in range(8):
        matcher.feed(0, table)
        matcher.feed(1, table)

    assert pa.total_allocated_bytes() - before < 5_000_000  # 8 tables are 6,400,000 bytes, a buffer less than 4,000,000
    assert matcher.unmatched_count(0) + matcher.unmatched_count(1) == (way != "total")
    assert pa.total_allocated_bytes() - before < 100_000


@pytest.mark.parametrize("way", ["bag", "total", "keyed"])
def test_a_small_part_of_a_large_table_does_not_keep_the_table(way: str) -> None:
    matcher = Columnar(way, key=("k",) if way == "keyed" else ())
    gc.collect()
    before = pa.total_allocated_bytes()

    table = pa.table({"k": pa.array(range(100_000)), "v": pa.array(range(100_000))})
    matcher.feed(0, table.slice(70_000, 10))
    del table

    assert pa.total_allocated_bytes() - before < 50_000


def test_many_small_batches_are_kept_in_few_blocks() -> None:
    matcher = Columnar("total")

    for n in range(500):
        matcher.feed(0, pa.record_batch({"v": [n]}))

    assert len(matcher._held[0].blocks) < 20
    assert matcher.unmatched(0)[1] == list(range(1, 501))


# -- schemas -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("one", "other", "value"),
    [
        (pa.int32(), pa.int64(), 7),
        (pa.uint8(), pa.int8(), 7),
        (pa.uint32(), pa.int32(), 7),
        (pa.uint16(), pa.uint64(), 7),
        (pa.float32(), pa.float64(), 0.5),
        (pa.float16(), pa.float64(), 0.5),
        (pa.string(), pa.large_string(), "a"),
        (pa.dictionary(pa.int32(), pa.string()), pa.string(), "a"),
        (pa.binary(), pa.binary(1), b"a"),
        (pa.binary(), pa.large_binary(), b"a"),
        (pa.decimal128(5, 2), pa.decimal128(6, 1), Decimal("1.5")),
        (pa.decimal128(38, 0), pa.decimal128(38, 30), Decimal(2)),
        (pa.date32(), pa.date64(), date(2024, 1, 1)),
        (pa.timestamp("ms"), pa.timestamp("ns"), datetime(2024, 1, 1)),
        (pa.timestamp("us", "UTC"), pa.timestamp("us", "+02:00"), datetime(2024, 1, 1, tzinfo=UTC)),
        (pa.time32("ms"), pa.time64("us"), time(1)),
        (pa.duration("s"), pa.duration("us"), timedelta(1)),
        (pa.null(), pa.string(), None),
    ],
    ids=str,
)
def test_types_of_different_width_are_compared_in_the_wider(
    one: pa.DataType, other: pa.DataType, value: Any, turned: bool
) -> None:
    if turned:
        one, other = other, one
    matcher = Columnar("total")

    matcher.feed(0, pa.table({"x": pa.array([value, None], one)}))
    assert matcher.feed(1, pa.table({"x": pa.array([value], other)}))

    table, positions = matcher.unmatched(0)
    assert (table.to_pylist(), positions) == ([{"x": None}], [2])


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.int64(), pa.string()),
        (pa.int64(), pa.uint64()),
        (pa.int64(), pa.float64()),
        (pa.int8(), pa.bool_()),
        (pa.string(), pa.binary()),
        (pa.decimal256(76, 0), pa.decimal256(76, 1)),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.timestamp("us"), pa.date32()),
        (pa.duration("us"), pa.int64()),
    ],
    ids=str,
)
def test_types_without_a_common_one_are_refused_by_name(one: pa.DataType, other: pa.DataType, turned: bool) -> None:
    if turned:
        one, other = other, one
    matcher = Columnar("bag")
    matcher.feed(0, pa.table({"n": [1], "x": pa.nulls(1, one)}))

    with pytest.raises(TraceError) as raised:
        matcher.feed(1, pa.table({"n": [1], "x": pa.nulls(1, other)}))

    assert raised.value.where == "feed(1, table), column 'x'"
    assert raised.value.came == f"{one} up to now, {other} on the right"
    assert matcher.seen == [1, 0]


def test_a_value_that_does_not_fit_the_common_type_is_refused_and_changes_nothing() -> None:
    matcher = Columnar("total")
    matcher.feed(0, pa.table({"x": pa.array([datetime(9999, 1, 1)], pa.timestamp("us"))}))

    with pytest.raises(TraceError, match=r"column 'x': needed values that fit timestamp\[ns\]"):
        matcher.feed(1, pa.table({"x": pa.array([0], pa.timestamp("ns"))}))

    assert matcher.feed(1, pa.table({"x": pa.array([datetime(9999, 1, 1)], pa.timestamp("us"))}))
    assert matcher.unmatched_count(0) == 0


def test_other_columns_on_the_other_side_are_refused() -> None:
    matcher = Columnar("bag")
    matcher.feed(0, pa.table({"x": [1], "y": [2]}))

    with pytest.raises(TraceError) as raised:
        matcher.feed(1, pa.table({"x": [1], "z": [2]}))

    assert (raised.value.needed, raised.value.came) == ("the columns x, y", "x, z on the right")


def test_a_key_that_the_tables_do_not_have_is_refused() -> None:
    with pytest.raises(TraceError, match=r"came a table with taxi, x on the left\. Try: a key without taxi_id"):
        Columnar("keyed", key=("taxi_id", "x")).feed(0, pa.table({"taxi": [1], "x": [2]}))


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (pa.list_(pa.int64()), "column 'x' is of type list<"),
        (pa.struct({"a": pa.int64()}), "column 'x' is of type struct<"),
        (pa.map_(pa.string(), pa.int64()), "column 'x' is of type map<"),
        (pa.month_day_nano_interval(), "column 'x' is of type month_day_nano_interval"),
        (pa.run_end_encoded(pa.int32(), pa.int64()), "column 'x' is of type run_end_encoded<"),
        (pa.dictionary(pa.int8(), pa.list_(pa.int64())), "column 'x' is of type dictionary<"),
    ],
    ids=str,
)
def test_nested_and_odd_types_are_left_to_the_other_matcher_with_a_reason(kind: pa.DataType, reason: str) -> None:
    schema = pa.schema({"n": pa.int64(), "x": kind})

    found = supports(schema)

    assert found is not None
    assert found.startswith(reason)
    with pytest.raises(TraceError, match="Try: feed these streams event by event"):
        Columnar("bag").feed(0, schema.empty_table())


@pytest.mark.parametrize("kind", list(VALUES), ids=str)
def test_plain_types_are_supported(kind: pa.DataType) -> None:
    assert supports(pa.schema({"x": kind})) is None


def test_tables_without_columns_or_with_two_of_one_name_are_not_supported() -> None:
    assert supports(pa.schema([])) == "there are no columns"
    assert supports(pa.schema([("x", pa.int8()), ("x", pa.int8())])) == "several columns are called 'x'"


@pytest.mark.parametrize(("way", "key"), [("keyed", ()), ("bag", ("k",)), ("total", ("k",)), ("sorted", ())], ids=str)
def test_a_relation_that_is_none_of_the_three_is_refused(way: Any, key: tuple[str, ...]) -> None:
    with pytest.raises(TraceError):
        Columnar(way, key=key)


def test_what_is_no_table_or_no_side_is_refused() -> None:
    with pytest.raises(TraceError, match="came side 0 and a list"):
        Columnar("bag").feed(0, [1])
    with pytest.raises(TraceError, match="came side 2 and a Table"):
        Columnar("bag").feed(2, pa.table({"x": [1]}))


# -- small facts ---------------------------------------------------------------------------------------------------


def test_nothing_is_unmatched_before_the_first_batch() -> None:
    table, positions = Columnar("keyed", key=("k",)).unmatched(0)

    assert (table.num_rows, positions) == (0, [])


def test_after_a_refutation_the_state_is_that_before_the_refuting_row_and_stays() -> None:
    matcher = Columnar("keyed", key=("k",))
    matcher.feed(0, pa.table({"k": [1, 2, 3], "v": [1, 2, 3]}))

    assert not matcher.feed(1, pa.table({"k": [4, 1, 2, 3], "v": [4, 1, 0, 3]}))
    assert not matcher.feed(1, pa.table({"k": [3], "v": [3]}))

    assert matcher.unmatched(0)[1] == [2, 3]
    assert matcher.unmatched(1)[1] == [1]
    assert matcher.seen == [3, 4]
