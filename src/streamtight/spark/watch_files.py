"""`streamtight watch`: a query asked of the rows of a file, shown row by row or as a verdict."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from streamtight.errors import StreamtightError
from streamtight.spark.failure import job_error
from streamtight.spark.samples import read_sample
from streamtight.spark.watch import watch
from streamtight.verdict import Counterexample, Outcome, Scope, Table, Verdict


@dataclass(frozen=True, slots=True)
class Shown:
    """Some rows, as they are shown."""

    text: str
    left_out: int
    """How many more there are."""


def values_of(query: Any, data: Path, options: Mapping[str, Any], *, rows: int, as_json: bool) -> Shown:
    """The answers after each row, in the order of the streams."""
    frame = watch(query, read_sample(data, "the rows"), **options)
    found, left_out = _some(frame, rows)
    if as_json:
        lines = [json.dumps(dict(zip(frame.columns, row, strict=True)), default=str) for row in found]
        return Shown("\n".join(lines), left_out)
    return Shown(str(_table(frame, found)), left_out)


def alarms_of(query: Any, data: Path, options: Mapping[str, Any], *, told: str, rows: int) -> Verdict:
    """Is the query true after every row? Those after which it is not are shown."""
    read = read_sample(data, "the rows")
    frame = watch(query, read, **options, outputs="alarms")
    found, left_out = _some(frame, rows)
    claim, scope = f"{told} stays true on {data}", Scope.observed(read.count())
    if not scope.count:
        return Verdict(claim, Outcome.UNDECIDED, scope, reason="vacuous: there is no row")
    if not found:
        return Verdict(claim, Outcome.HOLDS, scope)
    more = f", and after {left_out} more" if left_out else ""
    explanation = f"it is not true after {len(found)} of {scope.count} rows{more}"
    return Verdict(
        claim, Outcome.FAILS, scope, Counterexample("ALARM", explanation, table=_table(frame, found, "rows"))
    )


def _some(frame: DataFrame, rows: int) -> tuple[list[Any], int]:
    try:
        found = frame.limit(rows + 1).collect()
        return found[:rows], frame.count() - rows if len(found) > rows else 0
    except StreamtightError:
        raise
    except Exception as error:  # what the tasks raised, as Spark tells it
        raise job_error(error, batch=None) from error


def _table(frame: DataFrame, rows: list[Any], title: str = "") -> Table:
    cells = tuple(tuple("" if value is None else str(value) for value in row) for row in rows)
    return Table(tuple(frame.columns), cells, title)
