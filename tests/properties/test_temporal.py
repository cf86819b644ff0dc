"""Formulas: the examples of the paper, what each operator means, how they print, and what is refused."""

from __future__ import annotations

import functools
from datetime import datetime, timedelta

import pytest
from formulas import letter
from oracle import value_at

from streamtight.errors import FormulaError, PredicateError
from streamtight.properties.temporal import (
    FALSE,
    TRUE,
    Moment,
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

a, b, c = now("a"), now("b"), now("c")
WORD = [{"b"}, {"b"}, {"a", "b"}, {"a"}]
MINUTE = timedelta(minutes=1)

# -- the paper -------------------------------------------------------------------------------------------------------

EXAMPLE_1 = [
    (eventually("c", within=4), False),
    (eventually("c", within=5), None),
    (always(a | b, during=4), True),
    (always(a | b, during=5), None),
    (always("c", during=5), False),
    (until("b", "a", within=2), False),
    (until("b", "a", within=5), True),
    (release("a", "b", within=2), True),
    (release("a", "b", within=4), True),
    (always(a >> next_("a"), during=3), True),
    (always(a >> next_("a"), during=4), None),
    (always(b >> eventually("a", within=2), during=2), False),
    (until("b", next_(a & next_("a")), within=2), True),
]


@pytest.mark.parametrize(("formula", "value"), EXAMPLE_1, ids=repr)
def test_example_1(formula, value):
    assert formula.evaluate(WORD) is value
    assert value_at(formula, WORD, 0) is value


EXAMPLE_3 = [
    (eventually("c", within=4), c | next_("c") | next_("c", 2) | next_("c", 3)),
    (always(a | b, during=4), (a | b) & next_(a | b) & next_(a | b, 2) & next_(a | b, 3)),
    (until("b", "a", within=2), a | (b & next_("a"))),
    # The paper prints (a & b) | (a & X(a & b)), against its own Definition 2 and the fourth line of Example 1.
    (release("a", "b", within=2), (b & next_("b")) | (a & b) | (b & next_(a & b))),
    (always(a >> next_("a"), during=3), (a >> next_(a)) & next_(a >> next_(a)) & next_(a >> next_(a), 2)),
    (always(b >> eventually("a", within=2), during=2), (b >> (a | next_(a))) & next_(b >> (a | next_(a)))),
    (until("b", next_(a & next_("a")), within=2), next_(a & next_(a)) | (b & next_(a & next_(a), 2))),
]


@pytest.mark.parametrize(("formula", "next_form"), EXAMPLE_3, ids=repr)
def test_example_3(formula, next_form):
    assert formula.next_form() == next_form


EXAMPLE_4 = [
    (always(b >> eventually("a", within=2), during=2), [a & (b >> (a | next_("a"))), FALSE]),
    (
        until("b", next_(a & next_("a")), within=2),
        [(a & next_("a")) | next_(a & next_("a")), a & next_("a"), a, TRUE],
    ),
]


@pytest.mark.parametrize(("formula", "steps"), EXAMPLE_4, ids=repr)
def test_examples_2_and_4(formula, steps):
    rest = formula.next_form()
    for seen, expected in zip(WORD, steps, strict=False):
        rest = rest.step(seen)

        assert rest == expected


EXAMPLE_5 = [
    (eventually("c", within=4), 4),
    (always(a | b, during=4), 4),
    (until("b", "a", within=2), 2),
    (release("a", "b", within=2), 2),
    (always(a >> next_("a"), during=3), 4),
    (always(b >> eventually("a", within=2), during=2), 3),
    (until("b", next_(a & next_("a")), within=2), 4),
]


@pytest.mark.parametrize(("formula", "length"), EXAMPLE_5, ids=repr)
def test_example_5(formula, length):
    assert formula.safe_length == length


OPEN = next_("a")  # on a word of one letter
VALUES = {True: TRUE, False: FALSE, None: OPEN}
OR = {(False, False): False, (False, None): None, (None, None): None}
AND = {(True, True): True, (True, None): None, (None, None): None}


@pytest.mark.parametrize("left", VALUES)
@pytest.mark.parametrize("right", VALUES)
def test_figure_1(left, right):
    one, other = VALUES[left], VALUES[right] if right is not None else next_("b")
    either = OR.get((left, right), OR.get((right, left), True))
    both = AND.get((left, right), AND.get((right, left), False))

    assert (one | other).evaluate([{"c"}]) is either
    assert (one & other).evaluate([{"c"}]) is both
    assert (~one).evaluate([{"c"}]) is (None if left is None else not left)
    assert (one >> other).evaluate([{"c"}]) is (~one | other).evaluate([{"c"}])


def test_what_every_continuation_would_decide_stays_open():
    assert (next_("a") | ~next_("a")).evaluate([{"a"}]) is None


# -- operators -------------------------------------------------------------------------------------------------------


def test_a_timeout_counts_the_current_letter():
    assert eventually("a", within=1).evaluate([{"a"}]) is True
    assert eventually("a", within=1).evaluate([{"b"}]) is False
    assert eventually("a", within=2).evaluate([{"b"}, {"a"}]) is True


def test_without_a_timeout_always_can_only_fail_and_eventually_only_succeed():
    assert always("a").evaluate([{"a"}] * 100) is None
    assert always("a").evaluate([{"a"}, {"b"}]) is False
    assert eventually("a").evaluate([{"b"}] * 100) is None
    assert eventually("a").evaluate([{"b"}, {"a"}]) is True
    assert until("a", "b").evaluate([{"a"}, {"b"}]) is True
    assert release("a", "b").evaluate([{"b"}, {"b"}]) is None


def test_until_does_not_ask_its_left_where_its_right_holds():
    assert until("a", "b", within=3).evaluate([{"a"}, {"b"}]) is True
    assert until("a", "b", within=3).evaluate([{"b"}]) is True


def test_release_is_weak():
    assert release("a", "b", within=1).evaluate([{"b"}]) is True
    assert release("a", "b", within=3).evaluate([{"b"}] * 3) is True
    assert release("a", "b", within=3).evaluate([{"b"}, {"a"}]) is False


def test_a_test_may_return_a_formula_that_must_hold_from_this_letter_on():
    same_again = now(lambda first: next_(eventually(lambda seen: seen == first, within=2)))

    assert same_again.evaluate([1, 2, 1]) is True
    assert same_again.evaluate([1, 2, 3]) is False
    assert same_again.evaluate([1, 2]) is None


def test_quantifiers_range_over_the_records_of_a_letter():
    later = lambda n: eventually(lambda seen: -n in seen, within=2)  # noqa: E731
    every, some = forall(lambda seen: seen, later), exists(lambda seen: seen, later)

    assert every.evaluate([[1, 2], [-1, -2]]) is True
    assert every.evaluate([[1, 2], [-1]]) is False
    assert some.evaluate([[1, 2], [-1]]) is True
    assert some.evaluate([[1, 2], []]) is False
    assert every.evaluate([[]]) is True
    assert some.evaluate([[]]) is False


def test_quantifiers_nest():
    users = forall(lambda seen: seen, lambda user: exists(lambda _: user, lambda item: item > 1))

    assert users.evaluate([[(1, 2), (3,)]]) is True
    assert users.evaluate([[(1, 2), (1,)]]) is False


@pytest.mark.parametrize(
    ("formula", "values"),
    [
        (previously("a"), [False, True, False, True]),
        (once("b"), [False, True, True, True]),
        (once("b", within=2), [False, True, True, False]),
        (historically("a"), [True, False, False, False]),
        (historically("a", during=2), [True, False, False, True]),
        (since("a", "b"), [False, True, True, True]),
        (since("a", "b", within=2), [False, True, True, False]),
        (since("c", "b"), [False, True, False, False]),
    ],
    ids=repr,
)
def test_past_operators(formula, values):
    word = [{"a"}, {"b"}, {"a"}, {"a"}]

    found = [next_(formula, n).evaluate(word) for n in range(len(word))]
    stepped = []
    for place in range(len(word)):
        rest = next_(formula, place)
        for seen in word[: place + 1]:
            rest = rest.step(seen)
        stepped.append(rest == TRUE)

    assert found == values
    assert stepped == values


def test_one_formula_may_speak_of_the_past_and_the_future():
    answered = always(now("answer") >> once("question", within=2), during=3)

    assert answered.evaluate([{"question"}, {"answer"}, set()]) is True
    assert answered.evaluate([{"question"}, set(), {"answer"}]) is False


def test_past_operators_in_a_formula_that_a_test_returns_see_the_whole_word():
    seen_before = now(lambda seen: previously(once(lambda earlier: earlier == seen)))

    assert next_(seen_before, 2).evaluate([1, 2, 1]) is True
    assert next_(seen_before, 2).evaluate([1, 2, 3]) is False


# -- time ------------------------------------------------------------------------------------------------------------


def test_a_timedelta_counts_the_time_of_the_letters():
    formula = eventually("a", within=timedelta(seconds=2))

    assert formula.evaluate([letter("", 5), letter("", 6), letter("a", 7)]) is True
    assert formula.evaluate([letter("", 5), letter("", 6), letter("a", 8)]) is False
    assert formula.evaluate([letter("", 5), letter("", 7)]) is None


def test_a_window_of_time_of_the_past():
    formula = next_(once("a", within=timedelta(seconds=2)))

    assert formula.evaluate([letter("a", 1), letter("", 3)]) is True
    assert formula.evaluate([letter("a", 1), letter("", 4)]) is False


def test_the_time_of_a_letter_can_be_given_as_a_function():
    noon = datetime(2024, 5, 1, 12)
    formula = always(lambda seen: seen[1] > 0, during=MINUTE)

    assert formula.evaluate([(noon, 1), (noon + 2 * MINUTE, 0)], time=lambda seen: seen[0]) is True
    assert formula.evaluate([(noon, 1), (noon + MINUTE, 0)], time=lambda seen: seen[0]) is False


def test_a_step_may_meet_a_timeout_in_time_that_a_test_returns():
    formula = now(lambda seen: always("a", during=MINUTE))

    rest = formula.step(letter("a", 1))

    assert rest.step(letter("", 2)) == FALSE
    assert rest.step(letter("", 200)) == TRUE


def test_time_that_goes_back_is_refused():
    with pytest.raises(FormulaError, match="letter 1: needed a time that does not go back"):
        always("a", during=MINUTE).evaluate([letter("a", 2), letter("a", 1)])


def test_times_that_cannot_be_compared_are_refused():
    clock = iter([datetime(2024, 1, 1), timedelta(1)])

    with pytest.raises(FormulaError, match="a time that does not go back"):
        always("a", during=MINUTE).evaluate([{"a"}, {"a"}], time=lambda _: next(clock))


@pytest.mark.parametrize("time", [None, 3, "noon"])
def test_a_time_to_which_no_timedelta_can_be_added_is_refused(time):
    with pytest.raises(FormulaError, match="the time of letter 0: needed a datetime"):
        always("a", during=MINUTE).evaluate([{"a"}], time=lambda _: time)


def test_letters_without_a_time_are_refused_where_one_is_needed():
    with pytest.raises(FormulaError, match="letter 0: needed its time, since a timeout is a timedelta"):
        always("a", during=MINUTE).evaluate([{"a"}])


def test_a_timeout_after_the_end_of_all_datetimes_is_refused():
    with pytest.raises(FormulaError, match="no timeout: within=None"):
        eventually("a", within=timedelta.max).evaluate([{"b"}], time=lambda _: datetime(2024, 1, 1))


# -- texts -----------------------------------------------------------------------------------------------------------


def is_empty(seen):
    return not seen


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (now(is_empty), "now(is_empty)"),
        (always(is_empty, during=5), "always(is_empty, during=5)"),
        (always(lambda seen: len(seen) > 2), "always(len(seen) > 2)"),
        (always(lambda seen: seen, during=timedelta(hours=1, seconds=90)), "always(seen, during=1h1min30s)"),
        (eventually(now(is_empty, name="none"), within=timedelta(milliseconds=5)), "eventually(none, within=5ms)"),
        ((a & b & c) | ~(a >> b), "(now('a') & now('b') & now('c')) | ~(now('a') >> now('b'))"),
        (next_(next_("a")), "next('a', n=2)"),
        (until("a", a & b, within=3), "until('a', now('a') & now('b'), within=3)"),
        (since("a", "b", within=3), "since('a', 'b', within=3)"),
        (historically(previously("a"), during=3), "historically(previously('a'), during=3)"),
        (forall(is_empty, lambda r: eventually(r)), "forall(is_empty, eventually(r))"),
        (now(functools.partial(max, 3)), "now(max)"),
        (TRUE, "TRUE"),
    ],
)
def test_a_formula_prints_as_it_is_written(formula, text):
    assert repr(formula) == text


