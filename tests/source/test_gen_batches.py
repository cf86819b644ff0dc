"""Generators of batches."""

from __future__ import annotations

import math
import random
from collections import Counter
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from streamtight.errors import SourceError
from streamtight.source import gen
from streamtight.source.values import values_of
from streamtight.spark.rows import Table
from streamtight.stream.event import Kind

User = Kind("User", id=int, good=bool)
Ride = Kind("Ride", taxi=int, cents=int | None)
Tip = Kind("Tip", taxi=int, cents=int)
Everything = Kind(
    "Everything",
    i=int,
    f=float,
    s=str,
    b=bool,
    raw=bytes,
    day=date,
    at=datetime,
    took=timedelta,
    price=Decimal,
    small=Annotated[int, "smallint"] | None,
    nested=User,
    many=tuple[int | None, ...],
    named=dict[str, float],
    any=object,
)
QUICK = settings(database=None, deadline=None, phases=(Phase.generate, Phase.shrink), max_examples=500)


def records_of(batches, count=100, seed=1):
    return [record for batch in batches.examples(count, seed=seed) for record in batch]


def smallest(generator, test, seed=0):
    return find(generator.strategy, test, settings=QUICK, random=random.Random(seed))


# -- sizes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "lengths"), [(3, {3}), (1, {1}), (0, {0}), ((0, 2), {0, 1, 2}), ((4, 4), {4}), ([1, 2], {1, 2})]
)
def test_every_size_in_the_range_comes_and_no_other(size, lengths):
    batches = gen.batch(User, size=size)

    assert set(map(len, batches.examples(60))) == lengths


def test_a_batch_has_one_to_five_records_if_nothing_is_said():
    assert set(map(len, gen.batch(User).examples(200))) == {1, 2, 3, 4, 5}


def test_the_records_of_both_are_in_a_sum():
    both = gen.batch(User, size=(0, 3)) + gen.batch(Ride, size=2) + gen.empty

    for batch in both.examples(50):
        kinds = [record.kind for record in batch]
        assert kinds == [User] * (len(batch) - 2) + [Ride] * 2
    assert both.kinds == (User, Ride)


def test_a_choice_gives_a_batch_of_one_or_the_other():
    either = gen.batch(User, size=1) | gen.batch(Ride, size=2)

    kinds = {tuple(record.kind for record in batch) for batch in either.examples(50)}

    assert kinds == {(User,), (Ride, Ride)}
    assert either.kinds == (User, Ride)


def test_one_of_many_gives_each():
    sizes = gen.one_of(*(gen.batch(User, size=size) for size in range(4)))

    assert set(map(len, sizes.examples(100))) == {0, 1, 2, 3}


def test_the_empty_batch_is_empty():
    assert gen.empty.examples() == [()]
    assert gen.empty.kinds == ()


# -- values ----------------------------------------------------------------------------------------------------------


def test_a_field_gets_the_values_that_it_is_given():
    batches = gen.batch(Everything, i=[7, 8], f=range(3), s=("x",), price=[Decimal("1.5")], b=st.just(True))

    records = records_of(batches)

    assert {record.i for record in records} == {7, 8}
    assert {record.f for record in records} == {0.0, 1.0, 2.0}
    assert {record.s for record in records} == {"x"}
    assert {record.b for record in records} == {True}


def test_a_field_that_is_given_nothing_has_the_values_of_its_type():
    ids = {record.id for record in records_of(gen.batch(User), 500)}
    known = values_of(int)

    assert ids == {*known.common, *known.rare}


def test_most_values_are_common_ones():
    counted = Counter(record.id for record in records_of(gen.batch(User, size=10), 200))

    assert sum(counted[value] for value in values_of(int).common) > 0.85 * counted.total()


