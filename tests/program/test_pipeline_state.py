"""States of pipelines as text: exactly what they were, and refused for another pipeline."""

from __future__ import annotations

import datetime as dt
import functools
import json
import math
import operator
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamtight.errors import PipelineError
from streamtight.program.pipeline import Pipeline
from streamtight.program.pipeline_state import Mark, mark_of, packed_state, unpacked_state
from streamtight.program.processor import (
    Apply,
    CountDecimate,
    Cumulate,
    Fork,
    Insert,
    Passthrough,
    Processor,
    Slice,
    Trim,
    Window,
)

anything = Pipeline.wired("in -> A -> out", takes={"in": object}, A=Insert(0))
MARK = mark_of(anything)


def again(value: Any) -> Any:
    """A value that was kept in a state, and read again."""
    text = packed_state(anything, MARK, ((value,), ()))
    json.loads(text, parse_constant=pytest.fail)  # what is no JSON elsewhere is none here
    return unpacked_state(anything, MARK, text)[0][0]


def told(value: Any) -> str:
    """Types and values, NaN and minus zero too."""
    if isinstance(value, (tuple, list)):
        return f"{type(value).__name__}({', '.join(map(told, value))})"
    if isinstance(value, dict):
        return f"dict({', '.join(f'{told(key)}: {told(each)}' for key, each in value.items())})"
    if isinstance(value, (set, frozenset)):
        return f"{type(value).__name__}({', '.join(sorted(map(told, value)))})"
    return f"{type(value).__name__} {value!r}"


plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(),
    st.dates(),
    st.datetimes(),
    st.times(),
    st.timedeltas(),
    st.decimals(),
)
values = st.recursive(
    plain, lambda inner: st.one_of(st.lists(inner, max_size=4), st.lists(inner, max_size=4).map(tuple)), max_leaves=12
)


@settings(max_examples=200, deadline=None)
@given(values)
def test_a_state_is_read_as_it_was_written(value: Any) -> None:
    assert told(again(value)) == told(value)


@pytest.mark.parametrize(
    "value",
    [
        (1, True, 1.0, "1", None),
        (0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324),
        (10**5_000, -(2**100_000)),
        ("\ud800", "\x00", "ü"),
        {"a": (1,), 1: [True]},
        (frozenset({1, 2}), {True}),
        dt.datetime(2024, 3, 31, 2, 30, fold=1),
        dt.datetime(2024, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=-3, minutes=-30))),
        (Decimal("-0.00"), Decimal("sNaN"), Decimal("1E+30")),
        (((), ((),)), ()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_that_look_alike_are_kept_apart(value: Any) -> None:
    left = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)  # only to tell them
    try:
        expected = told(value)
        sys.set_int_max_str_digits(left)
        found = again(value)
        sys.set_int_max_str_digits(0)
        assert told(found) == expected
    finally:
        sys.set_int_max_str_digits(left)


@pytest.mark.parametrize("value", [object(), operator, dt.datetime(2024, 1, 1, tzinfo=ZoneInfo("Europe/Paris"))])
def test_what_cannot_be_kept_is_refused_with_its_box(value: Any) -> None:
    with pytest.raises(PipelineError, match=r"the state of A \(insert 0\): needed numbers, texts"):
        packed_state(anything, MARK, ((value,), ()))


def test_a_run_that_is_kept_after_every_push_gives_what_one_run_gives() -> None:
    inner = Pipeline.wired("in -> F; F.0 -> D; F.1 -> S.1; D -> S.0; S -> out", F=Fork(2), D=CountDecimate(3), S=ADD)
    pipeline = Pipeline.wired(
        "in -> G -> W -> K -> out",
        G=inner,
        W=Window(Cumulate(operator.add), 2),
        K=Slice(Cumulate(operator.add), by=lambda value: value % 2),
    )
    events = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9]
    mark, text, given_out = mark_of(pipeline), None, []

    for event in events:
        state = pipeline.start() if text is None else unpacked_state(pipeline, mark, text)
        state, (out,) = pipeline.push(state, (event,))
        text = packed_state(pipeline, mark, state)
        given_out.append(out)

    assert given_out == [push.outs["out"] for push in pipeline.pushes(events)]


