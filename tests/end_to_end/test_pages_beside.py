"""Pages that are in no list, in a real browser: the one that waits for another, refusals, login and server state."""

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tests.end_to_end.looks import seen, walk
from tests.end_to_end.stores import Recorded, record
from tests.end_to_end.test_every_page_in_a_browser import violations
from tests.end_to_end.visits import PREFIX, SAID, THERE, TOKEN, Contexts, Visit
from tests.needs import node_module
from tests.serving import running

from crosswind.api.app import create_app
from crosswind.api.background_answers import BackgroundAnswers
from crosswind.api.server import listen, server_of
from crosswind.api.settings import ServerSettings
from crosswind.data.store.store import Store

WAITING = "/stragglers"
LOADED = "/runs"  # which loads the code of all pages
PAGES = ("/status", "/login", "/nope", "/runs/", WAITING)
REFUSED = "Failed to load resource: the server responded with a status of 404 (Not Found)"
ANSWERED = "performance.getEntriesByType('navigation')[0].responseStart"
WAITS_MS = 1500  # a quarter of a second, and what a busy machine adds


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[tuple[str, Event]]:
    """The address of a server over a store of one run, whose answers about many runs come once the event is set."""
    settings, go = ServerSettings(port=0, root_path=PREFIX, token=TOKEN), Event()
    with Store.open(tmp_path) as store, listen(settings) as listening:
        record(store, Recorded("r0", 0))
        app = create_app(store, settings)
        app.state.page_client.compute = BackgroundAnswers(_after(go, app.state.client.compute))
        with running(server_of(app), listening):
            yield f"http://127.0.0.1:{listening.getsockname()[1]}{PREFIX}", go
            go.set()


def _after(go: Event, compute: Callable[..., Any]) -> Callable[..., Any]:
    def answer(*asked: Any, **named: Any) -> Any:
        assert go.wait(120)
        return compute(*asked, **named)

    return answer


def test_a_page_that_waits_says_so_at_once_and_fills_in(contexts: Contexts, slow: tuple[str, Event]) -> None:
    top, go = slow
    visit = contexts.visit(top)
    visit.go(LOADED)
    visit.go(f"{WAITING}?example=no")
    assert visit.page.inner_text("h1") == SAID
    assert visit.page.evaluate(ANSWERED) < WAITS_MS
    visit.page.evaluate("window.isTheSame = true")
    visit.page.wait_for_timeout(2500)  # as long as the page waits at most between two questions
    assert visit.page.evaluate("window.isTheSame"), "it is not loaded again for nothing"
    go.set()
    visit.page.wait_for_selector(THERE)
    assert visit.page.url == f"{top}{WAITING}?example=no"
    assert visit.problems == []
    visit.close()


def test_without_scripts_a_page_that_waits_is_loaded_again(contexts: Contexts, slow: tuple[str, Event]) -> None:
    top, go = slow
    visit = contexts.visit(top, java_script_enabled=False)
    visit.go(f"{WAITING}?example=no")
    assert visit.page.inner_text("h1") == SAID
    go.set()
    visit.page.wait_for_selector(THERE)
    visit.close()


@pytest.fixture
def beside(contexts: Contexts, slow: tuple[str, Event]) -> Iterator[Callable[..., Visit]]:
    """Opens one of the pages."""
    visits: list[Visit] = []

    def opened(path: str, **options: Any) -> Visit:
        visits.append(contexts.visit(slow[0], **options))
        visits[-1].go(path if path != WAITING else f"{WAITING}?example=no")
        return visits[-1]

    yield opened
    for visit in visits:
        visit.close()


@pytest.mark.parametrize("path", PAGES)
def test_it_is_whole_fits_a_phone_and_is_walked_by_keyboard(beside: Callable[..., Visit], path: str) -> None:
    wide, phone = beside(path), beside(path, width=390)
    assert seen(wide.page, "cutOff") == []
    assert phone.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert walk(wide.page) == []
    for visit in (wide, phone):
        assert visit.page.locator("h1").count() == 1
        assert visit.problems == ([REFUSED] if path in ("/nope", "/runs/") else [])


@pytest.mark.thorough
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_axe_objects_to_nothing(beside: Callable[..., Visit], path: str, scheme: str, width: int) -> None:
    script = node_module("axe-core/axe.min.js").read_text()
    page = beside(path, color_scheme=scheme, width=width, bypass_csp=True).page
    page.add_script_tag(content=script)
    assert violations(page) == []
