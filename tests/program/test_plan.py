"""Plans: which trees of workers are right for a program, why others are not, and how they are shown."""

from __future__ import annotations

import pickle
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from typing import Any

import pytest

from streamtight.errors import PlanError
from streamtight.program.fork_join import Branch, ForkJoin, StateType
from streamtight.program.plan import InputStream, Plan, Share, Worker, cost_of
from streamtight.program.tags import Bucket, tags
from streamtight.stream.dependence import barrier, same
from streamtight.stream.event import Kind

Add, Read = Kind("Add", time=int, key=int), Kind("Read", time=int, key=int)
Value, Barrier = Kind("Value", time=int, value=int), Kind("Barrier", time=int)
Other = Kind("Other", time=int)


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


class Sequential(ForkJoin):
    takes, depends = (Value, Barrier), barrier(Barrier)


counters, windows = Counters(), Windows()
adds, reads = InputStream("adds", Add, rate=100), InputStream("reads", Read, rate=1)
values = InputStream("values", Value, rate=100, lanes=2)
barriers = InputStream("barriers", Barrier, rate=1)

r1, i1 = InputStream("r1", tags(Read, key=1), rate=15), InputStream("i1", tags(Add, key=1), rate=100)
r2, i2a = InputStream("r2", tags(Read, key=2), rate=10), InputStream("i2a", tags(Add, key=2), rate=200)
i2b = InputStream("i2b", tags(Add, key=2), rate=300)
FIGURE_18 = (r1, i1, r2, i2a, i2b)


def state(*streams: InputStream | Share, below: tuple[Worker, ...] = (), type_: str = "state") -> Worker:
    shares = [share for each in streams for share in (each.shares if isinstance(each, InputStream) else [each])]
    return Worker(type_, shares, *below)


def bucket(stream: InputStream, index: int, of: int, **lanes: int) -> Share:
    (part,) = stream.rates
    return Share(stream.name, part.with_values("key", Bucket(index, of)), **lanes)


def keys(stream: InputStream, *listed: int) -> Share:
    (part,) = stream.rates
    return Share(stream.name, part.with_values("key", frozenset(listed)))


def figure_18() -> Plan:
    return Plan(counters, FIGURE_18, state(below=(state(r1, i1), state(r2, below=(state(i2a), state(i2b))))))


# -- plans that are right --------------------------------------------------------------------------------------------


def cut_by_three_and_by_two() -> Plan:
    """Even keys on the left; on the right the odd ones, cut in three."""
    odd = [[bucket(stream, index, 6) for stream in (adds, reads)] for index in (1, 3, 5)]
    right = state(below=(state(*odd[0]), state(*odd[1], *odd[2])))
    return Plan(counters, [adds, reads], state(below=(state(bucket(adds, 0, 2), bucket(reads, 0, 2)), right)))


RIGHT: dict[str, Callable[[], Plan]] = {
    "one worker": lambda: Plan(counters, [adds, reads], state(adds, reads)),
    "one worker without a fork": lambda: Plan(Sequential(), [values, barriers], state(values, barriers)),
    "Figure 18": figure_18,
    "values below barriers": lambda: Plan(
        windows,
        [values, barriers],
        state(
            barriers,
            type_="whole",
            below=(state(values.shares[0], type_="part"), state(values.shares[1], type_="part")),
        ),
    ),
    "a worker without events": lambda: Plan(
        windows,
        [values, barriers],
        state(barriers, type_="whole", below=(state(values, type_="part"), state(type_="part"))),
    ),
    "buckets of keys": lambda: Plan(
        counters,
        [adds, reads],
        state(below=tuple(state(bucket(adds, i, 2), bucket(reads, i, 2)) for i in range(2))),
    ),
    "buckets of different cuts": cut_by_three_and_by_two,
    "lanes that the stream has not": lambda: Plan(
        windows,
        [InputStream("values", Value), barriers],
        state(
            barriers,
            type_="whole",
            below=tuple(state(Share("values", tags(Value).parts[0], lane, 2), type_="part") for lane in range(2)),
        ),
    ),
    "one tag in lanes, another whole": lambda: Plan(
        windows,
        [InputStream("all", [Value, Barrier])],
        state(
            Share("all", tags(Barrier).parts[0]),
            type_="whole",
            below=tuple(state(Share("all", tags(Value).parts[0], lane, 2), type_="part") for lane in range(2)),
        ),
    ),
    "a share of several tags of a stream": lambda: Plan(
        counters,
        [InputStream("adds", {tags(Add, key=1): 1.0, tags(Add, key=2): 2.0})],
        state(keys(adds, 1, 2)),
    ),
}