# -- whose state it is -----------------------------------------------------------------------------------------------

ADD = Apply(operator.add)


def one_box(box: Processor) -> Pipeline:
    return Pipeline.wired("in -> A -> out", A=box)


def adding(number: int) -> Callable[[int], int]:
    return lambda value: value + number


def factorial(value: int) -> int:
    return 1 if value < 2 else value * factorial(value - 1)


def calling_itself() -> Callable[[int], int]:
    def count(value: int) -> int:
        return 0 if value == 0 else 1 + count(value - 1)

    return count


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda: Trim(1), lambda: Trim(2)),
        (lambda: Trim(1), lambda: CountDecimate(1)),
        (lambda: Insert(1), lambda: Insert(True)),
        (lambda: Cumulate(operator.add), lambda: Cumulate(operator.mul)),
        (lambda: Cumulate(operator.add), lambda: Cumulate(operator.add, start=1)),
        (lambda: Window(Trim(1), 2), lambda: Window(Trim(2), 2)),
        (lambda: Apply(lambda value: value + 1), lambda: Apply(lambda value: value + 2)),
        (lambda: Apply(adding(1)), lambda: Apply(adding(2))),
        (lambda: Apply(functools.partial(max, 1), arity=1), lambda: Apply(functools.partial(max, 2), arity=1)),
    ],
)
def test_the_state_of_another_pipeline_is_refused(one: Callable[[], Processor], other: Callable[[], Processor]) -> None:
    first, second = one_box(one()), one_box(other())
    text = packed_state(first, mark_of(first), first.start())

    assert unpacked_state(first, mark_of(one_box(one())), text) == first.start()
    with pytest.raises(PipelineError, match="needed a checkpoint of the same pipeline; came one of a pipeline with"):
        unpacked_state(second, mark_of(second), text)


def test_other_pipes_between_the_same_boxes_are_another_pipeline() -> None:
    straight = Pipeline.wired("in -> F; F.0 -> S.0; F.1 -> S.1; S -> out", F=Fork(2), S=ADD)
    crossed = Pipeline.wired("in -> F; F.0 -> S.1; F.1 -> S.0; S -> out", F=Fork(2), S=ADD)

    assert mark_of(straight) != mark_of(crossed)


def test_what_is_only_said_about_a_box_or_a_pipeline_is_not_its_mark() -> None:
    named = Pipeline.wired("in -> A -> out", takes={"in": [1, 2]}, name="other", A=Apply(factorial, values=[1, 2]))

    assert mark_of(named) == mark_of(one_box(Apply(factorial)))


def test_functions_that_reach_themselves_have_a_mark() -> None:
    assert mark_of(one_box(Apply(calling_itself()))) == mark_of(one_box(Apply(calling_itself())))


def test_another_python_looks_at_names_only() -> None:
    first, second = one_box(Apply(adding(1))), one_box(Apply(adding(2)))
    old = Mark(mark_of(first).shape, mark_of(first).code, "3.10")

    assert unpacked_state(second, mark_of(second), packed_state(first, old, first.start())) == second.start()
    with pytest.raises(PipelineError, match="other boxes or pipes"):
        unpacked_state(one_box(Passthrough()), mark_of(one_box(Passthrough())), packed_state(first, old, first.start()))


def test_a_mark_is_the_same_in_another_process() -> None:
    code = (
        "from streamtight.program.pipeline import Pipeline\n"
        "from streamtight.program.pipeline_state import mark_of\n"
        "from streamtight.program.processor import Apply\n"
        "known = {'b', 'a', 'c'}\n"
        "def made(known): return lambda value: value in known or value in {'x', 'y', 'z'}\n"
        "print(mark_of(Pipeline.wired('in -> A -> out', A=Apply(made(known)))))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }

    assert len(found) == 1
