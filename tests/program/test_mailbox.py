"""Mailboxes: what waits for what, what need not wait, and bounds for whole batches."""

from __future__ import annotations

from typing import Any

import pytest

from streamtight.program.fork_join import BEGINNING, END, ForkJoin, Key
from streamtight.program.mailbox import Mailbox, Sent, release_bounds, stalled
from streamtight.program.plan import InputStream, Plan, Share, Worker
from streamtight.program.tags import tags
from streamtight.stream.dependence import barrier, ordered, same
from streamtight.stream.event import Event, Kind

Value, Rule = Kind("Value", time=int, n=int), Kind("Rule", time=int)
Add, Read = Kind("Add", time=int, key=int), Kind("Read", time=int, key=int)


class Rules(ForkJoin):
    takes, depends = (Value, Rule), barrier(Rule)

    def fork(self, state, left, right):
        return state, state

    def join(self, left, right):
        return left


class Counters(Rules):
    takes, depends = (Add, Read), barrier(Read) & same("key")


class Line(Rules):
    depends = ordered


class Fed:
    """A mailbox, and what its streams have brought so far."""

    def __init__(self, plan: Plan, worker: Worker | None = None) -> None:
        self.plan, self.box = plan, Mailbox(plan, worker or plan.root)
        self._count = 0

    def put(self, share: Share, event: Event) -> list[Event]:
        """An event comes; what may go then."""
        key = self.plan.program.key(event, self.plan.stream_place(share.stream))
        self._count += 1
        self.box.put(Sent(share, key, self._count, event))
        return self.gone()

    def heartbeat(self, stream: str, time: Any) -> list[Event]:
        """A heartbeat comes; what may go then."""
        self.box.advance(stream, (time, len(self.plan.program.takes), self.plan.stream_place(stream)))
        return self.gone()

    def end(self, stream: str) -> list[Event]:
        """A stream ends; what may go then."""
        self.box.advance(stream, END)
        return self.gone()

    def gone(self) -> list[Event]:
        """All that may go, handed over."""
        found = []
        while self.box.ready:
            found.append(self.box.release(next(iter(self.box.ready))).event)
        return found


def one_worker(program: ForkJoin, *streams: InputStream) -> Plan:
    return Plan(program, streams, Worker("state", [share for stream in streams for share in stream.shares]))


values, rules = InputStream("values", Value), InputStream("rules", Rule)
(of_values,), (of_rules,) = values.shares, rules.shares


# -- what waits ------------------------------------------------------------------------------------------------------


def test_an_event_waits_until_a_stream_with_dependent_events_has_passed_it() -> None:
    fed = Fed(one_worker(Rules(), values, rules))

    assert fed.put(of_values, Value(5, 1)) == []
    assert fed.heartbeat("rules", 4) == []
    assert fed.heartbeat("rules", 5) == [Value(5, 1)]


def test_an_event_of_the_other_stream_is_a_promise_too() -> None:
    fed = Fed(one_worker(Rules(), values, rules))
    fed.put(of_values, Value(5, 1))

    assert fed.put(of_rules, Rule(6)) == [Value(5, 1)]
    assert fed.put(of_values, Value(6, 2)) == [Value(6, 2)], "another value of time 6 may come before the rule"
    assert fed.put(of_values, Value(7, 2)) == [Rule(6)]


def test_at_equal_times_the_kind_that_is_first_in_takes_goes_first() -> None:
    fed = Fed(one_worker(Rules(), rules, values))
    fed.put(of_rules, Rule(5))

    assert fed.put(of_values, Value(5, 1)) == [Value(5, 1)]
    assert fed.put(of_values, Value(5, 2)) == [Value(5, 2)]
    assert fed.heartbeat("values", 5) == [Rule(5)]


def test_at_equal_times_and_kinds_the_stream_that_is_first_in_the_plan_goes_first() -> None:
    one, other = InputStream("one", Rule), InputStream("other", Rule)
    fed = Fed(one_worker(Rules(), one, other))

    assert fed.put(other.shares[0], Rule(5)) == []
    assert fed.put(one.shares[0], Rule(5)) == [Rule(5)], "on the first stream, what is equal goes before the second"
    assert fed.put(one.shares[0], Rule(5)) == [Rule(5)], "and so does another one"
    assert fed.heartbeat("one", 5) == [Rule(5)]