@pytest.mark.parametrize("make", RIGHT.values(), ids=RIGHT)
def test_a_right_plan_is_accepted(make: Callable[[], Plan]) -> None:
    plan = make()

    assert plan.root.state_name == plan.type_of(plan.root).name == plan.program.state_types[0].name


# -- plans that are wrong --------------------------------------------------------------------------------------------

WRONG: dict[str, tuple[Callable[[], Plan], str]] = {
    "V1: no such type": (
        lambda: Plan(counters, [adds, reads], state(adds, reads, type_="stat")),
        "plan for Counters, worker stat: needed a state type of Counters; came 'stat'. Try: one of state",
    ),
    "V1: a type that does not take a share": (
        lambda: Plan(windows, [values, barriers], state(values, barriers, type_="part")),
        "plan for Windows, worker part: needed shares that its state type takes: Value; "
        "came barriers, with Barrier. Try: another state type for this worker, or another worker for this share",
    ),
    "V1: no such branch": (
        lambda: Plan(
            windows, [values], state(type_="whole", below=(state(values, type_="whole"), state(type_="part")))
        ),
        "plan for Windows, worker whole: needed a branch of Windows for whole and its children; "
        "came whole -> (whole, part). Try: one of whole -> (part, part), part -> (part, part)",
    ),
    "V1: children without a fork": (
        lambda: Plan(Sequential(), [values], state(values, below=(state(), state()))),
        "plan for Sequential, worker state: needed a branch of Sequential for state and its children; "
        "came state -> (state, state). Try: one worker: the program has no fork",
    ),
    "V2: dependent tags side by side": (
        lambda: Plan(counters, [adds, reads], state(below=(state(adds), state(reads)))),
        "plan for Counters, worker state: needed independent tags on its two sides; came state: adds on the left, "
        "state: reads on the right: Add and Read by barrier(Read) & same('key'). "
        "Try: one of the two shares at this worker, so that its children are joined before",
    ),
    "V2: deep inside the sides": (
        lambda: Plan(
            counters,
            FIGURE_18,
            state(r1, below=(state(below=(state(i1), state(i2a))), state(r2, below=(state(), state(i2b))))),
        ),
        "plan for Counters, worker state: needed independent tags on its two sides; came state: i2a on the left, "
        "state: r2 on the right: Add(key=2) and Read(key=2) by barrier(Read) & same('key'). "
        "Try: one of the two shares at this worker, so that its children are joined before",
    ),
    "V2: buckets that share keys": (
        lambda: Plan(
            counters,
            [adds, reads],
            state(
                below=(
                    state(bucket(adds, 0, 2), bucket(reads, 0, 3)),
                    state(bucket(adds, 1, 2), bucket(reads, 1, 3), bucket(reads, 2, 3)),
                )
            ),
        ),
        "plan for Counters, worker state: needed independent tags on its two sides; "
        "came state: adds, reads on the left, state: adds, reads, reads on the right: "
        "Add(key=#0/2) and Read(key=#1/3) by barrier(Read) & same('key'). "
        "Try: one of the two shares at this worker, so that its children are joined before",
    ),
    "a tag that nobody handles": (
        lambda: Plan(counters, [adds, reads], state(adds)),
        "plan for Counters: needed a worker for each event; came nobody is responsible for Read on 'reads'. "
        "Try: a worker with shares of 'reads'",
    ),
    "a lane that nobody handles": (
        lambda: Plan(windows, [values], state(values.shares[0], type_="whole")),
        "plan for Windows: needed a worker for each event; came nobody is responsible for Value on 'values'. "
        "Try: a worker with shares of 'values'",
    ),
    "a bucket that nobody handles": (
        lambda: Plan(counters, [adds], state(bucket(adds, 0, 3), bucket(adds, 2, 3))),
        "plan for Counters: needed a worker for each event; came nobody is responsible for Add on 'adds'. "
        "Try: a worker with shares of 'adds'",
    ),
    "a lane of a bucket that nobody handles": (
        lambda: Plan(
            counters,
            [adds],
            state(bucket(adds, 0, 2), bucket(adds, 1, 2, lane=0, lanes=2)),
        ),
        "plan for Counters: needed a worker for each event; came nobody is responsible for Add on 'adds'. "
        "Try: a worker with shares of 'adds'",
    ),
    "keys that nobody listed": (
        lambda: Plan(counters, [adds], state(keys(adds, 1, 2))),
        "plan for Counters: needed a worker for each event; came nobody is responsible for Add on 'adds'. "
        "Try: a worker with shares of 'adds'",
    ),
    "a share twice on one way": (
        lambda: Plan(
            windows, [values], state(values, type_="whole", below=(state(values, type_="part"), state(type_="part")))
        ),
        "plan for Windows, worker part: needed each share with one worker; "
        "came values 1/2, Value, also with whole: values 1/2, values 2/2. Try: only one of them",
    ),
    "a share twice side by side": (
        lambda: Plan(counters, [adds], state(below=(state(adds), state(keys(adds, 1))))),
        "plan for Counters, worker state: needed each share with one worker; "
        "came adds, Add(key=1), also with state: adds. Try: only one of them",
    ),
    "lanes of different cuts": (
        lambda: Plan(
            counters,
            [adds],
            state(Share("adds", tags(Add).parts[0], 0, 2), Share("adds", tags(Add).parts[0], 1, 4)),
        ),
        "plan for Counters, worker state: needed each share with one worker; "
        "came adds 2/4, Add, also with state: adds 1/2, adds 2/4. Try: only one of them",
    ),
    "a root of another type than init's": (
        lambda: Plan(windows, [values], state(values, type_="part")),
        "plan for Windows, worker part: needed a root of the type of init(), whole; came part. Try: whole",
    ),
    "a type that cannot carry what is below": (
        lambda: Plan(
            Mixed(),
            [values, barriers],
            state(
                type_="whole",
                below=(
                    state(type_="part", below=(state(barriers, type_="whole"), state(type_="part"))),
                    state(values, type_="part"),
                ),
            ),
        ),
        "plan for Mixed, worker part: needed below it what its state type takes: Value; came Barrier. "
        "Try: a state type that takes all that comes to the workers below",
    ),
    "a share of a stream that is not there": (
        lambda: Plan(counters, [adds], state(adds, reads)),
        "plan for Counters, worker state: needed shares of adds; came reads, Read. "
        "Try: the streams that this plan is for",
    ),
    "tags that do not come on a stream": (
        lambda: Plan(counters, [i1], state(i1, keys(i1, 2))),
        "plan for Counters, worker state: needed shares of i1; came i1, Add(key=2). "
        "Try: tags of this stream: Add(key=1)",
    ),
    "a plan for another program": (
        lambda: Plan(windows, [adds, reads], state(adds, reads)),
        "streams of Windows: needed kinds of Windows: Value, Barrier; came Add on 'adds'. "
        "Try: takes = (..., Add), or a plan for another program",
    ),
    "tags by a field that the dependence does not look at": (
        lambda: Plan(windows, [InputStream("values", tags(Value, value=1))], state(type_="whole")),
        "streams of Windows: needed tags by the kind alone; came Value(value=1) on 'values'. "
        "Try: tag = (..., 'value') in Windows",
    ),
    "no streams": (
        lambda: Plan(counters, [], state()),
        'streams of Counters: needed InputStreams; came []. Try: InputStream("values", Value)',
    ),
    "two streams of one name": (
        lambda: Plan(counters, [adds, adds], state(adds)),
        "streams of Counters: needed names that differ; came 'adds' twice. Try: adds_1, adds_2",
    ),
}


