"""The Overview in a real browser: what is stored while it is open is listed, and the page stays as it is."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from tests.end_to_end.stores import Recorded, record
from tests.end_to_end.visits import PREFIX, TOKEN
from tests.serving import running

from crosswind.api.app import create_app
from crosswind.api.edge.limits import Limits
from crosswind.api.server import listen, server_of
from crosswind.api.settings import ServerSettings
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.store import Store

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path) as opened:
        record(opened, Recorded("r0", 0))
        yield opened


@pytest.fixture
def opened(browser: Browser, store: Store, request: pytest.FixtureRequest) -> Iterator[tuple[Page, list[str]]]:
    """The page behind a prefix, with what the console says."""
    limits = Limits(client_streams=getattr(request, "param", 50))
    settings = ServerSettings(port=0, root_path=PREFIX, token=TOKEN, limits=limits)
    with listen(settings) as listening:
        app = create_app(store, settings)
        context = browser.new_context(extra_http_headers={"X-Crosswind-Token": TOKEN})
        page, said = context.new_page(), list[str]()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        with running(server_of(app), listening), closing(context):
            page.goto(f"http://127.0.0.1:{listening.getsockname()[1]}{PREFIX}/")
            yield page, said


def arrive(store: Store, run_id: str) -> None:
    with store.catalog.write() as session:
        session.runs.merge(Run(run_id, HOSTILE, "lab", RunState.RUNNING, 2, started_ns=time.time_ns()))


def test_a_run_that_arrives_is_announced_and_the_page_stays(opened: tuple[Page, list[str]], store: Store) -> None:
    page, said = opened
    page.wait_for_function("() => !document.querySelector('.pending')", timeout=60_000)
    assert page.locator("#live strong").inner_text() == "Nothing new since you opened this page."
    page.evaluate("window.isTheSame = true")
    arrive(store, "next")
    line = page.locator("#live li")
    line.wait_for()
    assert line.inner_text().endswith(f"{HOSTILE} on lab began on 2 ranks")
    assert line.locator("a").get_attribute("href") == "./runs/next"
    assert page.locator("#live strong").inner_text() == "1 new since you opened this page."
    assert page.inner_text("#part-running h2") == "No run is in progress."
    page.get_by_role("button", name="Pause").click()
    arrive(store, "later")
    page.wait_for_timeout(1500)
    assert page.locator("#live li").count() == 1
    page.get_by_role("button", name="Go on").click()
    page.wait_for_function("() => document.querySelectorAll('#live li').length === 2")
    assert page.evaluate("window.isTheSame")
    page.get_by_role("link", name="Show the page as it is now").click()
    page.wait_for_function("() => window.isTheSame === undefined && document.getElementById('part-running')")
    assert page.inner_text("#part-running h2") == "2 runs are in progress."
    assert said == []


@pytest.mark.parametrize("opened", [1], indirect=True)
def test_where_no_stream_is_given_the_page_says_so_and_the_console_nothing(opened: tuple[Page, list[str]]) -> None:
    first, _ = opened
    first.wait_for_function("() => document.getElementById('live').matches('.listening')")
    page, said = first.context.new_page(), list[str]()
    page.on("console", lambda message: said.append(message.text))
    page.goto(first.url)
    page.get_by_text("what comes now is not shown here").wait_for()
    assert not page.get_by_role("button", name="Pause").is_visible()
    assert page.get_by_role("link", name="Show the page as it is now").is_visible()
    assert said == []


def test_without_scripts_each_part_has_a_link(browser: Browser, opened: tuple[Page, list[str]]) -> None:
    plain = browser.new_context(extra_http_headers={"X-Crosswind-Token": TOKEN}, java_script_enabled=False)
    page = plain.new_page()
    page.goto(opened[0].url)
    assert not page.locator("#live").is_visible()
    page.locator("#part-gaps .pending a").click()
    page.wait_for_url("**/?part=gaps")
    assert page.inner_text("#part-gaps h2") == "No node's agent has reported in the last day."
    plain.close()


@pytest.mark.thorough
def test_a_block_that_is_not_ready_is_asked_for_again_and_one_that_fails_keeps_its_link(
    opened: tuple[Page, list[str]],
) -> None:
    page, _ = opened
    answers = [202]
    page.route(
        "**/?part=gaps",
        lambda route: route.fulfill(status=answers.pop(), body="") if answers else route.continue_(),
    )
    page.route("**/?part=stragglers", lambda route: route.fulfill(status=500, body=""))
    page.reload()
    page.get_by_text("No node's agent has reported in the last day.").wait_for()
    assert answers == []
    assert page.inner_text("#part-stragglers .pending") == "It could not be computed now. Compute it now"
    assert page.locator("#part-stragglers .pending a").get_attribute("href") == "./?part=stragglers"
