from __future__ import annotations

import pickle

import pytest

import streamtight as tight
from streamtight.errors import DependenceError, SchemaError, StreamtightError, TraceError
from streamtight.method.compare.matcher import Matcher
from streamtight.stream.dependence import barrier, depends, ordered, same, unordered
from streamtight.stream.equality import equality
from streamtight.stream.event import Kind
from streamtight.stream.schema import Bag, PartitionBy, Seq, Sync

GPS = Kind("GPS", taxi_id=int, x=float)
EndOfDay = Kind("EndOfDay", day=int)


def test_it_is_refuted_for_ever():
    m = Matcher(upto=ordered)
    left, right = m.left, m.right
    m.left(GPS(1, 0.0))

    assert m.right(GPS(2, 0.0)) is False
    assert m.left(GPS(2, 0.0)) is False
    assert left(GPS(9, 9.0)) is False
    assert right(GPS(1, 0.0)) is False
    assert m.feed("left", []) is False
    assert m.finish().fails


def test_the_difference_is_data():
    m = Matcher(upto=barrier(EndOfDay) | same("taxi_id", of=GPS))
    m.feed("left", [GPS(1, 0.0), GPS(2, 5.0), EndOfDay(1)])
    m.feed("right", [GPS(1, 0.0), EndOfDay(1)])

    found = m.difference

    assert found.came.side == "right"
    assert found.came.position == 2
    assert found.came.event == EndOfDay(1)
    assert [(place.side, place.position, place.event) for place in found.against[:1]] == [("left", 2, GPS(2, 5.0))]
    assert found.clause == "barrier(EndOfDay)"
    assert found.expected == (GPS(2, 5.0),)


def test_what_is_left_over_is_told_at_the_end():
    m = Matcher(upto=unordered)
    m.feed("left", [GPS(1, 0.0), GPS(2, 0.0)])
    m.feed("right", [GPS(2, 0.0), GPS(2, 0.0)])

    verdict = m.finish()

    assert verdict.counterexample.finding == "LEFT_OVER"
    assert verdict.counterexample.expected == (GPS(1, 0.0),)
    assert verdict.counterexample.actual == (GPS(2, 0.0),)
    assert "left event 1, GPS(taxi_id=1, x=0.0), has no match" in verdict.counterexample.explanation
    assert "right event 2" in verdict.counterexample.explanation


def test_the_replay_of_a_difference_shows_it_again():
    m = Matcher(upto=same("taxi_id"))
    m.feed("left", [GPS(7, 7.0), GPS(1, 0.0), GPS(1, 1.0)])
    m.feed("right", [GPS(7, 7.0), GPS(1, 1.0)])
    replay = m.finish().counterexample.replay

    with pytest.raises(AssertionError, match="FAILS"):
        exec(replay, {"GPS": GPS})

    assert "GPS(taxi_id=7" not in replay


def test_nothing_at_all_is_undecided():
    verdict = Matcher(upto=ordered).finish()

    assert verdict.undecided
    assert "vacuous" in verdict.reason


def test_the_state_can_be_pickled():
    m = Matcher(upto=same("taxi_id"))
    m.feed("left", [GPS(1, 0.0), GPS(1, 1.0), GPS(2, 0.0)])
    m.right(GPS(1, 0.0))

    resumed = Matcher(upto=same("taxi_id"), resume=pickle.loads(pickle.dumps(m.state)))

    assert resumed.unmatched == m.unmatched
    assert resumed.seen == (3, 1)
    assert resumed.right(GPS(1, 5.0)) is False
    assert resumed.difference.came.position == 2
    assert resumed.difference.against[0].position == 2


@pytest.mark.parametrize(
    ("upto", "way"),
    [
        (unordered, "bag"),
        (ordered, "total"),
        (same("taxi_id"), "keyed by taxi_id"),
        (Bag(GPS), "bag"),
        (Seq(GPS), "total"),
        (PartitionBy("taxi_id", Seq(GPS)), "keyed by taxi_id"),
        (Sync(EndOfDay, PartitionBy("taxi_id", Seq(GPS))), "epochs(keyed by taxi_id)"),
        (barrier(EndOfDay) | same("taxi_id", of=GPS), "epochs(side by side(keyed by taxi_id, bag))"),
        (tight.punctuation(EndOfDay, time="day"), "index"),
        (depends(lambda a, b: a.x == b.x), "scan"),
    ],
    ids=str,
)
def test_it_says_how_it_matches(upto, way):
    assert Matcher(upto=upto).way == way


