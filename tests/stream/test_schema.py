from __future__ import annotations

from datetime import date

import pytest

from streamtight.errors import DependenceError, SchemaError
from streamtight.stream.dependence import barrier, ordered, unordered
from streamtight.stream.event import Kind
from streamtight.stream.schema import (
    KEYS_ARE_FIELDS,
    KEYS_CAN_MEET,
    ONE_PLACE,
    SPLIT_ONCE,
    Bag,
    Par,
    PartitionBy,
    Schema,
    Seq,
    Sync,
    schema_of,
)
from streamtight.stream.trace import Trace

Position = Kind("Position", x=float, y=float, z=float)
GPS = Kind("GPS", location=Position, taxi_id=int)
RideCompleted = Kind("RideCompleted", ride_id=int, taxi_id=int, passenger_id=int, cost=int)
EndOfHour = Kind("EndOfHour", date=date, hour=int)

A, B, C, D = (Kind(name, k=int, j=int, n=int) for name in "ABCD")


def gps(taxi: int, x: float = 0.0) -> object:
    return GPS(Position(x, 0.0, 0.0), taxi)


def ride(taxi: int, cost: int = 0) -> object:
    return RideCompleted(0, taxi, 0, cost)


def hour(number: int) -> object:
    return EndOfHour(date(2024, 1, 1), number)


# -- the paper's examples --------------------------------------------------------------------------------------------


def test_example_2_1_measurements_between_two_seconds_are_unordered():
    measurement, second = Kind("M", d=int), Kind("#")
    words = [5, 5, 8, 9], [8, 5, 5, 9]

    for upto in (barrier(second), Sync(second, Bag(measurement))):
        one, other = (Trace([measurement(d) for d in word], upto) for word in words)
        assert one == other
        assert upto.depends(second(), second())
        assert upto.depends(measurement(5), second())
        assert not upto.depends(measurement(5), measurement(8))


def test_example_2_2_a_data_trace_is_a_sequence_of_bags():
    measurement, second = Kind("M", d=int), Kind("#")
    schema = Sync(second, Bag(measurement))
    sequence = [*map(measurement, (5, 7)), second(), *map(measurement, (9, 8, 9)), second(), measurement(6)]

    stream = schema.parse(sequence)

    bags = [sorted(event.d for event in part.flatten()) for part in stream.parts]
    assert bags == [[5, 7], [8, 9, 9], [6]]  # the middle one as the misprints have it
    assert Trace(sequence, schema).levels == (
        {measurement(5): 1, measurement(7): 1},
        {second(): 1},
        {measurement(8): 1, measurement(9): 2},
        {second(): 1},
        {measurement(6): 1},
    )


def test_example_2_2_the_empty_sequence_is_one_empty_bag_and_a_marker_alone_is_two():
    measurement, second = Kind("M", d=int), Kind("#")
    schema = Sync(second, Bag(measurement))

    assert schema.parse([]).parts == [None]
    assert schema.parse([second()]).parts == [None, None]


def test_example_2_3_channels_are_ordered_in_themselves_and_independent_of_each_other():
    one, other = Kind("I1", v=int), Kind("I2", v=str)
    channels = Par(Seq(one), Seq(other))
    trace = Trace([one(1), other("a"), one(2), other("b")], channels)

    assert trace == Trace([other("a"), other("b"), one(1), one(2)], channels)
    assert trace != Trace([one(2), other("a"), one(1), other("b")], channels)
    assert channels.parse(trace.events).parts == [
        Seq(one).parse([one(1), one(2)]),
        Seq(other).parse([other("a"), other("b")]),
    ]


def test_example_2_5_headers_are_kinds():
    assert GPS.names == ("location", "taxi_id")
    assert RideCompleted.names == ("ride_id", "taxi_id", "passenger_id", "cost")
    assert hour(8) == EndOfHour(date=date(2024, 1, 1), hour=8)


def taxi_schema() -> Schema:
    return Sync(EndOfHour, Par(PartitionBy("taxi_id", Seq(GPS)), Bag(RideCompleted)))


def test_example_2_7_the_schema_of_the_taxis():
    schema = taxi_schema()

    assert schema.kinds == {GPS, RideCompleted, EndOfHour}
    assert schema.keys == {"taxi_id"}
    assert repr(schema) == "Sync(EndOfHour, Par(PartitionBy('taxi_id', Seq(GPS)), Bag(RideCompleted)))"
    assert schema.depends(gps(1, 0.0), gps(1, 1.0))
    assert schema.independent(gps(1), gps(2))
    assert schema.independent(gps(1), ride(1))
    assert schema.independent(ride(1, 5), ride(1, 6))
    for other in (gps(1), ride(1), hour(2)):
        assert schema.depends(hour(1), other)


def test_example_2_21_unordered_positions_are_a_relaxation():
    original = taxi_schema()
    relaxed = Sync(EndOfHour, Par(PartitionBy("taxi_id", Bag(GPS)), Bag(RideCompleted)))

    assert relaxed.relaxes(original)
    assert not original.relaxes(relaxed)
    assert relaxed.order_equivalent(Sync(EndOfHour, Bag(GPS, RideCompleted)))


