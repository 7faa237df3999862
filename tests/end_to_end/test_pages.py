"""Reading and using the pages, in a real browser, from a real server behind a prefix."""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page
from tests.end_to_end.looks import strokes
from tests.end_to_end.stores import Recorded, record
from tests.end_to_end.visits import PREFIX, Contexts, Visit, served
from tests.models.preflight.stored_checks import store_checks

from crosswind.data.schema.run import RunState
from crosswind.data.store.store import Store

FIGURES_OF_A_RUN = 6
Open = Callable[..., Visit]


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real server over five runs of one cohort, the fourth disturbed, and one run of another, behind a prefix."""
    home: Path = tmp_path_factory.mktemp("pages")
    with Store.open(home) as store:
        for number in range(5):
            record(store, Recorded(f"r{number}", number, 30 if number == 3 else 0))
        record(store, Recorded("live", 9, state=RunState.RUNNING, workload="bert"))
        store_checks(store, checks=4, nodes=8, slow={3: "n5"}, links=True)
    with served(home) as top:
        yield top.removesuffix(PREFIX)


@pytest.fixture
def visit(contexts: Contexts, origin: str) -> Iterator[Open]:
    """Opens a page and notes errors and requests that leave the server."""
    visits: list[Visit] = []

    def opened(address: str, *, width: int = 1440, **options: object) -> Visit:
        visit = contexts.visit(f"{origin}{PREFIX}", width=width, **options)
        visits.append(visit)
        visit.go(address)
        return visit

    yield opened
    for visit in visits:
        visit.close()


def test_a_refusal_is_a_page_of_which_the_console_says_its_status_alone(visit: Open) -> None:
    opened = visit("/runs/nope", width=390)
    assert opened.page.title().endswith("\u00b7 Crosswind")
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert opened.problems == ["Failed to load resource: the server responded with a status of 404 (Not Found)"]


def test_a_statement_is_typed_and_run_by_the_keyboard_and_its_address_carries_it(visit: Open) -> None:
    opened = visit("/sql")
    page = opened.page
    page.get_by_label("One SELECT").fill("select count(*) as runs from runs\nwhere run_id = 'r3' -- &?#")
    page.get_by_label("Rows at most").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#rows")
    assert page.locator("#rows tbody td").all_inner_texts() == ["1"]
    assert page.get_by_label("One SELECT").input_value().splitlines()[-1] == "where run_id = 'r3' -- &?#"
    page.reload()
    assert page.locator("#rows tbody td").all_inner_texts() == ["1"]
    page.get_by_text("Best trial of each study").click()
    page.wait_for_url("**/sql?query=*arg_min*")
    assert page.locator("h1").inner_text().startswith("0 rows in")
    assert opened.problems == []


def test_figures_follow_the_theme_and_the_choice_is_kept(visit: Open) -> None:
    opened = visit("/runs/r3", color_scheme="light", locale="en-GB")  # of its own, as the choice is kept
    page = opened.page
    opened.is_drawn()
    assert (ground(page), line(page)) == ("rgb(251, 251, 249)", "rgb(0, 114, 178)")
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("() => getComputedStyle(document.body).backgroundColor === 'rgb(20, 23, 26)'")
    assert wait_for_line(page, "rgb(86, 180, 233)")
    page.click("#theme")
    assert (page.inner_text("#theme"), ground(page)) == ("Theme: light", "rgb(251, 251, 249)")
    assert wait_for_line(page, "rgb(0, 114, 178)")
    page.reload()
    opened.is_drawn()
    assert (page.inner_text("#theme"), ground(page)) == ("Theme: light", "rgb(251, 251, 249)")
    assert opened.problems == []


def ground(page: Page) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def line(page: Page) -> str:
    return str(page.evaluate("[...document.querySelectorAll('#figure-steps .js-line')].at(-1).style.stroke"))


def wait_for_line(page: Page, colour: str) -> bool:
    until = time.monotonic() + 10
    while line(page) != colour and time.monotonic() < until:
        page.wait_for_timeout(50)
    return line(page) == colour


def test_keys_reach_the_search_and_walk_through_the_runs(visit: Open) -> None:
    opened = visit("/runs")
    page = opened.page
    page.keyboard.press("/")
    page.keyboard.type("bert")
    assert page.input_value("#search") == "bert"
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/r4")
    assert page.locator("h1").count() == 1
    assert opened.problems == []


def test_a_filter_applies_itself_and_leaves_a_short_address(visit: Open, origin: str) -> None:
    opened = visit("/runs")
    opened.page.select_option("select[name=verdict]", "slow")
    opened.page.wait_for_url(f"{origin}{PREFIX}/runs?verdict=slow")
    assert opened.page.locator("a.row-link").count() == 1


def test_two_runs_are_ticked_and_compared_by_the_keyboard_without_scripts(visit: Open) -> None:
    page = visit("/runs", java_script_enabled=False).page
    for run in ("r3", "r1"):
        page.get_by_label(f"Compare run {run}").focus()
        page.keyboard.press("Space")
    page.get_by_role("button", name="Compare").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/compare?run=r3&run=r1")
    assert page.locator("h1").inner_text().startswith("A took ")


def test_columns_are_chosen_once_for_all_further_addresses(visit: Open, origin: str) -> None:
    page = visit("/runs").page
    page.locator(".choice summary").click()
    page.get_by_label("CoV").check()
    page.get_by_role("button", name="Show these").click()
    page.wait_for_url("**/runs?*columns=cov*")
    page.get_by_role("link", name="CoV").click()
    page.wait_for_url("**sort=-cov*")
    assert page.locator("th.num[aria-sort=descending]").inner_text().startswith("CoV")


def test_a_click_on_a_run_in_a_figure_opens_it(visit: Open) -> None:
    opened = visit("/variability?system=lab")
    opened.is_drawn()
    boxes = [point.bounding_box() for point in opened.page.locator("#figure-cohort .scatterlayer .point").all()]
    slowest = min((box for box in boxes if box is not None), key=lambda box: box["y"])
    opened.page.mouse.move(slowest["x"] + slowest["width"] / 2, slowest["y"] + slowest["height"] / 2)
    opened.page.wait_for_selector("#figure-cohort .hoverlayer .hovertext")
    opened.page.mouse.down()
    opened.page.mouse.up()
    opened.page.wait_for_url("**/runs/r3?system=lab")


def test_a_box_in_the_figure_selects_runs_by_an_address(visit: Open) -> None:
    opened = visit("/variability")
    opened.is_drawn()
    opened.page.get_by_role("button", name="Draw a box").click()
    area = opened.page.locator("#figure-cohort .nsewdrag").first.bounding_box()
    assert area is not None
    opened.page.mouse.move(area["x"] + 4, area["y"] + 1)
    opened.page.mouse.down()
    opened.page.mouse.move(area["x"] + area["width"] - 4, area["y"] + area["height"] / 2, steps=5)
    opened.page.mouse.up()
    opened.page.wait_for_url("**/selection?*")
    assert "1 run, compared with the other 4" in opened.page.locator("p.detail").first.inner_text()
    assert "slower=1." in opened.page.url
    opened.is_drawn()
    assert opened.problems == []


def test_what_is_to_be_excluded_can_be_copied(visit: Open) -> None:
    opened = visit("/checks", permissions=["clipboard-read", "clipboard-write"])
    opened.page.get_by_role("button", name="Copy").click()
    opened.page.get_by_role("button", name="Copied").wait_for()
    assert opened.page.evaluate("navigator.clipboard.readText()") == "--exclude=n5"
    assert opened.problems == []


def test_a_page_walks_through_its_rows_by_keys(visit: Open) -> None:
    page = visit("/checks").page
    for key in ("j", "j", "Enter"):
        page.keyboard.press(key)
    page.wait_for_url("**/checks?system=lab&check=C2")
    assert page.inner_text("h1") == "8 nodes measured as usual."


def test_times_are_the_readers_with_utc_on_hover(visit: Open) -> None:
    time_shown = visit("/runs/r0", timezone_id="Asia/Tokyo").page.locator("dl.strip time")
    assert time_shown.inner_text() == "2025-10-09 17:53:20"
    assert time_shown.get_attribute("title") == "2025-10-09 08:53:20 UTC"


def test_a_printed_page_has_all_its_figures_also_those_that_nobody_scrolled_to(visit: Open) -> None:
    opened = visit("/runs/r3", color_scheme="dark")
    page = opened.page
    page.set_viewport_size({"width": 1280, "height": 200})
    page.reload()
    page.wait_for_selector(".plot:not(.drawn)", state="attached")
    with_figures = strokes(page.pdf())
    assert page.locator(".plot.drawn .cartesianlayer").count() == FIGURES_OF_A_RUN
    page.evaluate("document.querySelectorAll('.plot').forEach((plot) => plot.remove())")
    assert with_figures > 300 + strokes(page.pdf())
    assert opened.problems == []


def test_a_figure_is_saved_in_the_colours_of_the_page(visit: Open) -> None:
    opened = visit("/runs/r3", color_scheme="dark")
    page = opened.page
    opened.is_drawn()
    with page.expect_download() as download:
        page.get_by_role("button", name=re.compile("SVG of: ")).first.press("Enter")
    saved = download.value.path().read_text()
    assert download.value.suggested_filename.endswith(".svg")
    assert "rgb(20, 23, 26)" in saved
    assert page.locator("figure h2").first.inner_text().split()[0] in saved
    with page.expect_download() as download:
        page.get_by_role("button", name=re.compile("PNG of: ")).first.press("Enter")
    assert download.value.path().read_bytes().startswith(b"\x89PNG")
    assert opened.problems == []


def test_a_figure_is_zoomed_and_moved_by_keys(visit: Open) -> None:
    opened = visit("/runs/r3")
    page = opened.page
    opened.is_drawn()
    page.locator("#figure-steps .plot").focus()
    ends = "document.querySelector('#figure-steps .plot')._fullLayout.xaxis.range"
    begin, end = page.evaluate(ends)
    width = end - begin
    for key, expected in (("+", (0.2, 0.8)), ("ArrowRight", (0.32, 0.92)), ("-", (0.12, 1.12)), ("0", (0, 1))):
        page.keyboard.press(key)
        low, high = (begin + share * width for share in expected)
        page.wait_for_function(f"() => Math.hypot({ends}[0] - {low}, {ends}[1] - {high}) < 1e-6 * {width}")
    assert opened.problems == []


def test_a_zoom_asks_for_its_steps_and_is_a_link(visit: Open) -> None:
    run = visit("/runs/r3", width=1280)
    run.is_drawn()
    page = run.page
    area = page.locator("#figure-steps .nsewdrag").first.bounding_box()
    assert area is not None
    middle = area["y"] + area["height"] / 2
    page.mouse.move(area["x"] + area["width"] * 0.3, middle)
    page.mouse.down()
    page.mouse.move(area["x"] + area["width"] * 0.4, middle)
    page.mouse.move(area["x"] + area["width"] * 0.7, middle)
    page.mouse.up()
    page.wait_for_url("**/runs/r3?from_step=*&to_step=*")
    page.wait_for_function("() => !document.querySelector('#figure-steps summary').textContent.includes('(17 rows)')")
    assert page.locator("#shown").is_visible()
    again = visit(page.url.partition(PREFIX)[2], width=1280)
    again.is_drawn()
    assert (
        again.page.locator("#figure-steps summary").inner_text() == page.locator("#figure-steps summary").inner_text()
    )
    again.page.locator("#shown a").click()
    again.page.wait_for_function("() => !location.search && document.getElementById('shown').hidden")
    assert not run.problems + again.problems
