"""Leaves in tasks of their own change nothing: the very code of Spark's tasks, without Spark (Theorem 4.13)."""

from __future__ import annotations

import itertools
import math
import pickle
import socket
import threading
import time
from collections import Counter
from typing import Any

import pytest
from fork_join_twins import Barrier, Case, Value, Windows, cases, in_order, updated
from gang import run_gang
from hypothesis import given, settings
from hypothesis import strategies as st

from streamtight.errors import InputError
from streamtight.method.parallelize.gang import Gang
from streamtight.program.fork_join import Branch, StateType
from streamtight.program.plan import InputStream, Plan, Worker
from streamtight.stream.dependence import barrier
from streamtight.stream.event import Event, Kind

seeds = st.integers(0, 10**6)
some = settings(max_examples=60, deadline=None)


@pytest.fixture(autouse=True)
def kept_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events of any type come out: how they are packed is tested elsewhere."""
    from gang import Listed

    monkeypatch.setattr("streamtight.spark.parallel_run.Outputs", Listed)


def outputs(events: list[Event]) -> Counter[Any]:
    return Counter(map(repr, events))


def has_equal_keys(case: Case) -> bool:
    """Whether two events of a stream are dependent and nobody but the stream can say which is first."""
    for items in case.streams.values():
        events = [item for item in items if isinstance(item, Event)]
        for one, other in itertools.combinations(events, 2):
            if one.time == other.time and one.kind is other.kind and case.program.depends.depends(one, other):
                return True
    return False


@some
@given(cases(), seeds, st.booleans())
def test_theorem_4_13_a_gang_gives_what_the_sequential_program_gives(case: Case, seed: int, as_files: bool) -> None:
    state, expected = updated(case.program, in_order(case.program, case.streams))

    try:
        came, last, _ = run_gang(case.plan, case.streams, seed, as_files=as_files)
    except InputError:
        assert has_equal_keys(case)
        return

    assert outputs(came) == outputs(expected)
    assert case.program.same_state(last, state)


@some
@given(cases(), seeds, st.integers(1, 3))
def test_a_lost_task_costs_time_and_no_result(case: Case, seed: int, lost: int) -> None:
    _, expected = updated(case.program, in_order(case.program, case.streams))

    try:
        came, _, tries = run_gang(case.plan, case.streams, seed, as_files=False, lost=lost)
    except InputError:
        assert has_equal_keys(case)
        return

    assert outputs(came) == outputs(expected)
    assert tries >= 1


@some
@given(cases(), seeds)
def test_a_run_goes_on_from_the_state_of_another(case: Case, seed: int) -> None:
    """What a micro-batch does: everything up to a time in one run, the rest in the next."""
    half = {name: [i for i in items if i.time <= 2] for name, items in case.streams.items()}
    rest = {name: [i for i in items if i.time > 2] for name, items in case.streams.items()}
    _, expected = updated(case.program, in_order(case.program, case.streams))

    try:
        first, state, _ = run_gang(case.plan, half, seed, as_files=True)
        second, _, _ = run_gang(case.plan, rest, seed, as_files=False, state=pickle.dumps(state))
    except InputError:
        assert has_equal_keys(case)
        return

    assert outputs(first + second) == outputs(expected)


def plan_of(program: Any) -> Plan:
    values, barriers = InputStream("values", Value, lanes=2), InputStream("barriers", Barrier)
    one, two = (Worker("part", [share]) for share in values.shares)
    return Plan(program, [values, barriers], Worker("whole", barriers.shares, one, two))


@pytest.mark.parametrize("where", ["update", "fork", "join"])
@pytest.mark.parametrize("error", [FileNotFoundError("no file"), EOFError("no end"), SystemExit("no more")], ids=repr)
def test_whatever_the_program_raises_is_not_taken_for_a_lost_leaf(where: str, error: BaseException) -> None:
    class Breaks(Windows):
        pass

    def breaks(*_: Any) -> None:
        raise error

    setattr(Breaks, where, breaks)

    with pytest.raises(RuntimeError, match=str(error)):
        run_gang(plan_of(Breaks()), {"values": [Value(1, 1), Value(2, 3)], "barriers": [Barrier(2)]}, 0, as_files=True)


Noted = Kind("Noted", time=float)


class Rooms(Windows):
    """Windows whose times are floats."""

    takes = (Kind("Value", time=float, n=int), Kind("Barrier", time=float))
    gives = (Noted,)
    depends = barrier(takes[1])
    whole, part = StateType(*takes), StateType(takes[0])
    branches = (Branch(whole, part, part), Branch(part, part, part))

    def update(self, total: int, event: Event, emit: Any) -> int:
        emit(Noted(event.time))
        return total


@pytest.mark.parametrize("as_files", [True, False])
def test_an_infinite_time_is_a_time_like_any_other(as_files: bool) -> None:
    some, last = Rooms.takes
    values, barriers = InputStream("values", some, lanes=2), InputStream("barriers", last)
    one, two = (Worker("part", [share]) for share in values.shares)
    plan = Plan(Rooms(), [values, barriers], Worker("whole", barriers.shares, one, two))
    streams = {"values": [some(-math.inf, 1), some(1.0, 2), some(math.inf, 3)], "barriers": [last(5.0)]}

    came, _, _ = run_gang(plan, streams, 0, as_files=as_files)

    assert outputs(came) == outputs(plan.program.run(streams))


def test_a_stranger_who_says_nothing_disturbs_nobody() -> None:
    made = Gang(plan_of(Windows()), pickle.dumps(0), {}, lambda: (print, list), host="127.0.0.1")
    silent = socket.create_connection(made.address)
    loud = socket.create_connection(made.address)
    loud.sendall(b"GET / HTTP/1.1\r\n\r\n" * 100)
    time.sleep(0.1)
    before = threading.active_count()

    made.close()

    silent.close()
    loud.close()
    until = time.monotonic() + 5
    while threading.active_count() > before - 3 and time.monotonic() < until:
        time.sleep(0.01)
    assert threading.active_count() <= before - 3  # the two that ran, and the greeting of the silent one


def test_what_an_update_raises_is_told_and_nothing_hangs() -> None:
    class Breaks(Windows):
        def update(self, total, event, emit):
            if event.kind is Value and event.n == 3:
                raise ValueError("three is too many")
            return super().update(total, event, emit)

    streams = {"values": [Value(1, 1), Value(2, 3), Value(3, 1)], "barriers": [Barrier(2)]}

    with pytest.raises(RuntimeError, match="three is too many"):
        run_gang(plan_of(Breaks()), streams, 0, as_files=True)
