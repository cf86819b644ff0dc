"""Transformers of series-parallel streams as graphs of operators: the keys of a PartitionBy run side by side.

Every `Partitioned` that stands between markers, not inside of another one, becomes an operator with a state for each
key, which ends at each marker; what its runs end with is gathered in one place, where the rest of the transformer runs.
A run begins with what the transformer hands to it. Between two markers nothing comes back from the place where all is
gathered, so what the runs begin with must be the same in every block; that is checked for each key.
"""

from __future__ import annotations

import copy
import itertools
import pickle
from dataclasses import dataclass
from typing import Any, TypeVar

from streamtight.errors import SchemaError
from streamtight.program.operators import (
    Edge,
    Emit,
    Graph,
    Inlet,
    KeyedOrdered,
    Merge,
    Outlet,
    Path,
    Single,
    Stateless,
    Vertex,
    bag_between,
)
from streamtight.program.transformer import State, Transformer
from streamtight.program.transformer_forms import Hierarchical, Parallel, Partitioned
from streamtight.stream.event import Event, Kind
from streamtight.stream.schema import PartitionBy, Seq, Sync

Final = Kind("StreamtightFinal", part=int, key=bytes, value=bytes)
"""What the run of a key ended with."""
Made = Kind("StreamtightMade", part=int, key=bytes, event=object)
"""What the run of a key gave: wrapped, since events of its kind may also come in."""


@dataclass(frozen=True, eq=False, slots=True)
class Part:
    """A `Partitioned` in a transformer: the way to its state, the markers that end its runs, what it begins with."""

    of: Partitioned
    way: tuple[int, ...]
    markers: frozenset[Kind]
    x: Any = None


G = TypeVar("G", bound=Graph)


def spread(transformer: Transformer, x: Any, kind_of_graph: type[G]) -> G:
    """The graph that gives what the transformer gives, begun with x."""
    state, opening = transformer._begin(x)
    if opening:
        raise SchemaError(
            f"spread({transformer.name})",
            needed="a transformer that gives nothing before the first event",
            came=repr(opening[0]),
            hint="transformer.start(x), which runs it in one place",
        )
    found = [Part(p.of, p.way, p.markers, _at(state, p.way)[0]) for p in _parts(transformer, (), frozenset())]
    markers = _markers(transformer)
    inlet = Inlet("in", bag_between(markers, transformer.takes.kinds))
    root = _root(transformer, found, x, bag_between(markers, {*transformer.takes.kinds, Made, Final}))
    edges = _row(root, Outlet("out"))
    if not found:
        return kind_of_graph(Path((*_row(inlet, root), *edges)))
    gather = Merge("gather", root.takes)
    for number, part in enumerate(found):
        rows = _only(f"{part.of.path}: rows", inlet.gives, part.of.takes.kinds)
        edges += _row(inlet, rows, _keys(part, number, markers), gather)
    rest = transformer.takes.kinds - frozenset[Kind]().union(*(part.of.takes.kinds for part in found)) - markers
    edges += [*_row(inlet, _only("rest", inlet.gives, rest), gather), *_row(gather, root)]
    return kind_of_graph(Path(tuple(edges)))


def _parts(transformer: Transformer, way: tuple[int, ...], markers: frozenset[Kind]) -> list[Part]:
    if isinstance(transformer, Partitioned):
        return [Part(transformer, way, markers)]
    if isinstance(transformer, Hierarchical):
        return _parts(transformer.sub, (*way, 1), markers | transformer.takes.markers)  # type: ignore[attr-defined]
    if isinstance(transformer, Parallel):
        return [part for n, sub in enumerate(transformer.subs) for part in _parts(sub, (*way, n), markers)]
    return []


def _markers(transformer: Transformer) -> frozenset[Kind]:
    """The kinds that end a run somewhere: they go everywhere."""
    if isinstance(transformer, Hierarchical):
        return transformer.takes.markers | _markers(transformer.sub)  # type: ignore[attr-defined, no-any-return]
    subs = () if isinstance(transformer, Partitioned) else transformer.subs
    return frozenset[Kind]().union(*map(_markers, subs))


def _at(state: State, way: tuple[int, ...]) -> State:
    for place in way:
        state = state[place]
    return state


def _row(*vertices: Vertex) -> list[Edge]:
    # Not `>>`: that the events of a key keep their order here is the type of the transformer, which says more.
    return [Edge(one, 0, other) for one, other in itertools.pairwise(vertices)]


class _Only:
    """Hands on items of some kinds."""

    def __init__(self, kinds: frozenset[Kind]) -> None:
        self._kinds = kinds

    def __call__(self, item: Event, emit: Emit) -> None:
        if item.kind in self._kinds:
            emit(item)


