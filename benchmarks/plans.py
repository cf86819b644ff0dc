"""How good are plans, and how long does it take to find them? The best ones beside the greedy ones of the paper.

    python benchmarks/plans.py

windows   one slow stream of barriers over so many streams of values: Section 4.5's event-based windowing
keys      reads and adds of eight keys on so many streams, with rates that are drawn: Figure 15
frequent  as windows, but the barriers are more frequent than any stream of values: greedy stays sequential
lanes     one stream of values that is cut for so many workers; greedy cannot cut

CPU time is the median of some rounds. The busiest way is that from the root to a leaf with the most events, which
bounds the throughput; x says how many times less there are in the best plan. `far` are messages between places in a
second, and events that arrive elsewhere than they are handled. g: greedy, b: best.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from typing import Any

from streamtight.method.parallelize.optimize import plan
from streamtight.program.fork_join import ForkJoin
from streamtight.program.plan import InputStream, Plan
from streamtight.program.tags import tags
from streamtight.stream.dependence import barrier, same
from streamtight.stream.event import Kind

Value, Barrier = Kind("Value", time=int, value=int), Kind("Barrier", time=int)
Add, Read = Kind("Add", time=int, key=int), Kind("Read", time=int, key=int)
SIZES = (2, 4, 8, 16, 32, 64)
ROUNDS = 5


class Forked(ForkJoin):
    def fork(self, state: Any, left: Any, right: Any) -> Any:
        return state, 0

    def join(self, left: Any, right: Any) -> Any:
        return left + right


class Windows(Forked):
    takes, depends = (Value, Barrier), barrier(Barrier)


class Counters(Forked):
    takes, depends = (Add, Read), barrier(Read) & same("key")


Question = tuple[ForkJoin, list[InputStream], int | None]


def windows(count: int, *, barriers: float = 1.0) -> Question:
    values = [InputStream(f"values{each}", Value, rate=100, place=f"host{each % 4}") for each in range(count)]
    return Windows(), [InputStream("barriers", Barrier, rate=barriers, place="host0"), *values], None


def keys(count: int) -> Question:
    rng = random.Random(count)
    reads = [InputStream(f"reads{key}", tags(Read, key=key), rate=rng.randint(1, 9), place="host0") for key in range(8)]
    adds = [
        InputStream(f"adds{each}", tags(Add, key=each % 8), rate=rng.randint(1, 500), place=f"host{rng.randrange(4)}")
        for each in range(count)
    ]
    return Counters(), [*reads, *adds], None


def frequent(count: int) -> Question:
    return windows(count, barriers=150)


def lanes(count: int) -> Question:
    return Windows(), [InputStream("barriers", Barrier), InputStream("values", Value, rate=1000)], count


def timed(question: Question, optimizer: Any) -> tuple[float, Plan]:
    program, streams, workers = question
    took = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        found = plan(program, streams, workers=workers, optimizer=optimizer)
        took.append(time.process_time() - begin)
    return statistics.median(took), found


def main() -> None:
    scenes: list[Callable[[int], Question]] = [windows, keys, frequent, lanes]
    print(f"{'':9} {'':>7} {'CPU time, ms':>16} {'leaves':>9} {'depth':>9}", end="")
    print(f" {'busiest way':>19} {'far':>15} {'at leaves':>11}")
    print(f"{'':9} {'streams':>7} {'greedy':>8}{'best':>8}" + f" {'g':>5}{'b':>4}" * 2, end="")
    print(f" {'greedy':>7}{'best':>7}{'x':>5} {'greedy':>8}{'best':>7} {'g':>6}{'b':>5}")
    for scene in scenes:
        for size in SIZES:
            (slow, greedy), (fast, best) = (timed(scene(size), optimizer) for optimizer in ("greedy", "best"))
            g, b = greedy.cost, best.cost
            print(
                f"{scene.__name__:9} {size:7} {slow * 1e3:8.1f}{fast * 1e3:8.1f} "
                f"{len(greedy.leaves):5}{len(best.leaves):4} {g.depth:5}{b.depth:4} "
                f"{g.busiest:7.0f}{b.busiest:7.0f}{g.busiest / b.busiest:5.1f} "
                f"{g.far:8.0f}{b.far:7.0f} {g.share_at_leaves:6.2f}{b.share_at_leaves:5.2f}"
            )


if __name__ == "__main__":
    main()
