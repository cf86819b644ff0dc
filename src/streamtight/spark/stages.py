"""Graphs of typed operators as Structured Streaming: the frames between the stages of a graph."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import LongType, StructField, StructType

from streamtight.errors import GraphError
from streamtight.program.operators import Edge, Graph, Inlet, Outlet
from streamtight.program.placement import Placement, Stage
from streamtight.spark.rows import Table
from streamtight.spark.sealed import own_key
from streamtight.spark.stage_tasks import PACKED, Bucket, Enter, Leave, Route
from streamtight.stream.event import Event, Kind

OWN_COLUMNS = ("block", "lane", "place")


@dataclass(eq=False)
class Input:
    """The rows of an inlet: which column numbers them, and on how many lanes they come."""

    frame: DataFrame
    position: str
    lane: str | None = None
    lanes: int = 1


class Stages:
    """The stages of a graph, and what comes out of it."""

    def __init__(self, graph: Graph, inputs: Mapping[str, Input], buckets: int) -> None:
        self._graph, self._inputs, self._buckets = graph, inputs, buckets
        self._numbers = {edge: number for number, edge in enumerate(graph.edges)}
        self._kinds = sorted({kind for vertex in graph.vertices for kind in vertex.gives.kinds}, key=lambda k: k.name)
        self._placement = Placement(graph)
        self._key = own_key()
        self._frame = functools.cache(self._frame_of)

    def output(self, outlet: Outlet) -> DataFrame:
        """What goes into an outlet, as rows."""
        edge = self._graph.into(outlet)[0]
        table = Table(sorted(edge.start.gives.kinds, key=lambda kind: kind.name))
        _require_free(table, outlet.name)
        columns = StructType([*table.struct.fields, *(StructField(name, LongType(), False) for name in OWN_COLUMNS)])
        packed = self._frame(self._placement.stages[outlet]).where(sf.col("edge") == self._numbers[edge])
        return packed.mapInArrow(Leave(table, columns, self._kinds), columns)

    def _frame_of(self, stage: Stage) -> DataFrame:
        """What a stage gives, packed."""
        entries: dict[Edge, tuple[int, int]] = {}
        frames: list[DataFrame] = []
        for start, edges in self._placement.into(stage).items():
            lanes = self._inputs[start.name].lanes if isinstance(start, Inlet) else self._buckets
            entries.update({edge: (self._numbers[edge], lanes) for edge in edges})
            if isinstance(start, Inlet):
                frames.append(self._read(start, {edge: self._route(edge) for edge in edges}))
            else:
                numbers = [self._numbers[edge] for edge in edges]
                frames.append(self._frame(start).where(sf.col("edge").isin(numbers)))
        routes = {edge: self._route(edge) for edge in self._placement.out_of(stage)}
        bucket = Bucket(self._graph, stage.vertices, entries, routes, self._kinds, self._buckets, self._key)
        whole = functools.reduce(DataFrame.union, frames)
        return whole.groupBy("bucket").transformWithState(bucket, PACKED, "append", "none")

    def _route(self, edge: Edge) -> Route:
        return Route(self._numbers[edge], self._placement.stages[edge.end].key, self._buckets)

    def _read(self, inlet: Inlet, routes: dict[Edge, Route]) -> DataFrame:
        """The rows of an inlet, after the operators that need no state, packed for a stage."""
        given = self._inputs[inlet.name]
        table = Table(sorted(inlet.gives.kinds, key=lambda kind: kind.name))
        _require_columns(inlet.name, given, table)
        frame = given.frame.select(
            *table.struct.names,
            (sf.lit(0) if given.lane is None else sf.col(given.lane)).cast("long").alias("streamtight_lane"),
            sf.col(given.position).cast("long").alias("streamtight_position"),
        )
        vertices = self._placement.entering(inlet)
        types = [column.dataType for column in frame.schema.fields[:-2]]
        enter = Enter(self._graph, inlet, vertices, routes, types, table, given.lanes, self._kinds)
        return frame.mapInArrow(enter, PACKED)


def _require_columns(inlet: str, given: Input, table: Table) -> None:
    types = dict(given.frame.dtypes)
    wanted = [*table.struct.names, given.position, *([given.lane] if given.lane is not None else [])]
    for column in wanted:
        if column not in types:
            raise GraphError(
                f"on_spark: {inlet}",
                needed=f"the columns {', '.join(wanted)}",
                came=f"no {column}, only {', '.join(types)}",
                hint=f"withColumn({column!r}, ...), null where a kind has no such field",
            )
    for column in wanted[len(table.struct.names) :]:
        if types[column] not in ("tinyint", "smallint", "int", "bigint"):
            raise GraphError(
                f"on_spark: {inlet}", needed=f"whole numbers in {column}", came=types[column], hint="a cast to bigint"
            )


def _require_free(table: Table, outlet: str) -> None:
    taken = sorted(set(table.struct.names) & set(OWN_COLUMNS))
    if taken:
        raise GraphError(
            f"on_spark: {outlet}",
            needed=f"columns other than {', '.join(OWN_COLUMNS)}, which say where a row stands",
            came=", ".join(taken),
            hint="rename the fields of the kind",
        )


def in_order(rows: list[Any], kinds: list[Kind], markers: frozenset[Kind]) -> list[Event]:
    """The events of rows that went into an outlet, in an order that the type of the outlet allows."""
    table = Table(sorted(kinds, key=lambda kind: kind.name))
    found = []
    for row in rows:
        event = table.from_row([row[name] for name in table.struct.names])
        found.append((row["block"], event.kind in markers, row["lane"], row["place"], event))
    found.sort(key=lambda one: one[:4])
    return [one[-1] for one in found]
