from __future__ import annotations

import math
from datetime import date

import pytest

from streamtight.errors import SchemaError
from streamtight.stream.event import Event, Kind
from streamtight.stream.schema import Bag, Par, PartitionBy, Schema, Seq, Sync
from streamtight.stream.series_parallel import Stream, parse
from streamtight.stream.trace import Trace

A, B, C = Kind("A", n=int), Kind("B", n=int), Kind("C", n=int)
GPS, Ride, EndOfHour = Kind("GPS", taxi=str, n=int), Kind("Ride", taxi=str, n=int), Kind("EndOfHour", at=date, hour=int)
TAXIS = Sync(EndOfHour, Par(PartitionBy("taxi", Seq(GPS)), Bag(Ride)))


def hour(number: int) -> Event:
    return EndOfHour(date(2024, 1, 1), number)


# -- the paper's examples --------------------------------------------------------------------------------------------


def test_example_2_10_the_stream_of_the_taxis():
    first = [GPS("red", 1), Ride("red", 1), GPS("green", 1), GPS("red", 2), GPS("blue", 1), Ride("blue", 1)]
    second = [GPS("blue", 2), Ride("green", 1)]

    stream = TAXIS.parse([hour(1), *first, hour(2), *second, hour(3)])

    assert stream.markers == [hour(1), hour(2), hour(3)]
    before, t1, t2, after = stream.parts
    assert before is None
    assert after is None
    assert {taxi: part.markers for taxi, part in t1.parts[0].parts.items()} == {
        "red": [GPS("red", 1), GPS("red", 2)],
        "green": [GPS("green", 1)],
        "blue": [GPS("blue", 1)],
    }
    assert t1.parts[1].counts == {Ride("red", 1): 1, Ride("blue", 1): 1}
    assert t2.parts[0].parts.keys() == {"blue"}
    assert t2.parts[1].counts == {Ride("green", 1): 1}


def test_example_2_17_equivalent_sequences_are_flattenings_of_one_stream():
    r1, r2, b1, b2 = GPS("red", 1), GPS("red", 2), GPS("blue", 1), GPS("blue", 2)
    red1, red2, blue, eoh = Ride("red", 1), Ride("red", 2), Ride("blue", 1), hour(1)
    one = [r1, red1, blue, b1, red2, b2, r2, eoh]
    other = [b1, b2, r1, r2, blue, red1, red2, eoh]

    assert Trace(one, TAXIS) == Trace(other, TAXIS)
    assert TAXIS.parse(one) == TAXIS.parse(other)
    assert tuple(other) in set(TAXIS.parse(one).flattenings())
    assert repr(TAXIS.parse(other)) == (
        "[<{'blue': [GPS(taxi='blue', n=1), GPS(taxi='blue', n=2)], "
        "'red': [GPS(taxi='red', n=1), GPS(taxi='red', n=2)]}, "
        "{Ride(taxi='blue', n=1), Ride(taxi='red', n=1), Ride(taxi='red', n=2)}>, "
        "EndOfHour(at=datetime.date(2024, 1, 1), hour=1)]"
    )


def test_an_outer_marker_closes_every_open_stream_inside():
    """The remark after Example 2.10: in Sync(A, Sync(B, Seq(C))) a C may be followed by an A without a B between."""
    schema = Sync(A, Sync(B, Seq(C)))

    stream = schema.parse([C(1), A(1), C(2), B(1), C(3)])

    assert stream.markers == [A(1)]
    assert [part.flatten() for part in stream.parts] == [[C(1)], [C(2), B(1), C(3)]]
    assert stream.parts[1].markers == [B(1)]


# -- parsing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "events", "shown"),
    [
        (Bag(A), [], "{}"),
        (Bag(A), [A(1), A(2), A(1)], "{A(n=1), A(n=1), A(n=2)}"),
        (Seq(A), [], "[]"),
        (Seq(A), [A(2), A(1)], "[A(n=2), A(n=1)]"),
        (Sync(B, Bag(A)), [A(1), B(1), B(2), A(2)], "[{A(n=1)}, B(n=1), B(n=2), {A(n=2)}]"),
        (PartitionBy("n", Seq(A)), [A(1), A(2), A(1)], "{1: [A(n=1), A(n=1)], 2: [A(n=2)]}"),
        (PartitionBy("n", Seq(A)), [], "{}"),
        (Par(Seq(A), Bag(B)), [B(1), A(1)], "<[A(n=1)], {B(n=1)}>"),
        (Par(Seq(A), Bag(B)), [], "<{}, {}>"),
    ],
)
def test_a_stream_reads_like_the_paper_writes_it(schema: Schema, events: list[Event], shown: str):
    assert repr(schema.parse(events)) == shown


