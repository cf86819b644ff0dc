"""Tags: sets of them, what they have in common, and which may be dependent."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from streamtight.errors import EventError, PlanError
from streamtight.program.tags import (
    NO_TAGS,
    Bucket,
    Tags,
    TagSet,
    bare,
    has_buckets,
    independent_tags,
    regions,
    share_hash,
    tag_fields,
    tag_of,
    tag_set,
    tags,
    why_dependent,
)
from streamtight.stream.dependence import barrier, between, depends, ordered, same, unordered
from streamtight.stream.event import Event, Kind

Add = Kind("Add", time=int, key=int, amount=int)
Read = Kind("Read", time=int, key=int)
Tick = Kind("Tick", time=int)
Odd = Kind("Odd", maybe=int | None, real=float, flag=bool, day=date, name=str, other=object)


def one(kind: Kind, **fields: Any) -> Tags:
    return tags(kind, **fields).parts[0]


# -- sets ------------------------------------------------------------------------------------------------------------


def test_a_set_is_told_by_its_kinds_and_values() -> None:
    some = tags(Add, key={10, 9}) | tags(Read, key=Bucket(1, of=4)) | tags(Tick)

    assert repr(some) == "Add(key=9|10), Read(key=#1/4), Tick"
    assert repr(NO_TAGS) == "no tag"


def test_many_values_are_told_by_the_first_ones() -> None:
    assert str(one(Add, key=range(100))) == "Add(key=0|1|2|...100 values)"


def test_a_set_says_which_tags_may_come() -> None:
    some = tags(Add, key={1, 2}) | tags(Read, key=Bucket(0, of=1))

    assert [some(Add, key=key) for key in (1, 2, 3)] == [True, True, False]
    assert some(Read, key=99)
    assert some(Add)
    assert not some(Tick)


def test_asking_for_a_field_that_a_kind_lacks_is_an_error() -> None:
    with pytest.raises(PlanError, match=r"needed a field of Add; came 'kee'\. Try: time, key, amount"):
        tags(Add)(Add, kee=1)


def test_none_is_a_value_like_any_other() -> None:
    some = tags(Odd, maybe=None)

    assert some(Odd, maybe=None)
    assert not some(Odd, maybe=0)
    assert repr(some) == "Odd(maybe=None)"


def test_nan_is_one_value() -> None:
    some = tags(Odd, real=float("nan"))
    event = Odd(maybe=1, real=float("nan"), flag=True, day=date(2024, 5, 1), name="", other=0)

    assert some(Odd, real=float("nan"))
    assert some.holds(event)


def test_values_are_what_events_make_of_them() -> None:
    assert tags(Odd, real=1) == tags(Odd, real=1.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tags(), "needed a Kind, or several"),
        (lambda: tags("Add"), "needed a Kind, or several"),
        (lambda: tags(Add, kee=1), "needed a field of Add; came 'kee'"),
        (lambda: tags(Add, Tick, key=1), "needed a field of Tick; came 'key'"),
        (lambda: tags(Add, key=[]), "needed a value of key, or several"),
        (
            lambda: tags(Odd, real=Bucket(0, of=2)),
            "needed buckets of whole numbers, texts or dates; came Odd.real: float",
        ),
        (lambda: Bucket(2, of=2), r"Bucket\(2, of=2\): needed an index from 0 to of - 1"),
        (lambda: Bucket(0, of=0), "needed an index from 0 to of - 1"),
        (lambda: Bucket(True, of=2), "needed an index from 0 to of - 1"),
        (lambda: tag_set(3, "here"), "here: needed tags, a Kind, or several; came 3"),
        (lambda: share_hash(1.5), "needed values that are whole numbers, texts or dates; came float"),
    ],
    ids=["no kind", "a name", "no field", "one lacks it", "no value", "floats", "index", "of 0", "bool", "3", "1.5"],
)
def test_what_is_no_set_of_tags_is_refused(make: Any, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        make()


def test_a_value_of_another_type_is_refused() -> None:
    with pytest.raises(EventError, match="Add"):
        tags(Add, key="1")


@pytest.mark.parametrize("value", [0, -1, 2**70, "", "ä", "\ud800", None, date(2024, 5, 1), True])
def test_every_value_is_in_one_bucket(value: Any) -> None:
    assert sum(value in Bucket(index, of=7) for index in range(7)) == 1


def test_equal_values_are_in_one_bucket() -> None:
    assert share_hash(True) == share_hash(1)


def test_the_values_of_some_types_have_buckets() -> None:
    assert [name for name in Odd.names if has_buckets(Odd, name)] == ["maybe", "day", "name"]


# -- what they have in common ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (one(Add), one(Read), False),
        (one(Add), one(Add, key=1), True),
        (one(Add, key={1, 2}), one(Add, key={2, 3}), True),
        (one(Add, key={1, 2}), one(Add, key=3), False),
        (one(Add, key=Bucket(0, of=2)), one(Add, key=Bucket(2, of=4)), True),
        (one(Add, key=Bucket(0, of=2)), one(Add, key=Bucket(1, of=4)), False),
        (one(Add, key=Bucket(0, of=2)), one(Add, key=Bucket(1, of=3)), True),
        (one(Add, key=1, amount=1), one(Add, key=1, amount=2), False),
        (one(Add, key=1), one(Add, amount=2), True),
    ],
    ids=str,
)
def test_tags_overlap_if_every_field_can_have_one_value(left: Tags, right: Tags, expected: bool) -> None:
    assert left.overlaps(right) is expected
    assert right.overlaps(left) is expected


@pytest.mark.parametrize(
    ("inner", "outer", "expected"),
    [
        (one(Add, key=1), one(Add), True),
        (one(Add), one(Add, key=1), False),
        (one(Add, key=Bucket(2, of=4)), one(Add, key=Bucket(0, of=2)), True),
        (one(Add, key=Bucket(0, of=2)), one(Add, key=Bucket(0, of=4)), False),
        (one(Add), one(Add, key=Bucket(0, of=1)), True),
        (one(Add, key=Bucket(0, of=2)), one(Add, key={1, 2}), False),
        (one(Add, key=1), one(Read, key=1), False),
    ],
    ids=str,
)
def test_tags_are_within_others_if_each_of_them_is(inner: Tags, outer: Tags, expected: bool) -> None:
    assert inner.within(outer) is expected


@pytest.mark.parametrize(
    ("parts", "wanted", "expected"),
    [
        (tags(Add, key=1) | tags(Add, key=2), tags(Add, key={1, 2}), True),
        (tags(Add, key=1) | tags(Add, key=2), tags(Add, key={1, 3}), False),
        (tags(Add, key=Bucket(0, of=2)) | tags(Add, key=Bucket(1, of=2)), tags(Add), True),
        (tags(Add, key=Bucket(0, of=2)) | tags(Add, key=Bucket(1, of=3)), tags(Add), False),
        (TagSet(one(Add, key=Bucket(i, of=6)) for i in (1, 3, 5)) | tags(Add, key=Bucket(0, of=2)), tags(Add), True),
        (TagSet(one(Add, key=Bucket(i, of=4)) for i in (0, 2)), tags(Add, key=Bucket(0, of=2)), True),
        (tags(Add, key={1, 2, 3}), tags(Add), False),
        (tags(Odd, flag=True) | tags(Odd, flag=False), tags(Odd), True),
        (tags(Odd, flag=True), tags(Odd), False),
        (tags(Add, key=1) | tags(Add, amount=1), tags(Add, key={1, 2}, amount=1), True),
        (tags(Add, key=1) | tags(Add, amount=1), tags(Add, key={1, 2}), False),
        (tags(Add) | tags(Read), tags(Read, key=1) | tags(Add, key=2), True),
        (NO_TAGS, NO_TAGS, True),
        (NO_TAGS, tags(Add), False),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_a_set_covers_another_if_its_parts_do_so_together(parts: TagSet, wanted: TagSet, expected: bool) -> None:
    assert parts.covers(wanted) is expected


def test_cuts_into_too_many_buckets_count_as_not_known() -> None:
    primes = (101, 103, 107)
    parts = [one(Add, key=Bucket(0, of=prime)) for prime in primes]

    assert list(regions(Tags(Add), parts)) == [frozenset()]


# -- dependence ------------------------------------------------------------------------------------------------------


def test_events_of_different_keys_are_independent() -> None:
    reads_wait = barrier(Read) & same("key")

    assert independent_tags(reads_wait, tags(Read, key=1), tags(Add, key=2))
    assert independent_tags(reads_wait, tags(Add), tags(Add))
    assert (
        why_dependent(reads_wait, tags(Read), tags(Add, key=1)) == "Read and Add(key=1) by barrier(Read) & same('key')"
    )


def test_equal_keys_of_different_types_are_not_taken_for_different_ones() -> None:
    real = Kind("RealKey", time=int, key=float)

    for index in range(2):
        assert why_dependent(same("key"), tags(real, key=1.0), tags(Read, key=Bucket(index, of=2))) is not None


def test_a_side_counts_in_both_orders() -> None:
    assert why_dependent(between(Read, Add), tags(Add), tags(Read)) is not None
    assert why_dependent(between(Read, Add), tags(Add), tags(Add)) is None


def test_nothing_depends_in_a_bag_and_everything_in_a_sequence() -> None:
    assert why_dependent(unordered, tags(Add), tags(Add)) is None
    assert why_dependent(ordered, tags(Add), tags(Tick)) == "Add and Tick by ordered"


def test_a_function_is_asked_about_all_tags_that_are_listed() -> None:
    near = depends(lambda a, b: abs(a.key - b.key) <= 1)

    assert why_dependent(near, tags(Add, key={1, 2}), tags(Read, key={4, 5})) is None
    assert why_dependent(near, tags(Add, key={1, 2}), tags(Read, key={3, 5})) is not None


def test_a_function_that_looks_at_fields_that_are_not_listed_may_relate_anything() -> None:
    near = depends(lambda a, b: a.key == b.key)

    assert why_dependent(near, tags(Add, key=1), tags(Read)) is not None
    assert why_dependent(near, tags(Add, key=1), tags(Read, key=Bucket(0, of=2))) is not None


def test_a_function_that_tests_for_none_does_not_take_an_unknown_value_for_another() -> None:
    without = barrier(lambda event: event.kind is Odd and event.maybe is None)

    assert why_dependent(without, tags(Odd), tags(Odd)) is not None
    assert why_dependent(without, tags(Odd, maybe=1), tags(Odd, maybe=2)) is None


def test_more_tags_than_can_be_asked_about_count_as_dependent() -> None:
    never = depends(lambda a, b: False)

    assert why_dependent(never, tags(Add, key=range(40)), tags(Add, key=range(40))) is not None
    assert why_dependent(never, tags(Add, key=range(9)), tags(Add, key=range(9))) is None


def test_the_fields_of_a_tag_are_those_of_the_keys() -> None:
    assert tag_fields(barrier(Read) & same("key") | same("amount", of=Add), Add) == ("key", "amount")
    assert tag_fields(barrier(Tick), Add) == ()


def test_the_tag_of_an_event_is_a_set_of_one() -> None:
    assert tag_of(Add(1, 2, 3), ["key"]) == one(Add, key=2)


def test_the_payload_of_a_bare_event_cannot_be_looked_at() -> None:
    event: Event = bare(Add, {"key": 1})

    assert event.key == 1
    assert event.kind is Add
    with pytest.raises(PlanError, match=r"a dependence that looks at Add\.amount: needed one that looks at tags only"):
        _ = event.amount


@pytest.mark.parametrize(
    "look", [repr, str, hash, list, tuple, lambda event: event[3], lambda event: event == Add(1, 1, 1)]
)
def test_the_payload_of_a_bare_event_does_not_show_in_other_ways(look: Callable[[Event], Any]) -> None:
    with pytest.raises(PlanError, match="needed one that looks at tags only"):
        look(bare(Add, {"key": 1}))
