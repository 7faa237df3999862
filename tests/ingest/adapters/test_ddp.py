"""The order of arrival at DDP's gradient buckets, from PyTorch's flight recorder, in real training of two ranks."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from torch import distributed

from crosswind.data.errors import UnavailableError
from crosswind.data.steps import PHASES
from crosswind.ingest.probe.flight_recorder import FlightRecorder, entries_kept
from crosswind.ingest.spool import RowsFrame, read_frames, sealed_segments

PROGRAM = Path(__file__).parent / "programs" / "late_backward.py"
STEPS, LATE, DELAY_MS = 40, 1, 200


def rows(spool: Path, name: str) -> pd.DataFrame:
    frames = [frame for path in sealed_segments(spool) for frame in read_frames(path)]
    found = [
        pd.DataFrame(each.columns) for each in frames if isinstance(each, RowsFrame) and each.metric_set.name == name
    ]
    return pd.concat(found).reset_index(drop=True)


def trained(spool: Path, delay_ms: float, steps: int, **environment: str) -> str:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", str(PROGRAM)]
    names = os.environ | {"CROSSWIND_SPOOL": str(spool), "OMP_NUM_THREADS": "1"} | environment
    done = subprocess.run(
        [*torchrun, str(LATE), str(delay_ms), str(steps)], env=names, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def spool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The record of a training in which rank 1 is late by 200 ms in the middle of every backward pass."""
    folder = tmp_path_factory.mktemp("late")
    trained(folder, DELAY_MS, STEPS)
    return folder


def test_step_times_tell_nothing(spool: Path) -> None:
    medians = rows(spool, "step").groupby("rank")["duration_seconds"].median()
    assert medians[LATE] == pytest.approx(medians[1 - LATE], rel=0.1)


def test_the_rank_that_is_late_in_backward_is_last_to_arrive(spool: Path) -> None:
    arrivals = rows(spool, "collective").query("step > 0")
    last = arrivals.pivot_table(index=["step", "sequence"], columns="rank", values="ts_ns").groupby("step").last()
    assert len(last) == STEPS - 1
    assert (last[LATE] - last[1 - LATE] > 0.9e6 * DELAY_MS).mean() >= 0.95
    firsts = arrivals.query("sequence == 0").pivot_table(index="step", columns="rank", values="ts_ns")
    assert (firsts[LATE] - firsts[1 - LATE]).abs().median() < 0.5e6 * DELAY_MS  # before the delay both were in time


def test_its_victim_waits_and_it_computes(spool: Path) -> None:
    steps = rows(spool, "step").query("step > 0")
    parts = steps[[f"{phase}_seconds" for phase in PHASES]]
    assert (parts.sum(axis=1) == steps["duration_seconds"]).all()
    comm = steps.groupby("rank")["comm_seconds"].median()
    assert comm[1 - LATE] > 0.9e6 * DELAY_MS
    assert comm[LATE] < 0.2e6 * DELAY_MS


def test_both_ranks_saw_the_same_buckets(spool: Path) -> None:
    columns = ["step", "sequence", "size_bytes", "operation", "group"]
    first, second = (
        rows(spool, "collective").query(f"rank == {rank}").sort_values(columns)[columns].to_numpy().tolist()
        for rank in (0, 1)
    )
    assert first == second
    assert sum(size for step, _, size, _, _ in first if step == 1) == 4 * 4 * (64 * 64 + 64)


def test_the_last_bucket_ends_when_backward_does_and_of_others_nobody_knows(spool: Path) -> None:
    by_step = rows(spool, "collective").sort_values("sequence").groupby(["rank", "step"])["duration_seconds"]
    assert by_step.last().notna().all()
    assert by_step.apply(lambda durations: durations.iloc[:-1].isna().all()).all()


def test_recorded_values_stand_by_step(spool: Path) -> None:
    losses = rows(spool, "progress").query("name == 'loss' and rank == 0")
    assert losses["step"].tolist() == list(range(STEPS))
    assert losses["value"].is_monotonic_decreasing


def test_watched_or_not_by_hook_or_recorder_training_is_the_same(tmp_path: Path) -> None:
    recorded, hooked = trained(tmp_path / "a", 0, 5), trained(tmp_path / "b", 0, 5, TORCH_FR_BUFFER_SIZE="2000")
    unwatched = trained(tmp_path / "c", 0, 5, CROSSWIND_SPOOL="/dev/null/nowhere")
    assert recorded == hooked == unwatched
    for folder in ("a", "b"):
        assert set(rows(tmp_path / folder, "collective")["step"]) == set(range(5))
    assert rows(tmp_path / "b", "collective")["duration_seconds"].notna().all()  # the hook sees every end


def test_a_recorder_that_keeps_much_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_FR_BUFFER_SIZE", "2000")
    assert entries_kept() == 2000
    with pytest.raises(UnavailableError, match="TORCH_FR_BUFFER_SIZE is 2000, expected 1 to 512"):
        FlightRecorder("0")
    assert not distributed.is_initialized()
