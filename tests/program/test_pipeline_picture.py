"""Pictures of pipelines: everything is there, nothing lies on anything else, and a push is told."""

from __future__ import annotations

import operator
import random
from itertools import combinations
from xml.etree import ElementTree

import pytest

from streamtight.errors import PipelineError
from streamtight.program.limits import Limits
from streamtight.program.pipeline import Front, Pipeline, Push
from streamtight.program.pipeline_picture import MOST_LETTERS, picture
from streamtight.program.processor import (
    NOTHING,
    Apply,
    CountDecimate,
    Cumulate,
    Filter,
    Fork,
    Processor,
    Trim,
    TurnInto,
    Window,
    is_even,
)

SVG = "{http://www.w3.org/2000/svg}"

figure_2a = Pipeline.wired(
    "in -> A; A.0 -> B; A.1 -> C.1; B -> C.0; C -> out", A=Fork(2), B=CountDecimate(3), C=Apply(operator.add)
)
sum_of_odds = Pipeline.wired(
    "in -> o1 -> s1 -> f; f.0 -> t -> e -> flt.1; f.1 -> a.0; f.2 -> o2 -> a.1; a -> flt.0; flt -> s2 -> out",
    o1=TurnInto(1),
    s1=Cumulate(operator.add),
    f=Fork(3),
    t=Trim(1),
    e=Apply(is_even),
    o2=TurnInto(1),
    a=Apply(operator.add),
    flt=Filter(),
    s2=Cumulate(operator.add),
)
window = Pipeline.wired("in -> w -> out", w=Window(Cumulate(operator.add), 3), name="three")
chain = Pipeline.wired(
    "in -> f; f.0 -> a1.0; f.1 -> t1 -> a1.1; f.2 -> t2 -> a2.1; a1 -> a2.0; a2 -> out",
    f=Fork(3),
    t1=Trim(1),
    a1=Apply(operator.add),
    t2=Trim(2),
    a2=Apply(operator.add),
    name="chain",
)
compared = Pipeline.wired("in -> p -> eq.0; in -> q -> eq.1; eq -> out", p=window, q=chain, eq=Apply(operator.eq))


def parsed(drawn: str) -> ElementTree.Element:
    return ElementTree.fromstring(drawn)  # noqa: S314 - we made it


def texts(drawn: str) -> list[str]:
    return [each.text or "" for each in parsed(drawn).iter(f"{SVG}text")]


def at(pipeline: Pipeline, number: int, events: list[object]) -> Push:
    return list(pipeline.pushes(events))[number - 1]


def rectangles(drawn: str) -> list[tuple[float, float, float, float]]:
    """Left, top, right, bottom of boxes and cells."""
    found = []
    for each in parsed(drawn).iter(f"{SVG}rect"):
        x, y, width, height = (float(each.attrib[name]) for name in ("x", "y", "width", "height"))
        found.append((x, y, x + width, y + height))
    return found


def heads(drawn: str) -> int:
    """How many lines end with the head of an arrow."""
    return sum(each.attrib["d"].endswith("-4v8z") for each in parsed(drawn).iter(f"{SVG}path"))


# -- what there is ---------------------------------------------------------------------------------------------------


def test_a_picture_has_each_box_with_its_name_and_each_pipe_with_a_head() -> None:
    drawn = picture(figure_2a)

    assert sorted(texts(drawn)) == sorted(["in", "fork", "A", "1 of 3", "B", "+", "C", "out"])
    assert heads(drawn) == 5
    assert "stroke-dasharray" not in drawn
    assert parsed(drawn).attrib["aria-label"] == "pipeline pipeline: 3 boxes, 5 pipes"


def test_a_group_and_a_window_are_one_box_that_says_what_is_inside() -> None:
    drawn = picture(compared)

    assert {"three", "chain", "p", "q"} <= set(texts(drawn))
    assert "trim 1" not in drawn
    assert "window 3: Σ" in texts(picture(window))


def test_where_a_pipe_leads_to_several_inputs_there_is_a_dot() -> None:
    assert picture(compared).count("<circle") == 1
    assert picture(figure_2a).count("<circle") == 0


def test_notebooks_show_the_picture() -> None:
    assert figure_2a._repr_html_() == figure_2a.picture() == picture(figure_2a)


def test_values_and_names_are_escaped_and_cut() -> None:
    nasty = Pipeline.wired("in -> A -> out", A=TurnInto("<script>&\x00" * 9))
    drawn = picture(nasty, at(nasty, 1, [1]))

    parsed(drawn)
    assert "<script" not in drawn
    assert max(map(len, texts(drawn))) <= MOST_LETTERS


# -- a push ----------------------------------------------------------------------------------------------------------


def test_a_push_shows_what_pipes_carried_and_what_waits() -> None:
    events = [3, 1, 4, 1, 5, 9]
    drawn = picture(figure_2a, at(figure_2a, 6, events))

    # Two events have been used for the sums 3 + 3 and 1 + 1; the next stands beside the port.
    cells = texts(drawn)[texts(drawn).index("9") :][:4]
    assert cells == ["9", "5", "1", "4"]
    assert texts(drawn).count("9") == 4  # the input, both outputs of the fork, the last in the queue
    assert texts(drawn)[-1] == "push 6"
    assert "queue C.1: 4, 1, 5, 9" in drawn
    assert "queue C.0: nothing" in drawn