# -- constructors ----------------------------------------------------------------------------------------------------


def test_equal_formulas_are_equal():
    assert always("a", during=2) & "b" == always("a", during=2) & now("b")
    assert hash(always("a", during=2)) == hash(always("a", during=2))
    assert always("a", during=2) != always("a", during=3)


@pytest.mark.parametrize(
    ("formula", "simpler"),
    [
        (a & a & TRUE, a),
        (a | FALSE | (b | a), a | b),
        (a & FALSE, FALSE),
        (~~a, a),
        (TRUE >> a, a),
        (a >> FALSE, ~a),
        (always(TRUE, during=3), TRUE),
        (until(TRUE, a, within=3), eventually(a, within=3)),
        (until(FALSE, a, within=3), a),
        (release(FALSE, a), always(a)),
        (release(TRUE, a), a),
        (next_(TRUE), TRUE),
        (next_(a, 0), a),
        (True & a, a),
        (True >> a, a),
        (False | a, a),
    ],
    ids=repr,
)
def test_constants_are_simplified(formula, simpler):
    assert formula == simpler


def test_a_test_that_has_no_hash_can_be_used():
    class Threshold(list[int]):
        def __call__(self, seen):
            return seen > self[0]

    formula = always(Threshold([3]), during=2) & eventually(Threshold([4]), within=2)

    assert formula.evaluate([4, 5]) is True


