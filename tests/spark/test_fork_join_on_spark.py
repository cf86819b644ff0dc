"""The applications of fork and join on real Spark: from files and from DataFrames, they give what one loop gives."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent
from typing import Any

import pyarrow.parquet as pq
import pytest
from load_example import EXAMPLES, load_example
from pyspark.sql import DataFrame, SparkSession

import streamtight as tight

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
QUICK = ["fraud", "key_counter"]
"""In make test; the others are in make slow."""


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
    params=[
        pytest.param(
            (name, workers), id=f"{name}-{workers}", marks=[] if workers == 2 and name in QUICK else pytest.mark.slow
        )
        for name in PROGRAMS
        for workers in (1, 2)
    ],
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


@pytest.mark.slow
def test_an_application_gives_on_frames_what_one_loop_gives(spark: SparkSession, app: Application) -> None:
    assert app.on_spark(frames(spark, app)) == app.outputs


@pytest.mark.slow
def test_lanes_of_one_stream_of_files_give_what_one_loop_gives(spark: SparkSession, cut: Application) -> None:
    assert [leaf.shares[0].lanes for leaf in cut.ready.plan.leaves] == [2, 2]
    assert cut.on_spark(cut.files) == cut.outputs


def test_lanes_of_one_frame_give_what_one_loop_gives(spark: SparkSession, cut: Application) -> None:
    assert cut.on_spark(frames(spark, cut)) == cut.outputs


def test_some_streams_may_be_files_and_others_frames(spark: SparkSession, cut: Application) -> None:
    *_, last = cut.files
    mixed = {**cut.files, last: frames(spark, cut)[last]}

    assert cut.on_spark(mixed) == cut.outputs


@pytest.mark.parametrize("name", ["outliers", "smart_home"])
def test_the_page_draws_the_plan_that_is_chosen(name: str) -> None:
    module = load_example(name)
    chosen = tight.plan(getattr(module, PROGRAMS[name])(), module.streams(2, 1_000))

    assert indent(chosen.show(), " " * 4) in (EXAMPLES.parent / "docs" / "fork_join_examples.md").read_text()


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in PROGRAMS]
)
def test_each_example_runs(spark: SparkSession, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    load_example(name).main()

    assert "time=" in capsys.readouterr().out
