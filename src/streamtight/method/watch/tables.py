"""Queries on tables whose rows are sorted by key and by an order, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamtight.errors import QueryError
from streamtight.method.watch.blocks import Answers, KeyedBlocks
from streamtight.method.watch.questions import FIELD, STATUS_NAMES, TAG, Question

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class SortedTables:
    """The answers of questions on sorted rows.

    keys     the columns whose values tell one stream from another
    orders   the columns by which the rows of a stream are sorted
    kept     the columns that stand before the answers
    takes_ties   whether rows of equal order may come as they do
    changes      whether only answers that differ from the one before are given
    schema       the type of what comes out
    """

    questions: Sequence[Question]
    fields: int
    keys: Sequence[str]
    orders: Sequence[str]
    kept: Sequence[str]
    takes_ties: bool
    changes: bool
    schema: Any

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        runs = [KeyedBlocks(question.compiled) for question in self.questions]
        last: Any = None
        before: list[tuple[int, Any]] | None = None
        for batch in batches:
            if not batch.num_rows:
                continue
            for name in self.orders:
                if batch[name].null_count:
                    raise QueryError(
                        f"column {name!r}",
                        needed="a value in every row, as it orders them",
                        came="null",
                        hint="a filter",
                    )
            numbers, goes_on = self._streams(batch, last)
            self._require_known_tags(batch)
            if not self.takes_ties:
                self._require_no_ties(batch, last, numbers, goes_on)
            if not goes_on:
                for run in runs:
                    run.restart({})
            answers = [
                self._asked(run, question, batch, numbers) for run, question in zip(runs, self.questions, strict=True)
            ]
            ends = int(numbers[-1])
            for run in runs:
                run.restart({0: run.state_of(ends)})
            table = self._table(batch, answers)
            if self.changes:
                given = table.columns[len(self.kept) :: 2]
                is_new, before = _changes(answers, given, numbers, before if goes_on else None)
                table = table.filter(pa.array(is_new))
            last = batch.slice(batch.num_rows - 1)
            yield from pa.Table.from_batches([table]).combine_chunks().to_batches()

    def _asked(self, run: KeyedBlocks, question: Question, batch: Any, numbers: Array) -> Answers:
        names = question.compiled.fields
        columns = {name: batch[f"{FIELD}{place}"] for name, place in zip(names, question.fields, strict=True)}
        return run.run(batch[TAG].to_numpy(zero_copy_only=False), columns, keys=numbers)

    def _streams(self, batch: Any, last: Any) -> tuple[Array, bool]:
        """Which stream each row belongs to, by number; and whether the first one goes on from the batch before."""
        begins = np.zeros(batch.num_rows, dtype=bool)
        for name in self.keys:
            begins[1:] |= _differ(batch[name].slice(0, batch.num_rows - 1), batch[name].slice(1))
        goes_on = last is not None and not any(_differ(last[name], batch[name].slice(0, 1))[0] for name in self.keys)
        return np.cumsum(begins), goes_on

    def _require_known_tags(self, batch: Any) -> None:
        lowest = pc.min(batch[TAG]).as_py()
        if batch[TAG].null_count or lowest is None or lowest < 0:
            place = int(np.argmin(pc.fill_null(batch[TAG], -1).to_numpy(zero_copy_only=False)))
            raise QueryError(
                "a row without a tag",
                needed=f"rows with one of the tags {', '.join(self.questions[0].compiled.tags)}",
                came=str(_row(batch, place, [*self.keys, *self.orders, *self.kept])),
                hint="tags={...} with a condition for it, or others='ignore'",
            )

    def _require_no_ties(self, batch: Any, last: Any, numbers: Array, goes_on: bool) -> None:
        if goes_on:
            batch = pa.Table.from_batches([last, batch]).combine_chunks().to_batches()[0]
            numbers = np.concatenate([numbers[:1], numbers])
        count = batch.num_rows
        is_tie = numbers[1:] == numbers[:-1]
        for name in self.orders:
            is_tie &= ~_differ(batch[name].slice(0, count - 1), batch[name].slice(1))
        if not is_tie.any():
            return
        matters = np.zeros(count - 1, dtype=bool)
        for name in (TAG, *(f"{FIELD}{place}" for place in range(self.fields))):
            matters |= _differ(batch[name].slice(0, count - 1), batch[name].slice(1))
        if not (is_tie & matters).any():
            return  # of equal rows it does not matter which is first
        place = int(np.argmax(is_tie & matters))
        raise tie(_row(batch, place, [*self.keys, *self.orders]))

    def _table(self, batch: Any, answers: Sequence[Answers]) -> Any:
        columns = [batch[name] for name in self.kept]
        for answer in answers:
            at = len(columns)
            columns.append(answer.column(self.schema.field(at).type))
            names = pa.array(STATUS_NAMES)
            columns.append(names.take(pa.array(answer.status)))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def tie(row: dict[str, Any]) -> QueryError:
    """The error for two rows of which nobody can say which is first."""
    return QueryError(
        "two rows of one stream",
        needed="an order between them",
        came=f"different rows at {row}",
        hint="order_by=[...] with another column that tells them apart; or ties='any'",
    )


def _row(batch: Any, place: int, names: Sequence[str]) -> dict[str, Any]:
    return {name: batch[name][place].as_py() for name in dict.fromkeys(names)}


def _differ(one: Any, other: Any) -> Array:
    """Which values of two columns differ; null and NaN are equal to themselves."""
    try:
        both_differ = pc.fill_null(pc.not_equal(one, other), False)
    except pa.ArrowNotImplementedError:  # records, lists and the like
        return np.array([repr(a) != repr(b) for a, b in zip(one.to_pylist(), other.to_pylist(), strict=True)], bool)
    if pa.types.is_floating(one.type):
        both_nan = pc.fill_null(pc.and_(pc.is_nan(one), pc.is_nan(other)), False)
        both_differ = pc.and_not(both_differ, both_nan)
    one_null = pc.xor(pc.is_null(one), pc.is_null(other))
    found: Array = pc.or_(both_differ, one_null).to_numpy(zero_copy_only=False)
    return found


def _changes(
    answers: Sequence[Answers], columns: Sequence[Any], numbers: Array, before: list[tuple[int, Any]] | None
) -> tuple[Array, list[tuple[int, Any]]]:
    """Which rows have an answer that differs from the one before, in the same stream; and the last answers."""
    is_new = np.zeros(len(numbers), dtype=bool)
    is_new[0] = before is None
    is_new[1:] = numbers[1:] != numbers[:-1]
    last = []
    for place, (answer, values) in enumerate(zip(answers, columns, strict=True)):
        is_new[1:] |= answer.status[1:] != answer.status[:-1]
        is_new[1:] |= _differ(values.slice(0, len(values) - 1), values.slice(1))
        if before is not None:
            status, value = before[place]
            is_new[0] |= status != answer.status[0] or bool(_differ(value, values.slice(0, 1))[0])
        last.append((int(answer.status[-1]), values.slice(len(values) - 1)))
    return is_new, last
