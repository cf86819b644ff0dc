"""The page as data makes it: nothing of a user becomes HTML, much is sampled, and what makes a pass weak is told."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

import streamtight as tight
from streamtight.report.page import as_page, weak_points
from streamtight.verdict import Table

NASTY = "</script></style></title></pre><script>alert(1)</script><img src=x onerror=alert(1)>\"' onload=alert(1) x='"
Odd = tight.Kind(
    "Odd", text=str | None, number=float, raw=bytes, items=dict[str, int], inner=tuple[str, ...], big=int
)  # fmt: skip


class Page(HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


def failing(expected=(), actual=(), *, claim="a claim", **more):
    found = tight.Counterexample("WRONG_ROWS", "it differs", expected=expected, actual=actual, **more)
    return tight.Verdict(claim, tight.Outcome.FAILS, tight.Scope.tested(3, seed=1), found)


def odd(text="a", number=1.0):
    return Odd(text, number, b"\x00\xff", {"a": 1}, ("x",), 10**6_000)


def page_of(*verdicts, title="Jobs") -> Page:
    return Page(as_page([verdict.as_data() for verdict in verdicts], title))


def test_no_text_of_a_user_becomes_a_tag_or_an_attribute_of_its_own():
    row = odd(NASTY)
    found = tight.Counterexample(
        NASTY, NASTY, tight.Schedule.of([row]), (row,), (odd("b"),), replay=NASTY, picture=f"<svg>{NASTY}</svg>"
    )
    found = replace(found, table=Table((NASTY,), ((NASTY,),), NASTY))
    verdict = tight.Verdict(
        NASTY, tight.Outcome.FAILS, tight.Scope.tested(1), found, method=NASTY, assumptions=(NASTY,)
    )
    data = {**verdict.as_data(), "kept": {"id": NASTY}, "cost": {NASTY: NASTY}}
    plain = {**failing((odd(),), (odd(),)).as_data(), "kept": {"id": "x"}, "cost": {"a": 1}, "assumptions": [""]}

    nasty = Page(as_page([data], NASTY))

    tags = {tag for tag, _ in nasty.tags}
    assert tags <= {tag for tag, _ in Page(as_page([plain], "x")).tags} | {"details", "summary", "pre", "button", "div"}
    assert sum(tag == "script" for tag, _ in nasty.tags) == 1
    assert not any(name.startswith("on") for _, attributes in nasty.tags for name in attributes)
    assert nasty.text.count("<img src=x") >= 6  # as text it is there


def test_the_page_loads_nothing_and_may_run_only_its_own_script():
    page = page_of(failing())

    assert not {"link", "iframe", "object", "img", "base"} & {tag for tag, _ in page.tags}
    assert not any({"src", "style"} & set(attributes) for _, attributes in page.tags)
    (policy,) = [a["content"] for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert re.search(r"script-src 'sha256-[\w+/=]{44}'", policy)


def test_the_worst_come_first_and_each_says_what_it_rests_on():
    holds = tight.Verdict("yes", tight.Outcome.HOLDS, tight.Scope.tested(3, seed=1))
    unknown = tight.Verdict("maybe", tight.Outcome.UNDECIDED, tight.Scope.tested(0), reason="vacuous: nothing came")

    page = as_page([one.as_data() for one in (holds, unknown, failing(claim="no"))], "Jobs")

    lines = re.findall(r'<li class="(\w+)".*?</span> (\w+)</a>.*?<span class="soft">(.*?)</span></li>', page)
    assert lines == [
        ("FAILS", "no", "tested on 3 generated inputs, seed 1"),
        ("UNDECIDED", "maybe", "vacuous: nothing came"),
        ("HOLDS", "yes", "tested on 3 generated inputs, seed 1"),
    ]


@pytest.mark.parametrize(
    ("verdict", "points"),
    [
        (tight.Verdict("a", tight.Outcome.HOLDS, tight.Scope.proved()), []),
        (
            tight.Verdict("a", tight.Outcome.HOLDS, tight.Scope.tested(3, seed=1)),
            ["It was tested on 3 generated inputs, seed 1, and says nothing of others. Few."],
        ),
        (
            tight.Verdict("a", tight.Outcome.HOLDS, tight.Scope.observed(9), assumptions=("x > 0",)),
            ["It was observed on 9 events, and says nothing of what did not come.", "It takes for granted that x > 0."],
        ),
        (failing(reruns=3, failing_reruns=2), ["Run again, it failed only 2 of 3 times."]),
        (failing(reruns=3, failing_reruns=3), []),
    ],
)
def test_what_makes_a_verdict_weak_is_told(verdict, points):
    assert weak_points(verdict.as_data()) == points


def test_cells_that_differ_are_marked_and_no_others():
    page = page_of(failing((odd("a"), odd("b")), (odd("a"), odd("c"))))

    marked = [attributes for tag, attributes in page.tags if tag == "td" and "differ" in (attributes["class"] or "")]
    assert len(marked) == 2


def test_values_are_shown_so_that_they_are_told_apart():
    page = page_of(failing((odd(None, float("nan")), odd("", 1.0)), (odd("null", 1.0), odd("1", 1.0))))

    for text in ("null", "'null'", "''", "'1'", "nan", "0x00ff", "{'a': 1}", "['x']"):
        assert text in page.text


def test_a_value_that_is_very_deep_is_cut():
    deep: list[object] = []
    for _ in range(400):
        deep = [deep]
    data = failing((odd(),), ()).as_data()
    data["counterexample"]["expected"] = [{"kind": "N", "fields": {"deep": deep}}]

    assert "[[[…]]]" in Page(as_page([data], "Jobs")).text


@pytest.mark.parametrize("count", [1_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_many_rows_are_sampled_around_where_they_differ_and_the_page_says_so(count):
    n = tight.Kind("N", n=int, v=int)
    rows = [n(place, 0) for place in range(count)]
    other = [*rows]
    other[count // 2] = n(count // 2, 77)

    page = page_of(failing(tuple(rows), tuple(other)))

    assert f"of {count:,} rows are shown" in page.text
    assert "1 row differs" in page.text
    assert "77" in page.text
    assert len(page.text) < 30_000


def test_many_columns_and_long_texts_are_cut_where_they_differ():
    wide = tight.Kind("Wide", **{f"c{place}": str for place in range(300)})
    long = "x" * 5_000_000
    one, other = wide(*["same"] * 299, long + "left"), wide(*["same"] * 299, long + "right")

    page = page_of(failing((one,), (other,), replay="print(1)"))

    assert "of 300 columns are shown" in page.text
    assert "left" in page.text
    assert "right (from letter 4,999,961)" in page.text
    assert len(page.text) < 60_000


@pytest.mark.parametrize(("expected", "actual"), [((), ()), (None, None), ((), (odd(),)), ((odd(),), None)])
def test_sides_may_be_empty_or_not_there(expected, actual):
    assert "WRONG_ROWS" in page_of(failing(expected, actual)).text


def test_a_page_of_nothing_says_so():
    assert "no verdict" in page_of().text


def test_the_command_that_replays_is_shown():
    page = as_page([{**failing().as_data(), "kept": {"id": "0a1b2c3d", "token": "st1-x"}}], "Jobs")

    assert "<pre>streamtight replay 0a1b2c3d</pre>" in page


def test_a_notebook_shows_a_verdict_as_text_and_picture():
    verdict = failing(claim=NASTY, picture="<svg></svg>")

    shown = Page(verdict._repr_html_())

    assert [tag for tag, _ in shown.tags] == ["div", "pre", "div", "svg"]
    assert NASTY in shown.text
