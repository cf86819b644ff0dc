"""What is read back from checkpoints: plain data comes back as it was; what is broken or could run code is refused."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import json
import os
import pickle
import stat
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import streamtight as tight
from streamtight.errors import CheckpointError, StreamtightError
from streamtight.method.compare.matcher import Difference, Place
from streamtight.method.watch.questions import unpacked as unpacked_questions
from streamtight.program.fork_join import BEGINNING
from streamtight.program.pipeline import Pipeline
from streamtight.program.pipeline_state import mark_of, unpacked_state
from streamtight.program.processor import Passthrough
from streamtight.report.write import read_report
from streamtight.source.kept import Kept as SavedCase
from streamtight.spark import sealed
from streamtight.spark.live_book import Alarm, Book, Metrics, Pages
from streamtight.spark.live_bucket import Finding, Report, Waiting, restored, storable
from streamtight.spark.live_bucket import Kept as KeptRows
from streamtight.spark.parallel_stream import Kept as KeptBatch
from streamtight.spark.parallel_stream import kept_from, kept_text
from streamtight.spark.recorded_files import batches_of
from streamtight.spark.stage_tasks import Kept as KeptStage
from streamtight.spark.stage_tasks import restored as stage_restored
from streamtight.spark.stage_tasks import storable as stage_storable
from streamtight.stream.plain import from_plain
from streamtight.verdict import Counterexample, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GPS = tight.Kind("GPS", taxi=int, x=float | None, price=Decimal)
End = tight.Kind("End")
KINDS = [End, GPS]
KEY = b"k" * 32
AT = datetime(2024, 5, 1, tzinfo=UTC)


class Bomb:
    """Runs code when it is unpickled: makes a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self._path,))


def places() -> list[Place]:
    rows = [GPS(1, float("nan"), Decimal("1.50")), GPS(2**63 - 1, -0.0, Decimal(0)), End()]
    return [
        Place(side, position, row)
        for side, position, row in zip(("left", "right", "left"), (1, 2, 10**12), rows, strict=True)
    ]


def full_book() -> Book:
    """A book of which every field, all the way down, is not what it is by default."""
    one, other, last = places()
    difference = Difference(one, (other, last), "same('taxi')", (other.event,), (last,), 7)
    found = Counterexample(
        finding="DIVERGED",
        explanation="they differ",
        schedule=tight.Schedule.of([one.event, last.event]),
        expected=(one.event,),
        actual=(),
        table=Table(("a",), (("1\n2",),), "steps"),
        replay="print(1)",
        picture='<svg xmlns="http://www.w3.org/2000/svg"><g /></svg>',
        reruns=2,
        failing_reruns=1,
    )
    waiting = (Waiting(one, 5), Waiting(other, 6))
    report = Report(3, (4, 5), (1, 2), waiting, 9, 8, True, Finding(found, difference), waiting_in=4)
    alarms = [
        Alarm("STUCK", "waits", AT, 1, 2, one),
        Alarm("DIVERGED", "differs", AT, 3, 4, difference=difference, counterexample=found),
    ]
    metrics = Metrics(1, AT, 2, 3, 4, 5, 0.5, 6, 0.25, 0.125, 7)
    return Book(5, 6, {0: report}, {0: None, 1: report}, alarms, {(1, "left"): 3}, [(1, 2)], [(3, 4)], metrics)


def test_a_book_comes_back_as_it_was() -> None:
    book, pages = full_book(), Pages(KINDS)

    assert pages.book(pages.text(book).encode(), "here") == book
    assert Pages(KINDS).book(pages.text(Book()).encode(), "here") == Book()


def test_the_sample_book_leaves_no_field_out() -> None:
    """So a field that is added later is noticed by the test above."""
    book = full_book()
    finding = book.reports[0].finding
    assert finding is not None
    assert finding.difference is not None
    for value in (book, book.reports[0], book.metrics, finding.counterexample, finding.difference):
        assert dataclasses.is_dataclass(value)
        for one in dataclasses.fields(value):
            default = one.default_factory() if callable(one.default_factory) else one.default
            assert getattr(value, one.name) != default, one.name
    assert {field.name for field in dataclasses.fields(Alarm)} == {
        field.name
        for alarm in book.alarms
        for field in dataclasses.fields(alarm)
        if getattr(alarm, field.name) is not None
    }


def test_an_alarm_is_written_once_and_forgotten_with_the_book() -> None:
    book, pages = full_book(), Pages(KINDS)
    first = pages.text(book)

    assert pages.text(book) == first
    del book.alarms[0]
    assert len(pages.book(pages.text(book).encode(), "").alarms) == 1


def test_a_picture_in_a_book_brings_no_code_along() -> None:
    pages = Pages(KINDS)
    text = pages.text(full_book()).replace("<g />", "<script>alert(1)</script><g onload='x' />")

    [_, alarm] = pages.book(text.encode(), "").alarms

    assert alarm.counterexample is not None
    assert alarm.counterexample.picture == '<svg xmlns="http://www.w3.org/2000/svg"><g /></svg>'


