"""Recorded outputs. The slow twin reads all rows into Python and looks at every order that the files admit."""

from __future__ import annotations

import itertools
import json
import math
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DoubleType, LongType, StructField, StructType

import streamtight as tight
from streamtight.errors import (
    DependenceError,
    EncodingError,
    RowError,
    SourceError,
    StreamtightError,
    TraceError,
)
from streamtight.spark import recorded as module
from streamtight.spark.recorded import Recorded, compare_recorded, recorded
from streamtight.spark.recorded_files import batches_of
from streamtight.spark.recorded_tasks import Judge, Task, Watch

pytestmark = pytest.mark.usefixtures("spark")

NAN = math.nan
Row = tight.Kind("Row", k=int | None, v=float | None, n=int | None)
File = Sequence[tuple[Any, ...]]
"""The rows of one file."""


# -- writing recordings ----------------------------------------------------------------------------------------------


def parquet(folder: Path, *files: File, names: Sequence[str] = ("k", "v", "n"), types: Sequence[Any] = ()) -> Path:
    folder.mkdir()
    schema = pa.schema(zip(names, types or (pa.int64(), pa.float64(), pa.int64()), strict=True))
    for number, rows in enumerate(files):
        table = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=schema)
        pq.write_table(table, folder / f"{number}.parquet")
    return folder


def jsonl(folder: Path, *files: File, names: Sequence[str] = ("k", "v", "n")) -> Path:
    folder.mkdir()
    for number, rows in enumerate(files):
        lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
        (folder / f"{number}.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return folder


def log_of(folder: Path, *batches: Sequence[str]) -> None:
    """The log that a streaming query would leave, had it written these files in these micro-batches."""
    (folder / "_spark_metadata").mkdir()
    for number, names in enumerate(batches):
        (folder / "_spark_metadata" / str(number)).write_text(log_text(names, str(folder)))


def log_text(names: Sequence[str], folder: str = "/out") -> str:
    entries = [json.dumps({"path": f"file://{folder}/{name}", "size": 1, "action": "add"}) for name in names]
    return "\n".join(["v1", *entries])


def compare(
    reference: Path | Recorded, candidate: Path | Recorded, upto: tight.Dependence, **more: Any
) -> tight.Verdict:
    return compare_recorded(
        *(one if isinstance(one, Recorded) else recorded(one) for one in (reference, candidate)), upto=upto, **more
    )


# -- the slow twin ---------------------------------------------------------------------------------------------------

Placed = tuple[tight.Event, int, int, int]
"""A row, its group, its chain, its place in the chain: rows of one group and of different chains are in no order."""


def by_files(files: Sequence[File]) -> list[Placed]:
    return [(Row(*row), 0, number, place) for number, rows in enumerate(files) for place, row in enumerate(rows)]


def by_column(files: Sequence[File]) -> list[Placed]:
    rows = [Row(*row) for rows in files for row in rows]
    return [(row, row.n, place, 0) for place, row in enumerate(rows)]


def before(a: Placed, b: Placed) -> bool:
    return a[1] < b[1] or (a[1] == b[1] and a[2] == b[2] and a[3] < b[3])


def twin(
    reference: list[Placed],
    candidate: list[Placed],
    upto: tight.Dependence,
    value: Callable[[tight.Event], Any] = lambda event: event,
) -> str:
    """HOLDS, UNDECIDED, ORDER_LOST or how the bags differ."""
    bags = [Counter(value(row[0]) for row in side) for side in (reference, candidate)]
    if missing := bags[0] - bags[1]:
        return "WRONG_ROWS" if bags[1] - bags[0] else "MISSING_ROWS" if missing else ""
    if bags[1] - bags[0]:
        return "EXTRA_ROWS"
    if not reference:
        return "UNDECIDED"
    key = upto.partition_key()
    keys = {None} if key is None else {key(row[0]) for row in reference}
    answers = set()
    for one in keys:
        sides = [[r for r in side if key is None or key(r[0]) == one] for side in (reference, candidate)]
        if any(is_loose(side, upto, value) for side in sides):
            answers.add("UNDECIDED")
        elif not same_stream(sides[0], sides[1], upto, value):
            answers.add("ORDER_LOST")
    return "ORDER_LOST" if "ORDER_LOST" in answers else "UNDECIDED" if answers else "HOLDS"


def is_loose(side: list[Placed], upto: tight.Dependence, value: Callable[[tight.Event], Any]) -> bool:
    return any(
        not before(a, b) and not before(b, a) and upto.depends(a[0], b[0]) and value(a[0]) != value(b[0])
        for a, b in itertools.combinations(side, 2)
    )


def same_stream(
    one: list[Placed], other: list[Placed], upto: tight.Dependence, value: Callable[[tight.Event], Any]
) -> bool:
    first: dict[Any, tight.Event] = {}
    traces = [
        tight.Trace([first.setdefault(value(r[0]), r[0]) for r in sorted(side, key=lambda r: r[1:])], upto)
        for side in (one, other)
    ]
    return traces[0] == traces[1]


def found(verdict: tight.Verdict) -> str:
    return verdict.counterexample.finding if verdict.counterexample else verdict.outcome.name


def some_files(rng: random.Random, *, width: int, ties: bool) -> tuple[list[File], list[File]]:
    """A recording and another one that is often the same up to some order, both in up to so many files."""
    values = [None, NAN, 0.0, -0.0, 1.5]
    rows = [
        (rng.choice([None, 0, 1]), rng.choice(values), place // 2 if ties else place)
        for place in range(rng.randint(1, 6))
    ]
    other = rng.sample(rows, len(rows)) if rng.random() < 0.6 else list(rows)
    if rng.random() < 0.3:
        other[rng.randrange(len(other))] = (0, rng.choice(values), 0)
    if rng.random() < 0.15:
        other.append(rng.choice(rows))
    return cut(rng, rows, width), cut(rng, other, width)


def cut(rng: random.Random, rows: list[Any], width: int) -> list[File]:
    files: list[list[Any]] = [[] for _ in range(rng.randint(1, width))]
    for row in rows:
        rng.choice(files).append(row)
    return [file for file in files if file]


LATE = tight.barrier(lambda event: event.v == 1.5)
RELATIONS = {
    "bag": tight.unordered,
    "keyed": tight.same("k"),
    "keyed by a float": tight.same("v"),
    "total": tight.ordered,
    "marks": LATE | tight.same("k"),
    "marks of a key": (LATE & tight.same("k")) | tight.same("k", "v"),
    "any": tight.depends(lambda a, b: a.k != b.k),
}


def recordings(
    name: str, outcome: str, *, by: Callable[[Sequence[File]], list[Placed]] = by_files
) -> tuple[list[File], list[File]]:
    """Two of which the twin says this."""
    for seed in range(1000):
        rng = random.Random(f"{name} {outcome} {seed}")
        one, other = some_files(rng, width=3, ties=rng.random() < 0.5)
        if sum(map(len, one)) > 3 and twin(by(one), by(other), RELATIONS[name]) == outcome:
            return one, other
    raise AssertionError("the twin never says so")


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("bag", "WRONG_ROWS"),
        *itertools.product(["keyed"], ["HOLDS", "ORDER_LOST", "UNDECIDED"]),
        *(
            pytest.param(*one, marks=pytest.mark.slow)
            for one in (
                ("bag", "HOLDS"),
                ("total", "ORDER_LOST"),
                *itertools.product(["marks of a key"], ["HOLDS", "UNDECIDED"]),
                *itertools.product(["keyed by a float", "marks", "any"], ["ORDER_LOST"]),
            )
        ),
    ],
)
def test_it_says_what_the_slow_twin_says(tmp_path: Path, name: str, outcome: str) -> None:
    one, other = recordings(name, outcome)

    verdict = compare(parquet(tmp_path / "a", *one), parquet(tmp_path / "b", *other), RELATIONS[name])

    assert found(verdict) == outcome, (one, other)
    assert verdict.scope == tight.Scope.observed(sum(map(len, [*one, *other])))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "outcome"), [("keyed", "UNDECIDED"), ("total", "HOLDS"), ("marks", "UNDECIDED")])
