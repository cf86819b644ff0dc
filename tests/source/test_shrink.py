"""The smallest failing schedule."""

from __future__ import annotations

import random

import pytest

import streamtight as tight

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
