from __future__ import annotations

import itertools
import json
import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from golden import assert_golden

from streamtight.errors import VerdictError
from streamtight.stream.event import Kind
from streamtight.stream.plain import plain
from streamtight.stream.schedule import Restart, Schedule
from streamtight.verdict import Counterexample, Outcome, Scope, Strength, Verdict, combine

GPS = Kind("GPS", taxi=int, x=float)
EVERYTHING = Kind("Everything", value=object)


def counterexample(**changes: Any) -> Counterexample:
    given: dict[str, Any] = {
        "finding": "ORDER_LOST",
        "explanation": "taxi 1 came out of order",
        "schedule": Schedule(
            (((GPS(1, 0.0),), ()), ((GPS(1, math.nan),), (GPS(2, 5.0),))),
            shuffle_partitions=2,
            restarts=(Restart(0), Restart(1, replay=True)),
        ),
        "expected": (GPS(1, 0.0), GPS(1, math.nan)),
        "actual": (),
        "replay": "from streamtight import replay\n\nreplay('f81')",
        "reruns": 5,
        "failing_reruns": 4,
    }
    return Counterexample(**{**given, **changes})


def holds(claim: str = "it holds", scope: Scope | None = None) -> Verdict:
    return Verdict(claim, Outcome.HOLDS, scope or Scope.proved())


def fails(claim: str = "it fails", scope: Scope | None = None) -> Verdict:
    return Verdict(claim, Outcome.FAILS, scope or Scope.tested(3, seed=1), counterexample())


def undecided(claim: str = "who knows", scope: Scope | None = None) -> Verdict:
    return Verdict(claim, Outcome.UNDECIDED, scope or Scope.explored(4), reason="out of time")


# -- outcomes and scopes ---------------------------------------------------------------------------------------------


def test_outcomes_are_ordered_from_no_to_yes():
    assert Outcome.FAILS < Outcome.UNDECIDED < Outcome.HOLDS


def test_scopes_are_ordered_by_strength_first():
    scopes = [Scope.observed(900), Scope.tested(800), Scope.explored(7), Scope.proved()]

    assert all(one < other and not other < one for one, other in itertools.combinations(scopes, 2))


def test_scopes_of_one_strength_are_ordered_by_their_number_of_inputs():
    assert Scope.tested(3, seed=9) < Scope.tested(4, seed=1)
    assert Scope.explored(2) < Scope.explored(3)
    assert not Scope.proved() < Scope.proved()


@pytest.mark.parametrize(
    ("scope", "text"),
    [
        (Scope.proved(), "proved for every input"),
        (Scope.explored(4), "explored for all inputs up to size 4"),
        (Scope.tested(20, seed=7), "tested on 20 generated inputs, seed 7"),
        (Scope.tested(20, seed=0), "tested on 20 generated inputs, seed 0"),
        (Scope.tested(2), "tested on 2 given inputs"),
        (Scope.observed(9), "observed on 9 events"),
    ],
)
def test_a_scope_says_which_inputs_it_means(scope: Scope, text: str):
    assert str(scope) == text


def test_a_scope_keeps_its_parts():
    scope = Scope.tested(20, seed=7)

    assert (scope.strength, scope.count, scope.seed) == (Strength.TESTED, 20, 7)


# -- verdicts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdict", "answers"),
    [(holds(), (True, False, False)), (fails(), (False, True, False)), (undecided(), (False, False, True))],
    ids=str,
)
def test_a_verdict_answers_one_of_three(verdict: Verdict, answers: tuple[bool, bool, bool]):
    assert (verdict.holds, verdict.fails, verdict.undecided) == answers


def test_a_verdict_that_holds_is_what_is_required():
    verdict = holds()

    assert verdict.require() is verdict


