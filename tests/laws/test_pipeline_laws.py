"""Laws of processor pipelines: Bédard and Hallé, "Model Checking of Stream Processing Pipelines", sections 2 to 4."""

from __future__ import annotations

import operator
import random
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamtight as tight
from streamtight import pipes
from streamtight.program.limits import Limits, modulo

sys.path.append(str(Path(__file__).parents[1] / "explore"))
sys.path.append(str(Path(__file__).parents[2] / "examples"))
import pipelines as paper
from random_pipelines import BOOL, INT, Draw

NUMBERS = st.lists(st.integers(-5, 5), max_size=12)
WIDTHS = st.integers(1, 4)


def alone(box, events):
    return tight.Pipeline.wired("in -> b -> out", takes={"in": object}, b=box).run(events)


# -- section 2: what each processor is, as the paper writes it ---------------------------------------------------------


@given(NUMBERS, WIDTHS)
def test_definition_of_count_decimate(events, k):
    assert alone(pipes.CountDecimate(k), events) == events[::k]


@given(NUMBERS, st.integers(0, 4))
def test_definition_of_trim(events, k):
    assert alone(pipes.Trim(k), events) == events[k:]


@given(NUMBERS)
def test_definition_of_apply_function(events):
    assert alone(pipes.Apply(lambda x: 3 * x - 1), events) == [3 * x - 1 for x in events]


@given(NUMBERS)
def test_definition_of_cumulate(events):
    given_so_far = [0]
    for event in events:
        given_so_far.append(given_so_far[-1] - event)

    assert alone(pipes.Cumulate(operator.sub, start=0), events) == given_so_far[1:]


@given(st.lists(st.tuples(st.integers(), st.booleans())))
def test_definition_of_filter(pairs):
    kept = tight.Pipeline.wired("a -> f.0; b -> f.1; f -> out", takes={"a": int, "b": bool}, f=pipes.Filter())

    assert kept.run(pairs) == [event for event, control in pairs if control]


@given(NUMBERS, WIDTHS, st.sampled_from([pipes.Cumulate(operator.add), pipes.Trim(1), pipes.CountDecimate(2)]))
def test_definition_of_window_last_output_on_each_stretch(events, width, inner):
    stretches = [events[at : at + width] for at in range(len(events) - width + 1)]
    lasts = [alone(inner, stretch)[-1:] for stretch in stretches]

    assert alone(pipes.Window(inner, width), events) == [event for last in lasts for event in last]


@given(st.lists(st.tuples(st.integers(0, 9) | st.none(), st.integers(0, 9) | st.none())))
def test_section_2_fronts_are_taken_when_each_input_has_an_event(pushes):
    """Streams of tuples: the i-th step takes the i-th event of each input, whenever they came."""
    add = tight.Pipeline.wired("a -> p.0; b -> p.1; p -> out", takes={"a": int, "b": int}, p=pipes.Apply(operator.add))
    left, right = ([push[side] for push in pushes if push[side] is not None] for side in range(2))

    given_out = add.run([tuple(pipes.NOTHING if event is None else event for event in push) for push in pushes])

    assert given_out == [a + b for a, b in zip(left, right, strict=False)]


def drawn(seed):
    """A random pipeline of one input and one output."""
    rng = random.Random(seed)
    pipeline, _ = Draw(rng, modulo(3)).pipeline_of((rng.choice((INT, BOOL)),), 2, 1)
    return pipeline


def outputs(pipeline, events):
    """What comes out until a function raises, with small numbers."""
    given_out = []
    for push in pipeline.pushes(events, limits=Limits(integers=modulo(3))):
        given_out += [out for out in push.outs.values() if out is not pipes.NOTHING]
    return given_out


@pytest.mark.parametrize("seed", range(150))
def test_section_2_processors_are_monotone_a_longer_stream_gives_a_longer_one(seed):
    pipeline = drawn(seed)
    kind = next(iter(pipeline.inputs.values()))
    rng = random.Random(seed)
    events = [rng.randrange(3) if kind is int else rng.random() < 0.5 for _ in range(10)]

    whole = outputs(pipeline, events)

    for length in range(len(events)):
        part = outputs(pipeline, events[:length])
        assert whole[: len(part)] == part


# -- section 4: what equivalences mean -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_section_4_1_stepwise_equivalence_is_stricter_than_sequence_equivalence(seed):
    left = drawn(seed)
    others = [
        tight.Pipeline.wired("in -> p -> g -> out", takes=left.inputs, p=pipes.Passthrough(), g=left),
        tight.Pipeline.wired("in -> g -> i -> out", takes=left.inputs, g=left, i=pipes.Trim(seed % 2)),
    ]
    options = {"domain": modulo(3), "queue": 2, "states": 2_000, "seconds": 1}

    for right in others:
        steps = tight.explore(left, tight.same_steps(right), **options)
        sequence = tight.explore(left, tight.same_sequence(right), **options)

        assert not (steps.holds and sequence.fails)


def test_section_4_2_a_queue_that_is_never_full_can_have_one_place_less():
    for make in (paper.figure_5a, paper.delay, lambda: paper.chain_sum(4)):
        for size in (1, 2, 3):
            if tight.explore(make(), tight.no_full_queues(), queue=size, domain=modulo(4)).holds:
                assert tight.explore(make(), tight.never_stops(), queue=size - 1, domain=modulo(4)).holds
