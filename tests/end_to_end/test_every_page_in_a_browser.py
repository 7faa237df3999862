"""Every listed page and its states in a real browser, over stores with something for each, nothing, one run, many."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any
from urllib.parse import urljoin

import pytest
from playwright.sync_api import Page
from tests.end_to_end.addresses import OF_A_NODE, OF_RUNS, PLAIN, STATES, addresses_of
from tests.end_to_end.looks import differing_figures, seen, strokes, walk
from tests.end_to_end.stores import FILLS, HOSTILE
from tests.end_to_end.visits import Contexts, Visit, json_of, served
from tests.needs import node_module

EVERY_DAY = "sample"
STORES = (
    pytest.param(EVERY_DAY),
    *(pytest.param(name, marks=pytest.mark.thorough) for name in STATES if name != EVERY_DAY),
)
NARROW = ("/", "/runs", "/compare?a={run}&b={other}")  # every day; `thorough` has every page and state
WALKED = ("/", "/runs", "/runs/{run}")
WITHOUT_SCRIPTS = ("/", "/runs/{run}", "/predict?like={run}")
WITHOUT_DOTS = """() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync("abbr { text-decoration: none !important; }"); // in a PDF dots are lines, as those of figures are
  document.adoptedStyleSheets.push(sheet);
}"""
CASES = [(store.values[0], state, store.marks) for store in STORES for state in (*PLAIN, *STATES[str(store.values[0])])]


def cases(*, every_day: tuple[str, ...] | None = None) -> list[Any]:
    """Return every store with each of its states; of the everyday store some or all are for every day."""
    return [
        pytest.param(
            store,
            state,
            marks=marks or ([] if every_day is None or state in every_day else [pytest.mark.thorough]),
        )
        for store, state, marks in CASES
    ]


class Served:
    """A server of a store, with the addresses over it."""

    def __init__(self, contexts: Contexts, top: str, store: str) -> None:
        self.top, self.addresses = top, addresses_of(store, top)
        self._contexts = contexts

    def visit(self, state: str, **options: Any) -> Visit:
        """Open a state in a context with these options."""
        visit = self._contexts.visit(self.top, **options)
        visit.go(self.addresses[state])
        return visit


@pytest.fixture(scope="module")
def over(
    contexts: Contexts, sample_top: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Served]]:
    """Serves a store by name; the one that was served before is closed, as tests of one follow each other."""
    opened: dict[str, Served] = {}
    servers = ExitStack()

    def serve(name: str) -> Served:
        if name not in opened:
            servers.close()
            opened.clear()
            opened[name] = Served(contexts, top_of(name), name)
        return opened[name]

    def top_of(name: str) -> str:
        if name == EVERY_DAY:
            return sample_top
        home = tmp_path_factory.mktemp(name)
        FILLS[name](home)
        return servers.enter_context(served(home))

    yield serve
    servers.close()


def twin_of(visit: Visit) -> Mapping[str, Any]:
    """Return the page as data, from the address that it links to."""
    link = visit.page.locator(".rail-foot a", has_text="JSON").get_attribute("href")
    address = urljoin(visit.page.url, link)
    assert address.startswith(visit.top)
    return json_of(visit.top, address.removeprefix(visit.top))


@pytest.mark.parametrize(("store", "state"), cases(every_day=(*PLAIN, *OF_RUNS[:1], *OF_RUNS[2:], OF_A_NODE)))
def test_a_page_is_whole_and_its_figures_have_the_numbers_of_the_api(
    over: Callable[[str], Served], store: str, state: str
) -> None:
    visit = over(store).visit(state)
    page = visit.page
    visit.is_drawn()
    assert seen(page, "cutOff") == []
    assert differing_figures(page, twin_of(visit)["charts"]) == []
    assert [lead for lead in seen(page, "leads") if not lead.startswith(f"{visit.top}/")] == []
    assert visit.problems == []
    visit.close()


@pytest.mark.parametrize(("store", "state"), cases(every_day=NARROW))
def test_a_phone_shows_a_page_without_sideways_scrolling(over: Callable[[str], Served], store: str, state: str) -> None:
    visit = over(store).visit(state, width=390)
    visit.is_drawn()
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert visit.page.evaluate("[...document.querySelectorAll('.main-svg')].every((svg) => svg.clientWidth <= 360)")
    assert seen(visit.page, "crowded") == []
    rows = visit.page.locator("#runs tbody tr").all()
    assert max((row.bounding_box()["height"] for row in rows), default=0) < 40  # type: ignore[index]
    assert visit.problems == []
    visit.close()


@pytest.mark.parametrize(("store", "state"), cases(every_day=WALKED))
def test_every_control_is_reached_by_keyboard_and_marked(over: Callable[[str], Served], store: str, state: str) -> None:
    visit = over(store).visit(state)
    visit.is_drawn()
    assert walk(visit.page) == []
    plots = visit.page.locator(".plot").count()
    assert visit.page.evaluate("[...watched.reached].filter((one) => one.matches('.plot')).length") == plots
    assert visit.problems == []
    visit.close()


def test_the_first_key_skips_to_the_content(over: Callable[[str], Served]) -> None:
    visit = over(EVERY_DAY).visit("/runs")
    page = visit.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    assert page.locator(".skip").bounding_box()["y"] >= 0  # type: ignore[index]
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    visit.close()


@pytest.mark.parametrize(("store", "state"), cases(every_day=WITHOUT_SCRIPTS))
def test_without_scripts_every_figure_is_a_table_and_every_link_stays_behind_the_prefix(
    over: Callable[[str], Served], store: str, state: str
) -> None:
    visit = over(store).visit(state, java_script_enabled=False, width=390)
    page = visit.page
    assert page.locator("h1").is_visible()
    for figure in page.locator("figure.chart").all():
        assert figure.locator("table").is_visible()
        assert not figure.locator(".plot, .tools").filter(visible=True).count()
    assert [lead for lead in seen(page, "leads") if not lead.startswith(f"{visit.top}/")] == []
    assert visit.problems == []
    visit.close()


@pytest.mark.thorough
@pytest.mark.parametrize(("store", "state"), cases())
def test_a_printed_page_has_its_figures(over: Callable[[str], Served], store: str, state: str) -> None:
    visit = over(store).visit(state, color_scheme="dark", height=900)
    page = visit.page
    figures = page.locator("[data-figure]").count()
    page.wait_for_function("() => !document.querySelector('.pending')")
    page.evaluate(WITHOUT_DOTS)
    printed = strokes(page.pdf())
    assert page.locator(".plot.drawn .cartesianlayer").count() == figures
    page.evaluate("document.querySelectorAll('.plot').forEach((plot) => plot.remove())")
    assert not figures or printed > strokes(page.pdf())
    assert visit.problems == []
    visit.close()


def violations(page: Page) -> list[object]:
    """Return what axe-core objects to, of any level, best practices too."""
    objections = page.evaluate("axe.run()")["violations"]
    return [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in objections]


@pytest.mark.thorough
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("store", "state"), cases())
def test_axe_objects_to_nothing(over: Callable[[str], Served], store: str, state: str, scheme: str, width: int) -> None:
    script = node_module("axe-core/axe.min.js").read_text()
    visit = over(store).visit(state, color_scheme=scheme, width=width, bypass_csp=True)
    visit.is_drawn()
    visit.page.add_script_tag(content=script)
    assert violations(visit.page) == []
    visit.close()


@pytest.mark.thorough
@pytest.mark.parametrize("state", [*PLAIN, *STATES["hostile"]])
def test_hostile_names_are_inert_and_read_as_they_are(over: Callable[[str], Served], state: str) -> None:
    visit = over("hostile").visit(state)
    visit.page.on("dialog", lambda dialog: visit.problems.append(dialog.message))
    visit.is_drawn()
    assert visit.page.locator("main img").count() == 0
    if state == "/runs/{run}":
        assert HOSTILE in visit.page.locator("main").inner_text()
    assert visit.problems == []
    visit.close()
