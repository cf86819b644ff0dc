"""Graphs of operators at work: events go in one by one, and come out where they leave.

One network is used for the reference meaning, on a whole graph, and by the tasks of Spark, on the part of a graph that
stands in one place. What it remembers is `state`, plain values that can be kept and put back.
"""

from __future__ import annotations

import abc
import copy
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NoReturn, TypeVar

from streamtight.errors import GraphError, SchemaError
from streamtight.program.operators import (
    Edge,
    Emit,
    Graph,
    Inlet,
    KeyedOrdered,
    KeyedUnordered,
    Merge,
    Operator,
    Outlet,
    Single,
    Sort,
    Split,
    Stateless,
    Vertex,
    key_of,
)
from streamtight.stream.event import Event, with_one_nan
from streamtight.stream.schema import Sync

State = Any


def run(graph: Graph, events: Iterable[Event] | Mapping[str, Iterable[Event]]) -> Any:
    """What comes out of a graph, for the events of each inlet."""
    given: Mapping[str, Iterable[Event]] = _by_inlet(graph, events)
    out: dict[str, list[Event]] = {outlet.name: [] for outlet in graph.outlets}
    network = Network(graph, graph.vertices, lambda edge: out[edge.end.name].append)
    for inlet in graph.inlets:
        feed = network.entrance(inlet)
        for event in in_marker_order(given[inlet.name], inlet.gives, inlet.name):
            feed(event)
    return out if len(out) > 1 else next(iter(out.values()))


def _by_inlet(graph: Graph, events: Any) -> Any:
    names = [inlet.name for inlet in graph.inlets]
    if not isinstance(events, Mapping):
        events = {names[0]: events} if len(names) == 1 else {}
    if set(events) != set(names):
        raise GraphError(
            "run", needed=f"events for {', '.join(names)}", came=", ".join(events) or "one list", hint="{name: events}"
        )
    return events


def in_marker_order(events: Iterable[Event], type_: Sync, where: str) -> Iterator[Event]:
    """The events, which must be of the type; markers of one kind must not go back."""
    last: dict[Any, tuple[Any, ...]] = {}
    for event in events:
        if not isinstance(event, Event) or event.kind not in type_.kinds:
            raise SchemaError(
                where,
                needed=f"events of {type_!r}",
                came=repr(event),
                hint=f"one of {', '.join(sorted(kind.name for kind in type_.kinds))}",
            )
        if event.kind in type_.markers:
            require_later(event, last, where)
        yield event


def require_later(marker: Event, last: dict[Any, tuple[Any, ...]], where: str) -> None:
    """Raise if a marker is before the last one of its kind."""
    before = last.get(marker.kind)
    if before is not None and before > marker[1:]:
        raise SchemaError(
            where,
            needed="markers in their order",
            came=f"{marker!r} after {marker.kind(*before)!r}",
            hint="sort the markers, or look for what reorders them",
        )
    last[marker.kind] = marker[1:]


Feed = Callable[[Event], None]


