"""Live comparisons in which no order matters, against queues of rows in plain Python."""

from __future__ import annotations

import contextlib
import json
import math
import random
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from streamtight import same, unordered
from streamtight.errors import JobError, UnsupportedError
from streamtight.spark.live import compare_live
from streamtight.spark.live_bag import Bag, can_be_counted
from streamtight.spark.live_book import Book, Folder, Limits
from streamtight.spark.live_bucket import Report
from streamtight.spark.rows import Table, kind_of

Rows = list[tuple[Any, ...]]
COLUMNS = "n int, x double, s string"
ODD = [
    (None, 1.0, ""),
    (1, None, ""),
    (1, math.nan, None),
    (1, 0.0, "a"),
    (1, -0.0, "a"),
    (2, math.inf, "ä😀"),
    (2, 1.0, None),
]


class Compared:
    """A bag whose micro-batches are given one by one, and a book that takes what it reports."""

    def __init__(self, spark: SparkSession, folder: Path, columns: str = COLUMNS) -> None:
        self._spark = spark
        self._columns: StructType = spark.createDataFrame([], columns).schema
        kind = kind_of("row", self._columns)
        self.folder = Folder(spark, str(folder), [kind])
        self.bag = Bag(self.folder, Table([kind]), self._columns, None)
        self.book = Book()

    def batch(self, number: int, at: int, left: Rows, right: Rows) -> Report | None:
        reports = self.bag.reports(self.frame(left, right), number, self.book, at)
        self.book.take(number, reports, buckets=1, now=at, limits=Limits())
        return reports.get(0)

    def frame(self, left: Rows, right: Rows) -> DataFrame:
        rows = [(1, *row) for row in left] + [(-1, *row) for row in right]
        names = ", ".join(f"c{n} {c.dataType.simpleString()}" for n, c in enumerate(self._columns.fields))
        return self._spark.createDataFrame(rows, f"side int, {names}").repartition(3)


class Queues:
    """The same in plain Python: equal rows of a side wait in a queue."""

    def __init__(self) -> None:
        self.seen = [0, 0]
        self.waiting: list[dict[Any, list[int]]] = [{}, {}]

    def batch(self, at: int, *sides: Rows) -> tuple[int, int]:
        """How many pairs were found, and how long the slowest took."""
        came = [Counter(map(self._name, rows)) for rows in sides]
        matched = longest = 0
        for side, rows in enumerate(sides):
            self.seen[side] += len(rows)
            for row, count in came[side].items():
                self.waiting[side].setdefault(row, []).extend([at] * count)
        for row in set(self.waiting[0]) & set(self.waiting[1]):
            mine, theirs = self.waiting[0][row], self.waiting[1][row]
            while mine and theirs:
                matched += 1
                longest = max(longest, at - mine.pop(0), at - theirs.pop(0))
        return matched, longest

    @staticmethod
    def _name(row: tuple[Any, ...]) -> Any:
        return tuple("NaN" if value != value else value for value in row)

    def ages(self, side: int) -> list[int]:
        return sorted(at for queue in self.waiting[side].values() for at in queue)


@pytest.mark.parametrize("seed", [*(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 1, 3)), 2])
def test_rows_of_all_sorts_find_their_match_as_in_queues(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    compared, queues = Compared(spark, tmp_path), Queues()
    late: list[tuple[int, tuple[Any, ...]]] = []  # what the right side has still to give, and from which batch on

    for number in range(6):
        at = 1000 * (number + 1)
        left = [chance.choice(ODD) for _ in range(chance.choice([0, 1, 8]))]
        late += [(number + chance.choice([0, 0, 1, 2]), row) for row in left]
        right = [row for when, row in late if when <= number]
        late = [(when, row) for when, row in late if when > number]
        if seed % 2 and number == 4:
            right.append((9, 9.0, "wrong"))
        matched, longest = queues.batch(at, left, right)
        report = compared.batch(number, at, left, right)
        if report is None:
            assert not left
            assert not right
            continue
        unmatched = tuple(len(queues.ages(side)) for side in (0, 1))
        assert (report.seen, report.unmatched) == (tuple(queues.seen), unmatched)
        assert (report.matched, report.longest_wait) == (matched, longest)
        oldest = {side: min(queues.ages(n), default=None) for n, side in enumerate(("left", "right"))}
        shown = {side: min((w.at for w in report.oldest if w.place.side == side), default=None) for side in oldest}
        assert shown == oldest


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([(None, 1.0, "")], [(1, None, "")]),
        ([(1, None, "")], [(1, None, None)]),
        ([(1, 1.0, "a"), (1, 1.0, "a")], [(2, 2.0, "b"), (2, 2.0, "b")]),  # which an exclusive or would not tell apart
        pytest.param([(1, 1.0, "a"), (2, 2.0, "b")], [(1, 2.0, "a"), (2, 1.0, "b")], marks=pytest.mark.slow),
        pytest.param([(1, 1.0, "ab")], [(1, 1.0, "a")], marks=pytest.mark.slow),
        ([(1, 1.0, "a")] * 2 + [(2, 1.0, "a")], [(1, 1.0, "a")] + [(2, 1.0, "a")] * 2),
    ],
)
def test_rows_that_differ_are_never_taken_for_equal(
    spark: SparkSession, tmp_path: Path, left: Rows, right: Rows
) -> None:
    report = Compared(spark, tmp_path).batch(0, 1, left, right)
    more, fewer = Counter(left) - Counter(right), Counter(right) - Counter(left)
    assert report is not None
    assert report.unmatched == (more.total(), fewer.total())


