"""A session operator that never closes: is there a way into a session without a way out?

    python examples/session_close.py

A session of a user is closed when nothing has come for ten minutes. Each visit puts the timer off. `Forgetful` takes
the old timer away at each visit, but sets a new one at the first only: after two visits nothing closes the session any
more, and its state stays for ever. `Sessions` sets one at each visit.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

import streamtight as tight

GAP = 600_000
"""Milliseconds without a visit after which a session is over."""

Visit = tight.Kind("Visit", user=str, page=str)
VISITS = [Visit("ann", "home"), Visit("ann", "cart")]


class Sessions(StatefulProcessor):
    """Gives the last page of each session, when it is over."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called by Spark, once for each task."""
        self._handle = handle
        self._page = handle.getValueState("page", "page string")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timer_values: Any) -> Iterator[Row]:  # noqa: N802
        """Called by Spark with the visits of one user in one micro-batch."""
        for row in rows:
            is_new = not self._page.exists()
            self._page.update((row.page,))
            self._put_off(timer_values.getCurrentWatermarkInMs() + GAP, is_new)
        return iter(())

    def _put_off(self, until: int, is_new: bool) -> None:
        for timer in list(self._handle.listTimers()):
            self._handle.deleteTimer(timer)
        self._handle.registerTimer(until)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Called by Spark when a timer is due, with these names."""
        yield Row(user=key[0], page=self._page.get()[0])
        self._page.clear()

    def close(self) -> None:
        """Called by Spark at the end."""


class Forgetful(Sessions):
    """The same, with a mistake."""

    def _put_off(self, until: int, is_new: bool) -> None:
        for timer in list(self._handle.listTimers()):
            self._handle.deleteTimer(timer)
        if is_new:
            self._handle.registerTimer(until)


def sessions(visits: DataFrame, processor: StatefulProcessor | None = None) -> DataFrame:
    """The job: visits with a time `at` in, sessions that are over out."""
    timed = visits.withWatermark("at", "0 seconds")
    return timed.groupBy("user").transformWithState(
        processor or Sessions(), "user string, page string", "Append", "EventTime"
    )


def forgetful(visits: DataFrame) -> DataFrame:
    """The job with the mistake."""
    return sessions(visits, Forgetful())


def main() -> int:
    """Can every session still be closed?"""
    verdicts = [tight.explore(each, tight.live(), on=VISITS, key="user") for each in (Forgetful, Sessions)]
    print(*(verdict.story() for verdict in verdicts), sep="\n")
    return 0 if [verdict.outcome.name for verdict in verdicts] == ["FAILS", "HOLDS"] else 1


if __name__ == "__main__":
    sys.exit(main())
