"""What every command does around its question: formats, files, kept counterexamples, Ctrl-C, exit codes."""

from __future__ import annotations

import contextlib
import logging
import os
import shlex
import sys
import sysconfig
import traceback
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import typer

from streamtight.errors import ReportError, StreamtightError
from streamtight.redaction import without_secrets
from streamtight.report.sarif import verdicts_sarif
from streamtight.report.write import FORMATS, render, write_text
from streamtight.source.kept import FOLDER, Keeper, Kept, keeping
from streamtight.verdict import Interrupted, Outcome, Verdict

HOLDS, FAILS, UNDECIDED, WRONG_USE = 0, 1, 2, 3
EXITS = {Outcome.HOLDS: HOLDS, Outcome.FAILS: FAILS, Outcome.UNDECIDED: UNDECIDED}
COLOURS = {Outcome.HOLDS: typer.colors.GREEN, Outcome.FAILS: typer.colors.RED, Outcome.UNDECIDED: typer.colors.YELLOW}
OF_HOW = ("format_", "outputs", "quiet", "keep")
"""Parameters that say how an answer is shown, and not what is asked."""
OF_SEARCH = ("seed", "runs", "limit")
"""And those that only say where counterexamples are looked for."""


@dataclass(slots=True)
class Answers:
    """What is known so far, and how it is to be shown."""

    format: str
    """Of what is printed."""
    outputs: list[tuple[Path, str]]
    """The files that are written, each with its format."""
    quiet: bool
    keeper: Keeper | None
    title: str
    out: IO[str] = field(default_factory=lambda: sys.stdout)
    """Where the answer is printed: not where the user's own code prints."""
    place: tuple[str, int] | None = None
    """The file and the line that the verdicts speak of."""
    verdicts: list[Verdict] = field(default_factory=list)
    kept: dict[int, Kept] = field(default_factory=dict)
    """By the places of the verdicts."""
    notes: list[str] = field(default_factory=list)
    """What a person should know beside the verdicts."""
    pictures: dict[int, str] = field(default_factory=dict)
    """For verdicts that have none of their own, by their places."""
    texts: list[str] = field(default_factory=list)
    """What is answered instead of verdicts, by commands whose answer is something else."""
    code: int | None = None
    """The exit code, if the verdicts alone do not say it."""

    @property
    def is_text(self) -> bool:
        """Does a person read what is printed?"""
        return self.format == "text"

    def add(self, verdict: Verdict) -> None:
        """A verdict; its counterexample is kept, and a person at the terminal sees it at once."""
        self.verdicts.append(verdict)
        place = len(self.verdicts) - 1
        if verdict.fails and self.keeper is not None:
            try:
                self.kept[place] = self.keeper.keep(verdict)
            except OSError as error:
                self.note(f"not kept, since {self.keeper.folder} cannot be written: {error}")
        if self.is_text and _REPLAYED.get() is None:
            self._print(self._told(place))

    def say(self, text: str) -> None:
        """An answer that is no verdict."""
        self.texts.append(text)
        if _REPLAYED.get() is None:
            self._print(text)

    def note(self, text: str, *, aside: bool = False) -> None:
        """Something that a person should know; aside if it is not for whoever reads the answer from a pipe."""
        self.notes.append(text)
        if self.quiet or _REPLAYED.get() is not None:
            return
        if aside or not self.is_text:
            typer.echo(text, err=True)
        else:
            self._print(text)

    def end_with(self, code: int) -> None:
        """The command ends with this exit code, whatever the verdicts say."""
        self.code = code

    def data(self) -> list[dict[str, Any]]:
        """The verdicts as data, each with what was kept of it."""
        found = []
        for place, verdict in enumerate(self.verdicts):
            data = verdict.as_data()
            if place in self.kept:
                data["kept"] = {"id": self.kept[place].id, "token": self.kept[place].token}
            if place in self.pictures:
                data["picture"] = self.pictures[place]
            found.append(data)
        return found

    def finish(self) -> None:
        """Show what was not shown yet, and write the files."""
        if not self.is_text and not self.texts:
            self._print(self.rendered(self.format))
        for path, format_ in self.outputs:
            write_text(path, self.rendered(format_))
            if not self.quiet:
                typer.echo(f"written: {path}", err=True)
        if self.keeper is not None and not self.quiet:
            for kept in self.keeper.retired:
                typer.echo(f"fixed, and not kept any more: {kept.id}  {kept.claim}", err=True)
            for kept in self.keeper.outdated:
                typer.echo(f"not kept any more, since its columns have changed: {kept.id}  {kept.claim}", err=True)

    def rendered(self, format_: str) -> str:
        """All of it in one of the formats."""
        if self.texts:
            return "\n".join([*self.texts, ""])
        if format_ == "sarif":
            return verdicts_sarif(self.data(), self.place)
        return render(self.data(), format_, self.title, self.notes)

    def exit_code(self) -> int:
        """That of the worst verdict: FAILS before UNDECIDED before HOLDS."""
        worst = min((verdict.outcome for verdict in self.verdicts), default=Outcome.UNDECIDED)
        return EXITS[worst] if self.code is None else self.code

    def _told(self, place: int) -> str:
        verdict = self.verdicts[place]
        text = str(verdict) if self.quiet else verdict.story(code=place not in self.kept)
        head, rest = text[: len(verdict.outcome.name)], text[len(verdict.outcome.name) :]
        if place in self.kept and not self.quiet:
            rest += f"\n  to see it again: streamtight replay {self.kept[place].id}{self._where_kept()}"
        return f"{coloured(head, COLOURS[verdict.outcome], self.out)}{rest}"

    def _where_kept(self) -> str:
        folder = str(self.keeper.folder) if self.keeper is not None else FOLDER
        return "" if folder == FOLDER else f" --keep {shlex.quote(folder)}"

    def _print(self, text: str) -> None:
        """Print where the answer goes; whoever reads it may have enough, as in `streamtight ... | head`."""
        try:
            typer.echo(text, file=self.out)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.out.fileno())


