"""Recorded outputs that are counted by runs: few rows, but many files, splits and batches. The twin is `Trace`."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DateType,
    DoubleType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
)

import streamtight as tight
from streamtight.errors import DependenceError, StreamtightError
from streamtight.spark.engine import settings
from streamtight.spark.recorded import compare_recorded, recorded
from streamtight.spark.recorded_rows import shifts_of_runs
from streamtight.spark.recorded_tasks import BOTH, LEFT, RIGHT, Adder, Events, Task, Wants

Row = tight.Kind("Row", k=int, v=float | None, n=int)
TYPES = StructType([StructField("k", LongType()), StructField("v", DoubleType()), StructField("n", LongType())])


def is_mark(event: tight.Event) -> bool:
    return event.v is None


def is_even(event: tight.Event) -> bool:
    return bool(event.n % 2 == 0)


def is_small(event: tight.Event) -> bool:
    return bool(event.n < 2)


MARKS = tight.barrier(is_mark)
RELATIONS = {
    "total": tight.ordered,
    "keyed": tight.same("k"),
    "keyed twice": tight.same("k") | tight.same("n"),
    "marks": MARKS | tight.same("k"),
    "marks of a key": (MARKS & tight.same("k")) | tight.same("k", "n"),
    "between": tight.between(is_mark, is_even),
    "between within a key": tight.between(is_small, is_even) & tight.same("k"),
    "chosen": tight.same("k", of=is_even) | tight.between(is_small, is_mark),
}


def some_rows(rng: random.Random, size: int) -> list[tight.Event]:
    return [Row(rng.randrange(3), rng.choice([None, 0.0, -0.0, 1.5]), rng.randrange(4)) for _ in range(size)]


def another_order(rng: random.Random, rows: Sequence[tight.Event], upto: tight.Dependence, swaps: int) -> list[Any]:
    """The rows in another order that the relation permits."""
    rows = list(rows)
    for _ in range(swaps):
        place = rng.randrange(len(rows) - 1)
        if upto.independent(rows[place], rows[place + 1]):
            rows[place], rows[place + 1] = rows[place + 1], rows[place]
    return rows


def roles(clause: Any, event: tight.Event) -> int:
    return LEFT * clause.left(event) + RIGHT * clause.right(event)


def runs_of(rows: Sequence[tight.Event], clause: Any) -> list[int | None]:
    """The run of each row, looked for from its own place backwards."""
    found: list[int | None] = []
    for place, event in enumerate(rows):
        if not roles(clause, event):
            found.append(None)
            continue
        key = [getattr(event, name) for name in clause.key]
        alike = [e for e in rows[: place + 1] if roles(clause, e) and [getattr(e, n) for n in clause.key] == key]
        sorts = [roles(clause, e) for e in alike]
        found.append(sum(s == BOTH or place == 0 or sorts[place - 1] != s for place, s in enumerate(sorts)))
    return found


# -- the law, without Spark ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(RELATIONS))
def test_streams_are_the_same_exactly_if_they_have_the_same_rows_in_the_same_runs(name: str) -> None:
    upto, rng, same = RELATIONS[name], random.Random(name), 0
    for _ in range(400):
        one = some_rows(rng, rng.randint(2, 6))
        other = another_order(rng, one, upto, 8)
        if rng.random() < 0.5:
            rng.shuffle(other)

        sides = []
        for rows in (one, other):
            columns = [runs_of(rows, clause) for clause in upto.clauses]
            sides.append(Counter(zip(rows, *columns, strict=True)))

        is_same = tight.Trace(one, upto) == tight.Trace(other, upto)
        same += is_same
        assert (sides[0] == sides[1]) == is_same, (one, other)
    assert 50 < same < 400


@pytest.mark.parametrize(
    "clause", RELATIONS["chosen"].clauses[1:] + RELATIONS["marks"].clauses[:1], ids=lambda clause: clause.text
)
def test_runs_are_the_same_however_files_are_split_and_batches_cut(clause: Any) -> None:
    rng = random.Random(7)
    upto = tight.Dependence([clause])
    joins = 0
    for _ in range(150):
        rows = some_rows(rng, rng.randint(1, 12))
        cuts = sorted(rng.sample(range(1, len(rows)), rng.randint(0, min(3, len(rows) - 1)))) if len(rows) > 1 else []
        pieces = [range(a, b) for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
        in_one_file = rng.random() < 0.5
        files = [(0 if in_one_file else number, piece) for number, piece in enumerate(pieces)]
        read: dict[int, tuple[tuple[int, ...], int, int]] = {}
        tasks: list[list[tuple[int, int]]] = [[], []]
        for file, piece in files:  # two tasks share the splits
            rng.choice(tasks).extend((file, place) for place in piece)
        for task in tasks:
            add = Adder(Task((Row,), TYPES, upto, None), Wants((), (0,), (0,)))
            for start in range(0, len(task), 2):
                some = task[start : start + 2]
                added = add(columns_of([rows[place] for _, place in some], some))
                for (file, place), role, run, begin in zip(some, added["t0"], added["u0"], added["start"], strict=True):
                    read[place] = ((file, 0, begin), role, run)

        found = joined(rows, read)

        joins += len(pieces) > 1
        assert found == runs_of(rows, clause), (rows, pieces)
    assert joins > 30


def columns_of(rows: Sequence[tight.Event], places: Sequence[tuple[int, int]]) -> dict[str, Any]:
    columns = {
        f"c{n}": pa.array([row[n + 1] for row in rows], t) for n, t in enumerate((pa.int64(), pa.float64(), pa.int64()))
    }
    files, at = [file for file, _ in places], [place for _, place in places]
    return {
        **columns,
        "bad": pa.array([0] * len(rows)),
        "file": pa.array(files),
        "block": pa.array([0] * len(at)),
        "place": pa.array(at),
    }


def joined(rows: Sequence[tight.Event], read: dict[int, tuple[tuple[int, ...], int, int]]) -> list[int | None]:
    """What Spark does with the runs within pieces."""
    pieces: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for place in range(len(rows)):
        piece, role, run = read[place]
        pieces.setdefault(piece, []).append((role, run))
    about = []
    for piece in sorted(pieces):
        spoken = [role for role, _ in pieces[piece] if role]
        most = max(run for _, run in pieces[piece])
        about.append((*piece, most, spoken[0] if spoken else None, spoken[-1] if spoken else None))
    shift = {tuple(place): by for *place, by in shifts_of_runs(about)}
    return [run + shift[piece] if role else None for piece, role, run in (read[place] for place in range(len(rows)))]


# -- events, without Spark -------------------------------------------------------------------------------------------

NAN = float("nan")
ODD_COLUMNS: dict[str, tuple[Any, Any, Any, list[Any]]] = {
    "whole numbers": (int, LongType(), pa.int64(), [0, -(2**63), 2**63 - 1]),
    "small whole numbers": (Annotated[int, "smallint"], ShortType(), pa.int16(), [0, -1, 7]),
    "whole numbers or null": (int | None, LongType(), pa.int64(), [None, 1, None]),
    "floats": (float, DoubleType(), pa.float64(), [0.0, -0.0, float("inf")]),
    "floats with NaN": (float, DoubleType(), pa.float64(), [NAN, 1.5, NAN]),
    "floats with NaN or null": (float | None, DoubleType(), pa.float64(), [NAN, None, 1.5]),
    "texts": (str, StringType(), pa.string(), ["", "\x00", "\U0001f600"]),
    "truths": (bool, BooleanType(), pa.bool_(), [True, False, True]),
    "bytes or null": (bytes | None, BinaryType(), pa.binary(), [b"", b"\xff", None]),
    "dates": (date, DateType(), pa.date32(), [date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)]),
    "times": (
        Annotated[datetime, "timestamp_ntz"] | None,
        TimestampNTZType(),
        pa.timestamp("us"),
        [datetime(1, 1, 1), None, datetime(9999, 12, 31, 23, 59, 59, 999_999)],
    ),
    "lists of floats": (tuple[float, ...], ArrayType(DoubleType()), pa.list_(pa.float64()), [[], [NAN], [1.0, 2.0]]),
}


@pytest.mark.parametrize("names", [*itertools.combinations(ODD_COLUMNS, 2), ("floats",), tuple(ODD_COLUMNS)])
def test_events_of_a_batch_are_those_that_their_kind_makes(names: tuple[str, ...]) -> None:
    columns = [ODD_COLUMNS[name] for name in names]
    kind = tight.Kind("Odd", **{f"f{place}": declared for place, (declared, *_) in enumerate(columns)})
    types = StructType([StructField(f"f{place}", spark) for place, (_, spark, *_) in enumerate(columns)])

    events = Events(Task((kind,), types, tight.unordered, None))([pa.array(v, arrow) for *_, arrow, v in columns])

    assert events == [kind(*row) for row in zip(*(values for *_, values in columns), strict=True)]
    assert [list(map(type, event)) for event in events] == [
        list(map(type, kind(*row))) for row in zip(*(values for *_, values in columns), strict=True)
    ]
    assert all(type(event) is kind.event_class for event in events)


def test_a_null_that_a_kind_does_not_admit_is_no_event() -> None:
    events = Events(Task((tight.Kind("Odd", f=int),), StructType([StructField("f", LongType())]), MARKS, None))

    with pytest.raises(StreamtightError, match="Odd"):
        events([pa.array([1, None], pa.int64())])


def test_bad_rows_have_no_role_and_are_shown_to_no_test() -> None:
    shown = []

    def is_shown(event: tight.Event) -> int:
        shown.append(event.n)
        return event.n  # any true value will do

    add = Adder(Task((Row,), TYPES, tight.barrier(is_shown), None), Wants((), (0,), (0,)))
    rows = [Row(0, None, n) for n in (0, 3, 0, 5)]
    columns = columns_of(rows, [(0, place) for place in range(4)])

    added = add({**columns, "bad": pa.array([0, 0, 1, 1])})

    clause = tight.barrier(is_mark).clauses[0]
    mark, other = roles(clause, Row(0, None, 0)), roles(clause, Row(0, 1.0, 0))
    assert shown == [0, 3]
    assert added["t0"] == [other, mark, 0, 0]


def test_a_test_that_raises_stop_iteration_does_not_end_the_batch() -> None:
    def finds_nothing(event: tight.Event) -> bool:
        return bool(next(value for value in () if value == event.n))

    add = Adder(Task((Row,), TYPES, tight.barrier(finds_nothing), None), Wants((), (0,), ()))

    with pytest.raises(StopIteration):
        add(columns_of([Row(0, None, 1)] * 2, [(0, 0), (0, 1)]))


# -- on Spark --------------------------------------------------------------------------------------------------------


def write(folder: Path, rng: random.Random, rows: Sequence[tight.Event]) -> Path:
    """Some micro-batches of one file each, with row groups of two rows."""
    folder.mkdir()
    (folder / "_spark_metadata").mkdir()
    cuts = [0, *sorted(rng.sample(range(1, len(rows)), 3)), len(rows)]
    schema = pa.schema([("k", pa.int64()), ("v", pa.float64()), ("n", pa.int64())])
    names = [f"{letter}.parquet" for letter in rng.sample("abcdefgh", 4)]  # their names say nothing
    for number, (start, end) in enumerate(itertools.pairwise(cuts)):
        table = pa.Table.from_pylist([event.as_dict() for event in rows[start:end]], schema=schema)
        pq.write_table(table, folder / names[number], row_group_size=2)
        entry = json.dumps({"path": f"file://{folder}/{names[number]}", "size": 1, "action": "add"})
        (folder / "_spark_metadata" / str(number)).write_text(f"v1\n{entry}")
    return folder


TINY = {
    "spark.sql.files.maxPartitionBytes": "800",
    "spark.sql.files.openCostInBytes": "0",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "3",
    "spark.sql.shuffle.partitions": "3",
}


def swapped(rows: Sequence[tight.Event], upto: tight.Dependence) -> list[tight.Event]:
    """With the last two neighbours exchanged that had to keep their order."""
    for place in range(len(rows) - 2, -1, -1):
        a, b = rows[place : place + 2]
        if a != b and upto.depends(a, b):
            return [*rows[:place], b, a, *rows[place + 2 :]]
    raise AssertionError("no such rows")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "marks" else pytest.mark.slow) for name in RELATIONS]
)
def test_tiny_splits_and_batches_give_the_answer_of_traces(spark: SparkSession, tmp_path: Path, name: str) -> None:
    upto, rng = RELATIONS[name], random.Random(name)
    rows = some_rows(rng, 16)
    other = another_order(rng, rows, upto, 200)
    wrong = [*other[:-2], Row(7, 0.5, 0), other[-1]]
    a, b = write(tmp_path / "a", rng, rows), write(tmp_path / "b", rng, other)
    c, d = write(tmp_path / "c", rng, swapped(other, upto)), write(tmp_path / "d", rng, wrong)

    with settings(spark, TINY):
        assert spark.read.parquet(f"{a}/*.parquet").rdd.getNumPartitions() > 5
        holds, order, row = (compare_recorded(recorded(a, kind=Row), recorded(x), upto=upto) for x in (b, c, d))

    assert holds.holds, holds
    assert holds.scope == tight.Scope.observed(32)
    assert order.counterexample is not None
    assert order.counterexample.finding == "ORDER_LOST"
    first, second = order.counterexample.expected or ()
    assert upto.depends(first, second)
    kept = [[event for event in side if event in (first, second)] for side in (rows, swapped(other, upto))]
    assert kept[0] != kept[1]
    assert row.counterexample is not None
    assert row.counterexample.finding == "WRONG_ROWS"
    assert Row(7, 0.5, 0) in (row.counterexample.actual or ())


ROUNDINGS: dict[str, tuple[tight.Equality, Callable[[float], float]]] = {
    "places": (tight.equality(places={"v": 1}), lambda v: v + 0.04),
    "buckets": (tight.equality(buckets={"v": 0.5}), lambda v: v + 0.4),
}


@pytest.mark.parametrize("name", ["places", pytest.param("buckets", marks=pytest.mark.slow)])
def test_rounded_floats_are_counted_too(spark: SparkSession, tmp_path: Path, name: str) -> None:
    equal, moved = ROUNDINGS[name]
    rng, upto = random.Random(name), tight.same("k")
    odd = [None, float("nan"), float("inf"), 1e308, -1e308, 5e-324, 0.0]
    values = [*odd, *(number / 2 for number in range(17))]
    rows = [Row(rng.randrange(3), value, place) for place, value in enumerate(values)]
    near = [Row(e.k, e.v if e.v in odd or e.v != e.v else moved(e.v), e.n) for e in rows]
    far = [*near[:-1], Row(near[-1].k, 99.0, near[-1].n)]
    a, b, c = (
        write(tmp_path / n, rng, side)
        for n, side in (("a", rows), ("b", another_order(rng, near, upto, 90)), ("c", far))
    )

    with settings(spark, TINY):
        holds, wrong = (compare_recorded(recorded(a, kind=Row), recorded(x), upto=upto, equal=equal) for x in (b, c))
        bag = compare_recorded(recorded(a, kind=Row), recorded(b), upto=tight.unordered, equal=equal)

    assert all(map(equal, rows, near))
    assert holds.holds, holds
    assert bag.holds, bag
    assert wrong.counterexample is not None
    assert wrong.counterexample.explanation.endswith("1 row is missing and 1 row is extra")


def test_a_test_that_does_not_treat_equal_rows_alike_is_a_wrong_question(tmp_path: Path) -> None:
    rng = random.Random(3)
    rows = [Row(0, float(place % 2) or None, 1) for place in range(8)]
    a = write(tmp_path / "a", rng, rows)

    with pytest.raises(DependenceError, match="treats equal events alike"):
        compare_recorded(recorded(a), recorded(a), upto=MARKS, equal=tight.equality(ignore="v"))
