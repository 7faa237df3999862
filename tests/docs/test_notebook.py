"""The notebook about tuning in Python, on a folder of its own; its part on a cluster is in test_on_real_slurm.py."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.examples import ROOT
from tests.docs.notebook import code_cells

from crosswind import tune

EXAMPLES = ROOT / "docs" / "examples" / "tuning"


def test_the_notebook_tunes_a_training(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    for name in ("python.ipynb", "train.py"):
        shutil.copy(EXAMPLES / name, tmp_path)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CROSSWIND_")}
    environment = kept | {"CROSSWIND_HOME": str(tmp_path / "home"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(Path(__file__).with_name("notebook.py")), "python.ipynb", "slurm"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with tune.study("digits", folder=tmp_path / "studies") as study:
        rows, best = study.trials, study.best
    assert len(rows) == 12
    assert set(rows["state"]) <= {"done", "pruned"}
    assert repr(best) == done.stdout.splitlines()[0]
    assert best.value == rows["value"].min() < 0.5
    assert best.outcomes["accuracy"] > 0.85


def test_the_notebook_is_one_that_a_kernel_reads() -> None:
    notebook = json.loads((EXAMPLES / "python.ipynb").read_text())
    assert notebook["nbformat"] == 4
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    assert all(cell["outputs"] == [] for cell in notebook["cells"] if cell["cell_type"] == "code")
    assert "array.sbatch" in "".join(code_cells(EXAMPLES / "python.ipynb"))
