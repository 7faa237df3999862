"""Paths of what was computed from a run's rows, next to the sets: `rollup=NAME/run-….EXTENSION`."""

import hashlib
from pathlib import Path

from crosswind.data.lake.lake import Lake


def rollup_place(lake: Lake, name: str, run_id: str, extension: str) -> Path:
    """The file of one run; run ids may hold what names of files may not."""
    digest = hashlib.sha256(run_id.encode()).hexdigest()[:32]
    return lake.root / f"rollup={name}" / f"run-{digest}.{extension}"
