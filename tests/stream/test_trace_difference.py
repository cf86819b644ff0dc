"""Why two traces are not equal, in a sentence."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamtight as tight

A = tight.Kind("A", key=int, n=int)
BY_KEY = tight.same("key")


@pytest.mark.parametrize(
    ("here", "there", "why"),
    [
        ([A(1, 1)], [], "A(key=1, n=1) comes once here and never there"),
        ([A(1, 1)], [A(1, 1)] * 3, "A(key=1, n=1) comes once here and 3 times there"),
        (
            [A(1, 1), A(2, 0), A(1, 2)],
            [A(1, 2), A(2, 0), A(1, 1)],
            "A(key=1, n=1) comes before A(key=1, n=2) here, after it there, but same('key') keeps their order",
        ),
    ],
)
def test_the_difference_is_named(here, there, why):
    assert tight.Trace(here, BY_KEY).why_not_equal(tight.Trace(there, BY_KEY)) == why


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_there_is_a_difference_exactly_if_they_are_unequal(data):
    few = st.lists(st.builds(A, st.integers(0, 1), st.integers(0, 2)), max_size=6)
    here = data.draw(few)
    there = data.draw(st.one_of(few, st.permutations(here)))
    upto = data.draw(st.sampled_from([BY_KEY, tight.ordered, tight.unordered, tight.barrier(lambda e: e.n == 0)]))
    one, other = tight.Trace(here, upto), tight.Trace(there, upto)

    assert (one.why_not_equal(other) is None) == (one == other)