@pytest.mark.parametrize("verdict", [fails(), undecided()], ids=str)
def test_a_verdict_that_does_not_hold_raises_its_story(verdict: Verdict):
    with pytest.raises(AssertionError) as caught:
        verdict.require()

    assert str(caught.value) == verdict.story()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Verdict("c", Outcome.FAILS, Scope.proved()),
        lambda: Verdict("c", Outcome.FAILS, Scope.proved(), reason="because"),
        lambda: Verdict("c", Outcome.HOLDS, Scope.proved(), counterexample()),
        lambda: Verdict("c", Outcome.UNDECIDED, Scope.proved(), counterexample(), "because"),
        lambda: Verdict("c", Outcome.UNDECIDED, Scope.proved()),
        lambda: Verdict("c", Outcome.UNDECIDED, Scope.proved(), reason=""),
    ],
)
def test_a_verdict_that_contradicts_itself_is_refused(make: Any):
    with pytest.raises(VerdictError):
        make()


def test_a_verdict_is_neither_true_nor_false():
    with pytest.raises(VerdictError, match="require"):
        assert not holds()


# -- what a person reads ---------------------------------------------------------------------------------------------


def test_the_lines_of_the_three_verdicts():
    with_reason = Verdict("it holds", Outcome.HOLDS, Scope.proved(), reason="by induction")

    assert_golden("verdict_lines", "\n".join(map(str, [holds(), fails(), undecided(), with_reason])))


def test_the_story_of_a_verdict_that_fails():
    assert_golden("verdict_story", fails().story())


def test_the_story_of_a_bare_counterexample():
    bare = Counterexample("LOST", "an event is missing", Schedule.of([GPS(1, 0.0)]))

    assert_golden("counterexample_story", bare.story())


def test_the_story_of_a_verdict_that_holds_is_its_line():
    assert holds().story() == str(holds())


def test_what_is_assumed_is_told_with_the_scope_and_the_method_below():
    assumed = ("integers do not overflow", "floats are real numbers")
    verdict = Verdict("c", Outcome.HOLDS, Scope.proved(), method="NoAgg: rows one by one", assumptions=assumed)

    assert verdict.story() == (
        "HOLDS  c (proved for every input, assuming that integers do not overflow and floats are real numbers)\n"
        "  decided by NoAgg: rows one by one"
    )
    assert verdict.as_data()["method"] == "NoAgg: rows one by one"
    assert verdict.as_data()["assumptions"] == list(assumed)


# -- JSON ------------------------------------------------------------------------------------------------------------


def test_a_verdict_as_json():
    assert_golden("verdict_json", fails().to_json())


def test_a_verdict_without_a_counterexample_as_data():
    verdict = Verdict("c", Outcome.UNDECIDED, Scope.tested(3, seed=1), reason="out of time", cost={"seconds": 1.5})

    assert json.loads(verdict.to_json()) == {
        "claim": "c",
        "outcome": "UNDECIDED",
        "scope": {
            "strength": "TESTED",
            "count": 3,
            "seed": 1,
            "text": "tested on 3 generated inputs, seed 1",
        },
        "reason": "out of time",
        "method": "",
        "assumptions": [],
        "cost": {"seconds": 1.5},
        "story": "UNDECIDED  c: out of time (tested on 3 generated inputs, seed 1)",
        "counterexample": None,
    }


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (None, None),
        (True, True),
        (2**70, 2**70),
        (0.5, 0.5),
        ("é\ud800", "é\ud800"),
        (math.nan, {"float": "nan"}),
        (math.inf, {"float": "inf"}),
        (-math.inf, {"float": "-inf"}),
        (Decimal("1.50"), {"Decimal": "1.50"}),
        (date(2024, 2, 29), {"date": "2024-02-29"}),
        (datetime(2024, 2, 29, 12, tzinfo=UTC), {"datetime": "2024-02-29 12:00:00+00:00"}),
        (timedelta(days=1, seconds=1), {"microseconds": 86401000000}),
        (b"\x00\xff", {"bytes": "00ff"}),
        ((1, (math.nan,)), [1, [{"float": "nan"}]]),
        ({1: math.nan, "a": b"b"}, {"map": [[1, {"float": "nan"}], ["a", {"bytes": "62"}]]}),
        (GPS(1, math.nan), {"kind": "GPS", "fields": {"taxi": 1, "x": {"float": "nan"}}}),
    ],
    ids=str,
)
def test_every_value_of_an_event_has_a_form_in_json(value: Any, data: Any):
    event = EVERYTHING(value)
    found = counterexample(schedule=Schedule.of([event]), expected=(event,), actual=None)
    verdict = Verdict("c", Outcome.FAILS, Scope.observed(1), found)

    read = json.loads(verdict.to_json(), parse_constant=pytest.fail)

    shown = {"kind": "Everything", "fields": {"value": data}}
    assert plain(event) == shown
    assert read["counterexample"]["batches"] == [[[shown]]]
    assert read["counterexample"]["expected"] == [shown]
    assert read["counterexample"]["actual"] is None


