"""What is watched: one query or several, with names and types for their answers, and what of rows they read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streamtight.errors import QueryError
from streamtight.method.watch.kernel import BOOL, FLOAT, MIXED, UNKNOWN, NotTyped, Types
from streamtight.properties.monitor import Compiled, State, short
from streamtight.properties.query import Level, Query

TAG, FIELD, ORDER, NULLS = (f"_streamtight_{each}" for each in ("tag", "field_", "order_", "nulls"))
"""Columns that are made of the user's: the number of the tag, the fields that are read, what orders rows, and which
fields are null, as bits."""
SQL_TYPES = {BOOL: "boolean", FLOAT: "double", MIXED: "double"}
DEFINED, UNDEFINED, CONFLICT, LATE = "defined", "undefined", "conflict", "late"
STATUS_NAMES = (UNDEFINED, DEFINED, CONFLICT)


@dataclass(frozen=True, slots=True)
class Question:
    """A query with the names of the columns for its answer."""

    name: str
    compiled: Compiled
    type: str
    """The type of its values, as Spark writes it."""
    fields: tuple[int, ...]
    """Which of the fields that all questions read it reads."""
    is_temporal: bool

    @property
    def status_name(self) -> str:
        """The column that says whether there is a value."""
        return "status" if self.name == "value" else f"{self.name}_status"


def questions(
    given: Mapping[str, Query],
    tags: Sequence[str] | None,
    types: Mapping[str | None, str | None],
    gives: Mapping[str, str],
) -> tuple[list[Question], list[str | None]]:
    """The questions, and the fields that all of them read together.

    types   the type of each field for which one is known: BOOL, INT or FLOAT
    gives   the types of answers, as Spark writes them, where they cannot be found out
    """
    compiled = {name: query.compile(tags) for name, query in given.items()}
    fields = list(dict.fromkeys(field for each in compiled.values() for field in each.fields))
    made = []
    for name, each in compiled.items():
        kind = gives.get(name) or _answer_type(each, types)
        if kind is None:
            raise QueryError(
                short(each.query),
                needed="the type of its values",
                came="a query whose values are made by functions, or are of several types",
                hint=f"gives={{{name!r}: 'double'}}",
            )
        places = tuple(fields.index(field) for field in each.fields)
        made.append(Question(name, each, kind, places, each.query.level is Level.TEMPORAL))
    return made, fields


def _answer_type(compiled: Compiled, types: Mapping[str | None, str | None]) -> str | None:
    """The type of the answers, if that can be told without running it."""
    known = [types.get(field) for field in compiled.fields]
    try:
        found = Types.of(compiled.program, tuple(each or UNKNOWN for each in known))
    except NotTyped:
        return "boolean" if compiled.query.level is Level.TEMPORAL else None
    return SQL_TYPES.get(found.answer, "bigint")


# -- states as text --------------------------------------------------------------------------------------------------


def packed(states: Sequence[State]) -> str:
    """States as text, which can be read by anybody and runs nothing when it is read."""
    for value in (value for state in states for value in state):
        if not isinstance(value, (bool, int, float, str, type(None))):
            raise QueryError(
                "the state of a query",
                needed="numbers, texts and truth values, since it is kept between micro-batches",
                came=f"{value!r} of {type(value).__name__}",
                hint="operations that give numbers",
            )
    return json.dumps(states)


def unpacked(text: str) -> list[State]:
    """The states again."""
    return [tuple(state) for state in json.loads(text)]
