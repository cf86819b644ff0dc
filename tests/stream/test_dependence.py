from __future__ import annotations

import math
import pickle

import pytest

from streamtight.errors import DependenceError
from streamtight.stream.dependence import (
    Clause,
    Dependence,
    Frontier,
    Select,
    barrier,
    between,
    depends,
    ordered,
    same,
    unordered,
)
from streamtight.stream.event import Event, Kind
from streamtight.stream.schema import Bag, Seq
from streamtight.stream.trace import Trace

GPS = Kind("GPS", taxi_id=int, x=float)
Ride = Kind("Ride", taxi_id=int, cost=int)
EndOfDay = Kind("EndOfDay", day=int)
EndOfMonth = Kind("EndOfMonth", month=int)


# -- the forms -------------------------------------------------------------------------------------------------------


def test_no_two_events_of_a_bag_depend_on_each_other():
    assert unordered.independent(GPS(1, 0.0), GPS(1, 0.0))
    assert unordered.explain(GPS(1, 0.0), EndOfDay(1)) is None


def test_every_two_events_of_a_sequence_depend_on_each_other():
    assert ordered.depends(GPS(1, 0.0), EndOfDay(1))
    assert ordered.explain(GPS(1, 0.0), GPS(1, 0.0)) == "ordered"


def test_events_of_the_same_key_depend_on_each_other():
    assert same("taxi_id").depends(GPS(1, 0.0), Ride(1, 500))
    assert same("taxi_id").independent(GPS(1, 0.0), Ride(2, 500))


def test_events_of_the_same_two_keys_agree_on_both():
    assert same("taxi_id", "x").depends(GPS(1, 0.0), GPS(1, 0.0))
    assert same("taxi_id", "x").independent(GPS(1, 0.0), GPS(1, 1.0))
    assert same("taxi_id", "x").independent(GPS(1, 0.0), GPS(2, 0.0))


def test_the_keys_of_two_fields_are_compared_field_by_field():
    kind = Kind("Swap", a=int, b=int)

    assert same("a", "b").independent(kind(1, 2), kind(2, 1))


def test_none_is_a_key_like_any_other():
    kind = Kind("Maybe", key=int | None, n=int)

    assert same("key").depends(kind(None, 1), kind(None, 2))
    assert same("key").independent(kind(None, 1), kind(0, 2))


def test_nan_is_a_key_like_any_other():
    one, other = GPS(1, math.nan), GPS(2, math.nan)

    assert same("x").depends(one, other)
    assert (Trace([one, other], same("x")) == Trace([other, one], same("x"))) == same("x").independent(one, other)


def test_of_says_for_which_events_the_key_counts():
    upto = same("taxi_id", of=GPS)

    assert upto.depends(GPS(1, 0.0), GPS(1, 1.0))
    assert upto.independent(GPS(1, 0.0), Ride(1, 500))
    assert upto.independent(EndOfDay(1), EndOfDay(1))


def test_of_may_be_a_predicate():
    upto = same("taxi_id", of=lambda e: e.kind is GPS and e.x > 0)

    assert upto.depends(GPS(1, 1.0), GPS(1, 2.0))
    assert upto.independent(GPS(1, 0.0), GPS(1, 2.0))
    assert upto.independent(EndOfDay(1), EndOfDay(1))


def test_a_barrier_is_ordered_with_everything():
    upto = barrier(EndOfDay)

    assert upto.depends(GPS(1, 0.0), EndOfDay(1))
    assert upto.depends(EndOfDay(1), GPS(1, 0.0))
    assert upto.depends(EndOfDay(1), EndOfDay(2))
    assert upto.independent(GPS(1, 0.0), GPS(1, 0.0))


def test_a_barrier_may_be_of_several_kinds_or_a_predicate():
    assert barrier([EndOfDay, EndOfMonth]).depends(EndOfMonth(1), GPS(1, 0.0))
    assert barrier(lambda e: e.kind is GPS and e.x < 0).depends(Ride(1, 5), GPS(1, -1.0))
    assert barrier(lambda e: e.kind is GPS and e.x < 0).independent(Ride(1, 5), GPS(1, 1.0))


