"""The optimizer: which plan it finds for which streams, and what it says if there is only one worker."""

from __future__ import annotations

import functools
import itertools
import math
import operator
import random
from collections.abc import Sequence
from typing import Any

import pytest

from streamtight.errors import PlanError
from streamtight.method.parallelize.optimize import plan
from streamtight.program.fork_join import Branch, ForkJoin, StateType
from streamtight.program.plan import InputStream, Plan, Share, Worker
from streamtight.program.tags import tags
from streamtight.stream.dependence import Dependence, barrier, between, depends, ordered, same
from streamtight.stream.event import Kind

Add, Read = Kind("Add", time=int, key=int), Kind("Read", time=int, key=int)
Value, Barrier = Kind("Value", time=int, value=int), Kind("Barrier", time=int)
Update, Get, View = (Kind(name, time=int, user=int) for name in ("Update", "Get", "View"))
Real, Named = Kind("Real", time=int, key=float), Kind("Named", time=int, key=str | None)
A, B, C, D = (Kind(name, time=int) for name in "ABCD")


class Forked(ForkJoin):
    def fork(self, state: Any, left: Any, right: Any) -> Any:
        return state, 0

    def join(self, left: Any, right: Any) -> Any:
        return left + right


class Counters(Forked):
    takes, depends = (Add, Read), barrier(Read) & same("key")


class Windows(Forked):
    takes, depends = (Value, Barrier), barrier(Barrier)
    whole, part = StateType(Value, Barrier), StateType(Value)
    branches = (Branch(whole, part, part), Branch(part, part, part))


class PageViews(Forked):
    """Views of a user need its address, which is in the state of all who see views."""

    takes, depends = (Update, View), barrier(Update) & same("user")


class Chain(Forked):
    """A - B - C - D: each depends on its neighbours and on itself."""

    takes = (A, B, C, D)
    depends = between(A, B) | between(B, C) | between(C, D) | depends(lambda a, b: a.kind is b.kind)


class Split(Forked):
    """Only A and B can be told apart, and A is always on the left."""

    takes, depends = (A, B, C), barrier(C)
    whole, of_a, of_b = StateType(A, B, C), StateType(A), StateType(B)
    branches = (Branch(whole, of_a, of_b),)


def stream(name: str, given: Any, rate: float = 1.0, place: str | None = None, lanes: int = 1) -> InputStream:
    return InputStream(name, given, rate=rate, place=place, lanes=lanes)


EXAMPLE = (
    stream("r2", tags(Read, key=2), 10, "E0"),
    stream("r1", tags(Read, key=1), 15, "E1"),
    stream("i1", tags(Add, key=1), 100, "E1"),
    stream("i2a", tags(Add, key=2), 200, "E2"),
    stream("i2b", tags(Add, key=2), 300, "E3"),
)
MISSED = (
    stream("r2", tags(Read, key=2), 250),
    stream("i2a", tags(Add, key=2), 200),
    stream("i2b", tags(Add, key=2), 300),
)


def windows_of(count: int, *, barriers: float = 1) -> list[InputStream]:
    return [stream("barriers", Barrier, barriers), *(stream(f"v{number}", Value, 100) for number in range(count))]


def shape(worker: Worker) -> Any:
    """A tree as nested tuples: the shares of a worker, and its children as a set, since sides are all one."""
    own = " ".join(map(str, worker.shares))
    return (own, frozenset(map(shape, worker.children))) if worker.children else own


# -- greedy ----------------------------------------------------------------------------------------------------------


def test_example_4_7_gives_the_plan_of_figure_18() -> None:
    found = plan(Counters(), EXAMPLE, optimizer="greedy")

    assert shape(found.root) == ("", frozenset({"r1 i1", ("r2", frozenset({"i2a", "i2b"}))}))


def test_example_4_7_is_placed_as_in_figure_19() -> None:
    found = plan(Counters(), EXAMPLE, optimizer="greedy")

    places = {" ".join(map(str, worker.shares)): worker.place for worker in found.workers}
    assert places == {"": "E0", "r1 i1": "E1", "r2": "E0", "i2a": "E2", "i2b": "E3"}