class Network:
    """Some vertices of a graph, at work. Where an edge leaves them, `leave(edge)` takes the events.

    is_first   of several networks that share the keys of one graph, one calls the on_marker of stateless operators
    grouped    if given, decides how summaries are grouped before they are merged; for tests
    """

    def __init__(
        self,
        graph: Graph,
        vertices: Sequence[Vertex],
        leave: Callable[[Edge], Feed],
        *,
        is_first: bool = True,
        grouped: Callable[[], bool] | None = None,
    ) -> None:
        self._graph = graph
        self._leave = leave
        self._parts: dict[str, _Part] = {}
        self._is_first = is_first
        self._grouped = grouped
        inside = set(vertices)
        self._further = {edge for edge in graph.edges if edge.end in inside and not isinstance(edge.end, Outlet)}
        for vertex in reversed(vertices):  # those that are fed first
            if not isinstance(vertex, Outlet):
                ways: dict[int, list[Feed]] = {}
                for edge in graph.out_of(vertex):
                    ways.setdefault(edge.way, []).append(self._along(edge))
                self._parts[vertex.name] = self._part(vertex, [ways[way] for way in sorted(ways)])

    def entrance(self, inlet: Vertex) -> Feed:
        """Where the events of an inlet go in."""
        return self._parts[inlet.name].feed(0)

    def lanes(self, edge: Edge, count: int) -> list[Feed]:
        """Where the events go in that come along an edge on several lanes, each of which has all markers."""
        part = _Merging(str(edge), edge.start.gives, [[self._along(edge)]], count)
        self._parts[str(edge)] = part
        return [part.feed(lane) for lane in range(count)]

    def _along(self, edge: Edge) -> Feed:
        if edge in self._further:
            return self._parts[edge.end.name].feed(self._graph.into(edge.end).index(edge))
        return self._leave(edge)

    def _part(self, vertex: Vertex, ways: list[list[Feed]]) -> _Part:
        if isinstance(vertex, Inlet):
            return _Part(vertex.gives, ways)
        if isinstance(vertex, Merge):
            return _Merging(vertex.name, vertex.gives, ways, len(self._graph.into(vertex)))
        if isinstance(vertex, Split):
            return _Splitting(vertex, ways)
        if isinstance(vertex, Sort):
            return _Sorting(vertex, ways)
        if isinstance(vertex, KeyedOrdered):
            return _Ordered(vertex, ways)
        if isinstance(vertex, KeyedUnordered):
            return _Unordered(vertex, ways, self._grouped)
        if isinstance(vertex, Single):
            return _Alone(vertex, ways, self._is_first)
        if isinstance(vertex, Stateless):
            return _Stateless(vertex, ways, self._is_first)
        raise AssertionError(f"{vertex!r} is none of the vertices that there are")  # pragma: no cover

    @property
    def state(self) -> dict[str, State]:
        """What its operators remember, by their names."""
        return {name: part.state for name, part in self._parts.items() if part.state is not None}

    @state.setter
    def state(self, kept: Mapping[str, State]) -> None:
        for name, part in self._parts.items():
            if name in kept:
                part.restore(kept[name])


class _Part:
    """A vertex at work; by itself, one that hands everything on."""

    state: State = None

    def __init__(self, gives: Sync, ways: list[list[Feed]]) -> None:
        self._ways = [_all(feeds) for feeds in ways]
        self._markers = gives.markers

    def feed(self, channel: int) -> Feed:
        return self._ways[0]

    def restore(self, kept: State) -> None:
        self.state = kept


def _all(feeds: list[Feed]) -> Feed:
    if len(feeds) == 1:
        return feeds[0]

    def feed(event: Event) -> None:
        for one in feeds:
            one(event)

    return feed


Op = TypeVar("Op", bound="Operator | Single")


class _Working(_Part, abc.ABC, Generic[Op]):
    """A vertex with functions: what they emit is checked, and goes on."""

    def __init__(self, operator: Op, ways: list[list[Feed]]) -> None:
        super().__init__(operator.gives, ways)
        self._operator = operator
        self._on = self._ways[0]
        self._items = operator.gives.between.kinds
        self._key: Any = None
        """Of the item, or of the state, that is being worked on."""
        self._emit = self._checked()

    def _checked(self) -> Emit:
        on, kinds = self._on, self._items

        def emit(event: Event) -> None:
            if not isinstance(event, Event) or event[0] not in kinds:
                self._refuse(event)
            on(event)

        def emit_in_order(event: Event) -> None:
            if not isinstance(event, Event) or event[0] not in kinds:
                self._refuse(event)
            if key_of(event, fields) != self._key:
                self._refuse_key(event)
            on(event)

        fields = self._operator.key if isinstance(self._operator, Operator) else ()
        is_ordered = isinstance(self._operator, Stateless | KeyedOrdered) and self._operator.keeps_order is not None
        return emit_in_order if is_ordered else emit

    def _refuse_key(self, event: Event) -> NoReturn:
        raise SchemaError(
            f"{self._operator.name} emits",
            needed=f"an event with the {', '.join(self._operator.key)} that it was given, {self._key!r}",  # type: ignore[union-attr]
            came=repr(event),
            hint="keep the key, or give an unordered stream: gives=U(...)",
        )

    def _refuse(self, event: object) -> None:
        raise SchemaError(
            f"{self._operator.name} emits",
            needed=f"items of {self._operator.gives!r}",
            came=repr(event),
            hint=f"one of {', '.join(sorted(kind.name for kind in self._items))}; markers go through by themselves",
        )

    def feed(self, channel: int) -> Feed:
        markers, item, marker = self._markers, self._item(), self._marker

        def feed(event: Event) -> None:
            if event[0] in markers:
                marker(event)
            else:
                item(event)

        return feed

    @abc.abstractmethod
    def _item(self) -> Feed:
        """What takes the items."""

    @abc.abstractmethod
    def _marker(self, event: Event) -> None:
        """What happens at a marker."""


