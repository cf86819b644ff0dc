"""Typed graphs on Spark give what they give in plain Python, up to their types (Theorem 2.27)."""

from __future__ import annotations

import random
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

import streamtight as tight
from streamtight.errors import GraphError, JobError
from streamtight.method.compare.matcher import Matcher
from streamtight.stream.schedule import Restart, Schedule

Item = tight.Kind("Item", key=int, group=int, value=int)
UNORDERED, ORDERED = tight.U(Item), tight.O("key", Item)
# What Spark is given besides: on which lane, and at which place there.
Given = tight.Kind("Item", key=int, group=int, value=int, lane=int, position=int)
GivenMarker = tight.Kind("Marker", time=int, lane=int, position=int)
COLUMNS = {"block": int, "lane": int, "place": int}
Out = tight.Kind("Item", key=int, group=int, value=int, **COLUMNS)
OutMarker = tight.Kind("Marker", time=int, **COLUMNS)

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture(autouse=True, scope="module")
def functions_by_value() -> Iterator[None]:
    """The workers of Spark cannot import this module."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


def differences(state: int, item: tight.Event, emit: Any) -> int:
    emit(Item(item.key, item.group, item.value - state))
    return item.value


def tell(state: int, group: int, marker: tight.Event, emit: Any) -> None:
    emit(Item(group % 2, group, state))


def is_odd(item: tight.Event, emit: Any) -> None:
    if item.value % 2:
        emit(item)


def at_marker(marker: tight.Event, emit: Any) -> None:
    emit(Item(0, 0, marker.time))


def steps(name: str) -> tight.KeyedOrdered:
    return tight.KeyedOrdered(name, takes=ORDERED, gives=ORDERED, initial_state=0, on_item=differences)


def sums(name: str) -> tight.KeyedUnordered:
    return tight.KeyedUnordered(
        name,
        takes=UNORDERED,
        gives=UNORDERED,
        key="group",
        summary=lambda item: item.value,
        identity=0,
        combine=lambda a, b: a + b,
        initial_state=0,
        update_state=lambda state, total: state + total,
        on_marker=tell,
    )


def sort(name: str) -> tight.Sort:
    return tight.Sort(name, UNORDERED, key="key", by="value")


def sorted_steps() -> tight.Graph:
    return tight.Graph(tight.Inlet("in", UNORDERED) >> sort("sort") >> steps("steps") >> tight.Outlet("out"))


def two_keys() -> tight.Graph:
    """A stage by group, then one by key."""
    path = tight.Inlet("in", UNORDERED) >> sums("sums") >> sort("sort") >> steps("steps") >> tight.Outlet("out")
    return tight.Graph(path)


def split_and_merged() -> tight.Graph:
    split, merge = tight.Split("split", UNORDERED, ways=2, by="group"), tight.Merge("merge", UNORDERED)
    odd = tight.Stateless("odd", takes=UNORDERED, gives=UNORDERED, on_item=is_odd, on_marker=at_marker)
    return tight.Graph(
        tight.Inlet("in", UNORDERED) >> split,
        split[0] >> odd >> merge >> tight.Outlet("out"),
        split[1] >> sums("sums") >> merge,
    )


def stateless() -> tight.Graph:
    odd = tight.Stateless("odd", takes=UNORDERED, gives=UNORDERED, on_item=is_odd, on_marker=at_marker)
    return tight.Graph(tight.Inlet("in", UNORDERED) >> odd >> tight.Outlet("out"))


def events(blocks: int, chance: random.Random) -> list[tight.Event]:
    made: list[tight.Event] = []
    for time in range(blocks):
        items = chance.randint(0, 8)
        made += [Item(chance.randint(0, 3), chance.randint(0, 2), chance.randint(0, 9)) for _ in range(items)]
        made.append(tight.Marker(time))
    return made


def schedule_of(stream: list[tight.Event], lanes: int, batches: int, chance: random.Random) -> Schedule:
    """Rows with their lanes and positions, cut into batches lane by lane, spread over partitions anyhow."""
    cut: list[list[tight.Event]] = [[] for _ in range(batches)]
    at = [0] * lanes
    for position, event in enumerate(stream):
        everywhere = event.kind is tight.Marker
        for lane in range(lanes) if everywhere else [chance.randrange(lanes)]:
            at[lane] = min(batches - 1, at[lane] + (chance.random() < 0.15))
            kind = GivenMarker if everywhere else Given
            cut[at[lane]].append(kind(**event.as_dict(), lane=lane, position=position))
    for batch in cut:
        chance.shuffle(batch)
    restarts = tuple(Restart(place) for place in range(1, batches) if chance.random() < 0.3)
    return Schedule(tuple((tuple(batch[::2]), tuple(batch[1::2])) for batch in cut), restarts=restarts)


def on_spark(graph: tight.Graph, schedule: Schedule, lanes: int, buckets: int) -> list[tight.Event]:
    job = lambda df: graph.on_spark(df, position="position", lane="lane", lanes=lanes, buckets=buckets)  # noqa: E731
    run = tight.run(job, schedule, takes=[Given, GivenMarker], gives=[Out, OutMarker])
    rows = [row for batch in run.committed for partition in batch for row in partition]
    return graph.events([{"kind": row.kind.name, **_all_columns(row)} for row in rows])


def _all_columns(row: tight.Event) -> dict[str, Any]:
    return {**dict.fromkeys(("key", "group", "value", "time")), **row.as_dict()}


@pytest.mark.parametrize(
    ("graph", "lanes", "buckets", "batches"),
    [
        pytest.param(sorted_steps, 1, 2, 3, marks=pytest.mark.slow),
        (sorted_steps, 2, 3, 2),
        pytest.param(two_keys, 2, 2, 3, marks=pytest.mark.slow),
        (split_and_merged, 1, 2, 2),
        pytest.param(stateless, 2, 2, 2, marks=pytest.mark.slow),
    ],
    ids=["sorted", "sorted, on two lanes", "two keys", "split and merged", "stateless"],
)
def test_theorem_2_27_spark_gives_the_reference_up_to_the_type(
    graph: Any, lanes: int, buckets: int, batches: int
) -> None:
    built = graph()
    chance = random.Random(f"{graph.__name__} {lanes}")
    stream = events(5, chance)
    another = list(tight.Trace(stream, UNORDERED).reordered(chance).events)

    found = on_spark(built, schedule_of(another, lanes, batches, chance), lanes, buckets)

    matcher = Matcher(upto=built.type_of(built.outlets[0]))
    matcher.feed("left", built.run(stream))
    matcher.feed("right", found)
    matcher.finish().require()


def test_positions_that_do_not_grow_are_an_error_of_the_query() -> None:
    schedule = Schedule((((GivenMarker(1, 0, 5),),), ((GivenMarker(2, 0, 5),),)))

    with pytest.raises(JobError, match="positions that grow"):
        on_spark(sorted_steps(), schedule, 1, 1)


def test_a_column_that_rows_need_is_asked_for(spark: Any) -> None:
    Placed = tight.Kind("Placed", key=int, place=int)  # noqa: N806 - a kind
    same = tight.Stateless("same", takes=tight.U(Placed), gives=tight.U(Placed), on_item=lambda item, emit: emit(item))
    graph = tight.Graph(tight.Inlet("in", tight.U(Placed)) >> same >> tight.Outlet("out"))
    rows = spark.createDataFrame([], "kind string, key long, place long, time long, position long")

    with pytest.raises(GraphError, match="rename the fields"):
        graph.on_spark(rows, position="position")


@pytest.mark.slow
def test_a_transformer_that_is_spread_gives_on_spark_what_it_gives_in_one_place() -> None:
    Ride, Hour = tight.Kind("Ride", taxi=int, cents=int), tight.Kind("Hour", hour=int)  # noqa: N806 - kinds
    Most = tight.Kind("Most", hour=int, cents=int)  # noqa: N806
    rides = tight.Relational.incremental(
        "rides", takes=tight.Bag(Ride), init=lambda x: 0, add=lambda cents, ride: cents + ride.cents
    )
    taxis = tight.Partitioned("taxis", "taxi", rides, agg=lambda x, totals: (max(totals.values(), default=0), []))
    hours = tight.Hierarchical(
        "hours",
        takes=tight.Sync(Hour, tight.PartitionBy("taxi", tight.Bag(Ride))),
        gives=tight.Seq(Most),
        sub=taxis,
        update=lambda most, hour: (0, [Most(hour.hour, most)]),
    )
    graph = tight.spread(hours)
    chance = random.Random(0)
    stream = [Ride(chance.randrange(5), chance.randrange(9)) for _ in range(30)]
    for place in (10, 21, 32):
        stream.insert(place, Hour(place))
    rows = [{"kind": e.kind.name, **e.as_dict(), "position": place} for place, e in enumerate(stream)]
    columns = {"Ride": {"taxi": int, "cents": int, "position": int}, "Hour": {"hour": int, "position": int}}
    kinds = {name: tight.Kind(name, **fields) for name, fields in columns.items()}
    given = [kinds[row.pop("kind")](**row) for row in rows]
    schedule = Schedule((((*given[:17],),), ((*given[17:],),)))

    run = tight.run(
        lambda df: graph.on_spark(df, position="position", buckets=3),
        schedule,
        takes=list(kinds.values()),
        gives=tight.Kind("Most", hour=int, cents=int, **COLUMNS),
    )

    running = hours.start(None)
    assert graph.events([event.as_dict() for event in run.events]) == [
        made for event in stream for made in running.feed(event)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("example", ["interpolation", "ad_counts"])
def test_an_example_gives_on_spark_what_it_gives_in_plain_python(
    example: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(__file__).parents[2] / "examples" / f"{example}.py"
    monkeypatch.setattr("sys.argv", [str(path)])

    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(path), run_name="__main__")

    out = capsys.readouterr().out
    assert end.value.code == 0, out
    assert "Spark gives what plain Python gives: True" in out


def test_the_interpolation_without_the_sort_is_refused_when_it_is_built(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(__file__).parents[2] / "examples" / "interpolation.py"
    monkeypatch.setattr("sys.argv", [str(path), "unsorted"])

    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(path), run_name="__main__")

    assert end.value.code == 1
    assert capsys.readouterr().out.startswith(
        "windows >> filled: needed Sync(Marker, PartitionBy('sensor', Seq(Value)))"
    )
