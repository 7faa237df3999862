"""Notes that the processes of one `crosswind run` leave when they end: a line of JSON each, for the wrapper alone."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crosswind.data.files import PRIVATE_FILE

MAX_LINE = 4000  # that one write appends as a whole
MAX_BYTES = 4 * 1024 * 1024


def notes_path(spool: Path, run_id: str) -> Path:
    """Return the file of a run's notes."""
    return spool / f"{run_id}.notes"


def append_note(spool: Path, run_id: str, note: Mapping[str, object]) -> None:
    """Append a note; one that is too long is left out. Raises: OSError."""
    line = json.dumps(note).encode() + b"\n"
    if len(line) > MAX_LINE:
        return
    fd = os.open(notes_path(spool, run_id), os.O_WRONLY | os.O_APPEND | os.O_CREAT, PRIVATE_FILE)
    try:
        os.write(fd, line)
    finally:
        os.close(fd)


def taken_notes(spool: Path, run_id: str) -> list[dict[str, Any]]:
    """Return the notes of a run, and remove them; lines that are no notes are left out."""
    path = notes_path(spool, run_id)
    try:
        with path.open("rb") as file:
            lines = file.read(MAX_BYTES).splitlines()
        path.unlink(missing_ok=True)
    except OSError:  # nobody left any, or the folder is gone
        return []
    return [note for note in map(_note, lines) if note is not None]


def _note(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
