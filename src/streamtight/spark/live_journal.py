"""What running comparisons, formulas and parallel streams tell on a board, for the live page.

All of it is written by a thread beside the query, never by the query itself: a slow disk delays no micro-batch.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from streamtight.errors import StreamtightError
from streamtight.source.journal import SECONDS_BETWEEN_BEATS, Journal, board_of
from streamtight.verdict import Outcome, Verdict

if TYPE_CHECKING:
    from streamtight.spark.live import LiveComparison
    from streamtight.spark.live_book import Alarm, Metrics

SECONDS_BETWEEN_LOOKS = 0.5
MOST_ALARMS_A_LOOK = 20
"""The rest is only counted by the comparison itself."""


class LiveNotes:
    """The journal of a live comparison, written by the thread that looks after it."""

    def __init__(self, journal: Journal, alarms: tuple[Alarm, ...]) -> None:
        """alarms   those of the time before a restart, which are in the journal already"""
        self._journal = journal
        self._last: Metrics | None = None
        self._alarms_before = alarms
        self._failed: Verdict | None = None
        self._refuted: Alarm | None = None
        self._wrote = 0.0

    def look(self, live: LiveComparison, active: bool) -> None:
        """Write what is new since the last look. Raises what says that the JVM has gone, and nothing else."""
        from py4j.protocol import Py4JError  # not above: a PySpark that knows Spark Connect only has none

        try:
            self._look(live, active)
        except (Py4JError, OSError):
            raise
        except Exception as error:  # the thread that called also tells of alarms, which matter more than a page
            self._journal.end(f"no longer written, by a mistake of streamtight: {type(error).__name__}: {error}")

    def _look(self, live: LiveComparison, active: bool) -> None:
        alarms, batches = live.alarms, self._new(live.history)
        is_due = time.monotonic() - self._wrote >= SECONDS_BETWEEN_BEATS
        if active and not batches and not is_due and alarms == self._alarms_before:
            return  # as most of the time
        self._note_alarms(alarms)
        try:
            verdict = self._verdict(live, alarms)
        except StreamtightError as error:
            self._journal.end(str(error))
            return
        for before, metrics in batches:
            self._note(before, metrics, verdict)
            self._wrote = time.monotonic()
        if is_due and not batches:
            self._wrote = time.monotonic()
            now = live.metrics
            if now is not None and now.unmatched:  # nothing comes, so what is unmatched gets older
                self._journal.note(
                    batch=now.batch,
                    rows=_rows(now),
                    unmatched=_unmatched(now),
                    oldest=now.oldest_seconds,
                    verdict=verdict.outcome.name,
                    reason=verdict.reason,
                )
            self._journal.alive()
        if not active:
            self._journal.end()

    def end(self, error: str) -> None:
        """It cannot be asked any more."""
        self._journal.end(error)

    def _new(self, history: tuple[Metrics, ...]) -> list[tuple[Metrics | None, Metrics]]:
        """The micro-batches since the last look, each with the one before it."""
        found: list[tuple[Metrics | None, Metrics]] = []
        for place in range(len(history) - 1, -1, -1):
            if history[place] is self._last:
                break
            found.append((history[place - 1] if place else None, history[place]))
        self._last = history[-1] if history else None
        return found[::-1]

    def _note(self, before: Metrics | None, metrics: Metrics, verdict: Verdict) -> None:
        seconds = 0.0 if before is None else (metrics.at - before.at).total_seconds()
        came = 0 if before is None else metrics.left + metrics.right - before.left - before.right
        self._journal.note(
            at=metrics.at.timestamp() + metrics.seconds,
            batch=metrics.batch,
            rows=_rows(metrics),
            rate=came / seconds if seconds > 0 else None,
            unmatched=_unmatched(metrics),
            oldest=metrics.oldest_seconds or 0.0,
            seconds=metrics.seconds,
            verdict=verdict.outcome.name,
            reason=verdict.reason,
        )

    def _note_alarms(self, alarms: tuple[Alarm, ...]) -> None:
        known = set(map(id, self._alarms_before))
        for alarm in [one for one in alarms if id(one) not in known][-MOST_ALARMS_A_LOOK:]:
            self._journal.alarm(alarm.finding, alarm.explanation, at=alarm.at.timestamp())
            if alarm.counterexample is None and self._refuted is None:
                self._journal.found(alarm.finding, alarm.explanation)
        self._alarms_before = alarms

    def _verdict(self, live: LiveComparison, alarms: tuple[Alarm, ...]) -> Verdict:
        """The verdict; once it has failed it is not drawn again after every batch."""
        refuted = next((one for one in alarms if one.counterexample is not None), None)
        if refuted is not None and refuted is self._refuted and self._failed is not None:
            return self._failed
        verdict = live.verdict()
        if verdict.outcome is Outcome.FAILS:
            self._refuted, self._failed = refuted, verdict
            note_finding(self._journal, verdict)
        return verdict


def _rows(metrics: Metrics) -> dict[str, float | None]:
    return {"left": metrics.left, "right": metrics.right}


def _unmatched(metrics: Metrics) -> dict[str, float | None]:
    return {"left": metrics.unmatched_left, "right": metrics.unmatched_right}


def note_finding(journal: Journal, verdict: Verdict) -> None:
    """Put the counterexample of a verdict on the board."""
    found = verdict.counterexample
    if found is not None:
        story = found.story(code=False)
        journal.found(found.finding, found.explanation, story=story, picture=found.picture, claim=verdict.claim)


def journal_on(board: str | os.PathLike[str] | None, name: str, *, kind: str, asks: str) -> Journal | None:
    """The journal of a job on this board, or on that of the environment; None if there is none."""
    place = board_of(board)
    return None if place is None else Journal(place, name, kind=kind, asks=asks)


def follow(query: Any, journal: Journal, look: Callable[[], None], error: Callable[[], object]) -> None:
    """Tell what a streaming query does for as long as it runs, and how it ended, in a thread of its own.

    look    called about twice a second, to write what is new
    error   what the query itself knows of why it failed, if that says more than Spark does
    """

    def until_the_end() -> None:
        from py4j.protocol import Py4JError  # not above: a PySpark that knows Spark Connect only has none

        try:
            while not query.awaitTermination(SECONDS_BETWEEN_LOOKS):
                look()
                journal.alive()
            look()
            journal.end()
        except (Py4JError, OSError):
            journal.end("the JVM has ended")
        except Exception as failure:  # what the query ended with, whatever it is; or a mistake of ours in a picture
            with contextlib.suppress(Exception):
                look()
            journal.end(str(error() or failure))

    threading.Thread(target=until_the_end, name="streamtight-journal", daemon=True).start()


class ProgressNotes:
    """What Spark itself tells of a streaming query, for those that tell nothing more of themselves."""

    def __init__(self, query: Any, journal: Journal, waiting: Callable[[], Mapping[str, int]]) -> None:
        """waiting   how many events wait, by stream"""
        self._query, self._journal, self._waiting = query, journal, waiting
        self._batch, self._rows = -1, 0

    def look(self) -> None:
        """Write what is new since the last look."""
        last = self._query.lastProgress
        if last is None or last["batchId"] <= self._batch:
            return
        for told in self._query.recentProgress:
            if told["batchId"] <= self._batch:
                continue
            self._batch = told["batchId"]
            self._rows += told["numInputRows"]
            seconds = told["durationMs"].get("triggerExecution", 0) / 1000
            self._journal.note(
                at=datetime.fromisoformat(told["timestamp"].replace("Z", "+00:00")).timestamp() + seconds,
                batch=told["batchId"],
                rows={"rows": self._rows},
                rate=told["numInputRows"] / seconds if seconds > 0 else None,
                unmatched=dict(self._waiting()),
                seconds=seconds,
            )
