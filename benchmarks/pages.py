"""Cost of every page in a large store: server, bytes, and a browser's time until it shows and has drawn it.

`CROSSWIND_BENCH_RUNS` runs (20 000 unless it is set) with steps and verdicts, and 1500 metrics of some, in SQLite;
`CROSSWIND_BENCH_STORE` is a folder that is filled once and used again. Beside the pages stands `GET /healthz` of the
same server. "After a batch" is the first request after a run was stored, "first" the first of all; CPU seconds are the
server's; bytes are as sent, compressed. The browser comes to a server that has the page's answer and computes nothing
else; "drawn" is when the last figure is, for a reader who scrolls past all of them at once. The "long run" has 64 ranks
x 10,000 steps, and "zoom" asks for 4,000 of them.
"""

import gzip
import json
import os
import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.ingest import cpu_seconds
from benchmarks.long_run import NEWEST, fill_long_runs
from benchmarks.many_runs import fill, run_id_of, run_of
from benchmarks.served import served
from benchmarks.store_content import add_content
from crosswind.api.background_answers import PROMISED_SECONDS
from crosswind.dashboards.pages.listed import LISTED
from crosswind.data.schema.run import cohort_digest
from crosswind.data.store.store import Store

RUNS = int(os.environ.get("CROSSWIND_BENCH_RUNS", "20000"))
ASKED = 10
PENDING_SECONDS = 300.0
IDLE_SECONDS = 0.3
PAINTED = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime"  # reported later
ANSWERED = "performance.getEntriesByType('navigation')[0].responseStart"
INTERACTIVE = "performance.getEntriesByType('navigation')[0].domInteractive"
SCROLLED = """
async () => {
  for (const figure of document.querySelectorAll("[data-figure]")) {
    figure.scrollIntoView();
    await new Promise((shown) => requestAnimationFrame(() => setTimeout(shown)));
  }
}
"""
NOTE_DRAWN = "addEventListener('figure-drawn', () => (window.drawnAt = performance.now()))"
ALL_DRAWN = "() => !document.querySelector('[data-figure]:not(.drawn)')"
SCRIPT_BYTES = """
performance.getEntriesByType('resource').filter((one) => one.initiatorType === 'script')
  .reduce((sum, one) => sum + one.transferSize, 0)
"""
Figures = dict[str, float]


def main() -> None:
    kept = os.environ.get("CROSSWIND_BENCH_STORE")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(kept or Path(folder) / "home")
        if not (home / "catalog.sqlite").exists():
            with Store.open(home) as store:
                fill(store, RUNS)
                add_content(store, RUNS)
        with Store.open(home) as store:
            fill_long_runs(store)
        with served(home) as (url, pid):
            rows = {name: _asked(url, pid, home, path) for name, path in _addresses()}
            for name, seen in _in_browser(url, pid):
                rows[name] |= seen
    _print(rows)
    figures = {f"{name}_{figure}": value for name, row in rows.items() for figure, value in row.items()}
    print(json.dumps(figures | {"runs": RUNS, "machine": f"{platform.machine()}, Python {platform.python_version()}"}))


def _addresses() -> Iterator[tuple[str, str]]:
    newest = run_id_of(RUNS - 1)
    asked = {
        "compare": f"?a={newest}&b={run_id_of(RUNS - 2)}",
        "predict": f"?like={newest}",
        "selection": f"?cohort={cohort_digest(run_of(RUNS - 1))}&slower=1.1",
    }
    yield "healthz", "/healthz"
    for page in LISTED:
        yield page.name, page.path.replace("{run_id}", newest) + asked.get(page.name, "")
    yield "long_run", f"/runs/{NEWEST}"
    yield "zoom", f"/runs/{NEWEST}?from_step=2000&to_step=6000&only=steps"