def test_pipes_are_bold_with_an_event_and_dashed_without() -> None:
    drawn = parsed(picture(figure_2a, at(figure_2a, 2, [3, 1])))
    curves = [each.attrib for each in drawn.iter(f"{SVG}path") if "C" in each.attrib["d"]]

    # in -> A and both ends of the fork (one goes past B) carry 1; B -> C and C -> out carry nothing.
    assert sum(each.get("stroke-width") == "2.5" for each in curves) == 4
    assert sum(each.get("stroke-dasharray") == "4 4" for each in curves) == 2
    assert len(curves) == 6


def test_what_came_out_is_told_also_if_it_is_none() -> None:
    hollow = Pipeline.wired("in -> A -> out", A=TurnInto(None))

    assert texts(picture(hollow, at(hollow, 1, [7]))) == ["in", "7", "→ None", "A", "None", "out", "None", "push 1"]


def test_long_queues_are_cut_and_told_in_full_in_the_title() -> None:
    drawn = picture(figure_2a, at(figure_2a, 30, list(range(30))))

    assert "16 more" in texts(drawn)
    assert f"queue C.1: {', '.join(map(str, range(10, 30)))}" in drawn


@pytest.mark.parametrize(
    ("mark", "count"),
    [("C.1", 1), ("B", 4), ("out", 1), ("in", 5)],
    ids=["a queue", "a box and the line, curve and head of its pipe", "an output", "an input, its pipe, its value"],
)
def test_a_mark_shows_what_has_that_name(mark: str, count: int) -> None:
    push = at(figure_2a, 2, [3, 1])

    assert picture(figure_2a, push, mark).count('class="tight-mark"') == count
    assert picture(figure_2a, push).count('class="tight-mark"') == 0


def test_a_mark_that_is_nowhere_is_refused_with_the_names() -> None:
    with pytest.raises(PipelineError, match=r"a box, a pipe or a queue: A, A.0, A.1, B, C, C.0, C.1, in, out"):
        picture(figure_2a, mark="D")


def test_where_a_push_stopped_is_marked_and_told() -> None:
    *_, last = figure_2a.pushes([3, 1, 4, 1, 5], limits=Limits(queue=2))
    drawn = picture(figure_2a, last)

    assert '<g class="tight-mark"><title>queue C.1: 4, 1</title>' in drawn
    assert texts(drawn)[-1] == "push 5 stops: an event comes to a queue of 2 that is full"


def test_a_push_that_stopped_inside_a_group_marks_the_group() -> None:
    *_, last = compared.pushes([1, 2, 3], limits=Limits(queues={"q.a1.0": 0}))

    assert '<g class="tight-mark"><title>q: chain' in picture(compared, last)


def test_an_event_that_leaks_is_crossed_out() -> None:
    [push] = figure_2a.pushes([Front((3,), leaks=frozenset({"B"}))])

    assert picture(figure_2a, push).count("an event is lost here") == 1


# -- where it is -----------------------------------------------------------------------------------------------------


def grown(seed: int) -> Pipeline:
    """A pipeline in which every box reads what is there already."""
    chance = random.Random(seed)
    ends, arrows, boxes = ["in"], [], {}
    unused = {"in"}
    for number in range(chance.randint(1, 14)):
        made: list[Processor] = [Fork(chance.randint(1, 4)), Trim(1), Apply(operator.add), Cumulate(operator.add)]
        box, name = chance.choice(made), f"b{number}"
        for place in range(box.inputs):
            source = chance.choice(ends)
            unused.discard(source)
            arrows.append(f"{source} -> {name}.{place}")
        own = [f"{name}.{place}" for place in range(box.outputs)]
        ends += own
        unused.update(own)
        boxes[name] = box
    gives = [f"out{number}" for number in range(len(unused))]
    arrows += [f"{end} -> {name}" for end, name in zip(sorted(unused), gives, strict=True)]
    return Pipeline.wired("; ".join(arrows), gives=gives, **boxes)


@pytest.mark.parametrize("seed", range(40))
def test_boxes_and_queues_do_not_overlap_and_lie_on_the_paper(seed: int) -> None:
    pipeline = grown(seed)
    push = at(pipeline, 5, [1, 10**6, NOTHING, 10**9, 5])
    drawn = picture(pipeline, push)
    width, height = (float(parsed(drawn).attrib[name]) for name in ("width", "height"))
    found = rectangles(drawn)

    assert heads(drawn) == len(pipeline.feeds) + len(pipeline.outputs), f"seed {seed}"
    for left, top, right, bottom in found:
        assert left >= 0, f"seed {seed}"
        assert top >= 0, f"seed {seed}"
        assert right <= width, f"seed {seed}"
        assert bottom <= height, f"seed {seed}"
    for one, other in combinations(found, 2):
        beside = one[2] <= other[0] + 0.01 or other[2] <= one[0] + 0.01
        above = one[3] <= other[1] + 0.01 or other[3] <= one[1] + 0.01
        assert beside or above, f"seed {seed}"


@pytest.mark.parametrize("pipeline", [figure_2a, sum_of_odds, chain, compared], ids=lambda each: each.name)
def test_lines_that_run_past_boxes_do_not_touch_them(pipeline: Pipeline) -> None:
    drawn = picture(pipeline)
    boxes = rectangles(drawn)

    for each in parsed(drawn).iter(f"{SVG}path"):
        path = each.attrib["d"]
        if path.startswith("M") and "H" in path and "C" not in path and "V" not in path:
            start, end = path[1:].split("H")
            x, y = map(float, start.split())
            for left, top, right, bottom in boxes:
                touches = top < y < bottom and x < right - 0.01 and float(end) > left + 0.01
                assert not touches, path
