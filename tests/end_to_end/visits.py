"""Pages in a browser, from a server behind a prefix, with what goes wrong on them."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import Request as Question
from urllib.request import urlopen

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Page, Request
from tests.serving import running

from crosswind.api.app import create_app
from crosswind.api.background_answers import BackgroundAnswers
from crosswind.api.example import Example
from crosswind.api.server import listen, server_of
from crosswind.api.settings import ServerSettings
from crosswind.data.store.store import Store

PREFIX = "/node/gpu07/8000"
TOKEN = "0123456789abcdef"  # behind a prefix everybody needs one
WAIT_MS = 120_000
EMPTY = "about:blank"
HEADERS = {"X-Crosswind-Token": TOKEN}
SAID = "This page is being computed."
THERE = f"h1:not(:text('{SAID}'))"  # of a page that is not that one
SCROLLED = """async () => {
  for (const plot of document.querySelectorAll(".plot:not(.drawn)")) {
    plot.scrollIntoView();
    await new Promise((resume) => requestAnimationFrame(() => setTimeout(resume)));
  }
}"""
DRAWN = """() => !document.querySelector('.pending') &&
 document.querySelectorAll('[data-figure]').length
 === document.querySelectorAll('.drawn.js-plotly-plot .main-svg .cartesianlayer').length"""


@dataclass
class Visit:
    """A page with what went wrong on it."""

    page: Page
    top: str
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._listeners = {"console": self.said, "pageerror": self.failed, "request": self.asked}
        for event, listener in self._listeners.items():
            self.page.on(event, listener)  # type: ignore[call-overload]

    def close(self) -> None:
        """Leave the page as empty as it was, to the next visit."""
        for event, listener in self._listeners.items():
            self.page.remove_listener(event, listener)
        self.page.unroute_all()
        self.page.goto(EMPTY)

    def is_drawn(self) -> None:
        """Wait until the page has been computed, every figure is drawn, also far below, and every part has come."""
        self.page.wait_for_selector(THERE, timeout=WAIT_MS)
        self.page.evaluate(SCROLLED)
        self.page.wait_for_function(DRAWN, timeout=WAIT_MS)

    def go(self, address: str) -> None:
        """Open an address below the prefix."""
        self.page.goto(self.top + address)

    def said(self, message: ConsoleMessage) -> None:
        """Note whatever the console says: a page has nothing to say there."""
        self.problems.append(message.text)

    def failed(self, error: Error) -> None:
        """Note an error of a script."""
        self.problems.append(str(error))

    def asked(self, request: Request) -> None:
        """Note a request that leaves the server or its prefix."""
        if not request.url.startswith((f"{self.top}/", "data:", "blob:")):
            self.problems.append(request.url)


@contextmanager
def served(home: Path) -> Iterator[str]:
    """Yield the address of a server of this store, with its prefix; its pages wait for their answers."""
    settings = ServerSettings(port=0, root_path=PREFIX, token=TOKEN)
    with Store.open(home) as store, listen(settings) as listening:
        app = create_app(store, settings)
        app.state.page_client.compute = BackgroundAnswers(app.state.client.compute, wait_seconds=60)
        app.state.example = Example(wait_seconds=60)
        with running(server_of(app), listening):
            yield f"http://127.0.0.1:{listening.getsockname()[1]}{PREFIX}"


def context_in(browser: Browser, **options: Any) -> BrowserContext:
    """Return a context of its own whose requests have the token, and which waits for a busy machine."""
    context = browser.new_context(extra_http_headers=HEADERS, **options)
    context.set_default_timeout(WAIT_MS)
    return context


class Contexts:
    """Contexts of a browser by their options: from test to test they keep pages, and the scripts that these loaded.

    A page in a process that is there takes a third of the time of one in a new process.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser, self._kept = browser, dict[str, BrowserContext]()

    def visit(self, top: str, *, width: int = 1280, height: int = 4000, **options: Any) -> Visit:
        """Return an empty page of this size in a context with these options."""
        key = str(sorted(options.items()))
        if key not in self._kept:
            self._kept[key] = context_in(self._browser, **options)
        context = self._kept[key]
        page = next((one for one in context.pages if one.url == EMPTY), None) or context.new_page()
        page.set_viewport_size({"width": width, "height": height})
        return Visit(page, top)

    def close(self) -> None:
        """Close the contexts with their pages."""
        for context in self._kept.values():
            context.close()


def json_of(top: str, address: str, body: Mapping[str, object] | None = None) -> Any:
    """Return what the server answers to a program, which posts a body if it has one. Raises: HTTPError."""
    headers = {**HEADERS, "Accept": "application/json", "Content-Type": "application/json"}
    sent = None if body is None else json.dumps(body).encode()
    with urlopen(Question(top + address, sent, headers), timeout=120) as answer:
        return json.load(answer)
