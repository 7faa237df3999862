"""A store whose runs to come can be asked about, a real server over it, and both ways of asking."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.cli.asking import Ask, asking
from tests.serving import answering

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.job import Job
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store

SECOND = 1_000_000_000
STEPS, STEPS_SO_FAR = 30, 12
RUNS = 12
Verb = Ask


@pytest.fixture(scope="session")
def home_to_ask(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve runs and one in progress of `toy`, three of `silent` that recorded no steps, eight jobs `nightly`.

    Three cohorts are too few for surrogates to learn from, so every answer takes a fraction of a second.
    """
    home = tmp_path_factory.mktemp("asked") / "home"
    with Store.open(home) as store:
        with store.catalog.write() as session:
            for number in range(RUNS):
                session.runs.merge(run_of("toy", number, {"batch": 8, "fused": True}))
            session.runs.merge(run_of("toy", RUNS, {"batch": 8, "fused": True}, state=RunState.RUNNING))
            session.runs.merge(run_of("toy", RUNS + 1, {"batch": 16, "fused": True}))
            for number in range(3):
                session.runs.merge(run_of("silent", 20 + number, {}))
        jobs = [nightly(number) for number in range(8)]
        store.jobs.put(*jobs)
        for number in range(RUNS + 2):
            store.lake.append(f"steps-{number}", to_table(STEP, steps_of(f"toy-{number:02}", number)))
    return home


def run_of(workload: str, number: int, configuration: dict[str, int], *, state: RunState = RunState.COMPLETED) -> Run:
    started = number * 1000 * SECOND
    ended = None if state is RunState.RUNNING else started + (60 + number % 4) * SECOND
    names = (f"{workload}-{number:02}", workload, "lab", state)
    return Run(*names, world_size=2, configuration=configuration, started_ns=started, ended_ns=ended)


def nightly(number: int) -> Job:
    """25 to 27 hours on four nodes."""
    started = number * 100_000 * SECOND
    ended = started + (90_000 + 1_800 * (7 * number % 5)) * SECOND
    key = ("lab", str(number))
    return Job(*key, name="nightly", state="COMPLETED", node_count=4, started_ns=started, ended_ns=ended)


def steps_of(run_id: str, number: int) -> dict[str, list[int | str]]:
    """40 to 43 ms a step; only some are there of the run in progress."""
    steps = STEPS_SO_FAR if number == RUNS else STEPS
    noise = np.random.default_rng(number).normal(1.0, 0.02, steps)
    rows = [(step, rank) for step in range(steps) for rank in (0, 1)]
    nanoseconds = [int((40_000_000 + 1_000_000 * (number % 4)) * noise[step]) for step, _ in rows]
    defaults: dict[str, list[int | str]] = {column.name: [0] * len(rows) for column in STEP.columns}
    values: dict[str, list[int | str]] = {
        "ts_ns": [number * 1000 * SECOND + step * SECOND for step, _ in rows],
        "run_id": [run_id] * len(rows),
        "step": [step for step, _ in rows],
        "rank": [rank for _, rank in rows],
        "duration_seconds": [*nanoseconds],
        "compute_seconds": [*nanoseconds],
    }
    return defaults | values


@pytest.fixture(scope="session")
def server_to_ask(home_to_ask: Path) -> Iterator[str]:
    """Yield the address at which a real server over that store answers."""
    with answering(home_to_ask) as url:
        yield url


@pytest.fixture
def verb(home_to_ask: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Verb:
    """Return the exit code and both outputs of a verb over that local store."""
    for name in ("CROSSWIND_SERVER", "CROSSWIND_TOKEN", "CROSSWIND_TOKEN_FILE", "CROSSWIND_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CROSSWIND_HOME", str(home_to_ask))
    monkeypatch.setenv("CROSSWIND_SYSTEM", "lab")
    return asking(capsys)
