"""Cases that Hypothesis draws: small ones first, and a failing one is made small with few questions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.database import DirectoryBasedExampleDatabase

from streamtight.source import gen
from streamtight.source.cases import Cases, cases_of
from streamtight.stream.event import Kind
from streamtight.stream.schedule import Schedule

N = Kind("N", n=int)
STREAMS = gen.always(gen.batch(N, size=(0, 5), n=range(50)), during=4)
COUNT = 60
SEED = 3


def has_a_pair(case: Schedule) -> bool:
    return len(set(case.events)) < len(case.events)


class Asked:
    """Says which cases fail, and notes how often it was asked, and about how many."""

    def __init__(self, rounds: int = 10_000) -> None:
        self.sizes: list[int] = []
        self.rounds = rounds

    def __call__(self, cases: Sequence[Schedule]) -> list[bool] | None:
        if len(self.sizes) == self.rounds:
            return None
        self.sizes.append(len(cases))
        return list(map(has_a_pair, cases))


def drawn(database: Path | None = None) -> Cases:
    kept = None if database is None else DirectoryBasedExampleDatabase(database)
    return cases_of(STREAMS, key="a question", settings=settings(database=kept))


def failing(cases: Cases, which: int = -1) -> Schedule:
    return [case for case in cases.draw(COUNT, SEED) if has_a_pair(case)][which]


def test_small_cases_come_first():
    sizes = [len(case.events) for case in drawn().draw(COUNT, SEED)]

    assert sizes == sorted(sizes)
    assert len(sizes) == COUNT


@pytest.mark.parametrize("at_once", [1, 3, 20])
def test_a_failing_case_becomes_small_however_many_are_tried_at_once(at_once: int):
    cases, asked = drawn(), Asked()

    small = cases.smallest(failing(cases), asked, at_once=at_once, count=COUNT, seed=SEED)

    assert small.events == (N(0), N(0))
    assert len(small.batches) == 4
    assert max(asked.sizes) <= at_once


def test_to_try_several_at_once_takes_fewer_rounds():
    cases, one, many = drawn(), Asked(), Asked()

    cases.smallest(failing(cases), one, at_once=1, count=COUNT, seed=SEED)
    cases.smallest(failing(cases), many, at_once=20, count=COUNT, seed=SEED)

    assert len(many.sizes) < len(one.sizes)


def test_when_time_is_up_the_smallest_so_far_is_given():
    cases, asked = drawn(), Asked(rounds=3)
    case = failing(cases)

    small = cases.smallest(case, asked, at_once=4, count=COUNT, seed=SEED)

    assert has_a_pair(small)
    assert len(small.events) < len(case.events)


def test_without_any_time_it_is_the_case_itself():
    cases = drawn()
    case = failing(cases)

    assert cases.smallest(case, Asked(rounds=0), at_once=4, count=COUNT, seed=SEED) == case


@pytest.mark.parametrize("rounds", [0, 3, 10_000])
def test_what_it_became_is_kept_and_found_again(tmp_path: Path, rounds: int):
    cases = drawn(tmp_path)
    small = cases.smallest(failing(cases), Asked(rounds), at_once=4, count=COUNT, seed=SEED)

    assert drawn(tmp_path).first_saved(has_a_pair) == small
    assert drawn(tmp_path).first_saved(lambda case: False) is None
    assert drawn(tmp_path).first_saved(has_a_pair) is None  # it failed no more, so it was forgotten


def test_another_question_does_not_see_it(tmp_path: Path):
    cases = drawn(tmp_path)
    cases.smallest(failing(cases), Asked(), at_once=4, count=COUNT, seed=SEED)
    other = cases_of(STREAMS, key="another", settings=settings(database=DirectoryBasedExampleDatabase(tmp_path)))

    assert other.first_saved(has_a_pair) is None
