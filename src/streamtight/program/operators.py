"""Typed operators on streams with markers, and graphs of them (section 2.3 of the proposal).

    U(M)           items M between markers, in no order
    O("id", M)     items M between markers, in order for each id

Both are schemas, so that one type fits where another is wanted if it orders at least as much (`relaxes`). An operator
is made of ordinary functions that emit events; the functions see one item or one marker at a time:

    Stateless        on_item(item, emit), on_marker(marker, emit)
    KeyedOrdered     on_item(state, item, emit) -> state, on_marker(state, key, marker, emit) -> state
    KeyedUnordered   items become summaries, which a commutative monoid merges; the state changes at markers only
    Sort             orders the items of each key between markers
    Merge, Split     several streams into one, one into several

Markers go through every operator; what is emitted at a marker comes before it. `inlet >> operator >> outlet` is a
path whose types fit; a `Graph` is made of paths. What its functions must obey so that its outputs do not depend on an
order that its inputs do not have (Theorem 2.27) is `graph.obligations()`.

>>> from streamtight.stream.event import Kind
>>> Reading, Total = Kind("Reading", room=str, watts=int), Kind("Total", room=str, watts=int)
>>> def tell(state, room, marker, emit):
...     emit(Total(room, state))
>>> totals = KeyedUnordered(
...     "totals", takes=U(Reading), gives=U(Total), key="room", summary=lambda item: item.watts, identity=0,
...     combine=lambda a, b: a + b, initial_state=0, update_state=lambda state, watts: state + watts, on_marker=tell)
>>> graph = Graph(Inlet("meters", U(Reading)) >> totals >> Outlet("bills"))
>>> graph.run([Reading("hall", 5), Reading("hall", 7), Marker(10)])
[Total(room='hall', watts=12), Marker(time=10)]
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

from streamtight.errors import GraphError
from streamtight.stream.event import Event, Kind
from streamtight.stream.schema import Bag, PartitionBy, Seq, Sync

Marker = Kind("Marker", time=int)
"""What stands between blocks of items if no other kind is named: a promise that what belongs before it has come."""

Emit = Callable[[Event], None]


def U(*kinds: Kind, marker: Kind = Marker) -> Sync:  # noqa: N802 - the paper's name of a type
    """Items of these kinds between markers, in no order: `Sync(marker, Bag(kinds))`."""
    return Sync(marker, Bag(*kinds))


def O(key: str | Sequence[str], *kinds: Kind, marker: Kind = Marker) -> Sync:  # noqa: E743, N802 - the paper's name
    """Items of these kinds between markers, in order for each key: `Sync(marker, PartitionBy(key, Seq(kinds)))`."""
    return Sync(marker, PartitionBy(key, Seq(*kinds)))


def bag_between(markers: Iterable[Kind], kinds: Iterable[Kind]) -> Sync:
    """Items of these kinds, apart from the markers, in no order between markers."""
    every = frozenset(markers)
    return Sync(every, Bag(frozenset(kinds) - every))


# -- operators -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Obligation:
    """What the functions of an operator must obey, so that its output does not depend on an order it is not given."""

    law: str
    """KEEPS_KEY, or MONOID."""
    operator: Vertex
    text: str


class Vertex:
    """What stands in a graph. `a >> b` connects; an operator stands in one place of one graph."""

    places: ClassVar[str] = "one in, one out"

    takes: Sync | None
    """None: anything."""
    gives: Sync

    def __init__(self, name: str, takes: Sync | None, gives: Sync) -> None:
        if not isinstance(name, str) or not name:
            raise GraphError(
                type(self).__name__, needed="a name", came=repr(name), hint=f'{type(self).__name__}("sums", ...)'
            )
        self.name = name
        self.takes = takes
        self.gives = gives

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def __rshift__(self, other: object) -> Path:
        return Path((Edge(self, 0, self._fitting(other, 0)),))

    def _fitting(self, other: object, way: int) -> Vertex:
        """The other vertex, if what comes out here may go in there."""
        if not isinstance(other, Vertex):
            raise GraphError(
                f"{self.name} >> {getattr(other, '__name__', other)!r}",
                needed="an operator, which has types",
                came=f"a {type(other).__name__} without a type",
                hint=f'Stateless("name", takes={self.gives!r}, gives=..., on_item=...)',
            )
        where = f"{self.name} >> {other.name}"
        if isinstance(self, Outlet):
            raise GraphError(where, needed="what gives a stream", came=f"{self!r}, where paths end", hint="turn it")
        if isinstance(other, Inlet):
            raise GraphError(where, needed="what takes a stream", came=f"{other!r}, where paths begin", hint="turn it")
        if other.takes is not None and (reason := other.takes.why_not_relaxes(self.gives)):
            raise GraphError(
                where,
                needed=f"{other.takes!r}, as {other.name} takes",
                came=f"{self.gives!r}, as {self.name} gives: {_told(reason, other.name, self.name)}",
                hint=_remedy(other, self.gives),
            )
        return other

    def obligations(self) -> list[Obligation]:
        """What its functions must obey."""
        return []


def _told(reason: str, taker: str, giver: str) -> str:
    return (
        reason.replace("it orders", f"{taker} wants")
        .replace("the other does not", f"{giver} orders none")
        .replace("it has no", f"{taker} knows no")
    )


def _remedy(taker: Vertex, given: Sync) -> str:
    wanted = taker.takes
    if wanted is not None and isinstance(wanted.between, PartitionBy) and wanted.kinds >= given.kinds:
        key = wanted.between.fields
        return f'Sort("sort", {given!r}, key={key[0] if len(key) == 1 else key!r}, by="...") before {taker.name}'
    return f"an operator between them, or other types for {taker.name}"


_NOTHING = Sync((), Bag())
"""The type of a stream that never has an event."""


class Inlet(Vertex):
    """Where a stream comes in."""

    places = "none in, one out"

    def __init__(self, name: str, gives: Sync) -> None:
        super().__init__(name, _NOTHING, _stream_type(gives, f"Inlet({name!r})"))


class Outlet(Vertex):
    """Where a stream goes out; with `takes`, what it must be at least."""

    places = "one in, none out"

    def __init__(self, name: str, takes: Sync | None = None) -> None:
        super().__init__(name, takes and _stream_type(takes, f"Outlet({name!r})"), _NOTHING)


def _nothing(*_: Any) -> None:
    """Emits nothing."""


def _unchanged(state: Any, *_: Any) -> Any:
    return state


class Operator(Vertex):
    """A vertex with types on both sides; markers go through it."""

    takes: Sync
    key: tuple[str, ...] = ()

    def __init__(self, name: str, takes: Sync, gives: Sync, functions: Mapping[str, object]) -> None:
        where = f"{type(self).__name__}({name!r})"
        super().__init__(name, _stream_type(takes, f"{where}: takes"), _stream_type(gives, f"{where}: gives"))
        if self.takes.markers != self.gives.markers:
            raise GraphError(
                where,
                needed="the same markers on both sides, since they go through",
                came=f"{_names(self.takes.markers)} in, {_names(self.gives.markers)} out",
                hint="marker=... for both types",
            )
        for called, function in functions.items():
            if not callable(function):
                raise GraphError(
                    f"{where}: {called}", needed="a function", came=repr(function), hint=f"{called}=lambda ...: ..."
                )

    @property
    def keeps_order(self) -> tuple[str, ...] | None:
        """The key by which its output is ordered; None if it is not."""
        between = self.gives.between
        return between.fields if isinstance(between, PartitionBy) else None


class Stateless(Operator):
    """What it emits depends on one item, or one marker, alone.

    If it gives an ordered stream, it must take one that is ordered by the same key, and keep the key.
    """

    def __init__(
        self,
        name: str,
        *,
        takes: Sync,
        gives: Sync,
        on_item: Callable[[Event, Emit], None],
        on_marker: Callable[[Event, Emit], None] = _nothing,
    ) -> None:
        super().__init__(name, takes, gives, {"on_item": on_item, "on_marker": on_marker})
        self.on_item = on_item
        self.on_marker = on_marker
        if (key := self.keeps_order) is not None:
            _require_order(self, key)
            self.key = key
            if on_marker is not _nothing:
                raise GraphError(
                    f"Stateless({name!r}): on_marker",
                    needed="none: a marker has no key, so what is emitted there has no place in an ordered stream",
                    came="a function",
                    hint="a KeyedOrdered, whose on_marker is called for each key; or an unordered output",
                )

    def obligations(self) -> list[Obligation]:
        return [_keeps_key(self)] if self.keeps_order is not None else []


class KeyedOrdered(Operator):
    """A state for each key, which changes with every item: the items of a key must come in an order.

    initial_state   the state of a key that is seen for the first time; it is copied if it can change
    on_item         a function of state, item and emit that gives the new state
    on_marker       the same of state, key, marker and emit, called for every key that was seen
    forget          whether a key with this state may be forgotten, asked after on_marker
    """

    def __init__(
        self,
        name: str,
        *,
        takes: Sync,
        gives: Sync,
        initial_state: Any,
        on_item: Callable[[Any, Event, Emit], Any],
        on_marker: Callable[[Any, Any, Event, Emit], Any] = _unchanged,
        forget: Callable[[Any], bool] | None = None,
    ) -> None:
        functions = {"on_item": on_item, "on_marker": on_marker, "forget": forget or _nothing}
        super().__init__(name, takes, gives, functions)
        between = self.takes.between
        if not isinstance(between, PartitionBy):
            raise GraphError(
                f"KeyedOrdered({name!r}): takes",
                needed="a type that is ordered for each key, since its state changes with every item",
                came=repr(takes),
                hint='O("id", ...), and a Sort before it if what comes is not; or KeyedUnordered',
            )
        self.key = between.fields
        self.initial_state = initial_state
        self.on_item = on_item
        self.on_marker = on_marker
        self.forget = forget
        if self.keeps_order is not None:
            _require_order(self, self.keeps_order)

    def obligations(self) -> list[Obligation]:
        return [_keeps_key(self)] if self.keeps_order is not None else []


class KeyedUnordered(Operator):
    """A state for each key, which changes at markers only: between them items may come in any order.

    key             the field or fields that items are grouped by
    summary         a function of an item: what it adds
    identity        the summary of no item
    combine         merges two summaries; must be associative and commutative, with that identity
    initial_state   the state of a key that is seen for the first time
    update_state    a function of the state and the summary of all items since the last marker: the new state
    on_item         may emit; sees the state as it was at the last marker, and the item
    on_marker       may emit; sees the new state, the key and the marker
    forget          whether a key with this state may be forgotten, asked after on_marker
    """

    def __init__(
        self,
        name: str,
        *,
        takes: Sync,
        gives: Sync,
        key: str | Sequence[str],
        summary: Callable[[Event], Any],
        identity: Any,
        combine: Callable[[Any, Any], Any],
        initial_state: Any,
        update_state: Callable[[Any, Any], Any],
        on_item: Callable[[Any, Event, Emit], None] = _nothing,
        on_marker: Callable[[Any, Any, Event, Emit], None] = _nothing,
        forget: Callable[[Any], bool] | None = None,
    ) -> None:
        functions = {"summary": summary, "combine": combine, "update_state": update_state, "on_item": on_item}
        super().__init__(name, takes, gives, {**functions, "on_marker": on_marker, "forget": forget or _nothing})
        self.key = _key(key, self.takes, f"KeyedUnordered({name!r})")
        if self.keeps_order is not None:
            raise GraphError(
                f"KeyedUnordered({name!r}): gives",
                needed="an unordered type: items that come in any order cannot give an ordered stream",
                came=repr(gives),
                hint=f"U({_names(self.gives.between.kinds)}), and a Sort after it",
            )
        self.summary = summary
        self.identity = identity
        self.combine = combine
        self.initial_state = initial_state
        self.update_state = update_state
        self.on_item = on_item
        self.on_marker = on_marker
        self.forget = forget

    def obligations(self) -> list[Obligation]:
        text = f"combine of {self.name} merges in any order and grouping, and {self.identity!r} changes nothing"
        return [Obligation("MONOID", self, text)]


class Sort(Operator):
    """Orders the items of each key between two markers: by these fields, and by all others where they are equal."""

    def __init__(self, name: str, takes: Sync, *, key: str | Sequence[str], by: str | Sequence[str]) -> None:
        where = f"Sort({name!r})"
        takes = _stream_type(takes, f"{where}: takes")
        self.key = _key(key, takes, where)
        items = sorted(takes.between.kinds, key=lambda kind: kind.name)
        gives = Sync(takes.markers, PartitionBy(self.key, Seq(*items)))
        super().__init__(name, Sync(takes.markers, Bag(*items)), gives, {})
        self.by = _key(by, takes, f"{where}: by")


class Single(Vertex):
    """One state for everything: runs in one place, and hands no marker on. Only transformers are made of it."""

    takes: Sync

    def __init__(
        self,
        name: str,
        *,
        takes: Sync,
        gives: Sync,
        initial_state: Any,
        on_item: Callable[[Any, Event, Emit], Any],
        on_marker: Callable[[Any, Event, Emit], Any],
    ) -> None:
        super().__init__(name, takes, gives)
        self.initial_state = initial_state
        self.on_item = on_item
        self.on_marker = on_marker


class Merge(Operator):
    """Several streams of one type as one: a marker goes on when it has come from all of them.

    Streams that are ordered by a key can be merged if they have no key in common: if they come out of one `Split`.
    """

    places = "several in, one out"

    def __init__(self, name: str, takes: Sync) -> None:
        super().__init__(name, takes, takes, {})


class Split(Operator):
    """One stream as several: each item goes one way, markers go all ways. `split[0] >> ...` continues the first.

    by   the fields whose value decides, or a function of an item that gives the number of the way
    """

    places = "one in, several out"

    def __init__(self, name: str, takes: Sync, *, ways: int, by: str | Sequence[str] | Callable[[Event], int]) -> None:
        super().__init__(name, takes, takes, {})
        if type(ways) is not int or ways < 2:
            raise GraphError(f"Split({name!r})", needed="two ways or more", came=repr(ways), hint="ways=2")
        self.ways = ways
        self.by = by if callable(by) else _key(by, self.takes, f"Split({name!r})")

    def way(self, item: Event) -> int:
        """Which way an item goes."""
        if not callable(self.by):
            return stable_hash(key_of(item, self.by)) % self.ways
        way = self.by(item)
        if type(way) is not int or not 0 <= way < self.ways:
            raise GraphError(
                f"{self.name}: by({item!r})",
                needed=f"a number from 0 to {self.ways - 1}",
                came=repr(way),
                hint="% ways",
            )
        return way

    def __getitem__(self, way: int) -> Port:
        if type(way) is not int or not 0 <= way < self.ways:
            raise GraphError(
                f"{self.name}[{way!r}]", needed=f"a number from 0 to {self.ways - 1}", came=repr(way), hint="split[0]"
            )
        return Port(self, way)

    def __rshift__(self, other: object) -> Path:
        raise GraphError(
            f"{self.name} >> ...", needed="which way", came="all of them", hint=f"{self.name}[0] >> ..., one for each"
        )


class Port:
    """One way out of a `Split`."""

    def __init__(self, split: Split, way: int) -> None:
        self.split = split
        self.way = way

    def __rshift__(self, other: object) -> Path:
        return Path((Edge(self.split, self.way, self.split._fitting(other, self.way)),))


def _stream_type(given: object, where: str) -> Sync:
    if given is None or not isinstance(given, Sync) or not given.markers or not given.between.kinds:
        raise GraphError(
            where,
            needed="a type of streams with markers",
            came="none" if given is None else repr(given),
            hint='U(Item), or O("key", Item): with marker=... if it is another kind than Marker',
        )
    between = given.between
    flat = isinstance(between, Bag) or (
        isinstance(between, PartitionBy) and isinstance(between.each, Sync) and not between.each.between.kinds
    )
    if not flat:
        raise GraphError(
            where,
            needed="items in no order, or in order for each key, between markers",
            came=repr(given),
            hint='U(Item) or O("key", Item); for other schemas there are transformers',
        )
    return given


def _key(given: str | Sequence[str], takes: Sync, where: str) -> tuple[str, ...]:
    fields = (given,) if isinstance(given, str) else tuple(given)
    for kind, field in itertools.product(sorted(takes.between.kinds, key=lambda kind: kind.name), fields):
        if field not in kind.fields:
            raise GraphError(
                where, needed=f"fields of {kind.name}", came=repr(field), hint=f"one of {', '.join(kind.names)}"
            )
    if not fields or len(set(fields)) < len(fields):
        raise GraphError(where, needed="fields, each once", came=repr(given), hint='key="id"')
    return fields


def _require_order(operator: Operator, key: tuple[str, ...]) -> None:
    """An ordered output needs an ordered input with the same key."""
    between = operator.takes.between
    if not isinstance(between, PartitionBy) or set(between.fields) != set(key):
        raise GraphError(
            f"{type(operator).__name__}({operator.name!r}): gives",
            needed="an unordered type, or one that is ordered by the key that its input is ordered by",
            came=f"{operator.gives!r} from {operator.takes!r}",
            hint=f"U({_names(operator.gives.between.kinds)}), and a Sort after it",
        )


def _keeps_key(operator: Operator) -> Obligation:
    fields = ", ".join(operator.key)
    return Obligation("KEEPS_KEY", operator, f"{operator.name} emits events of the {fields} that it was given only")


def _names(kinds: Iterable[Kind]) -> str:
    return ", ".join(sorted(kind.name for kind in kinds))


# -- keys ------------------------------------------------------------------------------------------------------------


def key_of(item: Event, fields: tuple[str, ...]) -> Any:
    """The key of an item: a value, or a tuple of several."""
    if len(fields) == 1:
        return getattr(item, fields[0])
    return tuple([getattr(item, field) for field in fields])


def stable_hash(key: Any) -> int:
    """A number that equal keys share in every process; Python's own differs between processes."""
    return zlib.crc32(repr(_canonical(key)).encode("utf-8", "surrogatepass"))


