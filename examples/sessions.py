"""Visits of users as session windows: a visit ends after ten quiet minutes. One job has it so, one is too quick.

python examples/sessions.py
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

import streamtight as tight
from streamtight import gen

Click = tight.Kind("Click", user=str, at=datetime)
Visit = tight.Kind("Visit", user=str, start=datetime, end=datetime, clicks=int)
QUIET = timedelta(minutes=10)


def visits(clicks: DataFrame, *, quiet: str = "10 minutes") -> DataFrame:
    """The visits of each user; the end is the last click and the quiet time after it."""
    return (
        clicks.withWatermark("at", "1 minute")
        .groupBy("user", sf.session_window("at", quiet))
        .agg(sf.count("*").alias("clicks"))
        .select("user", "session_window.start", "session_window.end", "clicks")
    )


def too_quick(clicks: DataFrame) -> DataFrame:
    """A visit ends after five minutes: who reads for seven has two."""
    return visits(clicks, quiet="5 minutes")


# A batch every seven minutes; the last two are quiet ones of somebody else, which move the clock on.
some = gen.always(gen.batch(Click, size=(0, 2), user=["ann", "bob"]), during=5)
nobody = gen.always(gen.batch(Click, size=1, user=["clock"]), during=4)
traffic = (some + nobody).timed("at", start=datetime(2024, 5, 1, 12), every=timedelta(minutes=7))


def is_in(click: Any, visit: Any) -> bool:
    """Whether the visit has this click."""
    return click.user == visit.user and visit.start <= click.at < visit.end


# Two clicks of a user within ten minutes are in one visit: no click is that near to a visit that does not have it.
one_visit = tight.forall(
    lambda letter: letter.output,
    lambda visit: (
        lambda letter: all(
            is_in(click, visit)
            for click in letter.so_far("input")
            if click.user == visit.user and visit.start - QUIET < click.at < visit.start + QUIET
        )
    ),
).named("visits have all their clicks")
# And no click is lost.
comes_out = tight.forall(
    lambda letter: letter.input,
    lambda click: tight.eventually(tight.some_record("output", lambda visit: is_in(click, visit)), within=9),
).named("its clicks come out within 9 batches")

promises = tight.always(one_visit, during=9) & comes_out


def main() -> None:
    """Ask about both."""
    for job in (visits, too_quick):
        print(tight.check(job, promises, on=traffic, gives=Visit, runs=8).story())


if __name__ == "__main__":
    main()
