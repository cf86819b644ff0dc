"""The smallest failing schedule."""

from __future__ import annotations

import random

import pytest

import streamtight as tight
from streamtight.errors import SourceError
from streamtight.source.generate import generated

N = tight.Kind("N", key=int, n=int)
BY_KEY = tight.same("key")


def schedule(seed, count=20):
    rng = random.Random(seed)
    events = [N(rng.randrange(3), place) for place in range(count)]
    return tight.Schedule.random(tight.Trace(events, BY_KEY), rng)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_left_fails_and_nothing_more_can_be_left_out(seed):
    def fails(candidate):
        return sum(event.key == 1 for event in candidate.events) >= 2

    found = tight.smallest_failing(schedule(seed), fails, promise=BY_KEY)

    assert fails(found)
    assert len(found.events) == 2
    assert len(found.batches) == 1
    assert found.shuffle_partitions == 1
    assert not any(fails(simpler) for simpler in found.simpler() if tight.find_race(simpler.batches, BY_KEY) is None)


@pytest.mark.parametrize("seed", range(5))
def test_no_schedule_that_breaks_the_promise_is_tried(seed):
    tried = []

    def fails(candidate):
        tried.append(candidate)
        return len(candidate.events) > 3

    tight.smallest_failing(schedule(seed), fails, promise=BY_KEY)

    assert tried
    assert all(tight.find_race(candidate.batches, BY_KEY) is None for candidate in tried)


def test_batches_that_matter_stay():
    cut = tight.Schedule.of([N(1, 1), N(1, 2), N(1, 3)], cuts=[1, 2])

    found = tight.smallest_failing(cut, lambda s: len([b for b in s.batches if any(b)]) >= 2, promise=BY_KEY)

    assert len(found.batches) == 2
    assert len(found.events) == 2


def test_restarts_that_do_not_matter_go():
    restarted = tight.Schedule(((((N(1, 1)),),), (((N(1, 2)),),)), restarts=(tight.Restart(0), tight.Restart(1)))

    found = tight.smallest_failing(restarted, lambda s: len(s.restarts) >= 1, promise=BY_KEY)

    assert len(found.restarts) == 1
    assert found.events == ()


def test_it_stops_after_so_many_tries():
    tried = []

    def fails(candidate):
        tried.append(candidate)
        return False

    start = schedule(1)

    assert tight.smallest_failing(start, fails, promise=BY_KEY, limit=3) == start
    assert len(tried) == 3


# -- many at once ------------------------------------------------------------------------------------------------


def two_of_key_one(candidate):
    return sum(event.key == 1 for event in candidate.events) >= 2


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("at_once", [1, 3, 8, 100])
def test_judging_many_at_once_finds_the_same(seed, at_once):
    chunks = []

    def first_failing(candidates):
        chunks.append(list(candidates))
        return next(filter(two_of_key_one, candidates), None)

    found = tight.smallest_failing(schedule(seed), first_failing=first_failing, promise=BY_KEY, at_once=at_once)

    assert found == tight.smallest_failing(schedule(seed), two_of_key_one, promise=BY_KEY)
    assert 1 <= min(map(len, chunks)) <= max(map(len, chunks)) <= at_once


def test_many_at_once_need_fewer_runs():
    def runs(at_once):
        chunks = []

        def first_failing(candidates):
            chunks.append(candidates)
            return next(filter(two_of_key_one, candidates), None)

        tight.smallest_failing(schedule(1), first_failing=first_failing, promise=BY_KEY, at_once=at_once)
        return len(chunks)

    assert runs(8) < runs(1)


def test_the_limit_counts_schedules_and_not_runs():
    tried = []

    def first_failing(candidates):
        tried.extend(candidates)

    tight.smallest_failing(schedule(1), first_failing=first_failing, promise=BY_KEY, at_once=8, limit=11)

    assert len(tried) == 11


