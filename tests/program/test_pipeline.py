"""Pipelines: what they give, push by push, and what cannot be built."""

from __future__ import annotations

import operator
import sys
from pathlib import Path

import pytest

import streamtight as tight
from streamtight import pipes
from streamtight.errors import PipelineError
from streamtight.program.limits import Limits, modulo, whole

sys.path.append(str(Path(__file__).parents[2] / "examples"))
import pipelines as paper

NOTHING = pipes.NOTHING
PI = [3, 1, 4, 1, 5, 9, 2]


def outs(pipeline, events, **options):
    return [push.outs["out"] for push in pipeline.pushes(events, **options)]


@pytest.mark.parametrize(
    ("pipeline", "events", "given"),
    [
        (paper.figure_2a(), range(7), [0, None, None, 4, None, None, 8]),
        (paper.product_of_1_and_kth(), PI, [9, None, None, 1, None, None, 8]),
        (paper.passthrough(), PI, PI),
        (paper.product_on_window(), PI, [None, None, 12, 4, 20, 45, 90]),
        (paper.window_sum(), PI, [None, None, 8, 6, 10, 15, 16]),
        (paper.chain_sum(), PI, [None, None, 8, 6, 10, 15, 16]),
        (paper.chain_sum(2), PI, [None, 4, 5, 5, 6, 14, 11]),
        (paper.ones_on_window(), PI[:5], [None, None, 6, 24, 60]),
        (paper.smaller_than_k(), PI[:5], [3, 1, 4, None, None]),
        (paper.sum_of_doubles(), [1, 2, 3], [2, 6, 12]),
        (paper.sum_of_odds(), range(8), [None, 2, None, 6, None, 12, None, 20]),
        (paper.figure_5a(), range(6), [None, 1, None, 4, None, 9]),
        (paper.figure_5a_with_odd(), range(7), [None, None, 2, None, 6, None, 12]),
        (paper.figure_5b(), range(4), [1, 4, 9, 16]),
        (paper.figure_5c(), range(4), [2, 6, 12, 20]),
        (paper.delay(), PI[:3], [None, 3, 1]),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_a_pipeline_of_the_paper_gives_what_the_real_library_gives(pipeline, events, given):
    assert outs(pipeline, events) == [NOTHING if each is None else each for each in given]


def test_the_monitor_of_figure_2b_counts_the_true_ones_of_the_states_before():
    a = [True, False, True, True, False]
    right = list(zip(a, [0, 0, 0, 2, 2], strict=True))
    wrong = list(zip(a, [0, 0, 0, 2, 3], strict=True))

    assert paper.figure_2b(3).run(right) == [True, True]
    assert paper.figure_2b(3).run(wrong) == [True, False]


@pytest.mark.parametrize(
    ("box", "events", "given"),
    [
        (pipes.Freeze(), "abc", list("aaa")),
        (pipes.Insert("x", "y"), "abc", ["x", "y", "a"]),
        (pipes.Delay(1, start=0), [1, 2], [0, 1]),
        (pipes.Trim(0), "ab", list("ab")),
        (pipes.CountDecimate(1), "ab", list("ab")),
        (pipes.Cumulate(max, start=0), [1, 3, 2], [1, 3, 3]),
        (pipes.Slice(pipes.Cumulate(operator.add), by=lambda x: x % 2), [1, 2, 3, 4], [1, 2, 4, 6]),
        (pipes.Window(pipes.Window(pipes.Cumulate(operator.add), 2), 2), [1, 2, 3, 4], [3, 5, 7]),
        (pipes.Window(pipes.Trim(1), 2), "abc", ["b", "c"]),
        (pipes.Window(pipes.Trim(2), 2), "abc", []),
        (pipes.Apply(lambda x: None), [1], [None]),
        (pipes.Group(paper.window_sum(2)), [1, 2, 3], [3, 5]),
    ],
    ids=str,
)
def test_a_box_gives(box, events, given):
    assert tight.Pipeline.wired("in -> b -> out", takes={"in": object}, b=box).run(events) == given


def test_a_window_is_its_box_on_the_last_events_alone():
    inner = paper.figure_2a()
    events = [5, 3, 8, 1, 9, 2, 7]

    windowed = tight.Pipeline.wired("in -> w -> out", w=pipes.Window(inner, 4)).run(events)

    assert windowed == [inner.run(events[at : at + 4])[-1] for at in range(4)]


def test_a_slice_with_two_inputs_has_a_run_for_each_key():
    totals = tight.Pipeline.wired(
        "k -> s.0; v -> s.1; s -> out", takes={"k": object, "v": int}, s=pipes.Slice(pipes.Cumulate(operator.add))
    )

    assert totals.run([("a", 1), ("b", 10), ("a", 2)]) == [1, 10, 3]


def test_the_last_event_comes_at_the_end():
    last = tight.Pipeline.wired("in -> l -> out", l=pipes.Last())

    assert last.run([1, 2, 3], ends=True) == [3]
    assert last.run([1, 2, 3]) == []
    assert last.run([], ends=True) == []


def test_inputs_that_do_not_come_together_wait_for_each_other():
    adder = tight.Pipeline.wired(
        "a -> p.0; b -> p.1; p -> out", takes={"a": int, "b": int}, p=pipes.Apply(operator.add)
    )

    assert adder.run([(1, NOTHING), (2, NOTHING), (NOTHING, 10), {"b": 20}, {"a": 3, "b": 30}]) == [11, 22, 33]


def test_a_function_of_pipes_writes_the_same_as_the_text():
    @tight.pipeline
    def written(numbers: int):
        return {"sums": pipes.CountDecimate(3)(numbers) + numbers, "small": numbers < 5}

    assert written.run([3, 1, 4, 1, 9]) == {"sums": [6, 2], "small": [True, True, True, True, False]}
    assert list(written.inputs) == ["numbers"]


def test_several_outputs_of_a_function():
    divide = tight.Pipeline.wired(
        "in -> d; d.0 -> quotient; d.1 -> rest",
        gives=("quotient", "rest"),
        d=pipes.Apply(lambda x: divmod(x, 3), outputs=2),
    )

    assert divide.run([7, 3]) == {"quotient": [2, 1], "rest": [1, 0]}


def test_none_is_an_event_and_nothing_is_none():
    assert tight.Pipeline.wired("in -> p -> out", takes={"in": object}, p=pipes.Passthrough()).run(
        [None, NOTHING, ""]
    ) == [None, ""]


def test_two_pipelines_beside_each_other_get_the_same_events():
    both = pipes.beside(paper.passthrough(), paper.delay())

    assert both.run([1, 2, 3]) == {"left": [1, 2, 3], "right": [1, 2]}


# -- limits ----------------------------------------------------------------------------------------------------------


def test_numbers_can_wrap_around():
    assert paper.sum_of_doubles().run([1, 2, 3], limits=Limits(integers=modulo(5))) == [2, 1, 2]


def test_numbers_that_may_not_wrap_stop_the_run():
    (*_, last) = paper.sum_of_doubles().pushes([1, 2, 3], limits=Limits(integers=whole(0, 9)))

    assert (last.number, last.stopped.kind, last.stopped.where) == (3, "LEAVES_RANGE", "s")


def test_a_full_queue_stops_the_run_or_drops_what_comes():
    (*_, stopped) = paper.figure_2a().pushes(range(9), limits=Limits(queue=2))
    dropped = paper.figure_2a().run(range(9), limits=Limits(queue=2, full="drop"))

    assert (stopped.number, stopped.stopped.kind, stopped.stopped.where) == (5, "QUEUE_OVERFLOW", "C.1")
    assert dropped == [0, 4, 8]


def test_a_function_that_raises_is_told_with_its_box_and_what_it_was_given():
    broken = tight.Pipeline.wired("in -> inverse -> out", inverse=pipes.Apply(lambda x: 1 // x))

    with pytest.raises(PipelineError, match=r"inverse at push 2.*ZeroDivisionError for 0"):
        broken.run([1, 0])


def test_what_raises_inside_a_group_is_told_with_its_path():
    inner = tight.Pipeline.wired("in -> inverse -> out", inverse=pipes.Apply(lambda x: 1 // x))
    outer = tight.Pipeline.wired("in -> g -> out", g=inner)

    (push,) = outer.pushes([0])

    assert push.stopped.where == "g.inverse"


# -- what cannot be built --------------------------------------------------------------------------------------------

ADD = pipes.Apply(operator.add)


@pytest.mark.parametrize(
    ("pipes_text", "boxes", "message"),
    [
        ("in -> f; f.0 -> out", {"f": pipes.Fork(2)}, "output 1 of f .fork. connected to nothing"),
        ("in -> a.0; a -> out", {"a": ADD}, "input 1 connected to nothing"),
        ("in -> a.0; a -> out; a -> a.1", {"a": ADD}, "a cycle: a -> a"),
        ("in -> a.0; b -> a.1; a -> b; a -> out", {"a": ADD, "b": pipes.Trim(1)}, "a cycle: "),
        ("in -> t -> out; in -> t", {"t": pipes.Trim(1)}, "one pipe to each input; came two"),
        ("in -> x -> out", {"t": pipes.Trim(1)}, "one of t, out; came 'x'"),
        ("in -> t.1 -> out", {"t": pipes.Trim(1)}, "one of the 1 inputs of t"),
        ("in -> f; f -> out", {"f": pipes.Fork(2)}, "one of the 2 outputs of f .fork.; came no number"),
        ("in t -> out", {"t": pipes.Trim(1)}, "pipes such as 'A.0 -> B'"),
        ("in -> t", {"t": pipes.Trim(1)}, "a pipe to the output 'out'"),
        ("out -> t -> in", {"t": pipes.Trim(1)}, "'out', where pipes end"),
        ("in -> t -> out", {"t": 7}, "needed a processor or a pipeline; came 7"),
        ("in -> f.0; in -> f.1; f -> out", {"f": pipes.Filter()}, "True or False on the second input of Filter"),
    ],
)
def test_a_pipeline_that_cannot_be_is_refused_with_where_and_why(pipes_text, boxes, message):
    with pytest.raises(PipelineError, match=message):
        tight.Pipeline.wired(pipes_text, **boxes)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pipes.Fork(0), "a whole number from 1 on; came 0"),
        (lambda: pipes.Trim(-1), "a whole number from 0 on"),
        (lambda: pipes.CountDecimate(True), "came True"),
        (lambda: pipes.Window(pipes.Fork(2), 3), "one input and one output inside"),
        (lambda: pipes.Window(pipes.Last(), 3), "does not wait for the end"),
        (lambda: pipes.Window(3, 3), "a processor or a pipeline; came 3"),
        (lambda: pipes.Cumulate(operator.sub), "the value to start with"),
        (lambda: pipes.Cumulate(abs), "a function of two values"),
        (lambda: pipes.Apply(7), "a function of values; came 7"),
        (lambda: pipes.Apply(print), "how many values the function takes"),
        (lambda: pipes.Insert(), "one event or more"),
        (lambda: pipes.Trim(1)(3), "1 pipe; came 3"),
        (lambda: modulo(0), "how many whole numbers there are"),
        (lambda: whole(3, 1), "the least and the largest number"),
    ],
)
def test_a_box_that_cannot_be_is_refused(make, message):
    with pytest.raises(PipelineError, match=message):
        make()


def test_a_pipe_is_neither_true_nor_iterable_while_it_is_written():
    with pytest.raises(PipelineError, match="a pipe where True or False was wanted"):
        tight.pipeline(lambda numbers: not numbers)
    with pytest.raises(PipelineError, match="a pipe where several were wanted"):
        tight.pipeline(lambda numbers: next(iter(numbers)))


def test_a_filter_refuses_a_control_that_is_no_boolean_when_it_runs():
    odd = tight.Pipeline.wired(
        "in -> f.0; in -> c -> f.1; f -> out", takes={"in": object}, c=pipes.Passthrough(), f=pipes.Filter()
    )

    with pytest.raises(PipelineError, match="f: Filter: needed True or False"):
        odd.run([1])
