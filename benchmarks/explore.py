"""What does `explore` cost? The paper's 162 problems, larger ones, and how it grows; each engine beside the others.

    python benchmarks/explore.py [section] ... [--chart FILE]

Sections: paper, large, growth, engines; without any, all. Times are milliseconds of processor time of this process,
whole questions: the model is built, decided, and a counterexample is run again and drawn. The paper's own figures
(nuXmv 2.0.0 on another machine) are in its tables 7a to 7c; they cannot be compared one to one.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

import pipelines as paper

import streamtight as tight
from streamtight import Pipeline, Verdict
from streamtight.method.explore.decide import sat_is_there

Problem = tuple[str, Callable[[], Verdict], str]
"""Its name, the question, and the verdict that the reference has."""


def asked(pipeline: Pipeline, claim: object, queue: int, numbers: int, **options: object) -> Callable[[], Verdict]:
    world = {"full": "drop", "pauses": True, **options}
    return lambda: tight.explore(pipeline, claim, queue=queue, domain=tight.modulo(numbers), **world)


def full_queues(name: str, queue: int) -> str:
    return "FAILS" if name == "1 and k-th" or (name == "Odds" and queue == 1) else "HOLDS"


def problems() -> Iterator[Problem]:
    """The 162 problems of the paper, in five groups: queue size, domain size, tables 7b, k, 7a and 7c."""
    sizes = [(queue, 4) for queue in (1, 2, 3, 4)] + [(3, numbers) for numbers in (2, 3, 5)]
    for queue, numbers in sizes:
        for name, make in paper.SEVEN.items():
            if (name == "Doubles" and numbers < 3) or (name == "Smaller than k" and numbers <= 3):
                continue
            here = f"{name}, Q {queue}, N {numbers}"
            yield f"{here}: queues", asked(make(), tight.no_full_queues(), queue, numbers), full_queues(name, queue)
            yield f"{here}: live", asked(make(), tight.live(), queue, numbers), "HOLDS"
    for queue in (1, 2, 4):
        for name, make in paper.SEVEN.items():
            here = f"{name}, Q {queue}, N 5"
            yield f"{here}: queues", asked(make(), tight.no_full_queues(), queue, 5), full_queues(name, queue)
    with_k = [(name, k) for name in ("Window of 3", "1 and k-th", "Ones on window") for k in (2, 3, 4, 5)]
    for name, k in [*with_k, ("Smaller than k", 2)]:
        here = f"{name}, k {k}, Q 2, N 3"
        yield f"{here}: queues", asked(paper.SEVEN[name](k), tight.no_full_queues(), 2, 3), full_queues(name, 2)
        yield f"{here}: live", asked(paper.SEVEN[name](k), tight.live(), 2, 3), "HOLDS"
    for name, make in paper.SEVEN.items():
        question = asked(make(), tight.live(within=3), 3, 4, pauses=False)
        yield f"{name}, Q 3, N 4: live within 3", question, "HOLDS"
    pairs = [(name, paper.SEVEN[name](), paper.SEVEN[name]()) for name in ("Passthrough", "1 and k-th")]
    pairs += [(name, paper.SEVEN[name](), paper.SEVEN[name]()) for name in ("Ones on window", "Odds", "Window of 3")]
    pairs += [("delay", paper.passthrough(), paper.delay())]
    pairs += [(f"window sum of {k}", paper.window_sum(k), paper.chain_sum(k)) for k in (2, 3)]
    for name, left, right in pairs:
        expected = "FAILS" if name == "delay" else "HOLDS"
        yield f"{name}, Q 2, N 2: same steps", asked(left, tight.same_steps(right), 2, 2), expected
        yield f"{name}, Q 2, N 2: same sequence", asked(left, tight.same_sequence(right), 2, 2), "HOLDS"


def taken(work: Callable[[], Verdict], rounds: int = 1) -> tuple[Verdict, float]:
    """The verdict, and the median of the milliseconds of processor time."""
    times = []
    for _ in range(rounds):
        started = time.process_time()
        verdict = work()
        times.append(1e3 * (time.process_time() - started))
    return verdict, statistics.median(times)


def section_paper() -> None:
    listed = list(problems())
    asked(paper.passthrough(), tight.live(), 1, 2)()  # what is loaded at first use is loaded
    rounds = []
    for _ in range(3):
        started = time.process_time()
        answers = [(name, question(), expected) for name, question, expected in listed]
        rounds.append(time.process_time() - started)
    wrong = [(name, verdict) for name, verdict, expected in answers if verdict.outcome.name != expected]
    print(
        f"the paper's {len(listed)} problems: {statistics.median(rounds):.2f} s together (goal: 2), {len(wrong)} wrong"
    )
    for name, verdict in wrong:
        print("  WRONG", name, verdict)
    slowest = sorted(((taken(question)[1], name) for name, question, _ in listed), reverse=True)[:5]
    print("  slowest: " + "; ".join(f"{name} {ms:.0f} ms" for ms, name in slowest))
    print()


def section_large() -> None:
    print(f"{'larger ones':62} {'ms':>8} {'goal':>6}  verdict")
    rows: list[tuple[str, Callable[[], Verdict], int]] = [
        (
            "window sum of 3 against its chain, N 256",
            asked(paper.window_sum(3), tight.same_steps(paper.chain_sum(3)), 3, 256),
            3000,
        ),
        (
            "window sum of 5 against its chain, N 8",
            asked(paper.window_sum(5), tight.same_steps(paper.chain_sum(5)), 5, 8),
            2000,
        ),
        (
            "product of 1 and 3rd against itself, N 16, Q 6",
            asked(paper.product_of_1_and_kth(), tight.same_steps(paper.product_of_1_and_kth()), 6, 16),
            6000,
        ),
        (
            "1 and 3rd, no full queues, N 16, Q 64",
            asked(paper.product_of_1_and_kth(), tight.no_full_queues(), 64, 16),
            2000,
        ),
    ]
    for name, question, goal in rows:
        verdict, ms = taken(question, 3)
        length = "" if not verdict.fails else f" in {len(_pushes(verdict))} pushes"
        print(f"{name:62} {ms:8.1f} {goal:6}  {verdict.outcome.name}{length}, by {verdict.method}")
    print()


def _pushes(verdict: Verdict) -> list[str]:
    """The pushes of a counterexample, from the lines that show it again."""
    code = "" if verdict.counterexample is None else verdict.counterexample.replay
    begin = code.index("([") + 2
    return code[begin : code.index("]", begin)].split(", ")


def section_engines() -> None:
    """The same questions to one engine at a time; a dash is an engine that does not decide it, in 20 seconds."""
    engines = ["symbols", "search", *(["sat"] if sat_is_there() else [])]
    print(f"{'one engine at a time, ms':62} " + " ".join(f"{engine:>9}" for engine in engines))
    rows = [
        (f"window sum of 3 against its chain, N {n}", paper.window_sum(3), paper.chain_sum(3), 3, n)
        for n in (4, 16, 64, 256)
    ]
    rows += [
        ("window sum of 5 against its chain, N 8", paper.window_sum(5), paper.chain_sum(5), 5, 8),
        ("window sum of 6 against its chain, N 4", paper.window_sum(6), paper.chain_sum(6), 6, 4),
    ]
    for n in (4, 8, 16):
        both = paper.product_of_1_and_kth(), paper.product_of_1_and_kth()
        rows.append((f"product of 1 and 3rd against itself, N {n}, Q 6", *both, 6, n))
    for n in (4, 16):  # a difference that shows late: the tenth sum is wrong
        rows.append((f"running total against one that forgets, N {n}", *forgetting(), 3, n))
    for name, left, right, queue, n in rows:
        cells = []
        for engine in engines:
            question = asked(left, tight.same_steps(right), queue, n, engine=engine, seconds=20)
            verdict, ms = taken(question)
            cells.append(f"{'-' if verdict.undecided else f'{ms:.1f}':>9}")
        print(f"{name:62} " + " ".join(cells))
    print()


def forgetting() -> tuple[Pipeline, Pipeline]:
    """A sum of the last four events, and one that leaves out the oldest."""
    return paper.window_sum(4), Pipeline.wired(
        "in -> t -> w -> out", t=tight.pipes.Trim(1), w=tight.pipes.Window(paper.TOTAL, 3), name="forgetting"
    )


def growth() -> dict[str, list[tuple[int, float]]]:
    """Milliseconds by Q, by N and by the width of a window."""
    found: dict[str, list[tuple[int, float]]] = {"queue size Q": [], "numbers N": [], "window width": []}
    for queue in (2, 4, 8, 16, 32, 64, 128):
        _, ms = taken(asked(paper.product_of_1_and_kth(), tight.no_full_queues(), queue, 4), 3)
        found["queue size Q"].append((queue, ms))
    for numbers in (2, 4, 8, 16, 32, 64):
        question = asked(paper.window_sum(3), tight.same_steps(paper.chain_sum(3)), 3, numbers, engine="search")
        found["numbers N"].append((numbers, taken(question)[1]))
    for width in (2, 3, 4, 6, 8, 12, 16):
        question = asked(paper.window_sum(width), tight.same_steps(paper.chain_sum(width)), width, 4)
        found["window width"].append((width, taken(question)[1]))
    return found


LABELS = {
    "queue size Q": "no full queues, 1 and 3rd, N 4",
    "numbers N": "window sum of 3 against its chain, search alone",
    "window width": "window sums against chains, values as symbols",
}


def section_growth(chart: Path | None) -> None:
    found = growth()
    for name, points in found.items():
        print(f"{name:14} ({LABELS[name]})  " + "  ".join(f"{at}: {ms:.1f} ms" for at, ms in points))
    print()
    if chart is not None:
        chart.write_text(drawn(found))
        print(f"chart in {chart}")


def drawn(found: dict[str, list[tuple[int, float]]]) -> str:
    """The growth as SVG, both axes by factors of two and ten."""
    from math import log10

    width, height, left, bottom = 250, 190, 52, 40
    parts = []
    for place, (name, points) in enumerate(found.items()):
        x0 = left + place * (width + 60)
        most_x, least_x = max(at for at, _ in points), min(at for at, _ in points)

        def x(at: float, x0: int = x0, low: float = least_x, high: float = most_x) -> float:
            return x0 + width * (log10(at) - log10(low)) / (log10(high) - log10(low))

        def y(ms: float) -> float:
            return 20 + height * (1 - (log10(max(ms, 1)) - 0) / 5)

        for power in range(6):
            level = y(10**power)
            parts.append(f'<path d="M{x0} {level:.1f}h{width}" stroke="currentColor" stroke-opacity="0.2"/>')
            label = f"{10**power:,} ms" if power < 3 else f"{10 ** (power - 3):,} s"
            parts.append(f'<text x="{x0 - 4}" y="{level + 4:.1f}" text-anchor="end">{label}</text>')
        path = " ".join(
            f"{'M' if not number else 'L'}{x(at):.1f} {y(ms):.1f}" for number, (at, ms) in enumerate(points)
        )
        parts.append(f'<path d="{path}" fill="none" stroke="#2f6fdb" stroke-width="2"/>')
        for at, ms in points:
            parts.append(f'<circle cx="{x(at):.1f}" cy="{y(ms):.1f}" r="3" fill="#2f6fdb"/>')
            parts.append(f'<text x="{x(at):.1f}" y="{20 + height + 16}" text-anchor="middle">{at}</text>')
        parts.append(f'<text x="{x0}" y="{20 + height + 34}">{name}</text>')
        parts.append(f'<text x="{x0}" y="12" font-size="10">{LABELS[name]}</text>')
    total = left + 3 * (width + 60)
    style = "<style>svg { color: #1f2328; } @media (prefers-color-scheme: dark) { svg { color: #e6edf3; } }</style>"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {20 + height + bottom}" width="{total}" '
        f'role="img" aria-label="How long explore takes, by queue size, numbers and window width" '
        f'font-family="monospace" font-size="11">{style}<g fill="currentColor">{"".join(parts)}</g></svg>\n'
    )


def main() -> None:
    arguments = sys.argv[1:]
    chart = None
    if "--chart" in arguments:
        place = arguments.index("--chart")
        chart = Path(arguments[place + 1])
        del arguments[place : place + 2]
    wanted = arguments or ["paper", "large", "engines", "growth"]
    for section in wanted:
        if section == "growth":
            section_growth(chart)
        else:
            {"paper": section_paper, "large": section_large, "engines": section_engines}[section]()


if __name__ == "__main__":
    main()
