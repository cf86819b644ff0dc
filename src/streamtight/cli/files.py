"""The commands around the questions: replay, report, doctor, demo."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.resources import files as packaged
from pathlib import Path
from typing import Annotated, Any

import typer

from streamtight.cli import questions
from streamtight.cli.answers import (
    COLOURS,
    FAILS,
    HOLDS,
    UNDECIDED,
    WRONG_USE,
    coloured,
    replayed,
    require_writable,
    wrong_use,
)
from streamtight.cli.options import Keep, Quiet
from streamtight.errors import SourceError, StreamtightError
from streamtight.redaction import without_secrets
from streamtight.report.write import read_report, render, write_text
from streamtight.source.kept import FOLDER, TOKEN, Keeper, Kept, all_kept
from streamtight.verdict import Outcome, Verdict

ASKING = tuple(command.__name__ for command in questions.COMMANDS)


def replay(
    context: typer.Context,
    what: Annotated[
        list[str] | None,
        typer.Argument(help="Ids, files or tokens of kept counterexamples; all of them, if none is named."),
    ] = None,
    code: Annotated[bool, typer.Option("--code", help="Print the lines of Python that show it; run nothing.")] = False,
    quiet: Quiet = False,
    keep: Keep = FOLDER,
) -> None:
    """Run kept counterexamples again: FAILS, or FIXED?

    Those that are fixed are not kept any more.

    Ends with 0 if all are fixed, 1 if one still fails, 2 if one could not be decided.

    Example: streamtight replay

    Example: streamtight replay 3f9a2c1b
    """
    try:
        cases = list(_cases(what or [], Path(keep)))
    except StreamtightError as error:
        raise wrong_use(error) from None
    if not cases:
        typer.echo(f"no counterexample is kept in {keep}")
    if code:
        for kept in cases:
            typer.echo(f"# {kept.claim}: {kept.finding}\n# asked by: {_question(kept)}\n{kept.code}\n")
        return
    codes = [_replay(context, kept, quiet) for kept in cases]
    raise typer.Exit(next((code for code in (WRONG_USE, FAILS, UNDECIDED) if code in codes), HOLDS))


def _question(kept: Kept) -> str:
    return shlex.join(["streamtight", *kept.ask["command"]] if "command" in kept.ask else ["pytest", kept.ask["test"]])


def _cases(wanted: list[str], folder: Path) -> Iterator[Kept]:
    known = list(all_kept(folder))
    if not wanted:
        yield from known
    for text in wanted:
        found = [one for one in known if one.id == text]
        if found:
            yield from found
        elif text.startswith(TOKEN) or Path(text).is_file():
            yield Kept.read(text)
        else:
            raise SourceError(
                f"replay {text}",
                needed=f"the id of a counterexample in {folder}, a file, or a token",
                came="nothing of that name",
                hint=", ".join(one.id for one in known[:5]) or f"streamtight laws ...: what fails is kept in {folder}",
            )


def _replay(context: typer.Context, kept: Kept, quiet: bool) -> int:
    """Ask the question of one of them again, tell the answer, and give the exit code."""
    if "test" in kept.ask:
        return _replay_test(kept, quiet)
    if kept.ask["command"][0] not in ASKING:  # a file of another person may name any command
        typer.echo(f"{kept.id}: needed a command that asks; came {kept.ask['command'][0]}. Try: {ASKING[0]}", err=True)
        return WRONG_USE
    keeper = Keeper(kept.path.parent if kept.path else Path(FOLDER), kept.ask, only=True, given=(kept,))
    root: Any = context.find_root().command
    with replayed(keeper) as answers:
        root(args=list(kept.ask["command"]), standalone_mode=False)
    if not answers:  # the question was wrong, which has been told
        return WRONG_USE
    found = [verdict for one in answers for verdict in one.verdicts if verdict.claim == kept.claim]
    if not found:
        typer.echo(f"UNDECIDED  {kept.id}  {kept.claim}: the question is not asked any more")
        return UNDECIDED
    return _tell(kept, keeper, found[0], quiet)


def _tell(kept: Kept, keeper: Keeper, verdict: Verdict, quiet: bool) -> int:
    match verdict.outcome:
        case Outcome.FAILS:
            typer.echo(f"{coloured('FAILS', COLOURS[Outcome.FAILS])}  {kept.id}  {kept.claim}: {kept.finding}")
            if not quiet and verdict.counterexample is not None:
                story = verdict.counterexample.story(code=False)
                typer.echo("\n".join(f"  {line}" for line in story.splitlines()))
            return FAILS
        case Outcome.HOLDS:
            if kept not in keeper.retired:
                keeper.retire(kept)
            typer.echo(f"{coloured('FIXED', COLOURS[Outcome.HOLDS])}  {kept.id}  {kept.claim}")
            return HOLDS
    head = coloured("UNDECIDED", COLOURS[Outcome.UNDECIDED])
    typer.echo(f"{head}  {kept.id}  {kept.claim}: {verdict.reason}")
    return UNDECIDED


def _replay_test(kept: Kept, quiet: bool) -> int:
    """The test that found it, asked of the kept case alone: in a folder of its own, which a token has not."""
    with tempfile.TemporaryDirectory() as folder:
        kept.write(Path(folder))
        words = ["-q", "--no-header", "--streamtight-only-kept", f"--streamtight-keep={folder}", kept.ask["test"]]
        ran = subprocess.run(  # noqa: S603 - the user's own test
            [sys.executable, "-m", "pytest", *words], capture_output=True, text=True, check=False
        )
    if ran.returncode == 0 and kept.path is not None:
        kept.path.unlink(missing_ok=True)
    if ran.returncode in (0, 1):
        outcome = Outcome.FAILS if ran.returncode else Outcome.HOLDS
        word = coloured("FAILS" if ran.returncode else "FIXED", COLOURS[outcome])
        typer.echo(f"{word}  {kept.id}  {kept.claim}  ({kept.ask['test']})")
        if ran.returncode and not quiet:
            typer.echo(ran.stdout)
        return FAILS if ran.returncode else HOLDS
    typer.echo(ran.stdout + ran.stderr, err=True)
    return WRONG_USE


def report(
    sources: Annotated[
        list[Path], typer.Argument(help="Files that --format json, or pytest --streamtight-report wrote.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page: .html; or .xml, .txt, .json.")] = Path(
        "streamtight.html"
    ),
    title: Annotated[str, typer.Option(help="What the page is called.")] = "streamtight",
) -> None:
    """Make one page of verdicts that were written before.

    Example: streamtight report build/*.json --output build/report.html
    """
    try:
        require_writable(output)
        verdicts = [one for path in sources for one in read_report(path)]
        formats = {".html": "html", ".xml": "junit", ".txt": "text", ".json": "json"}
        if output.suffix.lower() not in formats:
            raise SourceError(
                f"--output {output}",
                needed="a file name that ends in " + ", ".join(formats),
                came=output.suffix or "no ending",
                hint=str(output.with_suffix(".html")),
            )
        write_text(output, render(verdicts, formats[output.suffix.lower()], title))
    except StreamtightError as error:
        raise wrong_use(error) from None
    typer.echo(f"written: {output}")


def doctor() -> None:
    """What does Spark need, and what was found of it?

    Example: streamtight doctor
    """
    from streamtight.spark.session import doctor as checks

    found = list(checks())
    for check in found:
        typer.echo(without_secrets(str(check)))
    if not all(check.fine for check in found):
        raise typer.Exit(WRONG_USE)
    typer.echo("Spark can start.")


def demo(
    context: typer.Context,
    folder: Annotated[Path, typer.Option(help="Where the files of the demo are written.")] = Path("streamtight-demo"),
) -> None:
    """Find a bug in a small job on real Spark.

    It writes the job, its data and a page with pictures, and tells what to do.

    Example: streamtight demo
    """
    try:
        for one in packaged("streamtight.cli").joinpath("demo").iterdir():
            write_text(folder / one.name.removesuffix("_"), one.read_text(encoding="utf-8"))
    except StreamtightError as error:
        raise wrong_use(error) from None
    job = f"{folder / 'jobs.py'}:latest_state"
    words = ["laws", job, "--sample", str(folder / "orders.csv"), "--only", "partitions,order,restarts"]
    words += ["--keep", str(folder / "kept"), "--output", str(folder / "report.html")]
    typer.echo(f"{folder / 'jobs.py'} has a streaming job that looks right. This asks whether it is:\n")
    typer.echo(f"  streamtight {' '.join(words)}\n")
    root: Any = context.find_root().command
    code = root(args=words, standalone_mode=False)
    typer.echo(
        f"\nThe page with the pictures is {folder / 'report.html'}. {folder / 'jobs.py'} says how to mend the job;"
    )
    typer.echo(f"then see it fixed: streamtight replay --keep {folder / 'kept'}")
    raise typer.Exit(HOLDS if code == FAILS else code)  # that it fails is what was to be seen


COMMANDS = (replay, report, doctor, demo)