def test_the_keys_of_different_generators_meet():
    """Also if there are very many: a job that forgets what it has seen is else never found out."""
    users = gen.batch(User, size=3, id=range(10**9), good=[True]) + gen.batch(
        User, size=3, id=range(10**9), good=[False]
    )

    met = [{r.id for r in batch if r.good} & {r.id for r in batch if not r.good} for batch in users.examples(100)]

    assert sum(map(bool, met)) > 40
    assert sum(map(bool, met)) < 90


def test_the_ends_of_the_types_come_when_they_are_asked_for():
    numbers = Kind("Numbers", i=int, f=float)
    usual = records_of(gen.batch(numbers, size=10))

    assert math.inf in {record.f for record in usual}
    assert 2**63 - 1 not in {record.i for record in usual}
    assert 2**63 - 1 in {record.i for record in records_of(gen.batch(numbers, size=10, extremes=True))}


def test_every_type_of_field_is_generated_and_fits_spark():
    sparkless = Kind("E", **{name: declared for name, declared in Everything.fields.items() if name != "any"})
    table = Table([sparkless])

    for record in records_of(gen.batch(sparkless, extremes=True), 100):
        table.to_row(record)


def test_a_kind_without_fields_has_records():
    Tick = Kind("Tick")  # noqa: N806

    assert records_of(gen.batch(Tick, size=2), 3) == [Tick(), Tick()]


def test_fields_take_values_in_every_kind_that_has_them():
    records = records_of(gen.batch([User, Ride, Tip], taxi=[1, 2], cents=[100]))

    assert {record.kind for record in records} == {User, Ride, Tip}
    assert {record.taxi for record in records if record.kind is not User} == {1, 2}


def test_some_streams_have_few_values_and_some_have_many():
    made = gen.batch(User, size=30, id=range(10**12)).examples(200)
    distinct = [len({record.id for record in batch}) for batch in made]

    assert {1, 2, 3, 4, 5, 30} <= set(distinct)
    assert sum(count <= 5 for count in distinct) > 80
    assert sum(count >= 20 for count in distinct) > 50


def test_the_values_of_a_long_range_come_evenly():
    made = gen.batch(User, size=20, id=range(10**12)).examples(100)
    ids = [record.id for batch in made if len({r.id for r in batch}) > 5 for record in batch]

    assert 0.4 < sum(id_ >= 5 * 10**11 for id_ in ids) / len(ids) < 0.6


@pytest.mark.parametrize("length", [2, 128, 129, 300])
def test_every_value_of_a_list_can_come(length):
    seen = {record.id for record in records_of(gen.batch(User, size=100, id=range(length)), 70)}

    assert seen == set(range(length))


def test_a_strategy_gives_a_field_its_values():
    batches = gen.batch(Ride, taxi=st.integers(100, 9999).filter(lambda n: n % 2), cents=st.none())

    records = records_of(batches)

    assert all(100 <= record.taxi <= 9999 and record.taxi % 2 for record in records)
    assert {record.cents for record in records} == {None}


def test_null_is_a_value_of_a_field_that_admits_it_and_of_no_other():
    records = records_of(gen.batch([Ride, Tip]), 300)

    assert None in {record.cents for record in records if record.kind is Ride}
    assert None not in {record.cents for record in records if record.kind is Tip}


# -- where -----------------------------------------------------------------------------------------------------------


def test_only_records_that_satisfy_where_come():
    batches = gen.batch([User, Ride], size=(2, 4), where=lambda r: r.kind is Ride and r.taxi > 2)

    made = batches.examples(100)

    assert all(record.kind is Ride and record.taxi > 2 for batch in made for record in batch)
    assert set(map(len, made)) == {2, 3, 4}


def test_a_seldom_satisfied_where_is_satisfied_in_large_batches():
    batches = gen.batch(Everything, size=30, where=lambda r: r.i == 7 and r.s == "")

    assert {(record.i, record.s) for record in records_of(batches, 10)} == {(7, "")}


def test_where_holds_of_values_of_strategies_too():
    batches = gen.batch(Ride, taxi=st.integers(0, 9), where=lambda r: r.taxi != 3)

    assert {record.taxi for record in records_of(batches, 200)} == set(range(10)) - {3}


