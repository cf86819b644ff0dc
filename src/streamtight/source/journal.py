"""What a watched job tells of itself while it runs: a journal, in a folder of its own on a board.

A *board* is a local folder. Each job that is watched has a folder there, and in it

    00000001.jsonl   lines of JSON, the last two files of some thousand lines: metrics, alarms, starts and ends
    finding.json     the last finding: its name, its story, its picture
    lock             held while the job runs, so that two jobs of one name do not write into one folder

Whoever looks at the board (`board.py`) is another process, so that a page goes on while Spark restarts. A job that
starts again under the same name goes on in its folder. A journal that cannot be written says so once, and never stops
the job.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import logging
import os
import re
import stat
import threading
import time
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from streamtight.redaction import without_secrets

VERSION = 1
BOARD = ".streamtight/live"
"""Where a board is, if nobody says: below the folder where the page is started."""
VARIABLE = "STREAMTIGHT_BOARD"
"""The environment variable that names the board of jobs that do not say theirs."""
LINES_PER_FILE, BYTES_PER_FILE = 2_000, 1 << 20
"""A file that has more is left, and the one before it removed."""
MOST_IN_LINE = 60_000
"""So many bytes may a line have; a longer one is not written, nor read."""
MOST_OF_NAME, MOST_OF_TEXT, MOST_OF_STORY, MOST_OF_PICTURE = 200, 2_000, 20_000, 2_000_000
"""So many letters are kept."""
MOST_ENTRIES = 64
"""Of a mapping in a line, such as the values of queries."""
MOST_NUMBER = 1e300
MOST_OF_A_NAME = 20
"""So many jobs of one name may run at once."""
SECONDS_BETWEEN_BEATS = 4.0
"""How often a job that has nothing to tell says that it is there."""
SEGMENT = re.compile(r"(\d{8})\.jsonl")
FINDING, LOCK = "finding.json", "lock"
_LOG = logging.getLogger("streamtight.journal")

Numbers = Mapping[str, float | None]


def board_of(board: str | os.PathLike[str] | None) -> Path | None:
    """The board that is meant: this one, or what STREAMTIGHT_BOARD names; None if nothing is to be written."""
    named = os.fspath(board) if board is not None else os.environ.get(VARIABLE, "")
    return Path(named) if named else None


def folder_name(name: str) -> str:
    """The name of a job as that of a folder: readable, and another one for every other name.

    >>> folder_name("Taxis, old and new")
    'taxis-old-and-new-e92bb0ac5f'
    >>> folder_name("../../etc")
    'etc-74ccf3c5b4'
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    told = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40].strip("-") or "job"
    return f"{told}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}"