ROWS = KeptRows(
    False, (2, 1), ([(1, 5, GPS(1, float("inf"), Decimal("0.10"))), (2, 6, End())], [(1, 7, GPS(3, None, Decimal(2)))])
)


def test_unmatched_rows_come_back_as_they_were() -> None:
    assert restored(storable(ROWS, KINDS), KINDS) == ROWS
    assert restored(storable(KeptRows(True, (9, 9)), KINDS), KINDS) == KeptRows(True, (9, 9), ([], []))


def readers() -> dict[str, tuple[bytes, Any]]:
    batch = KeptBatch("p", ("a",), 3, pickle.dumps({"n": 1}), {"a": (1.5, 0, 0), "b": (*BEGINNING[:2], 1)}, {"a": 2})
    return {
        "book": (Pages(KINDS).text(full_book()).encode(), lambda text: Pages(KINDS).book(text, "here")),
        "rows": (storable(ROWS, KINDS), lambda text: restored(text, KINDS)),
        "batch": (kept_text(batch, KEY), lambda text: kept_from(text, KEY, "here")),
        "stage": (stage_storable(KeptStage(2), KEY), lambda text: stage_restored(text, KEY)),
    }


@pytest.mark.parametrize("of", readers())
def test_a_pickle_in_the_place_of_what_we_write_is_refused_and_not_run(of: str, tmp_path: Path) -> None:
    _, read = readers()[of]
    bomb = pickle.dumps(Bomb(tmp_path / "ran"))

    for text in (
        bomb,
        json.dumps({"book": base64.b64encode(bomb).decode()}).encode(),
        b"streamtight 2\n" + b"0" * 32 + bomb,
    ):
        with pytest.raises(CheckpointError):
            read(text)

    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("of", readers())