def _canonical(value: Any) -> Any:
    # Equal numbers must be written alike: 0.0 and -0.0, 1 and 1.0 in a field of any type.
    if isinstance(value, (bool, int)):
        return int(value)
    if isinstance(value, float):
        return int(value) if math.isfinite(value) and value.is_integer() else value
    if isinstance(value, Event):
        return (value.kind.name, *map(_canonical, value[1:]))
    if isinstance(value, tuple):
        return tuple(map(_canonical, value))
    if isinstance(value, Mapping):
        return sorted((repr(_canonical(k)), repr(_canonical(v))) for k, v in value.items())
    return value


# -- graphs ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Edge:
    """A connection: out of a vertex, on which way, and into which one."""

    start: Vertex
    way: int
    end: Vertex

    def __str__(self) -> str:
        way = f"[{self.way}]" if isinstance(self.start, Split) else ""
        return f"{self.start.name}{way} >> {self.end.name}"


class Path:
    """Vertices that are connected in a row."""

    def __init__(self, edges: tuple[Edge, ...]) -> None:
        self.edges = edges

    def __rshift__(self, other: object) -> Path:
        last = self.edges[-1].end
        if isinstance(last, Split):
            last >> other  # which says that a way is needed
        return Path((*self.edges, Edge(last, 0, last._fitting(other, 0))))

    def __repr__(self) -> str:
        return " >> ".join([self.edges[0].start.name, *(edge.end.name for edge in self.edges)])


