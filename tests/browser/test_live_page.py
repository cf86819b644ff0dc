"""The live page in a real browser: Debian's Chromium, driven by Playwright. Skipped where these are not there."""

from __future__ import annotations

import os
import re
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gallery
import pytest

from streamtight.report import live_server
from streamtight.report.live_server import LivePage
from streamtight.source.journal import Journal

pytestmark = pytest.mark.browser

CHROMIUM = shutil.which("chromium")
ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
NASTY = "<img src=x onerror=\"document.title='hacked'\"><script>document.title='hacked'</script>\u202e"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("there is no chromium: `make chromium` installs it")
    api = pytest.importorskip("playwright.sync_api", reason="there is no playwright: `make chromium` installs it")
    with api.sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("profile"), executable_path=CHROMIUM, args=ARGUMENTS, headless=True,
            viewport={"width": 1200, "height": 900},
        )  # fmt: skip
        yield context
        context.close()


class Served:
    """A board, the server of its page, and jobs that write."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server: LivePage | None = None
        self.port = 0

    def start(self, **options: Any) -> str:
        self.server = LivePage(self.folder, port=self.port, **options)
        self.port = self.server.port
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self.server.address

    def stop(self) -> None:
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()
            self.server = None

    def job(self, name: str = "taxis", **about: Any) -> Journal:
        return Journal(self.folder, name, **{"kind": "compare_live", "asks": "the same?", **about})


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setattr(live_server, "SECONDS_BETWEEN_LOOKS", 0.0)
    found = Served(tmp_path / "board")
    yield found
    found.stop()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """What went wrong in the page is in `page.problems`."""
    page = browser.new_page()
    page.problems = []
    page.on("console", lambda message: page.problems.append(message.text))
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.emulate_media(color_scheme="light")
    page.set_default_timeout(15_000)
    yield page
    page.close()


def note(journal: Journal, batch: int, **more: Any) -> None:
    journal.note(
        batch=batch, rows={"left": 10 * batch, "right": 9 * batch}, rate=100.0 + batch,
        unmatched={"left": batch % 7, "right": 0}, oldest=batch / 10, seconds=0.5, verdict="UNDECIDED",
        reason="something waits", **more,
    )  # fmt: skip


def line(page: Any, chart: str = "rows a second") -> str:
    return page.locator(".chart", has_text=chart).first.locator("path.line").first.get_attribute("d")


def wait_for_text(page: Any, selector: str, text: str) -> None:
    page.locator(selector, has_text=text).first.wait_for()


def test_charts_move_when_a_job_tells_more(page, served):
    journal = served.job()
    for batch in range(5):
        note(journal, batch, at=time.time() - 10 + batch)
    page.goto(served.start())
    wait_for_text(page, ".facts", "left 40")
    before = line(page)
    page.wait_for_timeout(1500)
    assert line(page) != before  # time goes on, and the line with it

    note(journal, 40)

    wait_for_text(page, ".facts", "left 400 · right 360 rows · batch 40")
    assert line(page).count("L") == before.count("L") + 1
    assert page.locator(".chart .title").all_inner_texts() == [
        "rows a second", "unmatched rows", "lag in seconds", "seconds a batch",
    ]  # fmt: skip
    assert page.locator(".chart", has_text="rows a second").locator(".key").inner_text() == "140"
    assert page.locator(".job .state").inner_text() == "running"
    assert page.problems == []


def test_a_chart_draws_the_values_at_their_places(page, served):
    journal = served.job()
    now = time.time()
    for place, rate in enumerate([0, 50, 100, 25]):
        journal.note(at=now - 3 + place, batch=place, rate=rate)
    journal.end()
    page.goto(served.start())
    page.locator(".chart path.line").wait_for()

    points = [tuple(map(float, one.split("h")[0].split())) for one in line(page).replace("M", "L").split("L")[1:]]

    # 300 by 80, with 4 free above and below; zero is at the bottom, and the last point at the right.
    assert points == [
        (pytest.approx(300 * place / 3, abs=0.2), pytest.approx(76 - 72 * rate / 100, abs=0.1))
        for place, rate in enumerate([0, 50, 100, 25])
    ]
    label = page.locator(".chart svg").get_attribute("aria-label")
    assert label == "rows a second: rows 25; between 0 and 100 in 3 s"


def test_values_of_queries_have_charts_of_their_own(page, served):
    journal = served.job(kind="watch")
    for batch in range(3):
        values = {"today": {"min": 1.0, "avg": 2.5, "max": 1e6 + batch}, "fast": {"true": 0.75}}
        journal.note(
            at=time.time() - 3 + batch, batch=batch, values=values, counts={"today": {"answers": 7, "late": 2}}
        )
    page.goto(served.start())
    page.locator(".chart").first.wait_for()

    assert page.locator(".chart .title").all_inner_texts() == ["today", "fast"]
    assert page.locator(".chart").first.locator(".key").all_inner_texts() == [
        "mean 2.5", "lowest 1", "highest 1,000,002",
    ]  # fmt: skip
    assert page.locator(".chart").nth(1).locator(".key").all_inner_texts() == ["0.75"]
    assert "today: 7 answers, 2 late" in page.locator(".facts").inner_text()


def test_a_finding_comes_with_its_story_and_its_picture(page, served):
    journal = served.job()
    note(journal, 1)
    page.goto(served.start())
    wait_for_text(page, ".outcome", "UNDECIDED")
    assert page.locator("#news").inner_text() == ""
    found = gallery.left_over_live().counterexample

    journal.alarm("DIVERGED", "row 7 came")
    journal.found("DIVERGED", found.explanation, story=found.story(), picture=found.picture)
    journal.note(batch=2, verdict="FAILS")

    wait_for_text(page, ".outcome", "FAILS")
    assert found.explanation in page.locator(".found").inner_text()
    picture = page.locator(".found img")
    picture.wait_for()
    page.wait_for_function("document.querySelector('.found img').naturalWidth > 100")
    page.locator(".found summary").click()
    assert page.locator(".found pre").inner_text().strip() == found.story().strip()
    page.locator(".alarms summary").click()
    assert "DIVERGED row 7 came" in page.locator(".alarms li").inner_text()
    assert "taxis: DIVERGED" in page.locator("#news").inner_text()
    assert page.title() == "1 FAILS · streamtight live"
    assert page.locator("#icon").get_attribute("href") == "/icon/FAILS.svg"
    note(journal, 3)
    wait_for_text(page, ".facts", "batch 3")
    assert page.locator(".found details").get_attribute("open") is not None  # what a reader opened stays open
    assert page.problems == []


def test_a_reload_shows_the_same(page, served):
    journal = served.job()
    for batch in range(30):
        note(journal, batch, at=time.time() - 60 + 2 * batch)
    page.goto(served.start())
    wait_for_text(page, ".facts", "batch 29")
    page.locator(".chart path.line").first.wait_for()
    before = line(page).count("L")

    page.reload()

    wait_for_text(page, ".facts", "batch 29")
    page.locator(".chart path.line").first.wait_for()
    assert line(page).count("L") == before == 29


def test_a_server_that_goes_is_missed_and_one_that_comes_back_is_taken(page, served):
    journal = served.job()
    for batch in range(5):
        note(journal, batch, at=time.time() - 5 + batch)
    page.goto(served.start())
    wait_for_text(page, ".facts", "batch 4")

    served.stop()
    wait_for_text(page, "#gone", "The server does not answer")
    assert page.title() == "no answer · streamtight live"
    assert page.locator(".job").count() == 1  # what was known stays
    note(journal, 5)
    served.start()

    wait_for_text(page, ".facts", "batch 5")
    page.locator("#gone").wait_for(state="hidden")
    assert page.locator(".job").count() == 1
    assert line(page).count("L") == 5
    assert page.title() == "1 UNDECIDED · streamtight live"


def test_a_job_that_stops_fails_and_starts_again_is_seen_to(page, served):
    journal = served.job()
    note(journal, 1)
    page.goto(served.start())
    wait_for_text(page, ".state", "running")

    journal.end()
    wait_for_text(page, ".state", "stopped at")
    again = served.job()
    note(again, 2)
    wait_for_text(page, ".state", "running")
    assert "started 2 times" in page.locator(".facts").inner_text()
    again.end("OutOfMemoryError")
    wait_for_text(page, ".state", "OutOfMemoryError")
    assert page.locator("#icon").get_attribute("href") == "/icon/FAILS.svg"
    assert page.locator(".job").count() == 1


def test_a_job_that_was_killed_is_silent(page, served):
    journal = served.job()
    note(journal, 1)
    path, then = journal.folder / "00000001.jsonl", time.time() - 100
    path.write_text(re.sub(r'"started":[\d.]+', f'"started":{then}', path.read_text()))
    os.utime(path, (then, then))
    page.goto(served.start())

    wait_for_text(page, ".state", "silent for 2 min")
    assert page.title() == "1 UNDECIDED · streamtight live"
    os.utime(path)
    wait_for_text(page, ".state", "running")


def test_hostile_texts_are_text_and_nothing_of_them_runs(page, served):
    journal = served.job(NASTY, asks=NASTY)
    journal.note(
        batch=1, rows={NASTY: 1}, unmatched={NASTY: 1}, values={NASTY: {NASTY: 1.0}, "__proto__": {"min": 1.0}},
        counts={NASTY: {NASTY: 1}}, verdict="UNDECIDED", reason=NASTY,
    )  # fmt: skip
    journal.alarm(NASTY, NASTY)
    evil = gallery.left_over_live().counterexample.picture.replace(
        "<g ", "<script>document.title='hacked'</script><g ", 1
    )
    journal.found(NASTY, NASTY, story=NASTY, picture=evil)
    (served.folder / NASTY.replace("/", "-")[:100]).write_text("")
    page.goto(served.start())
    page.locator(".job h2 .name").wait_for()
    page.locator(".chart").first.wait_for()
    page.wait_for_timeout(300)  # an onerror would need a moment

    shown = NASTY.replace("\u202e", "\\u{202e}")
    assert page.locator(".job .asks").inner_text() == f"compare_live: {shown}"
    assert page.locator(".found pre").text_content() == shown
    assert "hacked" not in page.title()
    assert page.locator("body script, body .job img:not([src^='/picture/'])").count() == 0
    assert page.problems == []


def test_a_script_that_gets_into_the_page_is_not_run(page, served):
    page.goto(served.start())
    page.evaluate("""() => {
        const added = document.createElement("script");
        added.textContent = "document.title = 'hacked'";
        document.body.append(added);
        const image = document.createElement("div");
        image.innerHTML = '<img src="/nothing" onerror="document.title = \\'hacked\\'">';
        document.body.append(image);
    }""")
    page.wait_for_timeout(500)

    assert "hacked" not in page.title()


def test_the_token_leaves_the_address_and_the_page_works(page, served):
    note(served.job(), 1)
    address = served.start(token="0123456789abcdef-of-tests")  # noqa: S106 - of this test

    page.goto(address)

    wait_for_text(page, ".facts", "batch 1")
    assert page.url == f"http://127.0.0.1:{served.port}/"
    assert page.evaluate("document.cookie") == ""


def test_an_empty_board_says_how_to_begin(page, served):
    page.goto(served.start())

    wait_for_text(page, "#empty", f'started with board="{served.folder}"')
    note(served.job(), 1)
    wait_for_text(page, ".facts", "batch 1")
    assert not page.locator("#empty").is_visible()


@pytest.mark.slow
def test_of_many_jobs_the_worst_come_first_and_few_are_drawn(page, served):
    for number in range(200):
        journal = served.job(f"job {number:03}")
        for batch in range(20):
            journal.note(
                at=time.time() - 20 + batch, batch=batch, rate=batch, verdict="FAILS" if number == 150 else "HOLDS"
            )
    page.goto(served.start())
    wait_for_text(page, "#counted", "200 jobs")

    assert page.locator(".job .name").first.inner_text() == "job 150"
    assert page.locator(".job .name").nth(1).inner_text() == "job 000"
    assert page.locator("path.line").count() < 60
    page.locator("#search").fill("job 19")
    assert page.locator(".job:visible").count() == 12  # 019, 119, and 190 to 199
    assert page.locator("#shown").inner_text() == "12 of 200 shown"
    page.locator("#search").fill("")
    page.locator("#which").select_option("failing")
    assert page.locator(".job:visible .name").all_inner_texts() == ["job 150"]
    page.locator("#which").select_option("all")
    busy = page.evaluate("""async () => {
        const begin = performance.now();
        refresh();
        return performance.now() - begin;
    }""")
    assert busy < 500  # of each second; about 10 on a machine that does nothing else


@pytest.mark.parametrize(("scheme", "width"), [("light", 360), ("dark", 1200)])
def test_the_page_fits_whatever_its_width_and_letters_can_be_read(page, served, scheme, width):
    journal = served.job("a_very_long_name_without_any_space_" * 5, asks="x" * 300)
    for batch in range(5):
        note(journal, batch, at=time.time() - 5 + batch)
    journal.alarm("STUCK", "y" * 300)
    journal.found("STUCK", "z" * 300, story="s" * 300)
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    page.goto(served.start())
    page.locator(".chart").first.wait_for()

    assert page.evaluate("document.documentElement.scrollWidth") <= width
    paper = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(13, 17, 23)"}[scheme]
    for selector in (".facts", ".asks", ".chart .key", ".chart .scale"):
        ink = page.locator(selector).first.evaluate("(one) => getComputedStyle(one).color")
        assert contrast(ink, paper) > 4.5, selector


def contrast(one: str, other: str) -> float:
    """Of two colours, as WCAG 2 defines it."""

    def light(colour: str) -> float:
        parts = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
        red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    dark, bright = sorted((light(one), light(other)))
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.slow
def test_the_theme_and_the_window_are_remembered(page, served):
    journal = served.job()
    note(journal, 1, at=time.time() - 4000)
    note(journal, 2, at=time.time() - 10)
    note(journal, 3, at=time.time() - 5)
    address = served.start()
    page.goto(address)
    page.locator(".chart").first.wait_for()
    assert page.locator(".chart .times").first.inner_text().startswith("67 min ago")

    page.locator("#theme").click()
    page.locator("#window").select_option("300")
    page.reload()
    page.locator(".chart").first.wait_for()

    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.locator(".chart .times").first.inner_text().startswith("5 min ago")
    page.evaluate("localStorage.clear()")


@pytest.mark.slow
def test_a_page_that_is_hidden_asks_nothing(page, served):
    note(served.job(), 1)
    page.goto(served.start())
    wait_for_text(page, ".facts", "batch 1")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    page.evaluate("""() => {
        Object.defineProperty(document, "hidden", {get: () => window.isHidden, configurable: true});
        window.isHidden = true;
    }""")
    page.wait_for_timeout(1500)
    asked.clear()
    page.wait_for_timeout(2500)
    assert asked == []

    page.evaluate("window.isHidden = false; document.dispatchEvent(new Event('visibilitychange'))")
    page.wait_for_timeout(500)
    assert asked
