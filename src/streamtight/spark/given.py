"""What the command line says of inputs: the columns of each table, a file with sample rows, or a source of the user's.

With nothing but columns, rows are generated. What a job compares with is what its rows should have: the numbers and the
texts in its code are among the values, so that `where("state = 'paid'")` lets some of them pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from streamtight.errors import SourceError
from streamtight.method.prove.allowed import names_of, parameters_of
from streamtight.method.prove.inputs import Input, TableInput, table
from streamtight.method.prove.parse_input import parse_input
from streamtight.method.typecheck.parse_order import parse_order
from streamtight.program.functions import values_known_to
from streamtight.source.generate import generated_from
from streamtight.source.values import values_of
from streamtight.spark.load import first_line, load_object
from streamtight.spark.rows import Table, kind_of
from streamtight.spark.samples import read_sample, struct_of_input
from streamtight.stream.dependence import Dependence, unordered
from streamtight.stream.event import Kind, without_annotation, without_none

PLAIN_NAMES = ("df", "frame", "data", "rows", "input", "stream", "rdd", "source", "events")
"""Parameters whose names say nothing of their rows."""
SAMPLE_ROWS = 1_000
"""So many rows of a sample are read for its values."""
MOST_VALUES = 24
"""Of each column."""
LONGEST_TEXT = 40
"""A longer text in the code of a job is no value of a column."""
Job = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Given:
    """What a job is given."""

    source: Any
    """What `on=` takes."""
    takes: Any = None
    """The kinds of each input by its name, or of the only one; None if the source says it."""
    tables: tuple[Any, ...] = ()
    """The same for questions that read plans."""
    notes: tuple[str, ...] = ()
    """What a person should know of the rows, a line each."""


@dataclass(slots=True)
class _Columns:
    """An input: its kind, and the values of some of its fields."""

    kind: Kind
    table: Any
    values: dict[str, list[object]] = field(default_factory=dict)


def given_to(
    jobs: Sequence[Job],
    *,
    inputs: Sequence[str] = (),
    samples: Sequence[Path] = (),
    on: str = "",
    promise: str = "",
) -> Given:
    """The inputs of these jobs, which all take the same, from the options of the command line."""
    if (bool(inputs), bool(samples), bool(on)).count(True) != 1:
        came = [name for name, is_given in (("--input", inputs), ("--sample", samples), ("--on", on)) if is_given]
        raise SourceError(
            "what the job is given",
            needed="one of --input for each of its tables, --sample for each, --on",
            came=" and ".join(came) or "none of them",
            hint="--input 'table[user: str, amount: int?]', --sample rows.csv, --on jobs.py:my_source",
        )
    order = relation_given(promise, "--promise")
    if on:
        if promise:
            raise SourceError(
                "--promise", needed="--input or --sample", came="--on", hint="generated(..., upto=...) in your source"
            )
        return Given(load_object(on))
    for job in jobs:
        _require_parameters(job, len(inputs) or len(samples), "--input" if inputs else "--sample")
    names = _kind_names(names_of(jobs[0], len(inputs) or len(samples)))
    if inputs:
        columns = [_from_text(name, text) for name, text in zip(names, inputs, strict=True)]
        notes = ["rows are generated from the columns alone, and from what the code compares with"]
    else:
        columns = [_from_sample(name, path) for name, path in zip(names, samples, strict=True)]
        notes = [f"values are those of {', '.join(map(str, samples))}, in other rows"]
    if not order.clauses:
        notes.append("no order of the rows is promised; if the source keeps one: --promise 'same(column)'")
    pools = {one.kind: {**_known_values(jobs, one.kind), **one.values} for one in columns}
    source = generated_from(pools, upto=order)
    kinds: Any = columns[0].kind
    if len(columns) > 1:
        kinds = {name: one.kind for name, one in zip(names_of(jobs[0], len(columns)), columns, strict=True)}
    _require_known(order, [one.kind for one in columns])
    return Given(source, kinds, tuple(one.table for one in columns), tuple(notes))


def relation_given(text: str, option: str) -> Dependence:
    """`ordered`, `unordered`, `same(user)`, or one of the user's own, file.py:name. None of it: unordered."""
    if re.fullmatch(r"[\w./\\-]+:[\w.]+", text):
        found = load_object(text)
        if not isinstance(found, Dependence):
            raise SourceError(
                f"{option} {text}", needed="a dependence or a schema", came=repr(found)[:100], hint="same('user')"
            )
        return found
    return parse_order(text, option) or unordered


def tables_given(*, inputs: Sequence[str] = (), samples: Sequence[Path] = (), needs: bool = True) -> list[Input]:
    """The tables and RDDs of a question that only reads programs."""
    given = [parse_input(text) for text in inputs] or [table(read_sample(path)) for path in samples]
    if (inputs and samples) or (needs and not given):
        raise SourceError(
            "what the program is given",
            needed="--input for each of its parameters, or --sample for each",
            came="both" if given else "neither",
            hint="--input 'table[k: int, v: int?]', or --input 'rdd[int]'",
        )
    return list(given)


