"""The note that a Python process under `crosswind run` leaves at its end: its steps, and its error if it had one."""

import os
import sys
import time
from pathlib import Path
from typing import Any

from crosswind.ingest.probe.crash import exit_words, reason_of
from crosswind.ingest.probe.identity import last_made
from crosswind.ingest.probe.place import Place, is_numbered, node_name
from crosswind.ingest.spool.notes import append_note


def note_end(program: str, *, is_launcher: bool = False) -> None:
    """Append this process's note, and one for each child whose end its error reports. Raises: OSError."""
    spool, run_id = Path(os.environ["CROSSWIND_SPOOL"]), os.environ["CROSSWIND_RUN_ID"]
    error = getattr(sys, "last_value", None)
    children = list(_children(error))
    for child in children:
        append_note(spool, run_id, {"program": program, "node": node_name(), **child})
    if children or (is_launcher and error is None):
        return
    note: dict[str, object] = {"pid": os.getpid(), "program": program, "saw": "torch" if "torch" in sys.modules else ""}
    made = last_made()
    note |= {"rank": made.rank if made else _rank(), "steps": made.steps if made else 0, "node": node_name()}
    reason = reason_of(error) if error is not None else made.reason if made else None
    if reason is not None:
        note |= {"ended_ns": time.time_ns(), "error": reason}
    append_note(spool, run_id, note)


def _rank() -> int | None:
    return Place.from_environment().rank if is_numbered() else None


def _children(error: Any) -> list[dict[str, object]]:
    """Return the ends of children in an error of torchrun's (ChildFailedError) or of torch.multiprocessing.spawn's."""
    failures = getattr(error, "failures", None)
    if isinstance(failures, dict):
        return [
            {
                "rank": rank,
                "pid": getattr(failure, "pid", None),
                "ended_ns": int(getattr(failure, "timestamp", 0)) * 1_000_000_000,
                "error": _exit_words(getattr(failure, "exitcode", None)),
                "is_secondhand": True,
            }
            for rank, failure in failures.items()
            if isinstance(rank, int)
        ]
    index = getattr(error, "error_index", None)
    if not isinstance(index, int):
        return []
    name = getattr(error, "signal_name", None)
    reason = reason_of(error) if not hasattr(error, "exit_code") else _exit_words(error.exit_code, name)
    return [{"rank": index, "pid": getattr(error, "error_pid", None), "error": reason, "is_secondhand": True}]


def _exit_words(code: object, name: str | None = None) -> str:
    return exit_words(code if isinstance(code, int) else 1, name)
