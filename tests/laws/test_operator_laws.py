"""Theorem 2.27: graphs of typed operators give equivalent outputs for equivalent inputs, however they are run."""

from __future__ import annotations

import random
from typing import Any

import pytest
from cluster import Cluster
from hypothesis import given
from hypothesis import strategies as st
from strategies import lawful

from streamtight.program.operators import (
    Emit,
    Graph,
    Inlet,
    KeyedOrdered,
    KeyedUnordered,
    Marker,
    Merge,
    O,
    Outlet,
    Path,
    Sort,
    Split,
    Stateless,
    U,
)
from streamtight.stream.event import Event, Kind
from streamtight.stream.schema import Sync
from streamtight.stream.trace import Trace

Item = Kind("Item", key=int, group=int, value=int)
UNORDERED, ORDERED = U(Item), O("key", Item)


# -- operators that keep their types ---------------------------------------------------------------------------------


def twice(item: Event, emit: Emit) -> None:
    emit(item)
    if item.value % 2:
        emit(Item(item.key, item.group, item.value // 2))


def at_marker(marker: Event, emit: Emit) -> None:
    emit(Item(0, 0, marker.time))


def stateless(name: str) -> Stateless:
    return Stateless(name, takes=UNORDERED, gives=UNORDERED, on_item=twice, on_marker=at_marker)


def in_order(name: str) -> Stateless:
    return Stateless(name, takes=ORDERED, gives=ORDERED, on_item=twice)


def differences(name: str) -> KeyedOrdered:
    def step(state: int, item: Event, emit: Emit) -> int:
        emit(Item(item.key, item.group, item.value - state))
        return item.value + 2 * state % 7  # depends on the order of all that came

    def close(state: int, key: int, marker: Event, emit: Emit) -> int:
        emit(Item(key, -1, state))
        return state + 1

    return KeyedOrdered(
        name, takes=ORDERED, gives=ORDERED, initial_state=0, on_item=step, on_marker=close, forget=lambda s: s > 9
    )


def sums(name: str, key: str = "group") -> KeyedUnordered:
    def seen(state: int, item: Event, emit: Emit) -> None:
        if item.value > 3:
            emit(Item(item.key, item.group, state))

    def tell(state: int, key: int, marker: Event, emit: Emit) -> None:
        emit(Item(key % 3, key, state))

    return KeyedUnordered(
        name,
        takes=UNORDERED,
        gives=UNORDERED,
        key=key,
        summary=lambda item: item.value,
        identity=0,
        combine=lambda a, b: a + b,
        initial_state=0,
        update_state=lambda state, total: 2 * state % 11 + total,
        on_item=seen,
        on_marker=tell,
    )


def sort(name: str) -> Sort:
    return Sort(name, UNORDERED, key="key", by="value")


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Some inlets, operators in a row with splits, merges and copies, and outlets."""
    names = (f"v{number}" for number in range(1000))
    ends: list[tuple[Any, Sync]] = []  # what may be continued, and its type
    paths: list[Path] = []
    for number in range(draw(st.integers(1, 2))):
        type_ = draw(st.sampled_from([UNORDERED, ORDERED]))
        ends.append((Inlet(f"in{number}", type_), type_))
    for _ in range(draw(st.integers(0, 5))):
        place = draw(st.integers(0, len(ends) - 1))
        end, type_ = ends[place]
        makers: list[Any] = [stateless, sums, lambda name: sums(name, "key"), sort, "merge", "split", "copy"]
        makers += [in_order, differences] if type_ is ORDERED else []
        made = draw(st.sampled_from(makers))
        if made == "merge":
            others = [number for number, (other, _) in enumerate(ends) if other is not end]
            if others:
                other = draw(st.sampled_from(others))
                merge = Merge(next(names), UNORDERED)
                paths += [end >> merge, ends[other][0] >> merge]
                ends = [kept for number, kept in enumerate(ends) if number not in (place, other)]
                ends.append((merge, UNORDERED))
        elif made == "split":
            split = Split(next(names), type_, ways=2, by=draw(st.sampled_from(["key", "group"])))
            paths.append(end >> split)
            ends[place] = (split[0], type_)
            ends.append((split[1], type_))
        elif made == "copy":
            ends.append((end, type_))
        else:
            operator = made(next(names))
            paths.append(end >> operator)
            ends[place] = (operator, ORDERED if operator.keeps_order is not None else UNORDERED)
    return Graph(*paths, *(end >> Outlet(f"out{number}") for number, (end, _) in enumerate(ends)))


ITEMS = st.builds(Item, st.integers(0, 3), st.integers(0, 2), st.integers(0, 7))


@st.composite
def streams(draw: st.DrawFn) -> list[Event]:
    """Items, with markers at the same times in every stream."""
    blocks = draw(st.lists(st.lists(ITEMS, max_size=5), min_size=3, max_size=3))
    last = draw(st.lists(ITEMS, max_size=2))
    return [event for time, block in enumerate(blocks) for event in (*block, Marker(time))] + last


def outputs(graph: Graph, events: dict[str, list[Event]]) -> dict[str, list[Event]]:
    out = graph.run(events)
    return out if isinstance(out, dict) else {graph.outlets[0].name: out}


def equivalent(graph: Graph, one: dict[str, list[Event]], other: dict[str, list[Event]]) -> bool:
    return all(
        Trace(one[outlet.name], graph.type_of(outlet)) == Trace(other[outlet.name], graph.type_of(outlet))
        for outlet in graph.outlets
    )


@lawful
@given(graphs(), st.data(), st.randoms(use_true_random=False))
def test_theorem_2_27_equivalent_inputs_give_equivalent_outputs(
    graph: Graph, data: st.DataObject, chance: random.Random
) -> None:
    events = {inlet.name: data.draw(streams()) for inlet in graph.inlets}
    others = {
        inlet.name: list(Trace(events[inlet.name], inlet.gives).reordered(chance).events) for inlet in graph.inlets
    }

    assert equivalent(graph, outputs(graph, events), outputs(graph, others))


# -- as Spark runs it ------------------------------------------------------------------------------------------------


def _spread(events: list[Event], type_: Sync, lanes: int, chance: random.Random) -> list[tuple[int, int, Event]]:
    """Each item on a lane, all of a key on one if the type is ordered; markers on all lanes."""
    ordered = type_ is ORDERED
    spread: list[tuple[int, int, Event]] = []
    for position, event in enumerate(events):
        chosen = [event.key % lanes if ordered else chance.randrange(lanes)] if event.kind is Item else range(lanes)
        spread += [(lane, position, event) for lane in chosen]
    return spread


@lawful
@given(graphs(), st.data(), st.randoms(use_true_random=False), st.integers(1, 3), st.integers(1, 3), st.integers(1, 4))
def test_theorem_2_27_any_parallelism_batching_and_schedule_gives_the_reference_up_to_the_type(
    graph: Graph, data: st.DataObject, chance: random.Random, lanes: int, buckets: int, batches: int
) -> None:
    events = {inlet.name: data.draw(streams()) for inlet in graph.inlets}
    cluster = Cluster(graph, buckets, lanes)
    given_: list[dict[str, list[tuple[int, int, Event]]]] = [
        {inlet.name: [] for inlet in graph.inlets} for _ in range(batches)
    ]
    for inlet in graph.inlets:
        order = list(Trace(events[inlet.name], inlet.gives).reordered(chance).events)
        batch_of = [0] * lanes  # the rows of a lane come in their order, in batches that differ from lane to lane
        for lane, position, event in _spread(order, inlet.gives, lanes, chance):
            batch_of[lane] = min(batches - 1, batch_of[lane] + (chance.random() < 0.3))
            given_[batch_of[lane]][inlet.name].append((lane, position, event))
    for rows in given_:
        cluster.batch(rows, chance)

    assert equivalent(graph, outputs(graph, events), cluster.outputs())


def test_outputs_of_inputs_that_are_not_equivalent_are_told_apart() -> None:
    graph = Graph(Inlet("in", ORDERED) >> differences("differences") >> Outlet("out"))
    one, other = [Item(1, 1, 1), Item(1, 1, 2)], [Item(1, 1, 2), Item(1, 1, 1)]

    assert not equivalent(graph, outputs(graph, {"in": one}), outputs(graph, {"in": other}))


@pytest.mark.parametrize("buckets", [1, 4])
def test_a_bucket_refuses_a_checkpoint_of_another_number_of_buckets(buckets: int) -> None:
    graph = Graph(Inlet("in", UNORDERED) >> sums("sums") >> Outlet("out"))
    cluster = Cluster(graph, buckets, 1)
    cluster.batch({"in": [(0, 0, Marker(0))]}, random.Random(0))
    cluster.buckets += 1

    with pytest.raises(Exception, match="as in the checkpoint"):
        cluster.batch({"in": [(0, 1, Marker(1))]}, random.Random(0))


@pytest.mark.parametrize("position", [0, -1], ids=["again", "before"])
def test_positions_that_do_not_grow_are_refused(position: int) -> None:
    graph = Graph(Inlet("in", UNORDERED) >> sums("sums") >> Outlet("out"))
    cluster = Cluster(graph, 1, 1)
    cluster.batch({"in": [(0, 0, Marker(0))]}, random.Random(0))

    with pytest.raises(Exception, match="positions that grow"):
        cluster.batch({"in": [(0, position, Marker(1))]}, random.Random(0))