def test_what_is_cut_off_changed_or_of_another_version_is_refused(of: str) -> None:
    good, read = readers()[of]
    read(good)
    wrong = [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"7",
        b"\xff\xfe",
        b"[" * 200_000,
        b'{"streamtight": 2}',
        b'{"streamtight": true}',
    ]
    wrong += [good[:end] for end in range(0, len(good) - 2, max(1, len(good) // 40))]
    wrong += [good.replace(b'"streamtight": 2', version) for version in (b'"streamtight": 3', b'"streamtight": "2"')]
    wrong += [good.replace(b'"streamtight":2', b'"streamtight":1'), good.replace(b"streamtight 2", b"streamtight 1")]

    for text in wrong:
        if text != good:
            with pytest.raises(StreamtightError):
                read(text)


@pytest.mark.parametrize("of", ["book", "rows", "batch"])
def test_any_change_of_a_value_is_read_or_refused_with_a_plain_error(of: str) -> None:
    good, read = readers()[of]

    def changed(data: Any, path: tuple[Any, ...] = ()) -> Any:
        """All data in which one place holds something else."""
        for other in (None, -1, "x", [], {}, [[]], 1.5, True, {"kinds": []}):
            yield path, other
        inner = data.items() if isinstance(data, dict) else enumerate(data[:3]) if isinstance(data, list) else ()
        for key, value in inner:
            yield from changed(value, (*path, key))

    for path, other in list(changed(json.loads(good)))[1:]:
        data = json.loads(good)
        if not path:
            continue
        place = data
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = other
        with contextlib.suppress(StreamtightError):
            read(json.dumps(data).encode())


# -- sealed states ---------------------------------------------------------------------------------------------------


def test_a_state_of_any_class_comes_back_with_the_same_key_only() -> None:
    kept = KeptStage(2, {"v": Decimal(1)}, {("e", 0): ((1, 0), {})}, {"out": 3}, 4)
    blob = stage_storable(kept, KEY)

    assert stage_restored(blob, KEY) == kept
    with pytest.raises(CheckpointError, match="STREAMTIGHT_KEY"):
        stage_restored(blob, b"another key" * 3)


def test_plain_values_are_read_without_the_key() -> None:
    kept = KeptStage(2, {"v": (1, 2.5, None, {"a": [True, b"x"]}, {3})}, {}, {"out": 3}, 4)

    assert stage_restored(stage_storable(kept, KEY), b"another key" * 3) == kept


@pytest.mark.parametrize(
    "code",
    [
        b"cos\nsystem\n(S'touch {}'\ntR.",
        b"cbuiltins\neval\n.",
        b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x04true\x85R.",
        b"\x80\x02\x82\x01.",  # a number that stands for a class
        b"Pid\n.",
        b"(i__main__\nBomb\n.",
    ],
)
def test_what_names_anything_is_not_plain(code: bytes, tmp_path: Path) -> None:
    code = code.replace(b"{}", str(tmp_path / "ran").encode())

    with pytest.raises(CheckpointError):
        sealed.opened(b"streamtight 2\n" + b"0" * 32 + code, KEY, "here")

    assert not (tmp_path / "ran").exists()


def test_every_changed_bit_of_a_sealed_state_is_noticed() -> None:
    packed = pickle.dumps(Decimal(3))
    blob = sealed.sealed(packed, KEY)

    assert sealed.opened(blob, KEY, "here") == packed
    for place in range(len(blob)):
        with pytest.raises(CheckpointError):
            sealed.opened(blob[:place] + bytes([blob[place] ^ 1]) + blob[place + 1 :], KEY, "here")


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.delenv("STREAMTIGHT_KEY", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "streamtight" / "key"


def test_the_key_is_made_once_and_nobody_else_can_read_it(home: Path) -> None:
    key = sealed.own_key()

    assert sealed.own_key() == key == home.read_bytes()
    assert len(key) == 32
    assert stat.S_IMODE(home.stat().st_mode) == 0o600
    assert list(home.parent.iterdir()) == [home]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602])
def test_a_key_that_others_may_read_or_write_is_refused(home: Path, mode: int) -> None:
    sealed.own_key()
    home.chmod(mode)

    with pytest.raises(CheckpointError, match="chmod 600"):
        sealed.own_key()


def test_a_key_that_is_a_link_or_cut_off_is_refused(home: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"k" * 32)
    elsewhere.chmod(0o600)
    home.parent.mkdir()
    home.symlink_to(elsewhere)
    with pytest.raises(CheckpointError):
        sealed.own_key()
    home.unlink()
    home.write_bytes(b"short")
    home.chmod(0o600)
    with pytest.raises(CheckpointError, match="32 bytes"):
        sealed.own_key()


def test_a_key_in_the_environment_is_used_and_must_be_long(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMTIGHT_KEY", "a long text that many drivers share")
    first = sealed.own_key()
    monkeypatch.setenv("STREAMTIGHT_KEY", "another long text that they share")

    assert sealed.own_key() != first
    assert not home.exists()
    monkeypatch.setenv("STREAMTIGHT_KEY", "short")
    with pytest.raises(CheckpointError, match="5 letters"):
        sealed.own_key()


# -- other files -----------------------------------------------------------------------------------------------------

PIPELINE = Pipeline.wired("in -> A -> out", A=Passthrough())
BROKEN = ["", "{", "[" * 100_000, '{"a":' * 100_000, "null", "[1]", "{}", "7", "\ud800", "\x80\x04K\x01.", '{"of": 1}']


@pytest.mark.parametrize("text", BROKEN, ids=lambda text: text[:10])
def test_other_files_that_are_broken_are_plain_errors(text: str, tmp_path: Path) -> None:
    file = tmp_path / "case.json"
    file.write_text(text, encoding="utf-8", errors="surrogatepass")
    readers: list[Any] = [
        lambda: SavedCase.read(file),
        lambda: read_report(file),
        lambda: from_plain({"datetime": text}, []),
        lambda: unpacked_state(PIPELINE, mark_of(PIPELINE), text),
        lambda: unpacked_questions((), text),
        lambda: batches_of({"0": f"v1\n{text or '1'}"}),
    ]

    for read in readers:
        with pytest.raises(StreamtightError):
            read()


# -- on Spark --------------------------------------------------------------------------------------------------------


def compared(spark: SparkSession, folder: Path) -> Any:
    streams = [spark.readStream.schema("taxi int, x int").json(str(folder / side)) for side in ("left", "right")]
    return tight.compare_live(
        *streams, upto=tight.same("taxi"), checkpoint=folder / "checkpoint", every=0, buckets=1, tasks=1
    )


def test_a_comparison_whose_book_was_replaced_by_a_pickle_does_not_start(spark: SparkSession, tmp_path: Path) -> None:
    for side, rows in (("left", '{"taxi": 1, "x": 2}'), ("right", "")):
        (tmp_path / side).mkdir()
        (tmp_path / side / "0.json").write_text(rows)
    with compared(spark, tmp_path) as live:
        live.query.processAllAvailable()
    own = tmp_path / "checkpoint" / "comparison"
    page = sorted(own.glob("book-*.json"))[-1]
    assert json.loads(page.read_text())["metrics"]["left"] == 1
    good = page.read_bytes()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("root:x:0:0")

    for text in (pickle.dumps(Bomb(tmp_path / "ran")), good[:-20], b"[" * 100_000, good.replace(b": 2", b": 1", 1)):
        for sum_of_it in own.glob(".*.crc"):
            sum_of_it.unlink()  # else Hadoop notices first
        page.write_bytes(text)
        with pytest.raises(CheckpointError, match=r"book-.*a new checkpoint folder"):
            compared(spark, tmp_path)
    page.unlink()
    os.symlink(elsewhere, page)
    with pytest.raises(CheckpointError) as refused:
        compared(spark, tmp_path)

    assert "root:x" not in str(refused.value)
    assert not (tmp_path / "ran").exists()
    page.unlink()
    page.write_bytes(good)
    (own / "settings.json").write_text("{}")
    for sum_of_it in own.glob(".*.crc"):
        sum_of_it.unlink()
    with pytest.raises(CheckpointError, match=r"settings\.json"):
        compared(spark, tmp_path)
