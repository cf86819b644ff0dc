"""The laws of LTL_ss, by the definitions and theorems of the paper, section 2, with its misprints corrected.

The oracle is the logic for finite words, read off its definition. Where the paper contradicts itself, a constant has
its value also at positions after the end of the word, as Definition 3 has it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

# The oracle stands beside the tests of the single operators.
sys.path.append(str(Path(__file__).parents[1] / "properties"))

from formulas import Letter, formulas, words
from oracle import Truth, value_at

from streamtight.properties.judge import Judge
from streamtight.properties.temporal import (
    FALSE,
    TRUE,
    Always,
    Eventually,
    Formula,
    Next,
    Release,
    Until,
    always,
    eventually,
    next_,
    now,
    release,
    until,
)

lawful = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
WORDS = words()
PLAIN = formulas()
BOUNDED = formulas(2, endless=False)
EVERYTHING = formulas(past=True, made=True, time=True)


def truth(formula: Formula, word: list[Letter]) -> Truth:
    return value_at(formula, word, 0, [letter.time for letter in word])


def decided(formula: Formula) -> Truth:
    return {TRUE: True, FALSE: False}.get(formula)


def is_next_form(formula: Formula) -> bool:
    return not isinstance(formula, Eventually | Always | Until | Release) and all(map(is_next_form, formula.parts))


@lawful
@given(BOUNDED)
def test_definition_1_and_2_a_next_form_has_no_temporal_operator_but_next(formula):
    assert is_next_form(formula.next_form())


@lawful
@given(BOUNDED, WORDS)
def test_theorem_1_a_formula_and_its_next_form_mean_the_same(formula, word):
    assert truth(formula.next_form(), word) is truth(formula, word)


@lawful
@given(BOUNDED, WORDS)
def test_definition_3_letter_simplification_of_the_next_form_equals_the_definition(formula, word):
    rest = formula.next_form()
    for number, letter in enumerate(word):
        rest = rest.step(letter)

        assert decided(rest) is truth(formula, word[: number + 1])


@lawful
@given(formulas(past=True, time=True), WORDS)
def test_definition_3_a_formula_can_be_simplified_without_its_next_form(formula, word):
    rest = formula
    for number, letter in enumerate(word):
        rest = rest.step(letter)

        assert decided(rest) is truth(formula, word[: number + 1])


@lawful
@given(formulas(made=True, time=True), WORDS)
def test_a_step_also_serves_formulas_that_tests_and_quantifiers_return(formula, word):
    rest = formula
    for number, letter in enumerate(word):
        rest = rest.step(letter)

        assert decided(rest) is truth(formula, word[: number + 1])


@lawful
@given(BOUNDED, st.data())
def test_definition_4_every_word_of_the_safe_length_decides(formula, data):
    length = formula.safe_length
    word = data.draw(words(least=length, most=length))

    assert truth(formula, word) is not None
    assert formula.evaluate(word) is not None


@lawful
@given(PLAIN)
def test_definition_4_a_formula_without_a_timeout_has_no_safe_length(formula):
    endless = [part for part in parts_of(formula) if getattr(part, "within", 1) is None]

    assert (formula.safe_length is None) is bool(endless)


def parts_of(formula: Formula) -> list[Formula]:
    return [formula, *(one for part in formula.parts for one in parts_of(part))]


@lawful
@given(PLAIN, PLAIN, st.sampled_from([None, 1, 2, 4]), WORDS)
def test_duality(left, right, within, word):
    duals = [
        (~eventually(right, within=within), always(~right, during=within)),
        (~until(left, right, within=within), release(~left, ~right, within=within)),
        (~next_(right, 2), next_(~right, 2)),
        (~(left & right), ~left | ~right),
        (left >> right, ~left | right),
    ]
    for one, other in duals:
        assert truth(one, word) is truth(other, word) is one.evaluate(word)


@lawful
@given(PLAIN, PLAIN, st.sampled_from([None, 1, 2, 4]), WORDS)
def test_eventually_and_always_are_an_until_and_a_release(left, right, within, word):
    assert truth(Until(TRUE, right, within), word) is eventually(right, within=within).evaluate(word)
    assert truth(Release(FALSE, right, within), word) is always(right, during=within).evaluate(word)


@lawful
@given(EVERYTHING, WORDS)
def test_a_definite_verdict_never_changes(formula, word):
    verdicts = [truth(formula, word[:length]) for length in range(len(word) + 1)]
    definite = [verdict for verdict in verdicts if verdict is not None]

    assert len(set(definite)) <= 1
    assert verdicts == [None] * (len(verdicts) - len(definite)) + definite


@settings(lawful, max_examples=100)
@given(EVERYTHING, WORDS)
def test_the_judge_equals_the_definition_at_every_letter(formula, word):
    assert_judged(formula, word)


LASTING = [
    lambda f: always(f),
    lambda f: always(now("a") >> f),
    lambda f: eventually(now("a") & f),
    lambda f: until(f, "c"),
    lambda f: release("c", f),
    lambda f: always(eventually(f, within=4)),
    lambda f: until(f | "a", f & "c", within=9),
]


@settings(lawful, max_examples=150)
@given(formulas(2, time=True), st.sampled_from(LASTING), words(least=6, most=12))
def test_the_judge_equals_the_definition_while_much_is_open(formula, lasting, word):
    assert_judged(lasting(formula), word)


def assert_judged(formula: Formula, word: list[Letter]) -> None:
    judge = Judge(formula, keep=True)
    for number, letter in enumerate(word):
        assert judge.step(letter) is truth(formula, word[: number + 1])
    assert judge.open_parts == 0 or judge.value is None


@lawful
@given(formulas(past=True, time=True), WORDS, WORDS)
def test_the_rest_is_what_the_letters_to_come_must_satisfy(formula, word, more):
    later = [letter_later(letter, word) for letter in more]
    judge = formula.judge()
    for letter in word:
        judge.step(letter)

    rest = judge.rest

    assert rest.evaluate(later) is formula.evaluate(word + later)


def letter_later(letter: Letter, word: list[Letter]) -> Letter:
    made = Letter(letter)
    made.time = letter.time + word[-1].time if word else letter.time
    return made


@lawful
@given(EVERYTHING, WORDS)
def test_a_decided_formula_reads_no_further(formula, word):
    letters = iter(word)

    value = formula.evaluate(letters)

    read = len(word) - len(list(letters))
    assert value is truth(formula, word[:read])
    assert read == len(word) or value is not None


@lawful
@given(formulas(2), WORDS)
def test_next_shifts_by_a_letter(formula, word):
    shifted = next_(formula)

    assert truth(shifted, word) is value_at(formula, word, 1)
    assert not isinstance(formula, Next) or shifted.n == formula.n + 1
