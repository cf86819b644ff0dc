"""Clicks in windows of five minutes, which come up to twenty minutes late: a watermark, right and wrong.

python examples/windows.py
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

import streamtight as tight
from streamtight import gen

Click = tight.Kind("Click", page=str, at=datetime)
Clicks = tight.Kind("Clicks", page=str, start=datetime, clicks=int)
NOON = datetime(2024, 5, 1, 12)
MINUTES = timedelta(minutes=5)


def windowed(clicks: DataFrame, *, delay: str = "20 minutes") -> DataFrame:
    """The clicks on each page in each five minutes, once nothing can be added."""
    return (
        clicks.withWatermark("at", delay)
        .groupBy("page", sf.window("at", "5 minutes"))
        .agg(sf.count("*").alias("clicks"))
        .select("page", sf.col("window.start").alias("start"), "clicks")
    )


def impatient(clicks: DataFrame) -> DataFrame:
    """The same, but it waits for one minute only."""
    return windowed(clicks, delay="1 minute")


# A batch every five minutes. Phones that were offline send their clicks fifteen to twenty minutes late.
online = gen.always(gen.batch(Click, size=1, page=["a", "b"]), during=9).timed("at", start=NOON, every=MINUTES)
offline = gen.always(gen.batch(Click, size=(0, 1), page=["a", "b"]), during=9).timed(
    "at", start=NOON - 3 * MINUTES, every=MINUTES
)
traffic = online & offline


def clicks_in(window: Any, clicks: Any) -> int:
    """How many of these clicks the window should count."""
    return sum(click.page == window.page and window.start <= click.at < window.start + MINUTES for click in clicks)


# A click of 12:04, in the first batch, is in a window that ends at 12:05. It comes out once a click of 12:25 was seen,
# which is in the sixth batch; and what Spark learns in a batch, it uses in the next.
comes_out = tight.forall(
    lambda letter: letter.input,
    lambda click: tight.eventually(
        tight.some_record("output", lambda window: clicks_in(window, [click]) == 1), within=7
    ),
).named("its clicks come out within 7 batches")
right_count = tight.forall(
    lambda letter: letter.output,
    lambda window: lambda letter: window.clicks == clicks_in(window, letter.so_far("input")),
).named("the counts are right")
promises = tight.always(comes_out, during=3) & tight.always(right_count, during=9)


def main() -> None:
    """Ask about both."""
    for job in (windowed, impatient):
        print(tight.check(job, promises, on=traffic, gives=Clicks, runs=8).story())


if __name__ == "__main__":
    main()
