"""Reports: the same verdicts as text, JSON and HTML."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser

import pytest

import streamtight as tight
from streamtight.errors import ReportError

N = tight.Kind("N", text=str)
HOLDS = tight.Verdict("it <holds>", tight.Outcome.HOLDS, tight.Scope.proved(), cost={"seconds": 1.5})
UNDECIDED = tight.Verdict("it may", tight.Outcome.UNDECIDED, tight.Scope.tested(0), reason="nothing & nobody came")
FAILS = tight.Verdict(
    "it fails",
    tight.Outcome.FAILS,
    tight.Scope.tested(3, seed=1),
    tight.Counterexample("LOST", "a row is gone", tight.Schedule.of([N("<script>alert(1)</script>")]), expected=()),
)


class Words(HTMLParser):
    """The text of a page and the tags in it."""

    def __init__(self):
        super().__init__()
        self.text, self.tags = "", []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text += data


def test_the_text_has_every_story_and_a_count(tmp_path):
    written = tight.write_report([HOLDS, UNDECIDED, FAILS], tmp_path / "report.txt", title="Jobs").read_text()

    assert written == (
        f"Jobs\n\n{HOLDS.story()}\n\n{UNDECIDED.story()}\n\n{FAILS.story()}\n\n1 FAILS, 1 UNDECIDED, 1 HOLDS\n"
    )


def test_the_json_has_what_each_verdict_has(tmp_path):
    written = json.loads(tight.write_report([HOLDS, FAILS], tmp_path / "report.json", title="Jobs").read_text())

    assert written["title"] == "Jobs"
    assert written["verdicts"] == [HOLDS.as_data(), FAILS.as_data()]


def test_the_page_shows_every_verdict_and_lets_no_value_become_html(tmp_path):
    page = Words()
    page.feed(tight.write_report([HOLDS, UNDECIDED, FAILS], tmp_path / "report.html", title="<Jobs>").read_text())

    assert page.tags.count("script") == 1  # the page's own
    for words in ("<Jobs>", "it <holds>", "nothing & nobody came", "<script>alert(1)</script>", "seconds 1.5"):
        assert words in page.text


def test_the_page_says_how_it_was_proved_and_what_was_assumed(tmp_path):
    proved = replace(HOLDS, method="rows compared", assumptions=("x < y", "nothing overflows"))

    page = tight.write_report([proved], tmp_path / "page.html").read_text()

    assert "rows compared" in page
    assert "It takes for granted that x &lt; y." in page
    assert "It takes for granted that nothing overflows." in page


def test_a_report_of_nothing_says_so(tmp_path):
    assert "no verdict" in tight.write_report([], tmp_path / "report.txt").read_text()


def test_the_folder_is_made(tmp_path):
    assert tight.write_report([HOLDS], tmp_path / "new" / "report.txt").exists()


@pytest.mark.parametrize("name", ["report.pdf", "report"])
def test_an_unknown_ending_is_refused(tmp_path, name):
    with pytest.raises(ReportError) as caught:
        tight.write_report([HOLDS], tmp_path / name)

    assert caught.value.needed == "a file name that ends in .txt, .json, .xml, .html"
    assert caught.value.hint.endswith("report.html")


def test_a_file_that_cannot_be_written_is_our_error(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(ReportError, match="a file that can be written"):
        tight.write_report([HOLDS], tmp_path / "file" / "report.txt")
