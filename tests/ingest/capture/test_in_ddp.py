"""`crosswind run --trace` around real DDP training over gloo: the traces are there, and our reader reads them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.traces.kineto import KinetoReader
from crosswind.models.traces.steps import steps

TRAIN = ("-m", "crosswind.ingest.lab.train", "--batch", "2")
CROSSWIND = (sys.executable, "-m", "crosswind.cli.main")


def run(home: Path, *words: str) -> str:
    """Run a verb, and return its output."""
    names = os.environ | {"CROSSWIND_HOME": str(home), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([*CROSSWIND, *words], env=names, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ranks_of(home: Path) -> dict[int, int]:
    """The traced ranks, each with its number of marked steps, as our reader reads them."""
    read = {}
    for path in home.glob("traces/*/*.json.gz"):
        for trace in KinetoReader().read(path, Report(str(path), "kineto")):
            read[trace.rank] = len(steps(trace))
    return read


def test_two_ranks_one_of_them_asked_for(tmp_path: Path) -> None:
    program = (sys.executable, *TRAIN, "--ranks", "2", "--steps", "16")
    output = run(tmp_path, "run", "--no-agent", "--trace", "1:12-13", "--", *program)
    assert output.splitlines()[-1].startswith("loss")
    assert len(output.splitlines()) == 1  # nothing of the profiler's
    assert ranks_of(tmp_path) == {1: 2}
    shown = run(tmp_path, "show")
    assert "trace.rank1.step12-13 asked for (by hand)" in shown
    assert f"traces/{next(tmp_path.glob('traces/*')).name}/rank1.step12-13.json.gz" in shown


@pytest.mark.thorough
def test_the_slow_rank_of_four_is_traced_and_named(tmp_path: Path) -> None:
    program = (sys.executable, *TRAIN, "--ranks", "4", "--steps", "70", "--fault", "slow_input:2:300")
    words = ("--trace", "auto", "--trace-ranks", "2", "--trace-pause", "0", "--trace-captures", "8")
    run(tmp_path, "run", "--no-agent", *words, "--", *program)
    assert ranks_of(tmp_path)[2] == 3
    assert re.search(r"trace\.rank2\.step\S+ culprit \(", run(tmp_path, "show"))