def test_a_batch_that_runs_again_begins_where_it_began(spark: SparkSession, tmp_path: Path) -> None:
    compared = Compared(spark, tmp_path)
    row, other = (1, 1.0, "a"), (2, 2.0, "b")
    compared.batch(0, 1000, [row, other], [])
    first = compared.batch(1, 2000, [], [row])
    again = compared.batch(1, 2000, [], [row])
    assert first == again
    assert again is not None
    assert (again.seen, again.unmatched) == ((2, 1), (1, 0))
    compared.batch(2, 3000, [], [])
    last = compared.batch(3, 4000, [], [other])
    assert last is not None
    assert (last.seen, last.unmatched, last.longest_wait) == ((2, 2), (0, 0), 3000)
    folders = list((tmp_path / "comparison" / "waiting").iterdir())
    assert len(folders) == 2  # of this batch, and of the one before, from which it may have to begin again


def test_only_columns_whose_values_spark_can_tell_apart_are_counted(spark: SparkSession) -> None:
    def counted(columns: str) -> bool:
        return can_be_counted(spark.createDataFrame([], columns).schema)

    assert counted("a int, b string, c timestamp, d decimal(38, 2), e binary, f boolean, g date, h float")
    assert not counted("a array<int>")
    assert not counted("a map<int, int>")
    assert not counted("a struct<b: int>")
    assert not counted("a string collate UTF8_LCASE")


def test_decimals_and_bytes_are_told_as_they_are(spark: SparkSession, tmp_path: Path) -> None:
    compared = Compared(spark, tmp_path, "d decimal(38, 2), b binary")
    report = compared.batch(0, 1, [(Decimal("1.10"), b"\0\xff")], [(Decimal("1.11"), b"")])
    assert report is not None
    shown = {waiting.place.side: tuple(waiting.place.event[1:]) for waiting in report.oldest}
    assert shown == {"left": (Decimal("1.10"), b"\0\xff"), "right": (Decimal("1.11"), b"")}


# -- as a query ------------------------------------------------------------------------------------------------------


def read(spark: SparkSession, folder: Path) -> DataFrame:
    folder.mkdir(exist_ok=True)
    return spark.readStream.schema("n long, s string").option("maxFilesPerTrigger", 1).json(str(folder))


def put(folder: Path, number: int, rows: Rows) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f".{number}").write_text("\n".join(json.dumps({"n": n, "s": s}) for n, s in rows))
    (folder / f".{number}").rename(folder / f"{number}.json")


def test_a_bug_that_begins_while_it_runs_is_told_with_its_rows_and_the_jobs_go_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, bug = tmp_path / "in", tmp_path / "bug"
    rows = [[(10 * batch + n, "view") for n in range(10)] for batch in range(4)]
    handed_on: dict[tuple[str, int], Rows] = {}

    def then(left: DataFrame, right: DataFrame, batch: int) -> None:
        for side, frame in (("left", left), ("right", right)):
            handed_on[side, batch] = sorted(map(tuple, frame.collect()))
        if batch == 1:
            bug.touch()

    path = str(bug)

    wrong = sf.udf(lambda n, s: "click" if n % 10 == 3 and Path(path).exists() else s, "string")
    right = read(spark, source).withColumn("s", wrong("n", "s"))
    live = compare_live(
        read(spark, source),
        right,
        upto=unordered,
        checkpoint=tmp_path / "checkpoint",
        stuck_after_events=20,
        then=then,
    )
    with live:
        for number, some in enumerate(rows):
            put(source, number, some)
            live.query.processAllAvailable()
        assert live.verdict().undecided
        assert [alarm.batch for alarm in live.alarms] == [3, 3]  # of either side, a batch after it began
        assert live.alarms[0].explanation.startswith(
            "row(n=23, s='view') of the left has not come on the right while 20 more rows came (limit 20)"
        )
        assert "what waits on the right is row(n=23, s='click')" in live.alarms[0].explanation
        ended = live.verdict(ended=True)
    assert ended.fails
    assert ended.counterexample is not None
    assert ended.counterexample.finding == "LEFT_OVER"
    assert {key: rows[key[1]] for key in handed_on if key[0] == "left"} == {
        key: value for key, value in handed_on.items() if key[0] == "left"
    }
    assert (live.metrics.left, live.metrics.right) == (40, 40) if live.metrics else False


def test_jobs_that_give_other_rows_at_a_second_reading_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    numbers = tmp_path / "numbers"
    numbers.write_text("0")
    path = str(numbers)

    def next_number(n):  # type: ignore[no-untyped-def]  # Spark would read the types
        count = int(Path(path).read_text()) + 1
        Path(path).write_text(str(count))
        return count

    put(tmp_path / "in", 0, [(1, "a")])
    source = read(spark, tmp_path / "in")
    odd = source.withColumn("n", sf.udf(next_number, "long").asNondeterministic()("n") + 100)
    live = compare_live(source, odd, upto=unordered, checkpoint=tmp_path / "checkpoint")
    with contextlib.suppress(StreamingQueryException):
        live.query.awaitTermination(60)
    with pytest.raises(JobError, match="other rows at the second reading"):
        live.verdict()
    live.stop()


def test_then_needs_rows_in_no_order(spark: SparkSession, tmp_path: Path) -> None:
    source = read(spark, tmp_path / "in")
    with pytest.raises(UnsupportedError, match="by n"):
        compare_live(source, source, upto=same("n"), checkpoint=tmp_path / "c", then=lambda left, right, batch: None)
