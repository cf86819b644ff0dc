"""Restarts, with and without a replay of the batch before."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import streamtight as tight
from streamtight import Cause, Kind, Restart, Schedule

pytestmark = pytest.mark.usefixtures("spark")

KV = Kind("KV", k=str, v=int)
Count = Kind("Count", k=str, n=int)
EVENTS = [KV("a", 1), KV("a", 2), KV("b", 3), KV("a", 4)]
COUNTS = ({Count("a", 1)}, {Count("a", 2), Count("b", 1)}, {Count("a", 3)})
DATA, REPLAY = Cause.DATA, Cause.REPLAY


def counted(rows: DataFrame) -> DataFrame:
    return rows.groupBy("k").agg(F.count("*").alias("n"))


def run_with(*restarts: Restart) -> tight.Run:
    schedule = Schedule.of(EVENTS, cuts=[1, 3], partitions=2, restarts=restarts)
    return tight.run(counted, schedule, takes=KV, gives=Count, mode="update")


def steps_of(run: tight.Run) -> list[tuple[int, Cause]]:
    return [(step.batch, step.cause) for step in run.steps]


def counts_of(batches: tight.stream.schedule.Batches) -> tuple[set[tight.Event], ...]:
    return tuple({event for partition in batch for event in partition} for batch in batches)


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_restart_changes_nothing(after: int) -> None:
    run = run_with(Restart(after))

    assert steps_of(run) == [(0, DATA), (1, DATA), (2, DATA)]
    assert counts_of(run.batches) == counts_of(run.committed) == COUNTS


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_replayed_batch_comes_twice_with_the_same_rows(after: int) -> None:
    run = run_with(Restart(after, replay=True))

    assert steps_of(run) == sorted([(0, DATA), (1, DATA), (2, DATA), (after, REPLAY)], key=lambda step: step[0])
    assert counts_of(run.batches) == COUNTS[: after + 1] + COUNTS[after:]
    assert counts_of(run.committed) == COUNTS


def test_a_replayed_batch_has_the_same_input_in_the_same_partitions() -> None:
    run = run_with(Restart(1, replay=True))

    assert [step.input for step in run.steps if step.batch == 1] == [((KV("a", 2),), (KV("b", 3),))] * 2


def test_two_restarts_in_a_row_replay_two_batches() -> None:
    run = run_with(Restart(0, replay=True), Restart(1, replay=True))

    assert steps_of(run) == [(0, DATA), (0, REPLAY), (1, DATA), (1, REPLAY), (2, DATA)]
    assert counts_of(run.committed) == COUNTS


def test_a_restart_after_every_batch_changes_nothing() -> None:
    run = run_with(Restart(0), Restart(1), Restart(2))

    assert steps_of(run) == [(0, DATA), (1, DATA), (2, DATA)]
    assert counts_of(run.batches) == COUNTS


def test_restarts_with_and_without_a_replay_mix() -> None:
    run = run_with(Restart(0), Restart(1, replay=True), Restart(2, replay=True))

    assert steps_of(run) == [(0, DATA), (1, DATA), (1, REPLAY), (2, DATA), (2, REPLAY)]
    assert counts_of(run.committed) == COUNTS


def test_the_job_is_built_anew_for_every_start() -> None:
    built = []

    def job(rows: DataFrame) -> DataFrame:
        built.append(rows)
        return rows

    tight.run(job, Schedule.of(EVENTS, cuts=[1, 3], restarts=[Restart(0), Restart(1, replay=True)]), takes=KV)

    assert len(built) == 3


def test_a_stateless_job_gives_the_replayed_rows_in_their_partitions() -> None:
    schedule = Schedule.of(EVENTS, cuts=[2], partitions=2, restarts=[Restart(1, replay=True)])

    run = tight.run(lambda rows: rows.select("*"), schedule, takes=KV, gives=KV)

    assert run.batches == (schedule.batches[0], schedule.batches[1], schedule.batches[1])
    assert run.committed == schedule.batches


def test_an_empty_batch_is_replayed_too() -> None:
    schedule = Schedule((((KV("a", 1),),), ((), ())), restarts=(Restart(1, replay=True),))

    run = tight.run(lambda rows: rows, schedule, takes=KV, gives=KV)

    assert run.batches == (schedule.batches[0], ((), ()), ((), ()))


def test_a_counter_outside_the_checkpoint_sees_the_replay() -> None:
    """A sink that appends is wrong after a replay; one that replaces the batch is right."""
    schedule = Schedule.of(EVENTS, cuts=[1, 3], restarts=[Restart(1, replay=True)])

    run = tight.run(lambda rows: rows, schedule, takes=KV, gives=KV)

    assert sum(event.v for event in run.events) == 1 + (2 + 3) + (2 + 3) + 4
    assert sum(event.v for batch in run.committed for partition in batch for event in partition) == 1 + 2 + 3 + 4