def test_between_orders_the_one_sort_with_the_other_only():
    upto = between(GPS, Ride)

    assert upto.depends(GPS(1, 0.0), Ride(2, 5))
    assert upto.depends(Ride(2, 5), GPS(1, 0.0))
    assert upto.independent(GPS(1, 0.0), GPS(1, 0.0))
    assert upto.independent(Ride(1, 5), Ride(1, 5))
    assert upto.independent(GPS(1, 0.0), EndOfDay(1))


def test_between_a_sort_and_itself_orders_it():
    assert between(GPS, GPS).depends(GPS(1, 0.0), GPS(2, 0.0))


# -- the algebra -----------------------------------------------------------------------------------------------------


def test_or_relates_what_either_relates():
    upto = barrier(EndOfDay) | same("taxi_id", of=GPS)

    assert upto.depends(GPS(1, 0.0), GPS(1, 1.0))
    assert upto.depends(GPS(1, 0.0), EndOfDay(1))
    assert upto.independent(GPS(1, 0.0), GPS(2, 1.0))


def test_and_relates_what_both_relate():
    upto = between(GPS, Ride) & same("taxi_id")

    assert upto.depends(GPS(1, 0.0), Ride(1, 5))
    assert upto.depends(Ride(1, 5), GPS(1, 0.0))
    assert upto.independent(GPS(1, 0.0), Ride(2, 5))
    assert upto.independent(GPS(1, 0.0), GPS(1, 0.0))


def test_and_of_two_barriers_needs_each_somewhere():
    upto = barrier(GPS) & barrier(Ride)

    assert upto.depends(GPS(1, 0.0), Ride(1, 5))
    assert upto.independent(GPS(1, 0.0), GPS(1, 0.0))
    assert upto.independent(GPS(1, 0.0), EndOfDay(1))


def test_and_of_two_betweens_looks_both_ways():
    upto = between([GPS, Ride], [Ride, EndOfDay]) & between(EndOfDay, [GPS, Ride])

    assert upto.depends(GPS(1, 0.0), EndOfDay(1))
    assert upto.depends(EndOfDay(1), Ride(1, 5))
    assert upto.independent(GPS(1, 0.0), Ride(1, 5))


def test_and_distributes_over_or():
    upto = (barrier(EndOfDay) | same("taxi_id", of=[GPS, Ride])) & between(GPS, [Ride, EndOfDay])

    assert upto.depends(GPS(1, 0.0), EndOfDay(1))
    assert upto.depends(GPS(1, 0.0), Ride(1, 5))
    assert upto.independent(GPS(1, 0.0), Ride(2, 5))
    assert upto.independent(EndOfDay(1), EndOfDay(2))


def test_a_function_may_be_combined_with_the_algebra():
    upto = same("taxi_id", of=GPS) & depends(lambda a, b: abs(a.x - b.x) < 1)

    assert upto.depends(GPS(1, 0.0), GPS(1, 0.5))
    assert upto.independent(GPS(1, 0.0), GPS(1, 2.0))
    assert upto.independent(GPS(1, 0.0), GPS(2, 0.5))


def test_two_functions_joined_by_and_must_both_agree():
    upto = depends(lambda a, b: a.taxi_id == b.taxi_id) & depends(lambda a, b: a.x == b.x)
    alike, near, far = GPS(1, 0.0), GPS(1, 1.0), GPS(2, 1.0)

    assert upto.depends(alike, GPS(1, 0.0))
    assert upto.independent(alike, near)
    assert upto.independent(near, far)
    assert Trace([alike, near, far], upto) == Trace([far, near, alike], upto)


def test_two_predicates_joined_by_and_must_both_agree():
    upto = between(lambda e: e.x > 0, GPS) & between(lambda e: e.taxi_id == 1, lambda e: e.taxi_id == 2)

    assert upto.depends(GPS(1, 1.0), GPS(2, 0.0))
    assert upto.depends(GPS(1, 0.0), GPS(2, 1.0))
    assert upto.independent(GPS(1, 0.0), GPS(2, 0.0))
    assert upto.independent(GPS(1, 1.0), GPS(1, 1.0))


