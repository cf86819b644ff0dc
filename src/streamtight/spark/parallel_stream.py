"""A plan on running streams: micro-batch by micro-batch, with what is needed to go on after a stop or a crash.

In each micro-batch, those events are handled that no event still to come may precede: how far each stream has come is
known from its events and heartbeats. The others wait for a later batch. After a batch the states of all workers are
joined, and kept under the number of the batch, with how far the streams have come and with the events that wait. A
batch that is done again begins with what the batch before it kept, and so gives the same outputs again.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from streamtight.errors import InputError, StreamtightError, TraceError
from streamtight.method.parallelize.columns import KIND
from streamtight.method.parallelize.leaf import PLACE, RANK, TICK, stream_column
from streamtight.program.fork_join import BEGINNING, END, HEARTBEAT, Key
from streamtight.program.mailbox import release_bounds
from streamtight.program.plan import Plan, Share
from streamtight.program.tags import independent_tags
from streamtight.spark.checkpoint_text import VERSION, read_kept, refused
from streamtight.spark.live_journal import ProgressNotes, follow, journal_on
from streamtight.spark.parallel_inputs import inner_events, is_of, rank_column, stream_named, tick_column
from streamtight.spark.parallel_run import Given, Written, collected, packed_state, run
from streamtight.spark.sealed import opened, own_key, sealed
from streamtight.spark.session import java_class
from streamtight.spark.ship import require_shared
from streamtight.stream.plain import from_plain, plain

Output = str | Callable[[DataFrame, int], Any]
_KEPT = re.compile(r"([0-9]{1,18})\.kept")


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of a batch: the state, how far each stream has come, and how many events wait, by stream.

    Nothing of the plan: a query may go on with another one, for other workers.
    """

    program: str
    streams: tuple[str, ...]
    batch: int = -1
    state: bytes | None = None
    frontiers: Mapping[str, Key] = field(default_factory=dict)
    waiting: Mapping[str, int] = field(default_factory=dict)


# -- on disk -----------------------------------------------------------------------------------------------------------

# JSON, but for the state: that may be any object of the user's, so it is a pickle, and sealed.


def kept_text(kept: Kept, key: bytes) -> bytes:
    """What is kept of a batch, as its file has it."""
    state = None if kept.state is None else base64.b64encode(sealed(kept.state, key)).decode()
    frontiers = {
        name: [None if time == BEGINNING[0] else plain(time), rank, place]
        for name, (time, rank, place) in kept.frontiers.items()
    }
    data = {
        "streamtight": VERSION,
        "program": kept.program,
        "streams": kept.streams,
        "batch": kept.batch,
        "frontiers": frontiers,
        "waiting": dict(kept.waiting),
        "state": state,
    }
    return json.dumps(data).encode()


def kept_from(text: bytes, key: bytes, where: str) -> Kept:
    """The other way round. Raises CheckpointError for anything that this version did not write."""
    match read_kept(text, where):
        case {
            "program": str(program),
            "streams": list(streams),
            "batch": int(batch),
            "frontiers": dict(frontiers),
            "waiting": dict(waiting),
            "state": str() | None as state,
        }:
            try:
                blob = None if state is None else base64.b64decode(state, validate=True)
                came = {name: _frontier(*parts) for name, parts in frontiers.items()}
            except (ValueError, TypeError, TraceError) as error:
                raise refused(where, f"{type(error).__name__}: {error}"[:200]) from error
            if not all(type(count) is int for count in waiting.values()):
                raise refused(where, "counts that are none")
            packed = None if blob is None else opened(blob, key, where)
            return Kept(program, tuple(map(str, streams)), batch, packed, came, waiting)
    raise refused(where, "JSON of another kind")


def _frontier(time: object, rank: int, place: int) -> Key:
    if type(rank) is not int or type(place) is not int:
        raise TypeError("a place that is no number")
    return (BEGINNING[0] if time is None else from_plain(time, ()), rank, place)


