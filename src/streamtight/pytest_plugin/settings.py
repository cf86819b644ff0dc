"""What is said to the plugin: by the command line, the environment and the configuration file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from streamtight.errors import StreamtightError

KEEP = ".streamtight"
"""Where counterexamples are kept, if nobody says: below the folder of the configuration file."""


class Option(NamedTuple):
    """An option, with a key of the configuration file and a variable of the environment."""

    name: str
    metavar: str
    help: str

    @property
    def flag(self) -> str:
        return f"--streamtight-{self.name}"

    @property
    def variable(self) -> str:
        return f"STREAMTIGHT_{self.name.upper()}"

    @property
    def key(self) -> str:
        return f"streamtight_{self.name}"


OPTIONS = (
    Option("report", "DIR", "write every verdict that a test required to DIR/streamtight.html and .json"),
    Option("seed", "N", "the seed of what is asked through tight_session"),
    Option("runs", "N", "on how many inputs what is asked through tight_session is tried"),
    Option("limit", "SECONDS", "how long a query, or a proof, may take of what is asked through tight_session"),
    Option("keep", "DIR", f"where failing inputs are kept and tried first; '' for nowhere (default: {KEEP})"),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line says; else the environment; else the configuration file."""

    report: Path | None = None
    keep: Path | None = None
    only_kept: bool = False
    seed: int | None = None
    runs: int | None = None
    limit: float | None = None

    @classmethod
    def of(cls, config: pytest.Config) -> Settings:
        """The settings of a session; raises pytest.UsageError if one of them cannot be."""
        given = {option.name: _given(config, option) for option in OPTIONS}
        keep = given["keep"]
        return cls(
            report=_folder(given["report"]),
            keep=config.rootpath / KEEP if keep is None else _folder(keep),
            only_kept=_only_kept(config),
            seed=_number(given["seed"], int, 0),
            runs=_number(given["runs"], int, 1),
            limit=_number(given["limit"], float, 0),
        )


class _Given(NamedTuple):
    """What was said, where, and from which folder paths are meant."""

    where: str
    text: str
    base: Path


def _given(config: pytest.Config, option: Option) -> _Given | None:
    here = config.invocation_params.dir
    if (text := config.getoption(option.key)) is not None:
        return _Given(option.flag, text, here)
    if (text := os.environ.get(option.variable)) is not None and (text or option.metavar == "DIR"):
        return _Given(option.variable, text, here)
    text = config.getini(option.key)
    return None if text is None else _Given(option.key, str(text), config.rootpath)


def _folder(given: _Given | None) -> Path | None:
    if given is None or not given.text.strip():
        return None
    return Path(os.path.abspath(given.base / Path(given.text.strip()).expanduser()))


def _number(given: _Given | None, kind: type[Any], least: int) -> Any:
    if given is None or not given.text.strip():
        return None
    needed = f"a {'whole ' if kind is int else ''}number {f'from {least}' if kind is int else 'above 0'}"
    try:
        number = kind(given.text)
        if number < least or (kind is float and not 0 < number < float("inf")):
            raise ValueError
    except ValueError:
        raise _usage(given.where, needed, repr(given.text), f"{given.where}={20 if least else 7}") from None
    return number


def _only_kept(config: pytest.Config) -> bool:
    if config.getoption("streamtight_only_kept"):
        return True
    text = os.environ.get("STREAMTIGHT_ONLY_KEPT", "").strip().lower()
    if text not in ("", "0", "1", "true", "false", "yes", "no"):
        raise _usage("STREAMTIGHT_ONLY_KEPT", "1 or 0", repr(text), "STREAMTIGHT_ONLY_KEPT=1")
    return text in ("1", "true", "yes")


def _usage(where: str, needed: str, came: str, hint: str) -> pytest.UsageError:
    return pytest.UsageError(str(StreamtightError(where, needed=needed, came=came, hint=hint)))


def require_writable(folder: Path) -> None:
    """Raise if the report cannot be written there: now, and not after an hour of tests."""
    attempt = folder / f".streamtight-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        attempt.write_text("")
        attempt.unlink()
    except OSError as error:
        came = f"{type(error).__name__}: {error}"
        raise _usage("--streamtight-report", "a folder that can be written", came, "another folder") from None
