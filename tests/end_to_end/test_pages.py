"""The pages in a real browser, from a real server."""

import re
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, BrowserContext, Page
from tests.models.preflight.stored_checks import store_checks

from crosswind.api.app import create_app
from crosswind.api.background_answers import BackgroundAnswers
from crosswind.api.example import Example
from crosswind.api.server import listen, server_of
from crosswind.api.settings import ServerSettings
from crosswind.data.lake.lake import to_table
from crosswind.data.schema.run import Rank, Run, RunState, cohort_digest
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store

MS = 1_000_000
START_NS = 1_760_000_000_000_000_000  # 2025-10-09 08:53:20 UTC
PREFIX = "/node/gpu07/8000"
TOKEN = "0123456789abcdef"  # behind a prefix everybody needs one
CONFIGURATION = {"batch_size": 8, "bucket_cap_mb": 25, "precision": "bf16"}
COHORT = cohort_digest(Run("any", "nanogpt-124m", "lab", RunState.COMPLETED, 2, CONFIGURATION))
FIGURES = {
    "/": 0,
    "/?part=all": 0,
    "/runs": 1,
    "/runs/r3": 6,
    "/runs/r4": 5,
    "/runs/live": 4,
    "/variability": 3,
    "/runs/nope": 0,
}
FIGURES |= {"/compare": 0, "/compare?a=r3": 2, "/compare?a=r3&b=r1": 2}
FIGURES |= {"/stragglers": 1, "/regressions": 0, "/checks": 1, "/studies": 5}  # of studies the example
FIGURES |= dict.fromkeys(("/counters?example=no", "/interference?example=no", "/models?example=no"), 0)
FIGURES |= {f"/selection?cohort={COHORT}&slower=1.2": 1}
FIGURES |= {"/sql?query=select+*+from+step&limit=30": 0, "/sql?query=select+nothing+from+runs": 0}
ADDRESSES = tuple(FIGURES)
Open = Callable[..., "Visit"]


@dataclass
class Visit:
    """A page with what went wrong on it."""

    page: Page
    problems: list[str] = field(default_factory=list)

    def is_drawn(self) -> None:
        self.page.wait_for_function(
            "() => document.querySelectorAll('[data-figure]').length"
            " === document.querySelectorAll('.drawn.js-plotly-plot .main-svg .cartesianlayer').length"
        )


def record(store: Store, run_id: str, *, number: int, slower_ms: int = 0, state: RunState = RunState.COMPLETED) -> None:
    """20 steps of 2 ranks; rank 1 computes longer, waiting for its core meanwhile."""
    start = START_NS + number * 60_000 * MS
    names = [column.name for column in STEP.columns]
    rows = [_row(run_id, start, step, rank, slower_ms) for step in range(20) for rank in range(2)]
    store.lake.append(run_id, to_table(STEP, {name: [row.get(name) for row in rows] for name in names}))
    run = Run(run_id, "nanogpt-124m" if number < 9 else "bert", "lab", state, 2, CONFIGURATION, started_ns=start)
    with store.catalog.write() as session:
        session.runs.merge(run)
        for rank in range(2):
            session.runs.merge_rank(Rank(run_id, rank, f"node{rank}", 100 + rank, start))


