"""The pipelines of Bédard and Hallé, "Model Checking of Stream Processing Pipelines" (TIME 2021), as they can be run.

    python examples/pipelines.py
    python examples/pipelines.py --report build/pipelines.html

Figures 2, 4 and 5 and the appendix. Where the paper's text and its published pictures differ, the name says which
reading it is. `k` is the parameter of the appendix.
"""

from __future__ import annotations

import argparse
import itertools
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any

import streamtight as tight
from streamtight import Pipeline, pipes

TOTAL, PRODUCT = pipes.Cumulate(operator.add), pipes.Cumulate(operator.mul)


def figure_2a() -> Pipeline:
    """Output i is the sum of inputs 3i and i; a queue grows for ever."""
    return Pipeline.wired(
        "in -> A; A.0 -> B; A.1 -> C.1; B -> C.0; C -> out",
        A=pipes.Fork(2),
        B=pipes.CountDecimate(3),
        C=pipes.Apply(operator.add),
        name="figure 2a",
    )


def figure_2b(k: int = 3) -> Pipeline:
    """A monitor: is b the number of times that a was true in the k states before?"""
    return Pipeline.wired(
        "a -> i -> w -> q.0; b -> t -> q.1; q -> out",
        takes={"a": bool, "b": int},
        i=pipes.Apply(int, arity=1),
        w=pipes.Window(TOTAL, k),
        t=pipes.Trim(k),
        q=pipes.Apply(operator.eq),
        name="figure 2b",
    )


def passthrough() -> Pipeline:
    """What comes in goes out."""
    return Pipeline.wired("in -> p -> out", p=pipes.Passthrough(), name="passthrough")


def product_of_1_and_kth(k: int = 3) -> Pipeline:
    """Figure 2a with another function, and any k."""
    return Pipeline.wired(
        "in -> f; f.0 -> m.0; f.1 -> d -> m.1; m -> out",
        f=pipes.Fork(2),
        d=pipes.CountDecimate(k),
        m=pipes.Apply(operator.mul),
        name="product of 1 and k-th",
    )


def product_on_window(k: int = 3) -> Pipeline:
    """The product of k successive events: "sum on window" in the paper's text, a product in its pictures."""
    return Pipeline.wired("in -> w -> out", w=pipes.Window(PRODUCT, k), name="product on window")


def window_sum(k: int = 3) -> Pipeline:
    """The sum of k successive events."""
    return Pipeline.wired("in -> w -> out", w=pipes.Window(TOTAL, k), name="window sum")


def ones_on_window(k: int = 3) -> Pipeline:
    """The products of k successive counts."""
    return Pipeline.wired(
        "in -> one -> s -> w -> out", one=pipes.TurnInto(1), s=TOTAL, w=pipes.Window(PRODUCT, k), name="ones on window"
    )


def smaller_than_k(k: int = 3) -> Pipeline:
    """Passes the first k events, and is silent then."""
    return Pipeline.wired(
        "in -> f; f.0 -> flt.0; f.1 -> tk -> ge.0; f.2 -> t1 -> s -> ge.1; ge -> flt.1; flt -> out",
        f=pipes.Fork(3),
        flt=pipes.Filter(),
        tk=pipes.TurnInto(k),
        t1=pipes.TurnInto(1),
        s=TOTAL,
        ge=pipes.Apply(operator.ge),
        name="smaller than k",
    )


def sum_of_doubles() -> Pipeline:
    """The running total of events times two."""
    return Pipeline.wired(
        "in -> f; f.0 -> m.0; f.1 -> two -> m.1; m -> s -> out",
        f=pipes.Fork(2),
        two=pipes.TurnInto(2),
        m=pipes.Apply(operator.mul),
        s=TOTAL,
        name="sum of doubles",
    )


def sum_of_odds() -> Pipeline:
    """Figure 5a as it is drawn: nine boxes, twelve pipes; 2, 6, 12, 20 on every second push."""
    return Pipeline.wired(
        """
        in -> o1 -> s1 -> f
        f.0 -> t -> e -> flt.1
        f.1 -> a.0
        f.2 -> o2 -> a.1
        a -> flt.0
        flt -> s2 -> out
        """,
        o1=pipes.TurnInto(1),
        s1=TOTAL,
        f=pipes.Fork(3),
        t=pipes.Trim(1),
        e=pipes.Apply(pipes.is_even),
        o2=pipes.TurnInto(1),
        a=pipes.Apply(operator.add),
        flt=pipes.Filter(),
        s2=TOTAL,
        name="sum of odds",
    )


def figure_5a(kept: Callable[[int], bool] = pipes.is_even) -> Pipeline:
    """Figure 5a as the text has it: 1, 4, 9 on every second push; with `is_odd`: 2, 6, 12."""
    return Pipeline.wired(
        "in -> o1 -> s1 -> f; f.0 -> t -> e -> flt.1; f.1 -> flt.0; flt -> s2 -> out",
        o1=pipes.TurnInto(1),
        s1=TOTAL,
        f=pipes.Fork(2),
        t=pipes.Trim(1),
        e=pipes.Apply(kept),
        flt=pipes.Filter(),
        s2=TOTAL,
        name="figure 5a",
    )


def figure_5a_with_odd() -> Pipeline:
    """Figure 5a with "odd" in the place of "even"."""
    return figure_5a(pipes.is_odd)