class ParallelQuery:
    """A streaming query that runs a plan; made by `Parallelized.start`. It does what Spark's own queries do."""

    def __init__(
        self,
        plan: Plan,
        inputs: Mapping[str, DataFrame],
        *,
        checkpoint: str,
        output: Output,
        trigger: Mapping[str, Any] | None,
        most_waiting: int,
        board: str | os.PathLike[str] | None = None,
    ) -> None:
        for name, frame in inputs.items():
            if not getattr(frame, "isStreaming", False):
                raise InputError(
                    f"stream {name!r}", needed="a streaming DataFrame", came=repr(frame)[:80], hint="on_spark(inputs)"
                )
        if not isinstance(output, str) and not callable(output):
            raise InputError(
                "start(output=...)", needed="a folder or a function", came=repr(output), hint="output='totals'"
            )
        spark = next(iter(inputs.values())).sparkSession
        require_shared(spark, "start(checkpoint=...)", checkpoint)
        if isinstance(output, str):
            require_shared(spark, "start(output=...)", output)
        self._batches = _Batches(plan, inputs, checkpoint, output, most_waiting)
        writer = self._batches.rows().writeStream.foreachBatch(self._batches.handle)
        writer = writer.option("checkpointLocation", f"{checkpoint}/spark")
        if trigger:
            writer = writer.trigger(**trigger)
        self._query = writer.start()
        asks = f"{plan.program.name} on {len(plan.workers)} workers"
        journal = journal_on(board, checkpoint, kind="parallelize", asks=asks)
        if journal is not None:
            notes = ProgressNotes(self._query, journal, lambda: self._batches.waiting)
            follow(self._query, journal, notes.look, lambda: self._batches.error)

    @property
    def waiting(self) -> str:
        """Which events wait for which stream, in words; empty if none do."""
        return self._batches.told()

    def awaitTermination(self, timeout: int | None = None) -> bool | None:  # noqa: N802 - Spark's name
        """Wait until it ends, or for so many seconds; raises what ended it."""
        ended: bool | None = self._or_error(lambda: self._query.awaitTermination(timeout))
        return ended

    def processAllAvailable(self) -> None:  # noqa: N802 - Spark's name
        """Wait until all that is there now has been handled, or waits for another stream."""
        self._or_error(self._query.processAllAvailable)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._query, name)

    def _or_error(self, wait: Callable[[], Any]) -> Any:
        try:
            return wait()
        except Exception:
            if self._batches.error is not None:
                raise self._batches.error from None
            raise