@pytest.mark.parametrize(
    ("upto", "text"),
    [
        (unordered, "unordered"),
        (ordered, "ordered"),
        (same("taxi_id", "x"), "same('taxi_id', 'x')"),
        (same("taxi_id", of=GPS), "same('taxi_id', of=GPS)"),
        (same("taxi_id", of=[Ride, GPS]), "same('taxi_id', of={GPS, Ride})"),
        (barrier(EndOfDay), "barrier(EndOfDay)"),
        (between(GPS, [Ride, EndOfDay]), "between(GPS, {EndOfDay, Ride})"),
        (depends(max), "depends(max)"),
        (ordered | unordered, "ordered | unordered"),
        ((barrier(GPS) | ordered) & same("x"), "(barrier(GPS) | ordered) & same('x')"),
        (barrier(GPS) | ordered & same("x"), "barrier(GPS) | ordered & same('x')"),
        (Bag(GPS) & ordered, "Bag(GPS) & ordered"),
    ],
    ids=lambda value: str(value) if isinstance(value, Dependence) else "",
)
def test_a_dependence_reads_as_it_was_written(upto: Dependence, text: str):
    assert repr(upto) == text


def test_the_first_clause_that_relates_two_events_explains_them():
    upto = barrier(EndOfDay) | same("taxi_id", of=GPS) | ordered

    assert upto.explain(GPS(1, 0.0), GPS(1, 1.0)) == "same('taxi_id', of=GPS)"
    assert upto.explain(GPS(1, 0.0), EndOfDay(1)) == "barrier(EndOfDay)"
    assert upto.explain(GPS(1, 0.0), GPS(2, 1.0)) == "ordered"


def test_dependences_are_equal_whatever_the_order_and_the_text_of_their_clauses():
    one = barrier(EndOfDay) | same("taxi_id", of=GPS)
    other = same("taxi_id", of=[GPS]) | barrier({EndOfDay}) | barrier(EndOfDay)

    assert one == other
    assert hash(one) == hash(other)


@pytest.mark.parametrize(
    "other",
    [same("x"), same("taxi_id", "x"), same("taxi_id", of=GPS), ordered, unordered, "same('taxi_id')"],
    ids=repr,
)
def test_dependences_with_other_clauses_are_different(other: object):
    assert same("taxi_id") != other


def test_dependences_of_functions_are_equal_only_if_the_functions_are_one():
    assert depends(max) == depends(max)
    assert depends(max) != depends(min)
    assert depends(max) != ordered


def test_a_schema_is_not_equal_to_a_schema_of_other_kinds():
    assert Bag(GPS) != Bag(Ride)
    assert Bag(GPS) != unordered


def test_a_dependence_survives_pickling():
    upto = barrier(EndOfDay) | same("taxi_id", of=GPS)

    assert pickle.loads(pickle.dumps(upto)) == upto


def test_clauses_that_can_relate_nothing_are_left_out():
    assert (same("taxi_id", of=GPS) & barrier(EndOfDay)).clauses == ()
    assert (between(GPS, Ride) & between(EndOfDay, GPS)).clauses == ()


def test_a_selection_of_no_kinds_is_impossible_and_of_any_kind_is_not():
    assert Select(frozenset()).impossible
    assert not Select().impossible
    assert not Select(frozenset({GPS})).impossible


# -- domains ---------------------------------------------------------------------------------------------------------


def test_the_union_of_two_schemas_knows_the_kinds_of_both():
    both = Seq(GPS) | Bag(Ride)

    assert both.domain == {GPS, Ride}
    assert both.independent(GPS(1, 0.0), Ride(1, 5))


def test_the_intersection_of_two_schemas_knows_the_kinds_of_both_only():
    assert (Seq(GPS, Ride) & Seq(Ride, EndOfDay)).domain == {Ride}