def test_it_says_what_the_slow_twin_says_about_an_order_by_columns(tmp_path: Path, name: str, outcome: str) -> None:
    one, other = recordings(name, outcome, by=by_column)
    a, b = parquet(tmp_path / "a", *one), parquet(tmp_path / "b", *other)

    verdict = compare(recorded(a, order_by="n"), recorded(b, order_by=["n"]), RELATIONS[name])

    assert found(verdict) == outcome, (one, other)


# -- tasks, without Spark --------------------------------------------------------------------------------------------

TYPES = StructType([StructField("k", LongType()), StructField("v", DoubleType()), StructField("n", LongType())])


def judged(sides: Sequence[list[Placed]], upto: tight.Dependence, equal: Any = None) -> str:
    """What a task says that has the rows of one key, as Spark sorts them for it."""
    rows = [
        (7, side, rank, group, chain, 1, *event[1:], 0)
        for side, placed in enumerate(sides)
        for rank, (event, group, chain, _) in enumerate(sorted(placed, key=lambda row: row[1:]), start=1)
    ]
    rows.sort(key=lambda row: (row[2], row[1]))
    types = [pa.float64() if place == 7 else pa.int64() for place in range(10)]
    arrays = [pa.array([row[place] for row in rows], data_type) for place, data_type in enumerate(types)]
    judge = Judge(Task((Row,), TYPES, upto, equal))
    judge.take(pa.record_batch(arrays, names=[str(place) for place in range(10)]))
    [said] = judge.told()
    return "UNDECIDED" if said.loose else "ORDER_LOST" if said.orders else "LEFT" if any(said.left_over) else "HOLDS"


