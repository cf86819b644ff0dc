"""What the tasks of a graph on Spark do: bring events to their buckets, run a stage's operators there, and unpack.

Between stages events travel packed: one cell holds all events of a lane for a bucket, as plain values. Spark hands rows
to a stateful Python operator cell by cell, which would cost more than the operators.
"""

from __future__ import annotations

import functools
import operator
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import DataType, StructType, TimestampType

from streamtight.errors import SchemaError
from streamtight.program.network import Network, require_later
from streamtight.program.operators import Edge, Graph, Inlet, Outlet, Vertex, key_of, stable_hash
from streamtight.spark.rows import Table, arrow_values
from streamtight.spark.sealed import opened, sealed
from streamtight.stream.event import Event, Kind

PACKED = "edge long, bucket long, lane long, rows binary"
"""What tasks hand to the next stage, as Spark writes types."""

Packed = tuple[Any, ...]
"""The number of a kind, and the values of an event."""


@dataclass(frozen=True, slots=True)
class Route:
    """Where the events of an edge go: to the bucket of their key, markers to all buckets."""

    edge: int
    key: tuple[str, ...] | None
    """Empty: the whole item. None: all to the first bucket."""
    buckets: int

    def bucket(self, item: Event) -> int:
        """The bucket of an item."""
        if self.key is None:
            return 0
        return _bucket(key_of(item, self.key) if self.key else item, self.buckets)


@functools.lru_cache(maxsize=100_000)
def _hashed(key: Any) -> int:
    return stable_hash(key)


def _bucket(key: Any, buckets: int) -> int:
    return _hashed(key) % buckets


class Packing:
    """Collects events by edge and bucket, as they travel."""

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self._numbers = {kind: number for number, kind in enumerate(kinds)}
        self.cells: dict[tuple[int, int], list[Packed]] = {}

    def leaving(self, route: Route, markers: frozenset[Kind], place: Callable[[], Any]) -> Callable[[Event], None]:
        """Takes the events of an edge; `place` is kept with each of them."""
        numbers, cells = self._numbers, self.cells

        def take(event: Event) -> None:
            packed = (place(), numbers[event[0]], event[1:])
            buckets = range(route.buckets) if event[0] in markers else (route.bucket(event),)
            for bucket in buckets:
                cells.setdefault((route.edge, bucket), []).append(packed)

        return take


# -- into the first stage --------------------------------------------------------------------------------------------


class Enter:
    """Reads the rows of an inlet, runs the operators that need no state, and packs what comes out for a stage.

    Called by Spark with Arrow batches, whose last two columns are the lane and the position.
    """

    def __init__(
        self,
        graph: Graph,
        inlet: Inlet,
        vertices: Sequence[Vertex],
        routes: dict[Edge, Route],
        types: Sequence[DataType],
        table: Table,
        lanes: int,
        kinds: Sequence[Kind],
    ) -> None:
        self._graph, self._inlet, self._vertices, self._routes = graph, inlet, vertices, routes
        self._types, self._kinds, self._table = tuple(types), tuple(kinds), table
        self._lanes = lanes

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            *columns, lanes, positions = batch.columns
            values = [arrow_values(*pair) for pair in zip(columns, self._types, strict=True)]
            rows = map(self._table.from_row, zip(*values, strict=True))
            made = self._packed(zip(lanes.to_pylist(), positions.to_pylist(), rows, strict=True))
            if made:
                names = ("edge", "bucket", "lane", "rows")
                yield batch.from_pydict(dict(zip(names, map(list, zip(*made, strict=True)), strict=True)))

    def _packed(self, rows: Iterable[tuple[Any, Any, Event]]) -> list[tuple[int, int, int, bytes]]:
        lanes: dict[int, _Lane] = {}
        for lane, position, event in rows:
            if lane not in lanes:
                lanes[lane] = self._lane(lane)
            lanes[lane].enter(position, event)
        return [
            (edge, bucket, lane, pickle.dumps(cell, protocol=5))
            for lane, entered in lanes.items()
            for (edge, bucket), cell in entered.packing.cells.items()
        ]

    def _lane(self, number: Any) -> _Lane:
        if type(number) is not int or not 0 <= number < self._lanes:
            raise SchemaError(
                self._inlet.name, needed=f"lanes from 0 to {self._lanes - 1}", came=repr(number), hint="lanes=..."
            )
        lane = _Lane(Packing(self._kinds))
        markers = self._inlet.gives.markers

        def leave(edge: Edge) -> Callable[[Event], None]:
            route = self._routes.get(edge)
            return _nowhere if route is None else lane.packing.leaving(route, markers, lane.next_place)

        network = Network(self._graph, self._vertices, leave, is_first=number == 0)
        lane.feed = network.entrance(self._inlet)
        return lane


