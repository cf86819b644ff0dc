"""What the jobs on a board told, read by whoever shows it: another process, at any time, as often as it likes.

`Board.look()` reads what is new since the last look, and nothing else. What is in the folder is data of others: lines
that are half written wait, lines that cannot be read are counted, files that are not ours are named and left alone, and
of everything there is only so much.
"""

from __future__ import annotations

import json
import os
import stat
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamtight.source.journal import (
    BYTES_PER_FILE,
    FINDING,
    MOST_ENTRIES,
    MOST_IN_LINE,
    MOST_NUMBER,
    MOST_OF_NAME,
    MOST_OF_PICTURE,
    MOST_OF_STORY,
    MOST_OF_TEXT,
    SEGMENT,
    VERSION,
    read_plain,
)

OUTCOMES = ("FAILS", "UNDECIDED", "HOLDS")
HISTORY = 600
"""So many points of each job are kept, for its charts."""
ALARMS = 30
"""And so many of its last alarms."""
MOST_JOBS = 1_000
MOST_NOTES = 20
MOST_A_LOOK = 2 * BYTES_PER_FILE + 2 * MOST_IN_LINE
"""In bytes: what is read of a job in one look; the rest in the next."""
MOST_OF_FINDING = 6 * (MOST_OF_PICTURE + MOST_OF_STORY)
"""In bytes, since a letter may take six."""
SETTLED = 2_000_000_000
"""In nanoseconds: after so long, the time of a folder tells whether something was added to it."""

_FOREIGN = f"its first line is not that of a journal of version {VERSION}, which is all that can be read here"
_CHARTED = ("batch", "rate", "oldest", "lag", "seconds", "keys")
_BY_NAME = ("rows", "unmatched")
_BY_QUERY = ("counts", "values")


@dataclass(slots=True)
class Finding:
    """The last finding of a job; the picture stays in its file."""

    finding: str
    explanation: str
    story: str
    claim: str
    at: float
    has_picture: bool


@dataclass(slots=True, eq=False)
class Watched:
    """A job on the board, by all that is known of it."""

    id: int
    """Of this reader; never used twice."""
    folder: str
    """The name of its folder, of which there is one on the board."""
    name: str = ""
    kind: str = ""
    asks: str = ""
    started: float = 0.0
    starts: int = 0
    """How often it was seen to start."""
    latest: dict[str, Any] = field(default_factory=dict)
    """The last value of everything that it told."""
    at: float | None = None
    """When it last told something."""
    alive: float = 0.0
    """When it was last there."""
    verdict: str | None = None
    reason: str = ""
    ended: str | None = None
    """None while it runs, empty if it was stopped, else what it failed by."""
    points: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=HISTORY))
    """For charts: each as JSON, with the number under which it came."""
    alarms: deque[tuple[float, str, str]] = field(default_factory=lambda: deque(maxlen=ALARMS))
    """Time, finding, explanation."""
    alarm_counts: dict[str, int] = field(default_factory=dict)
    finding: Finding | None = None
    unreadable: int = 0
    """Lines."""
    changed: int = 0
    """The number under which something of it last changed."""


