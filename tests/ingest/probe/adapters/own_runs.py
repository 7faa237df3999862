"""Record of a program of `programs/` in which a callback opens the runs."""

from pathlib import Path

from tests.ingest.probe.adapters.launched import THIS_PYTHON, by_hand
from tests.ingest.spooled import records, rows

FAILED_TRAINED_FAILED = {
    "trained": ("failed", 3),
    "trained-part2": ("completed", 6),
    "trained-part3": ("failed", 3),
}  # as in programs/own_runs.py


def own_runs(folder: Path, program: str, python: Path = THIS_PYTHON) -> dict[str, tuple[str, int]]:
    """The state and the number of steps of every run."""
    by_hand(folder, (program,), ranks=1, python=python)
    ended = [record for record in records(folder / "spool", "run") if record["state"] != "running"]
    steps = rows(folder / "spool", "step")["run_id"].value_counts()
    return {str(record["run_id"]): (str(record["state"]), int(steps[record["run_id"]])) for record in ended}
