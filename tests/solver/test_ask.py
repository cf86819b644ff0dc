from __future__ import annotations

import time

import pytest
import z3

from streamtight.solver.ask import Answer, Budget, check, feasible, prove

x, y, z = z3.Ints("x y z")
# Nobody knows how to decide these quickly.
HARD = [x > 1, y > 1, z > 1, x**3 + y**3 == z**3, x * y % 7919 == 3, z * z % 7907 == 2]


def test_a_valid_claim_is_proved():
    answer = prove(x * x >= 0, seconds=5)

    assert (answer.proved, answer.refuted, answer.unknown) == (True, False, False)


def test_a_false_claim_is_refuted_by_a_model_that_makes_it_false():
    answer = prove(x * 2 > x, given=[x > -5], seconds=5)

    assert (answer.proved, answer.refuted, answer.unknown) == (False, True, False)
    value = answer.model[x].as_long()
    assert value > -5
    assert not value * 2 > value


def test_what_is_given_may_be_used():
    assert prove(x * 2 > x, given=(formula for formula in [x > 0]), seconds=5).proved


def test_everything_follows_from_a_contradiction():
    assert prove(z3.BoolVal(False), given=[x > 0, x < 0], seconds=5).proved


def test_a_hard_question_is_unknown_with_its_reason_and_in_time():
    start = time.monotonic()
    answer = prove(z3.Not(z3.And(HARD)), seconds=0.2)

    assert (answer.proved, answer.refuted, answer.unknown) == (False, False, True)
    assert answer.reason
    assert time.monotonic() - start < 2


@pytest.mark.parametrize("seconds", [0, -1])
def test_without_time_nothing_is_known(seconds):
    assert prove(z3.BoolVal(True), seconds=seconds).reason == "no time left"
    assert feasible([z3.BoolVal(True)], seconds) is None


def test_a_model_that_cannot_be_calculated_through_is_not_believed():
    f = z3.Function("f", z3.IntSort(), z3.IntSort())
    claim = z3.Exists([x], z3.And(f(x) > 0, x > y))

    answer = prove(claim, given=[z3.ForAll([x], f(x + 1) >= f(x))], seconds=1)

    assert answer.unknown


def test_an_answer_has_no_truth_value():
    with pytest.raises(TypeError, match=r"\.proved, \.refuted or \.unknown"):
        bool(Answer())


def test_answers_say_what_they_are():
    assert repr(Answer()) == "Answer(proved)"
    assert repr(Answer(reason="timeout")) == "Answer(unknown: timeout)"
    assert "x = 0" in repr(prove(x != 0, seconds=5))


def test_constraints_are_feasible_or_not_or_that_is_not_known():
    assert feasible([x > 0, x < 2], 5) is True
    assert feasible([x > 0, x < 1], 5) is False
    assert feasible(HARD, 0.1) is None


def test_questions_to_one_solver_have_their_steps_each(monkeypatch):
    monkeypatch.setattr("streamtight.solver.ask._STEPS_PER_SECOND", 2_000)
    solver = z3.Solver()
    answers = set()
    for i in range(100):
        solver.push()
        solver.add(x > i, x < y, y % 3 == 1)
        answers.add(check(solver, 5)[1])
        solver.pop()

    assert answers == {""}


def test_steps_end_a_question_if_the_clock_does_not(monkeypatch):
    monkeypatch.setattr("streamtight.solver.ask._STEPS_PER_SECOND", 10)

    assert prove(z3.Not(z3.And(HARD)), seconds=60).unknown


def test_an_exception_of_the_solver_is_unknown_too():
    class Broken(z3.Solver):
        def check(self):
            raise z3.Z3Exception("out of memory")

    assert check(Broken(), 1) == (z3.unknown, "out of memory")


def test_a_keyboard_interrupt_that_the_solver_took_is_raised():
    class Interrupted(z3.Solver):
        def check(self):
            return z3.unknown

        def reason_unknown(self):
            return "interrupted from keyboard"

    with pytest.raises(KeyboardInterrupt):
        check(Interrupted(), 1)


def test_a_budget_runs_down_and_never_below_zero():
    budget = Budget(0.02)
    first = budget.left
    time.sleep(0.03)

    assert 0 < first <= 0.02
    assert budget.left == 0
    assert budget.seconds == 0.02


def test_a_budget_is_a_number():
    with pytest.raises(ValueError, match="nan"):
        Budget(float("nan"))