def _asked(url: str, pid: int, home: Path, path: str) -> Figures:
    connection = HTTPConnection(urlsplit(url).netloc)
    begun = cpu_seconds(pid)
    _whole(connection, path)
    first = cpu_seconds(pid) - begun
    connection.close()  # it would be ended meanwhile; the next request opens another one
    time.sleep(PROMISED_SECONDS)  # as long as an answer that was waited for is kept
    _store_a_run(home)
    begun = cpu_seconds(pid)
    cold, _ = _whole(connection, path)
    cold_busy = cpu_seconds(pid) - begun
    busy, seconds = cpu_seconds(pid), []
    for _ in range(ASKED):
        taken, content = _whole(connection, path)
        seconds.append(taken)
    busy = cpu_seconds(pid) - busy
    connection.close()
    return {
        "first_cpu_milliseconds": round(first * 1e3, 1),
        "after_a_batch_cpu_milliseconds": round(cold_busy * 1e3, 1),
        "after_a_batch_milliseconds": round(cold * 1e3, 1),
        "p50_milliseconds": round(statistics.median(seconds) * 1e3, 1),
        "cpu_milliseconds": round(busy / ASKED * 1e3, 1),
        "kilobytes": round(len(gzip.compress(content, 6)) / 1e3, 1),
    }


def _whole(connection: HTTPConnection, path: str) -> tuple[float, bytes]:
    """Return the seconds until a page is there and not only announced, and its content."""
    began = time.perf_counter()
    while time.perf_counter() - began < PENDING_SECONDS:
        connection.request("GET", path, headers={"Accept": "text/html"})
        answer = connection.getresponse()
        content = answer.read()
        if answer.status == 200:
            return time.perf_counter() - began, content
        if answer.status != 202:
            break
        time.sleep(0.05)
    raise SystemExit(f"{path}: {answer.status} {content[:300]!r}")


def _store_a_run(home: Path) -> None:
    with Store.open(home) as store, store.catalog.write() as session:
        session.runs.merge(replace(run_of(RUNS - 1), run_id=f"later-{time.time_ns()}"))


def _in_browser(url: str, pid: int) -> Iterator[tuple[str, Figures]]:
    chromium = shutil.which("chromium")
    if chromium is None:
        print("no chromium: the browser's part is left out")
        return
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - it is there where the tests are

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        browser.new_page().goto(f"{url.rstrip('/')}/healthz")  # the browser itself has begun
        for name, path in _addresses():
            if name not in {"healthz", "zoom"}:
                _prepare(url, pid, path)
                yield name, _seen(browser, url.rstrip("/") + path)
        browser.close()


def _prepare(url: str, pid: int, path: str) -> None:
    """Have the server keep the page's answer, and wait until it computes nothing for the pages before."""
    _whole(HTTPConnection(urlsplit(url).netloc), path)
    busy = -1.0
    while busy < (busy := cpu_seconds(pid)):
        time.sleep(IDLE_SECONDS)


def _seen(browser: Any, address: str) -> Figures:
    """Return what a visitor waits for who was never here."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.add_init_script(NOTE_DRAWN)
    page.goto(address)
    page.evaluate(SCROLLED)
    painted = page.wait_for_function(PAINTED).json_value()
    page.wait_for_function(ALL_DRAWN)
    figures = {
        "answered_milliseconds": page.evaluate(ANSWERED),
        "first_paint_milliseconds": painted,
        "interactive_milliseconds": page.evaluate(INTERACTIVE),
        "drawn_milliseconds": page.evaluate("window.drawnAt") or painted,
        "script_kilobytes": page.evaluate(SCRIPT_BYTES) / 1e3,
    }
    context.close()
    return {name: round(value, 1) for name, value in figures.items()}


def _print(rows: Mapping[str, Figures]) -> None:
    columns = list(dict.fromkeys(figure for row in rows.values() for figure in row))
    print(" " * 16 + "".join(f"{column.replace('_milliseconds', ', ms').replace('_', ' '):>24}" for column in columns))
    for name, row in rows.items():
        print(f"{name:<16}" + "".join(f"{row.get(column, float('nan')):>24.1f}" for column in columns))
