import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.ingest.probe.adapters.launched import PROGRAMS
from tests.models.stragglers.made_up_steps import USUAL, Late, step_rows

from crosswind.data.lake.lake import to_table
from crosswind.data.lake.steps_summary import rank_steps
from crosswind.data.schema.errors import InvalidInputError, NotFoundError
from crosswind.data.schema.run import Rank, Run, RunState
from crosswind.data.schema.steps import COLLECTIVE, STEP
from crosswind.data.store.store import Store
from crosswind.ingest.load.load import load_spool
from crosswind.models.stragglers.detector import PHASES, StepRows
from crosswind.models.stragglers.live import RunWatch, stragglers_of_run

LATE, DELAY_MS = 1, 200
NOTICED_STEPS = 20  # steps and not seconds: on a busy machine each takes longer


def put(store: Store, run_id: str, rows: StepRows, ranks: int, *, began: int = 1, **facts: object) -> None:
    """A run with these steps; times are stored in nanoseconds."""
    state = RunState(str(facts.get("state", "completed")))
    with store.catalog.write() as session:
        session.runs.merge(Run(run_id, "toy", "lab", state, ranks, started_ns=began))
        for rank in range(ranks):
            session.ranks.merge(Rank(run_id, rank, f"n{rank}", 100, began))
    columns = {f"{phase}_seconds": (rows.phases[:, place] * 1e9).astype(int) for place, phase in enumerate(PHASES)}
    comm = (rows.comm * 1e9).astype(int)
    columns |= {"comm_seconds": comm, "duration_seconds": sum(columns.values()) + comm}
    columns |= {"ts_ns": rows.ts_ns + began, "step": rows.step, "rank": rows.rank}
    table = {name: values.tolist() for name, values in columns.items()}
    store.lake.append(f"{run_id}-{rows.step.min()}", to_table(STEP, {**table, "run_id": [run_id] * len(comm)}))


def part(rows: StepRows, first: int, end: int) -> StepRows:
    which = (rows.step >= first) & (rows.step < end)
    return StepRows(rows.step[which], rows.rank[which], rows.ts_ns[which], rows.phases[which], rows.comm[which])