def test_example_2_21_a_hierarchy_of_sequences_is_a_sequence():
    assert Sync(EndOfHour, Seq(GPS)).order_equivalent(Seq(EndOfHour, GPS))


# -- building --------------------------------------------------------------------------------------------------------


def test_a_sequence_is_a_sync_around_nothing():
    assert Seq(A) == Sync(A, Bag())
    assert isinstance(Seq(A), Sync)
    assert repr(Sync(A, Bag())) == "Seq(A)"


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (Bag(), "Bag()"),
        (Bag(A, B), "Bag(A, B)"),
        (Bag({B, A}), "Bag(A, B)"),
        (Bag([B, A]), "Bag(B, A)"),
        (Seq(A, B), "Seq(A, B)"),
        (Sync([A, B], Bag(C)), "Sync({A, B}, Bag(C))"),
        (PartitionBy("k", Seq(A)), "PartitionBy('k', Seq(A))"),
        (PartitionBy(["k", "j"], Seq(A)), "PartitionBy(('k', 'j'), Seq(A))"),
        (Par(Bag(A), Seq(B), Bag(C)), "Par(Bag(A), Seq(B), Bag(C))"),
    ],
    ids=str,
)
def test_a_schema_reads_as_it_was_written(schema: Schema, text: str):
    assert repr(schema) == text


def test_a_split_of_a_split_orders_events_that_agree_on_both_keys():
    schema = PartitionBy("k", Sync(A, PartitionBy("j", Seq(B))))

    assert schema.depends(B(1, 2, 3), B(1, 2, 4))
    assert schema.independent(B(1, 2, 3), B(1, 3, 3))
    assert schema.independent(B(1, 2, 3), B(2, 2, 3))
    assert schema.depends(A(1, 2, 3), B(1, 9, 9))
    assert schema.independent(A(1, 2, 3), B(2, 2, 3))
    assert schema.keys == {"k", "j"}


def test_the_explanation_of_a_schema_is_the_part_that_orders_two_events():
    schema = Sync(A, PartitionBy("k", Seq(B)))

    assert schema.explain(A(1, 1, 1), B(1, 1, 1)) == repr(schema)
    assert schema.explain(B(1, 1, 1), B(1, 1, 2)) == "Seq(B)"


def test_a_sync_without_markers_orders_what_is_between_them():
    assert Sync([], Seq(A)).order_equivalent(Seq(A))


def test_a_schema_refuses_events_of_other_kinds():
    with pytest.raises(SchemaError, match="an event of A"):
        Bag(A).depends(A(1, 1, 1), B(1, 1, 1))


def test_that_a_schema_refuses_an_event_is_no_dependence_error():
    with pytest.raises(SchemaError) as caught:
        Trace([B(1, 1, 1)], Seq(A))

    assert not isinstance(caught.value, DependenceError)


def refusal(make: object, *given: object) -> SchemaError:
    with pytest.raises(SchemaError) as caught:
        make(*given)  # type: ignore[operator]
    return caught.value


@pytest.mark.parametrize(
    "make",
    [
        lambda: Bag(A, A),
        lambda: Seq(A, [B, A]),
        lambda: Sync(A, Bag(A)),
        lambda: Sync(A, Sync(B, Seq(A))),
        lambda: Par(Bag(A), Seq(A)),
        lambda: Par(Bag(A), Bag(B), Bag(B)),
    ],
)
def test_no_kind_appears_twice(make: object):
    assert refusal(make).rule == ONE_PLACE


def test_a_partition_key_is_a_field_of_every_kind_in_its_scope():
    other = Kind("Other", n=int)

    error = refusal(PartitionBy, "k", Par(Bag(A), Bag(other)))

    assert error.rule == KEYS_ARE_FIELDS
    assert "Other" in error.needed


def test_a_kind_outside_the_scope_of_a_key_need_not_have_it():
    other = Kind("Other", n=int)

    assert Par(PartitionBy("k", Bag(A)), Bag(other)).kinds == {A, other}


@pytest.mark.parametrize(
    "make",
    [
        lambda: PartitionBy("k", PartitionBy("k", Bag(A))),
        lambda: PartitionBy("k", Sync(A, PartitionBy(["j", "k"], Bag(B)))),
        lambda: PartitionBy(["k", "k"], Bag(A)),
    ],
)
def test_no_key_is_split_twice(make: object):
    assert refusal(make).rule == SPLIT_ONCE


def test_siblings_may_be_split_by_the_same_key():
    assert Par(PartitionBy("k", Seq(A)), PartitionBy("k", Seq(B))).keys == {"k"}


def test_keys_of_one_name_have_one_type():
    other = Kind("Other", k=str)

    error = refusal(PartitionBy, "k", Bag(A, other))

    assert error.rule == KEYS_CAN_MEET
    assert "int in A, str in Other" in error.came