class Mixed(Forked):
    takes, depends = (Value, Barrier), barrier(Barrier)
    whole, part = StateType(Value, Barrier), StateType(Value)
    branches = (Branch(whole, part, part), Branch(part, whole, part))


@pytest.mark.parametrize(("make", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_plan_is_refused_with_the_reason(make: Callable[[], Plan], message: str) -> None:
    with pytest.raises(PlanError) as refused:
        make()

    assert str(refused.value) == message


def test_a_worker_is_in_one_place_of_the_tree() -> None:
    twin = state(type_="part")

    with pytest.raises(PlanError, match="needed each worker in one place of the tree; came the same in two"):
        Plan(windows, [values], state(values, type_="whole", below=(twin, twin)))


def test_a_worker_has_two_children_or_none() -> None:
    with pytest.raises(PlanError, match="needed two children or none; came one"):
        Worker("state", (), state())


@pytest.mark.parametrize(
    "rate", [-1, float("nan"), float("inf"), "10", True, None, 10**400], ids=lambda rate: repr(rate)[:9]
)
def test_a_rate_is_a_number_from_0(rate: Any) -> None:
    with pytest.raises(PlanError, match="needed a rate from 0"):
        InputStream("adds", Add, rate=rate)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", Add), "needed a name"),
        ((3, Add), "needed a name"),
        (("adds", []), "needed tags"),
        (("adds", {}), "needed tags"),
        (("adds", [tags(Add, key=1), Add]), r"needed each tag once; came Add\(key=1\) and Add"),
    ],
    ids=["no name", "a number", "no tags", "no rates", "a tag twice"],
)
def test_a_stream_has_a_name_and_tags(arguments: tuple[Any, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        InputStream(*arguments)


@pytest.mark.parametrize(("lanes", "place"), [(0, None), (True, None), (1, ""), (1, 5)])
def test_lanes_and_places_of_a_stream_are_checked(lanes: Any, place: Any) -> None:
    with pytest.raises(PlanError, match=r"needed (lanes=, a number from 1|place=, the name of a machine)"):
        InputStream("adds", Add, lanes=lanes, place=place)


@pytest.mark.parametrize(("lane", "lanes"), [(1, 1), (-1, 2), (0, 0)])
def test_a_share_is_of_a_lane_that_there_is(lane: int, lanes: int) -> None:
    with pytest.raises(PlanError, match="needed tags of one kind, and a lane from 0 to lanes - 1"):
        Share("adds", tags(Add).parts[0], lane, lanes)


def test_the_rate_of_a_stream_is_shared_out_to_its_tags_and_lanes() -> None:
    stream = InputStream("all", [Add, Read], rate=100, lanes=5)

    assert [share.rate for share in stream.shares] == [10.0] * 10


# -- what a plan says of itself --------------------------------------------------------------------------------------


def test_a_plan_is_shown_as_a_tree() -> None:
    assert figure_18().show() == (
        "state: -\n"
        "├─ state: r1 Read(key=1), i1 Add(key=1)\n"
        "└─ state: r2 Read(key=2)\n"
        "   ├─ state: i2a Add(key=2)\n"
        "   └─ state: i2b Add(key=2)"
    )
    assert cut_by_three_and_by_two().show() == (
        "state: -\n"
        "├─ state: adds Add(key=#0/2), reads Read(key=#0/2)\n"
        "└─ state: -\n"
        "   ├─ state: adds Add(key=#1/6), reads Read(key=#1/6)\n"
        "   └─ state: adds Add(key=#3/6), reads Read(key=#3/6), adds Add(key=#5/6), reads Read(key=#5/6)"
    )


def test_a_plan_shows_lanes_and_places() -> None:
    one, two = (Worker("part", [share], place=place) for share, place in zip(values.shares, "ab", strict=True))

    assert Plan(windows, [values], Worker("whole", (), one, two)).show() == (
        "whole: -\n├─ part: values 1/2  @a\n└─ part: values 2/2  @b"
    )


def test_a_plan_knows_how_its_workers_fork() -> None:
    plan = RIGHT["values below barriers"]()

    assert repr(plan.branch_of(plan.root)) == "whole -> (part, part)"


def test_the_cost_of_a_plan_follows_from_its_rates() -> None:
    cost = cost_of(figure_18())

    assert (cost.busiest, cost.busiest_leaf, cost.depth) == (310.0, 300.0, 2)
    assert cost.share_at_leaves == pytest.approx(615 / 625)
    assert (cost.messages, cost.far) == (60.0, 0.0)  # two workers below r2, three messages each, ten times a second


def test_events_and_messages_between_places_are_far() -> None:
    here, there = InputStream("adds", Add, rate=8, place="here"), InputStream("reads", Read, rate=2, place="there")
    left, right = (
        Worker("state", [Share("adds", tags(Add).parts[0], lane, 2, 4.0)], place=place)
        for lane, place in ((0, "here"), (1, "there"))
    )
    plan = Plan(counters, [here, there], Worker("state", there.shares, left, right, place="there"))

    assert plan.cost.messages == 2 * 3 * 2
    assert plan.cost.far == 4 + 3 * 2  # half of the adds, and what goes between the root and the left


def test_a_plan_without_events_costs_nothing() -> None:
    quiet = InputStream("adds", Add, rate=0)

    assert Plan(counters, [quiet], state(quiet)).cost.total == 0


def parsed(picture: str) -> ElementTree.Element:
    return ElementTree.fromstring(picture)  # noqa: S314 - we made it


# -- its picture -----------------------------------------------------------------------------------------------------


def test_a_picture_has_every_worker_with_its_shares_rates_and_place() -> None:
    one, two = (Worker("part", [share], place=place) for share, place in zip(values.shares, "ab", strict=True))
    picture = parsed(Plan(windows, [values, barriers], Worker("whole", barriers.shares, one, two)).picture())

    texts = ["".join(each.itertext()) for each in picture.iter() if each.tag.endswith("}text")]
    assert texts == [
        "part @a",
        "values 1/2 Value 50/s",
        "part @b",
        "values 2/2 Value 50/s",
        "whole",
        "barriers Barrier 1/s",
    ]
    assert sum(each.tag.endswith("}line") for each in picture.iter()) == 2


def test_names_in_a_picture_are_escaped() -> None:
    nasty = InputStream('<script>alert("&")</script>\x00', Value)
    text = Plan(windows, [nasty], state(nasty, type_="whole")).picture()

    parsed(text)
    assert "<script" not in text


def test_boxes_of_a_picture_do_not_overlap() -> None:
    picture = parsed(cut_by_three_and_by_two().picture())
    boxes = [
        {name: float(each.attrib[name]) for name in ("x", "y", "width", "height")}
        for each in picture.iter()
        if each.tag.endswith("}rect")
    ]

    for place, one in enumerate(boxes):
        assert min(one["x"], one["y"]) >= 0
        assert one["x"] + one["width"] <= float(picture.attrib["width"])
        assert one["y"] + one["height"] <= float(picture.attrib["height"])
        for other in boxes[:place]:
            beside = one["x"] + one["width"] <= other["x"] or other["x"] + other["width"] <= one["x"]
            above = one["y"] + one["height"] <= other["y"] or other["y"] + other["height"] <= one["y"]
            assert beside or above


def test_notebooks_show_the_picture() -> None:
    plan = figure_18()

    assert plan._repr_svg_() == plan.picture()


def test_a_long_list_of_shares_is_cut_in_a_picture() -> None:
    many = [InputStream(f"s{number}", Value) for number in range(20)]

    assert "and 15 more 15/s" in Plan(windows, many, state(*many, type_="whole")).picture()


def test_the_workers_of_a_plan_can_be_sent_to_another_process() -> None:
    plan = figure_18()
    sent: Worker = pickle.loads(pickle.dumps(plan.root))

    assert Plan(counters, FIGURE_18, sent).show() == plan.show()
