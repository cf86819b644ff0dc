"""Generators of streams, and the laws of the temporal operators on them."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from datetime import date, datetime, timedelta
from typing import Annotated

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from streamtight.errors import SourceError
from streamtight.properties import temporal
from streamtight.source import gen
from streamtight.stream.event import Event, Kind

A = Kind("A", n=int)
B = Kind("B", n=int)
Reading = Kind("Reading", sensor=int, at=datetime, value=float | None)
Note = Kind("Note", text=str)
A_BATCH, B_BATCH = gen.batch(A, size=(1, 3)), gen.batch(B, size=2)
QUICK = settings(database=None, deadline=None, phases=(Phase.generate, Phase.shrink), max_examples=500)
NOON = datetime(2024, 1, 15, 12)
MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)


def has(kind):
    return temporal.now(lambda batch: any(record.kind is kind for record in batch), name=kind.name)


def smallest(generator, test, seed=0):
    return find(generator.strategy, test, settings=QUICK, random=random.Random(seed))


def shape(stream):
    """The kinds of each batch, as a word of sets of letters."""
    return ["".join(sorted({record.kind.name for record in batch})) for batch in stream]


def shapes(generator, count=80, seed=1):
    return {" ".join(name or "-" for name in shape(stream)) for stream in generator.examples(count, seed=seed)}


def records(stream):
    return [record for batch in stream for record in batch]


# -- shapes of batch generators --------------------------------------------------------------------------------------


def test_now_is_one_batch():
    assert shapes(gen.now(A_BATCH)) == {"A"}


def test_next_comes_after_empty_batches():
    assert shapes(gen.next(A_BATCH)) == {"- A"}
    assert shapes(gen.next(gen.now(A_BATCH), 3)) == {"- - - A"}
    assert shapes(gen.next(A_BATCH, n=0)) == {"A"}


def test_always_has_exactly_so_many_batches():
    assert shapes(gen.always(A_BATCH, during=4)) == {"A A A A"}
    assert shapes(gen.always(A_BATCH)) == {" ".join("A" * 10)}


def test_eventually_ends_with_its_witness_and_all_before_is_empty():
    assert shapes(gen.eventually(A_BATCH, within=3)) == {"A", "- A", "- - A"}


def test_until_ends_with_its_witness_at_any_place_up_to_the_timeout():
    assert shapes(gen.until(A_BATCH, B_BATCH, within=3)) == {"B", "A B", "A A B"}


def test_release_is_weak():
    """Half the time it is never released; else the left comes with the last right."""
    counted = Counter(" ".join(shape(s)) for s in gen.release(A_BATCH, B_BATCH, within=3).examples(400))

    assert set(counted) == {"B B B", "AB", "B AB", "B B AB"}
    assert 120 < counted["B B B"] < 280


def test_witnesses_are_placed_evenly():
    counted = Counter(map(len, gen.until(A_BATCH, B_BATCH, within=5).examples(500)))

    assert min(counted.values()) > 40


def test_streams_have_lengths_in_their_range():
    assert {len(stream) for stream in gen.streams(A_BATCH, length=(2, 4)).examples(100)} == {2, 3, 4}
    assert {len(stream) for stream in gen.streams(A_BATCH, length=3).examples(20)} == {3}
    assert {len(stream) for stream in gen.streams(A_BATCH).examples(300)} == set(range(1, 11))


def test_exactly_the_given_batches_come():
    assert gen.stream([[A(1), B(2)], [], [A(3)]]).examples() == [((A(1), B(2)), (), (A(3),))]
    assert gen.stream([[]]).examples() == [((),)]


# -- operators on streams --------------------------------------------------------------------------------------------


def test_one_stream_comes_after_the_other():
    assert shapes(gen.until(A_BATCH, B_BATCH, within=2) + gen.always(A_BATCH, during=2)) == {"B A A", "A B A A"}


def test_the_shorter_stream_of_a_union_goes_on_with_empty_batches():
    both = gen.always(A_BATCH, during=3) & gen.next(B_BATCH)

    assert shapes(both) == {"A AB A"}
    assert shapes(gen.now(B_BATCH) & gen.next(A_BATCH, 2)) == {"B - A"}


def test_a_union_has_the_records_of_both_batch_by_batch():
    left, right = gen.always(gen.batch(A, size=3), during=2), gen.always(gen.batch(B, size=2), during=2)

    for stream in (left & right).examples(20):
        assert [[record.kind for record in batch] for batch in stream] == [[A, A, A, B, B]] * 2


def test_a_repetition_draws_anew_each_time():
    thrice = gen.until(A_BATCH, B_BATCH, within=2) * 3

    assert shapes(thrice) == {" ".join((x, y, z)) for x in ("B", "A B") for y in ("B", "A B") for z in ("B", "A B")}


def test_a_choice_of_batches_and_streams_is_one_of_streams():
    assert shapes(A_BATCH | gen.next(B_BATCH)) == {"A", "- B"}
    assert shapes(gen.next(B_BATCH) | A_BATCH) == {"A", "- B"}
    assert shapes(gen.one_of(gen.now(A_BATCH), B_BATCH, gen.next(A_BATCH))) == {"A", "B", "- A"}


def test_always_of_a_stream_begins_one_at_each_batch():
    pair = gen.now(A_BATCH) + gen.now(B_BATCH)

    assert shapes(gen.always(pair, during=3)) == {"A AB AB B"}


def test_eventually_of_a_stream_begins_one_somewhere():
    assert shapes(gen.eventually(gen.always(A_BATCH, during=2), within=2)) == {"A A", "- A A"}


def test_until_of_streams_begins_a_left_at_each_batch_before_the_right():
    assert shapes(gen.until(gen.next(A_BATCH), gen.now(B_BATCH), within=3)) == {"B", "- AB", "- A AB"}
    assert shapes(gen.until(gen.next(A_BATCH, 2), B_BATCH, within=2)) == {"B", "- B A"}


def test_release_of_streams_begins_a_right_at_each_batch():
    assert shapes(gen.release(B_BATCH, gen.next(A_BATCH), within=2)) == {"- A A", "B A", "- AB A"}


def test_where_leaves_only_streams_that_pass():
    long = gen.streams(A_BATCH, length=(1, 6)).where(lambda stream: len(stream) > 3)

    assert {len(stream) for stream in long.examples(50)} == {4, 5, 6}


def test_the_kinds_are_those_that_may_come():
    stream = gen.until(A_BATCH, B_BATCH) & gen.always(gen.batch(Reading) | gen.empty) + gen.now(A_BATCH)

    assert stream.kinds == (A, B, Reading)
    assert gen.next(A_BATCH).kinds == gen.eventually(A_BATCH).kinds == (gen.release(A_BATCH, A_BATCH) * 2).kinds == (A,)
    assert gen.stream([[], [B(1)]]).kinds == (B,)


# -- Section 3.2: the words of an operator satisfy the formula of the same name ----------------------------------------

FORMULAS = [
    (gen.now(A_BATCH), has(A)),
    (gen.next(A_BATCH, 2), temporal.next_(has(A), 2)),
    (gen.always(A_BATCH, during=4), temporal.always(has(A), during=4)),
    (gen.eventually(A_BATCH, within=4), temporal.eventually(has(A), within=4)),
    (gen.until(A_BATCH, B_BATCH, within=4), temporal.until(has(A), has(B), within=4)),
    (gen.release(A_BATCH, B_BATCH, within=4), temporal.release(has(A), has(B), within=4)),
]


@pytest.mark.parametrize(("generator", "formula"), FORMULAS, ids=lambda x: str(x)[:30])
def test_generated_words_satisfy_the_formula_and_no_shorter_one_does(generator, formula):
    for stream in generator.examples(60):
        assert formula.evaluate(stream) is True
        assert formula.evaluate(stream[:-1]) is None


@st.composite
def matching(draw, depth=3):
    """A generator and the formula that its words must satisfy. All atoms are of the form: some record is ..."""
    kind = draw(st.sampled_from([A, B]))
    if depth == 0:
        return gen.batch(kind, size=draw(st.sampled_from([1, (1, 2)]))), has(kind)
    within = draw(st.integers(1, 3))
    left, f = draw(matching(depth=depth - 1))
    right, g = draw(matching(depth=draw(st.integers(0, depth - 1))))
    as_stream = left if isinstance(left, gen.StreamGenerator) else gen.now(left)
    other = right if isinstance(right, gen.StreamGenerator) else gen.now(right)
    return draw(
        st.sampled_from(
            [
                (gen.next(left, within), temporal.next_(f, within)),
                (gen.always(left, during=within), temporal.always(f, during=within)),
                (gen.eventually(left, within=within), temporal.eventually(f, within=within)),
                (gen.until(left, right, within=within), temporal.until(f, g, within=within)),
                (gen.release(left, right, within=within), temporal.release(f, g, within=within)),
                (as_stream & other, f & g),
                (as_stream | other, f | g),
                (as_stream + other, f),
            ]
        )
    )


@settings(max_examples=60, deadline=None)
@given(matching(), st.data())
def test_words_of_nested_operators_satisfy_the_nested_formula(pair, data):
    generator, formula = pair

    stream = data.draw(generator.strategy)

    assert formula.evaluate(stream) is True


# -- shrinking keeps the shape ---------------------------------------------------------------------------------------


def test_a_small_until_still_ends_with_its_witness():
    stream = smallest(gen.until(A_BATCH, B_BATCH, within=8), lambda s: len(s) >= 4)

    assert stream == ((A(0),), (A(0),), (A(0),), (B(0), B(0)))


def test_a_small_always_keeps_its_batches_and_loses_its_records():
    stream = smallest(gen.always(gen.batch(A, size=(0, 5)), during=6), lambda s: any(r.n > 3 for r in s[2]))

    assert stream == ((), (), (A(4),), (), (), ())


def test_a_small_eventually_keeps_its_witness():
    assert smallest(gen.eventually(A_BATCH, within=8), lambda s: True) == ((A(0),),)
    assert smallest(gen.eventually(A_BATCH, within=8), lambda s: len(s) > 2) == ((), (), (A(0),))


def test_a_small_release_is_released_or_as_long_as_the_timeout():
    stream = gen.release(A_BATCH, gen.batch(B, size=1), within=5)

    assert smallest(stream, lambda s: True) == ((B(0), A(0)),)
    assert smallest(stream, lambda s: all(r.kind is B for r in records(s))) == ((B(0),),) * 5


@pytest.mark.parametrize("seed", range(3))
def test_a_small_stream_has_only_the_batches_and_records_that_matter(seed):
    """The shape is: good users, then a bad one, then any; what fails is that a bad one is taken for good later."""
    user = Kind("User", id=int, good=bool)
    good, bad = gen.batch(user, good=[True]), gen.batch(user, size=1, good=[False])
    users = gen.until(good, good + bad, within=10) + gen.always(good | bad, during=4)

    def comes_again(stream):
        banned = set()
        for batch in stream:
            if any(u.good and u.id in banned for u in batch):
                return True
            banned |= {u.id for u in batch if not u.good and u.id > 2}
        return False

    small = smallest(users, comes_again, seed)

    assert list(map(len, small)) == [2, 1, 1, 1, 1]
    assert {u.id for u in records(small)} <= {0, 3, 4}


@pytest.mark.parametrize("seed", range(3))
def test_a_batch_in_the_middle_can_be_left_out(seed):
    stream = smallest(gen.until(A_BATCH, B_BATCH, within=9), lambda s: any(r.n == 5 for b in s[:-1] for r in b), seed)

    assert stream == ((A(5),), (B(0), B(0)))


# -- times -----------------------------------------------------------------------------------------------------------

READINGS = gen.streams(gen.batch(Reading), length=(3, 6))


def test_records_come_in_order_within_the_time_of_their_batch():
    start, every = datetime(2023, 5, 1), timedelta(minutes=10)

    for stream in READINGS.timed("at", start=start, every=every).examples(50):
        times = [record.at for record in records(stream)]
        assert times == sorted(times)
        for number, batch in enumerate(stream):
            assert all(start + number * every <= r.at < start + (number + 1) * every for r in batch)


def test_records_are_out_of_order_by_as_much_as_was_said():
    before = []
    for stream in READINGS.timed("at", out_of_order=30 * SECOND).examples(100):
        for number, batch in enumerate(stream):
            begin = NOON + number * MINUTE
            assert all(begin - 30 * SECOND <= record.at < begin + MINUTE for record in batch)
            before += [begin - record.at for record in batch]

    assert max(before) > 20 * SECOND


def test_streams_are_out_of_order_within_batches_and_between_them():
    streams = READINGS.timed("at", out_of_order=2 * MINUTE).examples(100)
    ordered = [all(b[i].at <= b[i + 1].at for i in range(len(b) - 1)) for s in streams for b in s if len(b) > 1]
    across = [min(r.at for r in later) < max(r.at for r in b) for s in streams for b, later in zip(s, s[1:])]  # noqa: B905, RUF007

    assert 0.2 < sum(ordered) / len(ordered) < 0.8
    assert 0.2 < sum(across) / len(across) < 0.95


@pytest.mark.parametrize("share", [0.1, 0.5, 0.01])
def test_a_share_of_the_records_is_late_by_more_than_was_said(share):
    late_by = 10 * MINUTE
    readings = gen.always(gen.batch(Reading, size=10), during=6).timed("at", late=share, late_by=late_by)

    ages = [
        NOON + number * MINUTE - record.at
        for stream in readings.examples(100)
        for number, batch in enumerate(stream)
        for record in batch
    ]

    late = [age for age in ages if age > timedelta(0)]
    assert all(late_by < age <= 2 * late_by for age in late)
    assert 0.6 * share < len(late) / len(ages) < 1.6 * share


def test_times_go_on_through_what_comes_one_after_the_other():
    stream = (gen.always(gen.batch(Reading), during=2) + gen.now(gen.batch(Reading))).timed("at")

    assert [record.at for record in smallest(stream, lambda s: True)[2]] == [NOON + 2 * MINUTE]


def test_only_records_with_the_field_get_a_time():
    mixed = gen.streams(gen.batch([Reading, Note], size=4), length=2).timed("at")

    found = [record for stream in mixed.examples(20) for record in records(stream)]

    assert {record.kind for record in found} == {Reading, Note}


@pytest.mark.parametrize("declared", [datetime, datetime | None, Annotated[datetime, "timestamp_ntz"], object])
def test_every_field_that_holds_a_datetime_can_be_timed(declared):
    stream = gen.now(gen.batch(Kind("T", at=declared), size=1)).timed("at")

    assert {record.at for (batch,) in stream.examples(20) for record in batch} <= {NOON + n * SECOND for n in range(60)}


def test_a_small_timed_stream_has_round_times_and_only_what_matters():
    stream = READINGS.timed("at", out_of_order=30 * SECOND, late=0.2, late_by=5 * MINUTE)

    small = smallest(stream, lambda s: any(record.at < NOON - MINUTE for record in s[1]))

    assert [len(batch) for batch in small] == [1, 1, 1]
    assert [batch[0].at for batch in small] == [NOON, NOON + MINUTE - 5 * MINUTE - 5 * SECOND, NOON + 2 * MINUTE]


# -- duplicates and nulls --------------------------------------------------------------------------------------------


def test_a_share_of_the_records_comes_again_in_the_same_or_a_later_batch():
    unique = gen.elements_of([A(n) for n in range(2**12)], size=5)
    again, apart = 0, Counter()

    for stream in gen.always(unique, during=8).duplicated(0.2, within=3).examples(60):
        first = {}
        for number, batch in enumerate(stream):
            for record in batch[:5]:
                first.setdefault(record, number)
            for record in batch[5:]:
                again += 1
                apart[number - first[record]] += 1

    assert 0.15 < again / (60 * 40) < 0.25
    assert set(apart) == {0, 1, 2}


def test_what_comes_again_is_the_same_record_with_the_same_time():
    readings = gen.always(gen.batch(Reading, size=1), during=6).timed("at").duplicated(1.0, within=6)

    for stream in readings.examples(20):
        counted = Counter(records(stream))
        assert counted.total() == 12
        assert all(count % 2 == 0 for count in counted.values())


def test_no_record_comes_again_if_the_share_is_zero_and_every_one_if_it_is_one():
    stream = gen.always(B_BATCH, during=2)

    assert {tuple(map(len, s)) for s in stream.duplicated(0).examples(20)} == {(2, 2)}
    assert {tuple(map(len, s)) for s in stream.duplicated(1, within=1).examples(20)} == {(4, 4)}


def test_a_share_of_the_records_has_a_null():
    readings = gen.always(gen.batch(Reading, size=10, value=[1.0, 2.0]), during=5).with_nulls("value", 0.3)

    values = Counter(record.value is None for stream in readings.examples(60) for record in records(stream))

    assert 0.25 < values[True] / values.total() < 0.35


def test_changes_can_be_combined_in_any_order():
    changed = READINGS.duplicated(0.3).with_nulls("value", 0.5).timed("at", late=0.5, late_by=MINUTE).duplicated(0.1)

    found = changed.examples(50)

    assert any(record.value is None for stream in found for record in records(stream))
    assert any(record.at < NOON for stream in found for record in records(stream))
    assert smallest(changed, lambda s: True) == tuple((Reading(0, NOON + n * MINUTE, 0.0),) for n in range(3))


def test_given_streams_and_strategies_can_be_changed_too():
    listed = gen.stream([[Reading(1, NOON, 1.0)] * 5] * 4).with_nulls("value", 0.5)
    drawn = gen.stream(st.lists(st.just([Reading(1, NOON, 1.0)] * 2), min_size=3, max_size=5)).timed("at")
    batch = gen.now(gen.batch_of(st.just([Reading(1, NOON, 1.0)] * 3))).with_nulls("value", 0.5)

    assert {record.value for stream in listed.examples(20) for record in records(stream)} == {None, 1.0}
    assert all(r.at >= NOON + n * MINUTE for s in drawn.examples(20) for n, b in enumerate(s) for r in b)
    assert {sum(r.value is None for r in records(stream)) for stream in batch.examples(60)} == {0, 1, 2, 3}


# -- strategies ------------------------------------------------------------------------------------------------------


def test_a_strategy_of_lists_of_batches_gives_streams():
    lists = st.lists(st.lists(st.builds(A, st.integers(0, 5)), max_size=2), min_size=1, max_size=3)

    stream = gen.stream(lists)

    assert {len(s) for s in stream.examples(50)} == {1, 2, 3}
    assert stream.kinds == (A,)
    assert all(isinstance(record, Event) for s in stream.examples(5) for record in records(s))


def test_a_stream_can_be_changed_by_the_users_own_strategies():
    doubled = gen.stream(gen.always(A_BATCH, during=2).strategy.map(lambda s: [batch * 2 for batch in s]))

    assert all(len(batch) % 2 == 0 for stream in doubled.examples(20) for batch in stream)


@settings(max_examples=10, deadline=None)
@given(gen.until(A_BATCH, B_BATCH, within=3).strategy, st.integers())
def test_the_strategy_can_be_given_to_a_test(stream, number):
    assert shape(stream)[-1] == "B"


# -- seeds -----------------------------------------------------------------------------------------------------------

SCRIPT = """
from datetime import timedelta
from hypothesis import strategies as st
from streamtight.source import gen
from streamtight.stream.event import Kind
A = Kind("A", n=int, s=str, d=dict[str, int], o=object)
B = Kind("B", n=int, x=float | None)
good = gen.batch(A, n=range(10**9)) | gen.batch([B, A], where=lambda e: e.n > 1)
stream = gen.until(good, gen.batch(B, n=st.integers(), x=st.floats()), within=4) & gen.release(good, gen.empty)
stream = (stream * 2 + gen.stream(st.lists(st.lists(st.builds(B, st.integers(), st.none())), min_size=1)))
print(stream.kinds, stream.with_nulls("x", 0.2).duplicated(0.3).examples(20, seed=5))
"""


def test_every_process_gets_the_same_streams(tmp_path):
    printed = []
    for hash_seed in "12":
        finished = subprocess.run(
            [sys.executable, "-W", "error", "-c", SCRIPT],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONIOENCODING": "utf-8", "XDG_CACHE_HOME": "cache"},
        )
        printed.append(finished.stdout)

    assert printed[0] == printed[1]
    assert printed[0].count("B(") > 100


def test_one_seed_gives_the_same_streams_and_another_one_others():
    def make():
        return gen.until(A_BATCH, B_BATCH) + gen.always(gen.batch(A))

    assert make().examples(20, seed=3) == make().examples(20, seed=3)
    assert make().examples(20, seed=3) != make().examples(20, seed=4)


def test_streams_do_not_depend_on_the_global_random_state_and_leave_it_alone():
    random.seed(1)
    first = READINGS.timed("at").examples(20, seed=3)
    random.seed(2)
    expected = random.random()
    random.seed(2)

    second = READINGS.timed("at").examples(20, seed=3)

    assert first == second
    assert random.random() == expected


def test_values_of_a_stream_can_be_hashed():
    assert len(set(gen.streams(A_BATCH).examples(20))) > 10


# -- texts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("generator", "text"),
    [
        (gen.now(A_BATCH), "now(batch(A, size=(1, 3)))"),
        (gen.next(gen.empty), "next(empty)"),
        (gen.next(gen.empty, 2), "next(empty, n=2)"),
        (gen.until(gen.batch(A), gen.batch(B), within=3), "until(batch(A), batch(B), within=3)"),
        (gen.release(gen.batch(A), gen.empty), "release(batch(A), empty, within=10)"),
        (gen.always(gen.batch(A) | gen.empty, during=3), "always(batch(A) | empty, during=3)"),
        (gen.eventually(gen.batch(A) + gen.empty), "eventually(batch(A) + empty, within=10)"),
        (gen.streams(gen.batch(A), length=5), "streams(batch(A), length=5)"),
        (gen.stream([[A(1)], []]), "stream([[A(n=1)], []])"),
        ((gen.now(gen.empty) + gen.now(gen.empty)) * 3, "(now(empty) + now(empty)) * 3"),
        (gen.now(gen.empty) & gen.now(gen.batch(A)) | gen.empty, "(now(empty) & now(batch(A))) | empty"),
        (gen.now(gen.batch(Reading)).timed("at"), "now(batch(Reading)).timed('at')"),
        (
            gen.streams(gen.batch(Reading)).timed("at", late=0.1, late_by=MINUTE, every=SECOND),
            "streams(batch(Reading), length=(1, 10))"
            ".timed('at', every=timedelta(seconds=1), late=0.1, late_by=timedelta(seconds=60))",
        ),
        ((gen.now(gen.batch(A)) * 2).duplicated(0.1), "(now(batch(A)) * 2).duplicated(0.1, within=10)"),
        (gen.now(gen.batch(Reading)).with_nulls("value", 0.5), "now(batch(Reading)).with_nulls('value', 0.5)"),
        (gen.now(gen.empty).where(any), "now(empty).where(...)"),
    ],
)
def test_a_generator_reads_as_it_was_written(generator, text):
    assert repr(generator) == text


# -- wrong questions -------------------------------------------------------------------------------------------------

NOW = gen.now(gen.batch(Reading))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: gen.always(A_BATCH, during=0), r"gen.always\(during=...\): needed a number of batches from 1; came 0"),
        (lambda: gen.until(A_BATCH, B_BATCH, within=-1), r"gen.until\(within=...\): .*came -1. Try: within=10"),
        (lambda: gen.eventually(A_BATCH, within=MINUTE), r"gen.eventually\(within=...\): .*came datetime.timedelta"),
        (lambda: gen.release(A_BATCH, B_BATCH, within=True), r"gen.release\(within=...\): .*came True"),
        (lambda: gen.eventually(A_BATCH, within=None), r"gen.eventually\(within=...\): .*came None"),
        (lambda: gen.next(A_BATCH, -1), r"gen.next\(n=...\): needed a number of batches from 0; came -1"),
        (
            lambda: gen.always(A),
            r"gen.always\(...\): needed a generator of batches or of streams; .*Try: gen.batch\(A\)",
        ),
        (lambda: gen.until([A(1)], B_BATCH), r"gen.until\(left, ...\): .*Try: gen.batch_of\(\[...\]\)"),
        (lambda: gen.until(A_BATCH, st.none()), r"gen.until\(..., right\): .*Try: gen.batch_of\(strategy\)"),
        (lambda: gen.now(NOW), r"gen.now\(...\): needed a generator of batches; came now\(batch\(Reading\)\)"),
        (lambda: gen.one_of(A_BATCH, A), r"needed a generator of batches.*Try: gen.batch\(A\)"),
        (lambda: gen.streams(A), r"gen.streams\(...\): needed a generator of batches; .*Try: gen.batch\(A\)"),
        (lambda: gen.streams(NOW), r"gen.streams\(...\): needed a generator of batches; came now"),
        (lambda: gen.streams(A_BATCH, length=0), r"gen.streams\(length=...\): needed a number from 1.*came 0"),
        (lambda: gen.streams(A_BATCH, length=(0, 3)), r"gen.streams\(length=...\): .*came \(0, 3\)"),
        (lambda: gen.streams(A_BATCH, length=(3, 2)), r"gen.streams\(length=...\): .*came \(3, 2\)"),
        (lambda: gen.stream([]), r"gen.stream\(...\): needed a batch or more; came \[\]. Try: \[\[\]\]"),
        (lambda: gen.stream([A(1)]), r"gen.stream\(...\): needed a list of events; came A\(n=1\). Try: \[A\(n=1\)\]"),
        (lambda: gen.stream([[1]]), r"gen.stream\(...\): needed a list of events; came 1"),
        (lambda: gen.stream(A), r"gen.stream\(...\): needed a list of batches"),
        (lambda: gen.stream(st.integers()), r"gen.stream\(...\): needed a list of batches.*came 0"),
        (lambda: gen.stream(st.just([])), r"gen.stream\(...\): needed a batch or more"),
        (lambda: gen.stream(st.just([[3]])), r"gen.stream\(...\): needed a list of events; came 3"),
        (lambda: NOW + A_BATCH, r"stream \+ ...: needed a generator of streams; .*Try: gen.now\(batch\)"),
        (lambda: NOW & A, r"stream & ...: needed a generator of streams; .*Try: gen.now\(gen.batch\(A\)\)"),
        (lambda: A_BATCH + NOW, r"batch \+ ...: needed a generator of batches; came now"),
        (lambda: NOW | 3, r"gen.one_of\(...\): needed a generator of batches or of streams; came 3"),
        (lambda: NOW * 0, r"stream \* ...: needed a number of batches from 1; came 0"),
        (lambda: NOW.where(3), r"stream.where\(...\): needed a function of a stream"),
        (lambda: NOW.where(lambda s: 1 / 0).examples(), r"stream.where\(...\): .*came ZeroDivisionError"),
        (lambda: NOW.where(lambda s: False).examples(), r"needed a strategy that gives values; came Unsatisfiable"),
        (lambda: NOW.timed("time"), r"timed\('time'\): needed a field of Reading; came 'time'.*one of sensor, at"),
        (lambda: NOW.timed("sensor"), r"timed\('sensor'\): needed a field that holds a datetime"),
        (
            lambda: gen.now(gen.batch(Kind("D", d=date))).timed("d"),
            r"timed\('d'\): needed a field that holds a datetime",
        ),
        (lambda: gen.now(gen.empty).timed("at"), r"timed\('at'\): needed a field of no kind"),
        (lambda: NOW.timed("at", start="noon"), r"timed\(start=...\): needed a datetime without a time zone"),
        (
            lambda: NOW.timed("at", start=NOON.astimezone()),
            r"timed\(start=...\): needed a datetime without a time zone",
        ),
        (lambda: NOW.timed("at", every=5), r"timed\(every=...\): needed a timedelta greater than 0; came 5"),
        (lambda: NOW.timed("at", every=0 * MINUTE), r"timed\(every=...\): needed a timedelta greater than 0"),
        (lambda: NOW.timed("at", out_of_order=-MINUTE), r"timed\(out_of_order=...\): needed a timedelta from 0"),
        (lambda: NOW.timed("at", late=2), r"timed\(late=2\): needed a share, from 0 to 1; came 2"),
        (lambda: NOW.timed("at", late=0.1), r"timed\(late_by=...\): needed how much older.*came None"),
        (lambda: NOW.timed("at", late=0.1, late_by=SECOND, out_of_order=MINUTE), r"timed\(late_by=...\): .*not less"),
        (
            lambda: NOW.with_nulls("sensor", 0.1),
            r"needed a field that admits None; .*Try: Kind\('Reading', sensor=... \| ",
        ),
        (lambda: NOW.with_nulls("values", 0.1), r"with_nulls\('values'\): needed a field of Reading; came 'values'"),
        (lambda: NOW.with_nulls("value", -0.1), r"with_nulls\('value', -0.1\): needed a share"),
        (lambda: NOW.duplicated(True), r"duplicated\(True\): needed a share"),
        (lambda: NOW.duplicated(0.1, within=0), r"duplicated\(within=...\): needed a number of batches from 1"),
    ],
)
def test_a_wrong_question_says_what_to_try(ask, message):
    with pytest.raises(SourceError, match=message):
        ask()


def test_a_strategy_that_sometimes_yields_no_batch_is_found_out():
    sometimes = st.integers(0, 255).map(lambda n: [] if n == 77 else [[A(n)]])

    with pytest.raises(SourceError, match=r"gen.stream\(...\): needed a batch or more"):
        gen.stream(sometimes).examples(250)


def test_the_names_of_gen_are_documented():
    assert all(getattr(gen, name).__doc__ for name in gen.__all__)
