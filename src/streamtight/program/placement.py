"""Which operators of a graph run in one place, when its keys are spread over buckets.

Operators that need no state run where events are read. A keyed operator runs in buckets, each with the keys that are
hashed to it; what follows stays in the same bucket for as long as the keys do. Every bucket gets every marker. A stage
is what runs in one bucket, and each of its buckets is a lane for the next stage: a sequence that has all markers. So a
stage waits with a marker until it has come on all lanes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from streamtight.program.operators import Edge, Graph, Inlet, Merge, Operator, Outlet, Single, Split, Stateless, Vertex


@dataclass(eq=False, slots=True)
class Stage:
    """Operators that run in one bucket, and the fields by which items find theirs.

    Without fields it is the whole item that decides; None: all items go to the first bucket.
    """

    key: tuple[str, ...] | None
    vertices: list[Vertex] = field(default_factory=list)


class Placement:
    """The stages of a graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.origin: dict[Vertex, Inlet] = {}
        """Of what runs where events are read: their inlet."""
        self.stages: dict[Vertex, Stage] = {}
        for vertex in graph.vertices:
            self._place(vertex)

    def entering(self, inlet: Inlet) -> list[Vertex]:
        """What runs where the events of an inlet are read."""
        return [vertex for vertex, origin in self.origin.items() if origin is inlet]

    def into(self, stage: Stage) -> dict[Inlet | Stage, list[Edge]]:
        """The edges that come into a stage, by where they come from."""
        found: dict[Inlet | Stage, list[Edge]] = {}
        for edge in self._graph.edges:
            if edge.end in stage.vertices and edge.start not in stage.vertices:
                found.setdefault(self.origin.get(edge.start) or self.stages[edge.start], []).append(edge)
        return found

    def out_of(self, stage: Stage) -> list[Edge]:
        """The edges that leave a stage: for another one, or for an outlet."""
        return [
            edge
            for edge in self._graph.edges
            if (edge.start in stage.vertices and edge.end not in stage.vertices)
            or (isinstance(edge.end, Outlet) and edge.end in stage.vertices)
        ]

    def _place(self, vertex: Vertex) -> None:
        into = [edge.start for edge in self._graph.into(vertex)]
        if isinstance(vertex, Inlet):
            self.origin[vertex] = vertex
        elif isinstance(vertex, Stateless | Split) and into[0] in self.origin:
            self.origin[vertex] = self.origin[into[0]]
        else:
            stage = self._stage_with(vertex, into)
            self.stages[vertex] = stage
            stage.vertices.append(vertex)

    def _stage_with(self, vertex: Vertex, into: list[Vertex]) -> Stage:
        """The stage that its items come from if they are in their buckets there, or a new one."""
        before = {self.stages.get(start) for start in into}
        stage = next(iter(before)) if len(before) == 1 else None
        if stage is None:
            return Stage(self._key(vertex, into[0]))
        if isinstance(vertex, Single):
            return stage if stage.key is None else Stage(None)
        if not isinstance(vertex, Operator) or isinstance(vertex, Stateless | Split | Merge):
            return stage
        # A merge that begins a stage hands on what came to its bucket; others must keep the key that they are given.
        unmoved = into[0] is stage.vertices[0] and isinstance(into[0], Merge)
        is_there = set(stage.key or ()) == set(vertex.key) and (unmoved or set(_order_of(into[0])) == set(vertex.key))
        return stage if is_there else Stage(vertex.key)

    def _key(self, vertex: Vertex, before: Vertex) -> tuple[str, ...] | None:
        """By what items find their bucket. A merge goes where what follows it needs them."""
        if isinstance(vertex, Single):
            return None
        if isinstance(vertex, Merge):
            if any(isinstance(edge.end, Single) for edge in self._graph.out_of(vertex)):
                return None
            following = [edge.end.key for edge in self._graph.out_of(vertex) if isinstance(edge.end, Operator)]
            return _order_of(vertex) or next(filter(None, following), ())
        return vertex.key if isinstance(vertex, Operator) else _order_of(before)


def _order_of(vertex: Vertex) -> tuple[str, ...]:
    """The key by which its output is ordered, if it is."""
    return getattr(vertex.gives.between, "fields", ())
