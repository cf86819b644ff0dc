"""What tests, docs and the README share: which of them need a JVM, and the one session for those."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parent

# What tests start as programs of their own is no place for examples in docstrings.
collect_ignore_glob = ["tests/spark/*_script.py", "tests/spark/verdict_jobs.py"]

# Every Python block of every page runs, page by page from the top.
PAGES = ["README.md", "docs/*.md", "docs/howto/*.md"]
pytest_collect_file = Sybil(parsers=[PythonCodeBlockParser()], patterns=PAGES).pytest()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "browser: opens pages in Chromium; skipped where `make chromium` was not run")
    config.addinivalue_line("markers", "slow: takes long; run by `make slow`, and not by `make test`")
    config.addinivalue_line("markers", "spark: starts a JVM (every test below tests/spark, and docs pages on Spark)")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if " at 0x" in item.nodeid:  # two workers would not agree on what the tests are called
            raise pytest.UsageError(f"{item.nodeid}: the id of a test holds an address; give parametrize its ids")
        path = item.path.relative_to(ROOT)
        if path.is_relative_to("tests/spark") or (path.suffix == ".md" and needs_spark(item.path)):
            item.add_marker("spark")


def needs_spark(page: Path) -> bool:
    """A page needs a JVM if its code runs jobs."""
    return "pyspark" in page.read_text()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from streamtight.spark.session import session

    started = session()
    yield started
    started.stop()