class Graph:
    """Operators between inlets and outlets, without cycles; every edge fits."""

    def __init__(self, *paths: Path) -> None:
        for path in paths:
            if not isinstance(path, Path):
                raise GraphError(
                    "Graph(...)", needed="paths", came=repr(path), hint='Inlet("in", U(Item)) >> ... >> Outlet("out")'
                )
        self.edges = tuple(dict.fromkeys(edge for path in paths for edge in path.edges))
        self.vertices = _in_order(self.edges)
        """Each after those that it takes from."""
        for vertex in self.vertices:
            self._require_places(vertex)
        names: dict[str, Vertex] = {}
        for vertex in self.vertices:
            if names.setdefault(vertex.name, vertex) is not vertex:
                raise GraphError(
                    "Graph(...)", needed="a name for each vertex", came=f"{vertex.name!r} twice", hint="another name"
                )
        for vertex in self.vertices:
            if isinstance(vertex, Merge):
                self._require_apart(vertex)
        self.inlets = tuple(vertex for vertex in self.vertices if isinstance(vertex, Inlet))
        self.outlets = tuple(vertex for vertex in self.vertices if isinstance(vertex, Outlet))

    def into(self, vertex: Vertex) -> list[Edge]:
        """The edges that end here."""
        return [edge for edge in self.edges if edge.end is vertex]

    def out_of(self, vertex: Vertex) -> list[Edge]:
        """The edges that begin here."""
        return [edge for edge in self.edges if edge.start is vertex]

    def type_of(self, outlet: Vertex) -> Sync:
        """What comes into an outlet."""
        return self.into(outlet)[0].start.gives

    def obligations(self) -> list[Obligation]:
        """What the functions of its operators must obey (Theorem 2.27)."""
        return [obligation for vertex in self.vertices for obligation in vertex.obligations()]

    def run(self, events: Iterable[Event] | Mapping[str, Iterable[Event]]) -> Any:
        """What comes out for these events: the reference meaning, one event after another.

        Events by inlet, if there are several; lists by outlet, if there are several.
        """
        from streamtight.program.network import run

        return run(self, events)

    def __repr__(self) -> str:
        return f"Graph({', '.join(map(str, self.edges))})"

    def _require_places(self, vertex: Vertex) -> None:
        came = (len(self.into(vertex)), len(self.out_of(vertex)))
        ways = {edge.way for edge in self.out_of(vertex)}
        fits = {
            "none in, one out": came[0] == 0 and came[1] >= 1,
            "one in, none out": came[0] == 1 and came[1] == 0,
            "one in, one out": came[0] == 1 and came[1] >= 1,
            "several in, one out": came[0] >= 2 and came[1] >= 1,
            "one in, several out": came[0] == 1 and isinstance(vertex, Split) and len(ways) == vertex.ways,
        }
        if not fits[vertex.places]:
            hint = 'Merge("both", ...) first' if came[0] > 1 else "Inlet >> ... >> Outlet; each way of a Split"
            raise GraphError(repr(vertex), needed=vertex.places, came=f"{came[0]} in, {came[1]} out", hint=hint)

    def _require_apart(self, merge: Merge) -> None:
        """Streams that are ordered by a key keep that order in a merge only if no two of them have a key in common."""
        key = merge.keeps_order
        if key is None:
            return
        ends = [self._split_of(edge, key) for edge in self.into(merge)]
        if None in ends or len({edge.start for edge in ends if edge}) > 1 or len(set(ends)) < len(ends):
            raise GraphError(
                repr(merge),
                needed=f"streams without a common {', '.join(key)}, such as the ways of one Split by it",
                came=" and ".join(edge.start.name for edge in self.into(merge)),
                hint=f"U({_names(merge.takes.between.kinds)}), and a Sort after it",
            )

    def _split_of(self, edge: Edge, key: tuple[str, ...]) -> Edge | None:
        """The way out of a Split by this key, or part of it, that the edge continues without a change of keys."""
        while not isinstance(edge.start, Split):
            start = edge.start
            if not isinstance(start, Operator) or set(start.keeps_order or ()) != set(key) or isinstance(start, Merge):
                return None
            edge = self.into(start)[0]
        by = edge.start.by
        return edge if not callable(by) and set(by) <= set(key) else None


