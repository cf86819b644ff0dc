"""Plans change nothing: wire diagrams, mailboxes and workers give what the sequential program gives."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator

from fork_join_twins import (
    Barrier,
    Case,
    ForgetfulWindows,
    Value,
    cases,
    dependent,
    diagram,
    every_tag,
    in_order,
    must_wait,
    slow_bounds,
    updated,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import lawful

import streamtight as tight
from streamtight.method.compare.matcher import match
from streamtight.program.fork_join import BEGINNING, END, Key
from streamtight.program.mailbox import Mailbox, Sent, release_bounds
from streamtight.program.plan import InputStream, Plan, Share, Worker
from streamtight.program.workers import run_plan
from streamtight.stream.event import Event

seeds = st.integers(0, 10**6)


def agree(one: Iterable[Event], other: Iterable[Event]) -> bool:
    """Whether these are the same outputs, in any order."""
    matched = match(one, other, upto=tight.unordered)
    return matched.agrees and not any(matched.unmatched)


# -- the sequential meaning --------------------------------------------------------------------------------------------


@lawful
@given(cases())
def test_sequence_is_the_order_by_time_kind_stream_and_place(case: Case) -> None:
    assert list(case.program.sequence(case.streams)) == in_order(case.program, case.streams)


@lawful
@given(cases())
def test_definition_4_8_run_is_updates_alone_in_that_order(case: Case) -> None:
    _, outputs = updated(case.program, in_order(case.program, case.streams))

    assert case.program.run(case.streams) == outputs


# -- Theorem 4.4 -------------------------------------------------------------------------------------------------------


@lawful
@given(cases(), seeds)
def test_theorem_4_4_every_wire_diagram_of_a_consistent_program_gives_the_sequential_outputs(
    case: Case, seed: int
) -> None:
    program, chance = case.program, random.Random(seed)
    events = in_order(program, case.streams)

    state, outputs = diagram(program, program.state_types[0], every_tag(program), program.init(), events, chance)

    expected_state, expected = updated(program, events)
    assert agree(expected, outputs)
    assert program.same_state(state, expected_state)


def test_a_join_that_forgets_its_right_argument_breaks_theorem_4_4() -> None:
    program = ForgetfulWindows()
    events = [Value(1, 1), Value(2, 2), Value(3, 3), Barrier(3)]
    _, expected = updated(program, events)

    broken = [
        seed
        for seed in range(50)
        if not agree(
            expected,
            diagram(program, program.state_types[0], every_tag(program), 0, events, random.Random(seed))[1],
        )
    ]

    assert len(broken) > 10


# -- Lemma 4.11 --------------------------------------------------------------------------------------------------------


def sent_items(case: Case, chance: random.Random) -> dict[str, list[tuple[Key, Sent | None]]]:
    """What comes on each stream: the promises, and the events with their shares."""
    shares = [share for worker in case.plan.workers for share in worker.shares]
    found: dict[str, list[tuple[Key, Sent | None]]] = {}
    for name, items in case.streams.items():
        line: list[tuple[Key, Sent | None]] = []
        keyed = case.program.keyed(name, case.plan.stream_place(name), items)
        for position, (key, item) in enumerate(keyed):
            if isinstance(item, Event):
                takers = [share for share in shares if share.stream == name and share.tags.holds(item)]
                line.append((key, Sent(chance.choice(takers), key, position, item)))
            else:
                line.append((key, None))
        found[name] = line
    return found


def interleaved(
    lines: dict[str, list[tuple[Key, Sent | None]]], chance: random.Random
) -> Iterator[tuple[str, Key, Sent | None]]:
    """All of it, in some order that keeps that of each stream, and then the ends."""
    names = [name for name, line in lines.items() for _ in line]
    chance.shuffle(names)
    rest = {name: iter(line) for name, line in lines.items()}
    for name in names:
        yield name, *next(rest[name])
    for name in lines:
        yield name, END, None


def above_and_own(plan: Plan, worker: Worker) -> set[Share]:
    """The shares that concern a worker."""
    return {share for each in plan.workers if worker in each.walk() for share in each.shares}


@lawful
@given(cases(), seeds)
def test_lemma_4_11_a_mailbox_releases_its_input_and_keeps_the_order_of_dependent_events(case: Case, seed: int) -> None:
    chance = random.Random(seed)
    lines = sent_items(case, chance)
    worker = chance.choice(case.plan.workers)
    mine = above_and_own(case.plan, worker)
    box = Mailbox(case.plan, worker)
    released: list[Sent] = []

    for name, key, sent in interleaved(lines, chance):
        if sent is not None and sent.share in mine:
            box.put(sent)
        elif name in box.streams:
            box.advance(name, key)
        while box.ready and chance.random() < 0.8:
            released.append(box.release(chance.choice(list(box.ready))))
    while box.ready:
        released.append(box.release(chance.choice(list(box.ready))))

    concerned = [sent for line in lines.values() for _, sent in line if sent is not None and sent.share in mine]
    assert Counter(released) == Counter(concerned)
    for number, later in enumerate(released):
        for earlier in released[:number]:
            if case.program.depends.depends(earlier.event, later.event):
                assert earlier.before(later)


@lawful
@given(cases(), seeds)
def test_a_mailbox_releases_whatever_need_not_wait_and_nothing_else(case: Case, seed: int) -> None:
    chance = random.Random(seed)
    worker = chance.choice(case.plan.workers)
    mine = above_and_own(case.plan, worker)
    box = Mailbox(case.plan, worker)
    promises = dict.fromkeys(case.streams, BEGINNING)
    there: list[Sent] = []

    for name, key, sent in interleaved(sent_items(case, chance), chance):
        promises[name] = key
        if sent is not None and sent.share in mine:
            box.put(sent)
            there.append(sent)
        elif name in box.streams:
            box.advance(name, key)
        may_go = [each for each in there if not must_wait(case.plan, each, there, promises, mine)]

        assert {box.first(share) for share in box.ready} == set(may_go)
        assert {sent for waits in box.waiting() for sent in waits.events}.isdisjoint(may_go)
        assert len(box) == len(there)
        if may_go and chance.random() < 0.7:
            there.remove(box.release(chance.choice(may_go).share))


# -- bounds of batches -------------------------------------------------------------------------------------------------


def arrived(case: Case, chance: random.Random) -> tuple[list[Sent], dict[str, Key], dict[str, list]]:
    """Some beginning of each stream: its events, and what the streams promise."""
    lines = sent_items(case, chance)
    cut = {name: line[: chance.randint(0, len(line))] for name, line in lines.items()}
    frontiers = {name: line[-1][0] if line else BEGINNING for name, line in cut.items()}
    for name, line in lines.items():
        if len(cut[name]) == len(line) and chance.random() < 0.5:
            frontiers[name] = END
    return [sent for line in cut.values() for _, sent in line if sent is not None], frontiers, cut


def known_keys(case: Case, there: list[Sent], chance: random.Random) -> dict[Share, list[Key] | None]:
    """The keys of some of the shares."""
    shares = [share for worker in case.plan.workers for share in worker.shares]
    return {
        share: sorted(sent.key for sent in there if sent.share == share) if chance.random() < 0.6 else None
        for share in shares
        if chance.random() < 0.9
    }


@lawful
@given(cases(), seeds)
def test_bounds_are_the_greatest_ones_at_which_no_rival_leaves_anything_over(case: Case, seed: int) -> None:
    chance = random.Random(seed)
    there, frontiers, _ = arrived(case, chance)
    keys = known_keys(case, there, chance)

    assert release_bounds(case.plan, frontiers, keys) == slow_bounds(case.plan, frontiers, keys)


@lawful
@given(cases(), seeds)
def test_what_bounds_release_overtakes_nothing_that_it_depends_on(case: Case, seed: int) -> None:
    chance = random.Random(seed)
    there, frontiers, _ = arrived(case, chance)
    everything = [s for line in sent_items(case, random.Random(seed)).values() for _, s in line if s is not None]

    bounds = release_bounds(case.plan, frontiers, known_keys(case, there, chance))

    released = {sent for sent in there if sent.key < bounds[sent.share]}
    for later in released:
        for earlier in everything:
            if earlier.before(later) and dependent(case.program, earlier.share, later.share):
                assert earlier in released


@lawful
@given(cases(), seeds)
def test_what_bounds_release_every_mailbox_releases_too(case: Case, seed: int) -> None:
    chance = random.Random(seed)
    there, frontiers, cut = arrived(case, chance)
    bounds = release_bounds(case.plan, frontiers, known_keys(case, there, chance))

    for worker in case.plan.workers:
        mine, box, released = above_and_own(case.plan, worker), Mailbox(case.plan, worker), set()
        for name, line in cut.items():
            for key, sent in line:
                if sent is not None and sent.share in mine:
                    box.put(sent)
                elif name in box.streams:
                    box.advance(name, key)
            if name in box.streams:
                box.advance(name, frontiers[name])
        while box.ready:
            released.add(box.release(next(iter(box.ready))))

        assert {sent for sent in there if sent.share in mine and sent.key < bounds[sent.share]} <= released


@lawful
@given(cases(), seeds)
def test_when_all_streams_have_ended_bounds_release_everything(case: Case, seed: int) -> None:
    there = [sent for line in sent_items(case, random.Random(seed)).values() for _, sent in line if sent is not None]
    keys = known_keys(case, there, random.Random(seed))

    bounds = release_bounds(case.plan, dict.fromkeys(case.streams, END), keys)

    assert all(bound == END for bound in bounds.values())


# -- Theorem 4.13 ------------------------------------------------------------------------------------------------------


@lawful
@given(cases(), st.none() | seeds)
def test_theorem_4_13_every_run_of_every_plan_gives_the_sequential_outputs(case: Case, seed: int | None) -> None:
    ran = run_plan(case.plan, case.streams, seed=seed)

    expected_state, expected = updated(case.program, in_order(case.program, case.streams))
    assert agree(expected, ran.outputs)
    assert case.program.same_state(ran.state, expected_state)


@lawful
@given(cases(), seeds)
def test_a_run_with_the_same_seed_is_the_same_run(case: Case, seed: int) -> None:
    assert run_plan(case.plan, case.streams, seed=seed) == run_plan(case.plan, case.streams, seed=seed)


@lawful
@given(cases(), st.integers(0, 6), seeds)
def test_a_run_can_be_cut_where_the_times_are(case: Case, cut: int, seed: int) -> None:
    one = {name: [item for item in items if item.time < cut] for name, items in case.streams.items()}
    other = {name: [item for item in items if item.time >= cut] for name, items in case.streams.items()}

    first = run_plan(case.plan, one, seed=seed)
    second = run_plan(case.plan, other, seed=seed, state=first.state) if first.state is not None else first

    assert agree(case.program.run(case.streams), [*first.outputs, *second.outputs])


def test_a_join_that_forgets_its_right_argument_breaks_theorem_4_13() -> None:
    values, barriers = InputStream("values", Value, lanes=2), InputStream("barriers", Barrier)
    program = ForgetfulWindows()
    leaves = [Worker("part", [share]) for share in values.shares]
    plan = Plan(program, [values, barriers], Worker("whole", barriers.shares, *leaves))
    streams = {"values": [Value(1, 1), Value(2, 2), Value(3, 3)], "barriers": [Barrier(3)]}

    broken = [seed for seed in range(20) if not agree(program.run(streams), run_plan(plan, streams, seed=seed).outputs)]

    assert len(broken) > 10


def test_in_many_of_these_cases_states_are_joined_and_something_comes_out() -> None:
    telling = []

    @settings(lawful, max_examples=100, derandomize=True, database=None)
    @given(cases(), seeds)
    def look(case: Case, seed: int) -> None:
        ran = run_plan(case.plan, case.streams, seed=seed)
        telling.append(bool(ran.joins > 1 and len(ran.outputs) > 1 and case.plan.share_at_leaves > 0.3))

    look()

    assert sum(telling) > 10