def test_a_kind_whose_turn_is_over_is_not_waited_for() -> None:
    both, late = InputStream("both", [Value, Rule]), InputStream("late", Rule)

    class Apart(Rules):
        depends = barrier(Rule) & barrier(Value)  # rules among themselves are not dependent

    fed = Fed(one_worker(Apart(), both, late))
    of_both = {share.tags.kind: share for share in both.shares}
    fed.put(late.shares[0], Rule(5))

    assert fed.put(of_both[Value], Value(5, 1)) == [Value(5, 1)]
    assert fed.put(of_both[Rule], Rule(5)) == [Rule(5), Rule(5)], "no value of time 5 can follow a rule of time 5"


def test_independent_events_are_not_held_up() -> None:
    adds, reads = (
        InputStream(name, {tags(kind, key=k): 1 for k in (1, 2)}) for name, kind in (("a", Add), ("r", Read))
    )
    fed = Fed(one_worker(Counters(), adds, reads))
    add_1, add_2 = adds.shares
    read_1, read_2 = reads.shares

    assert fed.put(read_1, Read(3, 1)) == [], "it waits for adds of key 1"
    assert fed.put(add_2, Add(2, 2)) == [Add(2, 2)]
    assert fed.put(add_1, Add(4, 1)) == [Read(3, 1)]
    assert fed.put(read_2, Read(4, 2)) == [Add(4, 1)]


def test_events_of_one_share_keep_their_order_whatever_their_times() -> None:
    fed = Fed(one_worker(Line(), values))

    assert [fed.put(of_values, Value(1, n)) for n in (3, 1, 2)] == [[Value(1, 3)], [Value(1, 1)], [Value(1, 2)]]


def test_events_of_one_stream_that_are_equal_in_time_and_kind_keep_its_order_over_shares() -> None:
    adds = InputStream("a", {tags(Add, key=1): 1, tags(Add, key=2): 1})
    late = InputStream("late", tags(Add, key=3))

    class All(Counters):
        depends = ordered
        tag = ("key",)

    one, two = adds.shares
    shares = {1: one, 2: two}
    for keys in ([2, 2, 1, 2, 1, 1], [1, 1, 2, 1, 2, 2]):
        fed = Fed(one_worker(All(), late, adds))
        for key in keys:
            assert fed.put(shares[key], Add(1, key)) == []

        assert [event.key for event in fed.end("late")] == keys


def test_the_end_of_a_stream_is_a_promise_for_ever() -> None:
    fed = Fed(one_worker(Rules(), values, rules))
    fed.put(of_values, Value(10**30, 1))

    assert fed.end("rules") == [Value(10**30, 1)]


def test_a_mailbox_hears_of_its_worker_and_of_those_above_only() -> None:
    adds, reads = (
        InputStream(name, {tags(kind, key=k): 1 for k in (1, 2)}) for name, kind in (("a", Add), ("r", Read))
    )
    left, right = (Worker("state", [share]) for share in adds.shares)
    plan = Plan(Counters(), [adds, reads], Worker("state", reads.shares, left, right))

    at_root, at_left = Fed(plan), Fed(plan, left)

    assert list(at_root.box.streams) == ["r"]
    assert at_root.put(reads.shares[0], Read(3, 1)) == [Read(3, 1)], "the adds are none of its business"
    assert at_left.put(reads.shares[0], Read(3, 1)) == []
    assert at_left.put(reads.shares[1], Read(3, 2)) == [Read(3, 2)], "adds of key 2 are not handled here"
    assert at_left.put(adds.shares[0], Add(4, 1)) == [Read(3, 1)]


def test_a_first_event_is_looked_at_once_while_thousands_queue_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0
    look = Mailbox._rival_of

    def counted(self: Mailbox, share: Share) -> Share | None:
        nonlocal looked
        looked += 1
        return look(self, share)

    monkeypatch.setattr(Mailbox, "_rival_of", counted)
    fed = Fed(one_worker(Rules(), values, rules))
    for time in range(5000):
        fed.put(of_values, Value(time, 0))

    assert looked == 1
    assert len(fed.end("rules")) == 5000
    assert looked <= 5002


# -- waiting ---------------------------------------------------------------------------------------------------------


