"""Training in forks of one process: as the program that is asked for, with its options, environment and output."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crosswind.ingest.lab.warm import Trainer, trainer

PROGRAM = (sys.executable, "-m", "crosswind.ingest.lab.warm")


@pytest.fixture(scope="module")
def warm() -> Iterator[Trainer]:
    pytest.importorskip("torch")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        with trainer() as begun:
            yield begun


def trained(warm: Trainer, folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    own = {"CROSSWIND_RUN_ID": folder.name, "CROSSWIND_SPOOL": str(folder / "spool")}
    environment = os.environ | warm.environment | own
    return subprocess.run(
        (*PROGRAM, *words), env=environment, cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )


def test_a_run_is_trained_and_recorded_with_what_it_inherits(warm: Trainer, tmp_path: Path) -> None:
    before = warm.cpu_seconds()
    done = trained(warm, tmp_path, "--ranks=2", "--steps=3", "--batch=1")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("loss ")
    assert done.stdout.endswith(" after 3 steps\n")
    assert warm.cpu_seconds() > before
    segments = sorted(path.stem.partition(".")[2] for path in (tmp_path / "spool").glob("*.segment"))
    assert segments == [f"{tmp_path.name}-rank0", f"{tmp_path.name}-rank1"]


def test_the_next_one_has_its_own_options_and_exit_code(warm: Trainer, tmp_path: Path) -> None:
    refused = trained(warm, tmp_path, "--steps=many")
    assert refused.returncode == 2
    assert "usage: train.py" in refused.stderr
    assert "invalid int value: 'many'" in refused.stderr


def test_a_process_that_ends_is_a_failure_that_says_so(tmp_path: Path) -> None:
    with trainer() as begun:
        os.kill(begun.process, 9)
        failed = trained(begun, tmp_path, "--ranks=1", "--steps=1")
    assert (failed.returncode, failed.stderr) == (1, "the process that trains has ended\n")
