"""How fast are typed graphs: to check, in plain Python, and on Spark beside the same job written by hand?

    python benchmarks/graph.py [events]

The job is the interpolation of Example 2.26: keep some sensors, sort between markers, fill gaps. By hand it is what an
engineer would write with transformWithState: markers are sent to every sensor, rows wait in the state until one comes.
Both read the same files in the same micro-batches; they take turns, and the medians are compared.
"""

from __future__ import annotations

import json
import pickle
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

import streamtight as tight

Measured = tight.Kind("Measured", sensor=int, value=float, at=int)
Value = tight.Kind("Value", sensor=int, value=float, at=int)
SENSORS, KEPT, SECONDS, BATCHES, TURNS = 250, 200, 10, 5, 3
COLUMNS = "kind string, sensor long, value double, at long, time long, position long"


def kept(item, emit):
    if item.sensor < KEPT:
        emit(Value(item.sensor, item.value, item.at))


def fill_in(last, item, emit):
    if last is not None:
        at, value = last
        for between in range(at + 1, item.at):
            emit(Value(item.sensor, value + (item.value - value) * (between - at) / (item.at - at), between))
    emit(item)
    return (item.at, item.value)


def pipeline() -> tight.Graph:
    return tight.Graph(
        tight.Inlet("hub", tight.U(Measured))
        >> tight.Stateless("kept", takes=tight.U(Measured), gives=tight.U(Value), on_item=kept)
        >> tight.Sort("sort", tight.U(Value), key="sensor", by="at")
        >> tight.KeyedOrdered(
            "filled",
            takes=tight.O("sensor", Value),
            gives=tight.O("sensor", Value),
            initial_state=None,
            on_item=fill_in,
        )
        >> tight.Outlet("all")
    )


class ByHand(StatefulProcessor):
    """A sensor: what waits for a marker, and the last value."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("sensor", "kept binary")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        waiting, last = pickle.loads(self._state.get()[0]) if self._state.exists() else ([], None)  # noqa: S301
        for row in sorted(rows, key=lambda row: row["position"]):
            if row["kind"] == "Measured":
                waiting.append((row["at"], row["value"]))
                continue
            for at, value in sorted(waiting):
                if last is not None:
                    for between in range(last[0] + 1, at):
                        step = (value - last[1]) * (between - last[0]) / (at - last[0])
                        yield Row(sensor=key[0], value=last[1] + step, at=between)
                yield Row(sensor=key[0], value=value, at=at)
                last = (at, value)
            waiting = []
        self._state.update((pickle.dumps((waiting, last)),))

    def close(self) -> None:
        pass


def by_hand(stream: DataFrame) -> DataFrame:
    items = stream.where(f"kind = 'Measured' AND sensor < {KEPT}")
    every = sf.explode(sf.sequence(sf.lit(0).cast("long"), sf.lit(KEPT - 1).cast("long")))
    markers = stream.where("kind = 'Marker'").withColumn("sensor", every)
    keyed = items.unionByName(markers).select("sensor", "kind", "value", "at", "position").groupBy("sensor")
    return keyed.transformWithState(ByHand(), "sensor long, value double, at long", "append", "none")


def events(count: int) -> list[tight.Event]:
    chance = random.Random(0)
    made: list[tight.Event] = []
    start = 0
    while len(made) < count:
        block = [
            Measured(sensor, float(chance.randint(0, 30)), at)
            for sensor in range(SENSORS)
            for at in range(start, start + SECONDS)
            if chance.random() < 0.6
        ]
        chance.shuffle(block)
        start += SECONDS
        made += [*block, tight.Marker(start)]
    return made


def files(stream: list[tight.Event], folder: Path) -> None:
    size = -(-len(stream) // BATCHES)
    folder.mkdir()
    for number in range(BATCHES):
        with (folder / f"{number}.json").open("w") as file:
            for position in range(number * size, min((number + 1) * size, len(stream))):
                event = stream[position]
                file.write(json.dumps({"kind": event.kind.name, **event.as_dict(), "position": position}) + "\n")


def seconds_on_spark(job: Callable[[DataFrame], DataFrame], folder: Path, spark: SparkSession) -> tuple[float, int]:
    """How long a query takes for all files, and how many values come out."""
    stream = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).json(str(folder))
    found: list[int] = []

    def count(batch: DataFrame, number: int) -> None:
        found.append(batch.where("at IS NOT NULL").count())

    with tempfile.TemporaryDirectory() as checkpoint:
        writer = job(stream).writeStream.foreachBatch(count).option("checkpointLocation", checkpoint)
        started = time.perf_counter()
        writer.trigger(availableNow=True).start().awaitTermination()
        return time.perf_counter() - started, sum(found)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    started = time.process_time()
    graph = pipeline()
    built = time.process_time() - started
    verdict = tight.typecheck(graph)
    print(f"build and check all edges  {built * 1000:8.2f} ms")
    print(
        f"prove its obligations      {verdict.cost['seconds'] * 1000:8.0f} ms   {verdict.outcome.name}, {verdict.scope}"
    )

    stream = events(count)
    started = time.process_time()
    wanted = sum(event.kind is Value for event in graph.run(stream))
    spent = time.process_time() - started
    print(f"plain Python               {len(stream) / spent:8,.0f} events/s of CPU time, {len(stream):,} events")

    spark = tight.session()
    jobs = {"graph.on_spark": lambda df: graph.on_spark(df, position="position"), "by hand": by_hand}
    times: dict[str, list[float]] = {name: [] for name in jobs}
    with tempfile.TemporaryDirectory() as folder:
        files(stream, Path(folder) / "in")
        for turn in range(TURNS + 1):
            for name, job in jobs.items():
                took, came = seconds_on_spark(job, Path(folder) / "in", spark)
                if came != wanted:
                    raise SystemExit(f"{name} gave {came} values, plain Python {wanted}")
                if turn:  # the first one warms up
                    times[name].append(took)
    medians = {name: statistics.median(each) for name, each in times.items()}
    for name, median in medians.items():
        print(f"{name:26} {len(stream) / median:8,.0f} events/s, {median:.1f} s for {BATCHES} micro-batches")
    print(f"graph / by hand            {medians['graph.on_spark'] / medians['by hand']:8.2f}")


if __name__ == "__main__":
    main()
