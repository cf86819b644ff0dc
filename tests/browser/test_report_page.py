"""The page in a real browser: Debian's Chromium, driven by Playwright. Skipped where these are not there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gallery
import pytest

import streamtight as tight

pytestmark = pytest.mark.browser

CHROMIUM = shutil.which("chromium")
ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("there is no chromium: `make chromium` installs it")
    api = pytest.importorskip("playwright.sync_api", reason="there is no playwright: `make chromium` installs it")
    profile = tmp_path_factory.mktemp("profile")
    with api.sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=CHROMIUM, args=ARGUMENTS, headless=True, viewport={"width": 1200, "height": 900}
        )
        yield context
        context.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    verdicts = [*gallery.passes(), *gallery.failures()]
    return tight.write_report(verdicts, tmp_path_factory.mktemp("report") / "page.html", title="Jobs of the week")


@pytest.fixture
def page(browser: Any, report: Path) -> Iterator[Any]:
    """The page, opened from its file; what went wrong meanwhile is in `page.problems`."""
    page = browser.new_page()
    page.problems = []
    page.on("console", lambda message: page.problems.append(message.text))
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("requestfailed", lambda request: page.problems.append(request.url))
    page.requests = []
    page.on("request", lambda request: page.requests.append(request.url))
    page.emulate_media(color_scheme="light")
    page.goto(report.as_uri())
    yield page
    page.close()


def visible(page: Any, selector: str) -> int:
    return page.locator(f"{selector}:visible").count()


def colour(page: Any, selector: str, name: str = "color") -> str:
    return page.locator(selector).first.evaluate(f"(one) => getComputedStyle(one).{name}")


DARK, LIGHT = "rgb(13, 17, 23)", "rgb(255, 255, 255)"


def test_the_page_opens_from_its_file_without_errors_and_loads_nothing_else(page, report):
    assert page.title() == "Jobs of the week"
    assert page.problems == []
    assert page.requests == [report.as_uri()]
    assert visible(page, "section.verdict") == visible(page, ".summary li") == 13


def test_rows_with_scripts_are_text_and_nothing_of_them_runs(page):
    page.wait_for_timeout(100)  # an onerror would need a moment

    assert page.title() == "Jobs of the week"
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 1
    cell = page.locator("td.differ", has_text="<script>document.title")
    assert cell.inner_text() == gallery.NASTY


def test_a_script_that_gets_into_the_page_is_not_run(page):
    page.evaluate("""() => {
        const added = document.createElement("script");
        added.textContent = "document.title = 'hacked'";
        document.body.append(added);
    }""")

    assert page.title() == "Jobs of the week"


@pytest.mark.parametrize(("outcome", "count"), [("FAILS", 9), ("UNDECIDED", 1), ("HOLDS", 3)])
def test_a_filter_takes_an_outcome_away_and_brings_it_back(page, outcome, count):
    button = page.locator(f"button[data-filter={outcome}]")

    button.click()

    assert visible(page, f"section.{outcome}") == visible(page, f".summary li.{outcome}") == 0
    assert visible(page, "section.verdict") == 13 - count
    assert page.locator("#shown").inner_text() == f"{13 - count} of 13 shown"
    button.click()
    assert visible(page, "section.verdict") == 13


def test_search_finds_what_is_in_a_section_whatever_the_case(page):
    page.locator("#search").fill("order_lost CLICK")
    page.wait_for_timeout(50)

    assert visible(page, "section.verdict") == 1
    assert "ORDER_LOST" in page.locator("section.verdict:visible").inner_text()
    page.locator("#search").fill("nothing has this")
    page.wait_for_timeout(50)
    assert visible(page, "section.verdict") == 0


def test_a_line_of_the_summary_leads_to_its_section(page):
    page.locator(".summary a", has_text="drift").click()

    top = page.locator("section:target").evaluate("(one) => one.getBoundingClientRect().top")
    assert "drift" in page.locator("section:target h2").inner_text()
    assert 0 <= top < 200  # under the controls, not behind them


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_are_as_the_reader_likes_and_the_button_turns_them(page, scheme):
    page.emulate_media(color_scheme=scheme)
    papers = [LIGHT, DARK] if scheme == "light" else [DARK, LIGHT]

    assert colour(page, "html", "backgroundColor") == colour(page, ".tight-paper", "fill") == papers[0]
    page.locator("#theme").click()
    assert colour(page, "html", "backgroundColor") == colour(page, ".tight-paper", "fill") == papers[1]
    page.locator("#theme").click()
    assert colour(page, "html", "backgroundColor") == papers[0]


@pytest.mark.parametrize("width", [360, 800, 1200])
def test_pictures_and_tables_stand_in_their_sections_and_the_page_does_not_scroll_sideways(page, width):
    page.set_viewport_size({"width": width, "height": 800})
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")

    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("section.verdict figure svg[role=img]").count() >= 7
    for box in page.locator("section.verdict figure, section.verdict .box").all():
        inside, around = box.bounding_box(), box.locator("xpath=ancestor::section").bounding_box()
        assert around["x"] <= inside["x"]
        assert inside["x"] + inside["width"] <= around["x"] + around["width"] + 0.5
        assert inside["height"] > 20


def test_each_failure_has_its_picture_before_its_rows(page):
    for section in page.locator("section.FAILS", has=page.locator("figure")).all():
        picture, code = section.locator("figure").first.bounding_box(), section.locator("pre").last.bounding_box()
        assert picture["y"] < code["y"]


def test_code_is_copied(page, browser):
    browser.grant_permissions(["clipboard-read", "clipboard-write"])
    block = page.locator(".code").first

    block.locator("button").click()

    block.get_by_text("copied", exact=True).wait_for()  # the clipboard takes its time
    assert page.evaluate("navigator.clipboard.readText()") == block.locator("pre").inner_text()


def test_in_print_all_is_shown_dark_on_light_and_nothing_is_a_control(page, tmp_path):
    page.emulate_media(color_scheme="dark")
    page.locator("button[data-filter=FAILS]").click()
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")

    assert visible(page, "section.verdict") == 13
    assert visible(page, "button") == visible(page, "input") == 0
    assert page.locator("details:not([open])").count() == 0
    assert colour(page, "html", "backgroundColor") == colour(page, ".tight-paper", "fill") == LIGHT
    page.pdf(path=tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").stat().st_size > 10_000
