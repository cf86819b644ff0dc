"""Arrow tables as events, for what the columnar matcher cannot take and for what it has to show."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from streamtight.errors import TraceError
from streamtight.stream.dependence import Dependence
from streamtight.stream.event import RESERVED, Event, FieldType, Kind, without_none

_TESTS: list[tuple[Any, FieldType]] = [
    (pa.types.is_boolean, bool),
    (pa.types.is_integer, int),
    (pa.types.is_floating, float),
    (pa.types.is_decimal, Decimal),
    (pa.types.is_string, str),
    (pa.types.is_large_string, str),
    (pa.types.is_binary, bytes),
    (pa.types.is_large_binary, bytes),
    (pa.types.is_date, date),
    (pa.types.is_timestamp, datetime),
    (pa.types.is_duration, timedelta),
]


def kind_of_table(schema: pa.Schema, upto: Dependence, given: Kind | None) -> Kind:
    """What the rows of a table are: the given kind, the only one of the schema, or one made of its columns."""
    kind = given
    if kind is None and upto.domain is not None and len(upto.domain) == 1:
        (kind,) = upto.domain
    if kind is None:
        if upto.domain is not None:
            raise TraceError(
                "Matcher.feed(side, table)",
                needed="the kind of its rows",
                came=f"a table, where {upto!r} has {', '.join(sorted(kind.name for kind in upto.domain))}",
                hint="feed(side, table, kind=...)",
            )
        names = {name: f"{name}_" if name in RESERVED else name for name in schema.names}
        return Kind("Row", **{names[field.name]: _field_type(field.type) | None for field in schema})
    if set(kind.names) != set(schema.names):
        raise TraceError(
            "Matcher.feed(side, table)",
            needed=f"the columns {', '.join(kind.names) or '(none)'} of {kind.name}",
            came=", ".join(schema.names) or "no column",
            hint="table.select([...]), or kind=... with these columns",
        )
    return kind


def _field_type(data_type: pa.DataType) -> FieldType:
    return next((python for test, python in _TESTS if test(data_type)), object)


def require_no_null(table: pa.Table, kind: Kind) -> None:
    """Raise if a column has a null where the kind admits none, as making the events would."""
    for name, declared in kind.fields.items():
        if not without_none(declared)[1] and declared is not object and table.column(name).null_count:
            raise TraceError(
                f"Matcher.feed(side, table), column {name!r}",
                needed=f"a value in every row, as {kind!r} says",
                came=f"{table.column(name).null_count} nulls",
                hint=f"declare the field as ... | None: {kind.name}({name}=... | None)",
            )


def events_of(table: pa.Table, kind: Kind) -> Iterator[Event]:
    """The rows as events of this kind."""
    names = [name if name in table.schema.names else name.removesuffix("_") for name in kind.names]
    for row in zip(*(table.column(name).to_pylist() for name in names), strict=True):
        yield kind(*row)
