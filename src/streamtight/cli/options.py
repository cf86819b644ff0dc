"""The options that several commands have: what they are called, and what their help says."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer


def functions_in_files(incomplete: str) -> Iterator[str]:
    """What could be meant by the beginning of `jobs.py:totals`: files first, then what is defined in one of them."""
    file, colon, name = incomplete.partition(":")
    if not colon:
        path = Path(file)
        folder = path if file.endswith("/") else path.parent
        for one in sorted(folder.glob("*")):
            if str(one).startswith(file) and one.suffix == ".py":
                yield f"{one}:"
            elif str(one).startswith(file) and one.is_dir() and not one.name.startswith("."):
                yield f"{one}/"
        return
    try:
        body = ast.parse(Path(file).read_text(encoding="utf-8")).body
    except (OSError, SyntaxError, ValueError):
        return
    for node in body:
        targets = node.targets if isinstance(node, ast.Assign) else ()
        names = [one.id for one in targets if isinstance(one, ast.Name)]
        names += [node.name] if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else []
        yield from (f"{file}:{own}" for own in names if own.startswith(name))


def place(help_: str) -> typer.models.ArgumentInfo:
    """An argument that names something in the user's own code."""
    return typer.Argument(help=help_, autocompletion=functions_in_files)  # type: ignore[no-any-return]


JobPlace = Annotated[str, place("The job: file.py:function, or module:function.")]

Inputs = Annotated[
    list[str],
    typer.Option("--input", help="The columns of a table, once for each parameter: 'table[user: str, amount: int?]'."),
]
Samples = Annotated[
    list[Path],
    typer.Option(
        "--sample", help="A Parquet, CSV or JSON file with some rows, once for each parameter, instead of --input."
    ),
]
On = Annotated[
    str,
    typer.Option("--on", help="A source of your own instead: file.py:name.", autocompletion=functions_in_files),
]
Promise = Annotated[
    str, typer.Option(help="The order in which rows arrive: 'ordered', or 'same(user)'. None, if not given.")
]
Upto = Annotated[
    str, typer.Option(help="Which rows of the output must keep their order: 'ordered', 'same(user)', file.py:name.")
]
Mode = Annotated[str, typer.Option(help="append, update, complete; batch, or rdd.")]
Keys = Annotated[
    list[str],
    typer.Option("--key", help="In update mode: a column that says which row an update replaces. Once for each."),
]
Runs = Annotated[int, typer.Option(min=1, help="How many inputs are tried.")]
Seed = Annotated[int, typer.Option(help="Another seed, other inputs; the same seed, the same ones.")]
Limit = Annotated[float, typer.Option(min=0.0, help="Seconds that a run on Spark may take.")]
Seconds = Annotated[float, typer.Option(min=0.0, help="How long an answer is looked for.")]

Format = Annotated[
    str,
    typer.Option("--format", help="text, json, junit, sarif or html: what is printed, or written to --output."),
]
Outputs = Annotated[
    list[Path],
    typer.Option(
        "--output", "-o", help="Write the answer to this file too, as its name ends: .html .json .xml .sarif .txt."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="A line for each verdict, and nothing else.")]
Keep = Annotated[
    str, typer.Option(help="The folder where counterexamples are kept, to be tried first and replayed; '' for none.")
]
