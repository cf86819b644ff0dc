"""Why a formula is true or false: the parts and the letters that matter, and no others."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from formulas import formulas, letter, words
from hypothesis import HealthCheck, assume, given, settings
from oracle import value_at

from streamtight.errors import EncodingError, FormulaError, PredicateError
from streamtight.properties.explain import Why, value_table
from streamtight.properties.temporal import (
    FALSE,
    TRUE,
    always,
    eventually,
    exists,
    forall,
    historically,
    next_,
    now,
    once,
    previously,
    release,
    since,
    until,
)

a, b, c = map(now, "abc")


def walk(why: Why) -> list[Why]:
    return [why, *(one for part in why.because for one in walk(part))]


# -- laws ------------------------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(formulas(past=True, made=True, time=True), words(least=1))
def test_the_named_letters_decide_the_formula_and_none_of_them_can_be_left_out(formula, word):
    judge = formula.judge(keep=True)
    for seen in word:
        judge.step(seen)
    assume(judge.value is not None)
    read = word[: judge.letters]
    times = [seen.time for seen in read]

    why = formula.explain(word)

    assert why.value is judge.value
    assert value_at(formula, read, 0, times, known=why.letters) is judge.value
    for needed in why.letters:
        assert value_at(formula, read, 0, times, known=set(why.letters) - {needed}) is None
    for part in walk(why):
        assert value_at(part.formula, read, part.letter, times) is part.value


# -- what is told ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formula", "word", "letters"),
    [
        (always("a"), "a a b a", (2,)),
        (always("a", during=3), "a a a", (0, 1, 2)),
        (eventually("b", within=3), "a a b", (2,)),
        (eventually("b", within=2), "a a b", (0, 1)),
        (until("a", "b", within=4), "a a b", (0, 1, 2)),
        (until("a", "b", within=4), "a c b", (0, 1)),
        (until("a", "b", within=2), "a a b", (0, 1)),
        (release("b", "a", within=3), "a ab b", (0, 1)),
        (release("b", "a", within=3), "a b", (0, 1)),
        (a & b, "a", (0,)),
        (next_("b", 2), "a a b", (2,)),
        (next_(previously("a")), "a b", (0,)),
        (next_(once("a"), 2), "a b b", (0,)),
        (next_(historically("a", during=2), 2), "b a b", (2,)),
        (next_(since("a", "b"), 2), "b a a", (0, 1, 2)),
        (next_(since("a", "b"), 2), "b c a", (1, 2)),
        (~previously("a"), "a", ()),
        (b >> always("c", during=5), "a", (0,)),
        (TRUE, "", ()),
    ],
    ids=repr,
)
def test_letters_that_matter(formula, word, letters):
    assert formula.explain(word.split()).letters == letters


def test_letters_that_the_parts_need_and_the_whole_does_not_are_left_out():
    word = [set(), set(), {"b"}, {"b"}, {"b"}]

    assert always(eventually("b", within=4), during=5).explain(word).letters == (2, 4)
    assert eventually(always("c", during=3), within=4).explain([set()] * 4).letters == (0, 3)


def test_of_several_reasons_the_shortest_is_told():
    formula = always(until("a", "b", within=3))

    why = formula.explain(["a", "c", "c"])

    assert why.letters == (1,)


def test_why_is_a_tree_of_data():
    why = always(a >> eventually("b", within=2)).explain([{"b"}, {"a"}, set()])

    assert (why.letter, why.value) == (0, False)
    [implication] = why.because
    assert (implication.formula, implication.letter) == (a >> eventually("b", within=2), 1)
    assert [(atom.formula, atom.letter, atom.value) for atom in why.atoms] == [
        (a, 1, True),
        (b, 1, False),
        (b, 2, False),
    ]


def test_why_reads_as_a_text():
    why = always(a >> eventually("b", within=4)).explain([{"a"}, set(), set(), set()])

    assert str(why) == (
        "always(now('a') >> eventually('b', within=4)) is false at letter 0, because\n"
        "  now('a') >> eventually('b', within=4) is false at letter 0, because\n"
        "    now('a') is true at letter 0\n"
        "    eventually('b', within=4) is false at letter 0, because\n"
        "      now('b') is false at letters 0 to 3"
    )


def test_a_quantifier_names_the_record():
    shipped = forall(lambda seen: seen, lambda n: next_(now(lambda later: -n in later, name="shipped")))

    why = shipped.explain([[1, 2], [-1]])

    assert why.letters == (0, 1)
    assert [(atom.record, atom.letter) for atom in why.atoms] == [(2, 1)]
    assert "for 2, is false at letter 0" in str(why)
    assert str(why).count("for 2") == 1


def test_a_letter_without_records_matters():
    assert exists(lambda seen: seen, lambda n: TRUE).explain([[]]).letters == (0,)
    assert forall(lambda seen: seen, lambda n: FALSE).explain([[]]).letters == (0,)
    assert forall(lambda seen: seen, lambda n: FALSE).explain([[]]).atoms != ()


def test_the_letter_from_which_a_formula_was_made_matters():
    again = now(lambda first: next_(now(lambda later: later == first)))

    assert again.explain([1, 1]).letters == (0, 1)


def test_why_has_a_hash_even_if_the_record_has_none():
    why = forall(lambda seen: seen, lambda row: now(lambda _: False)).explain([[["x"]]])

    assert len(set(walk(why))) == len(walk(why))


def test_timeouts_in_time_are_explained():
    noon = datetime(2024, 5, 1, 12)
    formula = eventually(lambda seen: seen[1] == "b", within=timedelta(minutes=1))
    word = [(noon, "a"), (noon + timedelta(seconds=30), "a"), (noon + timedelta(minutes=2), "b")]

    why = formula.explain(word, time=lambda seen: seen[0])

    assert (why.value, why.letters) == (False, (0, 1))


def test_a_timeout_in_time_that_a_test_returns_is_explained():
    noon = datetime(2024, 5, 1, 12)
    formula = now(lambda seen: eventually(lambda later: later == "b", within=timedelta(minutes=1)))
    clock = {"a": noon, "b": noon + timedelta(minutes=2)}

    assert formula.explain(["a", "b"], time=clock.get).value is False


def test_a_long_word_is_explained():
    word = [{"a"}, *[set()] * 5_000]

    why = always(a >> eventually("b", within=4_000)).explain(word)

    assert len(why.letters) == 4_000


# -- tests are asked again -------------------------------------------------------------------------------------------


def test_a_test_is_asked_twice_for_a_letter_and_no_more():
    asked = []

    def is_positive(seen):
        asked.append(seen)
        return seen > 0

    always(now(is_positive) | eventually(is_positive, within=3), during=5).explain([1, -1, -2, -3])

    assert max(asked.count(seen) for seen in asked) == 2


def test_a_test_that_the_judge_did_not_ask_may_raise():
    first_is_positive = now(lambda rows: rows[0] > 0)
    guarded = always(now(lambda rows: len(rows) > 0) >> first_is_positive)
    either = exists(lambda rows: rows, lambda row: now(lambda _: 1 / row > 0) if 1 / row else FALSE)

    assert guarded.explain([[], [1], [-1]]).letters == (2,)
    assert until(TRUE & first_is_positive, now(lambda rows: rows == [1]), within=2).explain([[1], []]).value is True
    assert either.explain([[1, 0]]).letters == (0,)


def test_a_test_that_raises_for_the_judge_raises_here_too():
    with pytest.raises(PredicateError):
        always(lambda rows: rows[0] > 0).explain([[]])


def test_a_test_that_changes_its_mind_is_found_out():
    answers = iter([False, True, True])

    with pytest.raises(EncodingError, match="tests that always say the same of a letter"):
        now(lambda seen: next(answers)).explain(["x"])


def test_what_is_open_cannot_be_explained():
    with pytest.raises(FormulaError, match=r"this is open: always\('a', during=2\)") as raised:
        always("a", during=3).explain([{"a"}])
    with pytest.raises(FormulaError, match="Try: a longer word"):
        always("a").explain([{"a"}])

    assert raised.value.hint == "a word of 3 letters, which is enough"


# -- tables ----------------------------------------------------------------------------------------------------------


def test_a_table_has_the_value_of_each_formula_at_each_letter():
    table = value_table([a, eventually("b", within=2), previously("a")], ["a", "b", "a"])

    assert table == [[True, False, True], [True, True, None], [False, True, False]]


def test_a_window_of_time_that_the_word_does_not_end_is_open_in_a_table():
    soon = eventually("b", within=timedelta(seconds=5))

    assert value_table([soon], [letter("", 0), letter("", 5)]) == [[None, None]]
    assert value_table([soon], [letter("", 0), letter("", 6)]) == [[False, None]]


def test_a_table_says_nothing_where_a_test_raises():
    assert value_table([now(lambda rows: rows[0] > 0)], [[1], []]) == [[True, None]]
