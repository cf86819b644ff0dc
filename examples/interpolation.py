"""Sensors whose measurements arrive in any order: the missing ones are filled in, sensor by sensor.

    python examples/interpolation.py            the graph as it should be, in plain Python and on Spark
    python examples/interpolation.py unsorted   with the sorting left out, which is refused when the graph is built

The pipeline of Example 2.26 of the proposal: a hub sends measurements and, every ten seconds, a marker; all that was
measured before it has arrived. Sensors near windows are kept, their measurements sorted between markers, and gaps
filled by linear interpolation.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

import streamtight as tight
from streamtight import Event

Measured = tight.Kind("Measured", sensor=int, value=float, at=int)
Value = tight.Kind("Value", sensor=int, value=float, at=int)
NEAR_A_WINDOW = frozenset({1, 2, 3, 5})


def near_a_window(item, emit):
    """Join with the table of places, filter, and map: no state is needed."""
    if item.sensor in NEAR_A_WINDOW:
        emit(Value(item.sensor, item.value, item.at))


def fill_in(last, item, emit):
    """What was measured, and what lies on the line between it and the last one. The state is the last one."""
    if last is not None:
        at, value = last
        for between in range(at + 1, item.at):
            emit(Value(item.sensor, value + (item.value - value) * (between - at) / (item.at - at), between))
    emit(item)
    return (item.at, item.value)


hub = tight.Inlet("hub", tight.U(Measured))
windows = tight.Stateless("windows", takes=tight.U(Measured), gives=tight.U(Value), on_item=near_a_window)
sort = tight.Sort("sort", tight.U(Value), key="sensor", by="at")
filled = tight.KeyedOrdered(
    "filled", takes=tight.O("sensor", Value), gives=tight.O("sensor", Value), initial_state=None, on_item=fill_in
)


def pipeline() -> tight.Graph:
    """hub, windows, sort, filled, all."""
    return tight.Graph(hub >> windows >> sort >> filled >> tight.Outlet("all"))


def unsorted() -> tight.Graph:
    """The same without the sort: `filled` would see an order that nobody promised."""
    return tight.Graph(hub >> windows >> filled >> tight.Outlet("all"))


def measurements(count: int, seed: int = 0) -> list[Event]:
    """So many events: ten seconds of seven sensors, of which some measurements are lost, in any order; a marker."""
    chance = random.Random(seed)
    events: list[Event] = []
    start = 0
    while len(events) < count:
        block = [
            Measured(sensor, float(chance.randint(0, 30)), at)
            for sensor in range(7)
            for at in range(start, start + 10)
            if chance.random() < 0.6
        ]
        chance.shuffle(block)
        start += 10
        events += [*block, tight.Marker(start)]
    return events


def main() -> int:
    """Judge the graph, run it twice, and compare."""
    if sys.argv[1:] == ["unsorted"]:
        try:
            unsorted()
        except tight.StreamtightError as error:
            print(error)
            return 1
    graph = pipeline()
    print(tight.typecheck(graph).story())

    events = measurements(300)
    in_python = graph.run(events)

    spark = tight.session()
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            (event.kind.name, *(event.as_dict().get(name) for name in ("sensor", "value", "at", "time")), position)
            for position, event in enumerate(events)
        ]
        columns = "kind string, sensor long, value double, at long, time long, position long"
        for number in range(3):  # three micro-batches
            part = rows[number * 100 : (number + 1) * 100] if number < 2 else rows[200:]
            spark.createDataFrame(part, columns).coalesce(1).write.mode("append").json(f"{folder}/in")
        stream = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1).json(f"{folder}/in")
        query = (
            graph.on_spark(stream, position="position")
            .writeStream.format("memory")
            .queryName("filled")
            .option("checkpointLocation", str(Path(folder) / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        on_spark = graph.events(spark.table("filled").collect())
    type_ = graph.type_of(graph.outlets[0])
    same = tight.Trace(in_python, type_) == tight.Trace(on_spark, type_)
    print(f"{len(events)} events in, {len(on_spark)} out; Spark gives what plain Python gives: {same}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
