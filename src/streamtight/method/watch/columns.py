"""Which columns of a table are keys, orders, tags and fields; and queries on tables of Arrow and pandas."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamtight.errors import QueryError
from streamtight.method.watch.kernel import BOOL, FLOAT, INT
from streamtight.method.watch.questions import CONFLICT, FIELD, ORDER, TAG, UNDEFINED, Question, questions
from streamtight.method.watch.tables import SortedTables
from streamtight.properties.query import OTHER, Query

_SQL = {"boolean": pa.bool_(), "bigint": pa.int64(), "double": pa.float64(), "string": pa.string()}


@dataclass(frozen=True)
class Asked:
    """What a user asks of a table."""

    queries: Mapping[str, Query]
    key: tuple[str, ...]
    order_by: tuple[str, ...]
    tags: str | Mapping[str, Any] | None
    value: str | None
    keep: tuple[str, ...]
    outputs: str
    others: str
    """What becomes of rows without a tag of the query: they are refused, ignored, or passed as items without a name."""
    takes_ties: bool
    gives: dict[str, str]

    @property
    def kept(self) -> tuple[str, ...]:
        """The columns that stand before the answers."""
        return tuple(dict.fromkeys([*self.key, *self.order_by, *self.keep]))

    def questions(self, types: Mapping[str, str | None]) -> tuple[list[Question], list[str]]:
        """The questions, and the columns of the fields that they read.

        types   the columns of the table, with the types of those that have numbers
        """
        for name in (
            *self.kept,
            *([self.value] if self.value else []),
            *([self.tags] if isinstance(self.tags, str) else []),
        ):
            _require_column(name, types)
        tags = list(self.tags) if isinstance(self.tags, Mapping) else None
        if tags is None:
            tags = sorted({tag for query in self.queries.values() for tag in query.tags}) or None
        if self.tags is None and tags is not None and len(tags) > 1:
            raise QueryError(
                "watch(...)",
                needed="the tag of each row",
                came=f"a query about {', '.join(tags)} and no tags=",
                hint="tags='kind', the column with the tag; or tags={'a': \"kind = 'a'\", ...}",
            )
        known: dict[Any, str | None] = {**types, None: types.get(self.value or "")}
        if self.others == "pass":
            tags = [*(tags or ()), OTHER]
        compiled = {name: query.compile(tags) for name, query in self.queries.items()}
        fields = list(dict.fromkeys(field for each in compiled.values() for field in each.fields))
        columns = []
        for field in fields:
            if field is None and self.value is None:
                raise QueryError(
                    "watch(...)",
                    needed="the column that is cur",
                    came="none",
                    hint="value='price'; or cur.price in the query",
                )
            column = self.value if field is None else field
            _require_column(str(column), types)
            columns.append(str(column))
        made = questions(compiled, fields, known, self.gives)
        names = [*self.kept, *(name for each in made for name in (each.name, each.status_name))]
        clash = {name for name in names if names.count(name) > 1}
        if clash:
            raise QueryError(
                "watch(...)",
                needed="names of answers that no column has",
                came=", ".join(sorted(clash)),
                hint="watch({'total': query}, ...)",
            )
        return made, columns


def _require_column(name: str, known: Mapping[str, Any]) -> None:
    if name not in known:
        raise QueryError(
            "watch(...)", needed=f"a column {name!r}", came=f"the columns {', '.join(known)}", hint="its name"
        )


# -- tables of Arrow and pandas --------------------------------------------------------------------------------------


def answered(asked: Asked, given: Any) -> Any:
    """The answers on a table of Arrow, or a frame of pandas: a table of the same sort."""
    is_pandas = not hasattr(given, "to_batches")
    table = _of_pandas(given) if is_pandas else given
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    types = {field.name: _type_of(field.type) for field in table.schema}
    made, columns = asked.questions(types)
    tags = _tag_numbers(asked, table, given, made[0].compiled.tags)
    table = table.append_column(TAG, tags)
    for place, name in enumerate(columns):
        table = table.append_column(f"{FIELD}{place}", table[name])
    if asked.others == "ignore":
        table = table.filter(pc.greater_equal(table[TAG], 0))
    if asked.order_by:
        table = table.sort_by([(name, "ascending") for name in (*asked.key, *asked.order_by)])
    elif asked.key:  # the order of the table, stream by stream
        place = pa.array(np.arange(len(table)))
        table = table.append_column(ORDER, place).sort_by([(n, "ascending") for n in (*asked.key, ORDER)])
    schema = pa.schema([table.schema.field(name) for name in asked.kept])
    for question in made:
        if question.type not in _SQL:
            raise QueryError(
                "watch(gives=...)", needed=", ".join(_SQL), came=question.type, hint="gives={'q': 'double'}"
            )
        schema = schema.append(pa.field(question.name, _SQL[question.type])).append(
            pa.field(question.status_name, pa.string())
        )
    run = SortedTables(
        made, len(columns), asked.key, asked.order_by, asked.kept, asked.takes_ties or not asked.order_by,
        asked.outputs == "changes", schema,
    )  # fmt: skip
    found = pa.Table.from_batches(run(table.combine_chunks().to_batches()), schema)
    if asked.outputs == "alarms":
        found = found.filter(_alarms(found, made))
    return found.to_pandas() if is_pandas else found


def _of_pandas(frame: Any) -> Any:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    for place, (name, dtype) in enumerate(zip(table.column_names, frame.dtypes, strict=True)):
        if isinstance(dtype, np.dtype) and dtype.kind == "f":  # NaN stays what it is
            table = table.set_column(place, name, pa.array(frame.iloc[:, place].to_numpy()))
    return table


def _alarms(table: Any, made: Sequence[Question]) -> Any:
    found = pa.array(np.zeros(len(table), dtype=bool))
    for question in made:
        is_bad = pc.is_in(table[question.status_name], pa.array([UNDEFINED, CONFLICT]))
        found = pc.or_(found, pc.or_(is_bad, pc.fill_null(pc.invert(table[question.name]), False)))
    return found


def _type_of(data_type: Any) -> str | None:
    tests: list[tuple[Callable[[Any], bool], str]] = [
        (pa.types.is_boolean, BOOL),
        (pa.types.is_integer, INT),
        (pa.types.is_floating, FLOAT),
    ]
    return next((kind for test, kind in tests if test(data_type)), None)


def _tag_numbers(asked: Asked, table: Any, given: Any, tags: Sequence[str]) -> Any:
    """The number of each row's tag; for rows that have none, that of `OTHER`, or -1."""
    otherwise = tags.index(OTHER) if asked.others == "pass" else -1
    if asked.tags is None:
        return pa.array(np.zeros(len(table), dtype=np.int32))
    if isinstance(asked.tags, str):
        found = pc.index_in(table[asked.tags], pa.array(tags, table.schema.field(asked.tags).type))
        return pc.fill_null(found, otherwise)
    numbers = np.full(len(table), otherwise, dtype=np.int32)
    is_open = np.ones(len(table), dtype=bool)
    for number, (tag, test) in enumerate(asked.tags.items()):
        found = np.asarray(test(given)) if callable(test) else None
        if found is None or found.shape != (len(table),) or found.dtype.kind not in "bO":
            raise QueryError(
                f"watch(tags={{{tag!r}: ...}})",
                needed="a function of the table that gives true or false for each row",
                came=repr(test) if found is None else repr(found)[:80],
                hint="lambda frame: frame['kind'] == 'a' with pandas, lambda t: pc.equal(t['kind'], 'a') with Arrow",
            )
        is_it = np.array([each is True or each is np.True_ or each == 1 for each in found.tolist()], dtype=bool)
        numbers[is_open & is_it] = number
        is_open &= ~is_it
    return pa.array(numbers)
