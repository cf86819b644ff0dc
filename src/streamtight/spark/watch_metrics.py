"""How a watched stream is doing: how much comes, how far behind it is, and how often there was no answer."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.streaming.listener import StreamingQueryListener

from streamtight.method.watch.questions import CONFLICT, LATE, UNDEFINED, Question
from streamtight.spark.metrics_picture import Panel, chart

OBSERVED = "watch"
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


class WatchMetrics(StreamingQueryListener):
    """Listens to watched streams: `spark.streams.addListener(metrics)`.

    metrics.latest       the last micro-batch
    metrics.history      the last thousand
    metrics.totals()     for each query, how many answers were given, undefined, a conflict, late, and false
    """

    def __init__(self, keep: int = 1_000) -> None:
        self.history: deque[Progress] = deque(maxlen=keep)
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

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """What is known stays."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """Note what a micro-batch did, if it is one of a watched stream."""
        told = json.loads(event.progress.json)
        observed = event.progress.observedMetrics.get(OBSERVED)
        if observed is None:
            return
        counts: dict[str, dict[str, int]] = {}
        for name, value in observed.asDict().items():
            query, _, what = name.rpartition(" ")
            counts.setdefault(query, {})[what] = int(value or 0)
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
        )
        with self._lock:
            self.history.append(progress)
            for query, each in counts.items():
                mine = self._totals.setdefault(query, {})
                for what, count in each.items():
                    mine[what] = mine.get(what, 0) + count


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
    return frame.observe(OBSERVED, *counts)
