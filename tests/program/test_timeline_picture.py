"""Pictures of runs: each row in the line of its key and the column of its batch."""

from __future__ import annotations

import re
from datetime import datetime
from xml.etree import ElementTree

import pytest

from streamtight.program.letter import Letter
from streamtight.program.run import Cause, Run, Step
from streamtight.program.timeline_picture import (
    MOST_BATCHES,
    MOST_KEYS,
    Column,
    Strip,
    columns_of_run,
    columns_of_word,
    key_of,
    timeline_picture,
)
from streamtight.stream.dependence import ordered, same
from streamtight.stream.event import Kind
from streamtight.stream.schedule import Restart, Schedule

Click, Total = Kind("Click", user=str, ms=int), Kind("Total", user=str, total=int)


def placed(picture: str) -> dict[str, tuple[float, float]]:
    """Where each text begins."""
    root = ElementTree.fromstring(picture)  # noqa: S314 - we made it
    found = [each for each in root.iter() if each.tag.endswith("}text")]
    return {"".join(each.itertext()): (float(each.attrib["x"]), float(each.attrib["y"])) for each in found}


def marked(picture: str) -> list[str]:
    return re.findall(r'<g class="tight-mark"><title>(.*?)</title>', picture)


def test_a_row_stands_in_the_line_of_its_key_under_its_batch():
    columns = [
        Column("batch 0", {"input": [Click("ann", 1), Click("bob", 2)]}),
        Column("batch 1", {"input": [Click("bob", 3)]}),
    ]

    places = placed(timeline_picture(columns, key=("user",)))

    assert places["ms=1"][0] == places["ms=2"][0] == places["batch 0"][0]
    assert places["ms=3"][0] == places["batch 1"][0] > places["batch 0"][0]
    assert places["ms=1"][1] == places["user=ann"][1]
    assert places["ms=2"][1] == places["ms=3"][1] == places["user=bob"][1]


def test_restarts_late_rows_and_wrong_rows_are_told_where_they_are():
    schedule = Schedule.of([Click("ann", 1), Click("ann", 2)], cuts=[1], restarts=[Restart(0, replay=True)])
    first, second = schedule.batches
    steps = (
        Step(0, Cause.DATA, first, ((Total("ann", 1),),)),
        Step(0, Cause.REPLAY, first, ((Total("ann", 2),),)),
        Step(1, Cause.DATA, second, ((Total("ann", 4),),), late_rows=1),
        Step(2, Cause.FLUSH, ((),), ((),)),
    )

    columns = columns_of_run(Run(steps), schedule, [Total("ann", 2)])
    picture = timeline_picture(columns, key=("user",), never=[Total("ann", 1)])

    assert [column.name for column in columns] == ["batch 0", "batch 0", "batch 1", "end of time"]
    assert [column.matters for column in columns] == [False, True, False, False]
    assert marked(picture) == [
        "stopped before its commit",
        "run again",
        "1 late row dropped",
        "Total(user=&#x27;ann&#x27;, total=2)",
        "Total(user=&#x27;ann&#x27;, total=1)",
    ]


def test_what_a_batch_gave_before_it_ran_again_is_not_blamed():
    schedule = Schedule.of([Click("ann", 1)], restarts=[Restart(0, replay=True)])
    (batch,) = schedule.batches
    steps = tuple(Step(0, cause, batch, ((Total("ann", 1),),)) for cause in (Cause.DATA, Cause.REPLAY))

    first, again = columns_of_run(Run(steps), schedule, [Total("ann", 1), Total("ann", 1)])

    assert not first.matters
    assert again.wrong["output"] == [0]


def test_what_holds_is_a_strip_under_the_rows():
    word = [
        Letter({"input": (Click("ann", n),)}, {"output": ()}, batch=n, watermark=datetime(2024, 1, 1)) for n in (0, 1)
    ]

    picture = timeline_picture(columns_of_word(word, [1]), strips=[Strip("answered", [True, False])])

    assert picture.count("<title>yes</title>") == picture.count("<title>no</title>") == 1
    assert marked(picture) == ["no"]
    assert "watermark 2024-01-01 00:00:00" in picture


def test_long_runs_and_many_keys_are_cut_and_say_so():
    columns = [
        Column(f"batch {n}", {"input": [Click(f"u{k}", n) for k in range(30)]}, matters=n == 500) for n in range(999)
    ]

    picture = timeline_picture(columns, key=("user",))

    places = placed(picture)
    assert sum(text.startswith("batch ") for text in places) == MOST_BATCHES
    assert "batch 500" in places
    assert f"by user; {999 - MOST_BATCHES} micro-batches are left out" in places
    assert f"input ({30 - MOST_KEYS} keys left out)" in places
    assert sum(text.startswith("user=") for text in places) == MOST_KEYS


def test_many_rows_in_a_cell_are_counted():
    picture = timeline_picture([Column("batch 0", {"input": [Click("a", n) for n in range(10_000)]})], key=("user",))

    assert "and 9,997 more" in picture
    assert len(picture) < 5_000


@pytest.mark.parametrize("columns", [[], [Column("batch 0", {})], [Column("batch 0", {"input": ()})]])
def test_a_run_of_nothing_has_a_picture_too(columns):
    assert timeline_picture(columns).startswith("<svg")


def test_odd_values_make_a_picture_that_is_xml():
    odd = Kind("Odd", text=str | None, number=float, big=int)
    rows = [
        odd(None, float("nan"), 10**6_000),
        odd("", 0.0, 0),
        odd("<b>\x00\u202e\ud800", 1.0, 1),
        odd("x" * 10**6, 1.0, 1),
    ]

    picture = timeline_picture([Column("batch 0", {"input": rows})], key=("text",), strips=[Strip("<&>", [None])])

    assert "text=''" in placed(picture)
    assert len(picture) < 20_000


def test_the_key_is_that_of_the_order_else_what_comes_out_as_it_went_in_else_the_kind():
    timed = Kind("Timed", at=datetime, user=str)

    assert key_of([Click], [Total], same("ms"), same("user")) == ("ms",)
    assert key_of([timed], [Kind("Out", at=datetime, user=str)], ordered) == ("user",)
    assert key_of([Click], [Kind("Sum", ms=float, user=str | None)]) == ("user",)
    assert key_of([Click], [Kind("Count", n=int)]) == ()
