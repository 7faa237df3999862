import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.serving import own_client

from crosswind.api.app import create_app
from crosswind.data.lake.lake import to_table
from crosswind.data.schema.job import Job
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store

SECOND = 1_000_000_000
START_NS = 1_767_323_045_000_000_006  # 2026-01-02T03:04:05.000000006Z
STEPS = 8
RANKS = 2


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of eight completed runs r0 ... r7 of one cohort, one of another, two jobs and one batch."""
    home = tmp_path_factory.mktemp("filled") / "store"
    with Store.open(home) as opened:
        with opened.catalog.write() as session:
            for number in range(8):
                session.runs.merge(run(f"r{number}", number))
            session.runs.merge(Run("other", "bert", "lab", RunState.FAILED, job_id="12_3", started_ns=START_NS - 1))
            session.add_batch("b1", "agent", row_count=128, skipped=2)
        failed = Job("lab", "12_3", state="FAILED", nodes=("n1",), started_ns=START_NS, fields={"Q": "x"})
        opened.jobs.put(failed, Job("lab", "13", state="PENDING"))
        opened.lake.append("test", to_table(STEP, step_columns()))
    return home


@pytest.fixture
def store(filled: Path, tmp_path: Path) -> Iterator[Store]:
    """The filled store, for one test."""
    with Store.open(Path(shutil.copytree(filled, tmp_path / "store"))) as opened:
        yield opened


def run(run_id: str, number: int) -> Run:
    started = START_NS + number * 60 * SECOND
    return Run(
        run_id,
        "nanogpt",
        "lab",
        RunState.COMPLETED,
        world_size=RANKS,
        configuration={"batch": 8, "fused": True},
        nodes=("n1",),
        started_ns=started,
        ended_ns=started + 30 * SECOND,
        exit_code=0,
        command=("torchrun", "train.py"),
        tags={"branch": "main"},
    )


def step_columns() -> dict[str, list[int | str | None]]:
    places = [(f"r{n}", n, step, rank) for n in range(8) for step in range(STEPS) for rank in range(RANKS)]
    milliseconds = [100 + 3 * (n % 3) + step % 2 for _, n, step, _ in places]
    return {
        "ts_ns": [START_NS + n * 60 * SECOND + step * SECOND for _, n, step, _ in places],
        "run_id": [run_id for run_id, _, _, _ in places],
        "rank": [rank for _, _, _, rank in places],
        "step": [step for _, _, step, _ in places],
        "duration_seconds": [ms * 1_000_000 for ms in milliseconds],
        "input_seconds": [5_000_000] * len(places),
        "compute_seconds": [(ms - 25) * 1_000_000 for ms in milliseconds],
        "comm_seconds": [20_000_000] * len(places),
        "checkpoint_seconds": [0] * len(places),
        "other_seconds": [0] * len(places),
        "minor_faults": [None if step == 0 else 7 for _, _, step, _ in places],
    }


@pytest.fixture
def client(store: Store) -> Iterator[TestClient]:
    with own_client(create_app(store), base_url="http://localhost:8000") as opened:
        yield opened
