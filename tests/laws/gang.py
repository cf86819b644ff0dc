"""Spark's tasks for the leaves of a plan, without Spark: threads, rows in memory, and tasks that are lost."""

from __future__ import annotations

import pickle
import random
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from streamtight.method.parallelize.columns import Outputs
from streamtight.method.parallelize.files import Files
from streamtight.method.parallelize.gang import Gang, Lost
from streamtight.method.parallelize.leaf import NO_SHARE, NO_STREAM, PLACE, RANK, SHARE, TICK, stream_column
from streamtight.program.fork_join import HEARTBEAT, Heartbeat
from streamtight.program.plan import Plan, Share
from streamtight.spark.parallel_inputs import inner_events, require_known_order
from streamtight.spark.parallel_run import LeafTask
from streamtight.stream.event import Event, Kind

Items = list[Event | Heartbeat]


class Listed(Outputs):
    """Outputs as they are: what events of any type are packed as is tested elsewhere."""

    def __init__(self, schemas: Any = None) -> None:
        super().__init__({})
        self.blocks: list[tuple[Kind, dict[str, Any]]] = []

    def taken(self) -> list[tuple[str, bytes]]:
        events = list(self._events)
        self._events.clear()
        return [("", pickle.dumps(events))] if events else []


@dataclass(frozen=True)
class InMemory(Files):
    """A stream as files have it: for each lane, its rows in batches."""

    lanes: tuple[tuple[pa.RecordBatch, ...], ...] = ()

    def batches(self, lane: int = 0, lanes: int = 1) -> Iterator[pa.RecordBatch]:
        assert lanes == len(self.lanes)
        return iter(self.lanes[lane])


def rows_of(items: Iterable[Event | Heartbeat]) -> pa.RecordBatch:
    """Rows with a column `kind`, and null where a kind has no such field."""
    fields = dict.fromkeys(["time"])
    items = list(items)
    for item in items:
        if isinstance(item, Event):
            fields |= dict.fromkeys(item.kind.names)
    columns: dict[str, Any] = {"kind": [item.kind.name if isinstance(item, Event) else HEARTBEAT for item in items]}
    for name in fields:
        columns[name] = pa.array(
            [
                item.as_dict().get(name) if isinstance(item, Event) else (item.time if name == "time" else None)
                for item in items
            ],
            pa.float64() if any(isinstance(item.time, float) for item in items) and name == "time" else pa.int64(),
        )
    return pa.RecordBatch.from_pydict({"kind": pa.array(columns.pop("kind"), pa.string()), **columns})


def share_of(plan: Plan, name: str, event: Event, chance: random.Random) -> Share:
    """Whose event this is; lanes by chance."""
    fitting = [
        share for worker in plan.workers for share in worker.shares if share.stream == name and share.tags.holds(event)
    ]
    return chance.choice(fitting)


def run_gang(
    plan: Plan, streams: Mapping[str, Items], seed: int, *, as_files: bool, lost: int = 0, state: bytes | None = None
) -> tuple[list[Event], Any, int]:
    """The outputs of a plan, the last state, and how often all leaves came together.

    as_files   whether leaves read the streams themselves, or are given rows that are sorted
    lost       how many tries end with a task that is lost
    """
    chance = random.Random(seed)
    files, rows, sources, found = _inputs(plan, streams, chance, as_files)
    for worker in found:
        require_known_order(plan, worker, found, sources)
    events = {worker: [(key, event) for key, event, _ in mine] for worker, mine in found.items()}

    def outputs() -> tuple[Any, Any]:
        made = Listed()
        return made, made.taken

    host = chance.choice([None, "127.0.0.1"])
    gang = Gang(plan, state or pickle.dumps(plan.program.init()), events, outputs, host=host)
    task = LeafTask(plan, gang.address, gang.key, files, frozenset() if as_files else frozenset(streams), {})
    try:
        for attempt in range(lost + 1):
            unlucky = chance.randrange(len(plan.leaves)) if attempt < lost else None
            pieces = _tried(task, rows, unlucky, chance)
            if pieces is not None:
                break
        assert pieces is not None
        assert gang.is_settled()
        if gang.raised is not None:
            raise gang.raised.error or RuntimeError(gang.raised.trace)
        return [event for piece in pieces for event in pickle.loads(piece)], gang.state, gang.tries
    finally:
        gang.close()