@pytest.fixture(scope="module")
def late_backward(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a real DDP training in which rank 1 is 200 ms late in the middle of every backward pass."""
    folder = tmp_path_factory.mktemp("late")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    program = [str(PROGRAMS / "late_backward.py"), str(LATE), str(DELAY_MS), "30"]
    own = {"CROSSWIND_SPOOL": str(folder / "spool"), "CROSSWIND_RUN_ID": "late", "OMP_NUM_THREADS": "1"}
    subprocess.run([*torchrun, *program], env=os.environ | own, check=True, capture_output=True)
    with Store.open(folder / "home") as store:
        load_spool(store, folder / "spool")
    return folder / "home"


@pytest.mark.thorough
def test_the_rank_that_is_late_in_backward_is_named_within_twenty_steps(late_backward: Path) -> None:
    with Store.open(late_backward) as store:
        answer = stragglers_of_run(store, "late")
        seconds, ended_ns = recorded(store, "late")
    [episode] = [one for one in answer.now if one.rank == LATE]
    reported_ns = episode.began_ns + round(episode.noticed_after_seconds * 1e9)
    until = (ended_ns >= episode.began_ns) & (ended_ns <= reported_ns)
    assert episode.phase == "compute"
    assert 0 < until.sum() <= NOTICED_STEPS
    assert seconds[:, LATE].min() >= DELAY_MS / 1000
    lag_seconds = float(np.mean(seconds[until, LATE] - seconds[until, 1 - LATE]))
    assert episode.lag_seconds == pytest.approx(lag_seconds, rel=0.2)
    assert answer.warnings == ()
    assert answer.slowdown is not None
    assert answer.slowdown.rank == LATE
    assert answer.slowdown.without[LATE] > max(1.2, answer.slowdown.without[1 - LATE])


def recorded(store: Store, run_id: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the seconds of each step without waiting, (n_steps, n_ranks), and when the late rank ended it."""
    rows = rank_steps(store.lake, run_id, (), columns=("step", "rank", "ts_ns", "duration_seconds", "comm_seconds"))
    rows["local"] = rows["duration_seconds"] - rows["comm_seconds"]
    ended = rows[rows["rank"] == LATE].sort_values("step")["ts_ns"]
    return rows.pivot(index="step", columns="rank", values="local").to_numpy(), ended.to_numpy(np.int64)


def test_a_run_in_progress_is_followed(tmp_path: Path) -> None:
    rows = step_rows(4, 200, Late(2, 0.4 * USUAL, "input", 100, 150))
    with Store.open(tmp_path) as store:
        put(store, "r", part(rows, 0, 90), 4, state="running")
        watch = RunWatch.of(store, "r")
        calm = watch.look()
        put(store, "r", part(rows, 90, 130), 4, state="running")
        slow = watch.look()
        put(store, "r", part(rows, 130, 200), 4)
        over = watch.look()
    assert (calm.episodes, calm.steps, calm.state) == ((), 90, "running")
    assert [(current.rank, current.phase, current.last_step) for current in slow.now] == [(2, "input", None)]
    assert (over.now, over.steps, over.state) == ((), 200, "completed")
    [episode] = over.episodes
    assert 150 <= (episode.last_step or 0) < 165


def test_a_lag_that_earlier_runs_had_is_usual(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        for number in range(5):
            put(store, f"r{number}", step_rows(3, 60, Late(0, 0.3 * USUAL), seed=number), 3, began=1 + number * 10**12)
        first, last = stragglers_of_run(store, "r0"), stragglers_of_run(store, "r4")
    assert [episode.rank for episode in first.now] == [0]  # nothing tells yet that it always is
    assert last.episodes == ()


def test_stages_of_a_pipeline_are_compared_among_themselves(tmp_path: Path) -> None:
    rows = step_rows(4, 100, Late(2, USUAL), Late(3, USUAL))
    groups = ["pipeline stage0>stage1 0>2", "pipeline stage0>stage1 1>3"]
    facts = {"run_id": ["r", "r"], "rank": [0, 1], "step": [0, 0], "sequence": [0, 0], "ts_ns": [1, 1]}
    with Store.open(tmp_path) as store:
        put(store, "r", rows, 4)
        assert stragglers_of_run(store, "r").episodes != ()
        store.lake.append("transfers", to_table(COLLECTIVE, {**facts, "group": groups}))
        assert stragglers_of_run(store, "r").episodes == ()


def test_a_missing_rank_of_a_run_in_progress_is_told(tmp_path: Path) -> None:
    rows = step_rows(4, 100)
    kept = rows.rank != 3
    there = StepRows(rows.step[kept], rows.rank[kept], rows.ts_ns[kept], rows.phases[kept], rows.comm[kept])
    with Store.open(tmp_path) as store:
        put(store, "r", there, 4, state="running")
        answer = stragglers_of_run(store, "r")
    assert (answer.silent_ranks, answer.episodes) == ((3,), ())
    assert answer.warnings == ("no recent steps have come of these ranks: 3",)


@pytest.mark.parametrize(
    ("ranks", "steps", "factor", "warning"),
    [
        (1, 50, 1.0, "it has one rank, which has no peers"),
        (2, 3, 1.0, "3 steps of several ranks are there, more than 5 are needed"),
        (2, 50, 0.0, "no rank recorded waiting for others"),
    ],
)
def test_what_cannot_be_told_is_said(tmp_path: Path, ranks: int, steps: int, factor: float, warning: str) -> None:
    rows = step_rows(ranks, steps)
    with Store.open(tmp_path) as store:
        put(store, "r", StepRows(rows.step, rows.rank, rows.ts_ns, rows.phases, rows.comm * factor), ranks)
        answer = stragglers_of_run(store, "r")
    assert (answer.episodes, answer.slowdown) == ((), None)
    assert answer.warnings[0].startswith(warning)


def test_a_run_without_steps_or_none_at_all(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        with store.catalog.write() as session:
            session.runs.merge(Run("r", "toy", "lab", RunState.RUNNING, 2))
        assert stragglers_of_run(store, "r").warnings[0].startswith("no steps of it are stored")
        with pytest.raises(NotFoundError, match="nobody"):
            stragglers_of_run(store, "nobody")


def test_more_ranks_than_memory_is_there_for_are_refused(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        with store.catalog.write() as session:
            session.runs.merge(Run("r", "toy", "lab", RunState.RUNNING, 2_000_000_000))
        with pytest.raises(InvalidInputError, match="run 'r': 2000000000 ranks, expected 65536 at most"):
            stragglers_of_run(store, "r")


def test_rows_beyond_the_ranks_known_are_left(tmp_path: Path) -> None:
    rows = step_rows(3, 50)
    with Store.open(tmp_path) as store:
        put(store, "r", rows, 3)
        table = to_table(STEP, {"ts_ns": [1], "run_id": ["r"], "rank": [-5], "step": [1]})
        store.lake.append("odd", table)
        assert stragglers_of_run(store, "r").steps == 50
    assert np.all(rows.rank >= 0)
