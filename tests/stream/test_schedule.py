from __future__ import annotations

import os
import random
import subprocess
import sys

import pytest

from streamtight.errors import FieldError, TraceError
from streamtight.stream.dependence import barrier, between, depends, ordered, same, unordered
from streamtight.stream.event import Kind
from streamtight.stream.schedule import Race, Restart, Schedule, delivered, find_race
from streamtight.stream.trace import Trace

N, End, X = Kind("N", key=int, n=int), Kind("End"), Kind("X", x=float)
a, b, c, d = (N(1, n) for n in range(4))


# -- making ----------------------------------------------------------------------------------------------------------


def test_without_cuts_all_events_are_one_batch():
    assert Schedule.of([a, b, c]).batches == (((a, b, c),),)


def test_without_events_there_is_one_empty_batch():
    assert Schedule.of([]).batches == (((),),)


def test_cuts_start_new_batches():
    assert Schedule.of([a, b, c], cuts=[1, 3]).batches == (((a,),), ((b, c),), ((),))


def test_a_cut_twice_makes_an_empty_batch():
    assert Schedule.of([a, b], cuts=[1, 1]).batches == (((a,),), ((),), ((b,),))


def test_events_are_dealt_out_in_turn_anew_in_every_batch():
    assert Schedule.of([a, b, c, d], cuts=[3], partitions=2).batches == (((a, c), (b,)), ((d,), ()))


def test_events_of_one_key_share_a_partition():
    schedule = Schedule.of([N(key, n) for n in range(2) for key in range(6)], partitions=3, by="key")

    for partition in schedule.batches[0]:
        keys = [event.key for event in partition]
        assert sorted(keys) == sorted(2 * list(set(keys)))
    assert sum(bool(partition) for partition in schedule.batches[0]) > 1


def test_the_key_may_be_a_function():
    by_parity = Schedule.of([N(key, 0) for key in range(12)], partitions=5, by=lambda event: event.key % 2).batches[0]

    assert all(len({event.key % 2 for event in partition}) <= 1 for partition in by_parity)
    assert sum(bool(partition) for partition in by_parity) == 2


def test_a_keyed_schedule_is_the_same_in_every_process():
    program = (
        "from streamtight.stream.event import Kind; from streamtight.stream.schedule import Schedule; "
        "print(Schedule.of(map(Kind('S', key=str), 'abcdefghijkl'), partitions=3, by='key'))"
    )
    here = Schedule.of(map(Kind("S", key=str), "abcdefghijkl"), partitions=3, by="key")

    env = {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "1"}
    there = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True, env=env)

    assert there.stdout == f"{here}\n"


def test_equal_keys_share_a_partition_however_they_are_written():
    zeros = Schedule.of([X(0.0), X(-0.0)], partitions=2, by="x").batches[0]

    assert sorted(map(len, zeros)) == [0, 2]


def test_a_key_that_is_no_field_is_refused():
    with pytest.raises(FieldError, match="'taxi'"):
        Schedule.of([a], by="taxi")


def test_a_schedule_may_have_restarts_and_shuffle_partitions():
    schedule = Schedule.of([a, b], cuts=[1], shuffle_partitions=5, restarts=[Restart(0), Restart(1, replay=True)])

    assert schedule.shuffle_partitions == 5
    assert schedule.restarts == (Restart(0), Restart(1, replay=True))