@pytest.mark.parametrize("timeout", [0, -1, True, False, 2.0, "5", timedelta(0), timedelta(seconds=-1)])
@pytest.mark.parametrize(
    "operator",
    [
        lambda t: eventually("a", within=t),
        lambda t: always("a", during=t),
        lambda t: until("a", "b", within=t),
        lambda t: release("a", "b", within=t),
        lambda t: once("a", within=t),
        lambda t: historically("a", during=t),
        lambda t: since("a", "b", within=t),
    ],
)
def test_a_timeout_must_be_positive(operator, timeout):
    with pytest.raises(FormulaError, match="needed a number of letters from 1, a timedelta above 0"):
        operator(timeout)


@pytest.mark.parametrize("n", [-1, 1.5, True, None])
def test_next_needs_a_number_of_letters(n):
    with pytest.raises(FormulaError, match="needed a number of letters from 0"):
        next_("a", n)


@pytest.mark.parametrize("given", [None, 3, ["a"], int])
def test_what_is_no_formula_is_refused(given):
    with pytest.raises(FormulaError, match="needed a formula, a function of a letter, or the name of an atom"):
        always(given)
    with pytest.raises(FormulaError):
        a & given
    with pytest.raises(FormulaError, match="needed a function of a letter, or a name"):
        now(given)


