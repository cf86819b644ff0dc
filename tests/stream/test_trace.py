from __future__ import annotations

import copy
import pickle
import random

import pytest

from streamtight.errors import SchemaError, TraceError
from streamtight.stream.dependence import barrier, depends, ordered, same, unordered
from streamtight.stream.event import Kind
from streamtight.stream.schema import Bag, Seq
from streamtight.stream.trace import Trace

GPS, EndOfDay = Kind("GPS", taxi=int, n=int), Kind("EndOfDay", day=int)
per_taxi = barrier(EndOfDay) | same("taxi", of=GPS)


def test_taxis_may_overtake_each_other():
    assert Trace([GPS(1, 1), GPS(2, 1)], per_taxi) == Trace([GPS(2, 1), GPS(1, 1)], per_taxi)


def test_a_taxi_may_not_overtake_itself():
    assert Trace([GPS(1, 1), GPS(1, 2)], per_taxi) != Trace([GPS(1, 2), GPS(1, 1)], per_taxi)


def test_nothing_may_overtake_a_barrier():
    assert Trace([GPS(1, 1), EndOfDay(1)], per_taxi) != Trace([EndOfDay(1), GPS(1, 1)], per_taxi)


def test_independent_events_stay_apart_through_what_stands_between_them():
    one = Trace([GPS(1, 1), EndOfDay(1), GPS(2, 1)], per_taxi)
    other = Trace([GPS(2, 1), EndOfDay(1), GPS(1, 1)], per_taxi)

    assert one != other


def test_equal_events_count():
    assert Trace([GPS(1, 1)] * 2, unordered) != Trace([GPS(1, 1)], unordered)
    assert Trace([GPS(1, 1), GPS(1, 1), GPS(2, 1)], unordered) != Trace([GPS(1, 1), GPS(2, 1), GPS(2, 1)], unordered)


def test_empty_traces_are_equal():
    assert Trace([], per_taxi) == Trace((), per_taxi)
    assert hash(Trace([], per_taxi)) == hash(Trace([], per_taxi))


def test_a_trace_is_not_equal_to_a_list():
    assert Trace([GPS(1, 1)], ordered) != [GPS(1, 1)]


def test_equal_traces_are_one_key():
    assert len({Trace([GPS(1, 1), GPS(2, 1)], per_taxi), Trace([GPS(2, 1), GPS(1, 1)], per_taxi)}) == 1


def test_traces_that_differ_in_order_usually_have_different_hashes():
    assert hash(Trace([GPS(1, 1), GPS(1, 2)], per_taxi)) != hash(Trace([GPS(1, 2), GPS(1, 1)], per_taxi))


def test_levels_are_the_normal_form():
    trace = Trace([GPS(1, 1), GPS(2, 1), GPS(1, 2), EndOfDay(1), GPS(2, 2), GPS(2, 2)], per_taxi)

    assert trace.levels == (
        {GPS(1, 1): 1, GPS(2, 1): 1},
        {GPS(1, 2): 1},
        {EndOfDay(1): 1},
        {GPS(2, 2): 1},
        {GPS(2, 2): 1},
    )


def test_minimal_events_come_with_their_multiplicity():
    trace = Trace([GPS(1, 1), GPS(2, 1), GPS(1, 1)], barrier(EndOfDay))

    assert sorted(event.taxi for event in trace.minimal) == [1, 1, 2]
    assert Trace([], ordered).minimal == ()


def test_a_trace_of_a_function_is_compared_pair_by_pair():
    close = depends(lambda a, b: abs(a.n - b.n) <= 1)

    assert Trace([GPS(1, 1), GPS(1, 3), GPS(1, 2)], close) == Trace([GPS(1, 3), GPS(1, 1), GPS(1, 2)], close)
    assert Trace([GPS(1, 1), GPS(1, 3), GPS(1, 2)], close) != Trace([GPS(1, 1), GPS(1, 2), GPS(1, 3)], close)


