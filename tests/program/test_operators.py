"""Typed operators: which graphs can be built, and what comes out of them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from streamtight.errors import GraphError, SchemaError
from streamtight.program.network import Network
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
    Sort,
    Split,
    Stateless,
    U,
    stable_hash,
)
from streamtight.stream.event import Event, Kind
from streamtight.stream.schema import Seq, Sync

Reading = Kind("Reading", room=int, watts=int)
Total = Kind("Total", room=int, watts=int)
Tick = Kind("Tick")
Seen = Kind("Seen", room=int, at=int, what=str | None)


def hand_on(item: Event, emit: Emit) -> None:
    emit(item)


def count(state: int, item: Event, emit: Emit) -> int:
    emit(Reading(item.room, state + 1))
    return state + 1


def stateless(name: str = "same", **types: Any) -> Stateless:
    return Stateless(name, **{"takes": U(Reading), "gives": U(Reading), "on_item": hand_on, **types})


def counted(name: str = "counted", **options: Any) -> KeyedOrdered:
    given = {"takes": O("room", Reading), "gives": O("room", Reading), "initial_state": 0, "on_item": count}
    return KeyedOrdered(name, **{**given, **options})


def totals(name: str = "totals", **options: Any) -> KeyedUnordered:
    def tell(state: int, room: int, marker: Event, emit: Emit) -> None:
        emit(Total(room, state))

    given: dict[str, Any] = {
        "takes": U(Reading),
        "gives": U(Total),
        "key": "room",
        "summary": lambda item: item.watts,
        "identity": 0,
        "combine": lambda a, b: a + b,
        "initial_state": 0,
        "update_state": lambda state, watts: state + watts,
        "on_marker": tell,
    }
    return KeyedUnordered(name, **{**given, **options})


def inlet(type_: Any = None) -> Inlet:
    return Inlet("in", type_ or U(Reading))


# -- what can be built -----------------------------------------------------------------------------------------------


def test_an_ordered_operator_after_an_unordered_stream_is_refused_with_the_edge_and_a_remedy() -> None:
    with pytest.raises(GraphError) as refused:
        inlet() >> counted()

    error = refused.value
    assert error.where == "in >> counted"
    assert "Sync(Marker, PartitionBy('room', Seq(Reading)))" in error.needed
    assert "Sync(Marker, Bag(Reading))" in error.came
    assert "Sort(" in error.hint


def test_an_unordered_operator_takes_an_ordered_stream() -> None:
    graph = Graph(inlet(O("room", Reading)) >> totals() >> Outlet("out"))

    assert graph.run([Reading(1, 2), Marker(0)]) == [Total(1, 2), Marker(0)]


def bad_graphs() -> dict[str, Callable[[], object]]:
    same = stateless()
    split = Split("split", U(Reading), ways=2, by="room")
    ordered_split = Split("split", O("room", Reading), ways=2, by="room")
    return {
        "without a type": lambda: inlet() >> hand_on,  # type: ignore[operator]
        "a type of streams with markers": lambda: stateless(takes=None),
        "no cycle": lambda: Graph(inlet() >> Merge("m", U(Reading)) >> same >> Outlet("out"), same >> same),
        "one in, one out": lambda: Graph(inlet() >> same >> Outlet("out"), Inlet("more", U(Reading)) >> same),
        "a name for each vertex": lambda: Graph(inlet() >> stateless() >> stateless() >> Outlet("out")),
        "what gives a stream": lambda: Outlet("out") >> same,
        "what takes a stream": lambda: same >> inlet(),
        "two ways or more": lambda: Split("split", U(Reading), ways=1, by="room"),
        "one in, several out": lambda: Graph(inlet() >> split, split[0] >> Outlet("out")),
        "which way": lambda: inlet() >> split >> Outlet("out"),
        "fields of Reading": lambda: totals(key="house"),
        "an unordered type": lambda: totals(gives=O("room", Total)),
        "ordered for each key": lambda: counted(takes=U(Reading)),
        "ordered by the key that its input": lambda: stateless(gives=O("room", Reading)),
        "a marker has no key": lambda: stateless(
            takes=O("room", Reading), gives=O("room", Reading), on_marker=lambda marker, emit: None
        ),
        "the same markers": lambda: stateless(takes=U(Reading, marker=Tick)),
        "streams without a common room": lambda: Graph(
            Inlet("a", O("room", Reading)) >> (merge := Merge("both", O("room", Reading))) >> Outlet("out"),
            Inlet("b", O("room", Reading)) >> merge,
        ),
        "streams without a common room ": lambda: Graph(
            inlet(O("room", Reading)) >> ordered_split,
            ordered_split[0] >> (merge := Merge("both", O("room", Reading))) >> Outlet("out"),
            ordered_split[1] >> stateless(gives=U(Reading)) >> Sort("s", U(Reading), key="room", by="watts") >> merge,
        ),
        "paths": lambda: Graph(inlet()),  # type: ignore[arg-type]
        "a path": lambda: Graph(),
        "a function": lambda: stateless(on_item=3),
        "a name": lambda: stateless(name=""),
        "items in no order, or in order for each key": lambda: inlet(Sync(Marker, Seq(Reading))),
    }


@pytest.mark.parametrize("needed", list(bad_graphs()))
def test_a_graph_that_cannot_be_is_refused(needed: str) -> None:
    with pytest.raises(GraphError) as refused:
        bad_graphs()[needed]()

    assert needed.strip() in str(refused.value)
    assert refused.value.hint


def test_a_cycle_is_named_with_its_path() -> None:
    merge, same = Merge("m", U(Reading)), stateless("same")

    with pytest.raises(GraphError, match=r"m >> same >> m|same >> m >> same"):
        Graph(inlet() >> merge >> same >> merge, same >> Outlet("out"))


# -- what comes out --------------------------------------------------------------------------------------------------


def test_what_is_emitted_at_a_marker_comes_before_it_for_every_key_that_was_seen() -> None:
    graph = Graph(inlet() >> totals() >> Outlet("out"))

    out = graph.run([Reading(1, 5), Reading(2, 7), Marker(0), Reading(1, 1), Marker(1)])

    assert out == [Total(1, 5), Total(2, 7), Marker(0), Total(1, 6), Total(2, 7), Marker(1)]


def test_the_items_of_an_unordered_operator_see_the_state_of_the_last_marker() -> None:
    def tell(state: int, item: Event, emit: Emit) -> None:
        emit(Total(item.room, state))

    graph = Graph(inlet() >> totals(on_item=tell, on_marker=lambda *_: None) >> Outlet("out"))

    out = graph.run([Reading(1, 5), Reading(1, 6), Marker(0), Reading(1, 1)])

    assert out == [Total(1, 0), Total(1, 0), Marker(0), Total(1, 11)]


def test_a_sort_orders_the_items_of_a_key_between_markers_and_ties_by_all_fields() -> None:
    graph = Graph(Inlet("in", U(Seen)) >> Sort("sort", U(Seen), key="room", by="at") >> Outlet("out"))

    out = graph.run([Seen(1, 2, "b"), Seen(1, 2, None), Seen(1, 2, "a"), Seen(1, 1, "z"), Marker(0), Seen(1, 0, "y")])

    assert out == [Seen(1, 1, "z"), Seen(1, 2, None), Seen(1, 2, "a"), Seen(1, 2, "b"), Marker(0)]


def test_a_merge_waits_with_a_marker_until_it_has_come_from_everywhere() -> None:
    merge = Merge("both", U(Reading))
    graph = Graph(Inlet("a", U(Reading)) >> merge >> Outlet("out"), Inlet("b", U(Reading)) >> merge)

    out = graph.run(
        {"a": [Reading(1, 1), Marker(0), Reading(1, 2), Marker(1)], "b": [Reading(2, 1), Marker(0), Reading(2, 2)]}
    )

    assert out == [Reading(1, 1), Reading(2, 1), Marker(0), Reading(1, 2), Reading(2, 2)]


def test_markers_that_differ_cannot_be_merged() -> None:
    merge = Merge("both", U(Reading))
    graph = Graph(Inlet("a", U(Reading)) >> merge >> Outlet("out"), Inlet("b", U(Reading)) >> merge)

    with pytest.raises(SchemaError, match="the same markers from all sides"):
        graph.run({"a": [Marker(0)], "b": [Marker(1)]})


def test_the_ways_of_a_split_by_key_can_be_merged_in_order() -> None:
    split, merge = Split("split", O("room", Reading), ways=2, by="room"), Merge("both", O("room", Reading))
    graph = Graph(
        inlet(O("room", Reading)) >> split,
        split[0] >> counted("left") >> merge >> counted("after") >> Outlet("out"),
        split[1] >> merge,
    )

    out = graph.run([Reading(room, 0) for room in (1, 2, 3, 4, 1, 2)] + [Marker(0)])

    assert sorted(event.room for event in out[:-1]) == [1, 1, 2, 2, 3, 4]
    assert [event.watts for event in out if event.kind is Reading and event.room == 1] == [1, 2]


def test_a_fan_out_gives_each_path_all_events() -> None:
    same = stateless()
    graph = Graph(inlet() >> same >> totals() >> Outlet("sums"), same >> Outlet("all"))

    out = graph.run([Reading(1, 5), Marker(0)])

    assert out == {"sums": [Total(1, 5), Marker(0)], "all": [Reading(1, 5), Marker(0)]}


def test_a_key_that_is_forgotten_starts_anew() -> None:
    graph = Graph(inlet() >> totals(forget=lambda state: state > 5) >> Outlet("out"))

    out = graph.run([Reading(1, 6), Marker(0), Marker(1), Reading(1, 2), Marker(2)])

    assert out == [Total(1, 6), Marker(0), Marker(1), Total(1, 2), Marker(2)]


def test_a_state_that_can_change_is_not_shared_between_keys() -> None:
    def note(state: list[int], item: Event, emit: Emit) -> list[int]:
        state.append(item.watts)
        emit(Reading(item.room, len(state)))
        return state

    graph = Graph(inlet(O("room", Reading)) >> counted(initial_state=[], on_item=note) >> Outlet("out"))

    assert graph.run([Reading(1, 0), Reading(2, 0), Reading(1, 0)]) == [Reading(1, 1), Reading(2, 1), Reading(1, 2)]


def test_events_of_another_kind_are_refused() -> None:
    graph = Graph(inlet() >> stateless() >> Outlet("out"))

    with pytest.raises(SchemaError, match="needed events of Sync"):
        graph.run([Total(1, 2)])


def test_markers_that_go_back_are_refused() -> None:
    graph = Graph(inlet() >> stateless() >> Outlet("out"))

    with pytest.raises(SchemaError, match=r"Marker\(time=1\) after Marker\(time=2\)"):
        graph.run([Marker(2), Marker(1)])


@pytest.mark.parametrize("wrong", [Marker(1), Total(1, 1), "text"], ids=["marker", "kind", "text"])
def test_an_operator_that_emits_what_its_type_excludes_is_named(wrong: Any) -> None:
    graph = Graph(inlet() >> stateless(on_item=lambda item, emit: emit(wrong)) >> Outlet("out"))

    with pytest.raises(SchemaError, match="same emits: needed items of"):
        graph.run([Reading(1, 1)])


def test_events_for_the_wrong_sources_are_refused() -> None:
    with pytest.raises(GraphError, match="needed events for in"):
        Graph(inlet() >> stateless() >> Outlet("out")).run({"other": []})


@pytest.mark.parametrize(
    ("one", "other"),
    [(0.0, -0.0), (1, 1.0), ((1, "a"), (1.0, "a")), (True, 1)],
    ids=["zero", "whole", "tuple", "truth"],
)
def test_equal_keys_have_equal_hashes(one: Any, other: Any) -> None:
    assert one == other
    assert stable_hash(one) == stable_hash(other)


def test_a_key_that_is_nan_is_one_key_also_after_a_restart() -> None:
    Price = Kind("Price", euros=float)  # noqa: N806 - a kind
    counts = KeyedOrdered(
        "counts",
        takes=O("euros", Price),
        gives=O("euros", Price),
        initial_state=0,
        on_item=lambda state, item, emit: state + 1,
    )
    graph = Graph(Inlet("in", O("euros", Price)) >> counts >> Outlet("out"))
    first = Network(graph, graph.vertices, lambda edge: lambda event: None)
    first.entrance(graph.inlets[0])(Price(float("nan")))
    again = Network(graph, graph.vertices, lambda edge: lambda event: None)

    again.state = pickle.loads(pickle.dumps(first.state))
    again.entrance(graph.inlets[0])(Price(float("nan")))

    assert list(again.state["counts"].values()) == [2]
