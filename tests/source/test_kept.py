"""Counterexamples that are kept: files, tokens, what is tried first, what is forgotten."""

from __future__ import annotations

import json
import zlib
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from streamtight.errors import SourceError
from streamtight.source.kept import Keeper, Kept, all_kept, keeping, kept_answer
from streamtight.stream.event import Kind
from streamtight.stream.schedule import Restart, Schedule
from streamtight.verdict import Counterexample, Outcome, Scope, Verdict

Order = Kind("Order", id=int)
SCHEDULE = Schedule((((Order(1), Order(2)),), ((Order(3),),)), 2, (Restart(after=0),))
ASK = {"command": ["laws", "jobs.py:totals"]}
FAILS = Verdict(
    "totals keeps the law of cuts",
    Outcome.FAILS,
    Scope.tested(5, seed=7),
    Counterexample("BATCH_DEPENDENT", "it depends", SCHEDULE),
)


def holds(_: Schedule) -> Verdict:
    return Verdict(FAILS.claim, Outcome.HOLDS, Scope.tested(3))


def fails(schedule: Schedule) -> Verdict:
    found = Counterexample("BATCH_DEPENDENT", "it depends", schedule)
    return Verdict(FAILS.claim, Outcome.FAILS, Scope.tested(3), found)


def undecided(_: Schedule) -> Verdict:
    return Verdict(FAILS.claim, Outcome.UNDECIDED, Scope.tested(0), reason="a run did not end within 5 seconds")


def never(_: Schedule) -> Verdict:
    raise AssertionError("asked")


def test_a_case_comes_back_from_its_file_and_from_its_token(tmp_path: Path) -> None:
    kept = Keeper(tmp_path, ASK).keep(FAILS)

    for read in (Kept.read(kept.path), Kept.read(kept.token)):
        assert read == kept
        assert read.id == kept.id
        assert read.seed == 7
        assert read.schedule_of([Order]) == SCHEDULE


def test_what_is_kept_stays_out_of_version_control(tmp_path: Path) -> None:
    Keeper(tmp_path / "kept", ASK).keep(FAILS)

    assert (tmp_path / "kept" / ".gitignore").read_text() == "*\n"


def test_a_question_has_one_file_however_often_it_fails(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path, ASK)

    keeper.keep(FAILS)
    keeper.keep(FAILS)
    Keeper(tmp_path, {"test": "test_a.py::test_b"}).keep(FAILS)

    assert len(list(tmp_path.glob("*.json"))) == 2
    assert len(keeper.of(FAILS.claim)) == 1
    assert not list(tmp_path.glob("*.part"))


def test_without_a_keeper_nothing_is_kept() -> None:
    assert kept_answer(FAILS.claim, [Order], never) is None


def test_a_kept_case_that_still_fails_is_the_answer(tmp_path: Path) -> None:
    with keeping(Keeper(tmp_path, ASK)) as keeper:
        keeper.keep(FAILS)

        answer = kept_answer(FAILS.claim, [Order], fails)

    assert answer is not None
    assert answer.fails
    assert answer.counterexample is not None
    assert answer.counterexample.schedule == SCHEDULE
    assert answer.scope.seed == 7
    assert not keeper.retired
    assert len(keeper.all()) == 1


def test_a_kept_case_that_is_right_now_is_retired_and_the_search_goes_on(tmp_path: Path) -> None:
    with keeping(Keeper(tmp_path, ASK)) as keeper:
        kept = keeper.keep(FAILS)

        assert kept_answer(FAILS.claim, [Order], holds) is None

    assert keeper.retired == [kept]
    assert keeper.all() == []


def test_a_kept_case_that_was_not_decided_stays(tmp_path: Path) -> None:
    with keeping(Keeper(tmp_path, ASK, only=True)) as keeper:
        keeper.keep(FAILS)

        answer = kept_answer(FAILS.claim, [Order], undecided)

    assert answer is not None
    assert answer.undecided
    assert len(keeper.all()) == 1


@pytest.mark.parametrize(
    ("ask", "claim"), [({"command": ["laws", "other.py:totals"]}, FAILS.claim), (ASK, "totals keeps another law")]
)
def test_cases_of_other_questions_are_not_asked(tmp_path: Path, ask: dict[str, list[str]], claim: str) -> None:
    Keeper(tmp_path, ASK).keep(FAILS)

    with keeping(Keeper(tmp_path, ask)):
        assert kept_answer(claim, [Order], never) is None


def test_a_case_whose_kind_has_changed_is_forgotten(tmp_path: Path) -> None:
    with keeping(Keeper(tmp_path, ASK)) as keeper:
        keeper.keep(FAILS)

        assert kept_answer(FAILS.claim, [Kind("Order", number=int)], never) is None

    assert (len(keeper.retired), len(keeper.outdated)) == (0, 1)
    assert keeper.all() == []


def test_with_only_nothing_else_is_an_answer(tmp_path: Path) -> None:
    with keeping(Keeper(tmp_path, ASK, only=True)) as keeper:
        nothing = kept_answer(FAILS.claim, [Order], never)
        keeper.keep(FAILS)
        fixed = kept_answer(FAILS.claim, [Order], holds)

    assert nothing is not None
    assert nothing.undecided
    assert fixed is not None
    assert fixed.holds


def test_only_a_verdict_that_fails_can_be_kept(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="a verdict that FAILS"):
        Keeper(tmp_path, ASK).keep(holds(SCHEDULE))


def test_files_that_cannot_be_read_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "b.json").write_bytes(b"\xff\xfe")
    (tmp_path / "c.json").mkdir()
    kept = Keeper(tmp_path, ASK).keep(FAILS)

    assert list(all_kept(tmp_path)) == [kept]


DATA = {
    "streamtight": 1,
    "ask": ASK,
    "claim": "c",
    "finding": "F",
    "explanation": "e",
    "seed": None,
    "schedule": None,
    "code": "",
}


@pytest.mark.parametrize(
    "change",
    [
        {"streamtight": 2},
        {"streamtight": "1"},
        {"ask": {"command": []}},
        {"ask": {"command": ["laws", 5]}},
        {"ask": {"shell": "rm"}},
        {"ask": {"command": ["laws"], "test": "t"}},
        {"claim": None},
        {"schedule": "s"},
    ],
)
def test_data_that_is_no_case_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    path = tmp_path / "case.json"
    path.write_text(json.dumps({**DATA, **change}))

    with pytest.raises(SourceError, match=r"case\.json"):
        Kept.read(path)


def packed(data: bytes) -> str:
    return "st1-" + urlsafe_b64encode(zlib.compress(data)).decode().rstrip("=")


@pytest.mark.parametrize(
    "token",
    ["st1-", "st1-!!!", "st1-AAAA", packed(b"{")[:-3], packed(b"\xff"), packed(b"0" * (2**24 + 1)), packed(b"5")],
)
def test_a_token_that_is_broken_or_too_large_is_refused(token: str) -> None:
    with pytest.raises(SourceError, match="the token st1-"):
        Kept.read(token)
