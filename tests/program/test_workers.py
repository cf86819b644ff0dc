"""Plans at work: what runs give, what they refuse, and where they stop."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from datetime import datetime
from typing import Any

import pytest

from streamtight.errors import InputError, PlanError
from streamtight.program.fork_join import Branch, ForkJoin, Heartbeat, StateType
from streamtight.program.plan import InputStream, Plan, Worker
from streamtight.program.tags import tags
from streamtight.program.workers import run_plan
from streamtight.stream.dependence import barrier, between, same, unordered
from streamtight.stream.event import Event, Kind

Value, Barrier = Kind("Value", time=int, value=int), Kind("Barrier", time=int)
Total = Kind("Total", time=int, total=int)
Item = Kind("Item", time=int, key=int)


class Windows(ForkJoin):
    takes, gives = (Value, Barrier), (Total,)
    depends = barrier(Barrier)
    whole, part = StateType(Value, Barrier), StateType(Value)
    branches = (Branch(whole, part, part), Branch(part, part, part))

    def init(self):
        return 0

    def update(self, total, event, emit):
        if event.kind is Value:
            return total + event.value
        emit(Total(event.time, total))
        return 0

    def fork(self, total, left, right):
        return total, 0

    def join(self, left, right):
        return left + right


barriers = InputStream("barriers", Barrier)


def tree(leaves: int, program: ForkJoin | None = None) -> Plan:
    """Barriers at the root, values at so many leaves, as a chain."""
    values = InputStream("values", Value, lanes=leaves)
    *others, last = [Worker("part", [share]) for share in values.shares]
    while len(others) > 1:
        last = Worker("part", [], others.pop(), last)
    return Plan(program or Windows(), [values, barriers], Worker("whole", barriers.shares, others[0], last))


def alone(program: ForkJoin | None = None) -> Plan:
    """All with one worker."""
    values = InputStream("values", Value)
    return Plan(program or Windows(), [values, barriers], Worker("whole", (*values.shares, *barriers.shares)))


SOME: dict[str, list[Any]] = {
    "values": [Value(time, time) for time in range(1, 8)],
    "barriers": [Barrier(2), Heartbeat(3), Barrier(5)],
}
SOME_TOTALS = [Total(2, 3), Total(5, 12)]

plans = pytest.mark.parametrize(
    "plan", [alone(), tree(2), tree(3), tree(5)], ids=["one worker", "2 leaves", "3 leaves", "5 leaves"]
)


# -- what runs give ----------------------------------------------------------------------------------------------------


@plans
@pytest.mark.parametrize("seed", [None, 0, 1, 2])
def test_any_number_of_workers_gives_what_the_sequential_program_gives(plan: Plan, seed: int | None) -> None:
    ran = run_plan(plan, SOME, seed=seed)

    assert (ran.outputs, ran.state) == (SOME_TOTALS, 13)


@plans
def test_streams_may_be_empty(plan: Plan) -> None:
    ran = run_plan(plan, {"values": [], "barriers": []})

    assert (ran.outputs, ran.state, ran.joins) == ([], 0, 0)


def test_a_run_goes_on_from_a_given_state() -> None:
    ran = run_plan(tree(3), SOME, state=100)

    assert (ran.outputs, ran.state) == ([Total(2, 103), Total(5, 12)], 13)


def test_each_event_above_the_leaves_costs_one_join_for_each_fork_below() -> None:
    assert run_plan(alone(), SOME).joins == 0
    assert run_plan(tree(2), SOME).joins == 2 * 1
    assert run_plan(tree(5), SOME).joins == 2 * 4


def test_workers_without_a_common_event_send_each_other_nothing_but_their_first_states() -> None:
    assert run_plan(alone(), SOME).messages == 0
    assert run_plan(tree(2), {"values": SOME["values"], "barriers": [Heartbeat(9)]}).messages == 2


def test_lanes_take_turns_if_there_is_no_seed() -> None:
    class Parts(Windows):
        def init(self):
            return ()

        def update(self, seen, event, emit):
            return (*seen, event.value)

        def fork(self, seen, left, right):
            return seen, ()

        def join(self, left, right):
            return (left, right)

    assert run_plan(tree(2, Parts()), {"values": SOME["values"], "barriers": []}).state == ((1, 3, 5, 7), (2, 4, 6))


def test_events_of_equal_time_and_kind_go_by_the_order_of_the_streams_in_the_plan() -> None:
    seen = Kind("Seen", time=int, n=int)

    class Log(ForkJoin):
        takes, gives, depends = (seen,), (seen,), barrier(seen)

        def init(self):
            return None

        def update(self, state, event, emit):
            emit(event)

    one, other = InputStream("one", seen), InputStream("other", seen)
    plan = Plan(Log(), [one, other], Worker("state", (*one.shares, *other.shares)))

    for seed in range(20):
        ran = run_plan(plan, {"other": [seen(1, 3), seen(1, 4)], "one": [seen(1, 1), seen(1, 2)]}, seed=seed)
        assert [event.n for event in ran.outputs] == [1, 2, 3, 4]


class Echo(Windows):
    def update(self, total, event, emit):
        emit(Total(event.time, 0))
        return total


def test_independent_outputs_come_in_different_orders() -> None:
    orders = {tuple(run_plan(tree(3, Echo()), SOME, seed=seed).outputs) for seed in range(20)}

    assert len(orders) > 3
    assert len({frozenset(Counter(order).items()) for order in orders}) == 1


def test_times_may_be_datetimes() -> None:
    at = Kind("At", time=datetime)
    mark = Kind("Mark", time=datetime)

    class Counts(ForkJoin):
        takes, gives, depends = (at, mark), (Total,), barrier(mark)

        def init(self):
            return 0

        def update(self, count, event, emit):
            if event.kind is mark:
                emit(Total(event.time.day, count))
            return count + 1

    ats, marks = InputStream("ats", at), InputStream("marks", mark)
    plan = Plan(Counts(), [ats, marks], Worker("state", (*ats.shares, *marks.shares)))
    may = [datetime(2024, 5, day) for day in range(1, 5)]

    for seed in range(10):
        ran = run_plan(plan, {"ats": [*map(at, may), Heartbeat(may[3])], "marks": [mark(may[1])]}, seed=seed)
        assert ran.outputs == [Total(2, 2)]


def test_a_type_of_states_is_updated_by_its_own_function() -> None:
    class Twice(Windows):
        whole = StateType(Value, Barrier)
        part = StateType(Value, update=lambda total, event, emit: total + 2 * event.value)
        branches = (Branch(whole, part, part),)

    assert run_plan(tree(2, Twice()), SOME).outputs == [Total(2, 6), Total(5, 24)]


def test_a_fork_is_told_which_tags_will_come_on_each_side() -> None:
    told = []

    class Asking(ForkJoin):
        takes, depends = (Item,), same("key")

        def init(self):
            return 0

        def update(self, state, event, emit):
            return state + 1

        def fork(self, state, left, right):
            told.append((repr(left), repr(right)))
            return state, 0

        def join(self, left, right):
            return left + right

    items = InputStream("items", {tags(Item, key=key): 1 for key in (1, 2, 3)})
    one, two, three = (Worker("state", [share]) for share in items.shares)
    plan = Plan(Asking(), [items], Worker("state", [], one, Worker("state", [], two, three)))

    assert run_plan(plan, {"items": [Item(1, 1), Item(1, 3)]}).state == 2
    assert told == [("Item(key=1)", "Item(key=2), Item(key=3)"), ("Item(key=2)", "Item(key=3)")]


# -- workers do not get in each other's way ----------------------------------------------------------------------------


def test_no_two_workers_share_a_state() -> None:
    class Shared(Windows):
        """Its fork hands out one list twice, and its updates change it in place."""

        def init(self):
            return []

        def update(self, seen, event, emit):
            if event.kind is Value:
                seen.append(event.value)
            else:
                emit(Total(event.time, sum(seen)))
                seen.clear()
            return seen

        def fork(self, seen, left, right):
            return (seen, seen) if not seen else (seen, [])

        def join(self, left, right):
            left.extend(right)
            return left

    given: list[int] = []
    for seed in range(10):
        assert run_plan(tree(3, Shared()), SOME, seed=seed, state=given).outputs == SOME_TOTALS
    assert given == [], "the state that was given is not changed"


def test_independent_events_of_a_parent_do_not_block_each_other_when_a_child_orders_them() -> None:
    """The parent may see High before Low, which are independent; its child has a Mid between, dependent on both.

    If the parent stopped for High as soon as it is ready itself, it would wait for ever: the child must see Low first.
    """
    low, mid, high = Kind("Low", time=int), Kind("Mid", time=int), Kind("High", time=int)

    class Three(ForkJoin):
        takes, gives, depends = (low, mid, high), (Total,), between(mid, low) | between(mid, high)

        def init(self):
            return 0

        def update(self, state, event, emit):
            emit(Total(event.time, 0))
            return state + 1

        def fork(self, state, left, right):
            return state, 0

        def join(self, left, right):
            return left + right

    lows, mids, highs = (InputStream(kind.name, kind) for kind in (low, mid, high))
    leaves = [Worker("state", mids.shares), Worker("state")]
    plan = Plan(Three(), [lows, mids, highs], Worker("state", (*highs.shares, *lows.shares), *leaves))
    times = range(0, 30, 3)

    for seed in [None, *range(100)]:
        streams = {
            "High": [high(time + 2) for time in times],
            "Low": [low(time) for time in times],
            "Mid": [mid(time + 1) for time in times],
        }
        ran = run_plan(plan, streams, seed=seed)
        assert (ran.state, len(ran.outputs)) == (30, 30), f"seed {seed}"


def test_what_an_update_raises_is_raised() -> None:
    class Broken(Windows):
        def update(self, total, event, emit):
            raise ZeroDivisionError(event)

    with pytest.raises(ZeroDivisionError):
        run_plan(tree(2, Broken()), SOME)


def test_a_seed_means_the_same_in_every_process() -> None:
    line = "import test_workers as t; print(t.run_plan(t.tree(4, t.Echo()), t.SOME, seed=5).outputs)"
    path = __file__.rsplit("/", 1)[0]

    given = {
        subprocess.run(
            [sys.executable, "-c", line],
            capture_output=True,
            text=True,
            check=True,
            cwd=path,
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": ":".join(filter(None, sys.path))},
        ).stdout
        for hash_seed in ("1", "2")
    }

    assert given == {f"{run_plan(tree(4, Echo()), SOME, seed=5).outputs}\n"}


# -- what cannot be run ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("streams", "message"),
    [
        pytest.param(
            {"values": []},
            "streams for Windows: needed the streams of the plan: values, barriers; came values. "
            "Try: {'values': ..., 'barriers': ...}",
            id="one is missing",
        ),
        pytest.param(
            {"values": [], "barriers": [], "more": []},
            "needed the streams of the plan: values, barriers; came values, barriers, more",
            id="one too many",
        ),
        pytest.param([Value(1, 1)], "needed the streams of the plan: values, barriers; came list", id="no names"),
        pytest.param(
            {"values": [Value(2, 1), Value(1, 1)], "barriers": []},
            "stream 'values': needed events that increase in time",
            id="back in time",
        ),
        pytest.param(
            {"values": [Heartbeat(3), Value(3, 1)], "barriers": []},
            "came Value at time 3 after time 3",
            id="an event after its heartbeat",
        ),
        pytest.param(
            {"values": [Total(2, 1)], "barriers": []}, "came Total(time=2, total=1)", id="a kind of another program"
        ),
        pytest.param(
            {"values": [Barrier(1)], "barriers": []},
            "stream 'values': needed events of the tags that the plan was made for: Value; "
            "came Barrier(time=1), whose tag is Barrier.",
            id="an event on the wrong stream",
        ),
    ],
)
def test_streams_that_do_not_fit_the_plan_are_refused(streams: Any, message: str) -> None:
    with pytest.raises(InputError) as raised:
        run_plan(tree(2), streams)

    assert message in str(raised.value)


def test_an_event_that_nobody_handles_is_refused_with_its_tag() -> None:
    class ByKey(ForkJoin):
        takes, depends = (Item,), same("key")

        def init(self):
            return 0

        def update(self, state, event, emit):
            return state

    items = InputStream("items", tags(Item, key={1, 2}))

    with pytest.raises(InputError) as raised:
        run_plan(Plan(ByKey(), [items], Worker("state", items.shares)), {"items": [Item(1, 1), Item(2, 3)]})

    assert str(raised.value) == (
        "stream 'items': needed events of the tags that the plan was made for: Item(key=1|2); "
        "came Item(time=2, key=3), whose tag is Item(key=3). "
        "Try: InputStream('items', ...) with this tag, and a plan for it"
    )


def test_a_state_that_cannot_be_sent_is_refused() -> None:
    class Functions(Windows):
        def init(self):
            return lambda: 0

    with pytest.raises(PlanError, match=r"needed states that can be sent to other workers \(pickled\); came function"):
        run_plan(tree(2, Functions()), SOME)


# -- streams that do not advance ---------------------------------------------------------------------------------------


@plans
@pytest.mark.parametrize("seed", [None, 1])
def test_a_stream_that_may_go_on_but_does_not_advance_stops_the_run(plan: Plan, seed: int | None) -> None:
    streams = {"values": [*(Value(time, 1) for time in range(400, 420)), Heartbeat(500)], "barriers": [Barrier(404)]}

    with pytest.raises(InputError) as raised:
        run_plan(plan, streams, seed=seed, ended=False)

    # Another barrier may come at time 404, but no value of that time can be behind it.
    assert str(raised.value) == (
        "stream 'barriers': needed streams that advance together, each by events or by heartbeats; "
        "came nothing beyond time 404, and 15 events of 'values' wait for it. "
        "Try: heartbeats on 'barriers' where it has no events: Heartbeat(time)"
    )


@plans
def test_a_stream_that_never_began_is_named(plan: Plan) -> None:
    with pytest.raises(InputError, match=r"'values': .* came nothing at all, and 1 event of 'barriers' waits"):
        run_plan(plan, {"values": [], "barriers": [Barrier(1), Heartbeat(3)]}, ended=False)


@plans
def test_with_enough_heartbeats_nothing_waits(plan: Plan) -> None:
    streams: dict[str, list[Event | Heartbeat]] = {
        "values": [*SOME["values"], Heartbeat(7)],
        "barriers": [*SOME["barriers"], Heartbeat(7)],
    }

    assert run_plan(plan, streams, ended=False).outputs == SOME_TOTALS


@pytest.mark.parametrize("leaves", [2, 3, 5])
def test_an_event_on_one_lane_is_a_promise_for_all_lanes(leaves: int) -> None:
    streams = {"values": [Value(1, 1), Value(4, 1)], "barriers": [Barrier(3), Heartbeat(9)]}

    assert run_plan(tree(leaves), streams, ended=False).outputs == [Total(3, 1)]


def test_independent_streams_need_no_heartbeats() -> None:
    class Free(Windows):
        depends = unordered

    assert Counter(run_plan(alone(Free()), SOME, ended=False).outputs).total() == 2