def test_a_split_by_two_keys_has_a_stream_for_every_pair_of_values():
    kind = Kind("K", a=int, b=int, n=int)
    stream = PartitionBy(["a", "b"], Seq(kind)).parse([kind(1, 1, 1), kind(1, 2, 2), kind(1, 1, 3)])

    assert {key: len(part) for key, part in stream.parts.items()} == {(1, 1): 2, (1, 2): 1}


def test_none_and_nan_are_keys_like_any_other():
    kind = Kind("K", a=float | None, n=int)
    stream = PartitionBy("a", Seq(kind)).parse([kind(None, 1), kind(math.nan, 2), kind(None, 3), kind(math.nan, 4)])

    assert [len(part) for part in stream.parts.values()] == [2, 2]


@pytest.mark.parametrize(
    "schema", [Bag(A), Seq(A), Sync(A, Bag(B)), PartitionBy("n", Bag(A)), Par(Bag(A), Bag(B))], ids=str
)
def test_an_event_of_another_kind_is_not_parsed(schema: Schema):
    with pytest.raises(SchemaError, match="C"):
        schema.parse([A(1), C(1)])


@pytest.mark.parametrize("thing", [3, "A(n=1)", (1, 2), None])
def test_what_is_no_event_is_not_parsed(thing: object):
    with pytest.raises(SchemaError):
        Bag(A).parse([thing])


def test_a_stream_has_as_many_events_as_were_parsed():
    assert len(TAXIS.parse([GPS("red", 1), Ride("red", 1), Ride("red", 1), hour(1)])) == 4


# -- equality --------------------------------------------------------------------------------------------------------


def test_streams_are_equal_up_to_the_order_that_the_schema_forgives():
    assert Bag(A).parse([A(1), A(2)]) == Bag(A).parse([A(2), A(1)])
    assert Bag(A).parse([A(1), A(1)]) != Bag(A).parse([A(1)])
    assert Seq(A).parse([A(1), A(2)]) != Seq(A).parse([A(2), A(1)])
    assert Sync(B, Bag(A)).parse([A(1), B(1)]) != Sync(B, Bag(A)).parse([B(1), A(1)])
    assert Par(Seq(A), Seq(B)).parse([A(1), B(1)]) == Par(Seq(A), Seq(B)).parse([B(1), A(1)])
    assert PartitionBy("n", Seq(A)).parse([A(1), A(2)]) == PartitionBy("n", Seq(A)).parse([A(2), A(1)])


def test_a_stream_is_not_equal_to_its_events():
    assert Bag(A).parse([A(1)]) != [A(1)]


def test_a_stream_of_another_shape_is_not_equal():
    assert Bag(A).parse([A(1)]) != Seq(A).parse([A(1)])
    assert Bag(A).parse([]) != PartitionBy("n", Bag(A)).parse([])


# -- concatenation and prefixes --------------------------------------------------------------------------------------


def test_concatenation_joins_the_streams_at_the_seam():
    schema = Sync(B, Bag(A))

    joined = schema.parse([A(1), B(1), A(2)]) + schema.parse([A(3), B(2)])

    assert repr(joined) == "[{A(n=1)}, B(n=1), {A(n=2), A(n=3)}, B(n=2)]"


def test_concatenation_adds_up_the_events_of_bags():
    assert Bag(A).parse([A(1)]) + Bag(A).parse([A(1), A(2)]) == Bag(A).parse([A(1), A(1), A(2)])


def test_nothing_comes_after_the_whole():
    for schema in (Bag(A), Seq(A), PartitionBy("n", Seq(A)), Sync(B, Bag(A)), Par(Bag(A), Bag(B))):
        whole = schema.parse([A(1), A(1)])

        assert whole.after(whole) == schema.parse([])


def test_concatenation_joins_the_streams_of_each_key():
    schema = PartitionBy("n", Seq(A))

    assert (schema.parse([A(1), A(2)]) + schema.parse([A(1), A(3)])).parts.keys() == {1, 2, 3}


