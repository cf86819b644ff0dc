"""The applications of fork and join on real Spark: from files and from DataFrames, they give what one loop gives."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from load_example import load_example
from pyspark.sql import DataFrame, SparkSession

import streamtight as tight
from streamtight.errors import InputError, UnsupportedError

PROGRAMS = {
    "event_windows": "EventWindows",
    "page_views": "PageViews",
    "fraud": "Fraud",
    "key_counter": "KeyCounter",
    "outliers": "Outliers",
    "smart_home": "SmartHome",
}
CUT = ["event_windows", "fraud"]
"""Their fast events do not depend on each other, so that one stream of them can be cut into lanes."""


@dataclass(frozen=True)
class Application:
    """A program with its plan, the files of its streams, and what it gives in one loop."""

    ready: tight.Parallelized
    files: dict[str, Path]
    outputs: Counter[tight.Event]

    def on_spark(self, inputs: dict[str, Any]) -> Counter[tight.Event]:
        return Counter(self.ready.events(self.ready.on_spark(inputs)))


def application(name: str, folder: Path, *, fast: int, workers: int) -> Application:
    module = load_example(name)
    module.make(folder, streams=fast, events=2_000, every=50)
    streams = module.streams(fast, 50)
    files = {stream.name: folder / f"{stream.name}.parquet" for stream in streams}
    for path in files.values():  # many row groups, since lanes are made of these
        pq.write_table(pq.read_table(path), path, row_group_size=100)
    kinds = {stream.name: stream.tags.kinds[0] for stream in streams}
    events = {each: [kinds[each](**row) for row in pq.read_table(path).to_pylist()] for each, path in files.items()}
    program = getattr(module, PROGRAMS[name])()
    return Application(tight.parallelize(program, streams, workers=workers), files, Counter(program.run(events)))


@pytest.fixture(
    scope="module",
    params=[(name, workers) for name in PROGRAMS for workers in (1, 2)],
    ids=lambda param: f"{param[0]}-{param[1]}",
)
def app(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Application:
    name, workers = request.param
    return application(name, tmp_path_factory.mktemp(name), fast=2, workers=workers)


@pytest.fixture(scope="module", params=CUT)
def cut(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Application:
    """One fast stream for two workers."""
    return application(request.param, tmp_path_factory.mktemp(request.param), fast=1, workers=2)


def frames(spark: SparkSession, app: Application) -> dict[str, DataFrame]:
    """The same rows, in another order."""
    return {name: spark.read.parquet(str(path)).repartition(2, "time") for name, path in app.files.items()}


def test_an_application_gives_on_files_what_one_loop_gives(spark: SparkSession, app: Application) -> None:
    assert app.outputs
    assert app.on_spark(app.files) == app.outputs


def test_an_application_gives_on_frames_what_one_loop_gives(spark: SparkSession, app: Application) -> None:
    assert app.on_spark(frames(spark, app)) == app.outputs


def test_lanes_of_one_stream_of_files_give_what_one_loop_gives(spark: SparkSession, cut: Application) -> None:
    assert [leaf.shares[0].lanes for leaf in cut.ready.plan.leaves] == [2, 2]
    assert cut.on_spark(cut.files) == cut.outputs


def test_lanes_of_one_frame_give_what_one_loop_gives(spark: SparkSession, cut: Application) -> None:
    assert cut.on_spark(frames(spark, cut)) == cut.outputs


def test_some_streams_may_be_files_and_others_frames(spark: SparkSession, cut: Application) -> None:
    *_, last = cut.files
    mixed = {**cut.files, last: frames(spark, cut)[last]}

    assert cut.on_spark(mixed) == cut.outputs


def test_outputs_in_a_folder_are_those_of_one_loop(spark: SparkSession, cut: Application, tmp_path: Path) -> None:
    given = cut.ready.on_spark(cut.files, output=str(tmp_path / "outputs"))

    assert Counter(cut.ready.events(given)) == cut.outputs
    assert Counter(cut.ready.events(spark.read.parquet(str(tmp_path / "outputs")))) == cut.outputs


def test_streams_without_rows_give_nothing(spark: SparkSession, cut: Application) -> None:
    assert cut.on_spark({name: frame.limit(0) for name, frame in frames(spark, cut).items()}) == Counter()


def test_rows_of_equal_time_that_depend_on_each_other_are_refused_in_frames(
    spark: SparkSession, cut: Application
) -> None:
    *_, last = cut.files
    rows = frames(spark, cut)
    twice = {**rows, last: rows[last].union(rows[last])}

    with pytest.raises(InputError, match="both at 50"):
        cut.on_spark(twice)


def test_a_plan_with_more_leaves_than_spark_has_slots_is_refused(spark: SparkSession, cut: Application) -> None:
    program, streams = cut.ready.program, cut.ready.plan.streams
    many = tight.Parallelized(tight.plan(program, streams, workers=5), cut.ready.verdict)

    with pytest.raises(UnsupportedError, match="workers=2"):
        many.on_spark(cut.files)