# -- equality ----------------------------------------------------------------------------------------------------------


def test_ignored_fields_do_not_matter():
    m = Matcher(upto=same("taxi_id"), equal=equality(ignore="x"))
    m.left(GPS(1, 0.0))

    assert m.right(GPS(1, 99.0))
    assert m.finish().holds


def test_rounding_is_a_tolerance():
    m = Matcher(upto=unordered, equal=equality(places={"x": 1}))
    m.left(GPS(1, 0.3000001))

    assert m.right(GPS(1, 0.1 + 0.2))
    assert m.finish().holds


def test_a_function_of_two_events_may_be_the_equality():
    m = Matcher(upto=unordered, equal=lambda a, b: a.taxi_id == b.taxi_id)
    m.left(GPS(1, 0.0))
    m.right(GPS(1, 5.0))

    assert m.finish().holds


# -- wrong questions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("thing", [5, None, "GPS", [], [[]], (1, 2), object()], ids=lambda thing: type(thing).__name__)
@pytest.mark.parametrize(
    "upto", [unordered, ordered, same("taxi_id"), barrier(EndOfDay), depends(lambda a, b: True)], ids=str
)
def test_what_is_no_event_is_refused(upto, thing):
    with pytest.raises(TraceError, match="needed an event"):
        Matcher(upto=upto).left(thing)


def test_an_event_of_an_unknown_kind_is_refused():
    with pytest.raises(SchemaError, match="EndOfDay"):
        Matcher(upto=Bag(GPS)).right(EndOfDay(1))


def test_an_event_without_the_key_field_is_refused():
    m = Matcher(upto=same("taxi_id"))
    m.left(GPS(1, 0.0))

    with pytest.raises(DependenceError, match="a field 'taxi_id'"):
        m.left(EndOfDay(1))


def test_an_error_leaves_the_matcher_as_it_was():
    m = Matcher(upto=same("taxi_id"))
    m.left(GPS(1, 0.0))
    with pytest.raises(StreamtightError):
        m.right(EndOfDay(1))

    assert m.seen == (1, 0)
    assert m.right(GPS(1, 0.0))
    assert m.finish().holds


def test_a_relation_that_is_not_symmetric_is_refused():
    m = Matcher(upto=depends(lambda a, b: a.taxi_id < b.taxi_id))
    m.left(GPS(1, 0.0))

    with pytest.raises(DependenceError, match="symmetric"):
        m.left(GPS(2, 0.0))


@pytest.mark.parametrize(
    ("equal", "rule", "events"),
    [
        (lambda a, b: abs(a.x - b.x) < 1, "transitive", [GPS(1, 0.0), GPS(1, 0.9), GPS(1, 1.8)]),
        (lambda a, b: a.x <= b.x, "symmetric", [GPS(1, 0.0), GPS(1, 1.0)]),
        (lambda a, b: False, "reflexive", [GPS(1, 0.0)]),
    ],
    ids=["transitive", "symmetric", "reflexive"],
)
def test_an_equality_that_is_no_equivalence_is_refused_by_the_name_of_the_rule(equal, rule, events):
    m = Matcher(upto=unordered, equal=equal)

    with pytest.raises(DependenceError, match=f"not {rule}") as raised:
        m.feed("left", events)
    assert repr(events[-1]) in str(raised.value)


def test_a_relation_that_reads_what_the_equality_ignores_is_refused():
    m = Matcher(upto=same("taxi_id"), equal=equality(ignore="taxi_id"))
    m.left(GPS(1, 0.0))

    with pytest.raises(DependenceError, match="treats equal events alike"):
        m.right(GPS(2, 0.0))


def test_an_opaque_relation_that_reads_what_the_equality_ignores_is_refused():
    m = Matcher(upto=depends(lambda a, b: a.taxi_id == b.taxi_id), equal=equality(ignore="taxi_id"))

    with pytest.raises(DependenceError, match="treats equal events alike"):
        m.feed("left", [GPS(1, 0.0), GPS(1, 1.0), GPS(2, 0.0)])


