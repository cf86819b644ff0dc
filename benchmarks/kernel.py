"""How fast is the kernel? CPU time, the median of several rounds, with a slow twin beside each figure.

python benchmarks/kernel.py
"""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import time
from collections import namedtuple
from collections.abc import Callable

import streamtight as tight

GPS = tight.Kind("GPS", taxi_id=int, x=float, y=float)
Ride = tight.Kind("Ride", taxi_id=int, cents=int)
EndOfHour = tight.Kind("EndOfHour", hour=int)
Row = namedtuple("Row", "taxi_id x y")
EVENTS = 100_000


def cpu_seconds(work: Callable[[], object], rounds: int = 5) -> float:
    """The median CPU time of this process for the work."""
    taken = []
    for _ in range(rounds):
        started = time.process_time()
        work()
        taken.append(time.process_time() - started)
    return statistics.median(taken)


def creation() -> None:
    def repeated(make: Callable[[], object]) -> Callable[[], None]:
        def work() -> None:
            for _ in range(EVENTS):
                make()

        return work

    nothing = cpu_seconds(repeated(lambda: None))
    print(f"{'events created':34}{'million/s':>12}")
    for name, make in {
        "namedtuple, by position": lambda: Row(1, 0.5, 2.0),
        "namedtuple, by name": lambda: Row(taxi_id=1, x=0.5, y=2.0),
        "event, by position": lambda: GPS(1, 0.5, 2.0),
        "event, by name": lambda: GPS(taxi_id=1, x=0.5, y=2.0),
    }.items():
        print(f"  {name:32}{EVENTS / (cpu_seconds(repeated(make)) - nothing) / 1e6:12.2f}")


def equality() -> None:
    rng = random.Random(1)
    positions = [GPS(rng.randrange(1000), rng.random(), 0.0) for _ in range(EVENTS)]
    hourly = [EndOfHour(i // 1000) if i % 1000 == 0 else e for i, e in enumerate(positions)]
    print(f"\n{'two equal traces of 100,000 events':34}{'==, s':>12}{'<=, s':>12}{'parse, s':>12}{'reorder, s':>12}")
    for name, events, upto in [
        ("bag", positions, tight.Bag(GPS)),
        ("sequence", positions, tight.Seq(GPS)),
        ("keyed", positions, tight.PartitionBy("taxi_id", tight.Seq(GPS))),
        ("keyed, with hours", hourly, tight.Sync(EndOfHour, tight.PartitionBy("taxi_id", tight.Seq(GPS)))),
    ]:
        trace = tight.Trace(events, upto)
        other = trace.reordered(rng)

        def fresh(upto=upto, trace=trace, other=other) -> tuple[tight.Trace, tight.Trace]:
            return tight.Trace(trace.events, upto), tight.Trace(other.events, upto)

        making = cpu_seconds(fresh, 3)
        equal = cpu_seconds(lambda fresh=fresh: (lambda pair: pair[0] == pair[1])(fresh()), 3) - making
        prefix = cpu_seconds(lambda fresh=fresh: (lambda pair: pair[0] <= pair[1])(fresh()), 3) - making
        parse = cpu_seconds(lambda upto=upto, events=events: upto.parse(events), 3)
        reorder = cpu_seconds(lambda trace=trace: trace.reordered(rng), 3)
        print(f"  {name:32}{equal:12.3f}{prefix:12.3f}{parse:12.3f}{reorder:12.3f}")


def structured_against_opaque() -> None:
    """The same relation once as clauses and once as a function: what the index is worth."""
    rng = random.Random(2)
    print(f"\n{'== of keyed traces, ms':34}{'indexed':>12}{'function':>12}{'ratio':>12}")
    for size in (100, 1_000, 4_000):
        events = [GPS(rng.randrange(100), rng.random(), 0.0) for _ in range(size)]
        taken = []
        for upto in (tight.same("taxi_id"), tight.depends(lambda a, b: a.taxi_id == b.taxi_id)):
            mixed = tight.Trace(events, tight.same("taxi_id")).reordered(rng).events

            def compare(one=events, other=mixed, upto=upto) -> bool:
                return tight.Trace(one, upto) == tight.Trace(other, upto)

            taken.append(cpu_seconds(compare, 3))
        print(f"  {size:<32}{taken[0] * 1e3:12.2f}{taken[1] * 1e3:12.2f}{taken[1] / taken[0]:12.1f}")


def import_time() -> None:
    def child(code: str) -> float:
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - started

    bare = statistics.median(child("pass") for _ in range(9))
    ours = statistics.median(child("import streamtight") for _ in range(9))
    print(f"\nimport streamtight: {(ours - bare) * 1e3:.1f} ms more than a bare Python ({bare * 1e3:.0f} ms)")


if __name__ == "__main__":
    creation()
    equality()
    structured_against_opaque()
    import_time()