@pytest.mark.parametrize(
    ("program", "streams", "expected"),
    [
        (Counters(), [stream("i", Add)], "i"),
        (Counters(), [stream("i", Add), stream("r", Read)], "i r"),
        (Counters(), [stream("a", Add), stream("b", Add)], ("", frozenset("ab"))),
        (Counters(), [stream("r", Read), stream("a", Add, 2), stream("b", Add, 3)], ("r", frozenset("ab"))),
        (Counters(), MISSED, "r2 i2a i2b"),
        (Counters(), [stream("r", Read, 1), stream("a", Add, lanes=2, rate=9)], ("r", frozenset(["a 1/2", "a 2/2"]))),
        (Windows(), windows_of(2), ("barriers", frozenset(["v0", "v1"]))),
        (Windows(), windows_of(3), ("barriers", frozenset(["v0", ("", frozenset(["v1", "v2"]))]))),
        (
            Chain(),
            [stream(k.name, k, r) for k, r in zip(Chain.takes, (4, 1, 2, 3), strict=True)],
            ("B", frozenset(["A", "C D"])),
        ),
        (Split(), [stream("b", B), stream("a", A), stream("c", C, 0.1)], ("c", frozenset("ab"))),
        (
            Split(),
            [stream("a1", A), stream("b", B), stream("a2", A), stream("c", C, 0.1)],
            ("c", frozenset(["a1 a2", "b"])),
        ),
    ],
    ids=[
        "one stream",
        "two that depend",
        "two that do not",
        "reads above adds",
        "the frequent one in the middle",
        "lanes",
        "two windows",
        "three windows are a chain",
        "a chain from its rare middle",
        "types say which side",
        "types have room for two only",
    ],
)
def test_greedy_removes_the_rarest_until_the_rest_falls_apart(
    program: ForkJoin, streams: Sequence[InputStream], expected: Any
) -> None:
    assert shape(plan(program, streams, optimizer="greedy").root) == expected


def test_greedy_says_that_other_orders_may_help() -> None:
    assert plan(Counters(), MISSED, optimizer="greedy").remarks == (
        'one worker: greed found no way to take the streams apart; optimizer="best" tries more',
    )


@pytest.mark.parametrize("count", [2, 8, 33])
def test_greedy_makes_chains(count: int) -> None:
    assert plan(Windows(), windows_of(count), optimizer="greedy").cost.depth == count - 1


def test_greedy_puts_the_rarest_leaves_together_if_there_are_too_many() -> None:
    streams = [stream("barriers", Barrier, 1), *(stream(f"v{rate}", Value, rate) for rate in (1, 2, 4, 8))]

    found = plan(Windows(), streams, optimizer="greedy", workers=2)

    assert sorted(leaf.rate for leaf in found.leaves) == [7, 8]


# -- best ------------------------------------------------------------------------------------------------------------


def test_a_frequent_tag_that_connects_the_others_goes_above_them() -> None:
    assert shape(plan(Counters(), MISSED).root) == ("r2", frozenset({"i2a", "i2b"}))


def test_no_event_of_a_leaf_of_greed_is_handled_above_leaves_unless_a_number_of_workers_is_asked_for() -> None:
    streams = [*MISSED, stream("other", tags(Add, key=1), 1)]

    assert plan(Counters(), streams, optimizer="greedy").share_at_leaves == 1
    assert plan(Counters(), streams).share_at_leaves == 1
    assert plan(Counters(), streams, workers=3).cost.busiest <= 550


