"""What the tasks of a watched stream do: the events of a key, from the state that Spark keeps for it to the next."""

from __future__ import annotations

import itertools
import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from streamtight.errors import QueryError
from streamtight.method.watch.frames import from_ipc, to_ipc
from streamtight.method.watch.questions import (
    FIELD,
    LATE,
    NULLS,
    ORDER,
    STATUS_NAMES,
    TAG,
    Question,
    packed,
    unpacked,
)
from streamtight.method.watch.tables import tie
from streamtight.properties.transducer import Status

STATE = "states string, last string, answers string, waiting binary"
UNORDERED = 1 << 62
"""Beside the bits of fields that are null: what orders the row is null."""
_MICROS = 1_000
_DTYPES: dict[str, Any] = {"bigint": "Int64", "boolean": "boolean", "double": "Float64"}
"""Types of pandas that have nulls."""


@dataclass(frozen=True)
class KeyTask:
    """What is done with the events of one key in a micro-batch.

    waits          whether events wait until the watermark has passed them
    forget_after   milliseconds after which a key that has no events is forgotten
    """

    questions: Sequence[Question]
    keys: Sequence[str]
    kept: Sequence[str]
    orders: int
    fields: int
    takes_ties: bool
    changes: bool
    waits: bool
    forget_after: int | None

    def __call__(self, key: tuple[Any, ...], frames: Iterable[Any], state: Any) -> Iterator[Any]:
        # Spark fills up frames with empty ones, of which pandas warns for each batch.
        warnings.filterwarnings("ignore", "The behavior of DataFrame concatenation", FutureWarning)
        key = key[: len(self.keys)]  # without any, Spark groups by a constant
        states, last, answers, waiting = self._known(state)
        came = [frame for frame in frames if len(frame)] if not state.hasTimedOut else []
        order_names = [f"{ORDER}{place}" for place in range(self.orders)]
        parts = came if waiting is None else [waiting, *came]
        if not parts:  # it has had its time
            state.remove()
            return
        rows = parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)
        if any(null & UNORDERED for null in rows[NULLS].tolist()):
            raise QueryError(
                f"a row of {dict(zip(self.keys, key, strict=True))}",
                needed="a value in every column of order_by, as it orders rows",
                came="null",
                hint="a filter",
            )
        orders = list(zip(*(rows[name].tolist() for name in order_names), strict=True))
        if any(later < earlier for earlier, later in itertools.pairwise(orders)):
            rows = rows.sort_values(order_names, kind="stable", ignore_index=True)
            orders.sort()
        mark = state.getCurrentWatermarkMs() * _MICROS if self.waits else None
        late = [last is not None and (order < last or (order == last and not self.takes_ties)) for order in orders]
        held = [
            mark is not None and order[0] >= mark and not is_late for order, is_late in zip(orders, late, strict=True)
        ]
        ready = [not is_late and not is_held for is_late, is_held in zip(late, held, strict=True)]
        known = rows if all(ready) else rows[ready].reset_index(drop=True)
        done = [order for order, is_ready in zip(orders, ready, strict=True) if is_ready]
        self._require_order(key, known, done)
        given = []
        if any(late):
            given.append(self._late(key, rows[late]))
        if len(known):
            made, states, answers = self._answered(key, known, states, answers)
            given.append(made)
        rest = rows[held].reset_index(drop=True) if any(held) else None
        last = done[-1] if done else last
        state.update(
            (
                packed(self.questions, states),
                json.dumps(last),
                json.dumps(answers),
                b"" if rest is None else to_ipc(rest),
            )
        )
        self._set_timeout(state, rest, last, order_names)
        yield from given

    def _known(self, state: Any) -> tuple[Any, Any, Any, Any]:
        if not state.exists:
            return [question.compiled.start for question in self.questions], None, None, None
        states, last, answers, waiting = state.get
        found = json.loads(last)
        return (
            unpacked(self.questions, states),
            None if found is None else tuple(found),
            json.loads(answers),
            from_ipc(bytes(waiting)) if waiting else None,
        )

    def _require_order(self, key: tuple[Any, ...], rows: Any, orders: Sequence[tuple[Any, ...]]) -> None:
        if self.takes_ties or not any(one == other for one, other in itertools.pairwise(orders)):
            return
        read = list(zip(rows[TAG].tolist(), *self._columns(rows), strict=True))
        for place in range(1, len(orders)):
            if orders[place] == orders[place - 1] and repr(read[place]) != repr(read[place - 1]):
                raise tie({**dict(zip(self.keys, key, strict=True)), "order": orders[place]})

    def _columns(self, rows: Any) -> list[list[Any]]:
        """The fields that are read, with None where they are null."""
        nulls = rows[NULLS].tolist()
        found = []
        for place in range(self.fields):
            values = rows[f"{FIELD}{place}"].tolist()
            bit = 1 << place
            found.append([None if null & bit else value for null, value in zip(nulls, values, strict=True)])
        return found

    def _answered(self, key: tuple[Any, ...], rows: Any, states: Any, before: Any) -> tuple[Any, Any, Any]:
        tags = rows[TAG].tolist()
        if min(tags) < 0:
            raise QueryError(
                "a row without a tag",
                needed=f"rows with one of the tags {', '.join(self.questions[0].compiled.tags)}",
                came=str(dict(zip(self.keys, key, strict=True))),
                hint="tags={...} with a condition for it, or others='ignore'",
            )
        columns = self._columns(rows)
        made = self._begun(key, rows)
        is_new = [before is None] + [False] * (len(rows) - 1)
        after = []
        last_states = []
        for number, question in enumerate(self.questions):
            status, values, last_state = question.compiled.block(
                tags, [columns[place] for place in question.fields], states[number]
            )
            last_states.append(last_state)
            if status.count(int(Status.ONE)) < len(status):
                values = [
                    value if each == int(Status.ONE) else None for each, value in zip(status, values, strict=True)
                ]
            made[question.name] = pd.array(values, dtype=_DTYPES.get(question.type, object))
            made[question.status_name] = [STATUS_NAMES[each] for each in status]
            if self.changes:
                answers = list(zip(status, values, strict=True))
                if before is not None:
                    is_new[0] |= not _same(tuple(before[number]), answers[0])
                for place in range(1, len(answers)):
                    is_new[place] |= not _same(answers[place - 1], answers[place])
            after.append([int(status[-1]), values[-1]])
        given = pd.DataFrame(made)
        return given[is_new] if self.changes else given, last_states, after

    def _late(self, key: tuple[Any, ...], rows: Any) -> Any:
        made = self._begun(key, rows)
        for question in self.questions:
            made[question.name] = pd.array([None] * len(rows), dtype=_DTYPES.get(question.type, object))
            made[question.status_name] = [LATE] * len(rows)
        return pd.DataFrame(made)

    def _begun(self, key: tuple[Any, ...], rows: Any) -> dict[str, Any]:
        """The columns before the answers: keys, and what is kept of the rows."""
        made: dict[str, Any] = {name: [value] * len(rows) for name, value in zip(self.keys, key, strict=True)}
        return made | {name: rows[name].array for name in self.kept}

    def _set_timeout(self, state: Any, rest: Any, last: Any, order_names: Sequence[str]) -> None:
        if self.waits:
            mark = state.getCurrentWatermarkMs()
            if rest is not None:
                due = int(rest[order_names[0]].iloc[0]) // _MICROS + 1
            elif self.forget_after is not None and last is not None:
                due = int(last[0]) // _MICROS + self.forget_after
            else:
                return
            state.setTimeoutTimestamp(max(due, mark + 1))
        elif self.forget_after is not None:
            state.setTimeoutDuration(self.forget_after)


def _same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return bool(one[0] == other[0]) and (one[1] == other[1] or (one[1] != one[1] and other[1] != other[1]))
