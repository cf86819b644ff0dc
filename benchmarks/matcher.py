"""How fast is the matcher? CPU time per event of either side, in one process, beside what the original needs in Java.

python benchmarks/matcher.py

The left stream runs so many events ahead; then both alternate, and this is timed. "same": right in the order of left.
"shuffled": right shuffled inside blocks of that many events, the order inside each key kept, marks never crossed.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable, Iterator

import pyarrow as pa

import streamtight as tight

Item = tight.Kind("Item", key=int, payload=int)
Mark = tight.Kind("Mark", number=int, time=int)
Timed = tight.Kind("Timed", key=int, time=int)
EVENTS = 100_000
AHEAD = (0, 100, 1_000, 10_000)
ROUNDS = 5

# DiffStream in Java, one thread, same order: CPU time per event, measured for this project with Java 17 on two cores.
JAVA = {
    "bag": (0.135, 0.310, 2.50, 61.5),
    "keyed": (0.123, 0.320, 3.94, 220.0),
    "total": (0.114, 80.1, 8_780.0, 1_550_000.0),
    "keyed, with marks": (0.122, 0.498, 20.3, 5_540.0),
}


def items(rng: random.Random) -> list[tight.Event]:
    return [Item(rng.randrange(1_000), rng.getrandbits(32)) for _ in range(EVENTS)]


def with_marks(rng: random.Random) -> list[tight.Event]:
    return [Mark(i // 1_000, i) if i % 1_000 == 999 else event for i, event in enumerate(items(rng))]


def with_punctuation(rng: random.Random) -> list[tight.Event]:
    """Events up to 500 ticks late, and a punctuation every thousand."""
    return [
        Mark(i // 1_000, i - 500) if i % 1_000 == 999 else Timed(rng.randrange(1_000), i - rng.randrange(500))
        for i in range(EVENTS)
    ]


def shuffled(events: list[tight.Event], block: int, rng: random.Random) -> list[tight.Event]:
    """Any order inside blocks of so many events that keeps each key's order and crosses no mark."""
    mixed: list[tight.Event] = []
    for start in range(0, len(events), block):
        for part in _between_marks(events[start : start + block]):
            by_key: dict[object, Iterator[tight.Event]] = {}
            keys = [event[1] for event in part]
            for key in set(keys):
                by_key[key] = iter([event for event in part if event[1] == key])
            rng.shuffle(keys)
            mixed += [next(by_key[key]) for key in keys]
    return mixed


def _between_marks(events: list[tight.Event]) -> Iterator[list[tight.Event]]:
    part: list[tight.Event] = []
    for event in events:
        if event.kind is Mark:
            yield part
            yield [event]
            part = []
        else:
            part.append(event)
    yield part


def microseconds(upto: tight.Dependence, left: list[tight.Event], right: list[tight.Event], ahead: int) -> float:
    taken = []
    for _ in range(ROUNDS):
        matcher = tight.Matcher(upto=upto)
        matcher.feed("left", left[:ahead])
        pairs = list(zip(left[ahead:], right, strict=False))
        gc.collect()
        gc.freeze()  # the events of the benchmark itself are not what is measured
        offer_left, offer_right = matcher.left, matcher.right
        started = time.process_time()
        for one, other in pairs:
            offer_left(one)
            offer_right(other)
        taken.append((time.process_time() - started) / len(pairs) / 2)
        gc.unfreeze()
        matcher.feed("right", right[len(pairs) :])
        matcher.finish().require()
    return 1e6 * statistics.median(taken)


def event_by_event() -> None:
    rng = random.Random(1)
    print(f"event by event, us/event       {'':34}" + "".join(f"{f'{ahead:,} ahead':>16}" for ahead in AHEAD))
    cases: list[tuple[str, tight.Dependence, Callable[[random.Random], list[tight.Event]], bool]] = [
        ("bag", tight.unordered, items, True),
        ("keyed", tight.same("key"), items, True),
        ("total", tight.ordered, items, False),
        ("keyed, with marks", tight.Sync(Mark, tight.PartitionBy("key", tight.Seq(Item))), with_marks, True),
        ("the same, as clauses", tight.barrier(Mark) | tight.same("key", of=Item), with_marks, True),
        ("punctuation", tight.punctuation(Mark, time="time"), with_punctuation, False),
        (
            "punctuation and keyed",
            tight.punctuation(Mark, time="time") | tight.same("key", of=Timed),
            with_punctuation,
            False,
        ),
        ("depends(fn)", tight.depends(lambda a, b: a.key == b.key), items, False),
    ]
    for name, upto, make, mixes in cases:
        events = make(rng)
        way = tight.Matcher(upto=upto).way
        same = [microseconds(upto, events, events, ahead) for ahead in AHEAD]
        print(f"  {name:24}{way:41}" + "".join(f"{cost:16.3f}" for cost in same))
        if mixes:
            other = [microseconds(upto, events, shuffled(events, ahead, rng), ahead) for ahead in AHEAD[1:]]
            print(f"    {'shuffled':63}{'':>14}" + "".join(f"{cost:16.3f}" for cost in other))
        if name in JAVA:
            print(f"    {'DiffStream, Java':63}" + "".join(f"{cost:16,.3f}" for cost in JAVA[name]).replace("  ", "  "))


def by_columns() -> None:
    rng = random.Random(1)
    rows, batch = 1_000_000, 50_000
    columns = {
        "key": [rng.randrange(1_000) for _ in range(rows)],
        "payload": [rng.getrandbits(32) for _ in range(rows)],
    }
    left = pa.table(columns)
    print(
        f"\nby columns, batches of {batch:,} rows, us/event {'':15}" + "".join(f"{f'{a:,} ahead':>16}" for a in AHEAD)
    )
    for name, upto in (("bag", tight.unordered), ("keyed", tight.same("key")), ("total", tight.ordered)):
        for order in ("same", "shuffled"):
            if name == "total" and order == "shuffled":
                continue
            costs = []
            for ahead in AHEAD:
                right = left if order == "same" else left.take(_mixed_places(columns["key"], max(ahead, 2), rng))
                costs.append(_columnar(upto, left, right, ahead, batch))
            print(f"  {name:24}{order:35}" + "".join(f"{cost:16.3f}" for cost in costs))


def _mixed_places(keys: list[int], block: int, rng: random.Random) -> list[int]:
    places: list[int] = []
    for start in range(0, len(keys), block):
        part = range(start, min(start + block, len(keys)))
        by_key: dict[int, list[int]] = {}
        for place in part:
            by_key.setdefault(keys[place], []).append(place)
        waiting = {key: iter(some) for key, some in by_key.items()}
        order = [keys[place] for place in part]
        rng.shuffle(order)
        places += [next(waiting[key]) for key in order]
    return places


def _columnar(upto: tight.Dependence, left: pa.Table, right: pa.Table, ahead: int, batch: int) -> float:
    taken = []
    for _ in range(3):
        matcher = tight.Matcher(upto=upto)
        matcher.feed("left", left.slice(0, ahead))
        started = time.process_time()
        for start in range(0, len(left), batch):
            matcher.feed("left", left.slice(ahead + start, batch))
            matcher.feed("right", right.slice(start, batch))
        matcher.finish().require()
        taken.append((time.process_time() - started) / len(left) / 2)
    return 1e6 * statistics.median(taken)


if __name__ == "__main__":
    event_by_event()
    by_columns()
