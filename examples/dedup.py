"""A dedup operator that forgets: does it ever emit a click twice?

    python examples/dedup.py

Clicks come at least once. `LastClick` remembers the last click of a user, which is enough if repeats come directly one
after the other. Do they? `explore` runs the code itself, from every state that it can reach, and finds three clicks on
which it is not enough; the job on Spark is then run on these three, too. `EveryClick` remembers all clicks.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

import streamtight as tight

Click = tight.Kind("Click", user=str, id=int)
CLICKS = [Click("ann", 1), Click("ann", 2)]
"""All clicks that can come. Keys do not see each other, so one user is enough."""


class LastClick(StatefulProcessor):
    """Passes a click unless it is the last one again."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called by Spark, once for each task."""
        self._last = handle.getValueState("last", "id int")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timer_values: Any) -> Iterator[Row]:  # noqa: N802
        """Called by Spark with the rows of one key in one micro-batch."""
        for row in rows:
            if self._last.get() != (row.id,):
                self._last.update((row.id,))
                yield row

    def close(self) -> None:
        """Called by Spark at the end."""


class EveryClick(LastClick):
    """Passes a click unless it came before."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called by Spark, once for each task."""
        self._seen = handle.getMapState("seen", "id int", "once boolean")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timer_values: Any) -> Iterator[Row]:  # noqa: N802
        """Called by Spark with the rows of one key in one micro-batch."""
        for row in rows:
            if not self._seen.containsKey((row.id,)):
                self._seen.updateValue((row.id,), (True,))
                yield row


def forgets(clicks: DataFrame) -> DataFrame:
    """The job with `LastClick`."""
    return clicks.groupBy("user").transformWithState(LastClick(), "user string, id int", "Append", "none")


def remembers(clicks: DataFrame) -> DataFrame:
    """The job with `EveryClick`."""
    return clicks.groupBy("user").transformWithState(EveryClick(), "user string, id int", "Append", "none")


def never_again(row: Any) -> tight.Formula:
    """From the next step on, this row does not come out."""
    return tight.next(tight.always(lambda later: row not in later.output))


def comes_out(number: int) -> tight.Formula:
    """The click with this id comes out when it first comes in."""
    comes = tight.some_record("input", lambda row: row.id == number)
    goes = tight.some_record("output", lambda row: row.id == number)
    return tight.release(goes, comes >> goes)


once = tight.always(tight.forall(lambda at: at.output, never_again)).named("each click comes out once")
none_lost = functools.reduce(operator.and_, (comes_out(click.id) for click in CLICKS)).named("no click is lost")


def main() -> int:
    """Ask about both, and run the counterexample on Spark."""
    wrong = tight.explore(LastClick, once, on=CLICKS, key="user", job=forgets)
    print(wrong.story())
    right = [tight.explore(EveryClick, claim, on=CLICKS, key="user") for claim in (once, none_lost)]
    print(*right, sep="\n")
    return 0 if wrong.fails and all(verdict.holds for verdict in right) else 1


if __name__ == "__main__":
    sys.exit(main())