# -- prefixes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prefix", "whole", "is_one"),
    [
        ([], [GPS(1, 1)], True),
        ([GPS(1, 1)], [], False),
        ([GPS(2, 1)], [GPS(1, 1), GPS(2, 1)], True),
        ([GPS(1, 2)], [GPS(1, 1), GPS(1, 2)], False),
        ([GPS(1, 2), GPS(1, 1)], [GPS(1, 1), GPS(1, 2)], False),
        ([GPS(1, 1), GPS(1, 2)], [GPS(1, 1), GPS(1, 2)], True),
        ([GPS(1, 1), GPS(1, 1)], [GPS(1, 1)], False),
        ([GPS(1, 1)], [GPS(1, 1), EndOfDay(1), GPS(1, 1)], True),
        ([EndOfDay(1)], [GPS(1, 1), EndOfDay(1)], False),
        ([GPS(3, 1)], [GPS(1, 1)], False),
    ],
)
def test_a_prefix_may_leave_out_what_nothing_in_it_depends_on(prefix: list, whole: list, is_one: bool):
    assert (Trace(prefix, per_taxi) <= Trace(whole, per_taxi)) is is_one


def test_traces_are_concatenated_end_to_end():
    assert Trace([GPS(1, 1)], ordered) + Trace([GPS(2, 1)], ordered) == Trace([GPS(1, 1), GPS(2, 1)], ordered)
    assert len(Trace([GPS(1, 1)], ordered) + Trace([GPS(2, 1)], ordered)) == 2


@pytest.mark.parametrize("ask", [Trace.__eq__, Trace.__le__, Trace.__add__])
def test_traces_up_to_different_dependences_are_not_compared(ask):
    with pytest.raises(TraceError, match="same dependence"):
        ask(Trace([], ordered), Trace([], unordered))


@pytest.mark.parametrize("ask", [Trace.__le__, Trace.__add__])
def test_a_trace_is_not_compared_with_a_list(ask):
    with pytest.raises(TraceError):
        ask(Trace([], ordered), [])


def test_traces_up_to_equal_dependences_are_compared():
    assert Trace([GPS(1, 1)], same("taxi")) == Trace([GPS(1, 1)], same("taxi"))


# -- reorderings -----------------------------------------------------------------------------------------------------


def test_the_reorderings_of_two_taxis():
    one, two, other = GPS(1, 1), GPS(1, 2), GPS(2, 1)

    for events in ([one, two, other], [one, other, two]):
        found = list(Trace(events, per_taxi).reorderings())

        assert len(found) == 3
        assert set(found) == {(one, two, other), (one, other, two), (other, one, two)}


def test_identical_events_make_no_difference():
    assert list(Trace([GPS(1, 1)] * 3, unordered).reorderings()) == [(GPS(1, 1),) * 3]


def test_the_empty_trace_has_one_reordering():
    assert list(Trace([], ordered).reorderings()) == [()]


def test_the_same_seed_gives_the_same_reordering():
    trace = Trace([GPS(taxi, n) for taxi in range(5) for n in range(3)], per_taxi)

    one, same_again = (trace.reordered(random.Random(7)).events for _ in range(2))

    assert one == same_again
    assert one != trace.reordered(random.Random(8)).events


def test_reordering_leaves_the_trace_as_it_was():
    trace = Trace([GPS(taxi, 1) for taxi in range(5)], unordered)
    before = trace.events

    trace.reordered(random.Random(1))

    assert trace.events == before


# -- making ----------------------------------------------------------------------------------------------------------


def test_a_trace_of_a_schema_refuses_other_kinds():
    with pytest.raises(SchemaError, match="EndOfDay"):
        Trace([EndOfDay(1)], Bag(GPS))


@pytest.mark.parametrize("upto", [None, "taxi", GPS, lambda a, b: True])
def test_a_trace_needs_a_dependence(upto: object):
    with pytest.raises(TraceError, match="a dependence or a schema"):
        Trace([], upto)


def test_a_trace_needs_events():
    with pytest.raises(TraceError, match="'GPS'"):
        Trace(["GPS"], ordered)


def test_a_trace_reads_as_python_that_makes_it():
    assert repr(Trace([GPS(1, 2)], Seq(GPS))) == "Trace([GPS(taxi=1, n=2)], Seq(GPS))"


def test_a_trace_survives_pickling_and_copying():
    trace = Trace([GPS(1, 1), GPS(2, 1)], per_taxi)
    hash(trace)

    assert pickle.loads(pickle.dumps(trace)) == trace
    assert copy.deepcopy(trace) == trace
