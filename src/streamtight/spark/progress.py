"""How far a long search is, for a person who waits at a terminal; in pipes and files, nothing of it."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

Progress = Callable[[int, int], None]

WIDTH = 24
"""Of the bar, in letters."""
OFTEN = 0.1
"""Seconds between two looks at the same line."""
_CLEAR = "\r\033[K"
_QUIET = False


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Nobody is told how far anything is."""
    global _QUIET
    before, _QUIET = _QUIET, True
    try:
        yield
    finally:
        _QUIET = before


def is_watched() -> bool:
    """Does a person look at the terminal?"""
    return not _QUIET and sys.stderr.isatty()


def at_terminal(what: str, counted: str = "inputs") -> Progress | None:
    """A line that says how many are done, at which rate, and how long the rest takes; None where nobody watches."""
    if not is_watched():
        return None
    started = time.monotonic()
    last = 0.0

    def show(done: int, wanted: int) -> None:
        nonlocal last
        now = time.monotonic()
        if done >= wanted:  # the verdict says it too
            _write(_CLEAR)
        elif now - last >= OFTEN:
            last = now
            _write(f"{_CLEAR}{what} {bar(done, wanted, now - started, counted)}")

    return show


def states_reached(what: str) -> Callable[[int], None] | None:
    """The same where nobody knows how many there are."""
    if not is_watched():
        return None
    started = time.monotonic()

    def show(states: int) -> None:
        if states > 10_000:
            rate = states / max(time.monotonic() - started, 1e-9)
            _write(
                f"{_CLEAR}{what} {states:,} states, {rate:,.0f} a second\r"
            )  # what is printed next is written over it

    return show


def saying(text: str) -> None:
    """What is being done, where no number tells how far that is."""
    if is_watched():
        _write(f"{_CLEAR}{text}\r")  # what is printed next is written over it


def bar(done: int, wanted: int, seconds: float, counted: str) -> str:
    """A bar, the counts, the rate, and the time that is left.

    >>> bar(10, 40, 5.0, "inputs")
    '━━━━━━────────────────── 10 of 40 inputs, 2.0 a second, 15 s left'
    """
    full = WIDTH * done // max(wanted, 1)
    told = f"{'━' * full}{'─' * (WIDTH - full)} {done} of {wanted} {counted}"
    if not done or seconds <= 0:
        return told
    rate = done / seconds
    left = (wanted - done) / rate
    time_left = f"{left:.0f} s" if left < 100 else f"{left / 60:.0f} min" if left < 6000 else f"{left / 3600:.0f} h"
    return f"{told}, {rate:.1f} a second, {time_left} left"


def clear() -> None:
    """Take the line away, if one may be there: after Ctrl-C, and before an error."""
    if is_watched():
        _write(_CLEAR)


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
