"""How far a long search is, for a person who waits at a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable

Progress = Callable[[int, int], None]


def at_terminal(what: str) -> Progress | None:
    """A line on the terminal that says how many inputs are done; None where nobody watches."""
    if not sys.stderr.isatty():
        return None

    def show(done: int, wanted: int) -> None:
        end = "\r" if done < wanted else "\r\033[K"  # the last one goes, as the verdict says it too
        sys.stderr.write(f"\r{what}: {done} of {wanted}{end}")
        sys.stderr.flush()

    return show
