"""What is watched: one query or several, with names and types for their answers, and what of rows they read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streamtight.errors import QueryError
from streamtight.method.watch.answers import answer_type
from streamtight.method.watch.kernel import BOOL, FLOAT, MIXED
from streamtight.properties.monitor import Compiled, State, short
from streamtight.properties.query import Level

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
    compiled: Mapping[str, Compiled],
    fields: Sequence[str | None],
    types: Mapping[str | None, str | None],
    gives: Mapping[str, str],
) -> list[Question]:
    """The questions.

    fields  those that all of them read together
    types   the type of each field for which one is known: BOOL, INT or FLOAT
    gives   the types of answers, as Spark writes them, where they cannot be found out
    """
    made = []
    for name, each in compiled.items():
        kind = gives.get(name) or answer_type(each, types)
        if kind is None:
            raise QueryError(
                short(each.query),
                needed="the type of its values",
                came="a query whose values are made by functions, or are of several types",
                hint=f"gives={{{name!r}: 'double'}}",
            )
        places = tuple(fields.index(field) for field in each.fields)
        made.append(Question(name, each, kind, places, each.query.level is Level.TEMPORAL))
    return made


# -- states as text --------------------------------------------------------------------------------------------------


def packed(questions: Sequence[Question], states: Sequence[State]) -> str:
    """States as text, which can be read by anybody and runs nothing when it is read."""
    for value in (value for state in states for value in state):
        if not isinstance(value, (bool, int, float, str, type(None))):
            raise QueryError(
                "the state of a query",
                needed="numbers, texts and truth values, since it is kept between micro-batches",
                came=f"{value!r} of {type(value).__name__}",
                hint="operations that give numbers",
            )
    return json.dumps({"of": [question.compiled.fingerprint for question in questions], "states": states})


def unpacked(questions: Sequence[Question], text: str) -> list[State]:
    """The states again; raises if they are those of other queries."""
    try:
        found = json.loads(text)
        of, states = found["of"], [tuple(state) for state in found["states"]]
    except (ValueError, TypeError, KeyError, RecursionError):
        of, states = None, []  # written by nobody of us
    if of != [question.compiled.fingerprint for question in questions]:
        raise QueryError(
            ", ".join(short(question.compiled.query) for question in questions),
            needed="a checkpoint of the same queries, with the same tags",
            came="one of others",
            hint="a new checkpoint folder for a query that was changed",
        )
    return states