def test_a_schema_and_a_dependence_without_a_domain():
    assert (Seq(GPS) | ordered).domain is None
    assert (ordered | Seq(GPS)).domain is None
    assert (Seq(GPS) & ordered).domain == {GPS}
    assert (ordered & Seq(GPS)).domain == {GPS}


def test_an_event_outside_the_domain_is_refused_on_either_side():
    upto = Seq(GPS) & ordered

    for pair in [(GPS(1, 0.0), Ride(1, 5)), (Ride(1, 5), GPS(1, 0.0))]:
        with pytest.raises(DependenceError, match="an event of GPS"):
            upto.depends(*pair)
        with pytest.raises(DependenceError):
            upto.explain(*pair)


# -- keys ------------------------------------------------------------------------------------------------------------


def test_a_key_that_a_kind_lacks_is_refused_where_it_is_asked_for():
    with pytest.raises(DependenceError, match="'taxi_id'"):
        same("taxi_id").depends(GPS(1, 0.0), EndOfDay(1))
    with pytest.raises(DependenceError, match="'taxi_id'"):
        Trace([EndOfDay(1)], same("taxi_id")).levels  # noqa: B018


def test_a_kind_without_the_key_is_no_matter_if_it_is_not_selected():
    upto = same("taxi_id", of=lambda e: e.kind is GPS)

    assert Trace([EndOfDay(1), EndOfDay(2)], upto) == Trace([EndOfDay(2), EndOfDay(1)], upto)


def test_a_kind_without_the_key_is_refused_once_a_predicate_selects_it():
    upto = same("taxi_id", of=lambda e: e.kind is GPS or e.day == 2)

    assert len(Trace([EndOfDay(1)], upto).levels) == 1
    with pytest.raises(DependenceError, match="'taxi_id'"):
        Trace([EndOfDay(2)], upto).levels  # noqa: B018


@pytest.mark.parametrize(
    ("upto", "fields"),
    [
        (same("taxi_id"), ("taxi_id",)),
        (same("taxi_id", "x") | same("x", "taxi_id"), ("taxi_id", "x")),
        (same("taxi_id", "x") | same("x"), ("x",)),
        (between(GPS, Ride) & same("taxi_id"), ("taxi_id",)),
        (unordered, ()),
    ],
    ids=repr,
)
def test_a_dependence_can_be_split_by_the_keys_of_all_its_clauses(upto: Dependence, fields: tuple[str, ...]):
    key = upto.partition_key()

    assert key is not None
    assert key.fields == fields
    assert repr(key) == f"PartitionKey({', '.join(fields)})"


@pytest.mark.parametrize(
    "upto", [ordered, same("taxi_id") | same("x"), same("x") | barrier(EndOfDay), depends(max)], ids=repr
)
def test_a_dependence_whose_clauses_have_no_key_in_common_cannot_be_split(upto: Dependence):
    assert upto.partition_key() is None


def test_events_of_the_same_key_go_to_the_same_place():
    key = same("taxi_id").partition_key()

    assert key(GPS(1, 0.0)) == key(Ride(1, 5)) != key(GPS(2, 0.0))


def test_events_on_either_side_of_a_clause_have_its_key():
    key = (between(GPS, Ride) & same("taxi_id")).partition_key()

    assert key(GPS(1, 0.0)) == key(Ride(1, 5)) == (1,)


def test_an_event_that_no_clause_speaks_of_is_its_own_key():
    key = same("taxi_id", of=GPS).partition_key()

    assert key(EndOfDay(1)) == key(EndOfDay(1)) != key(EndOfDay(2))


def test_a_partition_key_names_the_field_that_a_kind_lacks():
    key = same("taxi_id").partition_key()

    with pytest.raises(DependenceError, match="'taxi_id'"):
        key(EndOfDay(1))


# -- validate --------------------------------------------------------------------------------------------------------


def test_a_function_that_is_not_symmetric_is_refused():
    with pytest.raises(DependenceError, match="symmetric"):
        depends(lambda a, b: a.x < b.x).validate([GPS(1, 0.0), GPS(1, 0.0), GPS(1, 1.0)])