def test_waiting_tells_which_stream_is_waited_for_and_how_far_it_is() -> None:
    fed = Fed(one_worker(Rules(), values, rules))
    fed.heartbeat("rules", 400)
    for time in (400, 401, 402):
        fed.put(of_values, Value(time, 0))

    (waits,) = fed.box.waiting()

    assert [sent.event.time for sent in waits.events] == [401, 402]
    assert (waits.stream, waits.promise[0]) == ("rules", 400)
    assert str(stalled([waits])) == (
        "stream 'rules': needed streams that advance together, each by events or by heartbeats; "
        "came nothing beyond time 400, and 2 events of 'values' wait for it. "
        "Try: heartbeats on 'rules' where it has no events: Heartbeat(time)"
    )


def test_what_is_behind_a_waiting_event_waits_for_the_same_stream() -> None:
    third = InputStream("third", Value)
    fed = Fed(one_worker(Rules(), values, rules, third))
    fed.put(of_rules, Rule(3))
    fed.put(of_values, Value(4, 0))
    fed.heartbeat("rules", 9)

    assert {(waits.events[0].event, waits.stream) for waits in fed.box.waiting()} == {
        (Rule(3), "third"),
        (Value(4, 0), "third"),
    }
    assert "came nothing at all, and 1 event of 'rules' and 1 event of 'values' wait" in str(stalled(fed.box.waiting()))


def test_nothing_waits_in_an_empty_mailbox() -> None:
    fed = Fed(one_worker(Rules(), values, rules))

    assert (fed.box.waiting(), len(fed.box), list(fed.box.ready)) == ([], 0, [])


# -- bounds ----------------------------------------------------------------------------------------------------------


def value(time: Any) -> Key:
    return (time, 0, 0)


def rule(time: Any) -> Key:
    return (time, 1, 1)


BEFORE_ALL = BEGINNING[0]


@pytest.mark.parametrize(
    ("frontiers", "keys", "bounds"),
    [
        pytest.param((BEGINNING, BEGINNING), [], (rule(BEFORE_ALL), value(BEFORE_ALL)), id="nothing has come"),
        pytest.param((END, END), [rule(5), rule(9)], (END, END), id="all has come"),
        pytest.param((value(10), (20, 2, 1)), [rule(5), rule(15)], (rule(15), value(10)), id="up to the next rule"),
        pytest.param((value(10), rule(8)), [rule(8)], (rule(8), (8, 2, 1)), id="the last rule goes, too"),
        pytest.param((value(10), rule(10)), [rule(10)], (rule(10), value(10)), id="more values of time 10 may come"),
        pytest.param(((10, 2, 0), rule(10)), [rule(10)], (rule(10), (10, 2, 0)), id="none comes after a heartbeat"),
        pytest.param((END, (20, 2, 1)), [], ((20, 2, 1), (20, 2, 1)), id="no rule is there"),
        pytest.param((value(10), END), [rule(5), rule(12)], (rule(12), value(10)), id="no more rules come"),
    ],
)
def test_bounds_of_values_and_rules(frontiers: tuple[Key, Key], keys: list[Key], bounds: tuple[Key, Key]) -> None:
    plan = one_worker(Rules(), values, rules)

    found = release_bounds(plan, dict(zip(("values", "rules"), frontiers, strict=True)), {of_rules: keys})

    assert (found[of_values], found[of_rules]) == bounds


def test_shares_that_nothing_depends_on_have_no_bound() -> None:
    plan = one_worker(Rules(), values)

    assert release_bounds(plan, {"values": value(3)}, {}) == {of_values: END}


def test_a_rule_that_must_wait_holds_up_the_values_after_it_and_no_others() -> None:
    slow = InputStream("slow", Value)
    plan = one_worker(Rules(), values, rules, slow)
    frontiers = {"values": value(90), "rules": (99, 2, 1), "slow": (50, 0, 2)}

    bounds = release_bounds(plan, frontiers, {of_rules: [rule(time) for time in range(0, 99, 7)]})

    assert (bounds[of_rules], bounds[of_values], bounds[slow.shares[0]]) == ((50, 0, 2), rule(56), rule(56))


def test_bounds_look_at_few_of_many_keys() -> None:
    class Keys(list[Key]):
        looked = 0

        def __getitem__(self, place: Any) -> Any:
            Keys.looked += 1
            return super().__getitem__(place)

    keys = Keys(rule(time) for time in range(100_000))

    bounds = release_bounds(
        one_worker(Rules(), values, rules), {"values": value(77_000), "rules": END}, {of_rules: keys}
    )

    assert bounds[of_values] == rule(77_000)
    assert Keys.looked < 100
