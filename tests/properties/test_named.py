"""Formulas under a name mean what they meant."""

from __future__ import annotations

import pytest
from formulas import formulas, words
from hypothesis import given

from streamtight.errors import FormulaError
from streamtight.properties.parse import parse
from streamtight.properties.temporal import Formula, always, eventually, next_, now

A, B = now("a"), now("b")


def test_a_name_stands_for_a_test_in_texts():
    bad = now(lambda letter: "bad" in letter).named("bad")

    assert repr(always(bad >> next_(~bad), during=3)) == "always(bad >> next(~bad), during=3)"
    assert bad == now(bad.test)


def test_a_name_stands_for_a_larger_part():
    served = eventually(A, within=2).named("served")

    assert repr(always(B >> served, during=3)) == "always(now('b') >> served, during=3)"
    assert repr(served.named("answered")) == "answered"


def test_a_name_of_several_words_is_held_together_where_it_stands_beside_others():
    shipped = now("shipped").named("is shipped")

    assert repr(now("a") >> shipped) == "now('a') >> (is shipped)"
    assert repr(always(shipped)) == "always(is shipped)"


def test_a_story_tells_the_name():
    why = always(now("a").named("fine"), during=2).explain([{"a"}, set()])

    assert "fine is false at letter 1" in str(why)


@pytest.mark.parametrize("name", ["", "  ", 3, None])
def test_a_name_is_a_text(name: object):
    with pytest.raises(FormulaError, match="a name"):
        A.named(name)  # type: ignore[arg-type]


def test_a_named_atom_can_be_parsed_again():
    tests = {"order": lambda letter: "o" in letter, "sent": lambda letter: "s" in letter}
    formula = parse("always(order >> eventually(sent, within=2), during=3)", tests)

    assert parse(repr(formula), tests) == formula


def _all_named(formula: Formula) -> Formula:
    """The formula with a name around every part."""
    return formula._rebuilt([_all_named(part) for part in formula.parts]).named("x")


@given(formulas(), words())
def test_names_change_no_value(formula: Formula, word: list[set[str]]):
    named = _all_named(formula)

    assert named.evaluate(word) is formula.evaluate(word)
    assert named.safe_length == formula.safe_length
    if formula.evaluate(word) is not None:
        assert named.explain(word).letters == formula.explain(word).letters
