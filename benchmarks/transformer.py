"""How fast do transformers run? Events a second, one by one, against running again on all events at each one.

python benchmarks/transformer.py

Running again is sampled: `open` on a few prefixes of the stream, and the mean of those times is taken for each event.
"""

from __future__ import annotations

import pickle
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import streamtight as tight
from streamtight.program.transformer import Transformer
from streamtight.program.transformer_forms import Hierarchical, Partitioned, Relational

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

from taxi_hours import GPS, EndOfHour, RideCompleted, hours

Out = tight.Kind("Out", taxi_id=int, metres=int)
SIZES = (1_000, 4_000, 16_000, 64_000)
PREFIXES = 8


def cpu_seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def traffic(size: int) -> list[tight.Event]:
    """An hour is 1,000 events of 100 taxis, a tenth of them rides."""
    rng = random.Random(1)
    events = []
    for place in range(1, size + 1):
        if place % 1_000 == 0:
            events.append(EndOfHour(place // 1_000))
        elif rng.random() < 0.1:
            events.append(RideCompleted(rng.randrange(100), 500))
        else:
            events.append(GPS(rng.randrange(100), rng.randrange(1_000), rng.randrange(1_000)))
    return events


def feed_all(transformer: Transformer, x: object, events: list[tight.Event]) -> int:
    """The size of the state at the end, in bytes."""
    running = transformer.start(x)
    for event in events:
        running.feed(event)
    return len(pickle.dumps(running.state))


def against_running_again() -> None:
    print(f"{'taxi hours':14}{'one by one':>14}{'run again':>14}{'ratio':>10}{'closed once':>14}{'state, bytes':>14}")
    print(f"{'events':14}{'events/s':>14}{'events/s':>14}{'':>10}{'events/s':>14}")
    for size in SIZES:
        events = traffic(size)
        taken = cpu_seconds(lambda events=events: feed_all(hours, {}, events))
        again = 0.0
        for part in range(1, PREFIXES + 1):
            prefix = events[: size * part // PREFIXES - size // (2 * PREFIXES)]
            again += cpu_seconds(lambda prefix=prefix: hours.open({}, hours.takes.parse(prefix)))
        each = again / PREFIXES
        once = cpu_seconds(lambda events=events: hours.closed({}, hours.takes.parse(events)))
        print(
            f"{size:<14,}{size / taken:14,.0f}{1 / each:14,.1f}{each * size / taken:10,.0f}{size / once:14,.0f}"
            f"{feed_all(hours, {}, events):14,}"
        )


def each_construct() -> None:
    events = [event for event in traffic(40_000) if event.kind is GPS]
    add = Relational.incremental("add", takes=tight.Bag(GPS), init=lambda x: 0, add=lambda total, gps: total + gps.x)
    pick = Relational.incremental(
        "pick", takes=tight.Bag(GPS), gives=tight.Bag(Out), on_item=lambda x, gps: [Out(gps.taxi_id, gps.x)]
    )
    in_order = Hierarchical(
        "seq",
        takes=tight.Seq(GPS),
        gives=tight.Seq(Out),
        update=lambda total, gps: (total + gps.x, [Out(gps.taxi_id, total)]),
    )
    print(f"\n{'one construct, ' + format(len(events), ',') + ' events':36}{'events/s':>14}")
    for name, transformer in {
        "bag, sum": add,
        "bag, an output for each item": pick,
        "sequence, an output for each": in_order,
        "sum for each key": Partitioned("keyed", "taxi_id", add),
        "sequence for each key": Partitioned("keyed", "taxi_id", in_order),
    }.items():
        taken = cpu_seconds(lambda transformer=transformer: feed_all(transformer, 0, events))
        print(f"  {name:34}{len(events) / taken:14,.0f}")
    few = events[:1_000]
    box = Relational("box", takes=tight.Bag(GPS), gives=tight.Bag(Out), open=lambda x, items: [Out(1, 1)] * len(items))
    taken = cpu_seconds(lambda: feed_all(box, 0, few))
    print(f"  {'black box, 1,000 items in its bag':34}{len(few) / taken:14,.0f}")


if __name__ == "__main__":
    against_running_again()
    each_construct()
