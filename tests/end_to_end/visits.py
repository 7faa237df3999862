"""Pages in a browser, from a server behind a prefix, with what goes wrong on them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request
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
HEADERS = {"X-Crosswind-Token": TOKEN}
DRAWN = """() => !document.querySelector('.pending') &&
 document.querySelectorAll('[data-figure]').length
 === document.querySelectorAll('.drawn.js-plotly-plot .main-svg .cartesianlayer').length"""


@dataclass
class Visit:
    """A page with what went wrong on it."""

    page: Page
    top: str
    problems: list[str] = field(default_factory=list)

    def is_drawn(self) -> None:
        """Wait until every figure is drawn, also those far below, and every part has come."""
        for plot in self.page.query_selector_all(".plot:not(.drawn)"):
            plot.scroll_into_view_if_needed()
        self.page.wait_for_function(DRAWN, timeout=WAIT_MS)

    def go(self, address: str) -> None:
        """Open an address below the prefix."""
        self.page.goto(self.top + address)

    def said(self, message: ConsoleMessage) -> None:
        """Note whatever the console says: a page has nothing to say there."""
        self.problems.append(message.text)

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


def visit_in(context: BrowserContext, top: str) -> Visit:
    """Return an empty page of a browser's context, that notes errors and requests that leave the server."""
    visit = Visit(context.new_page(), top)
    visit.page.on("console", visit.said)
    visit.page.on("pageerror", lambda error: visit.problems.append(str(error)))
    visit.page.on("request", visit.asked)
    return visit


def context_in(browser: Browser, *, width: int = 1280, height: int = 4000, **options: Any) -> BrowserContext:
    """Return a context of its own whose requests have the token, and which waits for a busy machine."""
    viewport = {"width": width, "height": height}
    context = browser.new_context(viewport=viewport, extra_http_headers=HEADERS, **options)  # type: ignore[arg-type]
    context.set_default_timeout(WAIT_MS)
    return context


class Contexts:
    """Contexts of a browser by their options: they keep from test to test the scripts that they loaded."""

    def __init__(self, browser: Browser) -> None:
        self._browser, self._kept = browser, dict[str, BrowserContext]()

    def visit(self, top: str, **options: Any) -> Visit:
        """Return an empty page in a context with these options."""
        key = str(sorted(options.items()))
        if key not in self._kept:
            self._kept[key] = context_in(self._browser, **options)
        return visit_in(self._kept[key], top)

    def close(self) -> None:
        """Close the contexts with their pages."""
        for context in self._kept.values():
            context.close()


def json_of(top: str, address: str, body: Mapping[str, object] | None = None) -> Any:
    """Return what the server answers to a program, which posts a body if it has one. Raises: HTTPStatusError."""
    method, headers = "GET" if body is None else "POST", {**HEADERS, "Accept": "application/json"}
    answer = httpx2.request(method, top + address, json=body, headers=headers, timeout=120)
    return answer.raise_for_status().json()