def test_schedules_with_the_same_contents_are_equal_and_hash_alike():
    assert Schedule.of([a, b], cuts=[1]) == Schedule((((a,),), ((b,),)))
    assert hash(Schedule.of([a, b], cuts=[1])) == hash(Schedule((((a,),), ((b,),))))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Schedule(([a],)),
        lambda: Schedule(((a,),)),
        lambda: Schedule(((),)),
        lambda: Schedule((((a,), [b]),)),
        lambda: Schedule((((3,),),)),
        lambda: Schedule((((a,),),), shuffle_partitions=0),
        lambda: Schedule((((a,),),), shuffle_partitions=1.5),
        lambda: Schedule((((a,),),), restarts=(Restart(1),)),
        lambda: Schedule((((a,),),), restarts=(Restart(-1),)),
        lambda: Schedule((((a,),),) * 2, restarts=(Restart(1), Restart(0))),
        lambda: Schedule((((a,),),), restarts=(Restart(0), Restart(0))),
        lambda: Schedule.of([3]),
        lambda: Schedule.of([a], cuts=[2]),
        lambda: Schedule.of([a], cuts=[-1]),
        lambda: Schedule.of([a, b], cuts=[2, 1]),
        lambda: Schedule.of([a], cuts=[0.5]),
        lambda: Schedule.of([a], partitions=0),
        lambda: Schedule.of([a], partitions="2"),
        lambda: Schedule.of([a], restarts=[Restart(1)]),
    ],
)
def test_a_schedule_that_cannot_be_run_is_refused(make):
    with pytest.raises(TraceError):
        make()


@pytest.mark.parametrize("wrong", [{"batches": 0}, {"partitions": 0}, {"shuffle_partitions": 0}], ids=str)
def test_a_random_schedule_of_nothing_is_refused(wrong: dict[str, int]):
    with pytest.raises(TraceError):
        Schedule.random(Trace([a], ordered), random.Random(1), **wrong)


# -- random ----------------------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_schedule():
    trace = Trace([N(key, n) for key in range(4) for n in range(4)], same("key"))

    assert Schedule.random(trace, random.Random(3)) == Schedule.random(trace, random.Random(3))
    assert Schedule.random(trace, random.Random(3)) != Schedule.random(trace, random.Random(4))


def test_random_schedules_use_all_that_they_may():
    trace = Trace([N(key, 0) for key in range(6)], same("key"))
    rng = random.Random(5)

    found = [Schedule.random(trace, rng, batches=3, partitions=2, shuffle_partitions=4).batches for _ in range(60)]

    assert {len(batches) for batches in found} == {1, 2, 3}
    assert {len(batches[0]) for batches in found} == {1, 2}
    assert any(not any(batches[0]) for batches in found)
    assert any(not any(batches[-1]) for batches in found)
    assert any(all(batch) and len(batch) == 2 for batches in found for batch in batches)
    assert len({tuple(delivered(batches)) for batches in found}) > 20


def test_random_schedules_use_every_number_of_shuffle_partitions():
    rng = random.Random(5)
    trace = Trace([a], ordered)

    found = {Schedule.random(trace, rng, shuffle_partitions=3).shuffle_partitions for _ in range(60)}

    assert found == {1, 2, 3}


def test_events_tied_through_others_share_a_partition():
    chain = depends(lambda x, y: abs(x.n - y.n) == 1)
    for seed in range(30):
        for events in ([a, c, b], [b, a, c]):
            schedule = Schedule.random(Trace(events, chain), random.Random(seed), batches=1, partitions=3)

            assert max(map(len, schedule.batches[0])) == 3


# -- simpler ---------------------------------------------------------------------------------------------------------


def test_halves_are_left_out_first_and_single_events_last():
    dropped = [len(s.events) for s in Schedule.of([a, b, c, d]).simpler()]

    assert dropped == [2, 2, 3, 3, 3, 3]


def test_of_three_events_two_are_left_out_first():
    assert [s.events for s in Schedule.of([a, b, c]).simpler()] == [(c,), (a, b), (b, c), (a, c), (a, b)]


def test_the_last_event_can_be_left_out():
    assert Schedule((((),),)) in list(Schedule.of([a]).simpler())


def test_a_restart_can_be_left_out():
    schedule = Schedule((((),), ((),)), restarts=(Restart(0), Restart(1)))

    assert [s.restarts for s in schedule.simpler()][:2] == [(Restart(1),), (Restart(0),)]


def test_merging_two_batches_puts_the_later_events_behind():
    schedule = Schedule((((a,), (b,)), ((c,),), ((d,),)))

    merged = [s for s in schedule.simpler() if len(s.batches) == 2]

    assert [s.batches for s in merged] == [
        (((a, c), (b,)), ((d,),)),
        (((a,), (b,)), ((c, d),)),
    ]


