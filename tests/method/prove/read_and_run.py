"""What a program is read as, and what it gives when it is run: both without Spark."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from streamtight.errors import UnsupportedError
from streamtight.method.prove.draw import some_rows
from streamtight.method.prove.local import LocalRDD
from streamtight.method.prove.recorded import Collected, RecordedRDD
from streamtight.method.prove.results import Result, result_of
from streamtight.program.relation import Aggregate, Input, rows_of, value_of

Program = Callable[..., Any]
Tables = tuple[list[Any], ...]


def as_read(program: Program, types: tuple[Any, ...], tables: Tables) -> Result:
    """What the relation says that was read, for these rows."""
    rows = {f"r{place}": table for place, table in enumerate(tables)}

    def value(aggregate: Aggregate) -> Any:
        return value_of(aggregate, rows)

    try:
        made = program(*[RecordedRDD(Input(f"r{place}", type_), value) for place, type_ in enumerate(types)])
        if not isinstance(made, RecordedRDD | Collected):
            return result_of(made)
        found = [made.row(row) for row in rows_of(made.relation, rows)]
    except UnsupportedError:
        raise
    except Exception as error:
        return Result.raised(error)
    return result_of(dict(found) if isinstance(made, Collected) and made.how == "dict" else found)


def as_run(program: Program, tables: Tables, partitions: int) -> Result:
    """What RDDs without Spark give for these rows."""
    try:
        return result_of(program(*[LocalRDD.of(rows, partitions) for rows in tables]))
    except UnsupportedError:
        raise
    except Exception as error:
        return Result.raised(error)


def require_read_as_run(program: Program, *types: Any, seed: int = 0, tries: int = 40) -> None:
    """Fail if a program is read as something else than it does."""
    chance = random.Random(seed)
    for _ in range(tries):
        tables = tuple(some_rows(type_, [0, 1, 2, "a"], chance, 5) for type_ in types)
        for partitions in (1, 2):
            run = as_run(program, tables, partitions)
            read = as_read(program, types, tables)
            assert run.is_same(read), f"seed={seed} {tables} in {partitions}: run {run}, read {read}"
