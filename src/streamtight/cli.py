"""The command line. Thin: it reads arguments, asks, and prints the answer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from streamtight import __version__
from streamtight.errors import StreamtightError
from streamtight.verdict import Outcome, Verdict

app = typer.Typer(add_completion=True, no_args_is_help=True, help="Tells whether your PySpark jobs are right.")


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
    from streamtight.spark.load import load_function
    from streamtight.spark.prove import prove as asked
    from streamtight.spark.samples import sample_of

    try:
        if bool(inputs) is bool(samples):
            _wrong("needed --input for each parameter of the programs, or --sample for each", bool(inputs))
        given = [parse_input(text) for text in inputs] or [sample_of(path) for path in samples]
        verdict = asked(load_function(left), load_function(right), inputs=given, overflow=overflow, seconds=seconds, seed=seed)
    except StreamtightError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(WRONG_QUESTION) from None
    _tell(verdict, json=json)


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
