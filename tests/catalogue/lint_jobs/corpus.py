"""What the order lint must say of small jobs: a comment `finds NAME` on each line where it must find NAME.

Jobs are functions of DataFrames, marked by `@job`. Nothing else in them is for the lint.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

JOBS: list[LintJob] = []


@dataclass(frozen=True)
class LintJob:
    name: str
    function: Callable[..., Any]
    takes: Any
    gives: Any
    mode: str
    unknown: bool
    """Whether something in it cannot be read, so that nothing found is not enough."""

    @property
    def expected(self) -> set[tuple[str, int]]:
        """The findings, each with its line."""
        lines, first = inspect.getsourcelines(self.function)
        marks = [(number, mark) for number, line in enumerate(lines, first) if (mark := _MARK.search(line))]
        return {(name, number) for number, mark in marks for name in re.split(r",\s*", mark[1])}

    def __str__(self) -> str:
        return self.name


_MARK = re.compile(r"# finds ([A-Z_, ]+)")


def job(
    takes: Any, *, gives: Any = None, mode: str = "batch", unknown: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def marked(function: Callable[..., Any]) -> Callable[..., Any]:
        JOBS.append(LintJob(function.__name__, function, takes, gives, mode, unknown))
        return function

    return marked
