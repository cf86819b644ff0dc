"""Limits: pipelines with queues of so many places and whole numbers of so many values, as they are explored.

>>> modulo(4).fit(5), whole(0, 3).fit(2)
(1, 2)
>>> whole(0, 3).fit(5)
Traceback (most recent call last):
    ...
streamtight.program.limits.Stopped: 5 is not in 0..3
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from streamtight.errors import PipelineError
from streamtight.program.processor import NOTHING, Function, Rules, Value

Full = Literal["stop", "drop"]
"""What happens if an event comes to a full queue: the run is followed no further, or the event is lost."""


MOST_NUMBERS = 2**62
"""Ranges of Python that are longer have no length."""


class Stopped(Exception):
    """A run cannot be followed further. `kind` is one of QUEUE_OVERFLOW, LEAVES_RANGE, RAISES."""

    def __init__(self, kind: str, where: str, text: str) -> None:
        super().__init__(text)
        self.kind, self.where, self.text = kind, where, text


@dataclass(frozen=True, slots=True)
class Integers:
    """The whole numbers from low to high. What is calculated beyond them comes in again at the other end, if they
    wrap; else the run stops there.
    """

    low: int
    high: int
    wraps: bool

    @property
    def size(self) -> int:
        """How many they are."""
        return self.high - self.low + 1

    def __contains__(self, value: object) -> bool:
        return type(value) is int and self.low <= value <= self.high

    def fit(self, value: int, where: str = "") -> int:
        """The number that stands for this one."""
        if self.low <= value <= self.high:
            return value
        if self.wraps:
            return self.low + (value - self.low) % self.size
        raise Stopped("LEAVES_RANGE", where, f"{value} is not in {self.low}..{self.high}")

    def __str__(self) -> str:
        return f"{self.low}..{self.high}" + (f" modulo {self.size}" if self.wraps else "")


def modulo(n: int) -> Integers:
    """The whole numbers from 0 to n - 1, calculated with modulo n."""
    _require(
        type(n) is int and 1 <= n <= MOST_NUMBERS, f"modulo({n!r})", "how many whole numbers there are", n, "modulo(4)"
    )
    return Integers(0, n - 1, wraps=True)


def whole(low: int, high: int) -> Integers:
    """The whole numbers from low to high, both included. A run that leaves them is followed no further."""
    fine = type(low) is int and type(high) is int and low <= high < low + MOST_NUMBERS
    _require(fine, f"whole({low!r}, {high!r})", "the least and the largest number", (low, high), "whole(0, 9)")
    return Integers(low, high, wraps=False)


@dataclass(frozen=True, slots=True)
class Limits:
    """What is finite: queues (all, or each by its name), and whole numbers. None is without end."""

    queue: int | None = None
    queues: Mapping[str, int] = field(default_factory=dict)
    full: Full = "stop"
    integers: Integers | None = None

    stopping: frozenset[str] = frozenset()
    """Queues at which a run stops in any case."""

    def drops(self, queue: str) -> bool:
        """Whether an event that comes to this queue when it is full is lost."""
        return self.full == "drop" and queue not in self.stopping

    def places(self, queue: str) -> int | None:
        """How many events a queue holds."""
        return self.queues.get(queue, self.queue)

    def code(self) -> str:
        """How it is written, with the names of `tight.pipes`."""
        parts = [f"queue={self.queue}"] if self.queue is not None else []
        parts += [f"queues={dict(self.queues)!r}"] if self.queues else []
        parts += [f"full={self.full!r}"] if self.full != "stop" else []
        if self.integers is not None:
            low, high = self.integers.low, self.integers.high
            is_modulo = self.integers.wraps and low == 0
            parts.append(f"integers=pipes.modulo({high + 1})" if is_modulo else f"integers=pipes.whole({low}, {high})")
        return f"Limits({', '.join(parts)})"


class Limited(Rules):
    """Rules with limits, for one push. `leaks` are the ports before which an event is lost; `seen` tells afterwards
    what each output carried.
    """

    def __init__(self, limits: Limits, *, leaks: frozenset[str] = frozenset(), path: str = "") -> None:
        self.limits, self.leaks, self.path = limits, leaks, path
        self.seen: dict[str, Value] = {}

    def call(self, function: Function, arguments: tuple[Value, ...]) -> Value:
        given = function.call(*arguments)
        if self.limits.integers is None:
            return given
        return tuple(map(self._fit, given)) if isinstance(given, tuple) else self._fit(given)

    def _fit(self, value: Value) -> Value:
        return self.limits.integers.fit(value) if type(value) is int else value  # type: ignore[union-attr]

    def kept(self, queue: str, events: tuple[Value, ...]) -> tuple[Value, ...]:
        places = self.limits.places(self.path + queue)
        if places is None or len(events) <= places:
            return events
        if self.limits.drops(self.path + queue):
            return events[:places]
        raise Stopped("QUEUE_OVERFLOW", self.path + queue, f"an event comes to a queue of {places} that is full")

    def passed(self, target: str, event: Value) -> Value:
        return NOTHING if self.leaks and self.path + target in self.leaks else event

    def saw(self, pipes: Mapping[str, Value]) -> None:
        self.seen.update((self.path + pipe, event) for pipe, event in pipes.items())

    def inside(self, box: str) -> Limited:
        inner = Limited(self.limits, leaks=self.leaks, path=f"{self.path}{box}.")
        inner.seen = self.seen
        return inner


def _require(fine: bool, where: str, needed: str, came: object, hint: str) -> None:
    if not fine:
        raise PipelineError(where, needed=needed, came=repr(came), hint=hint)


def parse_integers(text: str) -> int | Integers:
    """Which whole numbers there are, from the command line: `4`, `modulo(4)`, `whole(0, 9)`.

    >>> parse_integers("4"), parse_integers("modulo(3)") == modulo(3), parse_integers("whole(-2, 9)") == whole(-2, 9)
    (4, True, True)
    """
    found = re.fullmatch(r"\s*(?:(modulo|whole)\s*\()?\s*(-?\d+)\s*(?:,\s*(-?\d+)\s*)?\)?\s*", text)
    name, numbers = (found[1], [int(one) for one in found.groups()[1:] if one]) if found else (None, [])
    match name, numbers:
        case None, [count] if "(" not in text and ")" not in text:
            return count
        case "modulo", [count]:
            return modulo(count)
        case "whole", [low, high]:
            return whole(low, high)
    raise PipelineError(
        f"the whole numbers {text!r}", needed="4, modulo(4) or whole(0, 9)", came=repr(text), hint="modulo(4)"
    )