class _Stateless(_Working[Stateless]):
    def __init__(self, operator: Stateless, ways: list[list[Feed]], is_first: bool) -> None:
        super().__init__(operator, ways)
        self._on_item, self._on_marker = operator.on_item, operator.on_marker if is_first else None

    def _item(self) -> Feed:
        on_item, emit, fields = self._on_item, self._emit, self._operator.key

        def feed_in_order(event: Event) -> None:
            self._key = key_of(event, fields)
            on_item(event, emit)

        return feed_in_order if fields else lambda event: on_item(event, emit)

    def _marker(self, event: Event) -> None:
        if self._on_marker is not None:
            self._on_marker(event, self._emit)
        self._on(event)


def _maker(value: Any) -> Callable[[], Any]:
    """Gives the value; a copy of it if it can change."""
    if isinstance(value, Hashable):
        return lambda: value
    return lambda: copy.deepcopy(value)


class _Keyed(_Working[Op]):
    """A vertex with a state for each key."""

    def __init__(self, operator: Op, ways: list[list[Feed]]) -> None:
        super().__init__(operator, ways)
        self.state: dict[Any, Any] = {}

    def restore(self, kept: dict[Any, Any]) -> None:
        self.state = {with_one_nan(key): state for key, state in kept.items()}


class _Ordered(_Keyed[KeyedOrdered]):
    def __init__(self, operator: KeyedOrdered, ways: list[list[Feed]]) -> None:
        super().__init__(operator, ways)
        self._new = _maker(operator.initial_state)

    def _item(self) -> Feed:
        fields, on_item, new, emit = self._operator.key, self._operator.on_item, self._new, self._emit

        def feed(event: Event) -> None:
            state = self.state
            self._key = key = key_of(event, fields)
            state[key] = on_item(state[key] if key in state else new(), event, emit)

        return feed

    def _marker(self, event: Event) -> None:
        on_marker, forget = self._operator.on_marker, self._operator.forget
        state, emit = self.state, self._emit
        for key in list(state):
            self._key = key
            state[key] = on_marker(state[key], key, event, emit)
            if forget is not None and forget(state[key]):
                del state[key]
        self._on(event)


class _Unordered(_Keyed[KeyedUnordered]):
    """Of each key: the state, the summary since the last marker, and summaries that are not yet merged with it."""

    def __init__(self, operator: KeyedUnordered, ways: list[list[Feed]], grouped: Callable[[], bool] | None) -> None:
        super().__init__(operator, ways)
        self._grouped = grouped
        self._new, self._none = _maker(operator.initial_state), _maker(operator.identity)

    def _item(self) -> Feed:
        operator = self._operator
        fields, combine, summary, on_item, emit = (
            operator.key,
            operator.combine,
            operator.summary,
            operator.on_item,
            self._emit,
        )

        def feed(event: Event) -> None:
            key = key_of(event, fields)
            kept = self.state.get(key)
            if kept is None:
                kept = self.state[key] = [self._new(), [self._none()]]
            on_item(kept[0], event, emit)
            if self._grouped is not None and self._grouped():
                kept[1].append(self._none())  # another task would begin anew
            kept[1][-1] = combine(kept[1][-1], summary(event))

        return feed

    def _marker(self, event: Event) -> None:
        operator = self._operator
        for key in list(self.state):
            kept = self.state[key]
            first, *others = kept[1]
            for other in others:
                first = operator.combine(first, other)
            kept[0], kept[1] = operator.update_state(kept[0], first), [self._none()]
            operator.on_marker(kept[0], key, event, self._emit)
            if operator.forget is not None and operator.forget(kept[0]):
                del self.state[key]
        self._on(event)