# -- order and relaxation --------------------------------------------------------------------------------------------


def test_the_order_of_a_schema_lists_pairs_of_kinds_with_their_keys():
    schema = Sync(A, PartitionBy("k", Seq(B)))

    assert schema.order() == {
        (A, A): frozenset(),
        (A, B): frozenset(),
        (B, A): frozenset(),
        (B, B): frozenset({"k"}),
    }


def test_a_kind_ordered_only_among_identical_events_is_not_ordered():
    tick, tock = Kind("Tick"), Kind("Tock", k=int)

    assert Seq(tick).order() == {}
    assert PartitionBy("k", Seq(tock)).order() == {}
    assert Seq(tock).order() == {(tock, tock): frozenset()}
    assert PartitionBy("k", Seq(tock)).order_equivalent(Bag(tock))


def test_a_relaxation_may_have_more_kinds_but_not_fewer():
    assert Bag(A, B).relaxes(Seq(A))
    assert Par(Bag(A), Seq(B)).relaxes(Seq(A))
    assert not Bag(A).relaxes(Bag(A, B))


def test_order_equivalent_schemas_have_the_same_kinds():
    assert not Bag(A).order_equivalent(Bag(B))
    assert not Bag(A).order_equivalent(Bag(A, B))
    assert not Bag(A, B).order_equivalent(Bag(A))


@pytest.mark.parametrize(
    ("weak", "strong", "why"),
    [
        (Bag(A), Bag(A, C, B), "it has no B, C"),
        (Seq(A), Bag(A), "it orders A with A always, the other does not"),
        (PartitionBy("k", Seq(A)), Bag(A), "it orders A with A of the same k, the other does not"),
        (Seq(A), PartitionBy("k", Seq(A)), "it orders A with A always, the other only of the same k"),
        (
            PartitionBy("k", Seq(A)),
            PartitionBy(["k", "j"], Seq(A)),
            "it orders A with A of the same k, the other only of the same j, k",
        ),
        (
            PartitionBy("j", Seq(A)),
            PartitionBy("k", Seq(A)),
            "it orders A with A of the same j, the other only of the same k",
        ),
    ],
    ids=str,
)
def test_a_schema_that_is_no_relaxation_says_why(weak: Schema, strong: Schema, why: str):
    assert weak.why_not_relaxes(strong) == why


def test_a_finer_split_is_a_relaxation():
    assert PartitionBy(["k", "j"], Seq(A)).relaxes(PartitionBy("k", Seq(A)))
    assert PartitionBy("k", Seq(A)).relaxes(Seq(A))


# -- from a relation to a schema -------------------------------------------------------------------------------------


def relation(*pairs: str):
    related = {frozenset(pair) for pair in pairs}
    return lambda a, b: frozenset({a.name, b.name}) in related


@pytest.mark.parametrize(
    ("pairs", "schema"),
    [
        ((), Bag(A, B, C)),
        (("AA",), Par(Bag(B, C), Seq(A))),
        (("AA", "AB"), Par(Bag(C), Sync(A, Bag(B)))),
        (("AA", "AB", "BB", "BC", "AC"), Sync([A, B], Bag(C))),
        (("AA", "BB", "CC"), Par(Seq(A), Seq(B), Seq(C))),
        (("AA", "BB", "AB", "AC"), Sync(A, Par(Bag(C), Seq(B)))),
    ],
    ids=str,
)
def test_a_relation_on_kinds_becomes_the_schema_that_has_it(pairs: tuple[str, ...], schema: Schema):
    assert repr(schema_of([A, B, C], relation(*pairs))) == repr(schema)


def test_no_kinds_make_an_empty_bag():
    assert repr(schema_of([], relation())) == "Bag()"


LOOPS = ("AA", "BB", "CC", "DD")


@pytest.mark.parametrize(
    ("pairs", "shape"),
    [
        ((*LOOPS, "AB", "BC", "CD"), "the path P4 A - B - C - D"),
        ((*LOOPS, "AB", "BC", "CD", "DA"), "the cycle C4 A - B - C - D"),
        (("AB",), "two kinds ordered with each other but neither in itself A - B"),
        (("AB", "BC", "AA", "CC"), "no kind above the others A - B - C"),
    ],
)
def test_a_relation_without_a_hierarchy_is_refused_with_its_shape(pairs: tuple[str, ...], shape: str):
    error = refusal(schema_of, [A, B, C, D], relation(*pairs))

    assert error.came == shape
    assert error.rule is not None


def test_a_schema_is_a_dependence_and_combines_like_one():
    upto = Par(Bag(A), Bag(B)) | Seq(A, B)

    assert upto.depends(A(1, 1, 1), B(1, 1, 1))
    assert (Bag(A, B) | unordered).independent(A(1, 1, 1), B(1, 1, 1))
    assert (Bag(A, B) & ordered).independent(A(1, 1, 1), B(1, 1, 1))
