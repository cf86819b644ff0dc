"""Laws of functions that merge: proved, or shown to be broken by values for which the function itself breaks them."""

from __future__ import annotations

from typing import Any

import pytest

import streamtight as tight
from streamtight.errors import SourceError


def plus(a: Any, b: Any) -> Any:
    return a + b


def longest(a: str, b: str) -> str:
    return a if len(a) >= len(b) else b


@pytest.mark.parametrize(
    ("combine", "of", "identity"),
    [
        (plus, int, 0),
        (max, int, -(10**9)),
        (lambda a, b: a * b, int, 1),
        (lambda a, b: (a[0] + b[0], max(a[1], b[1])), (int, int), (0, -1)),
        (lambda a, b: b if a is None else a if b is None else a + b, int | None, None),
        (lambda a, b: a and b, bool, True),
    ],
)
def test_a_commutative_monoid(combine: Any, of: Any, identity: Any):
    verdict = tight.commutative_monoid(combine, of, identity=identity)
    # A greatest value that starts with a number is neutral for greater ones only.
    assert verdict.holds is (identity not in (-(10**9), (0, -1)))
    assert tight.commutative_monoid(combine, of).holds


@pytest.mark.parametrize(
    ("combine", "of", "finding"),
    [
        (lambda a, b: a - b, int, "NOT_ASSOCIATIVE"),
        (lambda a, b: (a + b) / 2, float, "NOT_ASSOCIATIVE"),
        (plus, str, "NOT_COMMUTATIVE"),
        (lambda a, b: a, int, "NOT_COMMUTATIVE"),
        (longest, str, "NOT_COMMUTATIVE"),
        (lambda a, b: a + b if a + b != 123_456 else 0, int, "NOT_ASSOCIATIVE"),
    ],
)
def test_what_breaks_a_law_is_shown(combine: Any, of: Any, finding: str):
    verdict = tight.commutative_monoid(combine, of)

    assert verdict.counterexample is not None
    assert verdict.counterexample.finding == finding
    assert verdict.counterexample.table is not None


def test_what_is_pasted_shows_both_results(capsys: pytest.CaptureFixture[str]):
    found = tight.commutative_monoid(longest, str).counterexample
    assert found is not None
    exec(found.replay, {"longest": longest})
    one, other = capsys.readouterr().out.splitlines()

    assert one != other


def test_a_start_that_is_not_neutral():
    verdict = tight.commutative_monoid(plus, int, identity=1)

    assert verdict.counterexample is not None
    assert verdict.counterexample.finding == "NOT_NEUTRAL"


def test_what_cannot_be_read_is_undecided():
    verdict = tight.commutative_monoid(lambda a, b: hash((a, b)) * 0 + max(a, b), int)

    assert verdict.undecided
    assert "hash" in (verdict.reason or "")


def test_a_type_that_is_not_known_is_told():
    with pytest.raises(SourceError, match=r"commutative_monoid\(.*int, bool"):
        tight.commutative_monoid(plus, list)


@pytest.mark.parametrize("combine", [lambda a: a, lambda a, b, c: a, 5], ids=["one", "three", "none"])
def test_a_function_that_does_not_merge_two_values_is_a_wrong_question(combine: Any):
    with pytest.raises(SourceError, match="merges two values"):
        tight.commutative_monoid(combine, int)


def test_floats_are_taken_for_real_numbers_and_that_is_told():
    assert tight.commutative_monoid(lambda a, b: (a[0] + b[0], a[1] + b[1]), (int, float)).assumptions == (
        "floats are real numbers",
    )
    assert tight.commutative_monoid(plus, int).assumptions == ()