def test_a_symmetric_function_is_valid():
    assert depends(lambda a, b: abs(a.x - b.x) < 1).validate([GPS(1, 0.0), GPS(2, 0.5), GPS(3, 9.0)]) is None


def test_a_relation_that_reads_what_the_equality_ignores_is_refused():
    same_taxi = lambda a, b: a.taxi_id == b.taxi_id  # noqa: E731

    with pytest.raises(DependenceError, match="treats equal events alike"):
        same("x").validate([GPS(1, 0.0), GPS(1, 1.0), GPS(2, 1.0)], equal=same_taxi)


def test_a_relation_that_reads_what_the_equality_compares_is_valid():
    same_taxi = lambda a, b: a.taxi_id == b.taxi_id  # noqa: E731

    assert same("taxi_id").validate([GPS(1, 0.0), GPS(1, 1.0), GPS(2, 1.0)], equal=same_taxi) is None


def test_pairs_of_equal_events_prove_nothing_against_a_relation():
    same_taxi = lambda a, b: a.taxi_id == b.taxi_id  # noqa: E731
    different = depends(lambda a, b: a != b)

    assert different.validate([GPS(1, 0.0), GPS(1, 1.0)], equal=same_taxi) is None


@pytest.mark.parametrize("operand", [3, GPS, "same('taxi_id')", None])
def test_only_dependences_combine_with_dependences(operand: object):
    for combine in (lambda: ordered | operand, lambda: ordered & operand):
        with pytest.raises((DependenceError, TypeError)):
            combine()


# -- the index -------------------------------------------------------------------------------------------------------


def test_the_index_starts_empty():
    assert Frontier(ordered).highest_below(GPS(1, 0.0)) == 0


def test_the_index_remembers_the_highest_of_each_key():
    frontier = Frontier(same("taxi_id"))
    frontier.add(GPS(1, 0.0), 1.0)
    frontier.add(GPS(1, 1.0), 2.0)
    frontier.add(GPS(2, 0.0), 1.5)

    assert [frontier.highest_below(GPS(taxi, 9.0)) for taxi in (1, 2, 3)] == [2.0, 1.5, 0.0]


def test_the_index_keeps_the_highest_if_a_lower_one_comes_later():
    frontier = Frontier(between(GPS, Ride))
    frontier.add(GPS(1, 0.0), 3.0)
    frontier.add(GPS(2, 0.0), 1.0)

    assert frontier.highest_below(Ride(1, 5)) == 3.0
    assert frontier.highest_below(GPS(1, 0.0)) == 0.0


def test_the_index_keeps_the_highest_related_event_of_a_function():
    frontier = Frontier(depends(lambda a, b: abs(a.x - b.x) < 1))
    for height, x in [(3.0, 5.0), (2.0, 0.0), (1.0, 1.5)]:
        frontier.add(GPS(1, x), height)

    assert [frontier.highest_below(GPS(1, x)) for x in (0.75, 1.25, 5.1, 9.0)] == [2.0, 1.0, 3.0, 0.0]


def test_the_index_keeps_the_two_sides_of_a_clause_apart():
    near, far = (lambda e: e.x < 1), (lambda e: e.x >= 1)
    frontier = Frontier(between(near, far))
    frontier.add(GPS(1, 0.0), 1.0)

    assert frontier.highest_below(GPS(1, 0.5)) == 0.0
    assert frontier.highest_below(GPS(1, 1.5)) == 1.0


def test_the_index_refuses_events_outside_the_domain():
    with pytest.raises(DependenceError):
        Frontier(Seq(GPS) & ordered).highest_below(Ride(1, 5))


def test_placing_an_event_adds_it_a_step_above_what_it_depends_on():
    for upto in (same("taxi_id"), barrier(Ride) | same("taxi_id"), same("taxi_id") | barrier(Ride)):
        frontier = Frontier(upto)
        heights = [frontier.place(GPS(taxi, 0.0), step) for taxi, step in [(1, 1.0), (1, 0.5), (2, 0.25), (1, 1.0)]]

        assert heights == [1.0, 1.5, 0.25, 2.5]


