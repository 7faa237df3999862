"""Requests of a page's scripts while its reader moves something, in a real browser."""

import re
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Route
from tests.end_to_end.addresses import names
from tests.end_to_end.visits import Contexts, Visit, json_of

from crosswind.dashboards import wording

MEDIAN = "dl.strip div:first-child dd"


@pytest.fixture
def visit(contexts: Contexts, sample_top: str) -> Iterator[Visit]:
    visit = contexts.visit(sample_top)
    yield visit
    visit.close()


def announced(page: Page, address: str) -> Callable[[], int]:
    """Let the server only announce its first answer at these addresses; return how often it was asked."""
    asked: list[int] = []

    def answer(route: Route) -> None:
        asked.append(1)
        if len(asked) == 1:
            route.fulfill(status=202, body="")
        else:
            route.continue_()

    page.route(re.compile(address), answer)
    return lambda: len(asked)


def test_a_slider_asks_for_another_run_until_that_is_computed_and_the_address_follows(visit: Visit) -> None:
    visit.go(f"/predict?like={names(visit.top)['run']}")
    visit.is_drawn()
    asked = announced(visit.page, r"/predict\?.*batch")
    slider = visit.page.get_by_role("slider", name="batch")
    slider.press("ArrowRight")
    visit.page.wait_for_url("**/predict?*batch%3D*")
    assert asked() == 2
    query = urlsplit(visit.page.url).query
    forecast = json_of(visit.top, f"/predict.json?{query}")["forecast"]
    assert f"batch%3D{slider.get_attribute('aria-valuetext')}" in query
    [median] = [one["seconds"] for one in forecast["quantiles"] if one["level"] == 0.5]
    assert visit.page.inner_text(MEDIAN) == wording.seconds(median)
    visit.is_drawn()
    assert visit.problems == []


def test_a_zoom_waits_for_its_steps_where_they_are_not_there_at_once(visit: Visit) -> None:
    visit.go(f"/runs/{names(visit.top)['run']}")
    visit.is_drawn()
    asked = announced(visit.page, "only=steps")
    visit.page.locator("#figure-steps .plot").press("+")
    visit.page.wait_for_url("**from_step=*")
    assert asked() == 2
    assert visit.page.locator("#shown").is_visible()
    assert visit.problems == []
