"""The pytest plugin: what a test requires is told by its story, kept if it fails, tried first the next time, reported.

Watching and telling know each other only by what stands on test reports, so that they may be in different processes.
Nothing but pytest and the errors is loaded when pytest starts; the rest is when the first test runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamtight.pytest_plugin.asking import TightSession
from streamtight.pytest_plugin.settings import OPTIONS, Settings, require_writable
from streamtight.pytest_plugin.telling import Telling
from streamtight.pytest_plugin.watching import RECORD, Watching


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, each with a key of the configuration file and a variable of the environment."""
    group = parser.getgroup("streamtight", "streamtight (are PySpark jobs right?)")
    for option in OPTIONS:
        known = f"{option.help}; also {option.key} in the configuration file, and {option.variable}"
        group.addoption(option.flag, dest=option.key, metavar=option.metavar, default=None, help=known)
        parser.addini(option.key, f"{option.help} (as {option.flag})", type="string", default=None)
    group.addoption(
        "--streamtight-only-kept",
        dest="streamtight_only_kept",
        action="store_true",
        default=False,
        help="run only tests of which a failing input is kept, and try nothing but that; also STREAMTIGHT_ONLY_KEPT",
    )


_SETTINGS = pytest.StashKey[Settings]()


def pytest_configure(config: pytest.Config) -> None:
    """Read the settings; watch where tests run, and tell where the session is led."""
    settings = Settings.of(config)
    led_from: dict[str, Any] | None = getattr(config, "workerinput", None)
    if led_from is not None:  # a worker of pytest-xdist, whose folder may be another one
        keep = led_from.get("streamtight_keep")
        settings = Settings(None, keep and Path(keep), *_rest(settings))
    elif settings.report is not None and not (config.option.help or config.option.collectonly):
        require_writable(settings.report)
    config.stash[_SETTINGS] = settings
    config.pluginmanager.register(Watching(config, settings), "streamtight-watching")
    if led_from is None:
        config.pluginmanager.register(Telling(config, settings), "streamtight-telling")


def _rest(settings: Settings) -> tuple[Any, ...]:
    return (settings.only_kept, settings.seed, settings.runs, settings.limit)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The Spark session of all tests; write a fixture of this name into conftest.py to have your own.

    A session that already runs is used, and left running. A new one is on this machine, set up for small runs, with
    folders of its own, so that workers of pytest-xdist are not in each other's way; it is stopped at the end.
    """
    from streamtight.spark.session import running_session, session

    running = running_session()
    if running is not None:
        yield running
        return
    folder = tmp_path_factory.mktemp("spark")
    started = session(
        spark__sql__warehouse__dir=str(folder / "warehouse"),
        spark__checkpoint__dir=str(folder / "checkpoints"),
    )
    yield started
    started.stop()


@pytest.fixture
def tight_session(request: pytest.FixtureRequest) -> TightSession:
    """The questions of streamtight, asked with the seed, the runs and the limit of the command line."""
    session = TightSession(request, request.config.stash[_SETTINGS])
    if (record := request.node.stash.get(RECORD, None)) is not None:
        record.asked = session.verdicts
    return session
