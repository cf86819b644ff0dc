"""The judge: one letter at a time, at a cost that does not grow with the timeouts."""

from __future__ import annotations

import itertools
import random
import sys
from datetime import timedelta

import pytest
from formulas import letter
from oracle import value_at

from streamtight.errors import FormulaError, PredicateError
from streamtight.properties.judge import Judge
from streamtight.properties.temporal import (
    FALSE,
    TRUE,
    Constant,
    Formula,
    always,
    eventually,
    forall,
    next_,
    now,
    once,
    previously,
    release,
    since,
    until,
)

a, b, c, d = map(now, "abcd")
NEVER = now(lambda _: False)


def judged(formula, word, **options):
    judge = formula.judge(**options)
    for seen in word:
        judge.step(seen)
    return judge


# -- verdicts --------------------------------------------------------------------------------------------------------


def test_a_judge_says_after_each_letter_what_is_decided():
    judge = always(a >> eventually("b", within=2), during=3).judge()

    assert [judge.step(seen) for seen in ({"a"}, {"b"}, {"b"})] == [None, None, True]
    assert judge.letters == 3


def test_a_judge_reads_nothing_after_its_verdict():
    judge = judged(always("a"), [{"a"}, {"b"}])

    assert judge.step({"a"}) is False
    assert judge.letters == 2
    assert judge.open_parts == 0


def test_a_constant_is_decided_before_the_first_letter():
    assert TRUE.judge().value is True
    assert FALSE.judge().step("x") is False
    assert FALSE.judge().letters == 0


def test_a_judge_does_not_change_another_of_the_same_formula():
    formula = always(a >> eventually("b", within=2))
    one, other = formula.judge(), formula.judge()

    one.step({"a"})

    assert other.step({"b"}) is None
    assert one.step(set()) is False
    assert other.value is None


def test_the_rest_is_a_formula_for_the_letters_to_come():
    judge = always(a >> eventually("b", within=3), during=10).judge()
    before = judge.rest
    judge.step({"a"})

    assert before == judge.formula
    assert judge.rest == eventually("b", within=2) & always(a >> eventually("b", within=3), during=9)
    assert judged(always("a"), [{"b"}]).rest == FALSE


def test_the_rest_knows_what_past_operators_remember():
    judge = judged(always(now("c") >> once("a", within=2)), [{"a"}])

    assert judge.rest.evaluate([{"c"}]) is None
    assert judge.rest.evaluate([set(), {"c"}]) is False


def test_the_rest_of_an_until_whose_left_is_open():
    judge = judged(until(next_("a"), "b", within=3), [set()])

    assert judge.rest == a & until(next_("a"), "b", within=2)


# Formulas that the judge once got wrong, or that a simpler judge gets wrong.
INTRICATE = [
    (release(next_("c"), always("c", during=3), within=2), ["c", "c"]),
    (release(always("b", during=2), always("b", during=3), within=2), ["b", "b"]),
    (always(eventually(eventually("b", within=2), within=timedelta(seconds=1)), during=2), ["", ""]),
    (until(eventually(eventually("a", within=2), within=timedelta(seconds=1)), "c"), ["", ""]),
    (always(always("b", during=2) | always("b", during=timedelta(seconds=1)), during=2), ["b", "b"]),
    (eventually(~always("c", during=2) >> eventually(always("c", during=3), within=2), within=3), ["", "c", "", ""]),
    (eventually(always("c", during=5) & until("b", "a", within=2), within=3), ["ac", "bc", "b"]),
    (
        always(release(~d, release("a", c | eventually("b", within=12), within=5), within=5)),
        ["d", "a", "cd", "cd", "a", "d", "a", "b", "d", ""],
    ),
    (until(always("a", during=2), next_("c"), within=4), ["a", "a", "a", "c", ""]),
    (until(always("d", during=3), always("b", during=5), within=3), ["d", "bd", "b"]),
    (
        release(always("d", during=5), until(next_("a", 2), next_(~b), within=12)),
        ["d", "bd", "ad", "d", "d"],
    ),
    (
        always(eventually("d", within=2), during=3)
        & always(eventually(always(eventually("d", within=2), during=3), within=4)),
        ["d", "", "d", "", "", ""],
    ),
    (always(b >> (eventually("c", within=3) | always("a", during=3)), during=6), ["ab", "ab", "b", "", "c", "", ""]),
]


@pytest.mark.parametrize(("formula", "letters"), INTRICATE, ids=repr)
def test_intricate_formulas_are_judged_by_the_definition(formula, letters):
    word = [letter(atoms, 2 * number) for number, atoms in enumerate(letters)]
    judge = formula.judge()
    for number, seen in enumerate(word):
        expected = value_at(formula, word[: number + 1], 0, [one.time for one in word])

        assert judge.step(seen) is expected