def test_merging_two_batches_moves_the_restarts_along():
    schedule = Schedule((((a,),), ((b,),), ((c,),)), restarts=(Restart(0), Restart(1, replay=True), Restart(2)))

    merged = [s.restarts for s in schedule.simpler() if len(s.batches) == 2]

    assert merged == [
        (Restart(0, replay=True), Restart(1)),
        (Restart(0), Restart(1)),
    ]


def test_an_empty_batch_can_be_left_out():
    schedule = Schedule((((a,),), ((), ()), ((b,),)), restarts=(Restart(1), Restart(2)))

    assert Schedule((((a,),), ((b,),)), restarts=(Restart(1),)) in list(schedule.simpler())
    assert Schedule((((a,),),)) in list(Schedule((((a,),), ((), ()))).simpler())


def test_the_last_partition_can_be_put_behind_the_one_before():
    schedule = Schedule((((a,), (b,), (c,)), ((d,), ())))

    assert Schedule((((a,), (b, c)), ((d,), ()))) in list(schedule.simpler())


def test_shuffle_partitions_can_be_fewer():
    assert [s.shuffle_partitions for s in Schedule((((),),), shuffle_partitions=3).simpler()] == [2]


def test_nothing_is_simpler_than_nothing():
    assert list(Schedule((((),),)).simpler()) == []
    assert list(Schedule(()).simpler()) == []


# -- reading ---------------------------------------------------------------------------------------------------------


def test_a_schedule_shows_its_batches_partitions_and_restarts():
    schedule = Schedule((((End(), X(0.5)), ()), ((a,),), ((),)), restarts=(Restart(0), Restart(1, replay=True)))

    assert str(schedule) == (
        "batch 0\n"
        "  partition 0: End(), X(x=0.5)\n"
        "  partition 1: (empty)\n"
        "  restart\n"
        "batch 1\n"
        "  partition 0: N(key=1, n=0)\n"
        "  restart, this batch replayed\n"
        "batch 2\n"
        "  partition 0: (empty)"
    )


def test_events_are_delivered_batch_by_batch_and_partition_by_partition():
    assert Schedule((((a, b), (c,)), ((d,),))).events == (a, b, c, d)


# -- races -----------------------------------------------------------------------------------------------------------


def test_dependent_events_in_two_partitions_of_a_batch_race():
    assert find_race((((), ()), ((a,), (b,))), same("key")) == Race(a, b, "same('key')", 1, (0, 1))


def test_a_race_tells_where_it_is_and_who_says_so():
    race = find_race((((a,), (), (End(),)),), barrier(End))

    assert str(race) == (
        "batch 0 delivers N(key=1, n=0) in partition 0 and End() in partition 2, so they may arrive either way; "
        "but barrier(End) orders them"
    )


@pytest.mark.parametrize(
    ("batches", "upto"),
    [
        ((((a, b),),), ordered),
        ((((a,),), ((b,),)), ordered),
        ((((a,), (N(2, 0),)),), same("key")),
        ((((a,), (b,)),), unordered),
        ((((a, b), ()),), ordered),
        ((), ordered),
        ((((a,), (b,)),), between(N, End)),
    ],
    ids=str,
)
def test_independent_events_and_events_of_one_partition_do_not_race(batches, upto):
    assert find_race(batches, upto) is None


def test_identical_events_do_not_race():
    assert find_race((((a,), (a,)),), ordered) is None


def test_identical_events_do_not_hide_a_race_behind_them():
    race = find_race((((a, b), (a,)),), ordered)

    assert (race.first, race.second) == (b, a)


def test_events_with_a_nan_key_race_like_others():
    kind = Kind("F", x=float, n=int)

    assert find_race((((kind(float("nan"), 1),), (kind(float("nan"), 2),)),), same("x")) is not None


def test_a_race_with_a_partition_further_back_is_found():
    race = find_race((((a,), (N(2, 0),), (b,)),), same("key"))

    assert race.partitions == (0, 2)


def test_a_race_between_the_last_two_partitions_is_found():
    race = find_race((((N(2, 0),), (a,), (b,)),), same("key"))

    assert race.partitions == (1, 2)
