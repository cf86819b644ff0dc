from __future__ import annotations

import itertools
import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from strategies import Drawn, batches, drawn, events, kinds, lawful, lawful_slow, schedules
from twins import reachable, shuffles

from streamtight.stream.event import Event
from streamtight.stream.schedule import Schedule, delivered, find_race
from streamtight.stream.trace import Trace


@given(drawn(most=6), st.data())
@lawful
def test_there_is_no_race_exactly_if_all_orders_of_delivery_are_equal_traces(given: Drawn, data: st.DataObject):
    """The contract of `find_race`, against every interleaving of the partitions of every batch."""
    chosen = data.draw(batches(given.events, most=2))
    safe = all(shuffles(batch) <= reachable(tuple(itertools.chain(*batch)), given.meaning) for batch in chosen)

    race = find_race(chosen, given.upto)

    assert (race is None) == safe
    if race is not None:
        one, other = race.partitions
        assert one < other
        assert race.first in chosen[race.batch][one]
        assert race.second in chosen[race.batch][other]
        assert race.first != race.second
        assert given.meaning(race.first, race.second)
        assert race.clause == given.upto.explain(race.first, race.second)


@given(drawn(), st.data())
@lawful
def test_batch_by_batch_and_partition_by_partition_is_one_order_of_delivery(given: Drawn, data: st.DataObject):
    """`delivered` is a shuffle of every batch, one after another."""
    chosen = data.draw(batches(given.events))
    found = list(delivered(chosen))

    for batch in chosen:
        size = sum(map(len, batch))
        assert tuple(found[:size]) in shuffles(batch)
        found = found[size:]
    assert found == []


@given(drawn(), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.randoms(use_true_random=False))
@lawful
def test_a_random_schedule_keeps_its_trace(given: Drawn, most: int, wide: int, shuffle: int, rng: random.Random):
    """`Schedule.random`: whatever the order of delivery, an equal trace arrives."""
    trace = Trace(given.events, given.upto)

    schedule = Schedule.random(trace, rng, batches=most, partitions=wide, shuffle_partitions=shuffle)

    assert schedule.events in reachable(given.events, given.meaning)
    assert find_race(schedule.batches, given.upto) is None
    assert 1 <= len(schedule.batches) <= most
    assert {len(batch) for batch in schedule.batches} <= set(range(1, wide + 1))
    assert 1 <= schedule.shuffle_partitions <= shuffle
    assert schedule.restarts == ()


@given(drawn(most=5), st.randoms(use_true_random=False))
@lawful_slow
def test_whatever_a_random_schedule_delivers_is_an_equal_trace(given: Drawn, rng: random.Random):
    """`Schedule.random`, against every interleaving of its partitions."""
    schedule = Schedule.random(Trace(given.events, given.upto), rng, batches=2, partitions=2)
    words = reachable(given.events, given.meaning)

    for chosen in itertools.product(*map(shuffles, schedule.batches)):
        assert tuple(itertools.chain(*chosen)) in words


def measure(schedule: Schedule) -> tuple[int, ...]:
    width = max((len(batch) for batch in schedule.batches), default=1)
    counts = (len(schedule.events), len(schedule.batches), len(schedule.restarts), width, schedule.shuffle_partitions)
    return tuple(counts)


@given(schedules())
@lawful
def test_a_simpler_schedule_has_less_of_something_and_more_of_nothing(schedule: Schedule):
    """`simpler`: no count grows and one falls, and no event appears that was not there."""
    for simpler in schedule.simpler():
        before, after = measure(schedule), measure(simpler)

        assert all(new <= old for new, old in zip(after, before, strict=True))
        assert after != before
        assert Counter(simpler.events) <= Counter(schedule.events)
        assert Schedule(simpler.batches, simpler.shuffle_partitions, simpler.restarts) == simpler


@given(schedules())
@lawful
def test_every_event_can_be_left_out_alone(schedule: Schedule):
    """`simpler` reaches schedules in which no event is superfluous."""
    simpler = {one.events for one in schedule.simpler() if len(one.events) == len(schedule.events) - 1}

    for place in range(len(schedule.events)):
        assert schedule.events[:place] + schedule.events[place + 1 :] in simpler


@given(schedules(), st.randoms(use_true_random=False))
@lawful
def test_making_it_simpler_ends_with_nothing_left(schedule: Schedule, rng: random.Random):
    """`simpler`, again and again, whichever is taken."""
    steps = 0
    bound = sum(measure(schedule))
    while choices := list(schedule.simpler()):
        schedule = rng.choice(choices)
        steps += 1

    assert steps <= bound
    assert schedule == Schedule(schedule.batches)
    assert measure(schedule) in {(0, 1, 0, 1, 1), (0, 0, 0, 1, 1)}


@given(schedules())
@lawful
def test_leaving_events_out_keeps_the_order_of_the_others_in_every_partition(schedule: Schedule):
    """`simpler`: fewer events never means other places."""
    for simpler in schedule.simpler():
        if len(simpler.events) == len(schedule.events):
            continue
        assert simpler.restarts == schedule.restarts
        assert [len(batch) for batch in simpler.batches] == [len(batch) for batch in schedule.batches]
        for small, large in zip(simpler.batches, schedule.batches, strict=True):
            assert all(is_subsequence(a, b) for a, b in zip(small, large, strict=True))


def is_subsequence(some: tuple[Event, ...], of: tuple[Event, ...]) -> bool:
    remaining = iter(of)
    return all(event in remaining for event in some)


@given(kinds().flatmap(events), st.lists(st.integers(0, 6), max_size=3), st.integers(1, 3))
@lawful
def test_cuts_make_the_batches_and_turns_the_partitions(listed: list[Event], places: list[int], width: int):
    """`Schedule.of`, against slices."""
    cuts = sorted(min(place, len(listed)) for place in places)

    schedule = Schedule.of(listed, cuts=cuts, partitions=width)

    edges = [0, *cuts, len(listed)]
    pieces = [listed[start:end] for start, end in itertools.pairwise(edges)]
    assert schedule.batches == tuple(tuple(tuple(piece[i::width]) for i in range(width)) for piece in pieces)


@given(kinds().flatmap(events), st.lists(st.integers(0, 6), max_size=3), st.integers(1, 3))
@lawful
def test_events_of_one_key_share_a_partition_in_their_order(listed: list[Event], places: list[int], width: int):
    """`Schedule.of(by=...)`, as a keyed topic does it."""
    cuts = sorted(min(place, len(listed)) for place in places)

    schedule = Schedule.of(listed, cuts=cuts, partitions=width, by=lambda event: event)

    homes: dict[Event, set[int]] = {}
    for batch in schedule.batches:
        for place, partition in enumerate(batch):
            for event in partition:
                homes.setdefault(event, set()).add(place)
    edges = [0, *cuts, len(listed)]
    pieces = [listed[start:end] for start, end in itertools.pairwise(edges)]
    assert all(len(home) == 1 for home in homes.values())
    for piece, batch in zip(pieces, schedule.batches, strict=True):
        assert Counter(itertools.chain(*batch)) == Counter(piece)
        assert all(is_subsequence(partition, tuple(piece)) for partition in batch)
        assert len(batch) == width
