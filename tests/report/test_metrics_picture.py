"""Charts: lines over time that keep their peaks, whatever the numbers are."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import pytest

from streamtight.spark.metrics_picture import HEIGHT, LEFT, MOST_POINTS, WIDTH, Panel, chart
from streamtight.spark.watch_metrics import Progress, WatchMetrics


def points(picture: str) -> list[list[tuple[float, float]]]:
    """Of each line, where it goes."""
    lines = re.findall(r'<path d="M([\d. L-]+)" fill="none"', picture)
    return [[tuple(map(float, point.split())) for point in line.split("L")] for line in lines]  # type: ignore[misc]


def texts(picture: str) -> list[str]:
    root = ElementTree.fromstring(picture)  # noqa: S314 - we made it
    return ["".join(each.itertext()) for each in root.iter() if each.tag.endswith("}text")]


def test_a_line_goes_through_its_values():
    (line,) = points(chart([10.0, 11.0, 14.0], [Panel("rows", {"left": [0.0, 5.0, 10.0]})], label="x"))

    assert [x for x, _ in line] == [LEFT, LEFT + WIDTH / 4, LEFT + WIDTH]
    bottom, middle, top = (y for _, y in line)
    assert bottom - top == HEIGHT
    assert bottom - middle == HEIGHT / 2


def test_a_long_line_keeps_its_peak():
    values = [1.0] * 100_000
    values[77_777] = 50.0

    (line,) = points(chart([float(n) for n in range(100_000)], [Panel("rows", {"left": values})], label="x"))

    assert len(line) <= MOST_POINTS + 1
    assert sum(y == min(y for _, y in line) for _, y in line) == 1


@pytest.mark.parametrize(
    ("most", "shown"),
    [(0.125, "0.125"), (999.4, "999"), (999.8, "1,000"), (1_415.0, "1,415"), (25e3, "25 k"), (3e9, "3 G")],
)
def test_numbers_are_written_as_people_do(most: float, shown: str):
    assert shown in texts(chart([0.0, 1.0], [Panel("rows", {"a": [0.0, most]})], label="x"))


@pytest.mark.parametrize(
    ("seconds", "values"),
    [
        ([], []),
        ([5.0], [3.0]),
        ([1.0, 1.0], [0.0, 0.0]),
        ([1.0, 2.0], [None, None]),
        ([1.0, 2.0, 3.0], [math.nan, math.inf, 1e300]),
        ([3.0, 2.0], [1.0, -5.0]),
    ],
)
def test_whatever_the_numbers_are_there_is_a_chart(seconds, values):
    picture = chart(seconds, [Panel("<rows>", {"a": values, "b": values})], label="<&>", marks=[(2.0, "<found>")])

    assert "<rows>" in texts(picture)
    assert "nan" not in picture.lower()


def test_what_was_found_is_marked():
    picture = chart([0.0, 10.0], [Panel("rows", {"a": [1.0, 2.0]})], label="x", marks=[(5.0, "STUCK: a row")])

    assert f'class="tight-mark"><title>STUCK: a row</title><path d="M{LEFT + WIDTH / 2:g} ' in picture


def test_the_metrics_of_a_watched_stream_have_a_picture():
    metrics = WatchMetrics()
    begin = datetime(2024, 5, 1, tzinfo=UTC)
    for batch in range(3):
        metrics.history.append(
            Progress("q", batch, begin + timedelta(seconds=batch), 10, 100.0 * batch, 0.5, None, batch, {})
        )

    told = texts(metrics.picture())

    assert [text for text in told if text in ("rows a second", "seconds a batch", "keys with a state")] == [
        "rows a second",
        "seconds a batch",
        "keys with a state",
    ]
    assert "seconds behind the clock" not in told
    assert metrics._repr_html_() == metrics.picture()
