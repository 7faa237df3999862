"""Explanations of one and of a few real trainings of two ranks: by verb, client, page and JSON."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.asking import Ask, asking
from tests.ingest.probe.adapters.launched import FORKED, LONGEST_SECONDS, PROGRAMS

import crosswind
from crosswind.client.local import Local
from crosswind.dashboards.pages.page import PageQuery
from crosswind.dashboards.pages.render import Address, render
from crosswind.dashboards.pages.runs.run import PAGE
from crosswind.data.schema.answers.explanations import UNKNOWN, Expectation, Explanation, Verdict
from crosswind.settings import Settings

LATE, DELAY_MS, STEPS, SINCE = 1, 200, 18, 24


def train(home: Path, *arguments: object, program: Path = PROGRAMS / "late_backward.py", **environment: str) -> None:
    """Record a training of two ranks under `crosswind run` into a store."""
    ranks = [sys.executable, str(FORKED), "2", str(program), *map(str, arguments)]
    own = {"CROSSWIND_HOME": str(home), "CROSSWIND_SYSTEM": "lab", "OMP_NUM_THREADS": "1", **environment}
    names = {name: value for name, value in os.environ.items() if name != "CROSSWIND_SPOOL"} | own
    command = [sys.executable, "-m", "crosswind.cli.main", "run", "--", *ranks]
    done = subprocess.run(command, env=names, capture_output=True, text=True, check=False, timeout=LONGEST_SECONDS)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one run, in which rank 1 sleeps in every backward pass."""
    home = tmp_path_factory.mktemp("first")
    train(home, LATE, DELAY_MS, STEPS)
    return home


@pytest.fixture(scope="module")
def midway(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one run, in which rank 1 sleeps in every backward pass from a step on."""
    home = tmp_path_factory.mktemp("midway")
    train(home, LATE, DELAY_MS, SINCE + 12, SINCE)
    return home


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[[Path], Ask]:
    """Asks verbs about a store."""

    def at(home: Path) -> Ask:
        monkeypatch.setenv("CROSSWIND_HOME", str(home))
        monkeypatch.setenv("CROSSWIND_SYSTEM", "lab")
        monkeypatch.delenv("CROSSWIND_SPOOL", raising=False)
        return asking(capsys)

    return at


def test_the_first_run_is_explained_by_its_ranks(first: Path, ask: Callable[[Path], Ask]) -> None:
    code, said, _ = ask(first)("explain")
    assert code == 0
    assert "One rank delays it: rank 1 spends 20" in said
    assert "ms more than its peer before each collective; no counter says why." in said
    assert "cause: unknown, on rank 1, in compute" in said
    assert "compared with its other ranks" in said
    assert "sure: over 99 % of redrawn evidence" in said


def test_client_and_json_say_the_same(first: Path, ask: Callable[[Path], Ask]) -> None:
    answer = json.loads(ask(first)("explain", "--json")[1])
    with crosswind.connect() as client:
        explanation = client.explain(answer["run_id"])
    assert explanation.verdict is Verdict.ONE_RANK_DELAYS
    assert (answer["verdict"], answer["cause"], answer["phase"]) == ("one_rank_delays", UNKNOWN, "compute")
    assert answer["expected_from"] == explanation.expected_from == Expectation.OTHER_RANKS
    assert answer["lag"]["rank"] == answer["culprit_rank"] == LATE
    assert answer["lag"]["seconds"]["value"] == pytest.approx(0.2, rel=0.05)
    assert 0.9 < answer["confidence"] < 1
    assert_sums(explanation)


def assert_sums(explanation: Explanation) -> None:
    assert explanation.excess is not None
    assert explanation.unexplained is not None
    assert explanation.expected_seconds is not None
    assert explanation.measured_seconds is not None
    parts = sum(share.seconds.value for share in explanation.shares) + explanation.unexplained.value
    assert parts == pytest.approx(explanation.excess.value, abs=1e-9)
    assert explanation.expected_seconds + parts == pytest.approx(explanation.measured_seconds, abs=1e-9)
    assert explanation.expected_seconds + min(explanation.excess.low, explanation.unexplained.low) >= 0


def test_the_page_shows_it(first: Path, ask: Callable[[Path], Ask]) -> None:
    run_id = json.loads(ask(first)("explain", "--json")[1])["run_id"]
    with Local.open(Settings.from_environment()) as client:
        html = render(PAGE, PAGE.view(client, PageQuery({}, run_id)), Address("../", f"/runs/{run_id}"))
    assert "unknown, on rank 1, in compute" in html
    assert "from other ranks" in html
    assert "Unexplained took" in html


def test_a_run_that_became_slower_says_since_when(midway: Path, ask: Callable[[Path], Ask]) -> None:
    code, said, _ = ask(midway)("explain")
    assert code == 0
    assert f"Slow: since step {SINCE} a step takes" in said
    assert "Unknown, on rank 1, in compute, took" in said
    assert f"before each collective since step {SINCE}" in said
    answer = json.loads(ask(midway)("explain", "--json")[1])
    assert (answer["verdict"], answer["expected_from"]) == ("slow", "own_steps")
    assert answer["change"]["first_step"] == answer["lag"]["since_step"] == SINCE
    assert answer["excess"]["low"] > 0


@pytest.mark.thorough
def test_every_run_of_a_few_has_the_rank_and_only_slower_ones_are_slow(
    tmp_path: Path, ask: Callable[[Path], Ask]
) -> None:
    """Runs of one cohort: the delay comes from the environment."""
    program = tmp_path / "toy.py"
    source = PROGRAMS / "late_backward.py"
    lines = ["import os, runpy, sys", f"sys.argv[1:] = ['{LATE}', os.environ['TOY_MS'], '{STEPS}']"]
    program.write_text("\n".join([*lines, f"runpy.run_path({str(source)!r}, run_name='__main__')"]))
    for delays in ([DELAY_MS] * 6, [0, 0, 0, DELAY_MS]):
        home = tmp_path / f"home{len(delays)}"
        for place, delay in enumerate(delays):
            train(home, program=program, TOY_MS=str(delay))
            answer = json.loads(ask(home)("explain", "--json")[1])
            if delay:
                assert (answer["cause"], answer["culprit_rank"], answer["phase"]) == (UNKNOWN, LATE, "compute")
                assert "more than its peer before each collective; no counter says why" in answer["sentence"]
                assert answer["verdict"] == ("one_rank_delays" if delays[0] else "slow")
                assert answer["lag"]["is_usual"] is (place > 0 and bool(delays[0]))
            else:
                assert answer["verdict"] != "slow"
