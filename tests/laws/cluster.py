"""The tasks of a graph on Spark, run without Spark."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from typing import Any

from streamtight.program.operators import Edge, Graph, Inlet
from streamtight.program.placement import Placement, Stage
from streamtight.spark.stage_tasks import Bucket, Enter, Kept, Route, restored, storable
from streamtight.stream.event import Event

KEY = bytes(32)


class Cluster:
    """Runs a graph as Spark does: lanes, batches, buckets, and states that are kept between batches."""

    def __init__(self, graph: Graph, buckets: int, lanes: int) -> None:
        self.graph, self.buckets, self.lanes = graph, buckets, lanes
        self.placement = Placement(graph)
        self.numbers = {edge: number for number, edge in enumerate(graph.edges)}
        self.kinds = sorted({kind for vertex in graph.vertices for kind in vertex.gives.kinds}, key=lambda k: k.name)
        self.stages = list(dict.fromkeys(self.placement.stages.values()))
        self.kept: dict[tuple[int, int], bytes] = {}
        self.out: dict[str, list[tuple[int, bool, int, int, Event]]] = {outlet.name: [] for outlet in graph.outlets}

    def route(self, edge: Edge) -> Route:
        return Route(self.numbers[edge], self.placement.stages[edge.end].key, self.buckets)

    def batch(self, rows: dict[str, list[tuple[int, int, Event]]], chance: random.Random) -> None:
        """One micro-batch: of each inlet (lane, position, event), in tasks that each see some of the rows."""
        cells: list[tuple[int, int, int, bytes]] = []
        for number, stage in enumerate(self.stages):
            arrived = list(cells)
            for start, edges in self.placement.into(stage).items():
                if isinstance(start, Inlet):
                    routes = {edge: self.route(edge) for edge in edges}
                    vertices = self.placement.entering(start)
                    table: Any = None
                    enter = Enter(self.graph, start, vertices, routes, [], table, self.lanes, self.kinds)
                    for task in _tasks(rows[start.name], chance):
                        arrived += enter._packed(task)
            cells += self.work(number, stage, arrived, chance)

    def work(self, number: int, stage: Stage, arrived: list[Any], chance: random.Random) -> Iterator[Any]:
        entries = {
            edge: (self.numbers[edge], self.lanes if isinstance(start, Inlet) else self.buckets)
            for start, edges in self.placement.into(stage).items()
            for edge in edges
        }
        known = {entry[0] for entry in entries.values()}
        routes = {edge: self.route(edge) for edge in self.placement.out_of(stage)}
        for bucket in range(self.buckets):
            rows = [
                {"edge": edge, "lane": lane, "rows": blob}
                for edge, to, lane, blob in arrived
                if to == bucket and edge in known
            ]
            if rows:
                chance.shuffle(rows)  # a shuffle promises no order
                blob = self.kept.get((number, bucket))
                kept = Kept(self.buckets) if blob is None else restored(blob, KEY)
                tasks = Bucket(self.graph, stage.vertices, entries, routes, self.kinds, self.buckets, KEY)
                made = tasks.work(bucket, kept, rows)
                self.kept[number, bucket] = storable(kept, KEY)
                yield from self.collected(made, bucket)

    def collected(self, made: dict[tuple[int, int], list[Any]], bucket: int) -> Iterator[tuple[int, int, int, bytes]]:
        outlets = {self.numbers[self.graph.into(outlet)[0]]: outlet for outlet in self.graph.outlets}
        for (edge, to), cell in made.items():
            if edge not in outlets:
                yield edge, to, bucket, pickle.dumps(cell)
                continue
            for (block, place), kind, values in cell:
                event = self.kinds[kind](*values)
                is_marker = event.kind in self.graph.type_of(outlets[edge]).markers
                self.out[outlets[edge].name].append((block, is_marker, bucket, place, event))

    def outputs(self) -> dict[str, list[Event]]:
        return {name: [one[-1] for one in sorted(out, key=lambda one: one[:4])] for name, out in self.out.items()}


def _tasks(rows: list[tuple[int, int, Event]], chance: random.Random) -> list[list[tuple[int, int, Event]]]:
    cut = chance.randint(0, len(rows))
    return [rows[:cut], rows[cut:]]