def _row(run_id: str, start: int, step: int, rank: int, slower_ms: int) -> dict[str, int | str]:
    jitter = step * 7 % 5
    late = slower_ms if rank else 0
    local = 400 + jitter + late * 10
    total = 400 + jitter + slower_ms * 10 + 50
    tenths = {
        "duration_seconds": total,
        "input_seconds": 20,
        "compute_seconds": local - 20,
        "comm_seconds": total - local,
        "checkpoint_seconds": 0,
        "other_seconds": 0,
        "tail_seconds": 10,
        "run_queue_wait_seconds": 3 + late * 10,
    }
    keys: dict[str, int | str] = {"ts_ns": start + step * 50 * MS, "run_id": run_id, "rank": rank, "step": step}
    return {**keys, **{name: value * MS // 10 for name, value in tenths.items()}}


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real server over five runs of one cohort, the fourth disturbed, and one run of another, behind a prefix."""
    settings = ServerSettings(port=0, root_path=PREFIX, token=TOKEN)
    with Store.open(tmp_path_factory.mktemp("pages")) as store, listen(settings) as listening:
        for number in range(5):
            record(store, f"r{number}", number=number, slower_ms=30 if number == 3 else 0)
        record(store, "live", number=9, state=RunState.RUNNING)
        store_checks(store, checks=4, nodes=8, slow={3: "n5"}, links=True)
        app = create_app(store, settings)
        app.state.page_client.compute = BackgroundAnswers(app.state.client.compute, wait_seconds=60)
        app.state.example = Example(wait_seconds=60)
        server = server_of(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(timeout=30)


@pytest.fixture
def visit(browser: Browser, origin: str) -> Iterator[Open]:
    """Opens a page in a browser of its own and notes errors and requests that leave the server."""
    contexts: list[BrowserContext] = []

    def opened(address: str, *, width: int = 1440, **options: object) -> Visit:
        headers = {"X-Crosswind-Token": TOKEN}
        context = browser.new_context(
            viewport={"width": width, "height": 4000},
            extra_http_headers=headers,
            **options,  # type: ignore[arg-type]
        )
        contexts.append(context)
        visit = Visit(context.new_page())
        visit.page.on("console", lambda said: visit.problems.append(said.text) if said.type == "error" else None)
        visit.page.on("pageerror", lambda error: visit.problems.append(str(error)))
        own = (f"{origin}{PREFIX}/", "data:", "blob:")
        visit.page.on("request", lambda sent: None if sent.url.startswith(own) else visit.problems.append(sent.url))
        visit.page.goto(f"{origin}{PREFIX}{address}")
        return visit

    yield opened
    for context in contexts:
        context.close()


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_page_draws_its_figures_without_error_and_without_leaving_the_server(visit: Open, address: str) -> None:
    opened = visit(address)
    opened.is_drawn()
    assert opened.page.title().endswith("\u00b7 Crosswind")
    assert opened.page.locator(".drawn").count() == FIGURES[address]
    missing = ["Failed to load resource: the server responded with a status of 404 (Not Found)"]
    assert opened.problems == (missing if address == "/runs/nope" else [])


@pytest.mark.parametrize(
    "address",
    [
        address if address in {"/runs", "/runs/r3"} else pytest.param(address, marks=pytest.mark.thorough)
        for address in ADDRESSES
    ],
)
def test_a_narrow_page_needs_no_sideways_scrolling(visit: Open, address: str) -> None:
    opened = visit(address, width=360)
    opened.is_drawn()
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 360
    assert opened.page.evaluate("[...document.querySelectorAll('.main-svg')].every((svg) => svg.clientWidth <= 330)")


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
    opened = visit("/runs/r3", color_scheme="light")
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


def test_on_a_phone_a_run_is_one_line(visit: Open) -> None:
    page = visit("/runs", width=390).page
    assert max(row.bounding_box()["height"] for row in page.locator("#runs tbody tr").all()) < 40  # type: ignore[index]


def test_a_click_on_a_run_in_a_figure_opens_it(visit: Open) -> None:
    opened = visit("/variability")
    opened.is_drawn()
    boxes = [point.bounding_box() for point in opened.page.locator("#figure-cohort .scatterlayer .point").all()]
    slowest = min((box for box in boxes if box is not None), key=lambda box: box["y"])
    opened.page.mouse.move(slowest["x"] + slowest["width"] / 2, slowest["y"] + slowest["height"] / 2)
    opened.page.wait_for_selector("#figure-cohort .hoverlayer .hovertext")
    opened.page.mouse.down()
    opened.page.mouse.up()
    opened.page.wait_for_url("**/runs/r3")


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


def test_without_scripts_the_words_and_tables_are_there(visit: Open) -> None:
    page = visit("/runs/r3", java_script_enabled=False).page
    assert page.locator("h1").inner_text().startswith("Slow:")
    assert page.locator("figure table").count() == FIGURES["/runs/r3"]
    for place in range(FIGURES["/runs/r3"]):
        assert page.locator("figure table").nth(place).is_visible()
    assert not page.locator(".plot").first.is_visible()
    assert not page.locator(".tools").first.is_visible()


def strokes(pdf: bytes) -> int:
    """Return the number of lines and curves that a PDF draws."""
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, flags=re.DOTALL)
    drawn = 0
    for stream in streams:
        with suppress(zlib.error):
            drawn += len(re.findall(rb"\d (?:l|c)\n", zlib.decompress(stream)))
    return drawn


def test_a_printed_page_has_all_its_figures_also_those_that_nobody_scrolled_to(visit: Open) -> None:
    opened = visit("/runs/r3", color_scheme="dark")
    page = opened.page
    page.set_viewport_size({"width": 1280, "height": 200})
    page.reload()
    page.wait_for_selector(".plot:not(.drawn)", state="attached")
    with_figures = strokes(page.pdf())
    assert page.locator(".plot.drawn .cartesianlayer").count() == FIGURES["/runs/r3"]
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
        page.wait_for_timeout(50)
        assert page.evaluate(ends) == pytest.approx([begin + share * width for share in expected])
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