@pytest.mark.parametrize("seed", range(5))
def test_no_schedule_is_tried_twice(seed):
    tried = []

    def fails(candidate):
        tried.append(candidate)
        return two_of_key_one(candidate)

    start = schedule(seed)
    source = generated(N, n=range(30))
    tight.smallest_failing(start, fails, promise=BY_KEY, simpler_events=source.simpler_events, limit=5000)

    assert len(tried) == len(set(tried)) < 5000
    assert start not in tried


# -- simpler values ----------------------------------------------------------------------------------------------

NUMBERS = generated(N, key=range(-3, 11), n=range(100))


def test_values_are_as_simple_as_the_failure_allows():
    start = tight.Schedule.of([N(7, 31), N(3, 64)])

    found = tight.smallest_failing(
        start, lambda s: any(e.n > 12 for e in s.events), promise=BY_KEY, simpler_events=NUMBERS.simpler_events
    )

    assert found.events == (N(0, 13),)


def test_a_value_is_replaced_wherever_it_stands():
    """The two events fail only together, so no single one can be renamed."""
    start = tight.Schedule.of([N(7, 31), N(7, 64)])

    found = tight.smallest_failing(
        start,
        lambda s: len(s.events) == 2 and s.events[0].key == s.events[1].key,
        promise=BY_KEY,
        simpler_events=NUMBERS.simpler_events,
    )

    assert found.events == (N(0, 0), N(0, 0))


def test_a_value_is_replaced_in_all_kinds_that_have_the_field():
    m = tight.Kind("M", key=int)
    source = generated([N, m])

    def joined(candidate):
        keys = [{e.key for e in candidate.events if e.kind is kind} for kind in (N, m)]
        return bool(keys[0] & keys[1])

    found = tight.smallest_failing(
        tight.Schedule.of([N(9, 9), m(9)]), joined, promise=tight.unordered, simpler_events=source.simpler_events
    )

    assert found.events == (N(0, 0), m(0))


def test_equal_events_are_replaced_together():
    """The third event must stay as it is, so that their key cannot be replaced everywhere."""
    start = tight.Schedule.of([N(7, 1), N(7, 1), N(7, 2)])

    def fails(candidate):
        events = candidate.events
        return len(events) == 3 and events[0] == events[1] and events[2] == N(7, 2)

    found = tight.smallest_failing(start, fails, promise=tight.unordered, simpler_events=NUMBERS.simpler_events)

    assert found.events == (N(0, 0), N(0, 0), N(7, 2))


def test_one_of_equal_events_is_replaced_alone():
    start = tight.Schedule.of([N(7, 0), N(7, 0)])

    def fails(candidate):
        return len(candidate.events) == 2 and any(event.key == 7 for event in candidate.events)

    found = tight.smallest_failing(start, fails, promise=tight.unordered, simpler_events=NUMBERS.simpler_events)

    assert sorted(event.key for event in found.events) == [0, 7]


def test_different_keys_become_the_simplest_different_keys():
    start = tight.Schedule.of([N(key, 50) for key in (10, 8, 6, 9)])

    found = tight.smallest_failing(
        start,
        lambda s: len({e.key for e in s.events}) == 4,
        promise=tight.unordered,
        simpler_events=NUMBERS.simpler_events,
    )

    assert sorted(e.key for e in found.events) == [-1, 0, 1, 2]
    assert {e.n for e in found.events} == {0}


def test_simpler_values_may_let_more_be_left_out():
    """With 0 in it one event is enough; the second is needed only as long as there is no 0."""
    start = tight.Schedule.of([N(5, 5), N(6, 6)])

    found = tight.smallest_failing(
        start,
        lambda s: len(s.events) == 2 or any(e.key == 0 for e in s.events),
        promise=tight.unordered,
        simpler_events=NUMBERS.simpler_events,
    )

    assert found.events == (N(0, 0),)