def figure_5b() -> Pipeline:
    """Square numbers, one at every push."""
    return Pipeline.wired(
        "in -> one -> s -> f; f.0 -> m.0; f.1 -> m.1; m -> out",
        one=pipes.TurnInto(1),
        s=TOTAL,
        f=pipes.Fork(2),
        m=pipes.Apply(operator.mul),
        name="figure 5b",
    )


def figure_5c() -> Pipeline:
    """Sums of even numbers: 2, 6, 12, 20."""
    return Pipeline.wired("in -> two -> s1 -> s2 -> out", two=pipes.TurnInto(2), s1=TOTAL, s2=TOTAL, name="figure 5c")


def delay() -> Pipeline:
    """What comes in goes out with the next push."""
    return Pipeline.wired(
        "in -> f; f.0 -> flt.0; f.1 -> t -> tt -> flt.1; flt -> out",
        f=pipes.Fork(2),
        t=pipes.Trim(1),
        tt=pipes.TurnInto(True),
        flt=pipes.Filter(),
        name="delay",
    )


def chain_sum(k: int = 3) -> Pipeline:
    """The sum of k successive events, without a window: each event is added to those one push later."""
    arrows = [f"f.{place} -> t{place} -> a{place}.1" for place in range(1, k)]
    arrows += [f"a{place - 1} -> a{place}.0" for place in range(2, k)]
    boxes = {f"t{place}": pipes.Trim(place) for place in range(1, k)} | {
        f"a{place}": pipes.Apply(operator.add) for place in range(1, k)
    }
    return Pipeline.wired(
        "; ".join(["in -> f; f.0 -> a1.0", *arrows, f"a{k - 1} -> out"]), f=pipes.Fork(k), **boxes, name="chain sum"
    )


SEVEN = {
    "Passthrough": passthrough,
    "Window of 3": product_on_window,
    "Doubles": sum_of_doubles,
    "Odds": sum_of_odds,
    "1 and k-th": product_of_1_and_kth,
    "Ones on window": ones_on_window,
    "Smaller than k": smaller_than_k,
}
"""The pipelines of the paper's tables 7a and 7b."""


# -- what the paper claims of them -----------------------------------------------------------------------------------


def counting_system(k: int = 3, *, most: int | None = None) -> tight.Kripke:
    """A system whose b is the number of times that a was true in the k states before; with `most`, a wrong one."""

    def after(now: Any) -> dict[str, Any]:
        past = (*now.past[1:], now.a)
        return {"a": tight.ANY, "past": past, "b": min(sum(past), k if most is None else most)}

    pasts = list(itertools.product((False, True), repeat=k))
    return tight.Kripke({"a": bool, "past": pasts, "b": range(k + 1)}, {"past": pasts[0], "b": 0}, after)


def claims() -> Iterator[tuple[str, str, tight.Verdict]]:
    """What is asked, the outcome that it should have, and the verdict."""
    byte = tight.modulo(256)
    squares, at_once = figure_5a(), figure_5b()
    yield "2a: no queue is ever full", "FAILS", tight.explore(figure_2a(), tight.no_full_queues())
    yield "2b: a right system passes", "HOLDS", _watching(counting_system())
    yield "2b: a wrong system passes", "FAILS", _watching(counting_system(most=2))
    yield "5a and 5b: same sequence", "HOLDS", tight.explore(squares, tight.same_sequence(at_once), domain=byte)
    yield "5a and 5b: same steps", "FAILS", tight.explore(squares, tight.same_steps(at_once))
    yield (
        "5a with odd and 5c: same sequence",
        "HOLDS",
        tight.explore(figure_5a_with_odd(), tight.same_sequence(figure_5c()), domain=byte),
    )
    yield "window of 3 and chain: same steps", "HOLDS", tight.explore(window_sum(), tight.same_steps(chain_sum()))
    yield "delay and passthrough: same sequence", "HOLDS", tight.explore(delay(), tight.same_sequence(passthrough()))
    yield "delay and passthrough: same steps", "FAILS", tight.explore(delay(), tight.same_steps(passthrough()))
    yield "Smaller than k: can always go on", "UNDECIDED", tight.explore(smaller_than_k(), tight.live())
    for name, pipeline in SEVEN.items():
        if name not in ("1 and k-th", "Smaller than k"):
            yield f"{name}: can always go on", "HOLDS", tight.explore(pipeline(), tight.live(), domain=byte)
            yield (
                f"{name}: speaks within 3 pushes",
                "HOLDS",
                tight.explore(pipeline(), tight.live(within=3), domain=byte),
            )


def _watching(system: tight.Kripke) -> tight.Verdict:
    return tight.explore(tight.watched(system, by=figure_2b()), tight.stays_true())


def main() -> int:
    """What of the paper's claims holds, and how quickly that was found."""
    options = argparse.ArgumentParser(description="What of the paper's claims about its pipelines holds?")
    options.add_argument("--report", help="a .html, .txt or .json file")
    chosen = options.parse_args()

    answers = list(claims())
    for name, _, verdict in answers:
        told = verdict.counterexample.explanation if verdict.counterexample else verdict.scope
        print(f"{verdict.outcome.name:10}{name:38}{1000 * verdict.cost['seconds']:5.0f} ms  {told}")
    if chosen.report:
        print(f"\nReport: {tight.write_report([each for *_, each in answers], chosen.report, title='Pipelines')}")
    return 0 if all(verdict.outcome.name == expected for _, expected, verdict in answers) else 1


if __name__ == "__main__":
    sys.exit(main())
