"""Paths of what was computed from a run's rows, next to the sets: `rollup=NAME/run-….EXTENSION`."""

import hashlib
from pathlib import Path

from crosswind.data.lake.lake import Lake


def rollups_of(lake: Lake, run_id: str) -> list[Path]:
    """Every file that was computed from a run's rows."""
    return list(lake.root.glob(f"rollup=*/run-{_digest(run_id)}.*"))


def rollup_place(lake: Lake, name: str, run_id: str, extension: str) -> Path:
    """The file of one run; run ids may hold what names of files may not."""
    return lake.root / f"rollup={name}" / f"run-{_digest(run_id)}.{extension}"


def _digest(run_id: str) -> str:
    return hashlib.sha256(run_id.encode()).hexdigest()[:32]