def coloured(text: str, colour: str, out: IO[str] | None = None) -> str:
    """The text in a colour, where a person looks at a terminal that has some."""
    forced = bool(os.environ.get("FORCE_COLOR"))
    wanted = not os.environ.get("NO_COLOR") and (forced or (out or sys.stdout).isatty())
    return typer.style(text, fg=colour, bold=True) if wanted else text


_REPLAYED: ContextVar[tuple[list[Answers], Keeper] | None] = ContextVar("replayed", default=None)


@contextlib.contextmanager
def replayed(keeper: Keeper) -> Iterator[list[Answers]]:
    """While this is open, commands show nothing, and try only what this keeper has."""
    answers: list[Answers] = []
    before = _REPLAYED.set((answers, keeper))
    try:
        yield answers
    finally:
        _REPLAYED.reset(before)


@contextlib.contextmanager
def answering(
    context: typer.Context, *, searches: bool = True, formats: tuple[str, ...] = (*FORMATS, "sarif")
) -> Iterator[Answers]:
    """Ask inside of this: it shows the answers, and ends the command with their exit code.

    `searches`: whether other seeds and runs are the same question, of which kept counterexamples are tried first.
    """
    from streamtight.spark.progress import clear, quiet
    from streamtight.spark.session import stop_session

    # What py4j logs when somebody presses Ctrl-C is of no use to them.
    logging.getLogger().addFilter(lambda record: not str(record.msg).endswith("while sending command."))
    given = context.params
    with contextlib.ExitStack() as stack:
        replaying = _REPLAYED.get()
        try:
            answers = _answers(context, searches, formats)
            for path, _ in answers.outputs:
                require_writable(path)
        except StreamtightError as error:
            raise wrong_use(error) from None
        if given.get("quiet"):
            stack.enter_context(quiet())
        if answers.keeper is not None:
            stack.enter_context(keeping(answers.keeper))
        try:
            with contextlib.redirect_stdout(sys.stderr):  # what a job prints does not mix with the answer
                yield answers
        except Interrupted as stopped:
            clear()
            answers.add(stopped.verdict)
            answers.note("stopped; this is what is known so far", aside=True)
            stop_session()
        except KeyboardInterrupt:
            clear()
            told = "this is what is known so far" if answers.verdicts else "nothing is known yet"
            answers.note(f"stopped; {told}", aside=True)
            if not any(verdict.fails for verdict in answers.verdicts):
                answers.end_with(UNDECIDED)
            stop_session()
        except StreamtightError as error:
            clear()
            raise wrong_use(error) from None
        except Exception as error:
            clear()
            typer.echo(told_exception(error), err=True)
            raise typer.Exit(WRONG_USE) from None
        if replaying is not None:
            replaying[0].append(answers)
            return
        try:
            answers.finish()
        except StreamtightError as error:
            raise wrong_use(error) from None
    raise typer.Exit(answers.exit_code())