class _Batches:
    """What is done with each micro-batch."""

    def __init__(
        self, plan: Plan, inputs: Mapping[str, DataFrame], checkpoint: str, output: Output, most_waiting: int
    ) -> None:
        self._plan, self._inputs, self._output, self._most_waiting = plan, inputs, output, most_waiting
        self._given = Given(plan)
        self._spark: SparkSession = next(iter(inputs.values())).sparkSession
        self._none = Kept(plan.program.name, tuple(stream.name for stream in plan.streams))
        self._folder = _Folder(self._spark, f"{checkpoint}/streamtight", self._none)
        self._kept = self._folder.last(None)
        self.error: Exception | None = None
        """What ended it."""

    @property
    def waiting(self) -> Mapping[str, int]:
        """How many events wait, by stream."""
        return dict.fromkeys(self._none.streams, 0) | dict(self._kept.waiting)

    def rows(self) -> DataFrame:
        """The rows of all streams as one streaming DataFrame: tick, rank, place, and a column for each stream."""
        return self._together(self._inputs)

    def _together(self, frames: Mapping[str, DataFrame]) -> DataFrame:
        parts = []
        for name, frame in frames.items():
            stream, place = stream_named(self._plan, name), self._plan.stream_place(name)
            columns = (F.col(f"`{column}`") for column in frame.columns)
            parts.append(
                frame.select(
                    tick_column(self._plan, name, frame).alias(TICK),
                    rank_column(self._plan, stream, frame).alias(RANK),
                    F.lit(place).alias(PLACE),
                    F.struct(*columns).alias(stream_column(place)),
                )
            )
        return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)

    def handle(self, came: DataFrame, batch: int) -> None:
        """Handle a micro-batch; called by Spark."""
        came.persist()
        try:
            self._handle(came, batch)
        except StreamtightError as error:
            self.error = error
            raise
        except Exception as error:
            # Spark looks in the text whether a stop was the cause, with a pattern that overflows on long ones. So it
            # is given a short one; the error itself is kept.
            self.error = error
            kind = type(error)
            raise RuntimeError(f"{kind.__module__}.{kind.__qualname__}: {str(error)[:300]}") from None
        finally:
            came.unpersist()

    def _handle(self, came: DataFrame, batch: int) -> None:
        before = self._folder.last(batch)
        if before.batch != batch - 1:
            raise InputError(
                f"checkpoint of {self._plan.program.name}, batch {batch}",
                needed=f"what batch {batch - 1} kept, in {self._folder.path}",
                came=f"what batch {before.batch} kept" if before.batch >= 0 else "nothing",
                hint="both folders of a checkpoint, spark and streamtight, as they were left; or a new checkpoint",
            )
        frontiers = self._advanced(before, came)
        there = came if not any(before.waiting.values()) else came.unionByName(self._folder.events(before.batch, came))
        frames = {
            name: there.where(F.col(PLACE) == place).select(f"{stream_column(place)}.*")
            for name, place in ((name, self._plan.stream_place(name)) for name in self._inputs)
        }
        keys = self._known_keys(frames)
        bounds = release_bounds(self._plan, frontiers, keys)
        released = {name: frame.where(self._is_released(name, frame, bounds)) for name, frame in frames.items()}
        if callable(self._output):
            pieces, state = run(self._spark, self._plan, released, before.state, collected)
            self._output(self._given.frame(self._spark, pieces), batch)
        else:
            # A batch that is done again gives the same events again, in the place of those that it gave before.
            with Written(self._spark, self._given, f"{self._output}/batch={batch}") as written:
                _, state = run(self._spark, self._plan, released, before.state, written.write)
        waiting = self._keep_events(batch, there, frames, bounds, frontiers)
        self._kept = replace(self._none, batch=batch, state=packed_state(state), frontiers=frontiers, waiting=waiting)
        self._folder.keep(self._kept)
        if sum(waiting.values()) > self._most_waiting:
            raise InputError(
                f"streams of {self._plan.program.name}",
                needed=f"at most {self._most_waiting} events that wait (most_waiting=)",
                came=self.told(),
                hint=f"a larger most_waiting= to go on from this checkpoint, and heartbeats on the streams that are "
                f"waited for: rows with {KIND!r} = {HEARTBEAT!r} and a time",
            )

    # -- how far the streams have come ---------------------------------------------------------------------------

    def _advanced(self, before: Kept, came: DataFrame) -> dict[str, Key]:
        """How far each stream has come with this batch; raises if one went back."""
        names = [stream.name for stream in self._plan.streams]
        frontiers = {name: before.frontiers.get(name, (*BEGINNING[:2], place)) for place, name in enumerate(names)}
        key = F.struct(TICK, RANK)
        found = came.groupBy(PLACE).agg(
            F.min(key).alias("first"),
            F.max(key).alias("last"),
            F.count(F.when(F.col(TICK).isNull(), 1)).alias("none"),
        )
        for row in found.collect():
            name = names[row[PLACE]]
            first, last = (tuple(row["first"]), tuple(row["last"]))
            came_first = None if row["none"] else (*first, row[PLACE])
            after = "after" if frontiers[name][1] == len(self._plan.program.takes) else "from"  # after a heartbeat
            if came_first is None or not came_first >= frontiers[name]:
                raise InputError(
                    f"stream {name!r}",
                    needed=f"times {after} {frontiers[name][0]}, since it had come so far",
                    came="a row without a time" if came_first is None else f"time {first[0]}",
                    hint="a stream for each source that is in order: each partition of a topic, for instance",
                )
            frontiers[name] = (*last, row[PLACE])
        return frontiers

    def _known_keys(self, frames: Mapping[str, DataFrame]) -> dict[Share, Sequence[Key] | None]:
        """The keys of events that are handled on the driver: with them, others need not wait longer than they must."""
        keys: dict[Share, Sequence[Key] | None] = {}
        for worker, events in inner_events(self._plan, frames).items():
            for share in worker.shares:
                keys[share] = [key for key, _, its in events if its is share]
        return keys

    def _is_released(self, name: str, frame: DataFrame, bounds: Mapping[Share, Key]) -> Column:
        """Whether a row is handled in this batch; what nobody handles is, too: the run says so."""
        stream = stream_named(self._plan, name)
        tick, released = tick_column(self._plan, name, frame), F.lit(True)
        for share in self._shares_of(name):
            bound = bounds[share]
            own = (self._plan.program.rank(share.tags.kind), self._plan.stream_place(name))
            if bound[0] in (BEGINNING[0], END[0]):  # before and beyond all times, also infinite ones
                below = F.lit(bound[0] == END[0])
            else:
                below = tick <= F.lit(bound[0]) if own < bound[1:] else tick < F.lit(bound[0])
            released = F.when(is_of(share, stream, frame), below).otherwise(released)
        return released

    def _shares_of(self, name: str) -> Iterator[Share]:
        return (share for worker in self._plan.workers for share in worker.shares if share.stream == name)

    # -- what waits ----------------------------------------------------------------------------------------------

    def _keep_events(
        self,
        batch: int,
        there: DataFrame,
        frames: Mapping[str, DataFrame],
        bounds: Mapping[Share, Key],
        frontiers: Mapping[str, Key],
    ) -> dict[str, int]:
        """Keep the events that wait; gives how many there are, by stream."""
        late = [name for name in frames if any(not bounds[share] > frontiers[name] for share in self._shares_of(name))]
        if not late:
            return {}
        waits = {name: frames[name].where(~self._is_released(name, frames[name], bounds)) for name in late}
        self._folder.keep_events(batch, self._together(waits))
        counts = self._folder.events(batch, there).groupBy(PLACE).count().collect()
        names = [stream.name for stream in self._plan.streams]
        return {names[row[PLACE]]: row["count"] for row in counts}

    def told(self) -> str:
        """Which events wait for which stream."""
        kept = self._kept
        told = []
        for name, count in kept.waiting.items():
            slowest = min(self._connected(name), key=lambda each: kept.frontiers[each])
            time, rank, _ = kept.frontiers[slowest]
            came = "on which nothing has come yet" if rank < 0 else f"which has come to time {time}"
            events = "event" if count == 1 else "events"
            told.append(
                f"{count} {events} of {name!r} {'waits' if count == 1 else 'wait'} for stream {slowest!r}, {came}"
            )
        return "; ".join(told)

    def _connected(self, name: str) -> set[str]:
        """The streams whose events must keep an order with those of this one, or with those of another that must."""
        tags = {stream.name: stream.tags for stream in self._plan.streams}
        found, waiting = {name}, [name]
        while waiting:
            one = tags[waiting.pop()]
            near = {
                n for n in tags if n not in found and not independent_tags(self._plan.program.depends, one, tags[n])
            }
            found |= near
            waiting += near
        return found


