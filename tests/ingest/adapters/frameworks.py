"""Training programs in the environment of `make frameworks`, which CROSSWIND_FRAMEWORKS may name."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest
from tests.ingest.adapters.trained import PROGRAMS, STEPS, rows

import crosswind
from crosswind.data.steps import PHASES

ROOT = Path(__file__).parents[3]
PYTHON = Path(os.environ.get("CROSSWIND_FRAMEWORKS", ROOT / ".venv-frameworks")) / "bin" / "python"
LONGEST_SECONDS = 120


@dataclass(frozen=True)
class Record:
    """What two ranks said and recorded."""

    told: list[dict[str, bool]]
    steps: pd.DataFrame
    collectives: pd.DataFrame

    @property
    def is_undisturbed(self) -> bool:
        """Whether both ranks came to the same weights as without the probe, bit for bit."""
        return [rank["is_same"] for rank in self.told] == [True, True]

    @property
    def is_complete(self) -> bool:
        """Whether every rank has every step, and each step's phases sum to it."""
        found = self.steps.sort_values(["rank", "step"])
        parts = found[[f"{phase}_seconds" for phase in PHASES]]
        is_whole = (parts.sum(axis=1) == found["duration_seconds"]) & (parts >= 0).all(axis=1)
        expected = [(rank, step) for rank in (0, 1) for step in range(STEPS)]
        return list(zip(found["rank"], found["step"], strict=True)) == expected and bool(is_whole.all())

    def share_late(self, rank: int, by_ms: float) -> float:
        """In what share of the steps but the first this rank came so much later to the step's first collective."""
        first = self.collectives.query("sequence == 0 and step > 0")
        arrivals = first.pivot_table(index="step", columns="rank", values="ts_ns")
        return float((arrivals[rank] - arrivals[1 - rank] > by_ms * 1e6).sum()) / (STEPS - 1)

    def median_ms(self, rank: int, phase: str) -> float:
        """A phase of this rank's steps."""
        return float(self.steps.query("rank == @rank")[f"{phase}_seconds"].median()) / 1e6


def require(package: str) -> None:
    """Skips where this Python package is not in the environment."""
    finds = [str(PYTHON), "-c", f"import importlib.util as u, sys; sys.exit(not u.find_spec({package!r}))"]
    if not PYTHON.exists() or subprocess.run(finds, check=False).returncode:
        pytest.skip(f"no {package} for {PYTHON}: make frameworks")


def recorded(spool: Path, program: str, *arguments: str, processes: int = 2) -> Record:
    """What came of a program whose ranks are started by hand, or that starts them itself."""
    own = {"CROSSWIND_SPOOL": str(spool), "CROSSWIND_RUN_ID": "trained", "OMP_NUM_THREADS": "1"}
    own |= {"PYTHONPATH": str(Path(crosswind.__file__).parents[1]), "WORLD_SIZE": str(processes)}
    command = [str(PYTHON), str(PROGRAMS / program), *arguments]
    ranks = [
        subprocess.Popen(
            command,
            env=os.environ | own | {"RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(processes)
    ]
    said = [rank.communicate(timeout=LONGEST_SECONDS) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * processes, [errors[-2000:] for _, errors in said]
    told = [json.loads(line) for output, _ in said for line in output.splitlines() if line.startswith("{")]
    return Record(told, rows(spool, "step"), rows(spool, "collective"))