def told_exception(error: Exception) -> str:
    """What the user's own code raised, and where; of anything else the whole trace, since it is a mistake of ours."""
    ours, skipped = str(Path(__file__).parents[1]), (sysconfig.get_path("purelib"), sysconfig.get_path("stdlib"))
    frames = [one for one in traceback.extract_tb(error.__traceback__) if not one.filename.startswith(skipped)]
    if frames and not frames[-1].filename.startswith(ours):
        at = frames[-1]
        said = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
        told = f"{at.filename}:{at.lineno}: in {at.name}: {at.line}\n{type(error).__name__}: {said}"
        return without_secrets(told, strict=True)
    trace = without_secrets("".join(traceback.format_exception(error)).rstrip(), strict=True)
    return f"{trace}\nThis is a mistake in streamtight, and no answer. Please report it with the lines above."


def wrong_use(error: StreamtightError) -> typer.Exit:
    """The end of a command that was asked something wrong: what is wrong is told."""
    typer.echo(str(error), err=True)
    for note in getattr(error, "__notes__", ()):
        typer.echo(note, err=True)
    return typer.Exit(WRONG_USE)


def _answers(context: typer.Context, searches: bool, formats: tuple[str, ...]) -> Answers:
    given: Mapping[str, Any] = context.params
    command = str(context.info_name)
    replaying = _REPLAYED.get()
    if replaying is not None:
        return Answers("text", [], True, replaying[1], command)
    paths: list[Path] = given.get("outputs") or []
    wanted: str = given.get("format_") or ""
    for one in [wanted] if wanted else []:
        _require_format(one, formats, f"{command} --format")
    outputs = [(path, _format_of(path, wanted if len(paths) == 1 else "", formats)) for path in paths]
    words = _command(context, (*OF_HOW, *OF_SEARCH) if searches else OF_HOW)
    ask = {"command": [without_secrets(word) for word in words]}
    keeper = Keeper(Path(given["keep"]), ask) if given.get("keep") else None
    printed = "text" if paths else wanted or "text"
    return Answers(printed, outputs, bool(given.get("quiet")), keeper, shlex.join(["streamtight", *ask["command"]]))


def _command(context: typer.Context, leave_out: tuple[str, ...]) -> list[str]:
    """The command that asks this again, from any settings."""
    arguments: list[str] = []
    options: list[str] = []
    for parameter in context.command.params:
        name = str(parameter.name)
        value = context.params.get(name)
        if name in leave_out or value is None or value == parameter.get_default(context):
            continue
        if parameter.param_type_name == "argument":
            arguments += [str(one) for one in (value if isinstance(value, list | tuple) else [value])]
        elif isinstance(value, bool):
            options.append(parameter.opts[0] if value else parameter.secondary_opts[0])
        else:
            for one in value if isinstance(value, list | tuple) else [value]:
                options += [parameter.opts[0], str(one)]
    return [str(context.info_name), *arguments, *options]


_ENDINGS = {".txt": "text", ".json": "json", ".xml": "junit", ".sarif": "sarif", ".html": "html"}


def _format_of(path: Path, wanted: str, formats: tuple[str, ...]) -> str:
    """The format of a file: the one that is asked for, or what its name ends in."""
    found = wanted or _ENDINGS.get(path.suffix.lower(), path.suffix)
    _require_format(found, formats, f"--output {path}")
    return found


def _require_format(wanted: str, formats: tuple[str, ...], where: str) -> None:
    if wanted not in formats:
        needed = "one of " + ", ".join(formats)
        raise ReportError(where, needed=needed, came=wanted or "no ending", hint=f"--format {formats[1]}")


def require_writable(output: Path) -> None:
    """Raise now what would else be raised after all the work."""
    was_there = output.exists()
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with output.open("a", encoding="utf-8"):
            pass
        if not was_there:
            output.unlink()
    except OSError as error:
        raise ReportError(
            f"--output {output}",
            needed="a file that can be written",
            came=f"{type(error).__name__}: {error.strerror}",
            hint="another folder, or other permissions",
        ) from error
