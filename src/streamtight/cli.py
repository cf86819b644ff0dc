"""The command line. Thin: it reads arguments, asks, and prints the answer."""

from __future__ import annotations

from typing import Annotated

import typer

from streamtight import __version__

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


def main() -> None:
    """Run the command line."""
    app()
