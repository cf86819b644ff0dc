"""The examples of docs/findings that run on Spark print what their pages show.

What the lint reads off a plan is asked in every run; what runs jobs many times, only by `make slow`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

import finding_pages as pages

from streamtight.method.typecheck.findings import RULES

ON_SPARK = [name for name in pages.names() if pages.needs_spark(name)]
QUICK = [name for name in ON_SPARK if name in RULES and name not in ("ORDER_LOST", "REDUCE_ORDER")]


def shows_what_is_printed(name: str, folder: Path) -> None:
    told = pages.prints(name, folder)

    if os.environ.get("UPDATE_GOLDEN"):
        pages.write(name, told)
    assert told == pages.printed(name)


@pytest.mark.parametrize("name", QUICK)
def test_the_lint_finds_what_the_page_shows(name: str, spark, tmp_path: Path) -> None:
    shows_what_is_printed(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ON_SPARK if name not in QUICK])
def test_a_run_finds_what_the_page_shows(name: str, spark, tmp_path: Path) -> None:
    shows_what_is_printed(name, tmp_path)
