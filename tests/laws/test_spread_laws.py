"""Transformers that are spread over keys give what they give in one place."""

from __future__ import annotations

import random
from typing import Any

import pytest
from cluster import Cluster
from hypothesis import given
from hypothesis import strategies as st
from strategies import lawful

import streamtight as tight
from streamtight.errors import SchemaError
from streamtight.program.transformer import Transformer
from streamtight.stream.event import Event, Kind

A, B = Kind("A", k=int, n=int), Kind("B", k=int, n=int)
Day, Hour = Kind("Day", day=int), Kind("Hour", hour=int)
Step, Total, Most = Kind("Step", k=int, n=int), Kind("Total", k=int, n=int), Kind("Most", n=int)


def steps(name: str, kind: Kind) -> Transformer:
    """Differences in order: each gives an event, and the end another one."""
    return tight.Hierarchical(
        name,
        takes=tight.Seq(kind),
        gives=tight.Seq(Step),
        init=lambda x: (0, None),
        update=lambda state, item: ((item.n, item.k), [Step(item.k, item.n - state[0])]),
        fin=lambda state: (state[0], [Step(state[1], -1)]),
    )


def totals(name: str, kind: Kind) -> Transformer:
    return tight.Relational.incremental(
        name, takes=tight.Bag(kind), init=lambda x: 0, add=lambda total, item: total + item.n
    )


def by_key(name: str, sub: Transformer) -> Transformer:
    return tight.Partitioned(
        name,
        "k",
        sub,
        shared=Most,
        agg=lambda x, finals: (sum(finals.values()), [Most(max(finals.values()))] if finals else []),
    )


def hours(sub: Transformer, between: Any, marker: Kind = Hour) -> Transformer:
    return tight.Hierarchical(
        "hours",
        takes=tight.Sync(marker, between),
        gives=tight.Sync(Total, sub.gives),
        sub=sub,
        init=lambda x: 0,
        returned=lambda state, value: state + (value if isinstance(value, int) else sum(value)),
        update=lambda state, hour: (state % 7, [Total(hour[1], state)]),
    )


def one_key() -> Transformer:
    return hours(by_key("taxis", steps("steps", A)), tight.PartitionBy("k", tight.Seq(A)))


def side_by_side() -> Transformer:
    parts = tight.Parallel(
        "parts", by_key("as", steps("steps", A)), tight.Partitioned("bs", "k", totals("sums", B), agg=_sum)
    )
    return hours(parts, tight.Par(tight.PartitionBy("k", tight.Seq(A)), tight.PartitionBy("k", tight.Bag(B))))


def _sum(x: Any, finals: dict[Event, Any]) -> tuple[int, list[Event]]:
    return sum(finals.values()), []


def beside_a_bag() -> Transformer:
    parts = tight.Parallel("parts", by_key("as", steps("steps", A)), totals("sums", B))
    return hours(parts, tight.Par(tight.PartitionBy("k", tight.Seq(A)), tight.Bag(B)))


def days_of_hours() -> Transformer:
    inner = hours(by_key("as", steps("steps", A)), tight.PartitionBy("k", tight.Seq(A)))
    return tight.Hierarchical(
        "days",
        takes=tight.Sync(Day, inner.takes),
        gives=tight.Sync((), inner.gives),
        sub=inner,
        init=lambda x: 0,
        call=lambda state: 0,
    )


def no_keys() -> Transformer:
    return hours(totals("sums", A), tight.Bag(A))


FORMS = {form.__name__: form for form in (one_key, side_by_side, beside_a_bag, days_of_hours, no_keys)}


@st.composite
def streams(draw: st.DrawFn, transformer: Transformer) -> list[Event]:
    """Events that it takes; markers in their order."""
    chosen = draw(st.lists(st.sampled_from(sorted(transformer.takes.kinds, key=lambda kind: kind.name)), max_size=14))
    made: list[Event] = []
    for place, kind in enumerate(chosen):
        made.append(kind(place) if kind in (Day, Hour) else kind(draw(st.integers(0, 2)), draw(st.integers(0, 5))))
    return made


def in_one_place(transformer: Transformer, events: list[Event]) -> list[Event]:
    running = transformer.start(None)
    return [*running.opening, *(made for event in events for made in running.feed(event))]


@pytest.mark.parametrize("form", list(FORMS))
@lawful
@given(data=st.data(), chance=st.randoms(use_true_random=False), buckets=st.integers(1, 3))
def test_spread_over_buckets_it_gives_what_it_gives_in_one_place(
    form: str, data: st.DataObject, chance: random.Random, buckets: int
) -> None:
    transformer = FORMS[form]()
    events = data.draw(streams(transformer))
    last = max((place for place, event in enumerate(events) if event.kind in (Day, Hour)), default=-1)
    events = events[: last + 1]  # what comes after the last marker may still be on its way
    graph = tight.spread(transformer)
    cluster = Cluster(graph, buckets, 1)
    cut = chance.randint(0, len(events))
    for part in (range(cut), range(cut, len(events))):
        cluster.batch({"in": [(0, place, events[place]) for place in part]}, chance)

    wanted = transformer.gives.parse(in_one_place(transformer, events))

    assert transformer.gives.parse(graph.run(events)) == wanted
    assert transformer.gives.parse(cluster.outputs()["out"]) == wanted


def test_runs_that_begin_with_what_came_before_are_refused() -> None:
    sums = tight.Relational.incremental("sums", takes=tight.Bag(A), add=lambda total, item: total + item.n)
    growing = tight.Hierarchical(
        "growing",
        takes=tight.Sync(Hour, tight.PartitionBy("k", tight.Bag(A))),
        sub=tight.Partitioned("keys", "k", sums, agg=lambda x, finals: (sum(finals.values()), [])),
    )

    with pytest.raises(SchemaError, match="runs that begin alike in every block"):
        tight.spread(growing, 0).run([A(1, 5), Hour(0), A(1, 1), Hour(1)])


def test_nothing_comes_out_of_runs_that_should_have_begun_otherwise() -> None:
    sums = tight.Hierarchical(
        "sums",
        takes=tight.Seq(A),
        gives=tight.Seq(Step),
        update=lambda total, item: (total + item.n, [Step(item.k, total + item.n)]),
    )
    growing = tight.Hierarchical(
        "growing",
        takes=tight.Sync(Hour, tight.PartitionBy("k", tight.Seq(A))),
        sub=tight.Partitioned("keys", "k", sums, agg=lambda x, finals: (sum(finals.values()), [])),
    )

    with pytest.raises(SchemaError, match="runs that begin alike in every block"):
        tight.spread(growing, 0).run([A(1, 5), Hour(0), A(1, 1)])


def test_what_is_given_before_the_first_event_is_refused() -> None:
    opened = tight.Relational("opened", takes=tight.Bag(A), gives=tight.Bag(Most), open=lambda x, items: [Most(0)])

    with pytest.raises(SchemaError, match="nothing before the first event"):
        tight.spread(opened)
