"""kill -9 for real: of a rank, of the wrapper, of an ingest; what was written before is there, and nothing twice."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.waiting import until

from crosswind.cli.main import main
from crosswind.data.schema.metric import Column, Kind, MetricSet
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store
from crosswind.ingest.probe.run import FLUSH_SECONDS
from crosswind.ingest.spool.registration import Announcement, announced
from crosswind.ingest.spool.spool import SpoolWriter, sealed_segments

CROSSWIND = [sys.executable, "-m", "crosswind.cli.main"]
TRAIN = [sys.executable, "-m", "crosswind.ingest.lab.train", "--ranks", "2"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CROSSWIND_SPOOL", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return tmp_path / "home"


@contextmanager
def started(*command: str) -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        yield process
    finally:
        with process:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def spooled(home: Path, origin: str) -> int:
    """Bytes that writers of this origin have appended so far."""
    return sum(path.stat().st_size for path in (home / "spool").glob(f"*{origin}.*"))


def stored_run(home: Path) -> Run:
    assert main(["ingest"]) == 0
    assert list((home / "spool").glob("*.open")) == []
    with Store.open(home) as store, store.catalog.read() as session:
        [run] = session.runs.find(limit=5)
        return run


def steps_of_rank(home: Path, rank: int) -> list[tuple[int, int]]:
    """Number and end of every stored step."""
    with Store.open(home) as store, store.lake.connect() as connection:
        query = "select step, (ts_ns + duration_seconds * 1e9)::bigint from step where rank = ? order by step"
        return connection.execute(query, [rank]).fetchall()  # type: ignore[no-any-return]


def test_a_killed_rank_fails_its_run_and_keeps_its_steps_up_to_the_last_flush(home: Path) -> None:
    with started(*CROSSWIND, "run", "--no-ingest", "--", *TRAIN, "--steps", "5000", "--batch", "2") as process:
        until(lambda: spooled(home, "-rank1") > 4000)
        [victim] = [rank for rank in announced(home / "spool").ranks if rank.rank == 1]
        os.kill(victim.pid, signal.SIGKILL)
        killed_ns = time.time_ns()
        code = process.wait(60)
    assert code in {1, signal.SIGKILL}  # of the rank that is seen to end first: the killed one, or the one that lost it
    run = stored_run(home)
    assert (run.state, run.exit_code, run.workload) == (RunState.FAILED, code, "byte-transformer")
    steps = steps_of_rank(home, 1)
    assert [number for number, _ in steps] == list(range(len(steps)))
    # The writer's thread wakes late on a busy machine: three times its interval, and a step.
    assert (killed_ns - steps[-1][1]) * 1e-9 < 3 * FLUSH_SECONDS + 0.5
    assert announced(home / "spool").ranks == ()


TRAIN_ALONE = """
import sys, time
import crosswind
with crosswind.run(workload="toy") as run:
    for step in run.steps(range(int(sys.argv[1]))):
        time.sleep(0.05)
"""


def test_a_program_outlives_its_killed_wrapper_and_says_itself_how_it_ended(home: Path) -> None:
    with started(*CROSSWIND, "run", "--", sys.executable, "-c", TRAIN_ALONE, "30") as process:
        until(lambda: announced(home / "spool").ranks != ())
        process.kill()
        process.wait()
        until(lambda: announced(home / "spool").ranks == ())
        until(lambda: list((home / "spool").glob("*-rank0.open")) == [])
    run = stored_run(home)
    assert (run.state, run.exit_code, run.workload) == (RunState.COMPLETED, None, "toy")
    assert run.command[-1] == "30"
    assert [number for number, _ in steps_of_rank(home, 0)] == list(range(30))


def test_a_run_whose_wrapper_and_program_were_killed_is_lost_and_not_running_for_ever(home: Path) -> None:
    with started(*CROSSWIND, "run", "--", sys.executable, "-c", TRAIN_ALONE, "5000") as process:
        until(lambda: spooled(home, "-rank0") > 2000)
        assert main(["ingest"]) == 0  # living writers are left alone
        [rank] = announced(home / "spool").ranks
        assert isinstance(rank, Announcement)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        until(lambda: announced(home / "spool").ranks == ())
    assert stored_run(home).state is RunState.LOST
    assert len(steps_of_rank(home, 0)) > 0


LINK = MetricSet(
    "link", "a link", (Column("ts_ns", "", Kind.KEY), Column("device", "", Kind.KEY, "string"), Column("sent", ""))
)
DAY = 86_400_000_000_000
SEGMENTS = 40
KILLS_AT_RANDOM = """
import os, random, sys, time
import crosswind.cli.verbs.ingest.taking, crosswind.models, sqlalchemy.dialects.sqlite, alembic.command
from crosswind.cli.main import main
chance, killed = random.Random(int(sys.argv[1])), 0
for _ in range(30):
    if killed == 10:
        break
    child = os.fork()
    if child == 0:
        os._exit(main(["ingest"]))
    time.sleep(chance.uniform(0.0, float(sys.argv[2])))
    os.kill(child, 9)
    killed += os.WIFSIGNALED(os.waitpid(child, 0)[1])
print(killed)
"""


def fill(spool: Path) -> None:
    for number in range(SEGMENTS):
        with SpoolWriter(spool, f"n{number}") as writer:
            times = [day * DAY + number for day in range(3)]
            writer.append_rows(LINK, {"ts_ns": times, "device": ["a", "b", "c"], "sent": [number] * 3})
            writer.append_rows(STEP, {"ts_ns": [number], "run_id": [f"r{number}"], "step": [number], "rank": [0]})
            run = {"run_id": f"r{number}", "workload": "toy", "system": "lab"}
            writer.append_record("run", run | {"state": "running"})
            writer.append_record("run", run | {"state": "completed", "exit_code": 0})


def contents(home: Path) -> dict[str, object]:
    with Store.open(home) as store:
        link = store.lake.frame("select * from link order by ts_ns, device").to_dict("list")
        step = store.lake.frame("select run_id, step from step order by step").to_dict("list")
        with store.catalog.read() as session:
            runs = sorted((run.run_id, run.state) for run in session.runs.find(limit=1000))
            totals = session.ingested()
    files = sorted(path.relative_to(home).as_posix() for path in (home / "lake").rglob("*") if path.is_file())
    return {"link": link, "step": step, "runs": runs, "totals": totals, "files": files}


def test_an_ingest_that_is_killed_again_and_again_stores_everything_exactly_once(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(home / "spool")
    Store.open(home).close()
    shutil.copytree(home, tmp_path / "undisturbed")
    began = time.monotonic()
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "undisturbed"))
    assert main(["ingest"]) == 0
    needed = time.monotonic() - began
    monkeypatch.setenv("CROSSWIND_HOME", str(home))
    seed = random.randrange(1_000_000)
    command = [sys.executable, "-c", KILLS_AT_RANDOM, str(seed), str(needed / 4)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[-1]) > 0, "no kill came before the end"
    assert main(["ingest"]) == 0
    assert sealed_segments(home / "spool") == []
    assert contents(home) == contents(tmp_path / "undisturbed"), f"seed {seed}"
