"""Removal of parts that count no more: readers from before they were replaced may still open them."""

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from crosswind.data.files import sync
from crosswind.data.lake.locks import READING, alone
from crosswind.data.lake.parts import compacted_span, manifest_of
from crosswind.data.lake.publish import WRITING

ABANDONED_SECONDS = 6 * 3600.0


def remove_replaced(root: Path, paths: Sequence[Path], patience_seconds: float = 0.0) -> list[Path]:
    """Removes replaced parts after a moment at which nobody reads: later readers pass over them.

    Those that had to stay, for lack of such a moment. Raises: OSError.
    """
    if not paths or not _does_nobody_read(root, patience_seconds):
        return list(paths)
    for path in paths:
        path.unlink(missing_ok=True)
        if compacted_span(path.name):
            manifest_of(path).unlink(missing_ok=True)
    for folder in {path.parent for path in paths}:
        sync(folder)
    return []


def remove_lone_manifests(day: Path) -> None:
    """Removes manifests without their file, of a compaction that was killed. Raises: OSError."""
    for manifest in day.glob("_held-*.json"):
        if not (day / f"{manifest.stem.removeprefix('_held-')}.parquet").exists():
            manifest.unlink(missing_ok=True)


def remove_abandoned(root: Path, older_seconds: float = ABANDONED_SECONDS) -> None:
    """Remove what killed writers left that was written so long ago that nobody can be at it. Raises: OSError."""
    limit = time.time() - older_seconds
    for draft in (root / WRITING).glob("*"):
        with suppress(FileNotFoundError):  # it was published just now
            if draft.stat().st_mtime < limit:
                draft.unlink()


def remove_drafts(root: Path) -> None:
    """Removes what a killed compaction was writing; one process compacts at a time. Raises: OSError."""
    for draft in (root / WRITING).glob("*part-c*.*.*"):
        stem = draft.name.split(".")[-3].removeprefix("_held-")
        if compacted_span(f"{stem}.parquet"):
            draft.unlink(missing_ok=True)


def _does_nobody_read(root: Path, patience_seconds: float) -> bool:
    with alone(root / READING, patience_seconds) as nobody_reads:
        return nobody_reads
