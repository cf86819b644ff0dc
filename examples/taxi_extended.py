"""Taxis with more to keep in order than each taxi's positions: days, places, and time.

Three consumers, and for each what must keep its order, a job that keeps it, and one that looks as good and does not:

    days            way by taxi and day: positions may not pass the end of a day; the end of a month may pass positions
    places          who meets whom: positions that are close to each other, whichever taxi they are of
    punctuations    "all before noon has come": what comes after it with an earlier time is late, and must stay so

(After DiffStream, OOPSLA 2020, section 3, Figures 5, 6 and 7. The plain taxi jobs are in taxi.py.)

    python examples/taxi_extended.py
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

import streamtight as tight

Job = Callable[[DataFrame], DataFrame]


# -- days and months (Figure 5) --------------------------------------------------------------------------------------

Position = tight.Kind("Position", taxi_id=int, x=int, y=int)
Located = tight.Kind("Located", taxi_id=int, east=int, north=int)
EndOfDay = tight.Kind("EndOfDay", day=int)
EndOfMonth = tight.Kind("EndOfMonth", month=int)

EACH_DAY = tight.barrier(EndOfDay) | tight.between(EndOfMonth, EndOfMonth)
GOES_IN = EACH_DAY | tight.same("taxi_id", of=Position)
COMES_OUT = EACH_DAY | tight.same("taxi_id", of=Located)


def in_metres(rows: DataFrame) -> DataFrame:
    """Positions in metres; the ends of days and months as they are."""
    kind = "CASE kind WHEN 'Position' THEN 'Located' ELSE kind END AS kind"
    return rows.selectExpr(kind, "taxi_id", "x * 1000 AS east", "y * 1000 AS north", "day", "month")


def keeps_days(rows: DataFrame) -> DataFrame:
    """All rows in one partition: a marker has a place among all others only there."""
    return in_metres(rows.coalesce(1))


def keeps_taxis_only(rows: DataFrame) -> DataFrame:
    """What was right before there were markers: they now go to one partition, and most taxis to others."""
    return in_metres(rows.repartition("taxi_id"))


def months_on_their_own(rows: DataFrame) -> DataFrame:
    """Positions need not wait for the end of a month; but the end of a month must wait for that of its last day."""
    is_month = sf.col("kind") == "EndOfMonth"
    return in_metres(rows.filter(~is_month).unionByName(rows.filter(is_month)))


def some_days(rng: random.Random, days: int = 4) -> tight.Trace:
    """A few positions a day; every second day is the last one of a month."""
    events, at = [], dict.fromkeys((1, 2, 3), (0, 0))
    for day in range(1, days + 1):
        for taxi in rng.choices(list(at), k=rng.randint(1, 4)):
            x, y = at[taxi]
            events.append(Position(taxi, x, y))
            at[taxi] = (x + rng.randint(0, 1), y + 1)
        events.append(EndOfDay(day))
        if day % 2 == 0:
            events.append(EndOfMonth(day // 2))
    return tight.Trace(events, GOES_IN)


def keeps_the_days(job: Job, *, runs: int = 30) -> tight.Verdict:
    """Does it give what the job in one partition gives, up to the order that the consumer needs?"""
    takes, gives = (Position, EndOfDay, EndOfMonth), (Located, EndOfDay, EndOfMonth)
    return tight.compare(keeps_days, job, on=some_days, upto=COMES_OUT, takes=takes, gives=gives, runs=runs)


# -- places (Figure 6) -----------------------------------------------------------------------------------------------

Seen = tight.Kind("Seen", taxi_id=int, x=float, y=float)

CITIES = (0, 100, 200)
"""Where they begin, in kilometres; each is 3 km wide, and nobody is seen between them."""


def are_close(a: tight.Event, b: tight.Event) -> bool:
    """Less than one kilometre."""
    return math.hypot(a.x - b.x, a.y - b.y) < 1


CLOSE_IN_ORDER = tight.depends(are_close)


def in_order(rows: DataFrame) -> DataFrame:
    """The reference: one partition."""
    return rows.coalesce(1)


def by_city(rows: DataFrame) -> DataFrame:
    """What is close is in the same city."""
    return rows.repartition(sf.floor(rows.x / 100))


def by_square(rows: DataFrame) -> DataFrame:
    """Squares of one kilometre: what is close may still be in the next one."""
    return rows.repartition(sf.floor("x"), sf.floor("y"))


def some_places(rng: random.Random) -> tight.Trace:
    """Taxis in three small cities."""
    places = [(rng.choice(CITIES) + rng.randint(0, 6) / 2, rng.randint(0, 6) / 2) for _ in range(12)]
    return tight.Trace([Seen(rng.randint(1, 5), x, y) for x, y in places], CLOSE_IN_ORDER)


def keeps_close_ones(job: Job, *, runs: int = 30) -> tight.Verdict:
    """Do positions that are close to each other keep their order?"""
    return tight.compare(in_order, job, on=some_places, upto=CLOSE_IN_ORDER, takes=Seen, gives=Seen, runs=runs)


# -- punctuations (Figure 7) -----------------------------------------------------------------------------------------

Passed = tight.Kind("Passed", taxi_id=int, time=int)
Punctuation = tight.Kind("Punctuation", time=int)

LATE_STAYS_LATE = tight.punctuation(Punctuation, time="time", of=Passed)


def sorted_by_time(rows: DataFrame) -> DataFrame:
    """Tidies up: but what was late comes before the punctuation that it missed, as if it had been on time."""
    return rows.coalesce(1).sortWithinPartitions("time")


def all_on_time(rng: random.Random) -> tight.Trace:
    """A punctuation comes when all that is before it has come; positions themselves are in no order of time."""
    return _passing(rng, late=0)


def some_late(rng: random.Random) -> tight.Trace:
    """As above, but some positions come one punctuation too late: a taxi was without network."""
    return _passing(rng, late=0.3)


def _passing(rng: random.Random, *, late: float) -> tight.Trace:
    waits: list[tuple[float, tight.Event]] = []
    for hour in range(3):
        waits.append((hour + 1, Punctuation(10 * (hour + 1))))
        for _ in range(3):
            delay = 1 if rng.random() < late else 0
            # Sent in this hour or, a little early by the clock of the taxi, with a time of the next one.
            time = 10 * hour + rng.randint(0, 14)
            waits.append((hour + delay + rng.uniform(0.1, 0.9), Passed(rng.randint(1, 3), time)))
    return tight.Trace([event for _, event in sorted(waits, key=lambda wait: wait[0])], LATE_STAYS_LATE)


def keeps_late_ones_late(
    job: Job,
    *,
    on: Callable[[random.Random], tight.Trace],
    upto: tight.Dependence = LATE_STAYS_LATE,
    runs: int = 30,
) -> tight.Verdict:
    """Does every position stay on its side of the punctuations that concern it?"""
    kinds = (Passed, Punctuation)
    return tight.compare(in_order, job, on=on, upto=upto, takes=kinds, gives=kinds, mode="batch", runs=runs)


# -- all of them -----------------------------------------------------------------------------------------------------


def main() -> None:
    """Judge all jobs, tell the stories, write the report."""
    options = argparse.ArgumentParser(description="Which taxi jobs keep the order that their consumers need?")
    options.add_argument("--runs", type=int, default=20, help="generated inputs for each job")
    options.add_argument("--report", default="build/taxi_extended.html", help="a .html, .txt or .json file")
    chosen = options.parse_args()

    spark = tight.session()
    try:
        verdicts = [
            *(keeps_the_days(job, runs=chosen.runs) for job in (keeps_days, keeps_taxis_only, months_on_their_own)),
            *(keeps_close_ones(job, runs=chosen.runs) for job in (by_city, by_square)),
            *(keeps_late_ones_late(sorted_by_time, on=on, runs=chosen.runs) for on in (all_on_time, some_late)),
        ]
        for verdict in verdicts:
            print(verdict.story(), flush=True)
        print(f"\nReport: {tight.write_report(verdicts, chosen.report, title='More taxi jobs')}")
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
