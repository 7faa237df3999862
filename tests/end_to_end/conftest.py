from collections.abc import Iterator
from contextlib import ExitStack

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


class SharedBrowser:
    """Chromium for tests of several files that follow each other: to start it takes seconds of CPU time."""

    def __init__(self) -> None:
        self._opened = ExitStack()
        self._browser: Browser | None = None

    def launched(self) -> Browser:
        """Return the browser, and launch it first if it is not open."""
        if self._browser is None:
            playwright = self._opened.enter_context(sync_playwright())
            chromium = program("chromium", "chromium")
            self._browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
            self._opened.callback(self._browser.close)
        return self._browser

    def close(self) -> None:
        """Close it if it is open, with the event loop of its driver, next to which no other can run in this thread."""
        self._opened.close()
        self._browser = None


SHARED = SharedBrowser()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Close the browser after the last of these tests."""
    if nextitem is None or nextitem.path.parent != item.path.parent:
        SHARED.close()


@pytest.fixture(scope="module")
def browser() -> Browser:
    """Chromium; where CI runs it must be there."""
    return SHARED.launched()


@pytest.fixture(scope="module")
def contexts(browser: Browser) -> Iterator[Contexts]:
    """Contexts that the tests of a file share: one that changes what a browser keeps has options of its own."""
    kept = Contexts(browser)
    yield kept
    kept.close()
