"""The examples and pages of explore, without a JVM: verdicts are as they should be, and pages show what comes out."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import itertools
import os
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import streamtight as tight

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"```(python|text)\n(.*?)```\n", re.DOTALL)


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pipelines, dedup, session_close = map(load, ("pipelines", "dedup", "session_close"))


# -- pages -------------------------------------------------------------------------------------------------------------


def filled(page: str) -> str:
    """The page with what its code prints in the text blocks; those that start Spark are left as they are."""
    names: dict[str, Any] = {"__name__": "page"}
    printed: str | None = None

    def block(found: re.Match[str]) -> str:
        nonlocal printed
        kind, text = found.groups()
        if kind == "text":
            shown, printed = printed, None
            return found[0] if shown is None else f"```text\n{shown}```\n"
        printed = None
        if "spark" not in text:
            told = io.StringIO()
            with contextlib.redirect_stdout(told):
                exec(text, names)
            printed = told.getvalue()
        return found[0]

    return BLOCK.sub(block, page)


@pytest.mark.parametrize("name", ["explore.md", "explore_examples.md"])
def test_a_page_shows_what_comes_out(name):
    path = ROOT / "docs" / name
    page = path.read_text(encoding="utf-8")

    came = filled(page)

    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(came, encoding="utf-8")
    assert came == path.read_text(encoding="utf-8"), f"{path} differs: if that is right, UPDATE_GOLDEN=1"


def test_the_picture_on_the_page_is_that_of_the_first_verdict():
    page = (ROOT / "docs" / "explore.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for _, code in [found for found in BLOCK.findall(page) if found[0] == "python"][:2]:
            exec(code, names)

    picture = names["verdict"].picture()

    path = ROOT / "docs" / "explore_queue.svg"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(picture, encoding="utf-8")
    assert picture.strip() == path.read_text(encoding="utf-8").strip()


# -- the paper ---------------------------------------------------------------------------------------------------------


def test_claims_of_the_paper_have_the_outcomes_that_they_should_have():
    answers = list(pipelines.claims())

    assert [(name, verdict.outcome.name) for name, _, verdict in answers] == [
        (name, expected) for name, expected, _ in answers
    ]


def test_a_report_of_the_claims_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["pipelines.py", "--report", str(tmp_path / "report.html")])

    code = pipelines.main()

    assert code == 0
    assert "FAILS     2a: no queue is ever full" in capsys.readouterr().out
    assert "figure 2a" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_queue_of_figure_2a_grows_as_it_is_told():
    run = list(pipelines.figure_2a().pushes(range(3 * 40)))

    # After two pushes, it grows by 2 with every 3 pushes.
    assert [len(push.queues["C.1"]) for push in run[1::3]] == [1 + 2 * number for number in range(40)]


def test_the_wrong_system_is_the_only_one_that_counts_to_two():
    for most in (None, 2):
        system = pipelines.counting_system(most=most)
        wrong = [state for state in system.states if state[2] != sum(state[1])]

        assert bool(wrong) is (most == 2)


# -- dedup -------------------------------------------------------------------------------------------------------------


def passed(seen_before: Any, ids: tuple[int, ...]) -> list[int]:
    """The plain loop: what comes out for these clicks of one user."""
    return [each for place, each in enumerate(ids) if not seen_before(ids[:place], each)]


def repeats_the_last(before: tuple[int, ...], each: int) -> bool:
    return before[-1:] == (each,)


def came_before(before: tuple[int, ...], each: int) -> bool:
    return each in before


def test_the_clicks_that_come_out_twice_are_as_few_as_any():
    verdict = tight.explore(dedup.LastClick, dedup.once, on=dedup.CLICKS, key="user")

    steps = verdict.counterexample.table.rows
    shortest = next(
        ids
        for length in itertools.count()
        for ids in itertools.product((1, 2), repeat=length)
        if len(set(out := passed(repeats_the_last, ids))) < len(out)
    )
    assert len(steps) == len(shortest) == 3


def test_every_click_comes_out_once_and_none_is_lost():
    verdicts = [
        tight.explore(dedup.EveryClick, claim, on=dedup.CLICKS, key="user") for claim in (dedup.once, dedup.none_lost)
    ]

    assert [verdict.outcome.name for verdict in verdicts] == ["HOLDS", "HOLDS"]
    for ids in itertools.product((1, 2), repeat=5):
        assert sorted(passed(came_before, ids)) == sorted(set(ids))


def test_a_dedup_that_gives_nothing_is_not_praised():
    class Silent(dedup.LastClick):
        def handleInputRows(self, key, rows, timer_values):  # noqa: N802
            return iter(())

    assert tight.explore(Silent, dedup.once, on=dedup.CLICKS, key="user").undecided
    assert tight.explore(Silent, dedup.none_lost, on=dedup.CLICKS, key="user").fails


# -- sessions ----------------------------------------------------------------------------------------------------------


def test_a_session_of_two_visits_is_never_closed():
    verdict = tight.explore(session_close.Forgetful, tight.live(), on=session_close.VISITS, key="user")

    states = [row[-1] for row in verdict.counterexample.table.rows]
    assert states == ["ann: page 'home', timer at 600000", "ann: page 'home'"]


def test_every_session_can_be_closed_and_no_timer_comes_for_none():
    verdicts = [
        tight.explore(session_close.Sessions, claim, on=session_close.VISITS, key="user")
        for claim in (tight.live(), tight.never_stops())
    ]

    assert [verdict.outcome.name for verdict in verdicts] == ["HOLDS", "HOLDS"]
