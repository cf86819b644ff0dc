from __future__ import annotations

import itertools
import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from strategies import Drawn, drawn, lawful, lawful_slow
from twins import chances, is_prefix, linearizations, reachable

from streamtight.stream.dependence import barrier, depends, same, unordered
from streamtight.stream.event import Kind
from streamtight.stream.trace import Trace


@given(drawn(most=5))
@lawful
def test_traces_are_equal_exactly_if_swapping_independent_neighbours_leads_from_one_to_the_other(given: Drawn):
    """Definition 2.14, for every permutation of a few events."""
    trace = Trace(given.events, given.upto)
    equal = {word for word in itertools.permutations(given.events) if Trace(word, given.upto) == trace}

    assert equal == reachable(given.events, given.meaning)


@given(drawn(most=7), st.randoms(use_true_random=False))
@lawful_slow
def test_longer_traces_are_equal_exactly_if_swaps_lead_from_one_to_the_other(given: Drawn, rng: random.Random):
    """Definition 2.14, for some of the near and far permutations of up to seven events."""
    words = reachable(given.events, given.meaning)
    trace = Trace(given.events, given.upto)
    candidates = rng.sample(sorted(words, key=repr), min(5, len(words)))
    for word in [*candidates, tuple(given.events)]:
        moved = list(word)
        if moved:
            moved.insert(rng.randrange(len(moved)), moved.pop(rng.randrange(len(moved))))
        candidates.append(tuple(moved))

    for word in candidates:
        assert (Trace(word, given.upto) == trace) == (word in words)


@given(drawn(), st.data())
@lawful
def test_traces_of_different_events_are_never_equal(given: Drawn, data: st.DataObject):
    """Definition 2.14: swaps neither add, drop nor change events."""
    trace = Trace(given.events, given.upto)
    other = data.draw(st.lists(st.sampled_from(given.events or [None]), max_size=6)) if given.events else []

    if Counter(other) != Counter(given.events):
        assert Trace(other, given.upto) != trace


@given(drawn(most=5))
@lawful
def test_equal_traces_have_equal_hashes(given: Drawn):
    """The contract of hash."""
    hashes = {hash(Trace(word, given.upto)) for word in reachable(given.events, given.meaning)}

    assert len(hashes) == 1


@given(drawn(most=5), st.integers(0, 5), st.randoms(use_true_random=False))
@lawful
def test_a_trace_is_a_prefix_exactly_if_some_order_of_it_begins_some_order_of_the_other(
    given: Drawn, size: int, rng: random.Random
):
    """Section 2.1, the prefix order of data traces: on a part of the events, near or far from a prefix."""
    part = rng.sample(given.events, min(size, len(given.events)))
    beginning = rng.choice(sorted(reachable(given.events, given.meaning), key=repr))[:size]
    whole = Trace(given.events, given.upto)

    assert Trace(beginning, given.upto) <= whole
    assert (Trace(part, given.upto) <= whole) == is_prefix(part, given.events, given.meaning)


@given(drawn(most=4))
@lawful
def test_every_list_of_the_events_of_a_trace_is_a_prefix_only_if_it_should_be(given: Drawn):
    """Section 2.1, the prefix order of data traces: on every arrangement of every part of a few events."""
    whole = Trace(given.events, given.upto)
    words = reachable(given.events, given.meaning)
    for size in range(len(given.events) + 1):
        begins = {start for word in words for start in reachable(word[:size], given.meaning)}
        for part in set(itertools.permutations(given.events, size)):
            assert (Trace(part, given.upto) <= whole) == (part in begins)


@given(drawn(most=5), st.integers(0, 5))
@lawful
def test_a_trace_is_a_prefix_of_its_concatenation(given: Drawn, cut: int):
    """Section 2.1: [u][v] = [uv], and u <= uv."""
    whole = Trace(given.events, given.upto)
    first, second = Trace(given.events[:cut], given.upto), Trace(given.events[cut:], given.upto)

    assert first + second == whole
    assert first <= whole
    assert len(first) + len(second) == len(whole)


@given(drawn(most=6))
@lawful_slow
def test_the_reorderings_are_the_permutations_that_keep_every_dependent_pair_in_order(given: Drawn):
    """`reorderings` lists the congruence class of Definition 2.14, each member once."""
    listed = list(Trace(given.events, given.upto).reorderings())

    assert len(listed) == len(set(listed))
    assert set(listed) == linearizations(given.events, given.meaning)


@given(drawn(), st.randoms(use_true_random=False))
@lawful
def test_a_random_reordering_is_an_equal_trace(given: Drawn, rng: random.Random):
    """`reordered` stays in the congruence class of Definition 2.14."""
    trace = Trace(given.events, given.upto)
    other = trace.reordered(rng)

    assert other.events in reachable(given.events, given.meaning)
    assert other == trace
    assert other.upto is trace.upto


@given(drawn(most=6))
@lawful
def test_the_minimal_events_are_those_that_can_come_first(given: Drawn):
    """An event is minimal exactly if some reordering begins with it."""
    trace = Trace(given.events, given.upto)

    assert set(trace.minimal) == {word[0] for word in reachable(given.events, given.meaning) if word}


@given(drawn(most=6))
@lawful
def test_sorting_by_level_gives_an_equal_trace(given: Drawn):
    """Foata's normal form: the events level by level are an equal trace, and no level can start earlier."""
    trace = Trace(given.events, given.upto)
    by_level = tuple(event for level in trace.levels for event in Counter(level).elements())

    assert by_level in reachable(given.events, given.meaning)
    for lower, upper in itertools.pairwise(trace.levels):
        assert all(any(given.meaning(a, b) for a in lower) for b in upper)


def test_every_reordering_comes_as_often_as_a_fair_choice_of_the_next_event_makes_it():
    """The promise of `reordered`, for three shapes of trace, one seed, with bounds of six standard deviations."""
    kind = Kind("R", k=int, n=int)
    end = Kind("End")
    rng = random.Random(20240607)
    runs = 2000
    for upto, listed in [
        (unordered, [kind(1, 1), kind(1, 2), kind(1, 3)]),
        (same("k"), [kind(1, 1), kind(1, 2), kind(2, 1), kind(2, 2), kind(3, 1)]),
        (barrier(end) | same("k", of=kind), [kind(1, 1), kind(2, 1), kind(1, 2), end(), kind(1, 1), kind(2, 1)]),
        (depends(lambda a, b: abs(a.n - b.n) == 1), [kind(1, 1), kind(1, 2), kind(1, 3), kind(1, 4)]),
        (unordered, [kind(1, 1), kind(1, 1), kind(1, 2)]),
    ]:
        trace = Trace(listed, upto)
        expected = chances(trace.events, upto.depends)

        seen = Counter(trace.reordered(rng).events for _ in range(runs))

        assert set(seen) == set(expected) == set(trace.reorderings())
        for word, chance in expected.items():
            assert abs(seen[word] - runs * chance) <= 6 * (runs * chance * (1 - chance)) ** 0.5
