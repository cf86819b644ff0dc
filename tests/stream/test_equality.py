from __future__ import annotations

from decimal import Decimal

import pytest

from streamtight.errors import DependenceError
from streamtight.stream.equality import equality
from streamtight.stream.event import Kind

Fare = Kind("Fare", ride=int, cents=float, seen=str)
Maybe = Kind("Maybe", x=float | None, price=Decimal)
NAN, INFINITY = float("nan"), float("inf")


def test_only_some_fields_are_compared():
    equal = equality(only="ride")

    assert equal(Fare(1, 2.0, "a"), Fare(1, 3.0, "b"))
    assert not equal(Fare(1, 2.0, "a"), Fare(2, 2.0, "a"))


def test_events_of_different_kinds_are_not_equal_by_their_fields():
    assert not equality(only="ride")(Fare(1, 2.0, "a"), Kind("Other", ride=int)(1))


def test_a_function_may_make_events_of_different_kinds_equal():
    assert equality(by=lambda e: e.ride)(Fare(1, 2.0, "a"), Kind("Other", ride=int)(1))


@pytest.mark.parametrize("value", [None, NAN, INFINITY, -INFINITY, 1e308, -0.0], ids=str)
@pytest.mark.parametrize("equal", [equality(places={"x": 2}), equality(buckets={"x": 1e-300})], ids=str)
def test_odd_numbers_are_equal_to_themselves_and_not_to_others(equal, value):
    event, same, other = Maybe(value, Decimal(1)), Maybe(value, Decimal(1)), Maybe(12345.0, Decimal(1))

    assert equal(event, same)
    assert not equal(event, other)


def test_buckets_put_near_numbers_together():
    equal = equality(buckets={"x": 0.5, "price": 10})

    assert equal(Maybe(0.1, Decimal(11)), Maybe(0.4, Decimal("19.99")))
    assert not equal(Maybe(0.4, Decimal(11)), Maybe(0.6, Decimal(11)))
    assert not equal(Maybe(-0.1, Decimal(11)), Maybe(0.1, Decimal(11)))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"by": len, "only": "x"}, "either by= or fields"),
        ({"by": 5}, "a function of an event"),
        ({"buckets": {"x": 0}}, "wider than 0"),
        ({"buckets": {"x": NAN}}, "wider than 0"),
        ({"places": {"x": 1.5}}, "a whole number of places"),
        ({"places": {"x": 1}, "buckets": {"x": 1}}, "both for ['x']"),
    ],
    ids=str,
)
def test_what_cannot_be_an_equality_is_refused(options, said):
    with pytest.raises(DependenceError) as raised:
        equality(**options)
    assert said in str(raised.value)


def test_a_field_that_is_not_there_is_refused():
    with pytest.raises(DependenceError, match="a field 'rides' in every kind"):
        equality(only="rides").canonical(Fare(1, 2.0, "a"))


def test_text_cannot_be_rounded():
    with pytest.raises(DependenceError, match="a number to round"):
        equality(places={"seen": 1}).canonical(Fare(1, 2.0, "a"))


def test_a_key_that_cannot_be_hashed_is_refused():
    with pytest.raises(DependenceError, match="can be hashed"):
        equality(by=lambda e: [e.ride]).canonical(Fare(1, 2.0, "a"))


def test_it_reads_as_it_was_written():
    assert repr(equality(ignore=["b", "a"], places={"x": 2})) == "equality(ignore=('a', 'b'), places={'x': 2})"
