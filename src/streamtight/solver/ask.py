"""One question to Z3, with a time limit: proved, refuted with a model, or not known and why.

>>> x = z3.Int("x")
>>> prove(x * x >= 0, seconds=5)
Answer(proved)
>>> prove(x * 2 > x, seconds=5).refuted
True
>>> prove(x * 2 > x, given=[x > 0], seconds=5).proved
True

"Not known" never turns into one of the other two: an `Answer` has no truth value, so that nobody can ask for one by
accident. Everything is built in Z3's default context, which threads must not share.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

import z3

_STEPS_PER_SECOND = 100_000_000
"""Z3 takes less than a third of these steps a second: they end a question only if its clock does not."""


MOST_MEGABYTES = 2000
"""A question that needs more memory is not known."""


class Budget:
    """Seconds that several questions share.

    >>> budget = Budget(10)
    >>> 9 < budget.left <= 10
    True
    """

    __slots__ = ("_ends", "seconds")

    def __init__(self, seconds: float) -> None:
        if math.isnan(seconds):
            raise ValueError("Budget(nan): needed a number of seconds")
        self.seconds = seconds
        self._ends = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds until the end; never negative."""
        return max(0.0, self._ends - time.monotonic())

    def part(self, seconds: float) -> Budget:
        """So many of the seconds that are left."""
        return Budget(min(seconds, self.left))


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """Proved (no model, no reason), refuted (`model` makes the claim false) or not known (`reason`)."""

    model: z3.ModelRef | None = None
    reason: str | None = None

    @property
    def proved(self) -> bool:
        return self.model is None and self.reason is None

    @property
    def refuted(self) -> bool:
        return self.model is not None

    @property
    def unknown(self) -> bool:
        return self.reason is not None

    def __bool__(self) -> NoReturn:
        raise TypeError("an Answer is one of three: ask for .proved, .refuted or .unknown")

    def __repr__(self) -> str:
        if self.proved:
            return "Answer(proved)"
        return f"Answer(refuted by {self.model})" if self.refuted else f"Answer(unknown: {self.reason})"


def prove(claim: z3.BoolRef, *, given: Iterable[z3.BoolRef] = (), seconds: float, by_matching: bool = False) -> Answer:
    """Is the claim true wherever the given formulas are? If not, a model in which it is false.

    `by_matching` is for formulas with many quantifiers: they are only used where terms match, so that it soon ends.
    """
    solver = z3.Solver()
    if by_matching:
        solver = z3.SimpleSolver()
        solver.set(mbqi=False)
    denied = [*given, z3.Not(claim)]
    solver.add(*denied)
    status, reason = check(solver, seconds)
    if status == z3.unsat:
        return Answer()
    if status != z3.sat:
        return Answer(reason=reason)
    model = solver.model()
    # A model is believed only if it can be calculated through; under quantifiers it often cannot.
    if all(z3.is_true(model.eval(formula, model_completion=True)) for formula in denied):
        return Answer(model=model)
    return Answer(reason="the solver's model cannot be checked")


def feasible(constraints: Iterable[z3.BoolRef], seconds: float) -> bool | None:
    """Can all of them be true at once? None if that is not known."""
    solver = z3.Solver()
    solver.add(*constraints)
    status, _ = check(solver, seconds)
    return None if status == z3.unknown else bool(status == z3.sat)


def check(solver: z3.Solver, seconds: float) -> tuple[z3.CheckSatResult, str]:
    """`solver.check()` in so many seconds, and why it is unknown if it is."""
    if seconds <= 0:
        return z3.unknown, "no time left"
    steps = int(min(max(seconds, 0.01) * _STEPS_PER_SECOND, 2**32 - 1))
    solver.set(timeout=max(1, int(min(seconds, 1_000_000) * 1000)), rlimit=steps, max_memory=MOST_MEGABYTES)
    try:
        status = solver.check()
    except z3.Z3Exception as error:
        return z3.unknown, str(error)
    if status != z3.unknown:
        return status, ""
    reason = solver.reason_unknown()
    if "keyboard" in reason:  # Z3 takes the signal for itself
        raise KeyboardInterrupt
    return status, reason or "the solver gives no reason"