def test_and_or_and_not_are_refused():
    for wrong in (lambda: a and b, lambda: a or b, lambda: not a, lambda: bool(always(a))):
        with pytest.raises(FormulaError, match=r"Try: &, \| and ~ instead of and, or and not"):
            wrong()


def test_quantifiers_need_functions():
    with pytest.raises(FormulaError, match="a function for the records of a letter"):
        forall([1, 2], lambda n: a)
    with pytest.raises(FormulaError, match="a function for the formula of a record"):
        exists(lambda seen: seen, a)


@pytest.mark.parametrize(
    "future", [next_("a"), eventually("a", within=2), ~always("a"), previously("b") & until("a", "b")]
)
def test_a_past_operator_cannot_speak_of_the_future(future):
    for past in (previously, once, historically, lambda f: since("a", f), lambda f: since(f, "a")):
        with pytest.raises(FormulaError, match="a formula of the present and the past under a past operator"):
            past(future)


def test_a_test_under_a_past_operator_cannot_return_the_future():
    formula = once(lambda seen: next_("a"))

    with pytest.raises(FormulaError, match="depends on letters to come, at letter 0"):
        formula.evaluate([{"a"}])
    with pytest.raises(FormulaError, match="depends on letters to come"):
        formula.step({"a"})


@pytest.mark.parametrize(
    "formula", [always("a"), eventually("a", within=MINUTE), forall(is_empty, is_empty), once("a")], ids=repr
)
def test_some_formulas_have_no_next_form(formula):
    with pytest.raises(FormulaError, match="neither quantifiers nor past operators"):
        formula.next_form()