class _Lane:
    """A lane, as one task reads it: events that a row becomes stand at its position, one after the other."""

    feed: Callable[[Event], None]

    def __init__(self, packing: Packing) -> None:
        self.packing = packing
        self._position: Any = None
        self._events = 0

    def enter(self, position: Any, event: Event) -> None:
        if position is None:
            raise SchemaError("position", needed="a number in every row", came=f"null, for {event!r}", hint="a column")
        self._position, self._events = position, 0
        self.feed(event)

    def next_place(self) -> tuple[Any, int]:
        self._events += 1
        return (self._position, self._events)


def _nowhere(_: Event) -> None:
    """Another stage takes these."""


# -- a stage ---------------------------------------------------------------------------------------------------------


class Bucket(StatefulProcessor):
    """A bucket of a stage: its operators, on the keys of this bucket. Called by Spark with the events of a batch."""

    def __init__(
        self,
        graph: Graph,
        vertices: Sequence[Vertex],
        entries: dict[Edge, tuple[int, int]],
        routes: dict[Edge, Route],
        kinds: Sequence[Kind],
        buckets: int,
        key: bytes,
    ) -> None:
        """key   with which states are sealed, see sealed.py"""
        self._key = key
        self._graph, self._vertices, self._kinds, self._buckets = graph, vertices, tuple(kinds), buckets
        self._entries = entries
        """The edges that come in: their numbers, and on how many lanes."""
        self._routes = routes

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called by Spark before the first batch."""
        self._state = handle.getValueState("stage", "kept binary")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803 - Spark's names
        """Called by Spark for every bucket to which events came in a batch."""
        bucket = int(key[0])
        stored = self._state.get() if self._state.exists() else None
        kept = Kept(self._buckets) if stored is None else restored(bytes(stored[0]), self._key)
        made = self.work(bucket, kept, rows)
        self._state.update((storable(kept, self._key),))
        for (edge, to), cell in made.items():
            yield Row(edge=edge, bucket=to, lane=bucket, rows=pickle.dumps(cell, protocol=5))

    def close(self) -> None:
        """Called by Spark at the end."""

    def work(self, bucket: int, kept: Kept, rows: Iterable[Any]) -> dict[tuple[int, int], list[Packed]]:
        """What the events of a batch make of a bucket; `kept` is changed."""
        if kept.buckets != self._buckets:
            raise SchemaError(
                "on_spark(buckets=...)",
                needed=f"{kept.buckets}, as in the checkpoint",
                came=str(self._buckets),
                hint=f"buckets={kept.buckets}, or a new checkpoint",
            )
        packing = Packing(self._kinds)
        network = Network(self._graph, self._vertices, self._leave(bucket, kept, packing), is_first=bucket == 0)
        lanes = {edge: network.lanes(edge, count) for edge, (_, count) in self._entries.items()}
        network.state = kept.network
        for (edge, lane), events in self._arrived(rows).items():
            feed, markers = lanes[edge][lane], edge.start.gives.markers
            position, before = kept.last.get((str(edge), lane), (None, {}))
            for place, event in events:
                if position is not None and place <= position:
                    self._refuse_place(edge, lane, place, position)
                position = place
                if event[0] in markers:
                    require_later(event, before, str(edge))
                feed(event)
            kept.last[str(edge), lane] = (position, before)
        kept.network = network.state
        return packing.cells

    def _arrived(self, rows: Iterable[Any]) -> dict[tuple[Edge, int], list[tuple[Any, Event]]]:
        """The events of each lane, in their order."""
        numbers = {number: edge for edge, (number, _) in self._entries.items()}
        arrived: dict[tuple[Edge, int], list[tuple[Any, Event]]] = {}
        for row in rows:
            cell = pickle.loads(row["rows"])  # noqa: S301 - from our own task
            events = [(place, self._kinds[number](*values)) for place, number, values in cell]
            arrived.setdefault((numbers[row["edge"]], row["lane"]), []).extend(events)
        for events in arrived.values():
            events.sort(key=operator.itemgetter(0))
        return arrived

    def _leave(self, bucket: int, kept: Kept, packing: Packing) -> Callable[[Edge], Callable[[Event], None]]:
        def next_place() -> tuple[int, int]:
            kept.places += 1
            return (kept.places, 0)

        def leave(edge: Edge) -> Callable[[Event], None]:
            route, markers = self._routes.get(edge), edge.start.gives.markers
            if route is None:
                return _nowhere
            if not isinstance(edge.end, Outlet):
                return packing.leaving(route, markers, next_place)
            out = packing.cells.setdefault((route.edge, bucket), [])
            numbers = {kind: number for number, kind in enumerate(self._kinds)}

            def take(event: Event) -> None:
                block = kept.blocks.setdefault(edge.end.name, 0)
                if event[0] not in markers or bucket == 0:  # a marker once, though all buckets have it
                    out.append(((block, next_place()[0]), numbers[event[0]], event[1:]))
                if event[0] in markers:
                    kept.blocks[edge.end.name] = block + 1

            return take

        return leave

    def _refuse_place(self, edge: Edge, lane: int, place: Any, last: Any) -> None:
        raise SchemaError(
            f"{edge}, lane {lane}",
            needed="positions that grow, from batch to batch as well",
            came=f"{place[0]} after {last[0]}",
            hint='position="offset", a column that numbers the rows of a lane in their order',
        )


@dataclass(slots=True)
class Kept:
    """What a bucket remembers between batches."""

    buckets: int
    network: dict[str, Any] = field(default_factory=dict)
    last: dict[tuple[str, int], tuple[Any, dict[Any, Any]]] = field(default_factory=dict)
    """Of each lane of an edge: the place of its last event, and its last markers."""
    blocks: dict[str, int] = field(default_factory=dict)
    """Of each outlet: how many markers went there."""
    places: int = 0


def storable(kept: Kept, key: bytes) -> bytes:
    """What a bucket remembers, as Spark's state holds it: sealed, since the states of operators may be any objects."""
    plainly = (kept.buckets, kept.network, kept.last, kept.blocks, kept.places)  # no class of ours is named
    return sealed(pickle.dumps(plainly, protocol=5), key)