def _only(name: str, type_: Sync, kinds: frozenset[Kind]) -> Stateless:
    return Stateless(name, takes=type_, gives=type_, on_item=_Only(kinds))


def _keys(part: Part, number: int, markers: frozenset[Kind]) -> KeyedOrdered:
    """The runs of a `Partitioned`, key by key."""
    fields = part.of.takes.fields  # type: ignore[attr-defined]
    runs = _Runs(part, number)
    return KeyedOrdered(
        part.of.path,
        takes=Sync(markers, PartitionBy(fields, Seq(part.of.takes.kinds))),
        gives=bag_between(markers, {Made, Final}),
        initial_state=None,
        on_item=runs.on_item,
        on_marker=runs.on_marker,
        forget=_is_ended,
    )


def _is_ended(state: Any) -> bool:
    return state is None


class _Runs:
    """What the operator of a `Partitioned` does. The state of a key is that of a `Partitioned` with this key alone."""

    def __init__(self, part: Part, number: int) -> None:
        self._part, self._number = part, number

    def on_item(self, state: State | None, item: Event, emit: Emit) -> State:
        state = [self._part.x, {}] if state is None else state
        given = self._part.of._step(state, item)
        if given:
            key = pickle.dumps(self._part.of._key_of(item))
            for event in given:
                emit(Made(self._number, key, event))
        return state

    def on_marker(self, state: State | None, _: Any, marker: Event, emit: Emit) -> State | None:
        if state is None or marker.kind not in self._part.markers:
            return state
        for key, run in state[1].items():
            value, events = self._part.of.sub._end(run)
            pickled = pickle.dumps(key)
            for event in self._part.of._keeping(key, events):
                emit(Made(self._number, pickled, event))
            emit(Final(self._number, pickled, pickle.dumps(value)))
        return None


def _root(transformer: Transformer, parts: list[Part], x: Any, takes: Sync) -> Single:
    root = _Root(transformer, parts, x)
    gives = bag_between(frozenset(), transformer.gives.kinds)
    return Single("root", takes=takes, gives=gives, initial_state=None, on_item=root.on_item, on_marker=root.on_marker)


class _Gathered(Partitioned):
    """A `Partitioned` whose runs are elsewhere: its state has what they ended with."""

    def _end(self, state: State) -> tuple[Any, list[Event]]:
        x, finals = state
        return self._joined(x, {key: (value, []) for key, value in finals.items()})


def _with_gathered(transformer: Transformer) -> Transformer:
    """The same transformer, with what is gathered in place of what is spread."""
    changed = copy.copy(transformer)
    if isinstance(changed, Partitioned):
        changed.__class__ = _Gathered
    else:
        changed.subs = tuple(map(_with_gathered, transformer.subs))
    return changed


class _Root:
    """The transformer without the runs of its keys."""

    def __init__(self, transformer: Transformer, parts: list[Part], x: Any) -> None:
        self._transformer, self._parts, self._x = _with_gathered(transformer), parts, x

    def on_item(self, state: State | None, item: Event, emit: Emit) -> State:
        state = self._transformer._begin(self._x)[0] if state is None else state
        if item.kind is Final:
            self._gather(state, item)
        elif item.kind is Made:
            self._require_begun_alike(state, item.part, pickle.loads(item.key))  # noqa: S301 - from our own operator
            emit(item.event)
        else:
            for event in self._transformer._step(state, item):
                emit(event)
        return state

    def on_marker(self, state: State | None, marker: Event, emit: Emit) -> State:
        state = self._transformer._begin(self._x)[0] if state is None else state
        for event in self._transformer._step(state, marker):
            emit(event)
        return state

    def _gather(self, state: State, final: Event) -> None:
        part = self._parts[final.part]
        key, value = pickle.loads(final.key), pickle.loads(final.value)  # noqa: S301 - from our own operator
        self._require_begun_alike(state, final.part, key)
        _at(state, part.way)[1][key] = value

    def _require_begun_alike(self, state: State, number: int, key: Event) -> None:
        """Raise, before anything of it comes out, if the run of a key should have begun otherwise."""
        part = self._parts[number]
        x = _at(state, part.way)[0]
        if x != part.x and _begun(part.of, x, key) != _begun(part.of, part.x, key):
            raise SchemaError(
                f"spread: {part.of.path}",
                needed=f"runs that begin alike in every block, as with {part.x!r} in the first one",
                came=f"{x!r}, from what happened before, with which they begin otherwise",
                hint="an init that does not use x; or transformer.start(x), which runs in one place",
            )


def _begun(part: Partitioned, x: Any, key: Event) -> Any:
    """How the run of a key begins."""
    return part.sub._begin(part._ask("init", part.init, x, key))
