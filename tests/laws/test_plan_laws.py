"""Sets of tags against all their events, and plans against what a plan must be."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import event, given, note
from hypothesis import strategies as st
from strategies import TYPES, VALUES, dependences, kinds, lawful, universe

from streamtight.errors import PlanError
from streamtight.method.parallelize.optimize import plan
from streamtight.program.fork_join import Branch, ForkJoin, StateType
from streamtight.program.plan import InputStream, Plan, Share, Worker
from streamtight.program.tags import Bucket, Tags, TagSet, has_buckets, share_hash, tags, why_dependent
from streamtight.stream.dependence import Dependence, barrier, between, ordered, same, unordered
from streamtight.stream.event import Event, Kind

Pair = Kind("Pair", key=int | None, name=str, flag=bool)
LISTED: dict[str, tuple[Any, ...]] = {"key": (0, 1, None), "name": ("", "a"), "flag": (False, True)}
OF = (1, 2, 3, 4, 6)


def with_all_buckets(listed: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """The listed values, and one that is not listed for each of twelve buckets, which is all that cuts can tell."""
    found = {share_hash(value) % 12: value for value in others if value not in listed}
    assert len(found) == 12
    return [*listed, *found.values()]


PAIRS = [
    Pair(*values)
    for values in itertools.product(
        with_all_buckets(LISTED["key"], range(2, 200)),
        with_all_buckets(LISTED["name"], [f"n{number}" for number in range(200)]),
        LISTED["flag"],
    )
]


@st.composite
def parts(draw: st.DrawFn) -> Tags:
    """Tags of Pair."""
    fields: dict[str, Any] = {}
    for name, values in LISTED.items():
        match draw(st.sampled_from(["any", "listed", "bucket"])):
            case "listed":
                fields[name] = draw(st.sets(st.sampled_from(values), min_size=1))
            case "bucket" if has_buckets(Pair, name):
                of = draw(st.sampled_from(OF))
                fields[name] = Bucket(draw(st.integers(0, of - 1)), of)
    return tags(Pair, **fields).parts[0]


# -- tags ------------------------------------------------------------------------------------------------------------


@given(parts(), parts())
@lawful
def test_tags_overlap_if_an_event_is_in_both(one: Tags, other: Tags) -> None:
    assert one.overlaps(other) == any(one.holds(each) and other.holds(each) for each in PAIRS)


@given(parts(), parts())
@lawful
def test_tags_are_within_others_only_if_each_event_is(one: Tags, other: Tags) -> None:
    if one.within(other):
        assert all(other.holds(each) for each in PAIRS if one.holds(each))


@given(st.lists(parts(), max_size=5), parts())
@lawful
def test_a_set_covers_tags_if_each_event_is_in_it(some: list[Tags], wanted: Tags) -> None:
    covered = all(TagSet(some).holds(each) for each in PAIRS if wanted.holds(each))
    event(f"covered: {covered}")

    assert TagSet(some).covers(TagSet([wanted])) == covered


@given(st.lists(parts(), max_size=3))
@lawful
def test_a_set_says_of_a_tag_whether_it_holds_it(some: list[Tags]) -> None:
    for each in PAIRS[::7]:
        assert TagSet(some)(Pair, **each.as_dict()) == TagSet(some).holds(each)


@st.composite
def tags_of(draw: st.DrawFn, kind: Kind) -> Tags:
    """Tags of a kind of the laws: some fields listed, some in buckets."""
    fields: dict[str, Any] = {}
    for name in kind.names:
        match draw(st.sampled_from(["any", "listed", "listed", "bucket"])):
            case "listed":
                fields[name] = draw(st.sets(st.sampled_from(VALUES[name]), min_size=1))
            case "bucket" if has_buckets(kind, name):
                of = draw(st.sampled_from([1, 2, 3]))
                fields[name] = Bucket(draw(st.integers(0, of - 1)), of)
    return tags(kind, **fields).parts[0]


@given(st.data())
@lawful
def test_tags_count_as_independent_only_if_all_their_events_are(data: st.DataObject) -> None:
    """Whatever the relation looks at: what cannot be asked about all tags counts as dependent."""
    of = data.draw(kinds())
    assert set(TYPES) == set(VALUES)
    upto = data.draw(dependences(of)).dependence
    one, other = (TagSet([data.draw(tags_of(data.draw(st.sampled_from(of))))]) for _ in range(2))
    related = any(
        upto.depends(a, b) for a, b in itertools.product(universe(of), repeat=2) if one.holds(a) and other.holds(b)
    )
    why = why_dependent(upto, one, other)
    event(f"related: {related}, told: {why is not None}")

    assert why is not None or not related


# -- shares ----------------------------------------------------------------------------------------------------------


class Pairs(ForkJoin):
    takes, depends, tag, time = (Pair,), unordered, ("key", "name", "flag"), "key"

    def _require_time(self, where: str, kind: Kind) -> None:
        """Times do not matter here."""


def handled_once(shares: Sequence[Share], events: Sequence[Event]) -> bool:
    """Whether each event on each lane belongs to exactly one share; lanes of different cuts may have it both."""
    for each in events:
        lanes = sorted((share.lane, share.lanes) for share in shares if share.tags.holds(each))
        if not lanes or lanes != [(lane, lanes[0][1]) for lane in range(lanes[0][1])]:
            return False
    return True


@st.composite
def cuts(draw: st.DrawFn, share: Share, depth: int = 3) -> list[Share]:
    """A share, taken apart."""
    how = draw(st.sampled_from(["not", "key", "name", "flag", "lanes"])) if depth else "not"
    pieces = [share]
    if how == "lanes" and share.lanes == 1:
        count = draw(st.integers(1, 3))
        return [Share(share.stream, share.tags, lane, count) for lane in range(count)]
    if how in LISTED:
        values = share.tags.values(how)
        if how == "flag" and values is None:
            values = frozenset([False, True])
        if isinstance(values, frozenset):
            pieces = [
                Share(share.stream, share.tags.with_values(how, frozenset([value])))
                for value in sorted(values, key=repr)
            ]
        else:
            index, of = (values.index, values.of) if isinstance(values, Bucket) else (0, 1)
            times = draw(st.sampled_from([each for each in (1, 2, 3) if 12 % (of * each) == 0]))
            pieces = [
                Share(share.stream, share.tags.with_values(how, Bucket(index + of * each, of * times)))
                for each in range(times)
            ]
    return [part for piece in pieces for part in (draw(cuts(piece, depth - 1)) if len(pieces) > 1 else [piece])]


@given(st.data())
@lawful
def test_a_plan_is_refused_unless_each_event_belongs_to_one_worker(data: st.DataObject) -> None:
    whole = data.draw(parts())
    stream = InputStream("s", TagSet([whole]))
    shares = data.draw(cuts(Share("s", whole)))
    match data.draw(st.sampled_from(["right", "lost", "twice", "other"])):
        case "lost":
            shares.pop(data.draw(st.integers(0, len(shares) - 1)))
        case "twice":
            shares.append(data.draw(st.sampled_from(shares)))
        case "other":
            shares[-1] = Share("s", data.draw(parts()), shares[-1].lane, shares[-1].lanes)
    expected = handled_once(shares, [each for each in PAIRS if whole.holds(each)]) and all(
        whole.holds(each) for share in shares for each in PAIRS if share.tags.holds(each)
    )
    event(f"right: {expected}")

    try:
        Plan(Pairs(), [stream], Worker("state", shares))
    except PlanError as refused:
        note(str(refused))
        assert not expected
    else:
        assert expected


# -- plans -----------------------------------------------------------------------------------------------------------

A, B, C = Kind("A", time=int, key=int), Kind("B", time=int, key=int), Kind("C", time=int)
KEYED, ALL = (A, B), (A, B, C)
EVENTS = [*(kind(0, key) for kind in KEYED for key in (1, 2, 3, *range(10, 40))), C(0)]


class Question(NamedTuple):
    """A program, and streams for it."""

    program: ForkJoin
    streams: list[InputStream]


@st.composite
def clauses(draw: st.DrawFn) -> Dependence:
    some = st.sampled_from([A, B, C, KEYED])
    match draw(st.sampled_from(["keyed", "keyed", "barrier", "between", "same", "all", "none"])):
        case "keyed":
            return barrier(draw(st.sampled_from(KEYED))) & same("key", of=KEYED)
        case "barrier":
            return barrier(draw(some))
        case "between":
            return between(draw(some), draw(some))
        case "same":
            return same("key", of=draw(st.sampled_from([A, B, KEYED])))
        case "all":
            return ordered
    return unordered


@st.composite
def programs(draw: st.DrawFn) -> ForkJoin:
    """Programs with any dependence, some types of states, and some branches."""
    body: dict[str, Any] = {
        "takes": ALL,
        "depends": draw(clauses()) | draw(clauses()),
        "tag": ("key",),
        "fork": lambda self, state, left, right: (state, state),
        "join": lambda self, left, right: left,
    }
    if draw(st.booleans()):
        types = [StateType(*ALL)]
        for _ in range(draw(st.integers(0, 3))):
            types.append(StateType(*draw(st.sampled_from([ALL, (A,), (B,), (A, C), (tags(A, key=1), B)]))))
        body |= {f"type{number}": each for number, each in enumerate(types)}
        any_type = st.sampled_from(types)
        body["branches"] = [
            Branch(draw(any_type), draw(any_type), draw(any_type)) for _ in range(draw(st.integers(0, 4)))
        ]
    made: ForkJoin = type("Made", (ForkJoin,), body)()
    return made


@st.composite
def questions(draw: st.DrawFn) -> Question:
    streams = []
    for number in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(ALL))
        keys = draw(st.sampled_from([None, 1, 2, {1, 2}, {2, 3}, Bucket(0, of=2), Bucket(1, of=2)]))
        part = tags(kind) if kind is C or keys is None else tags(kind, key=keys)
        rate = draw(st.sampled_from([0, 1, 2, 10, 100, 250]))
        place = draw(st.sampled_from([None, "x", "y", "z"]))
        streams.append(InputStream(f"s{number}", part, rate=rate, place=place, lanes=draw(st.integers(1, 3))))
    return Question(draw(programs()), streams)


def require_right(found: Plan, asked: Question) -> None:
    """Every event with one worker; what is side by side is independent. By all events, not by sets of tags."""
    for stream in asked.streams:
        mine = [share for worker in found.workers for share in worker.shares if share.stream == stream.name]
        assert handled_once(mine, [each for each in EVENTS if stream.tags.holds(each)])
        assert abs(sum(share.rate for share in mine) - sum(stream.rates.values())) < 1e-6
    for worker in found.workers:
        if worker.children:
            left, right = ([each for each in EVENTS if side.all_tags.holds(each)] for side in worker.children)
            assert not any(asked.program.depends.depends(a, b) for a, b in itertools.product(left, right))
            branch = found.branch_of(worker)
            assert [branch.left.name, branch.right.name] == [child.state_name for child in worker.children]


@given(questions(), st.sampled_from(["best", "greedy", "sequential"]), st.sampled_from([None, 1, 2, 3, 5, 8]))
@lawful
def test_every_plan_that_is_found_is_right(asked: Question, optimizer: Any, workers: int | None) -> None:
    found = plan(asked.program, asked.streams, optimizer=optimizer, workers=workers, seconds=60)
    event(f"leaves: {len(found.leaves)}")
    note(found.show())

    require_right(found, asked)
    assert workers is None or len(found.leaves) <= workers
    assert bool(found.remarks) == (len(found.leaves) == 1 or len(found.leaves) < (workers or 0))


@given(questions())
@lawful
def test_no_fewer_events_are_at_leaves_than_greed_finds(asked: Question) -> None:
    best = plan(asked.program, asked.streams, seconds=60)
    greedy = plan(asked.program, asked.streams, optimizer="greedy")
    event(f"best: {len(best.leaves)} leaves, greedy: {len(greedy.leaves)}")

    assert len(greedy.leaves) == 1 or best.cost.share_at_leaves >= greedy.cost.share_at_leaves - 1e-9


@given(questions(), st.sampled_from([None, 1, 2, 3, 5]))
@lawful
def test_the_best_plan_costs_no_more_than_the_others(asked: Question, workers: int | None) -> None:
    best, greedy, one = (
        plan(asked.program, asked.streams, workers=workers, optimizer=each, seconds=60).cost.total  # type: ignore[arg-type]
        for each in ("best", "greedy", "sequential")
    )

    assert best <= greedy + 1e-6
    assert workers is None or best <= one + 1e-6


@given(questions(), st.sampled_from(["best", "greedy", "sequential"]), st.sampled_from([None, 3]), st.integers(0, 3))
@lawful
def test_places_have_room_for_their_leaves(asked: Question, optimizer: Any, workers: int | None, room: int) -> None:
    places_with_room = {"x": room, "w": 2}
    found = plan(
        asked.program, asked.streams, workers=workers, optimizer=optimizer, places=places_with_room, seconds=60
    )

    places = [leaf.place for leaf in found.leaves]
    assert set(places) <= {"x", "w"}
    assert places.count("x") <= room
    assert places.count("w") <= 2
    require_right(found, asked)