def _tried(task: LeafTask, rows: list[Any], unlucky: int | None, chance: random.Random) -> list[bytes] | None:
    """The pieces of all leaves; None if one was lost."""
    results: list[list[bytes] | BaseException] = [[] for _ in rows]
    after = chance.randrange(3)

    def of_leaf(number: int) -> None:
        given = iter(rows[number])
        if number == unlucky:
            given = _then_lost(given, after)
        try:
            results[number] = [
                piece.as_py() for batch in task.of_leaf(number, given) for piece in batch.column("piece")
            ]
        except Lost as error:
            results[number] = error

    threads = [threading.Thread(target=of_leaf, args=(number,)) for number in range(len(rows))]
    chance.shuffle(threads)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive(), "a leaf hangs"
    for result in results:
        if isinstance(result, BaseException):
            if unlucky is None:
                raise AssertionError("a task was lost, and nobody had lost it") from result
            return None
    return [piece for result in results for piece in result]  # type: ignore[union-attr]


def _then_lost(given: Iterator[Any], after: int) -> Iterator[Any]:
    for place, each in enumerate(given):
        if place >= after:
            break
        yield each
    raise Lost


def _inputs(plan: Plan, streams: Mapping[str, Items], chance: random.Random, as_files: bool) -> tuple[Any, ...]:
    """Files, rows for each leaf, sources, and the events of the workers on the driver."""
    lanes: dict[tuple[str, int, int], Items] = {}
    by_leaf: list[list[tuple[Any, int, int, Event, int]]] = [[] for _ in plan.leaves]
    inner: dict[Any, list[Any]] = {worker: [] for worker in plan.workers if not worker.is_leaf}
    for name, items in streams.items():
        stream = next(each for each in plan.streams if each.name == name)
        place = plan.stream_place(name)
        for lane in range(stream.lanes):
            lanes[name, lane, stream.lanes] = []
        for item in items:
            if isinstance(item, Heartbeat):
                for lane in range(stream.lanes):
                    lanes[name, lane, stream.lanes].append(item)
                continue
            share = share_of(plan, name, item, chance)
            lanes[name, share.lane, share.lanes].append(item)
            key = (item.time, plan.program.rank(item.kind), place)
            for worker in plan.workers:
                if share in worker.shares and worker.is_leaf:
                    by_leaf[plan.leaves.index(worker)].append((*key, item, worker.shares.index(share)))
                elif share in worker.shares:
                    inner[worker].append((key, item, share))
    if as_files:
        files = {
            stream.name: InMemory(
                (),
                (),
                tuple(tuple(_cut(lanes[stream.name, lane, stream.lanes], chance)) for lane in range(stream.lanes)),
            )
            for stream in plan.streams
        }
        return files, [[] for _ in plan.leaves], files, inner_events(plan, files)
    rows = []
    for mine in by_leaf:
        chance.shuffle(mine)  # rows of Spark with equal keys are in no order
        mine.sort(key=lambda each: each[:3])
        rows.append(list(_mixed(plan, mine, chance)))
    for events in inner.values():
        chance.shuffle(events)
        events.sort(key=lambda each: each[0])
    return {}, rows, dict.fromkeys(streams), inner


def _cut(items: Items, chance: random.Random) -> Iterator[pa.RecordBatch]:
    whole = rows_of(items)
    start = 0
    while start < whole.num_rows:
        stop = start + chance.choice([1, 2, 5])
        yield whole.slice(start, stop - start)
        start = stop


def _mixed(plan: Plan, mine: list[Any], chance: random.Random) -> Iterator[pa.RecordBatch]:
    """Rows of several streams, with a row first that belongs to none."""
    times = pa.float64() if mine and isinstance(mine[0][0], float) else pa.int64()
    start = -1
    while start < len(mine):
        some = mine[max(start, 0) : start + chance.choice([1, 2, 5])] if start >= 0 else []
        columns: dict[str, Any] = {
            TICK: pa.array([each[0] for each in some] or [None], times),
            RANK: pa.array([each[1] for each in some] or [None], pa.int32()),
            SHARE: pa.array([each[4] for each in some] or [NO_SHARE], pa.int32()),
            PLACE: pa.array([each[2] for each in some] or [NO_STREAM], pa.int32()),
        }
        for place in range(len(plan.streams)):
            chosen = rows_of([each[3] for each in some if each[2] == place])
            struct = pa.StructArray.from_arrays(chosen.columns, chosen.schema.names)
            spread = np.cumsum([each[2] == place for each in some]) - 1 if some else np.array([0])
            taken = pa.array(spread, mask=np.array([each[2] != place for each in some] or [True]))
            columns[stream_column(place)] = struct.take(taken)
        yield pa.RecordBatch.from_pydict(columns)
        start = max(start, 0) + len(some)