class _Alone(_Working[Single]):
    def __init__(self, vertex: Single, ways: list[list[Feed]], is_first: bool) -> None:
        super().__init__(vertex, ways)
        self._markers = vertex.takes.markers
        self._is_first = is_first
        self.state = [vertex.initial_state]

    def _item(self) -> Feed:
        def feed(event: Event) -> None:
            self.state[0] = self._operator.on_item(self.state[0], event, self._emit)

        return feed

    def _marker(self, event: Event) -> None:
        if self._is_first:
            self.state[0] = self._operator.on_marker(self.state[0], event, self._emit)


class _Sorting(_Keyed[Sort]):
    def __init__(self, operator: Sort, ways: list[list[Feed]]) -> None:
        super().__init__(operator, ways)
        self._order = sort_key(operator.by)

    def _item(self) -> Feed:
        fields = self._operator.key
        return lambda event: self.state.setdefault(key_of(event, fields), []).append(event)

    def _marker(self, event: Event) -> None:
        for items in self.state.values():
            for item in sorted(items, key=self._order):
                self._on(item)
        self.state.clear()
        self._on(event)


def sort_key(by: tuple[str, ...]) -> Callable[[Event], Any]:
    """Orders items by these fields, and then by all others, so that unequal items are never left as they came."""

    def order(item: Event) -> Any:
        fields = [getattr(item, field) for field in by]
        return [*map(_sortable, fields), item.kind.name, *map(_sortable, item[1:])]

    return order


def _sortable(value: Any) -> Any:
    """Something that can be compared with the same of other values: None first, NaN last."""
    if value is None:
        return (0,)
    if isinstance(value, float) and math.isnan(value):
        return (2,)
    if isinstance(value, Event):
        return (1, value.kind.name, *map(_sortable, value[1:]))
    if isinstance(value, tuple):
        return (1, *map(_sortable, value))
    if isinstance(value, Mapping):
        return (1, *sorted((_sortable(key), _sortable(inner)) for key, inner in value.items()))
    return (1, value)


class _Splitting(_Part):
    def __init__(self, split: Split, ways: list[list[Feed]]) -> None:
        super().__init__(split.gives, ways)
        self._split = split

    def feed(self, channel: int) -> Feed:
        everywhere, markers, ways, split = _all(self._ways), self._markers, self._ways, self._split

        def feed(event: Event) -> None:
            if event[0] in markers:
                everywhere(event)
            else:
                ways[split.way(event)](event)

        return feed


class _Merging(_Part):
    """Lets a channel go on to the next block when all channels have come to its end.

    Of each channel: what came after a marker that others have not seen yet, beginning with that marker.
    """

    def __init__(self, name: str, gives: Sync, ways: list[list[Feed]], channels: int) -> None:
        super().__init__(gives, ways)
        self._name = name
        self.state: list[list[Event]] = [[] for _ in range(channels)]

    def feed(self, channel: int) -> Feed:
        on, markers = self._ways[0], self._markers

        def feed(event: Event) -> None:
            waiting = self.state[channel]
            if waiting or event[0] in markers:
                waiting.append(event)
                if len(waiting) == 1:
                    self._advance()
            else:
                on(event)

        return feed

    def _advance(self) -> None:
        """Hand a marker on that has come from everywhere, and what has waited behind it."""
        on, markers = self._ways[0], self._markers
        while all(self.state):
            heads = [waiting[0] for waiting in self.state]
            if any(head != heads[0] for head in heads):
                raise SchemaError(
                    self._name,
                    needed="the same markers from all sides",
                    came=" and ".join(map(repr, dict.fromkeys(heads))),
                    hint="send every marker to every input, in one order",
                )
            on(heads[0])
            for channel, waiting in enumerate(self.state):
                stop = next((i for i in range(1, len(waiting)) if waiting[i][0] in markers), len(waiting))
                for event in waiting[1:stop]:
                    on(event)
                self.state[channel] = waiting[stop:]