def extensions(side: list[Placed]) -> Iterator[list[tight.Event]]:
    """Every order that the recording admits."""
    for order in itertools.permutations(side):
        if not any(before(b, a) for a, b in itertools.combinations(order, 2)):
            yield [row[0] for row in order]


@pytest.mark.parametrize("name", [name for name in RELATIONS if name != "bag"])
def test_a_task_is_right_in_every_order_that_the_files_admit(name: str) -> None:
    upto, rng, seen = RELATIONS[name], random.Random(name), Counter()
    for _ in range(150):
        rows = [(rng.choice([0, 1]), rng.choice([NAN, 0.0, -0.0, 1.5]), 0) for _ in range(rng.randint(1, 4))]
        sides = [by_files(cut(rng, rng.sample(rows, len(rows)), 2)) for _ in (0, 1)]
        traces = [{tight.Trace(order, upto) for order in extensions(side)} for side in sides]

        said = judged(sides, upto)

        seen[said] += 1
        assert (said == "UNDECIDED") == (len(traces[0]) > 1 or len(traces[1]) > 1), sides
        assert said == "UNDECIDED" or (said == "HOLDS") == (traces[0] == traces[1]), sides
    assert len(seen) == 3, seen


@pytest.mark.parametrize("equal", [None, tight.equality(ignore="v"), lambda a, b: (a.k, a.n) == (b.k, b.n)])
def test_a_few_rows_are_enough_to_know_whether_a_later_one_is_in_no_order(equal: Any) -> None:
    is_one, is_two = (lambda event: event.k == 1), (lambda event: event.k == 2)
    upto = tight.between(is_one, is_two) | tight.between(lambda event: event.k == 3, is_one)
    same = equal or (lambda a, b: a == b)
    rng, loose = random.Random(5), 0
    for _ in range(400):
        watch, so_far = Watch(upto, equal), []
        for _ in range(rng.randint(2, 12)):
            event, chain = Row(rng.choice([1, 1, 1, 2, 3]), rng.choice([0.0, 1.5]), rng.randrange(3)), rng.randrange(3)
            partners = [e for e, c in so_far if c != chain and not same(e, event) and upto.depends(e, event)]

            pair = watch.see(event, 0, chain)

            assert (pair is not None) == bool(partners), (so_far, event, chain)
            assert all(len(book) <= 4 for book in watch._books.values())
            so_far.append((event, chain))
            if pair is not None:
                loose += 1
                assert pair[0] in partners
                break
    assert 50 < loose < 390


def test_more_rows_in_no_order_than_can_be_looked_at_in_pairs_leave_it_undecided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("streamtight.spark.recorded_tasks.MOST_LOOSE", 3)
    nothing = tight.depends(lambda a, b: False)
    side = by_files([[(0, float(place), 0)] for place in range(5)])

    assert judged([side[:3], side[:3]], nothing) == "HOLDS"
    assert judged([side, side], nothing) == "UNDECIDED"


# -- bags ------------------------------------------------------------------------------------------------------------


def test_what_differs_is_shown_and_counted(tmp_path: Path) -> None:
    a = jsonl(tmp_path / "a", [(1, 0.5, 0), (1, 0.5, 0), (2, 1.5, 1)])
    b = jsonl(tmp_path / "b", [(2, 1.5, 1), (1, 0.5, 0), (3, 2.5, 2)])

    verdict = compare(a, b, tight.unordered)

    counterexample = verdict.counterexample
    assert counterexample is not None
    assert counterexample.finding == "WRONG_ROWS"
    assert counterexample.explanation == (
        "Row(k=1, n=0, v=0.5) comes twice in the reference and once in the candidate; "
        "in all, 1 row is missing and 1 row is extra"
    )
    assert [event.as_dict() for event in counterexample.expected or ()] == [{"k": 1, "n": 0, "v": 0.5}]
    assert [event.as_dict() for event in counterexample.actual or ()] == [{"k": 3, "n": 2, "v": 2.5}]
    assert (counterexample.reruns, counterexample.failing_reruns) == (1, 1)
    assert verdict.scope == tight.Scope.observed(6)


