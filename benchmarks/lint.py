"""How often is the order lint right, what can be shown, and how long does it take? On the jobs of tests/catalogue.

A finding is right if its name and its line are those of the label. With --confirm, findings are shown on Spark; and the
jobs in which nothing was found are run in the same ways, as a second opinion: none of them may differ.

python benchmarks/lint.py [--confirm] [part of a name]
"""

from __future__ import annotations

import statistics
import sys
import time
from collections import Counter
from pathlib import Path

import streamtight as tight
from streamtight.method.typecheck.findings import RULES, Shown
from streamtight.spark.typecheck import examine, second_opinion

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "catalogue" / "lint_jobs"))

from all_jobs import JOBS


def main() -> None:
    confirm = "--confirm" in sys.argv
    wanted = next((one for one in sys.argv[1:] if not one.startswith("--")), "")
    jobs = [one for one in JOBS if wanted in one.name]
    examine(
        jobs[0].function, takes=jobs[0].takes, gives=jobs[0].gives, mode=jobs[0].mode, confirm=False
    )  # Spark starts
    right: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    false: Counter[str] = Counter()
    shown: Counter[tuple[str, Shown]] = Counter()
    seconds, confirming = [], []
    remarks = []
    for one in jobs:
        started = time.perf_counter()
        found = examine(one.function, takes=one.takes, gives=one.gives, mode=one.mode, confirm=False)
        seconds.append(time.perf_counter() - started)
        told = {(finding.rule.name, finding.place.line) for finding in found.findings}
        right.update(name for name, _ in told & one.expected)
        missed.update(name for name, _ in one.expected - told)
        false.update(name for name, _ in told - one.expected)
        if told != one.expected:
            remarks.append(f"{one.name}: expected {sorted(one.expected)}, told {sorted(told)}")
        if bool(found.reading.unknown) != one.unknown:
            remarks.append(f"{one.name}: not known: {', '.join(map(str, found.reading.unknown)) or 'nothing'}")
        if not confirm:
            continue
        started = time.perf_counter()
        if found.findings:
            found = examine(one.function, takes=one.takes, gives=one.gives, mode=one.mode)
            shown.update((finding.rule.name, finding.shown) for finding in found.findings)
            remarks += [
                f"{one.name}: {f.rule.name} {f.shown.value}: {f.because}" for f in found.findings if not f.shown.is_seen
            ]
        elif (
            found.verdict.holds and second_opinion(one.function, takes=one.takes, gives=one.gives, mode=one.mode).fails
        ):
            remarks.append(f"{one.name}: WRONG, nothing was found, and two runs differ")
        confirming.append(time.perf_counter() - started)
        print(f"  {one.name}: {confirming[-1]:.1f} s", file=sys.stderr, flush=True)
    clean = sum(not one.expected for one in jobs)
    print(f"{len(jobs)} jobs, {clean} of them clean\n")
    print(f"{'rule':24}{'right':>6}{'missed':>8}{'false':>7}{'shown':>7}{'together':>10}{'not':>5}")
    for name in RULES:
        if right[name] + missed[name] + false[name]:
            ways = (Shown.SHOWN, Shown.TOGETHER, Shown.NOT_SHOWN) if confirm else ()
            cells = "".join(f"{shown[name, way]:{width}}" for way, width in zip(ways, (7, 10, 5), strict=False))
            print(f"{name:24}{right[name]:6}{missed[name]:8}{false[name]:7}{cells}")
    hits = right.total()
    print(f"\nprecision {hits / max(1, hits + false.total()):.3f}, recall {hits / max(1, hits + missed.total()):.3f}")
    print(f"seconds to read a job: median {statistics.median(seconds):.3f}, worst {max(seconds):.3f}")
    if confirming:
        print(f"seconds to show or doubt it: median {statistics.median(confirming):.1f}, worst {max(confirming):.1f}")
    print("\n".join(["", *remarks]) if remarks else "\nall labels are met")
    tight.session().stop()


if __name__ == "__main__":
    main()