def test_concatenation_leaves_both_streams_as_they_were():
    schema = Sync(B, Bag(A))
    one, other = schema.parse([A(1)]), schema.parse([A(2), B(1)])

    one + other

    assert one == schema.parse([A(1)])
    assert other == schema.parse([A(2), B(1)])


@pytest.mark.parametrize(
    ("schema", "prefix", "whole", "rest"),
    [
        (Bag(A), [A(2)], [A(1), A(2), A(2)], [A(1), A(2)]),
        (Seq(A), [A(1)], [A(1), A(2)], [A(2)]),
        (Sync(B, Bag(A)), [A(1), B(1), A(3)], [A(1), B(1), A(2), A(3), B(2)], [A(2), B(2)]),
        (PartitionBy("n", Seq(A)), [A(2)], [A(1), A(2), A(2)], [A(1), A(2)]),
        (Par(Seq(A), Seq(B)), [B(1)], [A(1), B(1), B(2)], [A(1), B(2)]),
    ],
    ids=str,
)
def test_what_comes_after_a_prefix_is_the_rest(
    schema: Schema, prefix: list[Event], whole: list[Event], rest: list[Event]
):
    assert schema.parse(whole).after(schema.parse(prefix)) == schema.parse(rest)
    assert schema.parse(prefix) <= schema.parse(whole)


@pytest.mark.parametrize(
    ("schema", "other", "whole"),
    [
        (Bag(A), [A(1), A(1)], [A(1), A(2)]),
        (Seq(A), [A(2)], [A(1), A(2)]),
        (Seq(A), [A(1), A(2)], [A(1)]),
        (Sync(B, Bag(A)), [B(1)], [A(1), B(1)]),
        (Sync(B, Bag(A)), [A(1)], [B(1), A(1)]),
        (PartitionBy("n", Seq(A)), [A(3)], [A(1), A(2)]),
        (Par(Seq(A), Seq(B)), [A(1), B(2)], [A(1), B(1)]),
        (Par(Seq(A), Seq(B)), [A(1), B(2)], [A(1)]),
    ],
    ids=str,
)
def test_what_is_no_prefix_has_nothing_after_it(schema: Schema, other: list[Event], whole: list[Event]):
    assert schema.parse(whole).after(schema.parse(other)) is None
    assert not schema.parse(other) <= schema.parse(whole)


TWINS = [
    (Bag(A, B), Par(Bag(A), Bag(B))),
    (Par(Bag(A), Bag(B)), Par(Bag(B), Bag(A))),
    (Bag(A), PartitionBy("n", Bag(A))),
    (Sync([], Seq(A)), Seq(A)),
]


@pytest.mark.parametrize(("one", "other"), TWINS, ids=str)
def test_streams_of_order_equivalent_schemas_of_other_shapes_are_not_mixed_up(one: Schema, other: Schema):
    events = [kind(1) for kind in (A, B) if kind in one.kinds]
    first, second = one.parse(events[:1]), other.parse(events[1:])

    with pytest.raises(SchemaError):
        first + second
    with pytest.raises(SchemaError):
        first.after(second)


def test_a_stream_is_no_prefix_of_what_is_no_stream():
    with pytest.raises((SchemaError, TypeError)):
        Bag(A).parse([]) <= 3  # noqa: B015


# -- flattenings and relaxation --------------------------------------------------------------------------------------


def test_a_bag_has_every_order_of_its_events_once():
    assert sorted(Bag(A).parse([A(1), A(1), A(2)]).flattenings()) == [
        (A(1), A(1), A(2)),
        (A(1), A(2), A(1)),
        (A(2), A(1), A(1)),
    ]


def test_an_empty_stream_has_one_flattening():
    for schema in (Bag(A), Seq(A), PartitionBy("n", Seq(A)), Par(Bag(A), Seq(B)), Par()):
        assert list(schema.parse([]).flattenings()) == [()]


def test_a_relaxed_stream_is_of_the_weaker_schema():
    relaxed = Seq(A).parse([A(2), A(1)]).relax(Bag(A))

    assert relaxed == Bag(A).parse([A(1), A(2)])
    assert relaxed.schema == Bag(A)


def test_a_stream_is_not_relaxed_to_a_stronger_schema():
    with pytest.raises(SchemaError, match="it orders A with A"):
        Bag(A).parse([A(1)]).relax(Seq(A))


def test_every_schema_parses_to_a_stream():
    assert all(isinstance(parse(schema, []), Stream) for schema in (Bag(A), Seq(A), PartitionBy("n", Bag(A)), Par()))