@pytest.mark.slow
def test_values_are_equal_as_those_of_events_are(tmp_path: Path) -> None:
    names = ["key", "map", "list", "when", "day", "price", "bytes", "struct"]
    types = [
        pa.float64(),
        pa.map_(pa.string(), pa.float64()),
        pa.list_(pa.float64()),
        pa.timestamp("us", tz="UTC"),
        pa.date32(),
        pa.decimal128(10, 2),
        pa.binary(),
        pa.struct([("x", pa.float32()), ("name", pa.string())]),
    ]

    def row(key: float | None, zero: float, pairs: list[tuple[str, float | None]]) -> tuple[Any, ...]:
        when, struct = datetime(2026, 1, 2, 3, 4, 5, 678), {"x": zero, "name": "é"}
        return key, pairs, [zero, NAN, None], when, date(2026, 1, 2), Decimal("1.50"), b"\x00", struct

    one = [row(NAN, 0.0, [("a", 0.0), ("b", None)]), row(-0.0, 0.0, []), row(None, -0.0, [("c", NAN)])]
    other = [row(None, 0.0, [("c", NAN)]), row(NAN, -0.0, [("b", None), ("a", -0.0)]), row(0.0, -0.0, [])]
    a = parquet(tmp_path / "a", one, names=names, types=types)
    b = parquet(tmp_path / "b", other, names=names, types=types)
    c = parquet(tmp_path / "c", [*other[:2], row(0.0, 0.0, [("d", 1.0)])], names=names, types=types)

    assert compare(a, b, tight.unordered).holds
    assert compare(a, b, tight.same("key")).holds
    verdict = compare(a, c, tight.same("key") & tight.between(lambda event: event.map == {}, lambda event: True))
    assert verdict.counterexample is not None
    assert verdict.counterexample.expected is not None
    assert verdict.counterexample.expected[0].map == {}
    assert verdict.counterexample.expected[0].list == (0.0, verdict.counterexample.expected[0].list[1], None)


@pytest.mark.slow
def test_rounding_is_that_of_python(tmp_path: Path) -> None:
    # By Spark's round, 2.675 is 2.68 and 0.125 is 0.13; by Python's it is 2.67, as the float is smaller, and 0.12.
    a = parquet(tmp_path / "a", [(1, 2.675, 0), (2, 0.125, 0), (3, NAN, 0)])
    b = parquet(tmp_path / "b", [(1, 2.67, 0), (2, 0.12, 0), (3, NAN, 0)])
    c = parquet(tmp_path / "c", [(1, 2.68, 0), (2, 0.12, 0), (3, NAN, 0)])
    rounded = tight.equality(places={"v": 2})

    assert compare(a, b, tight.same("k"), equal=rounded).holds
    verdict = compare(a, c, tight.unordered, equal=rounded)
    assert found(verdict) == "WRONG_ROWS"
    assert verdict.counterexample.expected == (Row(1, 2.675, 0),)
    assert verdict.counterexample.actual == (Row(1, 2.68, 0),)


@pytest.mark.slow
def test_an_equality_may_be_a_function(tmp_path: Path) -> None:
    a = parquet(tmp_path / "a", [(1, 0.5, 0), (1, 1.5, 1), (2, 1.5, 2)])
    b = parquet(tmp_path / "b", [(2, 8.0, 2), (1, 9.0, 3), (1, 7.0, 4)])

    assert compare(a, b, tight.unordered, equal=tight.equality(by=lambda event: event.k)).holds
    verdict = compare(
        a, b, tight.unordered, equal=lambda one, other: (one.k > 1, one.n > 3) == (other.k > 1, other.n > 3)
    )
    assert found(verdict) == "WRONG_ROWS"
    assert verdict.counterexample.expected[0] in (Row(1, 0.5, 0), Row(1, 1.5, 1))
    assert verdict.counterexample.actual == (Row(1, 7.0, 4),)


@pytest.mark.slow
def test_columns_that_do_not_matter_are_shown_as_they_are(tmp_path: Path) -> None:
    a = parquet(tmp_path / "a", [(1, 0.5, 0), (1, 0.5, 7), (2, 1.5, 1)])
    b = parquet(tmp_path / "b", [(1, 0.5, 8), (2, 1.5, 9)])

    verdict = compare(a, b, tight.unordered, equal=tight.equality(ignore="n"))

    assert found(verdict) == "MISSING_ROWS"
    assert verdict.counterexample.expected[0] in (Row(1, 0.5, 0), Row(1, 0.5, 7))


@pytest.mark.slow
def test_rows_that_an_equality_calls_equal_are_not_split_by_a_key_that_it_may_ignore(tmp_path: Path) -> None:
    a, b = parquet(tmp_path / "a", [(1, 0.5, 0)]), parquet(tmp_path / "b", [(2, 0.5, 0)])

    by_key = compare(a, a, tight.same("k"), equal=tight.equality(by=lambda event: (event.k, event.v)))

    assert by_key.holds
    assert "same('k') with equality(by=<lambda>) has no key to split them by" in (by_key.reason or "")
    with pytest.raises(DependenceError, match="treats equal events alike"):
        compare(a, b, tight.same("k"), equal=tight.equality(ignore="k"))


# -- order -----------------------------------------------------------------------------------------------------------


def test_a_lost_order_is_shown_as_the_two_rows_that_changed_places(tmp_path: Path) -> None:
    a = parquet(tmp_path / "a", [(1, 0.5, 0), (2, 0.5, 1), (1, 0.5, 2), (1, 1.5, 3)])
    b = parquet(tmp_path / "b", [(1, 0.5, 0), (1, 1.5, 3), (2, 0.5, 1), (1, 0.5, 2)])

    verdict = compare(a, b, tight.same("k"))

    assert found(verdict) == "ORDER_LOST"
    assert verdict.counterexample.explanation == (
        "Row(k=1, v=0.5, n=2) comes before Row(k=1, v=1.5, n=3) in the reference, after it in the candidate, "
        "but same('k') keeps their order"
    )
    assert verdict.counterexample.expected == (Row(1, 0.5, 2), Row(1, 1.5, 3))
    assert verdict.counterexample.actual == (Row(1, 1.5, 3), Row(1, 0.5, 2))


