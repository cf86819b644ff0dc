"""Programs without what they would calculate or keep twice."""

from __future__ import annotations

from streamtight.properties.merged import merged
from streamtight.properties.query import any_ as any_item
from streamtight.properties.query import atom, combine, cur, iter_, or_, second, split
from streamtight.properties.query_machine import value_machine
from streamtight.properties.straight import Step, Straight, Temporary, straight
from streamtight.properties.term import ADD, Apply, Constant, Current, Operation, Slot
from streamtight.properties.transducer import UNDEFINED

CUR = Current()


def added(place: int) -> Apply:
    return Apply(ADD, (Slot(place), CUR))


def program(*updates: tuple[int, object], start: tuple[object, ...], values: tuple[object, ...] = ()) -> Straight:
    step = Step(values, updates, Slot(0), 0)
    return Straight(("v",), len(start), 1, start, UNDEFINED, {(0, "v"): step})


def test_registers_that_begin_and_go_on_alike_are_one():
    found = merged(program((0, added(0)), (1, added(1)), start=(0, 0)))

    assert found.registers == 1
    assert [(place, str(term)) for place, term in found.steps[0, "v"].updates] == [(0, "x0 + cur")]


def test_registers_that_begin_differently_stay_two():
    assert merged(program((0, added(0)), (1, added(1)), start=(0, 1))).registers == 2


def test_zero_and_minus_zero_are_not_the_same_beginning():
    assert merged(program((0, added(0)), (1, added(1)), start=(0.0, -0.0))).registers == 2


def test_one_and_true_are_not_the_same_beginning():
    assert merged(program((0, added(0)), (1, added(1)), start=(1, True))).registers == 2


def test_registers_of_which_one_is_not_updated_stay_two():
    assert merged(program((0, added(0)), start=(0, 0))).registers == 2


def test_registers_that_take_each_others_place_are_one():
    assert merged(program((0, Slot(1)), (1, Slot(0)), start=(5, 5))).registers == 1


def test_a_value_that_is_calculated_twice_is_calculated_once():
    twice = (Apply(ADD, (CUR, Constant(1))), Apply(ADD, (CUR, Constant(1))))
    found = merged(program((0, Temporary(0)), (1, Temporary(1)), start=(0, 0), values=twice))

    assert len(found.steps[0, "v"].values) == 1
    assert found.registers == 1


def test_functions_of_the_user_are_called_as_often_as_before():
    count = Operation("count", 1, lambda value: value)
    twice = (Apply(count, (CUR,)), Apply(count, (CUR,)))
    found = merged(program((0, Temporary(0)), (1, Temporary(1)), start=(0, 0), values=twice))

    assert len(found.steps[0, "v"].values) == 2
    assert found.registers == 2


def test_a_query_that_asks_twice_for_a_total_keeps_it_once():
    total = iter_(any_item(cur), 0, lambda x, y: x + y)
    other = iter_(any_item(cur), 0, lambda x, y: x + y)
    before = straight(value_machine(combine(total, other, lambda x, y: x * y), ("v",)), [0])

    assert (before.registers, merged(before).registers) == (2, 1)


def test_what_a_split_keeps_twice_is_kept_once():
    query = split(or_(atom("a", cur), atom("b", cur)), any_item(cur), second)
    compiled = query.compile(("a", "b"))

    assert compiled.run([("a", 1), ("b", 2)]) == [UNDEFINED, UNDEFINED, 2]
