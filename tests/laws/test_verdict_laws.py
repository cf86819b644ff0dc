from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from strategies import lawful

from streamtight.stream.event import Kind
from streamtight.stream.schedule import Schedule
from streamtight.verdict import Counterexample, Outcome, Scope, Verdict, combine

KIND = Kind("V", n=int)

scopes = st.one_of(
    st.just(Scope.proved()),
    st.integers(0, 2).map(Scope.explored),
    st.integers(0, 2).map(Scope.observed),
    st.builds(lambda count, seed: Scope.tested(count, seed=seed), st.integers(0, 2), st.none() | st.integers(0, 1)),
)


@st.composite
def verdicts(draw: st.DrawFn) -> Verdict:
    outcome = draw(st.sampled_from(list(Outcome)))
    number = draw(st.integers(0, 9))
    found = Counterexample(f"FOUND_{number}", "it failed", Schedule.of([KIND(number)]))
    return Verdict(
        "claim",
        outcome,
        draw(scopes),
        found if outcome is Outcome.FAILS else None,
        f"reason {number}" if outcome is Outcome.UNDECIDED else None,
        {"runs": draw(st.integers(0, 9))},
        draw(st.sampled_from(["", "m", "n"])),
        draw(st.sampled_from([(), ("x",), ("y", "x")])),
    )


def _without_claims(verdict: Verdict) -> tuple[object, ...]:
    reason = None if verdict.reason is None else verdict.reason.split(": ")[-1]
    return (
        verdict.outcome,
        verdict.scope,
        verdict.counterexample,
        reason,
        verdict.cost,
        verdict.method,
        verdict.assumptions,
    )


@given(verdicts(), verdicts(), verdicts())
@lawful
def test_combining_is_associative_up_to_the_claim(one: Verdict, two: Verdict, three: Verdict):
    """(a and b) and c is a and (b and c), and both are all three at once."""
    left = combine([combine([one, two], claim="c"), three], claim="c")
    right = combine([one, combine([two, three], claim="c")], claim="c")
    flat = combine([one, two, three], claim="c")

    assert _without_claims(left) == _without_claims(right) == _without_claims(flat)


@given(st.lists(verdicts(), min_size=1, max_size=4))
@lawful
def test_all_hold_with_the_worst_outcome_and_the_narrowest_scope(listed: list[Verdict]):
    """The outcome is the minimum; so is the scope, unless something fails: then it is that of what failed first."""
    combined = combine(listed, claim="all")
    failing = [verdict for verdict in listed if verdict.fails]

    assert combined.claim == "all"
    assert combined.outcome == min(verdict.outcome for verdict in listed)
    assert combined.cost["runs"] == sum(verdict.cost["runs"] for verdict in listed)
    if failing:
        assert combined.scope == failing[0].scope
        assert combined.counterexample == failing[0].counterexample
    else:
        assert not any(verdict.scope < combined.scope for verdict in listed)
        assert combined.scope in [verdict.scope for verdict in listed]


@given(scopes, scopes, scopes)
@lawful
def test_being_narrower_is_a_strict_order(one: Scope, two: Scope, three: Scope):
    """Irreflexive, asymmetric and transitive."""
    assert not one < one
    assert not (one < two and two < one)
    assert not (one < two and two < three) or one < three


@given(verdicts())
@lawful
def test_a_verdict_and_its_json_say_the_same(verdict: Verdict):
    """JSON loses nothing of the answer."""
    data = json.loads(verdict.to_json())

    assert data == verdict.as_data()
    assert Outcome[data["outcome"]] is verdict.outcome
    assert (data["counterexample"] is not None) == verdict.fails
