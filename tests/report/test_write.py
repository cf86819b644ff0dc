"""Reports: the same verdicts as text, JSON and HTML."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

import streamtight as tight
from streamtight.errors import ReportError
from streamtight.report.write import read_report, render

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


# -- what was written is read back ------------------------------------------------------------------------------------

ALL = [HOLDS, UNDECIDED, replace(FAILS, claim="nasty \x00 \u202e \ud800 <b>")]


def test_a_page_made_of_a_json_file_is_the_page_made_at_once(tmp_path):
    written = tight.write_report(ALL, tmp_path / "report.html", title="Jobs").read_text()
    data = read_report(tight.write_report(ALL, tmp_path / "report.json", title="Jobs"))

    assert render(data, "html", "Jobs") == written


def test_one_verdict_or_a_list_of_them_is_read_too(tmp_path):
    (tmp_path / "one.json").write_text(FAILS.to_json())
    (tmp_path / "list.json").write_text(json.dumps([HOLDS.as_data(), FAILS.as_data()]))

    assert read_report(tmp_path / "one.json") == [FAILS.as_data()]
    assert len(read_report(tmp_path / "list.json")) == 2


def test_pictures_of_a_file_keep_only_what_is_looked_at(tmp_path):
    bad = '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(1)</script></svg>'
    data = FAILS.as_data()
    data["counterexample"]["picture"] = data["picture"] = bad
    (tmp_path / "one.json").write_text(json.dumps(data))

    (read,) = read_report(tmp_path / "one.json")

    assert "alert" not in read["counterexample"]["picture"] + read["picture"]


def changed(**more):
    return {**FAILS.as_data(), **more}


def with_found(**more):
    return changed(counterexample={**FAILS.as_data()["counterexample"], **more})


@pytest.mark.parametrize(
    ("text", "came"),
    [
        ("", "JSONDecodeError"),
        ("[" * 100_000, "RecursionError"),
        ("7", "int"),
        ('{"verdicts": 7}', "int"),
        ("[7]", "in verdict 1, there is int"),
        (json.dumps([changed(outcome="MAYBE")]), "in verdict 1, the outcome is 'MAYBE'"),
        (json.dumps([changed(claim=7)]), "in verdict 1, claim is int"),
        (json.dumps([changed(counterexample=None)]), "in verdict 1, there is no counterexample, though it fails"),
        (json.dumps([with_found(expected="x")]), "in verdict 1, expected is str"),
        (json.dumps([with_found(table={"columns": [], "rows": [7]})]), "a row of the table is no list"),
        (json.dumps([with_found(batches=[[7]])]), "the batches are no lists of partitions"),
    ],
)
def test_a_file_that_holds_no_verdicts_is_refused(tmp_path, text, came):
    (tmp_path / "bad.json").write_text(text)

    with pytest.raises(ReportError) as caught:
        read_report(tmp_path / "bad.json")

    assert came in caught.value.came


def test_a_file_that_is_not_there_is_our_error(tmp_path):
    with pytest.raises(ReportError, match="a JSON file that can be read"):
        read_report(tmp_path / "none.json")


@pytest.mark.parametrize("shape", ["rows", "values", "nothing"])
def test_whatever_a_file_holds_in_its_rows_makes_a_page(shape):
    rows = {
        "rows": [7, None, {"fields": 3}, [1], {"kind": 1, "fields": {"": None}}],
        "values": [{"fields": {"a": {"b": []}}}],
    }
    data = with_found(expected=rows.get(shape, []), actual=[], batches=[[rows.get(shape, [])]], restarts=[{}])

    assert "LOST" in render([data], "html")


def test_an_unknown_format_is_refused():
    with pytest.raises(ReportError, match="one of text, json, junit, html"):
        render([], "pdf")


# -- JUnit -------------------------------------------------------------------------------------------------------------


def test_junit_has_a_case_for_each_verdict_and_counts_them(tmp_path):
    data = [one.as_data() for one in ALL]
    data[2]["kept"] = {"id": "0a", "token": "st1-abc"}

    suites = ElementTree.fromstring(render(data, "junit", "Jobs"))  # noqa: S314 - we made it

    (suite,) = suites
    assert (suite.attrib["tests"], suite.attrib["failures"], suite.attrib["errors"]) == ("3", "1", "1")
    holds, undecided, fails = suite
    assert [child.tag for child in holds] == ["properties"]
    assert holds.attrib["time"] == "1.500"
    error = undecided.find("error")
    assert (error.attrib["type"], error.attrib["message"]) == ("UNDECIDED", "nothing & nobody came")
    failure = fails.find("failure")
    assert failure.attrib["type"] == "LOST"
    assert "a row is gone" in failure.text
    assert {one.attrib["name"]: one.attrib["value"] for one in fails.find("properties")} == {
        "streamtight_outcome": "FAILS",
        "streamtight_scope": "tested on 3 generated inputs, seed 1",
        "streamtight_seed": "1",
        "streamtight_replay": "st1-abc",
    }


def test_junit_is_written_to_a_file_that_is_xml(tmp_path):
    path = tight.write_report(ALL, tmp_path / "report.xml")

    assert ElementTree.parse(path).getroot().tag == "testsuites"  # noqa: S314 - we made it