SHARED = always(next_("c"), during=4)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(
    ("formula", "letters"),
    [
        (eventually(b | SHARED, within=9) & always(a >> SHARED), ["c", "abc", "", "c"]),
        (always(always(always("b", during=5), during=2), during=2), ["b"] * 7),
        (eventually(eventually(eventually("b", within=5), within=2), within=2), ["a"] * 7),
    ],
    ids=repr,
)
def test_the_order_in_which_operators_read_a_letter_does_not_matter(formula, letters, seed):
    judge = formula.judge()
    rng = random.Random(seed)

    for number, seen in enumerate(letters):
        active = list(judge._now.active)
        rng.shuffle(active)
        judge._now.active = dict.fromkeys(active)

        assert judge.step(seen) is value_at(formula, letters[: number + 1], 0)


# -- letters that are kept -------------------------------------------------------------------------------------------


def test_a_judge_keeps_no_letters_unless_told_to():
    again = always(now(lambda seen: previously(once(lambda earlier: earlier == seen)) if seen else TRUE))

    assert judged(again, [0, 0, 1], keep=True).value is False
    with pytest.raises(FormulaError, match=r"judge\(keep=True\)"):
        judged(again, [0, 0, 1])


def test_past_operators_of_the_formula_itself_need_no_letters_kept():
    assert judged(always(a >> once("b")), [{"b"}, {"a"}]).value is None


def test_a_formula_made_with_a_past_is_followed_while_it_is_open():
    watch = now(lambda first: next_(always(lambda seen: since(a, b) if "c" in seen else TRUE), 1))
    judge = judged(watch, [{"b"}, {"a"}, {"a", "c"}], keep=True)

    assert judge.value is None
    assert judge.step({"c"}) is False


def test_tests_of_a_formula_that_is_done_with_are_not_asked():
    asked = []

    def ask(seen):
        asked.append(seen)
        return True

    watch = now(lambda seen: next_(previously(ask)) if seen == 0 else TRUE)
    judged(always(watch), range(6), keep=True)

    assert asked == [0, 1]


# -- records ---------------------------------------------------------------------------------------------------------


def test_equal_records_owe_the_same():
    orders = always(
        forall(lambda seen: seen["orders"], lambda n: eventually(lambda later: n in later["sent"], within=9))
    )
    word = [{"orders": ["x", "y"], "sent": []}] * 5

    assert judged(orders, word).open_parts == 3


def test_equal_records_are_not_one_if_their_formula_speaks_of_the_past():
    once_only = always(forall(lambda seen: ["x"], lambda record: ~previously("a")))

    assert judged(once_only, [{"a"}, set()], keep=True).value is False


def test_a_record_that_is_owed_something_is_known_among_many_others():
    orders = always(
        forall(lambda n: ["x", n], lambda record: eventually(NEVER) if record == "x" else next_(now(lambda _: True)))
    )

    assert judged(orders, range(3_000)).open_parts == 3


def test_records_without_a_hash_are_judged_one_by_one():
    orders = forall(lambda seen: seen, lambda row: eventually(lambda later: row in later, within=2))

    assert judged(orders, [[["x"], ["y"]], [["x"], ["y"]]]).value is True


def test_many_records_that_are_done_with_are_forgotten():
    orders = always(forall(lambda n: [n], lambda n: next_(lambda seen: seen == n + 1)))

    judge = judged(orders, range(5_000))

    assert judge.value is None
    assert judge.open_parts == 2


# -- what goes wrong -------------------------------------------------------------------------------------------------


def test_a_judge_in_which_a_test_raised_cannot_go_on():
    judge = always(lambda n: 1 / n > 0).judge()
    with pytest.raises(PredicateError):
        judge.step(0)

    with pytest.raises(FormulaError, match=r"letter 1 of always.*came one that stopped when a test raised"):
        judge.step(1)


def test_a_test_is_asked_once_for_each_letter():
    asked = []

    def is_even(seen):
        asked.append(seen)
        return seen % 2 == 0

    even = now(is_even)
    judged(always(even >> eventually(~even, within=5)) & always(eventually(even, within=9)), range(50))

    assert asked == list(range(50))


def test_a_test_that_raises_is_asked_once():
    asked = []

    def fail(seen):
        asked.append(seen)
        raise ValueError

    with pytest.raises(PredicateError):
        now(fail).judge().step(1)

    assert asked == [1]


# -- cost ------------------------------------------------------------------------------------------------------------