def test_placing_an_event_minds_every_clause():
    frontier = Frontier(same("taxi_id") | barrier(Ride))
    events = [GPS(1, 0.0), Ride(2, 5), GPS(3, 0.0), GPS(1, 0.0)]

    assert [frontier.place(event, 1.0) for event in events] == [1.0, 2.0, 3.0, 3.0]


def test_an_event_that_nothing_speaks_of_is_placed_one_step_up():
    assert Frontier(unordered).place(GPS(1, 0.0), 0.5) == 0.5


# -- DiffStream, Section 3 -------------------------------------------------------------------------------------------

taxis = [GPS(1, 0.0), GPS(1, 1.0), GPS(2, 0.0)]
days = [EndOfDay(1), EndOfDay(2)]
months = [EndOfMonth(1), EndOfMonth(2)]


def extended_taxi(a: Event, b: Event) -> bool:
    """Figure 5, as it is printed."""
    return (
        a.kind is EndOfDay
        or b.kind is EndOfDay
        or (a.kind is EndOfMonth and b.kind is EndOfMonth)
        or (a.kind is GPS and b.kind is GPS and a.taxi_id == b.taxi_id)
    )


@pytest.mark.parametrize("a", [*taxis, *days, *months], ids=repr)
@pytest.mark.parametrize("b", [*taxis, *days, *months], ids=repr)
def test_the_extended_taxi_relation_is_a_line_of_the_algebra(a: Event, b: Event):
    upto = barrier(EndOfDay) | between(EndOfMonth, EndOfMonth) | same("taxi_id", of=GPS)

    assert upto.depends(a, b) == extended_taxi(a, b) == depends(extended_taxi).depends(a, b)


def test_an_end_of_month_may_come_anywhere_between_two_ends_of_day():
    upto = barrier(EndOfDay) | between(EndOfMonth, EndOfMonth) | same("taxi_id", of=GPS)
    trace = Trace([EndOfDay(31), EndOfMonth(1), GPS(1, 0.0), EndOfDay(1)], upto)

    assert trace == Trace([EndOfDay(31), GPS(1, 0.0), EndOfMonth(1), EndOfDay(1)], upto)
    assert trace != Trace([EndOfDay(31), GPS(1, 0.0), EndOfDay(1), EndOfMonth(1)], upto)


def test_proximity_is_a_function_of_two_events():
    """Figure 6: events are dependent if their locations are close."""
    upto = depends(lambda a, b: abs(a.x - b.x) < 1)
    near, nearer, far = GPS(1, 0.0), GPS(2, 0.5), GPS(3, 1.25)

    assert Trace([near, far, nearer], upto) == Trace([far, near, nearer], upto)
    assert Trace([near, far, nearer], upto) != Trace([near, nearer, far], upto)


def test_a_punctuation_depends_on_earlier_events_only():
    """Figure 7: reordering a punctuation with an event of an earlier timestamp matters, with a later one not."""
    reading, punctuation = Kind("Reading", timestamp=int), Kind("Punctuation", timestamp=int)

    def late(a: Event, b: Event) -> bool:
        if a.kind is punctuation and b.kind is punctuation:
            return True
        return (a.kind is punctuation and b.timestamp < a.timestamp) or (
            b.kind is punctuation and a.timestamp < b.timestamp
        )

    upto = depends(late)

    upto.validate([reading(1), reading(5), punctuation(3), punctuation(6)])
    assert Trace([reading(5), punctuation(3)], upto) == Trace([punctuation(3), reading(5)], upto)
    assert Trace([reading(1), punctuation(3)], upto) != Trace([punctuation(3), reading(1)], upto)
    assert Trace([reading(1), reading(2)], upto) == Trace([reading(2), reading(1)], upto)


def test_a_clause_relates_either_way_round():
    clause = Clause("c", (), Select(frozenset({GPS})), Select(frozenset({Ride})))

    assert clause.relates(GPS(1, 0.0), Ride(1, 5))
    assert clause.relates(Ride(1, 5), GPS(1, 0.0))
