"""Takes the screenshots of docs/tour.md, light and dark, from a server with a store.

`python docs/tour.py URL` takes all of them, `python docs/tour.py URL NAME...` those of these names. Needs Chromium and
playwright, as the browser tests do. The store of `make demo` has something for every page but links, whose example
is shown, and traces: those come from a run of `crosswind run --trace`, or are stored by `crosswind ingest --run`.
"""

import base64
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).parent / "images" / "tour"
SIZE = {"width": 1280, "height": 900}
WEBP = {"format": "webp", "quality": 78}
COMPUTED = "h1:not(:text('This page is being computed.'))"
WAIT_MS = 120_000


def main() -> None:
    """Take them, page by page."""
    url, names = sys.argv[1].rstrip("/"), sys.argv[2:]
    IMAGES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for mode in ("light", "dark"):
            context = browser.new_context(viewport=SIZE, color_scheme=mode)
            for name, path in _addresses(url):
                if names and name not in names:
                    continue
                (IMAGES / f"{name}-{mode}.webp").write_bytes(_seen(context.new_page(), url + path))
        browser.close()


def _addresses(url: str) -> Iterator[tuple[str, str]]:
    slowest = _answer(url, "/runs.json?verdict=slow&sort=-excess&limit=1&period=1d")["rows"][0]
    run_id, system = slowest["run"]["run_id"], slowest["run"]["system"]
    yield from (("overview", "/?part=all"), ("weather", f"/?part=weather&system={system}"))
    yield from (("runs", "/runs"), ("run", f"/runs/{run_id}"))
    yield from (("trace", f"/runs/{one['run_id']}/trace") for one in _answer(url, "/v1/traces?limit=1")["traces"])
    yield from (("compare", f"/compare?a={run_id}"), ("predict", f"/predict?like={run_id}"))
    largest = max(_answer(url, "/variability.json")["cohorts"], key=lambda cohort: cohort["runs"])
    yield from (("variability", "/variability"), ("selection", f"/selection?cohort={largest['cohort_id']}&slower=1.1"))
    yield from ((name, f"/{name}") for name in ("counters", "interference", "regressions", "stragglers"))
    yield "node", f"/stragglers?node={slowest['run']['nodes'][0]}"
    yield from ((name, f"/{name}") for name in ("checks", "links", "energy", "data", "studies", "models"))
    yield "sql", "/sql?query=select+workload,+count(*)+as+runs+from+runs+group+by+all"


def _answer(url: str, path: str) -> Any:
    with urlopen(url + path) as answer:  # noqa: S310 - the address that was typed
        return json.load(answer)


def _seen(page: Any, address: str) -> bytes:
    """Return a screenshot of the page's beginning, once everything on it is drawn."""
    page.goto(address)
    page.wait_for_selector(COMPUTED, timeout=WAIT_MS)
    page.wait_for_timeout(1500)
    session = page.context.new_cdp_session(page)
    image = session.send("Page.captureScreenshot", WEBP)["data"]
    page.close()
    return base64.b64decode(image)


if __name__ == "__main__":
    main()
