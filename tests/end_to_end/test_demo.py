"""The demo as a user runs it: the real command line, DDP ranks, uvicorn and Chromium."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, ConsoleMessage

CROSSWIND = Path(sys.executable).with_name("crosswind")
ASKED = {"--trials": "1", "--port": "0", "--seed": "3"}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """What a whole demo said, and the URL that it serves on."""
    home = tmp_path_factory.mktemp("demo")
    words = [str(CROSSWIND), "demo", "--home", str(home), *(word for pair in ASKED.items() for word in pair)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout is not None
        said = "".join(until_url(process.stdout))
        found = re.search(r"http://\S+", said)
        assert found, f"the demo ended without a URL: {said}"
        yield said, found.group()
        process.send_signal(signal.SIGINT)


def until_url(lines: IO[str]) -> Iterator[str]:
    for line in lines:
        yield line
        if "http://" in line:
            return


def test_the_summary_names_most_injected_causes_and_raises_few_false_alarms(demo: tuple[str, str]) -> None:
    """One demo: 6 disturbed runs, 8 undisturbed; repeated demos are counted by `make accuracy NAME=explain`.

    The promise is 8 of 10 and 1 of 10. At just that rate a single demo names fewer than 3 of 6, or calls more than 3
    of 8 slow, in under 2 % of cases each.
    """
    found = re.search(r"(\d) of 6 disturbed runs.*?(\d) of 8 undisturbed", demo[0])
    assert found, demo[0]
    named, alarms = map(int, found.groups())
    assert named >= 3, demo[0]
    assert alarms <= 3, demo[0]


def test_the_summary_predicts_checks_and_tunes(demo: tuple[str, str]) -> None:
    assert re.search(r"(inside|outside) the interval|not predicted", demo[0]), demo[0]
    assert "Tuned in 1 trials" in demo[0]
    assert "unexplained" in demo[0]


def test_the_api_serves_what_the_demo_recorded(demo: tuple[str, str]) -> None:
    with urlopen(f"{demo[1]}v1/runs?limit=100") as answer:
        runs = json.load(answer)
    described = json.dumps(runs)
    assert described.count('"run_id"') == 6 + 8 + 1 + 1  # disturbed, undisturbed, fresh, trial
    assert "byte-transformer" in described


@pytest.mark.parametrize("page_path", ["runs", "variability", "slowest run"])
def test_a_page_draws_its_figures_without_an_error(demo: tuple[str, str], browser: Browser, page_path: str) -> None:
    page = browser.new_page()
    errors: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            errors.append(message.text)

    page.on("console", note)
    page.on("pageerror", lambda error: errors.append(str(error)))
    if page_path == "slowest run":
        found = re.search(r"The slowest, run (\w+)", demo[0])
        assert found, demo[0]
        page_path = f"runs/{found.group(1)}"
    page.goto(f"{demo[1]}{page_path}")
    page.wait_for_selector(".js-plotly-plot .main-svg", timeout=20_000)
    assert "Crosswind" in page.title()
    assert page.locator(".js-plotly-plot").count() >= 1
    assert errors == []
    page.close()
