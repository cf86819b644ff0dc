"""What the driver of a live comparison knows: the book, made of the buckets' reports, and the folder it is kept in.

A report is of all that a bucket has counted, not of a batch. So a batch that runs again after a failure changes
nothing, whatever it gave the first time, and buckets that get no rows need not report.
"""

from __future__ import annotations

import bisect
import dataclasses
import json
import operator
import re
from collections import deque
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from streamtight.errors import TraceError
from streamtight.method.compare.matcher import SIDES, Difference, Place
from streamtight.spark.checkpoint_text import VERSION, read_kept, refused
from streamtight.spark.live_bucket import Finding, Report, Waiting
from streamtight.spark.session import java_class
from streamtight.stream.clean import cleaned
from streamtight.stream.event import Event, Kind
from streamtight.stream.records import record_data, record_from
from streamtight.verdict import Counterexample

HISTORY = 1_000
"""How many metrics and alarms are kept."""
MARKS = 100
"""Into how many steps the number of events is cut after which a row is stuck."""
_SETTINGS = "settings.json"
_PAGE = re.compile(r"book-\d{12,}\.json")
_WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something that a person should look at."""

    finding: str
    """DIVERGED: nothing to come can make the streams agree. RACE: a stream delivers two rows that must keep their order
    in different partitions of one batch. STUCK: a row is unmatched for too long."""
    explanation: str
    at: datetime
    batch: int
    bucket: int
    stuck: Place | None = None
    """The row that is unmatched for too long."""
    difference: Difference | None = None
    counterexample: Counterexample | None = None

    def __str__(self) -> str:
        return f"{self.finding}: {self.explanation}"


@dataclass(frozen=True, slots=True)
class Metrics:
    """What is known after a micro-batch, over all buckets."""

    batch: int
    at: datetime
    """When the batch began."""
    left: int
    """Rows of the left stream so far."""
    right: int
    unmatched_left: int
    unmatched_right: int
    oldest_seconds: float | None
    """For how long the oldest unmatched row is here, without the time in which the comparison did not run."""
    matched: int
    """Pairs that were found in this batch."""
    longest_wait_seconds: float
    """How long the slowest of them took, from the first row of the pair to the second; 0 if both came in this batch."""
    seconds: float
    """From the beginning of the batch until its rows were judged."""
    refuted_buckets: int
    """Buckets whose streams cannot agree any more; they count rows, but compare no further."""

    @property
    def unmatched(self) -> int:
        """Unmatched rows of both sides."""
        return self.unmatched_left + self.unmatched_right


class Limits(NamedTuple):
    """After how many rows, or seconds, an unmatched row is stuck."""

    events: int | None = None
    seconds: float | None = None


@dataclass(slots=True)
class Book:
    """All that the driver knows. Times are in milliseconds."""

    batch: int = -1
    alive: int = 0
    """When the comparison was last seen to run."""
    reports: dict[int, Report] = field(default_factory=dict)
    """The last report of each bucket."""
    before: dict[int, Report | None] = field(default_factory=dict)
    """For the buckets of the last batch, the reports before it."""
    alarms: list[Alarm] = field(default_factory=list)
    told: dict[tuple[int, str], int] = field(default_factory=dict)
    """For a bucket and a side, the position of the row that was last found to be stuck."""
    marks: list[tuple[int, int]] = field(default_factory=list)
    """How many rows there were after a batch, by the time of the batch; not for every batch."""
    pauses: list[tuple[int, int]] = field(default_factory=list)
    """From when to when the comparison did not run."""
    metrics: Metrics | None = None

    @property
    def total(self) -> int:
        """Rows of both sides."""
        return sum(sum(report.seen) for report in self.reports.values())

    def resume(self, now: int) -> None:
        """The comparison starts. If it ran before, it paused since: rows that wait were not missed meanwhile."""
        if self.alive:
            oldest = min((waiting.at for waiting in self.waiting()), default=now)
            self.pauses = [pause for pause in self.pauses if pause[0] >= oldest] + [(self.alive, now)]
        self.alive = now

    def before_batch(self, batch: int, bucket: int) -> Report | None:
        """The report of a bucket before a batch, also if that runs again."""
        return self.before.get(bucket) if batch == self.batch and bucket in self.before else self.reports.get(bucket)

    def take(self, batch: int, reports: Mapping[int, Report], *, buckets: int, now: int, limits: Limits) -> list[Alarm]:
        """Note the reports of a batch, in place of what it gave if it ran before. The new alarms are returned."""
        if batch == self.batch:
            self._undo()
        self.batch = batch
        self.alive = now
        self.before = {bucket: self.reports.get(bucket) for bucket in reports}
        self.reports |= reports
        if reports:
            self.metrics = self._measured(reports, now)
            self._mark(next(iter(reports.values())).at, limits)
        found = [
            _alarm(report.finding, report.at, batch, bucket, buckets)
            for bucket, report in sorted(reports.items())
            if report.finding is not None
        ]
        self.alarms += found
        return found + self.stuck(limits, now)

    def _undo(self) -> None:
        for bucket, old in self.before.items():
            again = self.reports.pop(bucket)
            self.marks = [mark for mark in self.marks if mark[0] != again.at]
            if old is not None:
                self.reports[bucket] = old
        self.alarms = [alarm for alarm in self.alarms if alarm.batch != self.batch or alarm.stuck is not None]

    def _measured(self, reports: Mapping[int, Report], now: int) -> Metrics:
        at = next(iter(reports.values())).at
        known = self.reports.values()
        return Metrics(
            batch=self.batch,
            at=_datetime(at),
            left=sum(report.seen[0] for report in known),
            right=sum(report.seen[1] for report in known),
            unmatched_left=sum(report.unmatched[0] for report in known),
            unmatched_right=sum(report.unmatched[1] for report in known),
            oldest_seconds=self.oldest_seconds(now),
            matched=sum(report.matched for report in reports.values()),
            longest_wait_seconds=max(report.longest_wait for report in reports.values()) / 1000,
            seconds=(now - at) / 1000,
            refuted_buckets=sum(report.refuted for report in known),
        )

    def waiting(self) -> list[Waiting]:
        """The oldest unmatched rows that the buckets reported, the oldest first."""
        return sorted((w for report in self.reports.values() for w in report.oldest), key=lambda waiting: waiting.at)

    def oldest_seconds(self, now: int) -> float | None:
        """The age of the oldest unmatched row."""
        return max((self._age(waiting.at, now) for waiting in self.waiting()), default=None)

    def _age(self, at: int, now: int) -> float:
        paused = sum(end - start for start, end in self.pauses if at <= start)
        return max(0, now - at - paused) / 1000

    def _mark(self, at: int, limits: Limits) -> None:
        """Note how many rows there are by now, to know later how many came since."""
        if limits.events is None:
            return
        total = self.total
        if not self.marks or total - self.marks[-1][1] >= limits.events // MARKS:
            self.marks.append((at, total))
        while len(self.marks) > 1 and total - self.marks[1][1] >= limits.events:
            del self.marks[0]  # whatever came up to the second of them is stuck, if it still waits

    def _since(self, at: int) -> int:
        """How many rows came after the batch of this time; maybe a hundredth of the limit more."""
        place = bisect.bisect_left(self.marks, (at, -1))
        return self.total - self.marks[place][1] if place < len(self.marks) else 0

    def stuck(self, limits: Limits, now: int) -> list[Alarm]:
        """New alarms for rows that are unmatched for too long: of each bucket and side the oldest row, once."""
        alarms = []
        for bucket, report in self.reports.items():
            oldest = {waiting.place.side: waiting for waiting in reversed(report.oldest)}
            for place, at in (oldest[side] for side in SIDES if side in oldest):
                if self.told.get((bucket, place.side)) == place.position:
                    continue
                seconds, events = self._age(at, now), self._since(at)
                over = []
                if limits.seconds is not None and seconds >= limits.seconds:
                    over.append(f"for {seconds:.1f} s (limit {limits.seconds:g} s)")
                if limits.events is not None and events >= limits.events:
                    over.append(f"while {events} more rows came (limit {limits.events})")
                if over:
                    self.told[bucket, place.side] = place.position
                    other = SIDES[1 - SIDES.index(place.side)]
                    text = f"{place.event} of the {place.side} has not come on the {other} {' and '.join(over)}"
                    text += self._instead(place.event, other)
                    alarms.append(Alarm("STUCK", text, _datetime(now), self.batch, bucket, place))
        self.alarms += alarms
        self._forget_old_alarms()
        return alarms

    def _instead(self, event: Event, side: str) -> str:
        """What waits on the other side instead, most like the event: often the same row with a wrong value."""
        waiting = [one.place.event for one in self.waiting() if one.place.side == side]
        if not waiting:
            return ""
        likest = max(waiting, key=lambda other: sum(map(operator.eq, event, other)))
        return f"; what waits on the {side} is {likest}"

    def _forget_old_alarms(self) -> None:
        """Keep what refutes, and of the rest the last ones."""
        surplus = sum(alarm.stuck is not None for alarm in self.alarms) - HISTORY
        for alarm in [alarm for alarm in self.alarms if alarm.stuck is not None][: max(0, surplus)]:
            self.alarms.remove(alarm)


def _alarm(finding: Finding, at: int, batch: int, bucket: int, buckets: int) -> Alarm:
    shown = finding.counterexample
    if finding.difference is not None:
        where = f"batch {batch}" + (f"; positions count in bucket {bucket} of {buckets}" if buckets > 1 else "")
        shown = dataclasses.replace(shown, explanation=f"{shown.explanation} ({where})")
    return Alarm(
        shown.finding,
        shown.explanation,
        _datetime(at),
        batch,
        bucket,
        difference=finding.difference,
        counterexample=shown,
    )


def _datetime(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


class Pages:
    """The book as text and back, for events of these kinds."""

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self._kinds = tuple(kinds)
        self._alarms: dict[int, tuple[Alarm, str]] = {}

    def text(self, book: Book) -> str:
        """A page: the metrics and alarms for people and other programs, and the rest for us. Four lines."""
        # There may be a thousand alarms, and a page for every batch; an alarm never changes.
        self._alarms = {id(alarm): self._alarms.get(id(alarm)) or (alarm, self._json(alarm)) for alarm in book.alarms}
        alarms = ",\n".join(text for _, text in self._alarms.values())
        rest = dataclasses.replace(book, alarms=[], metrics=None)
        return (
            f'{{"streamtight": {VERSION},\n"metrics": {self._json(book.metrics)},\n'
            f'"alarms": [{alarms}],\n"book": {self._json(rest)}}}\n'
        )

    def _json(self, value: Alarm | Book | Metrics | None) -> str:
        return json.dumps(record_data(value, type(value), self._kinds))

    def book(self, page: bytes, where: str) -> Book:
        """The book of which this is a page."""
        match read_kept(page, where):
            case {"metrics": metrics, "alarms": list(alarms), "book": dict(rest)}:
                data = {**rest, "metrics": metrics, "alarms": alarms}
                book: Book = record_from(data, Book, self._kinds)
                return dataclasses.replace(book, alarms=[_with_clean_picture(alarm) for alarm in book.alarms])
        raise refused(where, "JSON of another kind")


def _with_clean_picture(alarm: Alarm) -> Alarm:
    """Notebooks show pictures as they are, so one that was in a file must not bring code along."""
    found = alarm.counterexample
    if found is None or not found.picture:
        return alarm
    return dataclasses.replace(alarm, counterexample=dataclasses.replace(found, picture=cleaned(found.picture)))


class Folder:
    """The checkpoint's folder: Spark's part, the settings, and the book, on whatever file system it is.

    Every page of the book is a new file, first written beside and then renamed, so that none is ever half there.
    """

    def __init__(self, spark: SparkSession, path: str, kinds: Sequence[Kind]) -> None:
        """kinds   of the events that the book is about"""
        self.path = path
        self.spark_location = f"{path.rstrip('/')}/spark"
        self._java_path = java_class(spark, "org.apache.hadoop.fs.Path")
        self._own = self._path(f"{path.rstrip('/')}/comparison")
        self._files: Any = self._own.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
        self._book = Pages(kinds)
        self._pages: deque[Any] = deque()
        self._number = 0

    def waiting_place(self, batch: int) -> str:
        """The folder for the rows that wait after a batch."""
        return f"{self.path.rstrip('/')}/comparison/{_WAITING}/{batch:012}"

    def exists(self, place: str) -> bool:
        """Is there such a folder?"""
        return bool(self._files.exists(self._path(place)))

    def forget_waiting(self, *, but: Container[int]) -> None:
        """Remove the folders of rows that wait, but for those of these batches."""
        for status in self._files.listStatus(self._path(self._own, _WAITING)):
            if int(_name(status.getPath())) not in but:
                self._files.delete(status.getPath(), True)

    def settings(self) -> dict[str, Any] | None:
        """What the folder was made for; None if no query has started in it."""
        if not self._files.exists(self._path(self.spark_location)):
            return None
        place = self._path(self._own, _SETTINGS)
        if not self._files.exists(place):
            raise TraceError(
                f"compare_live(checkpoint={self.path!r})",
                needed="a new folder, or one that a comparison made",
                came="a checkpoint without the comparison's part",
                hint="a folder of its own",
            )
        return read_kept(self._read(place), f"compare_live(checkpoint={self.path!r}), {_SETTINGS}")

    def write_settings(self, settings: Mapping[str, Any]) -> None:
        """Make it the folder of a comparison with these settings, before a query starts in it."""
        self._files.delete(self._path(self._own, _SETTINGS), False)  # of one that could not start
        self._write(_SETTINGS, json.dumps({"streamtight": VERSION, **settings}, indent=2))

    def book(self) -> Book:
        """The last page of the book; an empty one if there is none."""
        found = (status.getPath() for status in self._files.listStatus(self._own))
        self._pages = deque(sorted((page for page in found if _PAGE.fullmatch(_name(page))), key=_name))
        if not self._pages:
            return Book()
        name = _name(self._pages[-1])
        self._number = int(name.removeprefix("book-").removesuffix(".json"))
        return self._book.book(self._read(self._pages[-1]), f"compare_live(checkpoint={self.path!r}), {name}")

    def save(self, book: Book) -> None:
        """Write a new page of the book."""
        self._number += 1
        self._pages.append(self._write(f"book-{self._number:012}.json", self._book.text(book)))
        while len(self._pages) > 2:
            self._files.delete(self._pages.popleft(), False)

    def _path(self, *parts: Any) -> Any:
        return self._java_path(*parts)

    def _read(self, place: Any) -> bytes:
        stream = self._files.open(place)
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def _write(self, name: str, text: str) -> Any:
        beside, place = self._path(self._own, f".{name}.tmp"), self._path(self._own, name)
        stream = self._files.create(beside, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
        if not self._files.rename(beside, place):
            raise TraceError(
                f"compare_live(checkpoint={self.path!r})",
                needed=f"a folder in which {name} can be made",
                came="a file system that did not do it",
                hint="does another comparison use the same folder?",
            )
        return place


def _name(page: Any) -> str:
    return str(page.getName())