def _in_order(edges: Sequence[Edge]) -> tuple[Vertex, ...]:
    """The vertices, each after those that it takes from."""
    waiting = list(dict.fromkeys(vertex for edge in edges for vertex in (edge.start, edge.end)))
    if not waiting:
        raise GraphError("Graph()", needed="a path", came="none", hint='Inlet("in", U(Item)) >> ... >> Outlet("out")')
    done: dict[Vertex, None] = {}
    while waiting:
        ready = [v for v in waiting if all(edge.start in done for edge in edges if edge.end is v)]
        if not ready:
            _refuse_cycle(edges, waiting)
        done.update(dict.fromkeys(ready))
        waiting = [vertex for vertex in waiting if vertex not in done]
    return tuple(done)


def _refuse_cycle(edges: Sequence[Edge], waiting: Sequence[Vertex]) -> NoReturn:
    """Name a cycle among vertices each of which takes from another of them."""
    path = [waiting[0]]
    while path.count(path[-1]) < 2:
        path.append(next(edge.start for edge in edges if edge.end is path[-1] and edge.start in waiting))
    cycle = path[path.index(path[-1]) :][::-1]
    raise GraphError(
        "Graph(...)",
        needed="no cycle",
        came=" >> ".join(vertex.name for vertex in cycle),
        hint="a second operator of the same functions, if it is meant to stand in two places",
    )