# -- tests that fail -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["evaluate", "step"])
def test_a_test_that_raises_is_told_with_its_letter(way):
    def first_is_positive(rows):
        return rows[0] > 0

    formula = always(first_is_positive)

    with pytest.raises(
        PredicateError, match=r"now\(first_is_positive\): needed an answer for letter 0, \[\]"
    ) as raised:
        formula.evaluate([[]]) if way == "evaluate" else formula.step([])

    assert raised.value.letter == 0
    assert raised.value.record is None
    assert isinstance(raised.value.__cause__, IndexError)


def test_a_test_that_raises_at_a_later_letter_says_at_which():
    with pytest.raises(PredicateError) as raised:
        always(lambda rows: rows[0] > 0).evaluate([[1], [2], []])

    assert raised.value.letter == 2


def test_a_body_that_raises_is_told_with_its_record():
    formula = forall(lambda rows: rows, lambda row: now(lambda _: 1 / row > 0) if 1 / row else FALSE)

    with pytest.raises(PredicateError, match="an answer for the record 0 of letter 0") as raised:
        formula.evaluate([[1, 0]])

    assert raised.value.record == 0
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_records_that_raise_while_they_are_read_are_told_with_their_letter():
    def rows(seen):
        yield 1
        raise KeyError(seen)

    with pytest.raises(PredicateError) as raised:
        forall(rows, lambda row: TRUE).evaluate(["x"])

    assert isinstance(raised.value.__cause__, KeyError)


@pytest.mark.parametrize("answer", [None, 1, "yes", []])
def test_a_test_must_say_true_or_false(answer):
    with pytest.raises(PredicateError, match="needed True, False or a formula"):
        always(lambda seen: answer).evaluate(["x"])
    with pytest.raises(PredicateError, match="needed True, False or a formula"):
        always(lambda seen: answer).step("x")


def test_what_looks_like_a_bool_is_one():
    bool_ = type("bool_", (), {"__bool__": lambda self: True})

    assert now(lambda seen: bool_()).evaluate(["x"]) is True


def test_a_quantifier_needs_records():
    with pytest.raises(PredicateError, match="needed records to range over; came 5 for letter 0"):
        forall(lambda seen: 5, lambda row: TRUE).evaluate(["x"])


def test_a_body_must_return_a_formula():
    with pytest.raises(FormulaError, match="needed a formula"):
        forall(lambda seen: seen, lambda row: None).evaluate([[1]])


def test_errors_of_streamtight_pass_through_a_test():
    def strict(seen):
        raise FormulaError("here", needed="this", came="that", hint="other")

    with pytest.raises(FormulaError, match="here: needed this"):
        now(strict).evaluate(["x"])


def test_a_guard_keeps_a_test_from_letters_that_it_does_not_expect():
    guarded = always(now(lambda rows: len(rows) > 0) >> now(lambda rows: rows[0] > 0), during=3)

    assert guarded.evaluate([[1], [], [2]]) is True
    assert guarded.step([]).step([]).step([]) == TRUE


def test_until_does_not_ask_its_left_at_the_last_letter_of_its_window():
    def refuse(seen):
        raise AssertionError("asked")

    assert until(refuse, "a", within=1).step({"a"}) == TRUE
    assert until(refuse, "a", within=1).step({"b"}) == FALSE
    assert release(refuse, "a", within=1).evaluate([{"a"}]) is True


def test_step_refuses_a_past_that_it_has_not_seen():
    formula = now(lambda seen: once("a"))

    with pytest.raises(FormulaError, match=r"Try: evaluate\(word\), or judge\(keep=True\)"):
        formula.step({"a"})


def test_a_moment_knows_what_was_before_it():
    formula = now(lambda seen: previously("a"))

    assert formula._step(Moment({"b"}, 1, earlier=[({"a"}, None)])) == TRUE
