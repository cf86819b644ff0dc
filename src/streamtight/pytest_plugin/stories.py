"""What is shown of a failed test instead of a traceback."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import pytest

if TYPE_CHECKING:
    from streamtight.source.kept import Kept
    from streamtight.verdict import Verdict

MOST_LINES, LONGEST_LINE = 300, 2000
"""So much of a story is shown; all of it is in the report, and with -vv."""
LONGEST_TOKEN = 1000
PLUGIN = Path(__file__).parent
OURS = PLUGIN.parent


class _Place(NamedTuple):
    """A line of the user's own code."""

    path: str
    line: int
    name: str
    code: str


def _is_ours(path: Path | str) -> bool:
    return Path(path).is_relative_to(OURS)


def _is_sparks(path: Path | str) -> bool:
    return not {"pyspark", "py4j"}.isdisjoint(Path(path).parts)


def is_from_called_code(excinfo: pytest.ExceptionInfo[BaseException]) -> bool:
    """Was it raised by a job that we called? Then our lines are of no use to anybody; else they may show a bug."""
    # The hooks of the plugin are on the way to every test.
    paths = [
        Path(e.path) for e in excinfo.traceback if not _is_sparks(e.path) and not Path(e.path).is_relative_to(PLUGIN)
    ]
    return bool(paths) and any(map(_is_ours, paths)) and not _is_ours(paths[-1])


def _places(item: pytest.Item, excinfo: pytest.ExceptionInfo[BaseException]) -> list[_Place]:
    """The user's own lines, from the test to where it failed; the test itself if there is none."""
    here = item.config.invocation_params.dir
    entries = excinfo.traceback.cut(path=item.path)
    own = [
        _Place(_relative(Path(entry.path), here), entry.lineno + 1, entry.name, str(entry.statement).strip())
        for entry in entries
        if not _is_ours(entry.path) and not _is_sparks(entry.path) and not entry.ishidden(excinfo)
    ]
    if own and any(Path(entry.path) == item.path for entry in entries):
        return [own[0], *own[-3:]] if len(own) > 4 else own
    path, line, name = item.location
    return [_Place(_relative(item.config.rootpath / path, here), (line or 0) + 1, name, "")]


def _relative(path: Path, here: Path) -> str:
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _told_error(error: BaseException) -> list[str]:
    """A wrong question, part by part; then what it says besides, and what caused it."""
    where = getattr(error, "where", None)
    told = [f"{type(error).__name__}: {where}"]
    if where is None:
        told = [f"{type(error).__name__}: {error}"]
    else:
        told += [f"  needed  {error.needed}", f"  came    {error.came}", f"  try     {error.hint}"]  # type: ignore[attr-defined]
        parts = f"{where}: needed {error.needed}; came {error.came}. Try: {error.hint}"  # type: ignore[attr-defined]
        told.append(str(error).removeprefix(parts).strip())
    told += getattr(error, "__notes__", [])
    if (cause := error.__cause__) is not None:
        first = next(iter(str(cause).strip().splitlines()), "")
        told += [] if first and first in str(error) else [f"because of {type(cause).__name__}: {first}"]
    return [line for part in told for line in part.splitlines()]


def _cut(lines: list[tuple[str, str]]) -> list[tuple[str, str]]:
    left_out = len(lines) - MOST_LINES
    if left_out > 1:
        last = MOST_LINES // 5
        gap = [("yellow", f"... {left_out:,} more lines: -vv shows them, and so does --streamtight-report=DIR ...")]
        lines = lines[: MOST_LINES - last] + gap + lines[-last:]
    return [(style, printable(line)) for style, line in lines]


def printable(line: str) -> str:
    """The line, not too long, without what a terminal would take for a command or could not encode."""
    if len(line) > LONGEST_LINE:
        line = f"{line[:LONGEST_LINE]}... and {len(line) - LONGEST_LINE:,} more characters"
    line = "".join(c if c.isprintable() or c == "\t" else repr(c)[1:-1] for c in line)
    return line.encode("utf-8", "backslashreplace").decode()


def again(kept: Sequence[Kept]) -> list[str]:
    """How to see it fail again: by its name where it was kept, else by a token if that is short enough to be copied."""
    names = [one.token if one.path is None else one.id for one in kept]
    return [f"again: streamtight replay {name}" for name in names if len(name) <= LONGEST_TOKEN]


class Story:
    """What is shown of a failed test instead of a traceback."""

    STYLES: ClassVar[dict[str, dict[str, bool]]] = {
        "red": {"red": True, "bold": True},
        "yellow": {"yellow": True, "bold": True},
        "cyan": {"cyan": True},
        "place": {"bold": True},
    }

    def __init__(self, lines: Sequence[tuple[str, str]], path: str, line: int, message: str) -> None:
        self.lines = [(style, text) for style, text in lines]
        self.reprcrash = _Crash(path, line, message)

    def as_data(self) -> list[Any]:
        crash = self.reprcrash
        return [self.lines, crash.path, crash.lineno, crash.message]

    def toterminal(self, tw: Any) -> None:
        """Write it, in colours if they are wanted: pytest knows."""
        for style, text in self.lines:
            tw.line(text, **self.STYLES.get(style, {}))

    def __str__(self) -> str:
        return "\n".join(text for _, text in self.lines)


class _Crash(NamedTuple):
    """What pytest's own short summary is made from."""

    path: str
    lineno: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.lineno}: {self.message}"


def story_of(
    item: pytest.Item, excinfo: pytest.ExceptionInfo[BaseException], refused: list[Verdict], kept: list[Kept]
) -> Story:
    """What is told of a test that failed: the verdicts, or the error, and the user's own lines."""
    lines: list[tuple[str, str]] = []
    for number, verdict in enumerate(refused):
        told = verdict.story(code=not kept).splitlines() or [""]
        lines += [("", "")] if number else []
        lines += [("red" if verdict.fails else "yellow", told[0]), *(("", line) for line in told[1:])]
    if not refused:
        first, *more = _told_error(excinfo.value)
        lines += [("red", first), *(("", line) for line in more)]
    lines = _cut(lines)
    places = _places(item, excinfo)
    for place in places:
        lines += [("", ""), ("place", f"{place.path}:{place.line}: in {place.name}")]
        lines += [("", f"    {line}") for line in place.code.splitlines()]
    ways = again(kept)
    lines += [("", "")] if ways else []
    lines += [("cyan", line) for line in ways]
    first = lines[0][1] if refused else printable(next(iter(str(excinfo.value).splitlines()), ""))
    message = first if refused else f"{type(excinfo.value).__name__}: {first}"
    return Story(lines, places[-1].path, places[-1].line, message)