class _Folder:
    """Where batches are kept: in any file system that Spark knows."""

    def __init__(self, spark: SparkSession, path: str, none: Kept) -> None:
        """none   what there is before the first batch; it says whose batches these are"""
        self._spark, self.path, self._none = spark, path, none
        self._key = own_key()
        self._java_path = java_class(spark, "org.apache.hadoop.fs.Path")
        self._system = self._at("").getFileSystem(spark._jsc.hadoopConfiguration())

    def last(self, before: int | None) -> Kept:
        """What the last batch before this one kept; nothing, if there was none."""
        numbers = [int(found[1]) for name in self._names() if (found := _KEPT.fullmatch(name))]
        known = [number for number in numbers if before is None or number < before]
        if not known:
            return self._none
        stream = self._system.open(self._at(f"{max(known)}.kept"))
        try:
            text = bytes(stream.readAllBytes())
        finally:
            stream.close()
        kept = kept_from(text, self._key, f"checkpoint {self.path}, {max(known)}.kept")
        if (kept.program, kept.streams) != (self._none.program, self._none.streams):
            raise InputError(
                f"checkpoint {self.path}",
                needed=f"batches of {self._none.program} with the streams {', '.join(self._none.streams)}",
                came=f"batches of {kept.program} with the streams {', '.join(kept.streams)}",
                hint="another folder for another program",
            )
        return kept

    def _names(self) -> list[str]:
        if not self._system.exists(self._at("")):
            return []
        return [status.getPath().getName() for status in self._system.listStatus(self._at(""))]

    def keep(self, kept: Kept) -> None:
        """Keep a batch: all of it or nothing; and forget what is not needed any more."""
        new, final = self._at(f"{kept.batch}.new"), self._at(f"{kept.batch}.kept")
        stream = self._system.create(new, True)
        stream.write(bytearray(kept_text(kept, self._key)))
        stream.close()
        self._system.delete(final, False)
        self._system.rename(new, final)
        # This batch may be done again as long as the next is not begun: the one before it is still needed.
        for name in self._names():
            if name.split(".")[0].isdigit() and int(name.split(".")[0]) < kept.batch - 1:
                self._system.delete(self._at(name), True)

    def keep_events(self, batch: int, events: DataFrame) -> None:
        """Keep events that wait."""
        events.write.mode("overwrite").parquet(f"{self.path}/{batch}.events")

    def events(self, batch: int, like: DataFrame) -> DataFrame:
        """The events that a batch kept."""
        return self._spark.read.schema(like.schema).parquet(f"{self.path}/{batch}.events")

    def _at(self, name: str) -> Any:
        return self._java_path(f"{self.path}/{name}" if name else self.path)