@pytest.mark.slow
def test_an_order_by_a_column_that_is_not_compared_can_be_lost(tmp_path: Path) -> None:
    a = parquet(tmp_path / "a", [(1, 0.5, 7)], [(1, 1.5, 8), (2, 0.5, 1)])
    b = parquet(tmp_path / "b", [(1, 0.5, 6), (1, 1.5, 5), (2, 0.5, 5)])

    verdict = compare(
        recorded(a, order_by="n"), recorded(b, order_by="n"), tight.same("k"), equal=tight.equality(ignore="n")
    )

    assert found(verdict) == "ORDER_LOST"
    assert [event.v for event in verdict.counterexample.expected] == [0.5, 1.5]


@pytest.mark.slow
def test_an_order_that_is_not_recorded_leaves_it_undecided(tmp_path: Path) -> None:
    a = jsonl(tmp_path / "a", [(1, 0.5, 0), (1, 1.5, 1)])
    b = jsonl(tmp_path / "b", [(1, 0.5, 0)], [(1, 1.5, 1)])

    undecided = compare(a, b, tight.same("k"))

    assert undecided.undecided
    assert undecided.reason == (
        "the candidate does not tell the order of Row(k=1, n=0, v=0.5) and Row(k=1, n=1, v=1.5): they are in different "
        "files, and same('k') keeps their order. Try: order_by= with the columns that tell it"
    )
    assert compare(a, recorded(b, order_by="n"), tight.same("k")).holds
    tied = compare(a, recorded(b, order_by="k"), tight.same("k"))
    assert "they agree on k" in (tied.reason or "")


@pytest.mark.slow
def test_a_recording_that_one_task_must_read_says_so(tmp_path: Path) -> None:
    a = parquet(tmp_path / "a", [(1, 0.5, 0), (2, 1.5, 1)])

    verdict = compare(recorded(a, order_by="n"), a, tight.ordered)

    assert verdict.holds
    assert verdict.reason == "one task had to read all rows, since ordered has no key to split them by"
    assert verdict.cost["tasks"] == 1
    assert verdict.cost["rows"] == 4
    assert compare(a, a, tight.ordered).reason is None  # the files tell the place of every row


@pytest.mark.slow
def test_several_kinds_are_told_apart_by_a_column(tmp_path: Path) -> None:
    gps, end = tight.Kind("GPS", taxi=int, x=float), tight.Kind("EndOfDay", day=int)
    upto = tight.Sync(end, tight.PartitionBy("taxi", tight.Seq(gps)))
    names, types = ["kind", "taxi", "x", "day"], [pa.string(), pa.int64(), pa.float64(), pa.int64()]
    one, two, night = ("GPS", 1, 0.5, None), ("GPS", 2, 1.5, None), ("EndOfDay", None, None, 1)
    a = parquet(tmp_path / "a", [one, two, night], names=names, types=types)
    b = parquet(tmp_path / "b", [two, one, night], names=names, types=types)
    c = parquet(tmp_path / "c", [two, night, one], names=names, types=types)
    d = parquet(tmp_path / "d", [two, one, ("Dusk", None, None, 1)], names=names, types=types)

    assert compare(a, b, upto).holds
    verdict = compare(a, c, upto)
    assert found(verdict) == "ORDER_LOST"
    assert verdict.counterexample.expected == (gps(1, 0.5), end(1))
    for relation in (upto, tight.Bag(gps, end)):
        with pytest.raises(RowError, match="one of EndOfDay, GPS; came 'Dusk'"):
            compare(a, d, relation)


# -- streaming queries -----------------------------------------------------------------------------------------------


