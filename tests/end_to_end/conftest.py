from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright
from tests.end_to_end.stores import fill_sample
from tests.end_to_end.visits import Contexts, served
from tests.needs import program

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",  # the pages draw SVG: a GPU made of software takes a third of the time
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


@pytest.fixture(scope="session")
def sample_top(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server of the sample, which no page changes."""
    home = tmp_path_factory.mktemp("sample")
    fill_sample(home)
    with served(home) as top:
        yield top


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium; where CI runs it must be there."""
    chromium = program("chromium", "chromium")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def contexts(browser: Browser) -> Iterator[Contexts]:
    """Contexts that the tests of a file share: one that changes what a browser keeps has options of its own."""
    kept = Contexts(browser)
    yield kept
    kept.close()
