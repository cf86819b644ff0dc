"""What each taxi drove in an hour, and the average over all of them at every end of an hour, one event at a time.

python examples/taxi_hours.py
"""

from __future__ import annotations

from typing import NamedTuple

import streamtight as tight

GPS = tight.Kind("GPS", taxi_id=int, x=int, y=int)
RideCompleted = tight.Kind("RideCompleted", taxi_id=int, cents=int)
EndOfHour = tight.Kind("EndOfHour", hour=int)

TaxiTotal = tight.Kind("TaxiTotal", taxi_id=int, metres=int)
HourReport = tight.Kind("HourReport", hour=int, taxis=int, average_metres=float, cents=int)

# Hours follow one another. Within an hour, each taxi's positions are in order, rides are in none.
TRAFFIC = tight.Sync(EndOfHour, tight.Par(tight.PartitionBy("taxi_id", tight.Seq(GPS)), tight.Bag(RideCompleted)))


class Trip(NamedTuple):
    """One taxi in one hour: where it was seen last, and how far it went, block by block."""

    taxi_id: int
    at: tuple[int, int] | None
    metres: int = 0


class Hour(NamedTuple):
    """All taxis in one hour."""

    seen_at: dict[int, tuple[int, int]]
    taxis: int
    metres: int


def drive(trip: Trip, gps: tight.Event) -> tuple[Trip, list[tight.Event]]:
    """One position more."""
    x, y = trip.at or (gps.x, gps.y)
    return Trip(trip.taxi_id, (gps.x, gps.y), trip.metres + abs(gps.x - x) + abs(gps.y - y)), []


def all_taxis(seen_at: dict[int, tuple[int, int]], trips: dict[tight.Event, Trip]) -> tuple[Hour, list[tight.Event]]:
    """The trips of one hour, put together. The order of the taxis does not matter: whole numbers are added."""
    last = {trip.taxi_id: trip.at for trip in trips.values()}
    return Hour({**seen_at, **last}, len(trips), sum(trip.metres for trip in trips.values())), []


def report(ended: tuple[Hour, int], end: tight.Event) -> tuple[dict[int, tuple[int, int]], list[tight.Event]]:
    """At the end of an hour: what there is to report, and what the next hour has to know."""
    hour, cents = ended
    average = hour.metres / hour.taxis if hour.taxis else 0.0
    return hour.seen_at, [HourReport(end.hour, hour.taxis, average, cents)]


gps = tight.Hierarchical(
    "gps",
    takes=tight.Seq(GPS),
    gives=tight.Bag(TaxiTotal),
    update=drive,
    fin=lambda trip: (trip, [TaxiTotal(trip.taxi_id, trip.metres)]),
)
taxis = tight.Partitioned(
    "taxis", "taxi_id", gps, init=lambda seen_at, key: Trip(key.taxi_id, seen_at.get(key.taxi_id)), agg=all_taxis
)
rides = tight.Relational.incremental(
    "rides", takes=tight.Bag(RideCompleted), init=lambda x: 0, add=lambda cents, ride: cents + ride.cents
)
hour = tight.Parallel("hour", taxis, rides)
hours = tight.Hierarchical("hours", takes=TRAFFIC, gives=tight.Sync(HourReport, hour.gives), sub=hour, update=report)

MORNING = [
    GPS(1, 0, 0),
    RideCompleted(1, 500),
    GPS(2, 100, 100),
    GPS(1, 300, 0),
    GPS(2, 100, 200),
    EndOfHour(8),
    GPS(1, 300, 400),
    RideCompleted(2, 700),
    RideCompleted(1, 900),
    EndOfHour(9),
    GPS(2, 0, 200),
]


def main() -> None:
    """Run it on a morning, and once more with independent events swapped."""
    running = hours.start({})
    given = []
    for event in MORNING:
        print(event)
        for new in running.feed(event):
            print(f"    {new}")
            given.append(new)
    _, last = running.close()
    print(f"closed before the hour is over: {last}")

    swapped = [MORNING[i] for i in (2, 0, 3, 4, 1, 5, 8, 6, 7, 9, 10)]
    same = hours.open({}, TRAFFIC.parse(swapped)) == hours.gives.parse(given)
    print(f"the same events in another order that the schema allows give the same: {same}")


if __name__ == "__main__":
    main()