def test_where_leaves_something_of_large_batches_of_strategies():
    batches = gen.batch(Ride, size=30, taxi=st.integers(0, 9), where=lambda r: r.taxi == 3)

    assert {record.taxi for record in records_of(batches, 5)} == {3}


def test_a_where_on_a_strategy_is_satisfied_by_the_simplest():
    batches = gen.batch(Ride, size=1, taxi=st.integers(0, 9), where=lambda r: r.taxi > 3)

    assert smallest(batches, lambda batch: True) == (Ride(4, 0),)


def test_the_smallest_record_that_satisfies_where_is_the_simplest():
    batches = gen.batch(User, size=2, where=lambda user: user.id > 4 or user.good)

    assert smallest(batches, lambda batch: True) == (User(0, True), User(0, True))


# -- shrinking -------------------------------------------------------------------------------------------------------


def test_the_smallest_batch_has_the_fewest_and_simplest_records():
    batches = gen.batch(Ride, size=(2, 8))

    assert smallest(batches, lambda batch: True) == (Ride(0, 0), Ride(0, 0))
    assert smallest(batches, lambda batch: any(r.taxi > 4 for r in batch)) == (Ride(0, 0), Ride(5, 0))


def test_what_is_odd_in_a_small_batch_has_to_be():
    texts = gen.batch(Kind("Text", text=str | None, x=float), size=1)

    (record,) = smallest(texts, lambda batch: True)

    assert (record.text, record.x) == ("a", 0.0)


def test_what_is_null_in_a_small_batch_has_to_be():
    batches = gen.batch(Ride, size=(1, 8))

    assert smallest(batches, lambda batch: any(r.cents is None for r in batch)) == (Ride(0, None),)


@pytest.mark.parametrize("seed", range(3))
def test_a_key_that_two_records_share_is_made_small_in_both(seed):
    def joins(batch):
        return any(a.id == b.id and a.good and not b.good for a in batch for b in batch)

    small = smallest(gen.batch(User, size=(0, 9)), joins, seed)

    assert sorted(small) == [User(0, False), User(0, True)]


def test_given_values_shrink_to_the_simplest_and_not_to_the_first():
    assert smallest(gen.batch(User, size=1, id=[30, 2, 10]), lambda batch: True) == (User(2, False),)
    assert smallest(gen.batch(Ride, size=1, cents=[None, 7]), lambda batch: True) == (Ride(0, 7),)


def test_a_choice_shrinks_to_the_first():
    assert smallest(gen.batch(Ride, size=1) | gen.batch(User, size=1), lambda batch: True) == (Ride(0, 0),)


# -- given batches, and strategies -----------------------------------------------------------------------------------


def test_exactly_the_given_records_come():
    assert gen.batch_of([User(1, True), Ride(1, None)]).examples() == [(User(1, True), Ride(1, None))]
    assert gen.batch_of([]).examples() == [()]
    assert gen.batch_of([User(1, True), Ride(1, None)]).kinds == (User, Ride)


def test_a_strategy_of_lists_of_events_gives_batches():
    lists = st.lists(st.builds(User, st.integers(3, 5), st.booleans()), max_size=2)

    batches = gen.batch_of(lists)

    assert {len(batch) for batch in batches.examples(50)} == {0, 1, 2}
    assert batches.kinds == (User,)
    assert smallest(batches, lambda batch: len(batch) == 2) == (User(3, False), User(3, False))


def test_elements_come_out_of_those_that_are_listed():
    users = [User(9, True), User(1, False)]

    batches = gen.elements_of(users, size=(0, 3))

    assert set(records_of(batches)) == set(users)
    assert {len(batch) for batch in batches.examples(50)} == {0, 1, 2, 3}
    assert smallest(batches, lambda batch: len(batch) == 2) == (User(1, False), User(1, False))