T = 10_000
COLLAPSING = {
    "always": lambda t: d,
    "size 10": lambda t: (a >> eventually("b", within=t)) & (c >> always("d", during=t)),
    "until and release": lambda t: (a >> until("d", NEVER, within=t)) & (c >> release("b", "d", within=t)),
    "either of two eventually": lambda t: a >> (eventually(NEVER, within=t) | eventually(NEVER, within=t + 1)),
    "either of two always": lambda t: a >> (always("d", during=t) | always("d", during=t + 1)),
    "an until whose left is open": lambda t: a >> until(always("d", during=t), NEVER, within=t),
    "nested, and it does not hold for long": lambda t: a >> eventually(b & always("c", during=t), within=t),
    "either direction, and one fails": lambda t: a >> (eventually(NEVER, within=t) | always("c", during=t)),
    "past": lambda t: a >> (once("d", within=t) & since("d", "d", within=t)),
}
REMEMBERING = {
    "nested": lambda t: a >> eventually(b & always("d", during=t), within=t),
    "either direction": lambda t: a >> (eventually(NEVER, within=t) | always("d", during=t)),
    "next": lambda t: a >> next_("d", t),
}


def random_letters(count):
    rng = random.Random(7)
    return [
        frozenset(atom for atom, often in zip("abcd", (0.3, 0.3, 0.8, 1.1), strict=True) if rng.random() < often)
        for _ in range(count)
    ]


@pytest.mark.parametrize("body", COLLAPSING.values(), ids=COLLAPSING)
def test_open_parts_do_not_grow_with_the_timeout(body):
    word = random_letters(2_000)

    judge = judged(always(body(T)), word)

    assert judge.value is None
    assert judge.open_parts <= 6


@pytest.mark.parametrize("body", [*COLLAPSING.values(), *REMEMBERING.values()], ids=[*COLLAPSING, *REMEMBERING])
def test_a_letter_costs_as_much_however_many_are_in_the_window(body):
    word = random_letters(2_000)
    judge = Judge(always(body(T)))

    early, _, late = calls(judge, word[:500]), calls(judge, word[500:1_500]), calls(judge, word[1_500:])

    assert judge.value is None
    assert late <= 1.3 * early


@pytest.mark.parametrize("body", REMEMBERING.values(), ids=REMEMBERING)
def test_formulas_that_must_remember_each_letter_of_a_window_remember_no_more(body):
    word = random_letters(2_000)

    judge = judged(always(body(100)), word)

    assert judge.value is None
    assert judge.open_parts <= 1 + 2 * 100


def calls(judge, letters):
    """How many functions are called, Python's own included, while these letters are read."""
    count = 0

    def profile(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        for seen in letters:
            judge.step(seen)
    finally:
        sys.setprofile(None)
    return count


def test_tests_that_nobody_wants_to_know_about_are_not_asked():
    asked = []

    def is_c(seen):
        asked.append(seen)
        return "c" in seen

    judged(always(a >> (eventually("b", within=T) | eventually(is_c, within=T))), ["a", "b", "x", "x"])

    assert asked == ["a", "b"]


def test_claims_that_nobody_wants_are_dropped():
    one_of_two = always(a >> (eventually("b", within=T) | eventually("c", within=T)))

    judge = judged(one_of_two, [{"a"}, {"b"}])

    assert judge.open_parts == 1


# -- an operator that stands beside another one and inside of it -------------------------------------------------------

X = always("a", during=2)


@pytest.mark.parametrize(
    "formula",
    [
        always(X | eventually(X, within=4), during=2),
        eventually(X & always(X, during=2), within=3),
        until(X | eventually(X, within=4), "b", within=2),
        always(now("b") >> (X | eventually(X, within=3)), during=3),
        always(X | until("b", X, within=3), during=3),
        release(X & always(X, during=2), "b", within=3),
        always(X | next_(X) | eventually(X & eventually(X, within=2), within=3), during=3),
    ],
)
def test_an_operator_that_is_shared_is_judged_as_by_definition(formula: Formula):
    letters: list[set[str]] = [set(), {"a"}, {"b"}, {"a", "b"}]
    for word in itertools.product(letters, repeat=5):
        for asked in (formula, ~formula):
            left = asked
            for seen in word:
                left = left.step(seen)
            assert asked.evaluate(word) is (left.value if isinstance(left, Constant) else None), word


def test_records_that_are_equal_but_of_another_type_are_asked_apart():
    is_bool = always(forall(lambda u: u, lambda r: now(lambda u: isinstance(r, bool))), during=2)

    assert is_bool.evaluate([[True], [1]]) is False
