"""How often was each campaign seen in each ten seconds? A typed graph after the Yahoo streaming benchmark.

    python examples/ad_counts.py

Views are kept, ads are looked up in the table of campaigns, and views are counted for each campaign between markers.
Views come in any order, so the count is a `KeyedUnordered`: its laws are proved. The same graph runs on Spark.
"""

from __future__ import annotations

import random
import sys

import streamtight as tight
from streamtight import Event

Shown = tight.Kind("Shown", ad=int, what=str, user=int)
View = tight.Kind("View", campaign=int)
Count = tight.Kind("Count", campaign=int, until=int, views=int)
CAMPAIGN_OF = {ad: ad // 10 for ad in range(100)}


def views(item, emit):
    """Filter, project and join."""
    if item.what == "view":
        emit(View(CAMPAIGN_OF[item.ad]))


def tell(count, campaign, marker, emit):
    """The count of this window."""
    emit(Count(campaign, marker.time, count))


joined = tight.Stateless("joined", takes=tight.U(Shown), gives=tight.U(View), on_item=views)
counted = tight.KeyedUnordered(
    "counted",
    takes=tight.U(View),
    gives=tight.U(Count),
    key="campaign",
    summary=lambda view: 1,
    identity=0,
    combine=lambda a, b: a + b,
    initial_state=0,
    update_state=lambda _, count: count,
    on_marker=tell,
)
graph = tight.Graph(tight.Inlet("ads", tight.U(Shown)) >> joined >> counted >> tight.Outlet("counts"))


def ads(count: int, seed: int = 0) -> list[Event]:
    """So many ads, and a marker after every hundred."""
    chance = random.Random(seed)
    events: list[Event] = []
    for number in range(1, count + 1):
        what = chance.choice(["view", "click", "purchase"])
        events.append(Shown(chance.randrange(100), what, chance.randrange(50)))
        if number % 100 == 0:
            events.append(tight.Marker(number // 10))
    return events


def main() -> int:
    """Judge the graph, run it in plain Python and on Spark, and compare."""
    print(tight.typecheck(graph).story())
    events = ads(1000)
    wanted = graph.run(events)
    spark = tight.session()
    names = ("ad", "what", "user", "time")
    rows = [(event.kind.name, *(event.as_dict().get(name) for name in names), at) for at, event in enumerate(events)]
    frame = spark.createDataFrame(rows, "kind string, ad long, what string, user long, time long, at long")
    came = graph.events(graph.on_spark(frame, position="at").collect())
    type_ = graph.type_of(graph.outlets[0])
    same = tight.Trace(wanted, type_) == tight.Trace(came, type_)
    print(f"{len(events)} events in, {len(came)} out; Spark gives what plain Python gives: {same}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