class Board:
    """The jobs of a board. `look()` may be called by several threads."""

    def __init__(self, folder: str | os.PathLike[str], *, clock: Callable[[], float] = time.time) -> None:
        self.folder = Path(folder)
        self.lock = threading.RLock()
        """Held by `look`, and by whoever reads what it found."""
        self.sequence = 0
        """Goes up with everything that changes."""
        self.listed = 0
        """The number under which a job last came or went."""
        self._clock = clock
        self._readers: dict[str, _Reader] = {}
        self._refused: dict[str, str] = {}
        self._ids = 0

    @property
    def jobs(self) -> list[Watched]:
        """Those that told something which can be read, by the names of their folders."""
        return [one.job for _, one in sorted(self._readers.items()) if one.job.started]

    @property
    def notes(self) -> list[str]:
        """What on the board is not shown, and why."""
        told = [f"{name}: {why}" for name, why in sorted(self._refused.items())]
        told += [f"{name}: {one.refusal}" for name, one in sorted(self._readers.items()) if one.refusal]
        told += [
            f"{name}: {one.job.unreadable} lines cannot be read"
            for name, one in sorted(self._readers.items())
            if one.job.unreadable
        ]
        return told if len(told) <= MOST_NOTES else [*told[:MOST_NOTES], f"and {len(told) - MOST_NOTES} more"]

    def look(self) -> None:
        """Read what is new."""
        with self.lock:
            found = self._folders()
            for name in [name for name in self._readers if name not in found]:
                was_shown = self._readers.pop(name).job.started
                self.listed = self.next() if was_shown else self.listed
            for name in sorted(found):
                if name not in self._readers:
                    self._ids += 1
                    self._readers[name] = _Reader(self, Watched(self._ids, name), self.folder / name)
                reader = self._readers[name]
                was_shown = reader.job.started
                reader.look(self._clock())
                if bool(was_shown) != bool(reader.job.started):
                    self.listed = self.next()

    def picture(self, id_: int) -> str:
        """The picture of a job's finding, as it is in its file; nothing if there is none."""
        with self.lock:
            reader = next((one for one in self._readers.values() if one.job.id == id_), None)
        found = None if reader is None else reader.finding_data()
        return "" if found is None else _text(found.get("picture"), MOST_OF_PICTURE)

    def next(self) -> int:
        """A new number."""
        self.sequence += 1
        return self.sequence

    def _folders(self) -> set[str]:
        self._refused = {}
        found: list[str] = []
        try:
            with os.scandir(self.folder) as entries:
                for entry in entries:
                    if entry.name.startswith("."):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        found.append(entry.name)
                    elif len(self._refused) <= MOST_NOTES:
                        self._refused[_text(entry.name, 80)] = "no folder of a job; it is left alone"
        except FileNotFoundError:
            return set()
        except OSError as error:
            self._refused[_text(str(self.folder), MOST_OF_NAME)] = f"cannot be read: {error.strerror}"
            return set(self._readers)
        if len(found) > MOST_JOBS:
            known = [name for name in found if name in self._readers]
            new = sorted(name for name in found if name not in self._readers)
            self._refused["the board"] = f"{len(found)} folders, of which {MOST_JOBS} are read"
            found = [*known, *new][:MOST_JOBS]
        return set(found)


