"""Runs: what a back end hands to a method. A run is a list of steps, one for each micro-batch; nothing in it judges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from streamtight.stream.event import Event
from streamtight.stream.schedule import Batch, Batches, delivered


class Cause(Enum):
    """Why a micro-batch ran."""

    DATA = "data"
    """The schedule has it."""
    REPLAY = "replay"
    """It had run before, but was not committed when the job stopped."""
    IDLE = "idle"
    """Spark ran one without input, for what the watermark has closed."""
    FLUSH = "flush"
    """The watermark was moved to the end of time, so that everything still open closes."""

    @property
    def is_given(self) -> bool:
        """Whether the schedule asked for it, or for its replay."""
        return self in (Cause.DATA, Cause.REPLAY)


@dataclass(frozen=True, slots=True)
class Step:
    """One micro-batch: what went in, what came out, by partition and in order, and what Spark said about it.

    The place of a row is its index: `step.output[partition][offset]`.
    """

    batch: int
    cause: Cause
    input: Batch
    output: Batch
    watermark: datetime | None = None
    """The watermark that Spark reports with this batch, in local time as events are; None if the job has none."""
    state_rows: int | None = 0
    """How many rows the job keeps in its state after this batch; None if that is not known, as for packed runs."""
    late_rows: int | None = 0
    """How many rows it dropped for being late, as Spark counts them: after rows of one batch were added up."""
    milliseconds: Mapping[str, int] = field(default_factory=dict, repr=False)
    """How long the parts of it took, by Spark's names; `triggerExecution` is the whole."""


@dataclass(frozen=True, slots=True)
class Run:
    """Every step of one run of a job."""

    steps: tuple[Step, ...]
    open: tuple[Event, ...] | None = None
    """What the job still keeps in its state at the end, if that was asked for: windows that did not close, and such."""

    @property
    def batches(self) -> Batches:
        """What came out, step by step: a sink that appends whatever it is given has this."""
        return tuple(step.output for step in self.steps)

    @property
    def committed(self) -> Batches:
        """What came out, each batch once: a sink that replaces a batch that comes again has this."""
        last = {step.batch: step.output for step in self.steps}
        return tuple(last[batch] for batch in sorted(last))

    @property
    def events(self) -> tuple[Event, ...]:
        """One order in which a consumer of `batches` may see the output."""
        return tuple(delivered(self.batches))

    @property
    def open_rows(self) -> int | None:
        """How many rows the job keeps in its state at the end: windows that did not close, rows that found no match."""
        return self.steps[-1].state_rows if self.steps else 0
