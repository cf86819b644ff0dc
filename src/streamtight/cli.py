"""The command line. Thin: it reads arguments, asks, and prints the answer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from streamtight import __version__
from streamtight.errors import StreamtightError
from streamtight.verdict import Outcome, Verdict

app = typer.Typer(
    add_completion=True,
    no_args_is_help=True,
    help="Tells whether your PySpark jobs are right.",
    rich_markup_mode=None,  # else what stands in [brackets] is taken for markup, and not shown
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"streamtight {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


@app.command()
def doctor() -> None:
    """Say what was found of what Spark needs, what is missing, and what to do.

    Example: streamtight doctor
    """
    from streamtight.spark.session import doctor as checks

    found = list(checks())
    for check in found:
        typer.echo(str(check))
    if not all(check.fine for check in found):
        raise typer.Exit(3)
    typer.echo("Spark can start.")


_ENDS = {Outcome.HOLDS: 0, Outcome.FAILS: 1, Outcome.UNDECIDED: 2}
WRONG_QUESTION = 3
_WRONG_USE: Any = typer.BadParameter.__base__
"""What typer raises for every kind of wrong argument; it has no public name."""


@app.command()
def prove(
    left: Annotated[str, typer.Argument(help="A program: file.py:function, or module:function.")],
    right: Annotated[str, typer.Argument(help="The program that should be equal to it.")],
    inputs: Annotated[
        list[str],
        typer.Option(
            "--input", help="What an input holds, one for each parameter: 'rdd[int]', 'table[k: int, v: int?]'."
        ),
    ] = [],  # noqa: B006 - typer reads it only
    samples: Annotated[
        list[Path],
        typer.Option("--sample", help="A Parquet, CSV or JSON file whose columns a table has, instead of --input."),
    ] = [],  # noqa: B006
    seconds: Annotated[float, typer.Option(help="How long an answer is looked for.")] = 10.0,
    seed: Annotated[int, typer.Option(help="Of the small inputs on which both are tried first.")] = 0,
    overflow: Annotated[bool, typer.Option(help="Also ask whether both raise where a number grows too large.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the verdict as JSON.")] = False,
) -> None:
    """Are two programs equal on every input?

    Ends with 0 if they are, 1 if not, 2 if that is not known, 3 if the question was wrong.

    Example: streamtight prove old.py:clean new.py:clean --input 'table[k: int, v: int?]'
    """
    from streamtight.method.prove.parse_input import parse_input
    from streamtight.spark.prove import prove_places
    from streamtight.spark.samples import sample_of

    try:
        if bool(inputs) is bool(samples):
            _wrong("needed --input for each parameter of the programs, or --sample for each", bool(inputs))
        given = [parse_input(text) for text in inputs] or [sample_of(path) for path in samples]
        verdict = prove_places(left, right, inputs=given, overflow=overflow, seconds=seconds, seed=seed)
    except StreamtightError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(WRONG_QUESTION) from None
    _tell(verdict, json=json)


@app.command()
def lint(
    place: Annotated[str, typer.Argument(help="A function, file.py:function; or a script, file.py.")],
    inputs: Annotated[
        list[str],
        typer.Option("--input", help="The columns of each table: \"table[k: int, v: int?].key('k')\"."),
    ] = [],  # noqa: B006 - typer reads it only
    samples: Annotated[
        list[Path],
        typer.Option("--sample", help="A Parquet, CSV or JSON file whose columns a table has, instead of --input."),
    ] = [],  # noqa: B006
    gives: Annotated[
        str, typer.Option(help="The order that the result must have: 'ordered', or 'same(user)'. Any, if not given.")
    ] = "",
    mode: Annotated[str, typer.Option(help="batch; or of a stream: append, update, complete.")] = "batch",
    confirm: Annotated[bool, typer.Option(help="Run the function on Spark, to show what was found.")] = False,
    format_: Annotated[str, typer.Option("--format", help="text, json or sarif.")] = "text",
    runs: Annotated[int, typer.Option(help="Inputs that --confirm tries for each finding.")] = 12,
    seed: Annotated[int, typer.Option(help="Of these inputs.")] = 0,
) -> None:
    """Where does a job depend on an order, or on a choice, that Spark does not fix?

    A script without a function is run: it reads, shows, collects and counts; it does not write, and starts no stream.

    Ends with 0 if nothing was found, 1 if it was shown, 2 if it was found but not shown or not all could be read, 3 if
    the question was wrong.

    Example: streamtight lint jobs.py:latest --input 'table[user: str, at: timestamp]' --confirm
    """
    from streamtight.method.typecheck.parse_order import parse_order
    from streamtight.report.sarif import as_sarif, findings_json
    from streamtight.spark.lint_script import lint as asked
    from streamtight.spark.lint_script import parse_tables

    if format_ not in ("text", "json", "sarif"):
        typer.echo(f"lint: needed --format text, json or sarif; came {format_}. Try: --format json", err=True)
        raise typer.Exit(WRONG_QUESTION)
    try:
        given = parse_tables(place, inputs, samples)
        order = parse_order(gives)
        found = asked(place, inputs=given, gives=order, mode=mode, confirm=confirm, runs=runs, seed=seed)
    except StreamtightError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(WRONG_QUESTION) from None
    if format_ == "sarif":
        typer.echo(as_sarif(found.findings))
    elif format_ == "json":
        typer.echo(findings_json(found.findings, found.unknown))
    else:
        for line in [*map(str, found.findings), *found.unknown]:
            typer.echo(line)
        typer.echo(found.told, err=True)
    raise typer.Exit(found.exit_code)


def _wrong(needed: str, both: bool) -> NoReturn:
    typer.echo(f"prove: {needed}; came {'both' if both else 'neither'}. Try: --input 'rdd[int]'", err=True)
    raise typer.Exit(WRONG_QUESTION)


def _tell(verdict: Verdict, *, json: bool) -> NoReturn:
    """Print a verdict, and end with its number."""
    typer.echo(verdict.to_json() if json else verdict.story())
    raise typer.Exit(_ENDS[verdict.outcome])


def main() -> None:
    """Run the command line. Arguments that are wrong end it with 3: 2, which is usual, is an answer here."""
    try:
        code = app(standalone_mode=False)
    except _WRONG_USE as error:
        error.show()
        code = WRONG_QUESTION
    sys.exit(code)