class Journal:
    """The journal of a job that runs. No method raises; what cannot be written is logged as a warning, once."""

    def __init__(self, board: str | os.PathLike[str], name: str, *, kind: str, asks: str = "") -> None:
        """
        name   of the job; with the same one it goes on in the same folder
        kind   what watches: "compare_live", "watch", ...
        asks   the question, in a line
        """
        self.name = name
        self._board = Path(board)
        self._about = {"name": _cut(name, MOST_OF_NAME), "kind": _cut(kind, 40), "asks": _cut(asks, MOST_OF_TEXT)}
        self._guard = threading.RLock()
        self._has_warned = self._has_ended = self._is_torn = False
        self._lock: int | None = None
        self._folder: Path | None = None
        self._number = self._lines = self._bytes = 0
        self._alarms: dict[str, int] = {}
        self._last = 0.0
        self._started = time.time()
        with self._guard, self._warned_of():
            self._take_folder()
            self._resume()
            self._append(self._header())

    @property
    def folder(self) -> Path | None:
        """Where it is written; None if that was not possible."""
        return self._folder

    def note(
        self,
        *,
        at: float | None = None,
        batch: int | None = None,
        rows: Numbers | None = None,
        rate: float | None = None,
        unmatched: Numbers | None = None,
        oldest: float | None = None,
        lag: float | None = None,
        seconds: float | None = None,
        keys: int | None = None,
        counts: Mapping[str, Numbers] | None = None,
        values: Mapping[str, Numbers] | None = None,
        verdict: str | None = None,
        reason: str | None = None,
    ) -> None:
        """What is known after a micro-batch.

        rows        so far, by side or input         oldest   seconds for which a row is unmatched
        rate        rows a second                    lag      seconds that the watermark is behind the clock
        unmatched   rows that wait, by side          seconds  that the batch took
        counts      of answers so far, by query      values   of this batch: lowest, mean, highest, by query
        """
        known = {
            "batch": batch, "rows": rows, "rate": rate, "unmatched": unmatched, "oldest": oldest, "lag": lag,
            "seconds": seconds, "keys": keys, "counts": counts, "values": values, "verdict": verdict, "reason": reason,
        }  # fmt: skip
        plain = {name: _plain(value) for name, value in known.items()}
        self._write({name: value for name, value in plain.items() if value is not None and value != {}}, at)

    def alarm(self, finding: str, told: str, *, at: float | None = None) -> None:
        """Something that a person should look at."""
        finding = _cut(finding, MOST_OF_NAME)
        with self._guard:
            self._alarms[finding] = self._alarms.get(finding, 0) + 1
            self._write({"alarm": finding, "told": _cut(told, MOST_OF_TEXT), "alarms": dict(self._alarms)}, at)

    def found(self, finding: str, explanation: str, *, story: str = "", picture: str = "", claim: str = "") -> None:
        """The last finding, in the place of the one before."""
        told = {
            "journal": VERSION, "at": round(time.time(), 3), "finding": _cut(finding, MOST_OF_NAME),
            "explanation": _cut(explanation, MOST_OF_TEXT), "story": _cut(story, MOST_OF_STORY),
            "claim": _cut(claim, MOST_OF_TEXT), "picture": picture if len(picture) <= MOST_OF_PICTURE else "",
        }  # fmt: skip
        with self._guard, self._warned_of():
            if self._folder is None or self._has_ended:
                return
            beside = self._folder / f".{FINDING}.new"
            with contextlib.suppress(FileNotFoundError):
                beside.unlink()  # of one that was killed
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _put(beside, json.dumps(told).encode(), new=True)
            beside.replace(self._folder / FINDING)

    def alive(self) -> None:
        """The job is there, though it has nothing to tell."""
        if time.monotonic() - self._last < SECONDS_BETWEEN_BEATS:
            return
        with self._guard, self._warned_of():
            if self._folder is not None and not self._has_ended:
                self._last = time.monotonic()
                try:
                    os.utime(self._path(), follow_symlinks=False)
                except FileNotFoundError:  # somebody cleaned up
                    self._append(self._header())

    def end(self, error: str = "") -> None:
        """The job has stopped; or failed, and by what. Nothing more is written."""
        with self._guard:
            if not self._has_ended:
                self._write({"ended": _cut(error, MOST_OF_TEXT)}, None)
                self._has_ended = True
            if self._lock is not None:
                os.close(self._lock)
                self._lock = None

    # -- the files -----------------------------------------------------------------------------------------------

    def _write(self, line: Mapping[str, Any], at: float | None) -> None:
        with self._guard, self._warned_of():
            if self._folder is None or self._has_ended:
                return
            stamp: dict[str, Any] = {"at": round(time.time() if at is None else at, 3)}
            told = _bytes({**stamp, **line})
            if len(told) > MOST_IN_LINE:  # many queries with long names
                few = {name: one for name, one in line.items() if name not in ("counts", "values")}
                told = _bytes({**stamp, **few})
            if self._lines >= LINES_PER_FILE or self._bytes + len(told) > BYTES_PER_FILE:
                self._number += 1
                self._append(self._header())
                with contextlib.suppress(FileNotFoundError):
                    self._path(-2).unlink()
            self._append(told)

    def _header(self) -> bytes:
        """The first line of each file, and of each start."""
        return _bytes({"journal": VERSION, **self._about, "started": round(self._started, 3), "alarms": self._alarms})

    def _append(self, line: bytes) -> None:
        if self._folder is None:
            return
        if self._is_torn:
            line = b"\n" + line
        self._is_torn = True  # unless all of it is written
        try:
            _put(self._path(), line)
        except FileNotFoundError:  # a new one, or somebody cleaned up
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lines = self._bytes = 0
            header = self._header()
            line = line.lstrip(b"\n")
            _put(self._path(), line if line == header else header + line, new=True)
        self._is_torn = False
        self._lines += 1
        self._bytes += len(line)
        self._last = time.monotonic()

    def _path(self, later: int = 0) -> Path:
        assert self._folder is not None  # noqa: S101 - asked by every caller
        return self._folder / f"{self._number + later:08}.jsonl"

    def _take_folder(self) -> None:
        """A folder that no other job writes into."""
        for number in range(1, MOST_OF_A_NAME + 1):
            folder = self._board / (folder_name(self.name) + (f"-{number}" if number > 1 else ""))
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                continue
            except OSError:  # a file system without locks
                pass
            self._lock, self._folder = lock, folder
            return
        raise OSError(f"{MOST_OF_A_NAME} jobs of this name are running")

    def _resume(self) -> None:
        """Go on in the last file, with the alarms as they were counted."""
        assert self._folder is not None  # noqa: S101 - taken just before
        numbers = sorted(int(found[1]) for one in os.listdir(self._folder) if (found := SEGMENT.fullmatch(one)))
        self._number = numbers[-1] if numbers else 1
        for number in numbers[-2:]:
            text = read_plain(self._folder / f"{number:08}.jsonl", 0, 2 * BYTES_PER_FILE)
            self._lines, self._bytes = text.count(b"\n"), len(text)
            self._is_torn = not text.endswith(b"\n")
            for line in text.splitlines():
                with contextlib.suppress(ValueError, RecursionError, AttributeError):
                    counted = json.loads(line).get("alarms") if b'"alarms"' in line else None
                    self._alarms = {str(one): int(many) for one, many in counted.items()} if counted else self._alarms

    @contextlib.contextmanager
    def _warned_of(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError, TypeError) as error:
            if not self._has_warned:
                self._has_warned = True
                _LOG.warning(
                    "the journal of %r in %s cannot be written, so the live page does not show it; the job goes on: %s",
                    _cut(self.name, MOST_OF_NAME), self._board, error,
                )  # fmt: skip


