"""A journal is written by one process and read by another: whatever comes between, what is read is what was written."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import random
import threading
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from streamtight.source import board as board_module
from streamtight.source import journal as journal_module
from streamtight.source.board import HISTORY, MOST_NOTES, Board, Watched
from streamtight.source.journal import BYTES_PER_FILE, Journal, board_of, folder_name


def looked(board: Path) -> Board:
    found = Board(board)
    found.look()
    return found


def only(board: Board) -> Watched:
    board.look()
    (job,) = board.jobs
    return job


def batches(job: Watched) -> list[int]:
    return [json.loads(text)["batch"] for _, text in job.points]


def files(journal: Journal) -> list[str]:
    return sorted(path.name for path in journal.folder.iterdir() if path.suffix == ".jsonl")


# -- what is written is read -----------------------------------------------------------------------------------------


def test_what_a_job_tells_is_what_is_read(tmp_path):
    journal = Journal(tmp_path, "taxis", kind="compare_live", asks="the same?")
    journal.note(
        at=100.5, batch=3, rows={"left": 4, "right": 2}, rate=1.5, unmatched={"left": 2, "right": 0}, oldest=0.25,
        lag=7.0, seconds=0.5, keys=9, counts={"q": {"late": 1}}, values={"q": {"min": -1.5}}, verdict="UNDECIDED",
        reason="2 wait",
    )  # fmt: skip
    journal.alarm("STUCK", "row 1", at=101.0)
    journal.found("STUCK", "row 1", story="long", picture="<svg/>", claim="the same")

    job = only(Board(tmp_path))

    assert (job.name, job.kind, job.asks, job.starts, job.ended) == ("taxis", "compare_live", "the same?", 1, None)
    assert job.latest == {
        "batch": 3, "rows": {"left": 4, "right": 2}, "rate": 1.5, "unmatched": {"left": 2, "right": 0}, "oldest": 0.25,
        "lag": 7.0, "seconds": 0.5, "keys": 9, "counts": {"q": {"late": 1}}, "values": {"q": {"min": -1.5}},
    }  # fmt: skip
    assert (job.verdict, job.reason) == ("UNDECIDED", "2 wait")
    assert list(job.alarms) == [(101.0, "STUCK", "row 1")]
    assert job.alarm_counts == {"STUCK": 1}
    assert (job.finding.finding, job.finding.story, job.finding.has_picture) == ("STUCK", "long", True)
    assert looked(tmp_path).picture(job.id) == "<svg/>"


def test_a_look_reads_what_is_new_and_nothing_twice(tmp_path):
    journal = Journal(tmp_path, "a", kind="watch")
    board = Board(tmp_path)
    for number in range(5):
        journal.note(batch=number)
        assert batches(only(board)) == list(range(number + 1))
    before = board.sequence

    board.look()

    assert board.sequence == before


def test_what_a_job_does_not_tell_again_is_still_the_last_that_is_known(tmp_path):
    journal = Journal(tmp_path, "a", kind="watch")
    journal.note(batch=1, rate=2.0, seconds=3.0)
    journal.note(batch=1, rate=4.0)

    assert only(Board(tmp_path)).latest == {"batch": 1, "rate": 4.0, "seconds": 3.0}


def test_only_what_changed_has_a_new_number(tmp_path):
    quiet, busy = (Journal(tmp_path, name, kind="watch") for name in ("quiet", "busy"))
    board = Board(tmp_path)
    quiet.note(batch=1)
    busy.note(batch=1)
    board.look()
    since = board.sequence

    busy.note(batch=2)
    board.look()

    assert [job.name for job in board.jobs if job.changed > since] == ["busy"]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (math.nan, None), (math.inf, None), (-math.inf, None), (0, 0), (-0.0, 0), (10**400, None), (2**63, 2**63),
        (True, 1), (Decimal("1.5"), 1.5), (1e-300, 1e-300), (1.23456789, 1.234568),
    ],
)  # fmt: skip
def test_numbers_that_json_or_a_chart_cannot_hold_are_left_out(tmp_path, given, kept):
    journal = Journal(tmp_path, "a", kind="watch")

    journal.note(batch=1, rate=given, values={"q": {"avg": given}})

    job = only(Board(tmp_path))
    assert job.latest.get("rate") == kept
    assert job.latest.get("values", {}).get("q", {}).get("avg") == kept
    assert job.unreadable == 0


def test_a_heartbeat_is_seen_though_nothing_is_told(tmp_path, monkeypatch):
    journal = Journal(tmp_path, "a", kind="watch")
    board = Board(tmp_path)
    path = journal.folder / "00000001.jsonl"
    os.utime(path, (1000, 1000))
    before = only(board).changed
    size = path.stat().st_size

    journal.alive()
    assert only(board).changed == before  # not so soon
    monkeypatch.setattr(journal_module, "SECONDS_BETWEEN_BEATS", 0.0)
    journal.alive()

    assert only(board).changed > before
    assert abs(only(board).alive - time.time()) < 60
    assert path.stat().st_size == size


# -- it stays small --------------------------------------------------------------------------------------------------


def test_a_journal_is_two_files_however_long_it_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(journal_module, "LINES_PER_FILE", 10)
    journal = Journal(tmp_path, "a", kind="watch")
    for number in range(95):
        journal.note(batch=number)

    assert len(files(journal)) == 2
    assert 10 <= len(batches(only(Board(tmp_path)))) <= 20
    assert batches(only(Board(tmp_path)))[-1] == 94


def test_long_lines_fill_a_file_as_many_do(tmp_path):
    journal = Journal(tmp_path, "a", kind="watch")
    for number in range(1200):
        journal.alarm("STUCK", f"{number} " + "x" * 5_000)

    assert sum(path.stat().st_size for path in journal.folder.iterdir()) < 2.1 * BYTES_PER_FILE
    assert only(Board(tmp_path)).alarm_counts == {"STUCK": 1200}


def test_a_reader_that_looks_seldom_or_often_sees_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(journal_module, "LINES_PER_FILE", 7)
    chance = random.Random(5)
    journal = Journal(tmp_path, "a", kind="watch")
    often, seldom = Board(tmp_path), Board(tmp_path)
    for number in range(200):
        journal.note(batch=number)
        only(often)
        if chance.random() < 0.2:
            only(seldom)

    assert batches(only(often)) == list(range(200))
    assert only(often).starts == only(seldom).starts == 1  # a new file is no new start
    seen = batches(only(seldom))
    assert seen == sorted(set(seen))  # none twice, none out of order; what was removed before it looked is not there
    assert seen[-7:] == list(range(193, 200))


def test_a_file_that_came_in_the_same_moment_as_the_last_look_is_seen(tmp_path):
    put(tmp_path / "a", HEADER, {"at": 6.0, "batch": 1})
    board = looked(tmp_path)
    then = (tmp_path / "a").stat().st_mtime_ns
    put(tmp_path / "a", HEADER, {"at": 7.0, "batch": 2}, number=2)
    os.utime(tmp_path / "a", ns=(then, then))  # clocks of file systems are coarse

    assert batches(only(board)) == [1, 2]


def test_memory_is_bounded(tmp_path):
    journal = Journal(tmp_path, "a", kind="watch")
    board = Board(tmp_path)
    for number in range(HISTORY + 50):
        journal.note(batch=number)

    assert batches(only(board)) == list(range(50, HISTORY + 50))


def test_texts_are_cut_and_pictures_that_are_too_large_are_left_out(tmp_path):
    journal = Journal(tmp_path, "n" * 5_000, kind="watch", asks="q" * 100_000)
    journal.note(batch=1, verdict="UNDECIDED", reason="r" * 100_000)
    journal.found("F" * 500, "e" * 10_000, story="s" * 90_000, picture="p" * 3_000_000)

    job = only(Board(tmp_path))

    assert [len(one) for one in (job.name, job.asks, job.reason, job.finding.story)] == [200, 2_000, 2_000, 20_000]
    assert not job.finding.has_picture


def test_a_line_with_very_many_queries_is_written_without_them(tmp_path):
    journal = Journal(tmp_path, "a", kind="watch")
    values = {f"{'表' * 190}{number}": {"min": 1.0} for number in range(60)}

    journal.note(batch=1, rate=2.0, values=values)

    job = only(Board(tmp_path))
    assert job.latest == {"batch": 1, "rate": 2.0}
    assert job.unreadable == 0


# -- starts and ends -------------------------------------------------------------------------------------------------


def test_a_job_that_starts_again_goes_on_in_its_folder(tmp_path):
    first = Journal(tmp_path, "a", kind="watch")
    first.note(batch=1)
    first.alarm("STUCK", "one")
    first.end()
    board = Board(tmp_path)
    assert only(board).ended == ""

    second = Journal(tmp_path, "a", kind="watch", asks="another question")
    second.note(batch=2)
    second.alarm("STUCK", "two")

    job = only(board)
    assert second.folder == first.folder
    assert (job.starts, job.ended, job.asks) == (2, None, "another question")
    assert batches(job) == [1, 2]
    assert job.alarm_counts == {"STUCK": 2}
    assert batches(only(Board(tmp_path))) == [1, 2]


def test_what_it_failed_by_is_told_and_nothing_after_it(tmp_path):
    journal = Journal(tmp_path, "a", kind="watch")
    journal.end("boom")
    journal.end()
    journal.note(batch=9)
    journal.found("X", "y")

    job = only(Board(tmp_path))
    assert (job.ended, batches(job), job.finding) == ("boom", [], None)


def test_a_line_that_a_killed_job_left_half_is_no_part_of_the_next_one(tmp_path):
    first = Journal(tmp_path, "a", kind="watch")
    first.note(batch=1)
    path = first.folder / "00000001.jsonl"
    with path.open("ab") as file:
        file.write(b'{"at": 5, "batch": 17')
    os.close(first._lock)  # as if it was killed

    second = Journal(tmp_path, "a", kind="watch")
    second.note(batch=2)

    job = only(Board(tmp_path))
    assert batches(job) == [1, 2]
    assert job.unreadable == 1


def test_two_jobs_of_one_name_do_not_share_a_folder(tmp_path):
    one, other = (Journal(tmp_path, "a", kind="watch") for _ in range(2))
    one.note(batch=1)
    other.note(batch=2)

    board = looked(tmp_path)

    assert [(job.name, batches(job)) for job in board.jobs] == [("a", [1]), ("a", [2])]
    one.end()
    assert Journal(tmp_path, "a", kind="watch").folder == one.folder


def _write_many(folder: str, name: str, count: int) -> None:
    journal = Journal(folder, name, kind="watch")
    for number in range(count):
        journal.note(batch=number)
    journal.end()


def test_a_reader_in_another_process_misses_nothing_while_jobs_write(tmp_path):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_many, args=(str(tmp_path), name, 500)) for name in ("a", "b")]
    board = Board(tmp_path)
    for writer in writers:
        writer.start()
    until = time.monotonic() + 60
    while time.monotonic() < until:
        board.look()
        if len(board.jobs) == 2 and all(job.ended is not None for job in board.jobs):
            break
    for writer in writers:
        writer.join()

    assert [(job.name, batches(job), job.unreadable) for job in board.jobs] == [
        (name, list(range(500)), 0) for name in ("a", "b")
    ]


def test_threads_of_one_job_may_write_together(tmp_path):
    journal = Journal(tmp_path, "a", kind="watch")
    threads = [
        threading.Thread(target=lambda start: [journal.note(batch=start + n) for n in range(50)], args=(start,))
        for start in (0, 1000, 2000)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    job = only(Board(tmp_path))
    assert sorted(batches(job)) == [start + n for start in (0, 1000, 2000) for n in range(50)]
    assert job.unreadable == 0


# -- a journal never stops a job -------------------------------------------------------------------------------------


def journal_warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "streamtight.journal"]


def use(journal: Journal) -> None:
    journal.note(batch=1)
    journal.alarm("A", "b")
    journal.found("A", "b")
    journal.alive()
    journal.end()


def test_a_board_that_is_a_file_is_told_once_and_raises_nothing(tmp_path, caplog):
    (tmp_path / "board").write_text("")

    use(Journal(tmp_path / "board", "a", kind="watch"))

    assert len(journal_warnings(caplog)) == 1
    assert "the job goes on" in journal_warnings(caplog)[0]


def test_a_full_disk_is_told_once_and_what_fits_again_is_written(tmp_path, caplog, monkeypatch):
    journal = Journal(tmp_path, "a", kind="watch")
    real = os.write
    with monkeypatch.context() as patched:

        def half_then_full(file: int, line: bytes) -> int:
            real(file, line[: len(line) // 2])
            raise OSError(28, "No space left on device")

        patched.setattr(os, "write", half_then_full)
        journal.note(batch=1)
        journal.note(batch=2)
    journal.note(batch=3)

    job = only(Board(tmp_path))
    assert batches(job) == [3]
    assert len(journal_warnings(caplog)) == 1


def test_a_folder_that_somebody_removed_is_made_again(tmp_path, caplog):
    journal = Journal(tmp_path, "a", kind="watch")
    journal.note(batch=1)
    board = Board(tmp_path)
    assert batches(only(board)) == [1]
    for path in journal.folder.iterdir():
        path.unlink()
    journal.folder.rmdir()
    board.look()
    assert board.jobs == []

    journal.note(batch=2)

    assert batches(only(board)) == [2]
    assert journal_warnings(caplog) == []


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_a_job_waits_for_no_pipe_and_follows_no_link_that_others_put_there(tmp_path, caplog, kind):
    folder = tmp_path / "board" / folder_name("a")
    folder.mkdir(parents=True)
    target = tmp_path / "precious"
    target.write_text("precious")
    if kind == "pipe":
        os.mkfifo(folder / "00000001.jsonl")
    else:
        (folder / "00000001.jsonl").symlink_to(target)

    use(Journal(tmp_path / "board", "a", kind="watch"))

    assert target.read_text() == "precious"
    assert len(journal_warnings(caplog)) == 1


def test_what_is_no_number_does_not_stop_the_job(tmp_path):
    journal = Journal(tmp_path, "a", kind="watch")

    journal.note(batch=1, rate="fast", rows={"left": object()}, values={"q": {"min": "x"}})  # type: ignore[arg-type, dict-item]

    assert only(Board(tmp_path)).latest["batch"] == 1


# -- names -----------------------------------------------------------------------------------------------------------

NAMES = ["", ".", "..", "../../etc/passwd", "/", "a/b", "a\\b", "a\0b", "A", "a", "é", "日本語", "\ud800", "x" * 5_000,
         "<img src=x onerror=alert(1)>", "con", "nul.", " ", "-rf", "\n"]  # fmt: skip


def test_every_name_has_a_folder_of_its_own_directly_on_the_board(tmp_path):
    board = tmp_path / "board"
    journals = [Journal(board, name, kind="watch") for name in NAMES]

    assert len({journal.folder.name.lower() for journal in journals}) == len(NAMES)
    assert all(journal.folder.parent == board and journal.folder.is_dir() for journal in journals)
    assert [path.name for path in tmp_path.iterdir()] == ["board"]
    assert len(looked(board).jobs) == len(NAMES)


def test_only_the_owner_can_read_a_board(tmp_path):
    journal = Journal(tmp_path / "board", "a", kind="watch")
    journal.found("A", "b")

    assert {oct(path.stat().st_mode & 0o77) for path in (tmp_path / "board").rglob("*")} == {"0o0"}


def test_the_board_is_the_one_given_or_the_environments_or_none(monkeypatch, tmp_path):
    monkeypatch.delenv("STREAMTIGHT_BOARD", raising=False)
    assert board_of(None) is None
    monkeypatch.setenv("STREAMTIGHT_BOARD", str(tmp_path))
    assert board_of(None) == tmp_path
    assert board_of("here") == Path("here")
    assert board_of("") is None


# -- boards of others ------------------------------------------------------------------------------------------------

HEADER = {"journal": 1, "name": "n", "kind": "watch", "asks": "", "started": 5.0, "alarms": {}}


def put(folder: Path, *lines: Any, number: int = 1) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    told = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    path = folder / f"{number:08}.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in told))
    return path


@pytest.mark.parametrize(
    "line",
    [
        b"garbage", b"[1, 2]", b"null", b"\xff\xfe\x00", b"[" * 50_000, b'{"at": "now"}', b'{"at": NaN}', b"{}",
        b'{"at": 1e999}', b'{"at": true, "batch": 1}', b'{"at": ' + b"9" * 5_000 + b"}",
        b'{"journal": 2, "started": 9}', b"x" * 70_000, b'{"journal": 1}',
    ],
)  # fmt: skip
def test_a_line_that_cannot_be_read_is_counted_and_the_next_one_read(tmp_path, line):
    put(tmp_path / "a", HEADER, line, {"at": 6.0, "batch": 1})

    board = looked(tmp_path)

    (job,) = board.jobs
    assert (batches(job), job.unreadable, job.starts) == ([1], 1, 1)
    assert board.notes == ["a: 1 lines cannot be read"]


@pytest.mark.parametrize(
    "line",
    [
        {"at": 6, "rows": 5, "unmatched": [], "values": {"q": 7}, "counts": {"q": {"a": "b"}}, "rate": "1"},
        {"at": 6, "verdict": "PERHAPS", "reason": ["x"]}, {"at": 6, "rate": 10**310, "keys": True, "lag": {}},
    ],
)  # fmt: skip
def test_fields_of_wrong_types_are_left_out(tmp_path, line):
    put(tmp_path / "a", HEADER, line, {"at": 7, "alarm": 5, "told": {}}, {"at": 8, "ended": 3})

    (job,) = looked(tmp_path).jobs

    assert (job.latest, job.verdict, job.reason) == ({}, None, "")
    assert (list(job.alarms), job.ended) == ([(7, "", "")], "")


@pytest.mark.parametrize("first", [{"journal": 2, "started": 5.0}, {"a": 1}, b"PAR1", {"journal": 1, "started": "x"}])
def test_a_folder_that_is_not_ours_is_named_and_left_alone(tmp_path, first):
    put(tmp_path / "b", first, {"at": 6.0, "batch": 1})

    board = looked(tmp_path)

    assert board.jobs == []
    assert board.notes == [f"b: its first line is not that of a journal of version {journal_module.VERSION}, "
                           "which is all that can be read here"]  # fmt: skip


def test_files_and_links_on_a_board_are_not_followed(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    put(elsewhere / "secret", HEADER)
    board = tmp_path / "board"
    board.mkdir()
    (board / "file.txt").write_text("x")
    (board / ".hidden").write_text("x")
    (board / "link").symlink_to(elsewhere / "secret")
    (board / "inner").mkdir()
    (board / "inner" / "00000001.jsonl").symlink_to(elsewhere / "secret" / "00000001.jsonl")
    (board / "pipe").mkdir()
    os.mkfifo(board / "pipe" / "00000001.jsonl")

    found = looked(board)

    assert found.jobs == []
    assert found.notes == [
        "file.txt: no folder of a job; it is left alone",
        "link: no folder of a job; it is left alone",
        "inner: 00000001.jsonl is no plain file",
        "pipe: 00000001.jsonl is no plain file",
    ]


@pytest.mark.parametrize("text", [b"", b"{}", b"[]", b'{"journal": 9}', b"\xff", b"x" * 100])
def test_a_finding_that_is_none_is_not_shown(tmp_path, text):
    path = put(tmp_path / "a", HEADER)
    (path.parent / "finding.json").write_bytes(text)

    board = looked(tmp_path)

    assert board.jobs[0].finding is None
    assert board.picture(board.jobs[0].id) == ""


def test_a_finding_that_leads_elsewhere_is_not_read(tmp_path):
    path = put(tmp_path / "board" / "a", HEADER)
    (tmp_path / "x.json").write_text(json.dumps({"journal": 1, "finding": "X", "picture": "secret"}))
    (path.parent / "finding.json").symlink_to(tmp_path / "x.json")

    board = looked(tmp_path / "board")

    assert board.jobs[0].finding is None
    assert board.picture(board.jobs[0].id) == ""


def test_a_half_written_line_waits_until_it_is_whole(tmp_path):
    path = put(tmp_path / "a", HEADER)
    board = looked(tmp_path)
    whole = json.dumps({"at": 6.0, "batch": 1}).encode() + b"\n"
    for place in range(len(whole)):
        assert batches(only(board)) == []
        with path.open("ab") as file:
            file.write(whole[place : place + 1])

    assert batches(only(board)) == [1]
    assert only(board).unreadable == 0


def test_a_line_without_an_end_takes_no_memory_and_is_left_behind(tmp_path, monkeypatch):
    path = put(tmp_path / "a", HEADER)
    board = looked(tmp_path)
    monkeypatch.setattr(board_module, "MOST_A_LOOK", 100_000)
    with path.open("ab") as file:
        file.write(b"x" * 950_000)
    for _ in range(12):
        board.look()
    with path.open("ab") as file:
        file.write(b'x\n{"at": 6.0, "batch": 4}\n')

    job = only(board)
    assert (batches(job), job.unreadable) == ([4], 1)


def test_a_journal_that_was_made_anew_is_read_from_its_beginning(tmp_path):
    path = put(tmp_path / "a", HEADER, *({"at": 6.0, "batch": n} for n in range(9)))
    board = looked(tmp_path)
    path.unlink()
    put(tmp_path / "a", {**HEADER, "started": 50.0}, {"at": 60.0, "batch": 70})

    job = only(board)

    assert batches(job)[-1] == 70
    assert job.starts == 2


def test_a_board_that_is_not_there_is_empty_and_may_come_later(tmp_path):
    board = looked(tmp_path / "later")
    assert (board.jobs, board.notes) == ([], [])

    Journal(tmp_path / "later", "a", kind="watch")

    assert only(board).name == "a"


def test_what_is_said_of_a_board_of_rubbish_is_bounded(tmp_path):
    for number in range(200):
        (tmp_path / f"rubbish{number}").write_text("")

    assert len(looked(tmp_path).notes) <= MOST_NOTES + 1


def test_very_many_jobs_are_read_up_to_a_limit_that_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(board_module, "MOST_JOBS", 5)
    for number in range(8):
        put(tmp_path / f"job{number}", HEADER)

    board = looked(tmp_path)
    board.look()

    assert len(board.jobs) == 5
    assert board.notes == ["the board: 8 folders, of which 5 are read"]


def test_random_bytes_never_make_the_reader_raise(tmp_path):
    chance = random.Random(11)
    whole = json.dumps({"at": 6.0, "batch": 1, "rows": {"left": 1}, "values": {"q": {"min": 0.5}}}).encode()
    for number in range(60):
        lines = []
        for _ in range(20):
            line = bytearray(whole)
            for _ in range(chance.randrange(4)):
                line[chance.randrange(len(line))] = chance.randrange(256)
            lines.append(bytes(line))
        put(tmp_path / f"job{number}", HEADER, *lines)
        (tmp_path / f"job{number}" / "finding.json").write_bytes(bytes(chance.randrange(256) for _ in range(50)))

    board = looked(tmp_path)

    assert len(board.jobs) == 60
    assert any(job.unreadable for job in board.jobs)