def test_restarts_and_reruns_are_in_the_json():
    data = json.loads(fails().to_json())["counterexample"]

    assert data["restarts"] == [{"after": 0, "replay": False}, {"after": 1, "replay": True}]
    assert (data["shuffle_partitions"], data["reruns"], data["failing_reruns"]) == (2, 5, 4)
    assert (data["finding"], data["explanation"]) == ("ORDER_LOST", "taxi 1 came out of order")


# -- several verdicts ------------------------------------------------------------------------------------------------


def test_the_worst_outcome_is_that_of_all():
    assert combine([holds(), undecided(), fails()], claim="all").fails
    assert combine([holds(), undecided()], claim="all").undecided
    assert combine([holds(), holds()], claim="all").holds


def test_the_narrowest_scope_is_that_of_all():
    both = combine([holds(scope=Scope.proved()), holds(scope=Scope.tested(5, seed=1))], claim="all")

    assert both.scope == Scope.tested(5, seed=1)


def test_an_undecided_verdict_does_not_widen_the_scope():
    both = combine([undecided(scope=Scope.proved()), holds(scope=Scope.observed(2))], claim="all")

    assert both.scope == Scope.observed(2)


def test_one_failing_input_refutes_all_in_the_scope_in_which_it_was_found():
    both = combine([holds(scope=Scope.observed(1)), fails(scope=Scope.proved())], claim="all")

    assert both.scope == Scope.proved()
    assert both.counterexample == fails().counterexample


def test_the_first_of_the_worst_is_the_evidence():
    first = Verdict("first", Outcome.UNDECIDED, Scope.proved(), reason="no time")
    second = Verdict("second", Outcome.UNDECIDED, Scope.proved(), reason="no memory")

    assert combine([holds(), first, second], claim="all").reason == "first: no time"


def test_costs_add_up():
    one = Verdict("a", Outcome.HOLDS, Scope.proved(), cost={"runs": 2, "seconds": 0.5})
    other = Verdict("b", Outcome.HOLDS, Scope.proved(), cost={"runs": 3})

    assert combine([one, other], claim="all").cost == {"runs": 5, "seconds": 0.5}


def test_methods_and_assumptions_of_all_are_kept():
    one = Verdict("a", Outcome.HOLDS, Scope.proved(), method="m", assumptions=("x", "y"))
    other = Verdict("b", Outcome.HOLDS, Scope.proved(), method="n", assumptions=("y", "z"))

    both = combine([one, other, one], claim="all")

    assert (both.method, both.assumptions) == ("m; n", ("x", "y", "z"))


def test_what_fails_needs_no_assumption_of_the_others():
    one = Verdict("a", Outcome.HOLDS, Scope.proved(), method="m", assumptions=("x",))

    assert combine([one, fails()], claim="all").assumptions == ()


def test_all_of_one_verdict_is_that_verdict_under_another_claim():
    assert combine([holds("a")], claim="b") == holds("b")