_CAREFUL = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Others may have put a link or a pipe there: the one leads elsewhere, the other would make us wait."""


def read_plain(path: Path, offset: int, most: int) -> bytes:
    """So many bytes of a plain file, from there on; raises an OSError for everything else."""
    file = os.open(path, os.O_RDONLY | _CAREFUL)
    try:
        _require_plain(file, path)
        return os.pread(file, most, offset)
    finally:
        os.close(file)


def _require_plain(file: int, path: Path) -> None:
    if not stat.S_ISREG(os.fstat(file).st_mode):
        raise OSError(errno.EINVAL, "no plain file", str(path))


def _put(path: Path, line: bytes, *, new: bool = False) -> None:
    """Append all of it, or raise; what is no plain file is not written into."""
    kind = os.O_CREAT | os.O_EXCL if new else 0
    file = os.open(path, os.O_WRONLY | os.O_APPEND | _CAREFUL | kind, 0o600)
    try:
        _require_plain(file, path)
        while line:
            line = line[os.write(file, line) :]
    finally:
        os.close(file)


def _bytes(line: Mapping[str, Any]) -> bytes:
    return json.dumps(line, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def _cut(text: object, most: int) -> str:
    told = without_secrets(str(text))
    return told if len(told) <= most else told[: most - 1] + "…"


def _plain(value: object) -> Any:
    """A value as it may stand in a line; None for what is no number or not finite."""
    match value:
        case None:
            return None
        case bool():
            return int(value)
        case str():
            return _cut(value, MOST_OF_TEXT)
        case Mapping():
            few = list(value.items())[:MOST_ENTRIES]
            told = {_cut(name, MOST_OF_NAME): _plain(one) for name, one in few}
            return {name: one for name, one in told.items() if one is not None}
        case int() | float():
            if not -MOST_NUMBER < value < MOST_NUMBER:  # NaN is neither
                return None
            return value if isinstance(value, int) else float(f"{float(value):.7g}")
    return _plain(float(value)) if hasattr(value, "__float__") else None