@pytest.mark.parametrize(("count", "depth"), [(2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (16, 4), (33, 6)])
def test_equal_leaves_make_a_balanced_tree(count: int, depth: int) -> None:
    found = plan(Windows(), windows_of(count))

    assert (len(found.leaves), found.cost.depth) == (count, depth)


def test_a_chain_is_cut_where_it_costs_least() -> None:
    rates = {"A": 10.0, "B": 5.0, "C": 6.0, "D": 10.0}
    streams = [stream(kind.name, kind, rates[kind.name]) for kind in Chain.takes]

    assert shape(plan(Chain(), streams).root) == ("B", frozenset({"A", "C D"}))


def test_what_connects_nothing_is_not_kept_above() -> None:
    """Greedy removes the rare a first, and then r; a can be with the leaves."""
    streams = [stream("a", tags(Add, key=1), 1), stream("r", Read, 2), stream("b", Add, 9), stream("c", Add, 9)]

    assert shape(plan(Counters(), streams, optimizer="greedy").root) == ("a r", frozenset("bc"))
    found = plan(Counters(), streams)
    assert [str(share) for share in found.root.shares] == ["r"]
    assert len(found.leaves) == 3


def least_busy(depends: frozenset[frozenset[str]], rates: dict[str, float]) -> float:
    """The least busy way that a plan can have, by trying all sets of streams for each worker."""

    def parts(names: frozenset[str]) -> list[frozenset[str]]:
        found: list[frozenset[str]] = []
        while names:
            part = frozenset([min(names)])
            while more := {name for name in names - part if any(frozenset([name, each]) in depends for each in part)}:
                part |= more
            found.append(part)
            names -= part
        return found

    @functools.cache
    def least(names: frozenset[str]) -> float:
        apart = parts(names)
        if len(apart) > 1:
            return max(map(least, apart))
        own_ones = (frozenset(own) for size in range(1, len(names)) for own in itertools.combinations(names, size))
        ways = ((own, parts(names - own)) for own in own_ones)
        found = (sum(rates[each] for each in own) + max(map(least, rest)) for own, rest in ways if len(rest) > 1)
        return min(found, default=sum(rates[each] for each in names)) if len(names) > 1 else rates[min(names)]

    return least(frozenset(rates))


def test_the_busiest_way_is_the_least_busy_one_for_almost_all_small_dependences() -> None:
    seed, trials = 7, 150
    print("seed", seed)
    rng = random.Random(seed)
    ratios = []
    for _ in range(trials):
        letters = [Kind(f"K{number}", time=int) for number in range(rng.randint(3, 7))]
        pairs = [pair for pair in itertools.combinations(letters, 2) if rng.random() < 0.5]
        upto = ordered_alone(letters)
        for one, other in pairs:
            upto |= between(one, other)
        program = type("Drawn", (Forked,), {"takes": tuple(letters), "depends": upto})()
        rates = {kind.name: float(rng.choice([1, 2, 5, 10, 50, 100])) for kind in letters}
        found = plan(program, [stream(kind.name, kind, rates[kind.name]) for kind in letters], workers=9, seconds=60)
        least = least_busy(frozenset(frozenset([one.name, other.name]) for one, other in pairs), rates)
        ratios.append(found.cost.busiest / least)

    assert min(ratios) > 1 - 1e-9
    assert max(ratios) < 1.1
    assert sum(ratio > 1 + 1e-9 for ratio in ratios) <= 0.03 * trials


def ordered_alone(letters: Sequence[Kind]) -> Dependence:
    """Events of one kind keep their order, so that no stream is cut."""
    return functools.reduce(operator.or_, (between(kind, kind) for kind in letters))


def test_placement_needs_the_fewest_messages() -> None:
    found = plan(Counters(), EXAMPLE)

    assert shape(found.root) == shape(plan(Counters(), EXAMPLE, optimizer="greedy").root)
    assert found.cost.far == 40  # with the reads of key 2 at E2: 10 of them travel, and 30 messages to E3
    assert plan(Counters(), EXAMPLE, optimizer="greedy").cost.far == 60


def test_leaves_of_one_place_are_below_one_worker() -> None:
    streams = [stream("b", Barrier, 1, "E1")]
    streams += [stream(f"v{number}", Value, 100, f"E{number % 2}") for number in range(4)]

    found = plan(Windows(), streams)

    assert found.cost.far == 3  # one edge of the tree is between E0 and E1


def test_a_place_gets_no_more_leaves_than_it_has_room_for() -> None:
    streams = [stream("b", Barrier, 1, "E0"), *(stream(f"v{number}", Value, 100, "E0") for number in range(5))]

    found = plan(Windows(), streams, places={"E0": 2, "E1": 1, "E2": None})

    leaves = [leaf.place for leaf in found.leaves]
    assert len(leaves) == 5
    assert leaves.count("E0") == 2
    assert leaves.count("E1") <= 1


def test_there_are_no_more_leaves_than_room() -> None:
    found = plan(Windows(), windows_of(9), places={"here": 2, "there": 1})

    assert sorted(str(leaf.place) for leaf in found.leaves) == ["here", "here", "there"]


def test_a_sequential_plan_is_where_most_events_come() -> None:
    found = plan(Counters(), EXAMPLE, optimizer="sequential")

    assert (len(found.workers), found.root.place) == (1, "E3")


# -- cuts ------------------------------------------------------------------------------------------------------------


def test_keys_are_cut_into_buckets_that_do_not_wait_for_each_other() -> None:
    found = plan(Counters(), [stream("adds", Add, 90), stream("reads", Read, 10)], workers=4)

    assert found.show() == (
        "state: -\n"
        "├─ state: -\n"
        "│  ├─ state: adds Add(key=#0/4), reads Read(key=#0/4)\n"
        "│  └─ state: adds Add(key=#1/4), reads Read(key=#1/4)\n"
        "└─ state: -\n"
        "   ├─ state: adds Add(key=#2/4), reads Read(key=#2/4)\n"
        "   └─ state: adds Add(key=#3/4), reads Read(key=#3/4)"
    )
    assert (found.cost.messages, found.cost.busiest) == (0, 25)


def test_events_that_keep_no_order_are_cut_into_lanes() -> None:
    found = plan(Windows(), [stream("values", Value, 100), stream("barriers", Barrier, 1)], workers=3)

    assert found.show() == (
        "whole: barriers\n├─ part: values 1/3\n└─ part: -\n   ├─ part: values 2/3\n   └─ part: values 3/3"
    )


def test_with_too_few_keys_lanes_are_cut_too() -> None:
    users = [stream("views", tags(View, user=[1, 2]), 100), stream("updates", tags(Update, user=[1, 2]), 2)]

    found = plan(PageViews(), users, workers=4)

    assert shape(found.root) == (
        "",
        frozenset({("updates", frozenset({"views 1/2", "views 2/2"}))}),
    )
    assert found.show() == (
        "state: -\n"
        "├─ state: updates Update(user=1)\n"
        "│  ├─ state: views 1/2 View(user=1)\n"
        "│  └─ state: views 2/2 View(user=1)\n"
        "└─ state: updates Update(user=2)\n"
        "   ├─ state: views 1/2 View(user=2)\n"
        "   └─ state: views 2/2 View(user=2)"
    )


def test_what_no_type_takes_together_is_kept_apart() -> None:
    """The page views of the paper, with a type for each user, for gets and for views."""

    class TypedViews(Forked):
        takes, depends = (Update, Get, View), barrier(Update) & same("user")
        whole, of_1, of_2 = StateType(Update, Get, View), *(StateType(tags(Update, Get, View, user=u)) for u in (1, 2))
        gets, views = StateType(Get), StateType(View)
        branches = (
            Branch(whole, of_1, of_2),
            Branch(of_1, gets, views),
            Branch(of_2, gets, views),
            Branch(views, views, views),
        )

    users = {"user": [1, 2]}
    both = InputStream("s", {tags(Update, **users): 1, tags(Get, **users): 10, tags(View, **users): 1000})

    assert plan(TypedViews(), [both], workers=6).show() == (
        "whole: -\n"
        "├─ of_1: s Update(user=1)\n"
        "│  ├─ gets: s Get(user=1)\n"
        "│  └─ views: -\n"
        "│     ├─ views: s 1/2 View(user=1)\n"
        "│     └─ views: s 2/2 View(user=1)\n"
        "└─ of_2: s Update(user=2)\n"
        "   ├─ gets: s Get(user=2)\n"
        "   └─ views: -\n"
        "      ├─ views: s 1/2 View(user=2)\n"
        "      └─ views: s 2/2 View(user=2)"
    )


def test_many_listed_keys_are_put_together() -> None:
    keys = range(12)
    found = plan(
        Counters(), [stream("adds", tags(Add, key=keys), 90), stream("reads", tags(Read, key=keys))], workers=2
    )

    assert len(found.leaves) == 2
    assert found.cost.messages == 0
    assert all(len(leaf.shares) == 2 for leaf in found.leaves)


def test_shares_are_put_together_so_that_leaves_have_alike_rates() -> None:
    streams = [stream("b", Barrier, 1), *(stream(f"v{rate}", Value, rate) for rate in (50, 30, 20, 60, 40))]

    found = plan(Windows(), streams, workers=2, seconds=0)

    assert found.cost.busiest_leaf == 100


def test_a_big_component_gets_more_leaves_than_small_ones() -> None:
    streams = [
        *(stream(f"small{key}", [tags(Add, key=key), tags(Read, key=key)], 1) for key in (1, 2)),
        stream("big", tags(Add, key=3), 1000),
        stream("reset", tags(Read, key=3), 1),
    ]

    found = plan(Counters(), streams, workers=4)

    assert found.cost.busiest < 350


def test_ordered_events_are_not_cut() -> None:
    class InOrder(Forked):
        takes, depends = (Value,), ordered

    found = plan(InOrder(), [stream("values", Value)], workers=4)

    assert len(found.workers) == 1
    assert found.remarks == ("one worker: values is all there is",)


def test_lanes_that_a_stream_has_are_enough() -> None:
    found = plan(Windows(), [stream("values", Value, 100, lanes=8), stream("barriers", Barrier, 1)], workers=4)

    assert {share.lanes for leaf in found.leaves for share in leaf.shares} == {8}
    assert [len(leaf.shares) for leaf in found.leaves] == [2, 2, 2, 2]


@pytest.mark.parametrize("workers", [1, 2, 3, 5, 8, 17])
def test_there_are_as_many_leaves_as_workers_if_that_helps(workers: int) -> None:
    found = plan(Counters(), EXAMPLE, workers=workers)

    assert len(found.leaves) == workers


def test_the_same_seed_gives_the_same_plan() -> None:
    one, other = (plan(Counters(), EXAMPLE, workers=7, seed=5, seconds=60).show() for _ in range(2))

    assert one == other


# -- one worker ------------------------------------------------------------------------------------------------------


class NoFork(ForkJoin):
    takes, depends = (Value, Barrier), barrier(Barrier)


class NoRoom(Forked):
    """Forks, but no type has room for B alone."""

    takes, depends = (A, B, C), barrier(C)
    whole, of_a = StateType(A, B, C), StateType(A)
    branches = (Branch(whole, of_a, of_a),)


@pytest.mark.parametrize(
    ("program", "streams", "options", "remark"),
    [
        (Counters(), EXAMPLE, {"workers": 1}, "one worker: one was asked for"),
        (Counters(), EXAMPLE, {"optimizer": "sequential"}, "one worker: one was asked for"),
        (NoFork(), windows_of(3), {}, "one worker: NoFork has no fork and join"),
        (
            Counters(),
            [stream("rules", Read, 250), stream("adds", Add, 9)],
            {},
            "one worker: rules (rate 250) and adds (rate 9) depend on each other: Read and Add by barrier(Read) & "
            "same('key'); streams are cut if a number of workers is asked for",
        ),
        (
            Windows(),
            [stream("b1", Barrier, 2), stream("b2", Barrier, 3), stream("b3", Barrier, 4)],
            {"workers": 4},
            "one worker: b3 (rate 4) and b2 (rate 3) depend on each other, and so do every two others: "
            "Barrier and Barrier by barrier(Barrier)",
        ),
        (
            NoRoom(),
            [stream("a", A), stream("b", B)],
            {},
            "one worker: a, A, and b, B, are independent, but no branch of NoRoom has types that carry them apart",
        ),
        (
            Counters(),
            [stream("r", Read, 1e6), stream("a", Add, 1), stream("b", Add, 1)],
            {},
            "one worker: more would cost more than they save, since they would wait for each other too often",
        ),
    ],
    ids=["asked for", "sequential", "no fork", "two that depend", "all depend", "no types", "too often"],
)
def test_a_plan_with_one_worker_says_why(
    program: ForkJoin, streams: Sequence[InputStream], options: Any, remark: str
) -> None:
    found = plan(program, streams, **options)

    assert len(found.workers) == 1
    assert found.remarks == (remark,)


def test_there_is_nothing_to_say_about_a_parallel_plan() -> None:
    assert plan(Counters(), EXAMPLE).remarks == ()


def test_too_little_room_is_remarked() -> None:
    assert plan(Windows(), windows_of(5), places={"here": 3}, workers=4).remarks == (
        "3 leaves instead of 4: places have no room for more",
    )
    assert plan(Windows(), windows_of(5), places={"here": 1}).remarks == ("one worker: places have room for one only",)


def test_fewer_leaves_than_asked_for_are_remarked() -> None:
    found = plan(Counters(), [stream("r", tags(Read, key=[1, 2]))], workers=5)

    assert len(found.leaves) == 2
    assert found.remarks == ("2 leaves instead of 5: no better plan with more was found",)


# -- wrong questions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "plan(...): needed workers=, a number from 1; came 0. Try: workers=4"),
        ({"workers": True}, "plan(...): needed workers=, a number from 1; came True. Try: workers=4"),
        ({"workers": 2.0}, "plan(...): needed workers=, a number from 1; came 2.0. Try: workers=4"),
        (
            {"optimizer": "bets"},
            'plan(...): needed optimizer="best", "greedy" or "sequential"; came \'bets\'. Try: optimizer="best"',
        ),
        ({"seconds": -1}, "plan(...): needed seconds=, a number from 0; came -1. Try: seconds=1.0"),
        ({"seconds": math.nan}, "plan(...): needed seconds=, a number from 0; came nan. Try: seconds=1.0"),
        ({"places": {}}, 'plan(...): needed places=, names and room; came {}. Try: places={"east": 4}'),
        (
            {"places": {"E0": -1}},
            "plan(...): needed a place with its number of leaves; came 'E0': -1. Try: {\"east\": 4}",
        ),
        ({"places": {"E0": 0}}, "plan(...): needed room for a worker; came {'E0': 0}. Try: places={\"east\": 4}"),
    ],
    ids=["no worker", "a truth", "a float", "a typo", "negative time", "no time", "no place", "negative", "no room"],
)
def test_a_wrong_question_is_refused(options: Any, message: str) -> None:
    with pytest.raises(PlanError) as refused:
        plan(Counters(), EXAMPLE, **options)

    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("program", "streams", "message"),
    [
        (Counters(), [], "needed InputStreams"),
        (Windows(), EXAMPLE, "needed kinds of Windows: Value, Barrier; came Read on 'r2'"),
        (Counters, EXAMPLE, "needed a ForkJoin program; came <class"),
    ],
    ids=["no streams", "streams of another program", "a class"],
)
def test_a_plan_is_for_a_program_and_its_streams(program: Any, streams: Any, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        plan(program, streams)


# -- odd input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", ["best", "greedy", "sequential"])
def test_streams_without_events_have_a_plan(optimizer: Any) -> None:
    quiet = [stream("r", Read, 0), stream("a", Add, 0), stream("b", Add, 0)]

    assert isinstance(plan(Counters(), quiet, optimizer=optimizer), Plan)


def test_every_share_of_a_cut_plan_has_its_part_of_the_rate() -> None:
    found = plan(Counters(), EXAMPLE, workers=6)

    rates: dict[str, float] = {}
    for share in (share for worker in found.workers for share in worker.shares):
        assert isinstance(share, Share)
        rates[share.stream] = rates.get(share.stream, 0.0) + share.rate
    assert rates == pytest.approx({"r1": 15, "r2": 10, "i1": 100, "i2a": 200, "i2b": 300})


def test_hundreds_of_streams_have_a_plan() -> None:
    assert plan(Windows(), windows_of(300), seconds=0).cost.depth == 9
    assert len(plan(Windows(), windows_of(300), optimizer="greedy").leaves) == 300


class Reals(Forked):
    takes, depends = (Real, Read), same("key")


class Names(Forked):
    takes, depends = (Named,), same("key")


def test_keys_that_have_no_buckets_stay_together() -> None:
    streams = [stream("any", Real, 9), stream("some", tags(Real, key=[0.5, 1.5]), 9), stream("whole", Read, 9)]

    found = plan(Reals(), streams, workers=3)

    assert found.show() == (
        "state: any, some Real(key=0.5|1.5)\n"
        "├─ state: whole Read(key=#0/3)\n"
        "└─ state: -\n"
        "   ├─ state: whole Read(key=#1/3)\n"
        "   └─ state: whole Read(key=#2/3)"
    )


@pytest.mark.parametrize(
    "keys", [[""], ["", "a", "\ud800"], [f"k{number}" for number in range(50)]], ids=["1", "3", "50"]
)
def test_keys_may_be_any_texts(keys: list[str]) -> None:
    streams = [stream("some", tags(Named, key=[None, *keys]), 9)]

    assert len(plan(Names(), streams, workers=4).leaves) == min(4, len(keys) + 1)
