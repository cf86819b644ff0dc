"""The matcher against the definitions of DiffStream, section 4, computed a second way: by normal forms of traces."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import lawful

from streamtight.method.compare import engines
from streamtight.method.compare.engines import can_be_indexed
from streamtight.method.compare.matcher import Matcher
from streamtight.stream.dependence import Dependence, barrier, between, depends, ordered, punctuation, same, unordered
from streamtight.stream.equality import equality
from streamtight.stream.event import Event, Kind
from streamtight.stream.schema import Bag, Par, PartitionBy, Seq, Sync
from streamtight.stream.trace import Trace

A, B, E = (Kind(name, k=int, t=int) for name in "ABE")
M = Kind("M", t=int)
EVENTS = [*(kind(k, t) for kind in (A, B, E) for k in range(2) for t in range(3)), *(M(t) for t in range(4))]
KEYED = [A, B, E]

RELATIONS: list[Dependence] = [
    unordered,
    ordered,
    same("t"),
    same("k", of=KEYED),
    barrier(M),
    barrier(M) | same("k", of=A),
    barrier(M) | same("k", of=KEYED),
    barrier(M) | same("t"),
    barrier(A) | barrier(B) | same("k", of=E),
    barrier(lambda e: e.t == 1),
    barrier(lambda e: e.t == 1) | same("k", of=[A, B]),
    between(A, B),
    between(A, B) | barrier(M),
    between(A, B) & same("k", of=[A, B]),
    same("k", of=A) | same("t", of=B) | between(E, E),
    same("k", of=KEYED) | between(A, lambda e: e.t > 1),
    same("t") & (between(A, B) | barrier(M)),
    Sync(M, Par(PartitionBy("k", Seq(A)), Bag(B), PartitionBy("k", Seq(E)))),
    Par(Bag(M), PartitionBy("k", Sync(E, Bag(A, B)))),
    PartitionBy("t", Sync(M, PartitionBy("k", Sync(A, Bag(B, E))))),
    Sync(M, Sync(A, Sync(B, Bag(E)))),
    punctuation(M, time="t"),
    punctuation(M, time="t", of=[A, B]),
    punctuation(M, time="t") | same("k", of=KEYED),
    punctuation(E, time="t") & same("k", of=KEYED),
    punctuation(E, time="t") | barrier(M),
    punctuation(lambda e: e.t % 2 == 0, time="t"),
    depends(lambda a, b: abs(a.t - b.t) == 1),
    depends(lambda a, b: abs(a.t - b.t) == 1) | barrier(M),
]


@pytest.fixture(autouse=True, scope="module")
def empty_queues_are_collected_at_once() -> Iterator[None]:
    """So that these short streams see it happen."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engines, "_EMPTY_QUEUES", 1)
        patch.setattr(engines, "_EMPTY_ENGINES", 1)
        yield


@st.composite
def connected_streams(draw: st.DrawFn) -> tuple[Dependence, list[tuple[int, Event]]]:
    """A relation and two streams that are often equal or nearly so, put together in any way."""
    upto = draw(st.sampled_from(RELATIONS))
    left = draw(st.lists(st.sampled_from(EVENTS), max_size=8))
    right = list(Trace(left, upto).reordered(draw(st.randoms(use_true_random=False))).events)
    for _ in range(draw(st.integers(0, 2))):
        change = draw(st.sampled_from(["drop", "insert", "swap"]))
        place = draw(st.integers(0, max(len(right) - 1, 0)))
        if change == "drop":
            del right[place : place + 1]
        elif change == "insert":
            right.insert(place, draw(st.sampled_from(EVENTS)))
        else:
            right[place : place + 2] = reversed(right[place : place + 2])
    sides = draw(st.permutations([0] * len(left) + [1] * len(right)))
    streams = [iter(left), iter(right)]
    return upto, [(side, next(streams[side])) for side in sides]


def can_still_agree(left: list[Event], right: list[Event], upto: Dependence) -> bool:
    """Is there a continuation that makes them equivalent? If any, then this one: each gets what only the other has."""
    only_left, only_right = surplus(left, right), surplus(right, left)
    return Trace(left + only_right, upto) == Trace(right + only_left, upto)


def surplus(events: list[Event], others: list[Event]) -> list[Event]:
    """The events that come more often here than there, the last ones of each, in order."""
    common, taken = Counter(events) & Counter(others), Counter[Event]()
    rest = []
    for event in events:
        taken[event] += 1
        if taken[event] > common[event]:
            rest.append(event)
    return rest


@given(connected_streams())
@lawful
def test_theorem_4_8_it_refutes_at_the_first_event_that_no_continuation_survives(drawn):
    upto, events = drawn
    matcher = Matcher(upto=upto)
    so_far: tuple[list[Event], list[Event]] = ([], [])
    agree = True
    for side, event in events:
        so_far[side].append(event)
        agree = agree and can_still_agree(*so_far, upto)
        assert (matcher.left, matcher.right)[side](event) is agree


@given(connected_streams())
@lawful
def test_theorem_4_8_at_the_end_it_holds_exactly_if_the_streams_are_equivalent(drawn):
    upto, events = drawn
    matcher = Matcher(upto=upto)
    streams = [[event for side, event in events if side == number] for number in (0, 1)]
    for side, event in events:
        (matcher.left, matcher.right)[side](event)

    verdict = matcher.finish()

    if not events:
        assert verdict.undecided
    else:
        assert verdict.holds is (Trace(streams[0], upto) == Trace(streams[1], upto))
    if verdict.fails:
        assert verdict.counterexample is not None
        assert verdict.counterexample.failing_reruns == 1