def test_files_of_a_streaming_query_are_in_the_order_of_its_batches(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    for number in range(4):
        rows = [{"k": k, "n": number} for k in (1, 2)]
        (source / f"{number}.json").write_text("\n".join(map(json.dumps, rows)))
        os.utime(source / f"{number}.json", (number, number))  # the order in which the query reads them
    stream = spark.readStream.schema("k long, n long").option("maxFilesPerTrigger", 1).json(str(source))
    log = {"spark.sql.streaming.fileSink.log.compactInterval": "3"}
    with module.settings(spark, log):
        query = stream.repartition(2, "k").writeStream.format("json").option("checkpointLocation", str(tmp_path / "cp"))
        query.trigger(availableNow=True).start(str(tmp_path / "out [1]")).awaitTermination()
    moved = tmp_path / "moved=1"
    shutil.move(tmp_path / "out [1]", moved)
    (moved / "part-00000-of-a-batch-that-failed-c000.json").write_text('{"k": 1, "n": 99}\n')
    a = jsonl(tmp_path / "a", [(k, n) for n in range(4) for k in (2, 1)], names=["k", "n"])

    verdict = compare(a, moved, tight.same("k"))

    assert (moved / "_spark_metadata" / "2.compact").is_file()
    assert verdict.holds, verdict
    assert verdict.scope == tight.Scope.observed(16)


@pytest.mark.slow
def test_files_of_one_batch_are_in_no_order(tmp_path: Path) -> None:
    a = parquet(tmp_path / "a", [(1, 0.5, 0), (1, 1.5, 1), (1, 2.5, 2)])
    b = parquet(tmp_path / "b", [(1, 2.5, 2)], [(1, 0.5, 0)], [(1, 1.5, 1)])
    c = shutil.copytree(b, tmp_path / "c")
    d = shutil.copytree(b, tmp_path / "d")
    log_of(b, ["1.parquet"], ["2.parquet"], ["0.parquet"])
    log_of(c, ["1.parquet", "2.parquet"], ["0.parquet"])
    log_of(d, ["1.parquet"], ["2.parquet"], ["gone.parquet"])

    assert compare(a, b, tight.ordered).holds
    undecided = compare(a, c, tight.ordered)
    assert undecided.undecided
    assert "of Row(k=1, v=0.5, n=0) and Row(k=1, v=1.5, n=1): they are in different files of one micro-batch" in (
        undecided.reason or ""
    )
    with pytest.raises(SourceError, match="all files that its log, _spark_metadata, names"):
        compare(a, d, tight.ordered)


def part(task: int, name: str) -> str:
    return f"part-{task:05}-{name}-c000.snappy.parquet"


def test_batches_are_read_off_a_log_as_far_as_it_tells_them() -> None:
    a, b, c, d, e, f = part(0, "a"), part(1, "b"), part(0, "c"), part(0, "d"), part(1, "e"), part(2, "f")

    def places(**log: Sequence[str]) -> list[tuple[str, int]]:
        texts = {name.removeprefix("_").replace("_", "."): log_text(names) for name, names in log.items()}
        return [(path.removeprefix("/out/"), place) for path, place in batches_of(texts).items()]

    assert places(_0=[a, b], _1=[c]) == [(a, 1), (b, 1), (c, 2)]
    # A lower or an equal number of a task begins a batch; a higher one may be of the same.
    assert places(_2_compact=[a, b, c, d, e, f], _3=[part(9, "z")]) == [
        (a, 0), (b, 0), (c, 1), (d, 2), (e, 2), (f, 2), (part(9, "z"), 3)
    ]  # fmt: skip
    # What is left of the older files of the log tells more.
    assert places(_2_compact=[a, b, c, d, e, f], _1=[d, e]) == [(a, 0), (b, 0), (c, 1), (d, 2), (e, 2), (f, 3)]
    assert places(_2_compact=[a, b], _5_compact=[a, b, f]) == [(a, 0), (b, 0), (f, 1)]


# -- many rows -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_many_rows_are_compared_where_they_are(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 200_000
    rows = pa.table(
        {
            "k": pa.array(range(size)).cast(pa.int32()),
            "v": pa.array([float(place % 1000) for place in range(size)]),
            "n": pa.array([place // 500 for place in range(size)]),
        }
    )
    for name, step in (("a", 50_000), ("b", 40_000)):
        (tmp_path / name).mkdir()
        for start in range(0, size, step):
            pq.write_table(rows.slice(start, step), tmp_path / name / f"{start}.parquet")
    changed = rows.slice(0, 1).set_column(1, "v", pa.array([1e9]))
    shutil.copytree(tmp_path / "b", tmp_path / "c")
    pq.write_table(pa.concat_tables([changed, rows.slice(1, 39_999)]), tmp_path / "c" / "0.parquet")
    frames, collected = type(spark.range(1)), []
    collect = frames.collect

    def counting(frame: DataFrame) -> list[Any]:
        rows = collect(frame)
        collected.append(len(rows))
        return rows

    monkeypatch.setattr(frames, "collect", counting)

    assert compare(tmp_path / "a", tmp_path / "b", tight.same("n")).holds
    verdict = compare(recorded(tmp_path / "a", order_by="k"), recorded(tmp_path / "c", order_by="k"), tight.same("n"))
    assert found(verdict) == "WRONG_ROWS"
    assert [event.v for event in verdict.counterexample.expected + verdict.counterexample.actual] == [0.0, 1e9]
    assert verdict.scope == tight.Scope.observed(2 * size)
    assert 5 < sum(collected) < 50


# -- what a recording is ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_nothing_on_both_sides_is_no_answer(tmp_path: Path) -> None:
    empty, rows = parquet(tmp_path / "a", []), parquet(tmp_path / "b", [(1, 0.5, 0)])
    blank, silent = jsonl(tmp_path / "c", []), tmp_path / "d"
    silent.mkdir()
    log_of(silent)

    for one, other in ((blank, silent), (empty, blank)):
        verdict = compare(one, other, tight.same("k"))
        assert verdict.reason == "vacuous: neither recording has a row"
    assert found(compare(rows, blank, tight.unordered)) == "MISSING_ROWS"
    assert found(compare(silent, rows, tight.same("k"))) == "EXTRA_ROWS"


@pytest.mark.slow
def test_formats_are_known_by_name_or_by_content(tmp_path: Path) -> None:
    a = parquet(tmp_path / "a", [(1, 0.5, 0)])
    b = jsonl(tmp_path / "b", [(1, 0.5, 0)])
    shutil.copy(a / "0.parquet", tmp_path / "rows")
    shutil.copy(b / "0.jsonl", tmp_path / "lines")

    assert compare(a / "0.parquet", b, tight.unordered).holds
    assert compare(tmp_path / "rows", tmp_path / "lines", tight.unordered).holds
    assert compare(recorded(tmp_path / "rows", format="parquet"), recorded(b, format="json"), tight.same("k")).holds


@pytest.mark.slow
def test_the_order_of_lines_is_kept_when_spark_reads_a_file_in_blocks(spark: SparkSession, tmp_path: Path) -> None:
    rows = [(place % 2, place / 2, place) for place in range(60)]
    a, b = parquet(tmp_path / "a", rows), jsonl(tmp_path / "b", rows)
    in_blocks = {"spark.sql.files.maxPartitionBytes": "300", "spark.sql.files.openCostInBytes": "0"}

    with module.settings(spark, in_blocks):
        assert spark.read.json(str(b)).rdd.getNumPartitions() > 3
        assert compare(a, b, tight.same("k")).holds


@pytest.mark.slow
def test_whole_numbers_of_different_widths_can_be_compared(tmp_path: Path) -> None:
    a = parquet(tmp_path / "a", [(1, 0.5, 0)])
    b = parquet(tmp_path / "b", [(0, 0.5, 1)], names=["n", "v", "k"], types=[pa.int64(), pa.float32(), pa.int32()])

    assert compare(a, b, tight.same("k")).holds


def test_json_has_the_types_that_its_kind_says(tmp_path: Path) -> None:
    fare = tight.Kind("Fare", ride=int, cents=float, at=datetime, tip=int | None)
    a, b = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    a.write_text('{"ride": 1, "cents": 5, "at": "2026-01-02T03:04:05", "tip": 3}\n')
    b.write_text('{"at": "2026-01-02 03:04:05.000", "ride": 1, "cents": 5.0}\n')

    verdict = compare(recorded(a, kind=fare), b, tight.unordered)

    assert found(verdict) == "WRONG_ROWS"
    assert verdict.counterexample.expected == (fare(1, 5.0, datetime(2026, 1, 2, 3, 4, 5), 3),)
    assert verdict.counterexample.actual == (fare(1, 5.0, datetime(2026, 1, 2, 3, 4, 5), None),)


@pytest.mark.slow
def test_a_wrong_question_is_an_error_that_says_what_to_try(spark: SparkSession, tmp_path: Path) -> None:
    a = parquet(tmp_path / "a", [(1, 0.5, 0)])
    less = parquet(tmp_path / "less", [(1,)], names=["k"], types=[pa.int64()])
    text = parquet(tmp_path / "text", [("1", 0.5, 0)], types=[pa.string(), pa.float64(), pa.int64()])
    null = parquet(tmp_path / "null", [(1, 0.5, None), (None, NAN, 3)])
    kinds = parquet(tmp_path / "kinds", [(1,)], names=["kind"], types=[pa.int64()])
    empty, other, mixed, delta = (tmp_path / name for name in ("empty", "other", "mixed", "delta"))
    for folder in (empty, other, delta):
        folder.mkdir()
    (other / "x.csv").write_text("1,2\n")
    shutil.copytree(a, mixed)
    (mixed / "1.json").write_text('{"k": 1, "v": 0.5, "n": 0}\n')
    (delta / "_delta_log").mkdir()
    broken = jsonl(tmp_path / "broken", [(1, 0.5, 0)])
    (broken / "1.jsonl").write_text('{"k": 1, "v": 0.5, "n": 0}\n{"k": 1, "v"\n')
    torn = shutil.copytree(a, tmp_path / "torn")
    (torn / "0.parquet").write_bytes(b"PAR1 and nothing else")
    same_k, kind = tight.same("k"), tight.Kind("Row", k=int, v=float, n=int)
    questions: list[tuple[type[StreamtightError], str, Callable[[], object]]] = [
        (SourceError, "no such path", lambda: compare(a, tmp_path / "nowhere", same_k)),
        (SourceError, "an empty folder", lambda: compare(a, empty, same_k)),
        (SourceError, "names such as 'x.csv'", lambda: compare(a, other, same_k)),
        (SourceError, "came json and parquet", lambda: compare(a, mixed, same_k)),
        (SourceError, "a Delta table", lambda: compare(a, delta, same_k)),
        (SourceError, "Unexpected end-of-input.*", lambda: compare(a, broken, same_k)),
        (SourceError, "is not a Parquet file", lambda: compare(a, torn, same_k)),
        (SourceError, "'when'. Try: one of k, v, n", lambda: compare(recorded(a, order_by="when"), a, same_k)),
        (SourceError, "each column of order_by", lambda: compare(a, recorded(null, order_by="n"), same_k)),
        (SourceError, "each column of order_by", lambda: compare(a, recorded(null, order_by="v"), tight.ordered)),
        (RowError, "only the reference has n, v", lambda: compare(a, less, same_k)),
        (RowError, "column 'k'.*bigint in the reference and string", lambda: compare(a, text, same_k)),
        (
            RowError,
            "the reference, .*: needed the columns k, v, n; came k",
            lambda: compare(recorded(less, kind=kind), a, same_k),
        ),
        (RowError, r"the row \(1, 0.5, None\)", lambda: compare(recorded(a, kind=kind), null, tight.unordered)),
        (RowError, r"the row \(1, 0.5, None\)", lambda: compare(recorded(a, kind=kind), null, same_k)),
        (RowError, "the same kinds", lambda: compare(recorded(a, kind=kind), recorded(a, kind=Row), same_k)),
        (DependenceError, "Row, which it does not know", lambda: compare(recorded(a, kind=kind), a, tight.Bag(Row))),
        (DependenceError, "a field 'taxi'", lambda: compare(a, a, tight.same("taxi"))),
        (DependenceError, "a field 'x'", lambda: compare(a, a, tight.unordered, equal=tight.equality(only="x"))),
        (DependenceError, "symmetric", lambda: compare(null, null, tight.depends(lambda a, b: a.k is None))),
        (RowError, "names that differ .* Try: .*kind=", lambda: compare(kinds, kinds, same_k)),
        (DependenceError, "ZeroDivisionError", lambda: compare(a, null, tight.unordered, equal=lambda a, b: 1 // 0)),
        (TraceError, "a dependence or a schema", lambda: compare(a, a, "k")),  # type: ignore[arg-type]
        (TraceError, "seconds above 0", lambda: compare(a, a, same_k, limit=0)),
        (SourceError, "two recorded outputs", lambda: compare_recorded("a", recorded(a), upto=same_k)),  # type: ignore[arg-type]
        (SourceError, "parquet or json; came 'csv'", lambda: recorded(a, format="csv")),
        (SourceError, "names of columns", lambda: recorded(a, order_by=[1])),  # type: ignore[list-item]
        (SourceError, "a folder or a file", lambda: recorded("")),
    ]
    for error, message, ask in questions:
        with pytest.raises(error, match=message) as raised:
            ask()
        assert raised.value.hint


def test_a_relation_may_use_functions_of_the_module_that_asks(tmp_path: Path) -> None:
    a = parquet(tmp_path / "a", [(1, 0.5, 0), (2, 1.5, 1)])

    assert compare(a, a, tight.depends(of_one_key)).holds


def of_one_key(a: tight.Event, b: tight.Event) -> bool:
    return bool(a.k == b.k)


def test_time_that_is_up_leaves_it_undecided(tmp_path: Path) -> None:
    a = parquet(tmp_path / "a", [(1, 0.5, 0), (2, 1.5, 1)])

    verdict = compare(a, a, tight.depends(slow), limit=2)

    assert verdict.reason == "no answer within 2 seconds"


def slow(a: tight.Event, b: tight.Event) -> bool:
    import time

    time.sleep(3)
    return True


def test_what_is_not_found_a_second_time_is_our_own_bug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = parquet(tmp_path / "a", [(1, 0.5, 0)]), parquet(tmp_path / "b", [(1, 1.5, 0)])
    monkeypatch.setattr(module._Comparison, "_counts", lambda self, wanted: [(1, 1) for _ in wanted])

    with pytest.raises(EncodingError, match="on one side more often; came it once and once"):
        compare(a, b, tight.unordered)


def test_an_equality_that_is_no_equivalence_is_a_wrong_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = parquet(tmp_path / "a", [(1, 0.5, 0)]), parquet(tmp_path / "b", [(1, 1.5, 0)])
    monkeypatch.setattr(module._Comparison, "_counts", lambda self, wanted: [(1, 1) for _ in wanted])

    with pytest.raises(DependenceError, match="needed an equivalence; with it, Row"):
        compare(a, b, tight.unordered, equal=lambda one, other: one == other)


@pytest.mark.slow
def test_the_lines_of_a_replay_ask_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kind = tight.Kind("Fare", k=int, v=float, n=int)
    a, b = parquet(tmp_path / "a", [(1, 0.5, 0)]), parquet(tmp_path / "b", [(1, 1.5, 0)])
    verdict = compare(recorded(a, kind=kind, order_by="n"), b, tight.same("k"), equal=tight.equality(ignore="n"))
    assert verdict.counterexample is not None

    exec(verdict.counterexample.replay, {})

    assert verdict.story() in capsys.readouterr().out
