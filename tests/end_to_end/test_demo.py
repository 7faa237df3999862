"""The demo as a user runs it: the real command line, DDP ranks, uvicorn and Chromium."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, ConsoleMessage
from scipy.stats import binom
from tests.docs.examples import Example, Shell, examples_in
from tests.docs.test_readme import IN_A_DEMO, README
from tests.end_to_end.visits import THERE, WAIT_MS

CROSSWIND = Path(sys.executable).with_name("crosswind")
OPTIONS = {"--runs": "4", "--trials": "1", "--port": "0", "--seed": "3"}
PLANNED = 2 + 2 + 1 + 1  # with a fault, without, to check the prediction, a trial


@dataclass(frozen=True)
class Demo:
    """A demo that serves its pages: what it printed, and what the pages knew while it measured."""

    url: str
    home: Path
    printed: str
    runs_at_first: int
    runs_in_between: int


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    home = tmp_path_factory.mktemp("demo")
    words = [str(CROSSWIND), "demo", "--home", str(home), *(word for pair in OPTIONS.items() for word in pair)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            [url] = re.findall(r"http://\S+/", process.stdout.readline())
            at_first = runs_at(url)
            until(process.stderr, "a step")
            in_between = runs_at(url)
            drain = threading.Thread(target=process.stderr.read)
            drain.start()
            printed = until(process.stdout, " stragglers")  # the last of the commands that go on with its runs
            yield Demo(url, home, printed, at_first, in_between)
        finally:
            process.send_signal(signal.SIGINT)
            try:
                assert process.wait(timeout=30) == 0
            finally:
                process.kill()  # or the end of the block waits for it


def until(lines: IO[str], words: str) -> str:
    """All that is printed up to the line with these words."""
    seen: list[str] = []
    for line in lines:
        seen.append(line)
        if words in line:
            break
    else:
        pytest.fail(f"the demo ended before it said {words!r}: {''.join(seen)}")
    return "".join(seen)


def runs_at(url: str) -> int:
    """Return how many runs of the demo the server has."""
    with urlopen(f"{url}v1/runs?limit=100&workload=byte-transformer&system={socket.gethostname()}") as answer:
        return len(json.load(answer)["runs"])


def test_the_address_comes_first_and_runs_appear_while_others_are_measured(demo: Demo) -> None:
    assert demo.runs_at_first == 0
    assert 1 <= demo.runs_in_between < PLANNED
    assert runs_at(demo.url) == PLANNED


def test_the_summary_says_which_runs_count_and_how_many_of_those_were_right(demo: Demo) -> None:
    scores = re.findall(r"\d of \d injected causes were named|\d of 4 runs do not count", demo.printed)
    assert 1 <= len(scores) <= 2, demo.printed


@pytest.mark.thorough
def test_a_whole_demo_names_most_injected_causes_and_raises_few_false_alarms(tmp_path: Path) -> None:
    """One demo: 6 faults, 6 runs without; repeated demos are counted by `make accuracy NAME=explain`.

    The promise is 8 of 10 and 1 of 10. At just that rate a single demo names fewer, or calls more of the others slow,
    in under 2 % of cases each. Where other programs disturb most runs, few count.
    """
    command = [str(CROSSWIND), "demo", "--home", str(tmp_path), "--no-serve", "--seed", "3", "--trials", "0"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=900).stdout
    assert "unexplained" in printed
    score = re.search(r"(\d) of (\d) injected causes.*?(\d) of (\d) runs", printed)
    if not score:
        assert "12 of 12 runs do not count" in printed
        return
    named, injected, alarms, others = map(int, score.groups())
    assert named >= binom.ppf(0.02, injected, 0.8), printed
    assert alarms <= binom.ppf(0.98, others, 0.1), printed


def test_the_summary_predicts_checks_and_tunes(demo: Demo) -> None:
    assert re.search(r"(inside|outside) the interval|not predicted", demo.printed), demo.printed
    assert "Tuned in 1 trials" in demo.printed


def test_the_commands_that_it_ends_with_go_on_with_its_runs(demo: Demo, tmp_path: Path) -> None:
    commands = demo.printed.partition("To go on with these runs:\n")[2]
    assert f"export CROSSWIND_HOME={demo.home}\n" in commands
    path = f"{CROSSWIND.parent}:{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(tmp_path), "CROSSWIND_NODE": socket.gethostname()}
    done = subprocess.run(["bash", "-ec", commands], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "byte-transformer" in done.stdout
    assert "unexplained" in done.stdout


@pytest.mark.thorough
def test_the_readmes_next_commands_work_in_its_store(demo: Demo, tmp_path: Path) -> None:
    shell = Shell(tmp_path, {"CROSSWIND_HOME": str(demo.home)})
    commands = [example.command for example in examples_in(README) if example.command.startswith(IN_A_DEMO)]
    assert len(commands) >= 3
    for command in commands:
        printed = shell.ask(Example(f"{command} || echo failed", "", 1))
        assert "failed" not in printed.splitlines(), f"{command}: {printed}"


@pytest.mark.parametrize("page_path", ["runs", "variability", "slowest run"])
def test_a_page_draws_its_figures_without_an_error(demo: Demo, browser: Browser, page_path: str) -> None:
    page = browser.new_page()
    errors: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            errors.append(message.text)

    page.on("console", note)
    page.on("pageerror", lambda error: errors.append(str(error)))
    if page_path == "slowest run":
        match = re.search(r"The slowest, run (\w+)", demo.printed)
        assert match, demo.printed
        page_path = f"runs/{match.group(1)}"
    page.goto(f"{demo.url}{page_path}")
    page.wait_for_selector(THERE, timeout=WAIT_MS)  # the server explains the samples meanwhile
    page.locator("[data-figure]").first.scroll_into_view_if_needed(timeout=20_000)  # below a list of cohorts
    page.wait_for_selector(".js-plotly-plot .main-svg", timeout=20_000)
    assert "Crosswind" in page.title()
    assert page.locator(".js-plotly-plot").count() >= 1
    assert errors == []
    page.close()
