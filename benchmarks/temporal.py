"""How fast is a formula judged? Letters a second of CPU time, in one process, beside the paper's direct expansion.

python benchmarks/temporal.py

The letters are random, and such that no formula is decided before they end. "open" is how many claims the judge has
after the last letter: its memory. The expansion is the next form of Definition 2, simplified letter by letter as in
Definition 3, of the same formula with a timeout of 10, on 100 letters. With a timeout of 1,000 it would have 100,000
nodes, and with an until 50,000,000, all of which every letter rewrites; so larger timeouts are left out.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from streamtight.properties.temporal import (
    Formula,
    always,
    eventually,
    forall,
    next_,
    now,
    once,
    release,
    since,
    until,
)

LETTERS = 30_000
TIMEOUTS = (10, 1_000, 10_000)
EXPANDED = (10, 100)
"""The timeout and the number of letters for the direct expansion."""
ROUNDS = 3


class Letter(NamedTuple):
    a: bool
    b: bool
    c: bool
    d: bool
    orders: Sequence[int] = ()
    shipped: Sequence[int] = ()


def a(letter: Letter) -> bool:
    return letter[0]


def b(letter: Letter) -> bool:
    return letter[1]


def c(letter: Letter) -> bool:
    return letter[2]


def d(letter: Letter) -> bool:
    return letter[3]


def letters(rng: random.Random) -> list[Letter]:
    """b comes at least every eighth time, and d always; every order is shipped nine letters later."""
    return [
        Letter(rng.random() < 0.3, rng.random() < 0.3 or n % 8 == 0, rng.random() < 0.3, True, (n,), (n - 9,))
        for n in range(LETTERS)
    ]


def shipped(order: int, within: int) -> Formula:
    return eventually(lambda letter: order in letter.shipped, within=within)


FORMULAS: dict[str, Callable[[int], Formula]] = {
    "always": lambda t: now(d),
    "size 10": lambda t: (now(a) >> eventually(b, within=t)) & (now(c) >> always(d, during=t)),
    "size 10, until and release": lambda t: (now(a) >> until(d, b, within=t)) & (now(c) >> release(b, d, within=t)),
    "nested three deep": lambda t: now(a) >> eventually(now(b) & always(d, during=t), within=t),
    "nested four deep": lambda t: (
        now(a) >> eventually(now(b) & always(now(c) >> eventually(b, within=t), during=t), within=t)
    ),
    "either of two directions": lambda t: now(a) >> (eventually(~now(d), within=t) | always(d, during=t)),
    "next, so many letters later": lambda t: now(a) >> next_(d, t),
    "forall, 10 open records": lambda t: forall(
        lambda letter: letter.orders, lambda order: shipped(order, t), name="orders"
    ),
    "past": lambda t: (now(a) >> once(b, within=t)) & (now(c) >> since(d, b, within=t)),
}


def judged(formula: Formula, word: Sequence[Letter]) -> tuple[float, int]:
    """Letters a second, and the open parts after the last."""
    taken = []
    for _ in range(ROUNDS):
        judge = formula.judge()
        step = judge.step
        gc.collect()
        gc.freeze()  # the letters are not what is measured
        started = time.process_time()
        for letter in word:
            step(letter)
        taken.append(time.process_time() - started)
        gc.unfreeze()
        if judge.value is not None:
            raise SystemExit(f"{formula!r} was decided after {judge.letters} letters: the benchmark measures nothing")
    return len(word) / statistics.median(taken), judge.open_parts


def expanded(formula: Formula, word: Sequence[Letter]) -> float:
    """Letters a second of the next form, without the time to make it."""
    rest: Any = formula.next_form()
    started = time.process_time()
    for letter in word:
        rest = rest.step(letter)
    return len(word) / (time.process_time() - started)


def main() -> None:
    word = letters(random.Random(1))
    heading = "".join(f"{f'timeouts {t:,}':>22}{'open':>8}" for t in TIMEOUTS)
    timeout, during = EXPANDED
    print(f"always(..., during={LETTERS + 1:,}), letters/s{heading}{f'expanded, {timeout}':>18}")
    for name, body in FORMULAS.items():
        line = f"  {name:38}"
        for t in TIMEOUTS:
            rate, parts = judged(always(body(t), during=LETTERS + 1), word)
            line += f"{rate:22,.0f}{parts:8,}"
        if name.startswith(("forall", "past")):
            print(f"{line}{'-':>18}  a next form has no quantifier and no past")
        else:
            print(f"{line}{expanded(always(body(timeout), during=during), word[: during - 1]):18,.0f}")


if __name__ == "__main__":
    main()