class _Reader:
    """How far the files of one job were read."""

    def __init__(self, board: Board, job: Watched, folder: Path) -> None:
        self.job, self.refusal = job, ""
        self._board, self._folder = board, folder
        self._settled: int | None = None
        self._number: int | None = None
        self._inode = self._offset = 0
        self._skips = self._is_foreign = False
        self._finding_seen: tuple[int, int, int] | None = None

    def look(self, now: float) -> None:
        """Read what is new."""
        self.refusal = _FOREIGN if self._is_foreign else ""
        try:
            time_ns = os.stat(self._folder, follow_symlinks=False).st_mtime_ns
            if time_ns != self._settled:
                # The time of a folder is coarse: only after a while nothing more can have come at that time.
                self._settled = time_ns if now * 1e9 - time_ns > SETTLED else None
                self._look_for_finding()
                numbers = sorted(int(one[1]) for name in os.listdir(self._folder) if (one := SEGMENT.fullmatch(name)))
                self._read_all(numbers[-2:])
            elif self._number is not None:
                self._read(self._number)
        except FileNotFoundError:
            self._settled = None
        except OSError as error:
            self.refusal = f"cannot be read: {error.strerror}"

    def _read_all(self, numbers: list[int]) -> None:
        for number in numbers:
            if self._number is None or number >= self._number:
                self._read(number)
        if self._number is not None and self._number not in numbers and numbers:
            self._number = None  # the folder was made anew
            self._read_all(numbers)

    def _read(self, number: int) -> None:
        path = self._folder / f"{number:08}.jsonl"
        found = os.stat(path, follow_symlinks=False)
        if not stat.S_ISREG(found.st_mode):
            self.refusal = f"{path.name} is no plain file"
            return
        if number != self._number or found.st_ino != self._inode or found.st_size < self._offset:
            self._number, self._inode, self._offset, self._skips = number, found.st_ino, 0, False
        if found.st_size > self._offset:
            self._take(read_plain(path, self._offset, MOST_A_LOOK))
        if self.job.started and found.st_mtime > self.job.alive:
            self.job.alive = found.st_mtime
            self.job.changed = self._board.next()

    def _take(self, text: bytes) -> None:
        end = text.rfind(b"\n") + 1
        if not end:
            if self._skips or len(text) > MOST_IN_LINE:  # too long to be a line of ours
                self._offset, self._skips = self._offset + len(text), True
            return
        is_first = self._offset == 0
        self._offset += end
        lines = text[:end].split(b"\n")[:-1]
        if self._skips:
            self._skips = False
            self.job.unreadable += 1
            del lines[0]
        for line in lines:
            known = _object(line) if len(line) <= MOST_IN_LINE else None
            if is_first:
                self._is_foreign = not _is_header(known)
                self.refusal = _FOREIGN if self._is_foreign else ""
            is_first = False
            if self._is_foreign:
                continue
            if known is None:
                self.job.unreadable += bool(line.strip())
            elif "journal" in known:
                self._begin(known)
            else:
                self._line(known)

    def _begin(self, line: Mapping[str, Any]) -> None:
        job, started = self.job, _number(line.get("started"))
        if not _is_header(line) or started is None:
            job.unreadable += 1
            return
        if started != job.started:
            job.started, job.ended, job.starts = started, None, job.starts + 1
            job.alive = max(job.alive, started)
        job.name = _text(line.get("name"), MOST_OF_NAME) or job.folder
        job.kind, job.asks = _text(line.get("kind"), 40), _text(line.get("asks"), MOST_OF_TEXT)
        self._count_alarms(line)
        job.changed = self._board.next()

    def _line(self, line: Mapping[str, Any]) -> None:
        job, at = self.job, _number(line.get("at"))
        if at is None or not 0 < at < 1e11:
            job.unreadable += 1
            return
        job.changed = self._board.next()
        job.at = at
        if "alarm" in line:
            job.alarms.append((at, _text(line["alarm"], MOST_OF_NAME), _text(line.get("told"), MOST_OF_TEXT)))
            self._count_alarms(line)
            return
        if "ended" in line:
            job.ended = _text(line["ended"], MOST_OF_TEXT)
            return
        known: dict[str, Any] = {name: value for name in _CHARTED if (value := _number(line.get(name))) is not None}
        known |= {name: sides for name in _BY_NAME if (sides := _numbers(line.get(name)))}
        known |= {name: queries for name in _BY_QUERY if (queries := _by_query(line.get(name)))}
        if line.get("verdict") in OUTCOMES:
            job.verdict, job.reason = line["verdict"], _text(line.get("reason"), MOST_OF_TEXT)
        job.latest = {**job.latest, **known}
        charted = {name: value for name, value in known.items() if name not in ("rows", "counts", "keys")}
        job.points.append((job.changed, json.dumps({"at": at, **charted}, separators=(",", ":"))))

    def _count_alarms(self, line: Mapping[str, Any]) -> None:
        counts = _numbers(line.get("alarms"))
        self.job.alarm_counts = {name: int(count) for name, count in counts.items()} or self.job.alarm_counts

    def _look_for_finding(self) -> None:
        try:
            found = os.stat(self._folder / FINDING, follow_symlinks=False)
        except FileNotFoundError:
            return
        seen = (found.st_ino, found.st_mtime_ns, found.st_size)
        if seen == self._finding_seen:
            return
        self._finding_seen = seen
        known = self.finding_data()
        if known is None:
            self.job.unreadable += 1
            return
        self.job.finding = Finding(
            _text(known.get("finding"), MOST_OF_NAME),
            _text(known.get("explanation"), MOST_OF_TEXT),
            _text(known.get("story"), MOST_OF_STORY),
            _text(known.get("claim"), MOST_OF_TEXT),
            _number(known.get("at")) or found.st_mtime,
            bool(known.get("picture")),
        )
        self.job.changed = self._board.next()

    def finding_data(self) -> dict[str, Any] | None:
        """What is in the file of the finding; None if that is no finding."""
        try:
            text = read_plain(self._folder / FINDING, 0, MOST_OF_FINDING + 1)
        except OSError:
            return None
        known = _object(text) if len(text) <= MOST_OF_FINDING else None
        return known if known is not None and known.get("journal") == VERSION else None


def _is_header(line: Mapping[str, Any] | None) -> bool:
    return line is not None and line.get("journal") == VERSION and bool(_number(line.get("started")))


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _text(value: object, most: int) -> str:
    return value[:most] if isinstance(value, str) else ""


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if -MOST_NUMBER < value < MOST_NUMBER else None


def _numbers(value: object) -> dict[str, float]:
    if not isinstance(value, dict):
        return {}
    few = list(value.items())[:MOST_ENTRIES]
    return {name[:MOST_OF_NAME]: number for name, one in few if (number := _number(one)) is not None}


def _by_query(value: object) -> dict[str, dict[str, float]]:
    if not isinstance(value, dict):
        return {}
    few = list(value.items())[:MOST_ENTRIES]
    return {name[:MOST_OF_NAME]: numbers for name, one in few if (numbers := _numbers(one))}
