import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright
from tests.needs import program

sys.path.append(str(Path(__file__).parents[2]))  # the benchmarks are not part of the package

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",  # the pages draw SVG: a GPU made of software takes a third of the time
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium; where CI runs it must be there."""
    chromium = program("chromium", "chromium")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield launched
        launched.close()