def test_elements_come_out_of_a_strategy_of_events():
    batches = gen.elements_of(st.builds(User, st.integers(3, 5), st.just(True)), size=2)

    assert set(records_of(batches)) == {User(3, True), User(4, True), User(5, True)}


def test_kinds_that_come_seldom_can_be_named():
    seldom = st.one_of(*[st.just(User(1, True))] * 3, st.integers(0, 10**9).map(lambda n: Ride(n, None)))

    assert gen.elements_of(seldom, kinds=[Ride, User]).kinds == (Ride, User)
    assert gen.batch_of(st.just([User(1, True)]), kinds=[Ride]).kinds == (Ride, User)


@settings(max_examples=5, deadline=None)
@given(gen.batch(User, size=(1, 3)).strategy, st.integers())
def test_the_strategy_mixes_with_others(batch, number):
    assert all(record.kind is User for record in batch)


@settings(max_examples=3, deadline=None)
@given(st.integers(0, 2))
def test_a_batch_can_be_made_and_drawn_inside_a_test_of_hypothesis(seed):
    batches = gen.elements_of(st.builds(User, st.integers(), st.booleans()))

    assert batches.examples(3, seed=seed)


# -- texts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("generator", "text"),
    [
        (gen.batch(User), "batch(User)"),
        (gen.batch(User, size=20), "batch(User, size=20)"),
        (gen.batch([User, Ride], size=(0, 5), taxi=[1]), "batch([User, Ride], size=(0, 5), taxi=[1])"),
        (gen.batch(User, where=lambda u: u.good, extremes=True), "batch(User, where=..., extremes=True)"),
        (gen.batch_of([User(1, True)]), "batch_of([User(id=1, good=True)])"),
        (gen.elements_of([User(1, True)], size=3), "elements_of([User(id=1, good=True)], size=3)"),
        (gen.empty, "empty"),
        (gen.empty + (gen.batch(User) | gen.batch(Ride)), "empty + (batch(User) | batch(Ride))"),
    ],
)
def test_a_generator_reads_as_it_was_written(generator, text):
    assert repr(generator) == text


def test_long_values_are_cut_in_the_text():
    assert len(repr(gen.batch(User, id=list(range(100))))) < 90