def test_a_simpler_value_that_would_break_the_promise_is_not_tried():
    """Both keys could be 0, but then the events would depend on each other across two partitions."""
    start = tight.Schedule((((N(7, 1),), (N(8, 2),)),))
    tried = []

    def fails(candidate):
        tried.append(candidate)
        sizes = [len(partition) for partition in candidate.batches[0]]
        return sizes == [1, 1] and candidate.events[0].n != candidate.events[1].n

    found = tight.smallest_failing(start, fails, promise=BY_KEY, simpler_events=NUMBERS.simpler_events)

    assert sorted(e.key for e in found.events) == [0, 1]
    assert all(tight.find_race(candidate.batches, BY_KEY) is None for candidate in tried)


@pytest.mark.parametrize("seed", range(5))
def test_only_events_of_the_domain_are_tried(seed):
    source = generated(N, key=[1, 4], n=range(20), where=lambda event: event.n % 2 == event.key % 2)
    [trace] = source.traces(1, seed)
    tried = []

    def fails(candidate):
        tried.extend(candidate.events)
        return len(candidate.events) >= 1

    start = tight.Schedule.random(trace, random.Random(seed))
    tight.smallest_failing(start, fails, promise=tight.ordered, simpler_events=source.simpler_events)

    assert all(event.key in (1, 4) and 0 <= event.n < 20 and event.n % 2 == event.key % 2 for event in tried)


@pytest.mark.parametrize("at_once", [1, 8])
@pytest.mark.parametrize("seed", range(5))
def test_the_result_fails_and_no_simpler_one_does(seed, at_once):
    source = generated(N, upto=BY_KEY, size=12)
    [trace] = source.traces(1, seed)
    start = tight.Schedule.random(trace, random.Random(seed))
    total = sum(e.n for e in trace.events if e.key > 0) // 2

    def fails(candidate):
        return sum(e.n for e in candidate.events if e.key > 0) >= total

    found = tight.smallest_failing(
        start,
        first_failing=lambda candidates: next(filter(fails, candidates), None),
        promise=BY_KEY,
        simpler_events=source.simpler_events,
        at_once=at_once,
        limit=10_000,
    )

    assert fails(found)
    assert not any(fails(s) for s in found.simpler() if tight.find_race(s.batches, BY_KEY) is None)
    for place, event in enumerate(found.events):
        for simpler in source.simpler_events(event):
            events = [*found.events[:place], simpler, *found.events[place + 1 :]]
            assert not fails(tight.Schedule.of(events))


def test_the_limit_holds_for_values_too():
    tried = []

    def fails(candidate):
        tried.append(candidate)
        return len(candidate.events) == 1

    tight.smallest_failing(
        tight.Schedule.of([N(9, 99)]), fails, promise=BY_KEY, simpler_events=NUMBERS.simpler_events, limit=2
    )

    assert len(tried) == 2


def test_a_function_that_goes_round_in_circles_is_left():
    start = tight.Schedule.of([N(1, 1)])
    tried = []

    def fails(candidate):
        tried.append(candidate)
        return len(candidate.events) == 1

    tight.smallest_failing(
        start, fails, promise=BY_KEY, simpler_events=lambda event: [event.replace(key=(event.key + 1) % 3)]
    )

    assert [s.events for s in tried] == [(), (N(2, 1),), (N(0, 1),)]


# -- wrong questions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "came neither"),
        ({"fails": two_of_key_one, "first_failing": lambda _: None}, "came both"),
        ({"fails": two_of_key_one, "limit": -1}, "a whole number from 0; came -1"),
        ({"fails": two_of_key_one, "at_once": 0}, "a whole number from 1; came 0"),
        ({"first_failing": lambda _: tight.Schedule.of([])}, "one of the given schedules"),
        ({"first_failing": lambda _: True}, "one of the given schedules, or None; came True"),
    ],
    ids=lambda value: value if isinstance(value, str) else ", ".join(value),
)
def test_a_wrong_question_is_refused(options, said):
    with pytest.raises(SourceError, match=said):
        tight.smallest_failing(tight.Schedule.of([N(1, 1), N(1, 2), N(2, 2)]), promise=BY_KEY, **options)
