"""How many pairs of the catalogue does `prove` decide, how, and how fast? Beside the figures of the original tool.

All pairs of tests/catalogue, whose answers are known. Seconds are of the wall clock, with Spark already running. What
differs is run there before it is told, and DataFrame programs that are proved to be equal are run there once as well.
The original's are seconds of CPU for its own reading of the same programs, with z3 4.8.8.

python benchmarks/prove.py [part of a name]
"""

from __future__ import annotations

import statistics
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

import streamtight as tight

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "catalogue"))

from frame_pairs import FRAME_PAIRS
from pairs import Pair
from rdd_pairs import RDD_PAIRS

# SparkLite's tool, figure 9 of its paper in order; it does not answer 13 of its own numbers, count modulo 5, rightly.
ORIGINAL = "0.00-0.16 (rows), 0.05-0.19 (folds), 4.8 (a sum modulo 5 inside a fold)"


def inputs_of(pair: Pair) -> list[object]:
    if pair.api == "rdd":
        return [tight.rdd(row) for row in pair.inputs]
    made = []
    for place, columns in enumerate(pair.inputs):
        one = tight.table(**columns)
        made.append(one.key(*pair.keys[place]) if pair.keys and pair.keys[place] else one)
    return made


def answer(pair: Pair) -> tuple[str, tight.Verdict, float]:
    """What is told, and how many seconds it took."""
    started = time.perf_counter()
    verdict = tight.prove(pair.left, pair.right, inputs=inputs_of(pair), overflow=pair.overflows)  # type: ignore[arg-type]
    seconds = time.perf_counter() - started
    found = verdict.counterexample
    return found.finding if found and found.finding != "DIFFERENT" else verdict.outcome.name, verdict, seconds


def main() -> None:
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    pairs = [pair for pair in (*RDD_PAIRS, *FRAME_PAIRS) if wanted in pair.name]
    tight.prove(lambda r: r, lambda r: r.filter(lambda x: x > 0), inputs=[tight.rdd(int)])  # Spark starts
    told: Counter[tuple[str, str, str]] = Counter()
    methods: Counter[str] = Counter()
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    slowest: list[tuple[float, str]] = []
    figure: list[tuple[str, str, float, float]] = []
    wrong: list[str] = []
    for pair in pairs:
        name, verdict, seconds = answer(pair)
        told[pair.api, pair.verdict, name] += 1
        decided = seconds - verdict.cost["seconds on Spark"]
        times[pair.api, "in all"].append(seconds)
        times[pair.api, "without runs on Spark"].append(decided)
        slowest.append((seconds, pair.name))
        if verdict.holds:
            methods[verdict.method or "-"] += 1
            if pair.verdict != "HOLDS":
                wrong.append(f"{pair.name}: {verdict}")
        elif verdict.fails and pair.verdict == "HOLDS":
            wrong.append(f"{pair.name}: {verdict}")
        if pair.name.startswith("figure 9, ") and ":" in pair.name:
            figure.append((pair.name, name, decided, seconds))
        if wanted:
            print(f"{pair.name}\n  {verdict}")
    print(f"{'api':7}{'right answer':18}{'told':22}{'pairs':>6}")
    for (api, right, name), count in sorted(told.items()):
        print(f"{api:7}{right:18}{name:22}{count:6}")
    print(f"\n{'api':7}{'seconds':24}{'pairs':>6}{'median':>10}{'95 %':>9}{'worst':>9}")
    for (api, which), taken in times.items():
        ordered = sorted(taken)
        worst, most = ordered[-1], ordered[int(0.95 * len(ordered))]
        print(f"{api:7}{which:24}{len(taken):6}{statistics.median(taken):10.3f}{most:9.3f}{worst:9.3f}")
    print("slowest: " + ", ".join(f"{name} {seconds:.1f}" for seconds, name in sorted(slowest, reverse=True)[:6]))
    print("\nproofs, by method")
    for method, count in methods.most_common():
        print(f"{count:6}  {method}")
    print(f"\nfigure 9 of the paper of SparkLite; the original's seconds: {ORIGINAL}")
    print(f"  {'':60}{'':10}{'decided':>8}{'in all':>8}")
    for name, outcome, decided, seconds in figure:
        print(f"  {name:60}{outcome:10}{decided:8.3f}{seconds:8.3f}")
    print("\n".join(["", "WRONG", *wrong]) if wrong else "\nno answer is wrong")


if __name__ == "__main__":
    main()