@pytest.mark.parametrize("equal", [5, "x", lambda a: a], ids=["number", "text", "one argument"])
def test_what_is_no_equality_is_refused(equal):
    with pytest.raises(DependenceError, match="a function of two events"):
        Matcher(upto=unordered, equal=equal)


def test_what_is_no_relation_is_refused():
    with pytest.raises(TraceError, match="a dependence or a schema"):
        Matcher(upto="taxi_id")


def test_there_are_two_sides():
    with pytest.raises(TraceError, match="'left' or 'right'"):
        Matcher(upto=ordered).feed("middle", [])


# -- tables ------------------------------------------------------------------------------------------------------------

pa = pytest.importorskip("pyarrow")


def table(*rows):
    return pa.table({"taxi_id": [taxi for taxi, _ in rows], "x": [x for _, x in rows]})


@pytest.mark.parametrize("upto", [unordered, ordered, same("taxi_id"), Seq(GPS)], ids=str)
def test_equal_tables_hold(upto):
    m = Matcher(upto=upto)
    assert m.feed("left", table((1, 0.0), (2, 1.0)))
    assert m.feed("right", table((1, 0.0)))
    assert m.feed("right", table((2, 1.0)))

    assert m.seen == (2, 2)
    assert m.finish().holds


def test_tables_and_events_can_be_mixed():
    m = Matcher(upto=PartitionBy("taxi_id", Seq(GPS)))
    left = m.left
    m.feed("left", table((1, 0.0), (1, 1.0), (2, 0.0)))
    m.feed("right", table((1, 0.0)))

    assert m.unmatched.left == (GPS(1, 1.0), GPS(2, 0.0))
    assert m.right(GPS(2, 0.0))
    assert left(GPS(3, 3.0))
    assert m.seen == (4, 2)
    assert m.feed("right", table((3, 3.0)))
    assert m.right(GPS(1, 5.0)) is False
    assert m.difference.came.position == 4
    assert m.difference.against[0].position == 2


def test_a_difference_of_tables_is_told_like_one_of_events():
    by_table, by_event = (Matcher(upto=PartitionBy("taxi_id", Seq(GPS))) for _ in range(2))
    left, right = [(1, 0.0), (2, 0.0), (1, 1.0)], [(2, 0.0), (1, 0.0), (1, 2.0), (1, 3.0)]
    by_table.feed("left", table(*left))
    by_table.feed("right", table(*right))
    by_event.feed("left", [GPS(*row) for row in left])
    by_event.feed("right", [GPS(*row) for row in right])

    assert by_table.difference == by_event.difference
    assert by_table.finish().counterexample == by_event.finish().counterexample
    assert by_table.left(GPS(1, 1.0)) is False


def test_a_table_goes_event_by_event_where_the_relation_needs_it():
    m = Matcher(upto=Sync(EndOfDay, PartitionBy("taxi_id", Seq(GPS))))
    m.feed("left", table((1, 0.0), (1, 1.0)), kind=GPS)
    m.left(EndOfDay(1))

    assert m.feed("right", table((1, 0.0)), kind=GPS)
    assert m.right(EndOfDay(1)) is False


def test_a_column_that_is_missing_is_told():
    m = Matcher(upto=Seq(GPS))

    with pytest.raises(TraceError, match="the columns taxi_id, x of GPS"):
        m.feed("left", pa.table({"taxi_id": [1]}))


def test_a_table_of_one_of_several_kinds_needs_its_name():
    with pytest.raises(TraceError, match="kind=") as raised:
        Matcher(upto=Bag(GPS, EndOfDay)).feed("left", table((1, 0.0)))
    assert "EndOfDay, GPS" in str(raised.value)


def test_a_null_where_the_kind_has_none_is_refused():
    with pytest.raises(TraceError, match="1 nulls"):
        Matcher(upto=Seq(GPS)).feed("left", pa.table({"taxi_id": [1, None], "x": [0.0, 1.0]}))


def test_tables_of_different_columns_are_refused():
    m = Matcher(upto=unordered)
    m.feed("left", table((1, 0.0)))

    with pytest.raises(TraceError):
        m.feed("right", pa.table({"taxi_id": ["one"], "x": [0.0]}))
