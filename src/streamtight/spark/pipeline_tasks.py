"""What tasks do for a pipeline: the rows of a key, from its state to the next, and what came out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd
from pyspark.sql.types import DataType, DoubleType, FloatType, LongType, StructType, TimestampType

from streamtight.errors import PipelineError, QueryError, StreamtightError
from streamtight.method.watch.questions import NULLS, ORDER
from streamtight.program.limits import Stopped
from streamtight.program.pipeline import Pipeline
from streamtight.program.pipeline_state import Mark, another_pipeline, packed_state, unpacked_state
from streamtight.program.processor import NOTHING, State, Value
from streamtight.spark.rows import Table, kind_of
from streamtight.spark.watch_tasks import UNORDERED, KeyTask

LATE = "late"
_DTYPES: dict[str, Any] = {"boolean": "boolean", "float": "Float64", "double": "Float64", "timestamp": "Int64"}
_DTYPES |= dict.fromkeys(("tinyint", "smallint", "int", "bigint"), "Int64")
"""Types of pandas that have nulls."""


def carried_type(data_type: DataType) -> DataType:
    """The type in which an output leaves a task: pandas would round times, and has floats of one width."""
    if isinstance(data_type, FloatType):
        return DoubleType()
    return LongType() if isinstance(data_type, TimestampType) else data_type


@dataclass(frozen=True)
class PipelineTask(KeyTask):
    """What is done with the rows of one key in a micro-batch: each is a push.

    Order, waiting rows, late rows and time limits are those of watched streams.

    times      which fields are timestamps, and come as microseconds
    outputs    the names and types of the outputs
    on_null    "ignore": null is no event; "pass": None is an event; "refuse"
    on_late    "refuse" rows that come too late for their place, "drop" them, or "tell" them in a column
    ends       whether the streams end with the last row
    """

    pipeline: Pipeline
    mark: Mark
    times: Sequence[bool]
    outputs: StructType
    on_null: str
    on_late: str
    ends: bool

    def __call__(self, key: tuple[Any, ...], frames: Iterable[Any], state: Any) -> Iterator[Any]:
        try:
            yield from filter(len, super().__call__(key, frames, state))
        except QueryError as error:  # about the order of rows
            raise _of_pipeline(error) from error

    def sorted(self, frames: Iterable[Any]) -> Iterator[Any]:
        """The same for rows that end, sorted by key and order."""
        run: _Run | None = None
        for frame in frames:
            for key, rows in self._pieces(frame):
                if run is None or run.key != key:
                    yield from self._ended(run)
                    run = _Run(key, self.pipeline.start())
                try:
                    self._require_sorted(run, rows)
                except QueryError as error:
                    raise _of_pipeline(error) from error
                run.state, made = self._pushed(key, rows, run.state)
                run.last = rows.iloc[-1:]
                if len(made):  # PySpark cannot make all empty columns of pandas columns of Arrow
                    yield made
        yield from self._ended(run)

    # -- states --------------------------------------------------------------------------------------------------------

    def _known(self, state: Any) -> tuple[Any, Any, Any, Any]:
        try:
            return super()._known(state)
        except QueryError as error:
            raise another_pipeline(self.pipeline, "a query in its place") from error

    def _answered(self, key: tuple[Any, ...], rows: Any, states: Any, before: Any) -> tuple[Any, Any, Any]:
        state = unpacked_state(self.pipeline, self.mark, states[0][0]) if states else self.pipeline.start()
        state, made = self._pushed(key, rows, state)
        return made, [(packed_state(self.pipeline, self.mark, state),)], None

    # -- rows that are sorted ------------------------------------------------------------------------------------------

    def _pieces(self, frame: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
        """The rows of each key."""
        keys = list(zip(*(frame[name].tolist() for name in self.keys), strict=True)) or [()] * len(frame)
        begin = 0
        for place in range(1, len(keys) + 1):
            if place == len(keys) or keys[place] != keys[begin]:
                yield keys[begin], frame.iloc[begin:place].reset_index(drop=True)
                begin = place

    def _require_sorted(self, run: _Run, rows: Any) -> None:
        if any(null & UNORDERED for null in rows[NULLS].tolist()):
            raise PipelineError(
                f"a row of {self._told(run.key)}",
                needed="a value in every column of order_by, as it orders rows",
                came="null",
                hint="a filter",
            )
        parts = rows if run.last is None else pd.concat([run.last, rows], ignore_index=True)
        orders = zip(*(parts[f"{ORDER}{place}"].tolist() for place in range(self.orders)), strict=True)
        self._require_order(run.key, parts, list(orders))

    def _ended(self, run: _Run | None) -> Iterator[Any]:
        if run is None or not self.ends:
            return
        _, outs = self._push(run.key, run.state, (NOTHING,) * len(self.times), ends=True)
        if any(out is not NOTHING for out in outs):
            yield self._made(run.key, run.last, [outs])

    # -- pushes --------------------------------------------------------------------------------------------------------

    def _pushed(self, key: tuple[Any, ...], rows: Any, state: State) -> tuple[State, Any]:
        """The state after these rows, and the rows at which something came out."""
        places, given = [], []
        for place, front in enumerate(zip(*self._events(key, rows), strict=True)):
            if all(event is NOTHING for event in front):
                continue
            state, outs = self._push(key, state, front)
            if any(out is not NOTHING for out in outs):
                places.append(place)
                given.append(outs)
        return state, self._made(key, rows.iloc[places], given)

    def _events(self, key: tuple[Any, ...], rows: Any) -> list[list[Value]]:
        """For each input its events, or NOTHING."""
        columns = self._columns(rows)
        for place, (name, is_time) in enumerate(zip(self.pipeline.inputs, self.times, strict=True)):
            column = columns[place]
            if is_time:
                column = [None if each is None else TimestampType().fromInternal(each) for each in column]
            if self.on_null == "refuse" and None in column:
                raise PipelineError(
                    f"{self.pipeline.name}: the input {name!r} of {self._told(key)}",
                    needed="an event in every row",
                    came="null",
                    hint="nulls='ignore' if null is no event, nulls='pass' if it is the event None",
                )
            if self.on_null == "ignore":
                column = [NOTHING if each is None else each for each in column]
            columns[place] = column
        return columns

    def _push(
        self, key: tuple[Any, ...], state: State, front: tuple[Value, ...], *, ends: bool = False
    ) -> tuple[State, tuple[Value, ...]]:
        try:
            return self.pipeline.push(state, front, ends=ends)
        except Stopped as stopped:
            where, came, cause = stopped.where, stopped.text, stopped.__cause__
        except StreamtightError as error:  # of a box itself
            where, came, cause = error.where, f"{error.came} instead of {error.needed}", error
        raise PipelineError(
            f"{self.pipeline.name}: {where} for {self._told(key)}",
            needed="a step for every event",
            came=came,
            hint=f"the same without Spark: {self.pipeline.name}.run([...]) with the rows of this key",
        ) from cause

    def _told(self, key: tuple[Any, ...]) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in zip(self.keys, key, strict=True)) or "the stream"

    # -- what comes out ------------------------------------------------------------------------------------------------

    @cached_property
    def _table(self) -> Table:
        return Table([kind_of(self.pipeline.name, self.outputs)])

    def _made(
        self, key: tuple[Any, ...], rows: Any, given: Sequence[tuple[Value, ...]], *, is_late: bool = False
    ) -> Any:
        """A frame with these rows and these outputs."""
        table = self._table
        fitting = []
        for outs in given:
            values = [None if out is NOTHING else out for out in outs]
            try:
                fitting.append(table.to_row(table.kinds[0](*values)))
            except StreamtightError as error:
                raise PipelineError(
                    f"{error.where} for {self._told(key)}",
                    needed=error.needed,
                    came=error.came,
                    hint=f"gives={{...}} with another type; or {error.hint}",
                ) from error
        made = self._begun(key, rows)
        nulls = [0] * len(fitting)
        for place, field in enumerate(self.outputs):
            kind = field.dataType.simpleString()
            values = [row[place] for row in fitting]
            if kind == "timestamp":
                values = [None if each is None else TimestampType().toInternal(each) for each in values]
            # pandas makes null of NaN; so nulls are noted beside it.
            nulls = [null | ((each is None) << place) for null, each in zip(nulls, values, strict=True)]
            made[field.name] = pd.array(values, dtype=_DTYPES.get(kind, object))
        made[NULLS] = pd.array(nulls, dtype="Int64")
        if self.on_late == "tell":
            made[LATE] = [is_late] * len(fitting)
        return pd.DataFrame(made)

    def _late(self, key: tuple[Any, ...], rows: Any) -> Any:
        if self.on_late == "refuse":
            raise PipelineError(
                f"{self.pipeline.name}: a row of {self._told(key)}",
                needed="rows in their order: what comes after a later row cannot be pushed before it any more",
                came=f"a late one at {', '.join(f'{name} {rows[name].iloc[0]}' for name in self.kept)}",
                hint="wait='10 minutes', to put rows in order; late='tell' or late='drop' for what is later still",
            )
        nothing = (NOTHING,) * len(self.outputs)
        is_told = self.on_late == "tell"
        return self._made(
            key, rows if is_told else rows.iloc[:0], [nothing] * (len(rows) if is_told else 0), is_late=True
        )


@dataclass(slots=True)
class _Run:
    """The run of one key, while its rows are gone through."""

    key: tuple[Any, ...]
    state: State
    last: Any = None
    """Its last row, as a frame."""


def _of_pipeline(error: QueryError) -> PipelineError:
    return PipelineError(error.where, needed=error.needed, came=error.came, hint=error.hint)
