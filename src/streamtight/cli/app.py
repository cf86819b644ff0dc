"""The application: its commands, its settings in pyproject.toml, and how it ends."""

from __future__ import annotations

import difflib
import sys
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from streamtight import __version__
from streamtight.cli import files, questions
from streamtight.cli.answers import UNDECIDED, WRONG_USE, wrong_use
from streamtight.errors import SourceError, StreamtightError

app = typer.Typer(
    add_completion=True,
    no_args_is_help=True,
    help="Tells whether your PySpark jobs are right.",
    epilog="Begin with: streamtight demo. Then with a job of yours: streamtight laws jobs.py:job --sample rows.csv",
    rich_markup_mode=None,  # else what stands in [brackets] is taken for markup, and not shown
    pretty_exceptions_enable=False,  # a mistake of ours is reported as Python does, with its whole trace
)
for command in (*questions.COMMANDS, *files.COMMANDS):
    app.command()(command)

_WRONG_ARGUMENT: Any = typer.BadParameter.__base__
"""What typer raises for every kind of wrong argument; it has no public name."""


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"streamtight {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    try:
        context.default_map = settings(Path.cwd(), _parameters(context))
    except StreamtightError as error:
        raise wrong_use(error) from None


def _parameters(context: typer.Context) -> dict[str, dict[str, str]]:
    """For each command, what its options are called, and the parameter of each."""
    group: Any = context.command
    return {
        name: {
            spelt.lstrip("-"): str(one.name)
            for one in command.params
            if one.param_type_name == "option" and one.name != "help"
            for spelt in one.opts
            if spelt.startswith("--")
        }
        for name, command in group.commands.items()
    }


def settings(folder: Path, known: dict[str, dict[str, str]]) -> dict[str, dict[str, Any]]:
    """What `[tool.streamtight]` says: for all commands, and in tables of their own for some.

    The file is the nearest pyproject.toml, here or above.
    """
    path = next(
        (one / "pyproject.toml" for one in (folder, *folder.parents) if (one / "pyproject.toml").is_file()), None
    )
    if path is None:
        return {}
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {}).get("streamtight", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SourceError(
            str(path), needed="a file that can be read", came=f"{type(error).__name__}: {error}", hint="its syntax"
        ) from None
    everywhere = {name: value for name, value in found.items() if not isinstance(value, dict)}
    defaults: dict[str, dict[str, Any]] = {name: {} for name in known}
    for name, value in everywhere.items():
        places = [command for command, options in known.items() if name in options]
        if not places:
            _refuse(path, "tool.streamtight", name, {option for options in known.values() for option in options})
        for command in places:
            defaults[command][known[command][name]] = value
    for command, values in found.items():
        if isinstance(values, dict):
            if command not in known:
                _refuse(path, "tool.streamtight", command, set(known))
            for name, value in values.items():
                if name not in known[command]:
                    _refuse(path, f"tool.streamtight.{command}", name, set(known[command]))
                defaults[command][known[command][name]] = value
    return defaults


def _refuse(path: Path, table: str, name: str, known: set[str]) -> None:
    near = difflib.get_close_matches(name, known) or sorted(known)
    raise SourceError(
        f"[{table}] in {path}", needed="names of options or commands", came=repr(name), hint=", ".join(near[:5])
    )


def main() -> None:
    """Run the command line. Arguments that are wrong end it with 3: 2, which is usual, is an answer here."""
    try:
        code = app(standalone_mode=False)
    except _WRONG_ARGUMENT as error:
        error.show()
        code = WRONG_USE
    except (KeyboardInterrupt, typer.Abort):
        typer.echo("stopped; nothing is known yet", err=True)
        code = UNDECIDED
    except BrokenPipeError:  # whoever read it has enough: `streamtight ... | head`
        sys.stderr.close()
        code = UNDECIDED
    sys.exit(code)
