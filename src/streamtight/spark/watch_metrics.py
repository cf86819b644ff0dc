"""How a watched stream is doing: how much comes, how far behind it is, and how often there was no answer."""

from __future__ import annotations

import json
import os
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.types import NumericType

from streamtight.method.watch.questions import CONFLICT, LATE, UNDEFINED, Question
from streamtight.source.journal import Journal, board_of
from streamtight.spark.metrics_picture import Panel, chart

OBSERVED = "watch"
_SUMMED = {"min": sf.min, "avg": sf.avg, "max": sf.max}
_COUNTED = {"undefined": UNDEFINED, "conflict": CONFLICT, "late": LATE}


@dataclass(frozen=True, slots=True)
class Progress:
    """One micro-batch of a watched stream."""

    query: str
    """The name of the streaming query, or its id."""
    batch: int
    at: datetime
    rows: int
    """Rows that came in."""
    per_second: float
    """Rows that were handled for each second of the batch."""
    seconds: float
    """How long the batch took."""
    lag_seconds: float | None
    """How far the watermark is behind the clock; None without `wait=`."""
    keys: int
    """Keys that have a state."""
    counts: dict[str, dict[str, int]]
    """For each query: how many answers were given, undefined, a conflict, late, and false."""
    values: dict[str, dict[str, float]] = field(default_factory=dict)
    """For each query whose values are numbers: the lowest (min), the mean (avg) and the highest (max) of the batch; for
    each that is true or false: which share of its answers was true."""


class WatchMetrics(StreamingQueryListener):
    """Listens to watched streams: `spark.streams.addListener(metrics)`.

    metrics.latest       the last micro-batch
    metrics.history      the last thousand
    metrics.totals()     for each query, how many answers were given, undefined, a conflict, late, and false

    With a `board`, or if the environment variable STREAMTIGHT_BOARD names one, the live page shows them.
    """

    def __init__(self, keep: int = 1_000, *, board: str | os.PathLike[str] | None = None) -> None:
        self.history: deque[Progress] = deque(maxlen=keep)
        self._board = board_of(board)
        self._journals: dict[str, _Noted] = {}
        self._totals: dict[str, dict[str, int]] = {}
        self._lock = threading.Lock()

    @property
    def latest(self) -> Progress | None:
        """The last micro-batch; None before the first."""
        with self._lock:
            return self.history[-1] if self.history else None

    def totals(self) -> dict[str, dict[str, int]]:
        """For each query, how many answers were given, undefined, a conflict, late, and false, since it listens."""
        with self._lock:
            return {name: dict(counts) for name, counts in self._totals.items()}

    def picture(self) -> str:
        """The last micro-batches over time as an SVG picture: rows a second, seconds a batch, keys, lag."""
        with self._lock:
            history = tuple(self.history)
        panels = [
            Panel("rows a second", {"rows": [one.per_second for one in history]}),
            Panel("seconds a batch", {"seconds": [one.seconds for one in history]}),
            Panel("keys with a state", {"keys": [float(one.keys) for one in history]}),
        ]
        if any(one.lag_seconds is not None for one in history):
            panels.append(Panel("seconds behind the clock", {"lag": [one.lag_seconds for one in history]}))
        label = f"{len(history)} micro-batches of watched streams"
        return chart([one.at.timestamp() for one in history], panels, label=label)

    def _repr_html_(self) -> str:
        return self.picture()

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - the name is Spark's
        """Nothing is known yet."""

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Nothing has come."""
        noted = self._journals.get(str(event.id))
        if noted is not None:
            noted.journal.alive()

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """What is known stays."""
        noted = self._journals.pop(str(event.id), None)
        if noted is not None:
            noted.journal.end(event.exception or "")

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """Note what a micro-batch did, if it is one of a watched stream."""
        told = json.loads(event.progress.json)
        observed = event.progress.observedMetrics.get(OBSERVED)
        if observed is None:
            return
        counts: dict[str, dict[str, int]] = {}
        values: dict[str, dict[str, float]] = {}
        for name, value in observed.asDict().items():
            query, _, what = name.rpartition(" ")
            if what in _SUMMED:
                if value is not None:  # as it is without a defined answer
                    values.setdefault(query, {})[what] = float(value)
            else:
                counts.setdefault(query, {})[what] = int(value or 0)
        values |= {query: {"true": share} for query, each in counts.items() if (share := _share_true(each)) is not None}
        at = datetime.fromisoformat(told["timestamp"].replace("Z", "+00:00"))
        mark = told.get("eventTime", {}).get("watermark")
        lag = None
        if mark is not None:
            lag = (datetime.now(UTC) - datetime.fromisoformat(mark.replace("Z", "+00:00"))).total_seconds()
        progress = Progress(
            query=told.get("name") or told["id"],
            batch=told["batchId"],
            at=at,
            rows=told["numInputRows"],
            per_second=float(told.get("processedRowsPerSecond") or 0.0),
            seconds=told.get("durationMs", {}).get("triggerExecution", 0) / 1000,
            lag_seconds=lag,
            keys=sum(each.get("numRowsTotal", 0) for each in told.get("stateOperators", [])),
            counts=counts,
            values=values,
        )
        self._note(told["id"], progress)
        with self._lock:
            self.history.append(progress)
            for query, each in counts.items():
                mine = self._totals.setdefault(query, {})
                for what, count in each.items():
                    mine[what] = mine.get(what, 0) + count

    def _note(self, id_: str, progress: Progress) -> None:
        """Tell it on the board."""
        if self._board is None:
            return
        noted = self._journals.get(id_)
        if noted is None:
            asks = ", ".join(progress.counts)
            noted = self._journals[id_] = _Noted(Journal(self._board, progress.query, kind="watch", asks=asks))
        noted.add(progress)


class _Noted:
    """The journal of one streaming query, and what came since it is written."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self._rows = 0
        self._counts: dict[str, dict[str, float | None]] = {}

    def add(self, progress: Progress) -> None:
        """A micro-batch."""
        self._rows += progress.rows
        for query, each in progress.counts.items():
            mine = self._counts.setdefault(query, {})
            for what, count in each.items():
                mine[what] = (mine.get(what) or 0) + count
        self.journal.note(
            at=progress.at.timestamp() + progress.seconds,
            batch=progress.batch,
            rows={"rows": self._rows},
            rate=progress.per_second,
            lag=progress.lag_seconds,
            seconds=progress.seconds,
            keys=progress.keys,
            counts=self._counts,
            values=progress.values,
        )


def _share_true(counts: Mapping[str, int]) -> float | None:
    """Of the answers that are true or false; None for a query that is neither, or without any."""
    answered = counts["answers"] - sum(counts[what] for what in _COUNTED)
    return 1 - counts["false"] / answered if "false" in counts and answered > 0 else None


def observed(frame: DataFrame, questions: Sequence[Question]) -> DataFrame:
    """The frame, whose answers Spark counts on the way."""
    counts: list[Column] = []
    for question in questions:
        status = sf.col(f"`{question.status_name}`")
        counts.append(sf.count(sf.lit(1)).alias(f"{question.name} answers"))
        for what, name in _COUNTED.items():
            counts.append(sf.count_if(status == name).alias(f"{question.name} {what}"))
        if question.is_temporal:
            counts.append(sf.count_if(~sf.col(f"`{question.name}`")).alias(f"{question.name} false"))
        elif isinstance(frame.schema[question.name].dataType, NumericType):
            value = sf.col(f"`{question.name}`").cast("double")
            counts += [sum_up(value).alias(f"{question.name} {what}") for what, sum_up in _SUMMED.items()]
    return frame.observe(OBSERVED, *counts)
