"""Letters: what a temporal formula sees of one micro-batch.

>>> from streamtight.stream.event import Kind
>>> N = Kind("N", n=int)
>>> letter = Letter({"input": (N(1), N(2))}, {"output": (N(3),)}, batch=0)
>>> len(letter.input), letter.output[0].n, letter["output"]
(2, 3, (N(n=3),))
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from streamtight.errors import FormulaError, UnsupportedError
from streamtight.program.run import Run, Step
from streamtight.stream.event import Event, Kind
from streamtight.stream.schedule import Batch

INPUT, OUTPUT = "input", "output"
"""What the only input and the only output of a job are called."""

Rows = tuple[Event, ...]
ToFrame = Callable[[str, Rows], Any]
"""Makes a DataFrame of the rows of a stream."""


@dataclass(frozen=True, slots=True)
class Letter:
    """The rows that went in and came out in one micro-batch, of every stream, and what time it was."""

    inputs: Mapping[str, Rows]
    """The rows of each input, by its name."""
    outputs: Mapping[str, Rows]
    """The rows of each output, by its name."""
    batch: int = 0
    """The number of the micro-batch."""
    watermark: datetime | None = None
    """The watermark that Spark reports with it; None if the job has none."""
    time: datetime | None = None
    """The latest time in the input so far; before there is one, the first to come. None if rows have no time."""
    previous: Letter | None = field(default=None, repr=False, compare=False)
    """The letter before; None if it is the first, or was made by hand."""
    to_frame: ToFrame | None = field(default=None, repr=False, compare=False)

    @property
    def input(self) -> Rows:
        """The rows of the only input."""
        return self._only(self.inputs, "input")

    @property
    def output(self) -> Rows:
        """The rows of the only output."""
        return self._only(self.outputs, "output")

    def __getitem__(self, stream: str) -> Rows:
        """The rows of an input or an output, by its name."""
        for streams in (self.inputs, self.outputs):
            if stream in streams:
                return streams[stream]
        raise FormulaError(
            f"letter[{stream!r}]",
            needed="one of " + ", ".join(map(repr, (*self.inputs, *self.outputs))),
            came=repr(stream),
            hint=f"letter[{next(iter(self.outputs), OUTPUT)!r}]",
        )

    def __contains__(self, name: object) -> bool:
        raise FormulaError(
            f"now({name!r})",
            needed="a test of a letter, which holds the rows of a micro-batch",
            came=f"the name {name!r}",
            hint="now(lambda letter: len(letter.output) > 0)",
        )

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"a letter has no {name!r}; it has input, output, batch, watermark, time, so_far() and frame()"
        )

    def so_far(self, stream: str) -> Rows:
        """The rows of a stream up to now, the current ones last: what a job with state has seen."""
        batches: list[Rows] = []
        letter: Letter | None = self
        while letter is not None:
            batches.append(letter[stream])
            letter = letter.previous
        return tuple(row for rows in reversed(batches) for row in rows)

    def frame(self, stream: str = OUTPUT) -> Any:
        """The rows of a stream as a DataFrame, for tests that are easier to write in Spark."""
        rows = self[stream]
        if self.to_frame is None:
            raise UnsupportedError(
                f"letter.frame({stream!r})",
                needed="a letter that came from Spark",
                came="one that was made by hand",
                hint=f"letter[{stream!r}], the rows themselves",
            )
        return self.to_frame(stream, rows)

    def _only(self, streams: Mapping[str, Rows], what: str) -> Rows:
        if len(streams) == 1:
            return next(iter(streams.values()))
        raise FormulaError(
            f"letter.{what}",
            needed=f"a job with one {what}",
            came=f"{len(streams)}: {', '.join(map(repr, streams))}",
            hint=f"letter[{next(iter(streams), what)!r}]",
        )


def start_of(batches: Iterable[Batch]) -> datetime | None:
    """What time it is while no row has come that has one: that of the first batch with such a row."""
    for batch in batches:
        times = [value for event in flat(batch) for value in event[1:] if isinstance(value, datetime)]
        if times:
            return max(times)
    return None


def letters_of(
    runs: Mapping[str, Run], inputs: Mapping[str, Sequence[Kind]], to_frame: ToFrame | None = None
) -> tuple[Letter, ...]:
    """The word of a run, or of one run for each output: a letter for every micro-batch.

    What Spark runs at the end on its own, or to flush, is a letter only if it brought rows: whether there is such a
    micro-batch is nothing that the job has promised.
    """
    first = next(iter(runs.values()))
    word = Word(inputs, to_frame, start_of(step.input for step in first.steps))
    longest = max(len(run.steps) for run in runs.values())
    for place in range(longest):
        steps = {name: run.steps[place] for name, run in runs.items() if place < len(run.steps)}
        word.add(steps, runs)
    return tuple(word.letters)


class Word:
    """The letters of a run, made while it goes on."""

    def __init__(
        self, inputs: Mapping[str, Sequence[Kind]], to_frame: ToFrame | None = None, start: datetime | None = None
    ) -> None:
        self.letters: list[Letter] = []
        self._input_of = {kind: name for name, kinds in inputs.items() for kind in kinds}
        self._inputs = inputs
        self._time = start or _earliest(inputs)
        self._to_frame = to_frame

    def add(self, steps: Mapping[str, Step], outputs: Sequence[str] | Mapping[str, object]) -> Letter | None:
        """The letter of these steps, one for each output that has it; None if it is none."""
        first = next(iter(steps.values()))
        rows = {name: flat(steps[name].output) if name in steps else () for name in outputs}
        if not first.cause.is_given and not any(rows.values()):
            return None
        inputs: dict[str, list[Event]] = {name: [] for name in self._inputs}
        for event in flat(first.input):
            inputs[self._input_of[event.kind]].append(event)
            for value in event[1:]:
                if isinstance(value, datetime) and (self._time is None or value > self._time):
                    self._time = value
        watermarks = [step.watermark for step in steps.values() if step.watermark is not None]
        letter = Letter(
            {name: tuple(given) for name, given in inputs.items()},
            rows,
            batch=first.batch,
            watermark=max(watermarks, default=None),
            time=self._time,
            previous=self.letters[-1] if self.letters else None,
            to_frame=self._to_frame,
        )
        self.letters.append(letter)
        return letter


def _earliest(inputs: Mapping[str, Sequence[Kind]]) -> datetime | None:
    """A time for a case without rows, if rows would have one."""
    types = [declared for kinds in inputs.values() for kind in kinds for declared in kind.fields.values()]
    return datetime(1970, 1, 1) if any(t is datetime or datetime in typing.get_args(t) for t in types) else None


def flat(batch: Batch) -> Rows:
    """The rows of a batch, partition by partition."""
    return tuple(event for partition in batch for event in partition)