# -- wrong questions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: gen.batch(User, ids=[1]), r"gen.batch\(ids=...\): needed a field of User, or size, where, .*Try: id"),
        (lambda: gen.batch(User, id=["a"]), r"gen.batch\(id=...\): needed values that fit User.id: int; came 'a'"),
        (lambda: gen.batch(User, id=[None]), r"gen.batch\(id=...\): needed values that fit User.id: int; came None"),
        (lambda: gen.batch(User, id=st.text()), r"gen.batch\(id=...\): needed values that fit User.id: int; came ''"),
        (lambda: gen.batch(User, good=range(2)), r"gen.batch\(good=...\): needed values that fit User.good: bool"),
        (lambda: gen.batch(User, id=7), r"gen.batch\(id=...\): needed a list.*came 7. Try: id=\[7\]"),
        (lambda: gen.batch(User, id=[]), r"gen.batch\(id=...\): needed a list.* with a value or more"),
        (lambda: gen.batch(User, size=-1), r"gen.batch\(size=...\): needed a number from 0.*came -1"),
        (lambda: gen.batch(User, size=(5, 2)), r"gen.batch\(size=...\): .*came \(5, 2\)"),
        (lambda: gen.batch(User, size=(1, 2, 3)), r"gen.batch\(size=...\): .*came \(1, 2, 3\)"),
        (lambda: gen.batch(User, size=2.5), r"gen.batch\(size=...\): .*came 2.5"),
        (lambda: gen.batch(User, size=True), r"gen.batch\(size=...\): .*came True"),
        (lambda: gen.elements_of([User(1, True)], size=-1), r"gen.elements_of\(size=...\): .*came -1"),
        (lambda: gen.elements_of([]), r"gen.elements_of\(...\): needed an event or more; .*Try: gen.empty"),
        (lambda: gen.batch(User, where=7), r"gen.batch\(where=...\): needed a function of an event; came 7"),
        (lambda: gen.batch(User, where=lambda u: u.id == 99), r"gen.batch\(where=...\): .*came none in 5,000 events"),
        (lambda: gen.batch(User, where=lambda u: 1 / 0), r"gen.batch\(where=...\): .*came ZeroDivisionError"),
        (lambda: gen.batch(gen.batch(User)), r"gen.batch\(...\): needed a Kind.*came a generator, batch\(User\)"),
        (lambda: gen.batch(st.integers()), r"gen.batch\(...\): needed a Kind.*Try: gen.elements_of\(strategy"),
        (lambda: gen.batch(int), r"gen.batch\(...\): needed a Kind, several Kinds.*came <class 'int'>"),
        (lambda: gen.batch([]), r"gen.batch\(...\): needed a Kind"),
        (lambda: gen.batch_of(User), r"gen.batch_of\(...\): needed a list of events; .*Try: gen.batch\(User\)"),
        (lambda: gen.batch_of(User(1, True)), r"gen.batch_of\(...\): .*Try: \[User\(id=1, good=True\)\]"),
        (lambda: gen.batch_of([1]), r"gen.batch_of\(...\): needed a list of events; came 1"),
        (lambda: gen.batch_of(st.integers()), r"gen.batch_of\(...\): needed a list of events; came 0"),
        (lambda: gen.batch_of(st.lists(st.integers(), min_size=1)), r"gen.batch_of\(...\): needed a list of events"),
        (lambda: gen.elements_of(st.integers()), r"gen.elements_of\(...\): needed a list of events; came 0"),
        (lambda: gen.elements_of(gen.batch(User)), r"gen.elements_of\(...\): needed a list of events; came batch"),
        (lambda: gen.batch(User) + User, r"batch \+ ...: needed a generator of batches; .*Try: gen.batch\(User\)"),
        (lambda: gen.batch(User) + list("a"), r"batch \+ ...: .*Try: gen.batch_of\(\[...\]\)"),
        (lambda: gen.batch(User) | User, r"batch \| ...: needed a generator of batches; .*Try: gen.batch\(User\)"),
        (lambda: gen.batch(User) | st.none(), r"batch \| ...: .*Try: gen.batch_of\(strategy\)"),
    ],
)
def test_a_wrong_question_says_what_to_try(ask, message):
    with pytest.raises(SourceError, match=message):
        ask()


def test_a_schema_of_spark_has_to_become_a_kind_first():
    class StructType:
        def fieldNames(self):  # noqa: N802
            return ["id"]

    with pytest.raises(SourceError, match=r"gen.batch\(...\): needed a Kind; .*Try: kind_of\(\"User\", schema\)"):
        gen.batch(StructType())


def test_a_strategy_that_yields_a_surprise_later_is_found_out():
    values = st.integers(0, 255)
    batches = gen.batch(User, size=20, id=values.map(lambda n: "late" if n == 7 else n))
    others = gen.elements_of(values.map(lambda n: Ride(1, None) if n == 7 else User(1, True)), size=20)

    with pytest.raises(SourceError, match=r"gen.batch\(...\): needed values that fit User.id: int; came 'late'"):
        batches.examples(300)
    with pytest.raises(SourceError, match=r"needed events of User, as in its first 20 draws.*kinds=\[User, Ride\]"):
        others.examples(300)


def test_a_batch_that_is_too_large_for_hypothesis_is_refused():
    with pytest.raises(SourceError, match=r"gen.batch\(size=...\): needed at most 4000 records of User.*; came 9000"):
        gen.batch(User, size=9_000)
    with pytest.raises(SourceError, match=r"small enough for Hypothesis.*came mostly larger ones"):
        (gen.batch(User, size=3_000) + gen.batch(User, size=3_000)).examples(1)