def restored(blob: bytes, key: bytes) -> Kept:
    """The other way round. Raises CheckpointError for what this user did not write."""
    where = "on_spark(...), the state of a stage in the checkpoint"
    return Kept(*pickle.loads(opened(blob, key, where)))  # noqa: S301 - with our seal, or plain values alone


# -- out -------------------------------------------------------------------------------------------------------------


class Leave:
    """Unpacks what goes into an outlet; called by Spark with Arrow batches."""

    def __init__(self, table: Table, columns: StructType, kinds: Sequence[Kind]) -> None:
        self._table, self._columns, self._kinds = table, columns, tuple(kinds)

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        from pyspark.sql.pandas.types import to_arrow_schema

        schema = to_arrow_schema(self._columns)
        writers = [_aware if isinstance(column.dataType, TimestampType) else None for column in self._columns.fields]
        for batch in batches:
            for lane, cell in zip(batch["lane"].to_pylist(), batch["rows"].to_pylist(), strict=True):
                rows = [
                    (*self._table.to_row(self._kinds[number](*values)), block, lane, place)
                    for (block, place), number, values in pickle.loads(cell)  # noqa: S301 - from our own task
                ]
                if rows:
                    columns = (
                        list(column) if write is None else list(map(write, column))
                        for column, write in zip(zip(*rows, strict=True), writers, strict=True)
                    )
                    yield batch.from_pydict(dict(zip(self._columns.names, columns, strict=True)), schema=schema)


def _aware(value: datetime | None) -> datetime | None:
    return None if value is None else value.astimezone()