def _require_parameters(job: Job, count: int, option: str) -> None:
    wanted = parameters_of(job)
    if wanted is not None and wanted != count:
        names = ", ".join(names_of(job, wanted)) or "none"
        raise SourceError(
            f"{getattr(job, '__name__', 'the job')}({names if wanted else ''})",
            needed=f"{option} once for each of its parameters: {wanted} ({names})",
            came=f"{option} {'once' if count == 1 else f'{count} times'}",
            hint="a function of DataFrames only; other parameters with a default, or a small function around it"
            if wanted > count
            else f"{option} {wanted} times" if wanted else "a function that takes its DataFrames as parameters",
        )  # fmt: skip


def _require_known(order: Dependence, kinds: Sequence[Kind]) -> None:
    missing = {name for clause in order.clauses for name in clause.key if not any(name in k.fields for k in kinds)}
    if missing:
        raise SourceError(
            f"--promise {order!r}",
            needed="columns of the input: " + ", ".join(name for kind in kinds for name in kind.names),
            came=", ".join(sorted(missing)),
            hint=f"--promise 'same({kinds[0].names[0]})'",
        )


def _kind_names(parameters: Sequence[str]) -> list[str]:
    """What rows are called: as the parameter that they come in, if that says something."""
    if len(parameters) == 1 and (parameters[0].lower() in PLAIN_NAMES or len(parameters[0]) < 3):
        return ["Row"]
    return ["".join(part[:1].upper() + part[1:] for part in name.split("_")) or "Row" for name in parameters]


def _from_text(name: str, text: str) -> _Columns:
    table = parse_input(text)
    if not isinstance(table, TableInput) or table.keys or table.conditions:
        raise SourceError(
            f"--input {text!r}",
            needed="a table without keys and conditions, since its rows are generated",
            came=text,
            hint="--on jobs.py:source, where source = tight.generated(..., where=...)",
        )
    return _Columns(kind_of(name, struct_of_input(table)), table)


def _from_sample(name: str, path: Path) -> _Columns:
    frame: DataFrame = read_sample(path)
    try:
        rows = frame.limit(SAMPLE_ROWS).collect()
    except Exception as error:  # the border to what Spark makes of the file
        raise SourceError(
            f"--sample {path}",
            needed="rows that Spark can read",
            came=f"{type(error).__name__}: {first_line(error)}",
            hint="JSON with a row on each line, or one list of rows; or --input 'table[k: int]'",
        ) from error
    if not rows:
        raise SourceError(
            f"--sample {path}", needed="rows to take values from", came="none", hint="--input 'table[k: int]'"
        )
    # What has no null in the sample has none in what is generated: a job may rightly rely on it.
    fields = [column.jsonValue() for column in frame.schema.fields]
    for column in fields:
        column["nullable"] = any(row[column["name"]] is None for row in rows)
    struct = StructType.fromJson({"type": "struct", "fields": fields})
    kind = kind_of(name, struct)
    reads = Table((kind,))
    events = [reads.from_row(row) for row in rows]
    values = {
        column: list(dict.fromkeys(event.as_dict()[column] for event in events))[:MOST_VALUES] for column in kind.names
    }
    return _Columns(kind, frame, values)


def _known_values(jobs: Sequence[Job], kind: Kind) -> Mapping[str, list[object]]:
    """For each column, the usual values and those in the code of the jobs that it could have."""
    known = values_known_to([job for job in jobs if isinstance(job, FunctionType)])
    texts, numbers = _texts_and_numbers(known, kind)
    found: dict[str, list[object]] = {}
    for name, declared in kind.fields.items():
        plain = without_annotation(without_none(declared)[0])
        own: list[Any] = texts if plain is str else numbers if plain is int else []
        if own:
            usual = values_of(declared).pool(extremes=False)
            # As often as the others together: a row that passes one test has to pass the next one, too.
            found[name] = usual + own * max(1, len(usual) // len(own))
    return found


def _texts_and_numbers(known: Sequence[object], kind: Kind) -> tuple[list[str], list[int]]:
    texts: dict[str, None] = {}
    numbers: dict[int, None] = {}
    for value in known:
        if isinstance(value, str):
            quoted = re.findall(r"'([^']*)'", value)
            texts.update(dict.fromkeys(quoted))
            is_word = (
                0 < len(value) <= LONGEST_TEXT and value not in kind.fields and not re.search(r"[\s()'=<>]", value)
            )
            texts.update({value: None} if is_word else {})
            numbers.update(dict.fromkeys(int(digits) for digits in re.findall(r"(?<![\w.])\d{1,9}(?![\w.])", value)))
        elif isinstance(value, int):
            numbers[value] = None
    near = {number + step: None for number in numbers for step in (0, 1, -1) if abs(number) < 2**31}
    return list(texts)[:MOST_VALUES], list(near)[:MOST_VALUES]