@given(connected_streams())
@lawful
def test_theorem_4_9_it_keeps_exactly_the_unmatched_events_with_their_positions(drawn):
    upto, events = drawn
    matcher = Matcher(upto=upto)
    so_far: tuple[list[Event], list[Event]] = ([], [])
    for side, event in events:
        so_far[side].append(event)
        if not (matcher.left, matcher.right)[side](event):
            break
        left, right = (Counter(stream) for stream in so_far)
        assert (Counter(matcher.unmatched.left), Counter(matcher.unmatched.right)) == (left - right, right - left)
        assert matcher.seen == tuple(map(len, so_far))
        for stream, places in zip(so_far, matcher.state.unmatched, strict=True):
            assert [stream[position - 1] for position, _ in places] == [one for _, one in places]


@given(connected_streams(), st.integers(0, 16))
@lawful
def test_a_resumed_matcher_goes_on_as_if_it_had_never_stopped(drawn, stop):
    upto, events = drawn
    matcher = Matcher(upto=upto)
    resumed = Matcher(upto=upto)
    for number, (side, event) in enumerate(events):
        if number == stop and resumed.agrees:
            resumed = Matcher(upto=upto, resume=resumed.state)
        agrees = (matcher.left, matcher.right)[side](event)
        assert (resumed.left, resumed.right)[side](event) is agrees
        assert resumed.unmatched == matcher.unmatched
        assert resumed.difference == matcher.difference


@given(connected_streams())
@lawful
def test_a_difference_names_events_of_the_other_side_that_wait_and_depend(drawn):
    upto, events = drawn
    matcher = Matcher(upto=upto)
    for side, event in events:
        if not (matcher.left, matcher.right)[side](event):
            break
    found = matcher.difference
    if found is None:
        return
    assert found.came is not None
    assert found.came.event == event
    assert found.against
    for place in found.against:
        assert place.side != found.came.side
        assert upto.depends(place.event, event)
        assert place.event in (matcher.unmatched.left if place.side == "left" else matcher.unmatched.right)
    assert found.clause == upto.explain(event, found.against[0].event)
    assert set(found.expected) <= {place.event for place in found.against}
    assert found.against[0].event in found.expected


@given(connected_streams())
@lawful
def test_an_equality_that_compares_everything_changes_nothing(drawn):
    upto, events = drawn
    plain, by_value, by_pairs = (Matcher(upto=upto, equal=e) for e in (None, equality(), lambda a, b: a == b))
    for side, event in events:
        answers = {(matcher.left, matcher.right)[side](event) for matcher in (plain, by_value, by_pairs)}
        assert len(answers) == 1
        assert plain.unmatched == by_value.unmatched == by_pairs.unmatched


@given(connected_streams())
@lawful
def test_an_equality_is_plain_equality_of_the_canonical_events(drawn):
    """x = y if they agree on t: the same as matching events that have nothing but t."""
    _, events = drawn
    only_t = Kind("T", t=int)
    for upto, its in (
        (same("t"), same("t")),
        (ordered, ordered),
        (barrier(lambda e: e.t == 1), barrier(lambda e: e.t == 1)),
    ):
        matcher = Matcher(upto=upto, equal=equality(by=lambda e: e.t))
        twin = Matcher(upto=its)
        for side, event in events:
            answer = (matcher.left, matcher.right)[side](event)
            assert (twin.left, twin.right)[side](only_t(event.t)) is answer


STRUCTURED = [upto for upto in RELATIONS if all(can_be_indexed(clause, upto.clauses) for clause in upto.clauses)]


@given(st.sampled_from(STRUCTURED), st.randoms(use_true_random=False))
@lawful
def test_every_index_answers_on_long_streams_as_a_scan_does(upto, rng):
    """The scan asks the relation about every pair, and is the twin of all the others."""
    left = [rng.choice(EVENTS) for _ in range(60)]
    right = list(Trace(left, upto).reordered(rng).events)
    if rng.random() < 0.5:
        place = rng.randrange(len(right) - 1)
        right[place], right[place + 1] = right[place + 1], right[place]
    streams = [iter(left), iter(right)]
    sides = [0] * len(left) + [1] * len(right)
    # One side runs ahead by up to so many events, as live streams do.
    ahead = rng.choice([2, 10, 60])
    sides = [
        side for _, side in sorted((number % len(left) + rng.uniform(0, ahead), s) for number, s in enumerate(sides))
    ]
    indexed, scanned = Matcher(upto=upto), Matcher(upto=depends(upto.depends))
    for side in sides:
        event = next(streams[side])
        agrees = (scanned.left, scanned.right)[side](event)
        assert (indexed.left, indexed.right)[side](event) is agrees
        assert indexed.unmatched == scanned.unmatched
        if not agrees:
            break


@given(st.lists(st.sampled_from(EVENTS[:6]), max_size=4), st.lists(st.sampled_from(EVENTS[:6]), max_size=4))
@lawful
def test_the_second_way_is_right_by_search(left, right):
    """No continuation of up to two events helps where `can_still_agree` says that none does."""
    upto = same("k") | between(lambda e: e.t == 0, lambda e: e.t == 1)
    if can_still_agree(left, right, upto):
        return
    pool = list(dict.fromkeys(left + right))
    some = [list(more) for size in range(3) for more in itertools.product(pool, repeat=size)]
    for more_left, more_right in itertools.product(some, some):
        if len(left) + len(more_left) == len(right) + len(more_right):
            assert Trace(left + more_left, upto) != Trace(right + more_right, upto)
