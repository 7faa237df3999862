"""The page that shows the API's description, in a real browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from tests.needs import node_module
from tests.serving import answering, serving

from crosswind.data.schema.access import Principal, PrincipalKind
from crosswind.data.store.store import Store

OPERATION = "#operations-runs-list_runs"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with answering(tmp_path_factory.mktemp("docs")) as address:
        yield address


def opened(page: Page, url: str) -> list[str]:
    """Open the page and one operation on it. Return what the browser complains about, and what is asked of others."""
    complaints: list[str] = []
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda asked: None if asked.url.startswith((url, "data:")) else complaints.append(asked.url))
    page.goto(f"{url}docs")
    page.click(f"{OPERATION} .opblock-summary-control")
    page.wait_for_selector(f"{OPERATION} .btn.execute")
    return complaints


def test_an_example_is_sent_from_the_page(browser: Browser, url: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 800})
    complaints = opened(page, url)
    page.click(f"{OPERATION} .btn.execute")
    assert page.inner_text(f"{OPERATION} .live-responses-table .response .response-col_status").startswith("200")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert complaints == []
    page.close()


@pytest.mark.thorough
def test_the_session_of_a_browser_is_who_asks(browser: Browser, tmp_path: Path) -> None:
    anna = Principal(PrincipalKind.PERSON, "anna", user="anna")
    with Store.open(tmp_path / "home") as store, store.catalog.write() as session:
        token = session.tokens.issue(anna, 60, created_by="owner").secret
    with serving(tmp_path / "home", "--port", "0", "--require-token") as (url, _):
        page = browser.new_context().new_page()
        page.goto(f"{url}docs")
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(f"{url}docs")
        assert opened(page, url) == []
        page.click(f"{OPERATION} .btn.execute")
        assert page.inner_text(f"{OPERATION} .live-responses-table .response .response-col_status").startswith("200")
        page.context.close()


@pytest.mark.thorough
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)])
def test_axe_finds_nothing(browser: Browser, url: str, scheme: str, width: int) -> None:
    script = node_module("axe-core/axe.min.js").read_text()
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True)  # type: ignore[arg-type]
    page = context.new_page()
    opened(page, url)
    page.add_script_tag(content=script)
    violations = page.evaluate("axe.run()")["violations"]
    assert [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in violations] == []
    context.close()
