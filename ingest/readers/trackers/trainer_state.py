"""Runs of Hugging Face's Trainer, from its trainer_state.json."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.imported import imported_id
from crosswind.data.schema.run import Run, RunState
from crosswind.ingest.reader.lines import plain_head, whole_text
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.scalars import flat, storable
from crosswind.ingest.readers.trackers.progress_rows import SECOND_NS, Value, fault_of, progress

FILE_LIMIT = 1 << 26  # bytes of text
CHECKPOINT = re.compile(r"checkpoint-([0-9]+)")
CONFIGURATION = ("max_steps", "num_train_epochs", "train_batch_size", "trial_params")
NOTE = "has no times: the file's own time is that of all values, and of the end"


@dataclass(frozen=True)
class TrainerStateReader:
    """One run per state: all values logged up to its step."""

    name: ClassVar[str] = "trainer_state"
    description: ClassVar[str] = "Hugging Face Trainer's trainer_state.json (also gzip)"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether the file begins as a JSON object with the keys of such a state."""
        text = plain_head(head)
        keys = ('"best_model_checkpoint"', '"global_step"', '"log_history"')
        return text.lstrip().startswith("{") and all(key in text for key in keys)

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Run | pa.Table]:
        """Yield the values, then their run; nothing for a checkpoint with a later state next to it.

        Source: transformers.trainer_callback.TrainerState. Raises: MalformedError, UnavailableError.
        """
        report.is_timed_by_file = True
        if later := _later(path):
            report.notes.append(f"{later} has all of this and more: left out")
            return
        state = _state(path, report)
        history = [entry for entry in state["log_history"] if isinstance(entry, dict)]  # type: ignore[attr-defined]
        ended_ns = path.stat().st_mtime_ns
        first = json.dumps(history[:1], sort_keys=True)
        run_id = imported_id(self.name, context.system, state.get("trial_name"), state.get("max_steps"), first)
        yield from progress(run_id, _values(history, ended_ns, report), report)
        if not report.read:
            report.notes.append("nothing was logged: no run")
            return
        report.read += 1
        report.notes.append(NOTE)
        seconds = next((entry["train_runtime"] for entry in reversed(history) if "train_runtime" in entry), None)
        is_known = isinstance(seconds, int | float) and 0 < seconds < 1e9
        yield Run(
            run_id,
            context.workload or "unknown",
            context.system,
            RunState.COMPLETED if is_known else RunState.LOST,
            configuration=flat({name: state.get(name) for name in CONFIGURATION}),
            started_ns=ended_ns - round(seconds * SECOND_NS) if is_known and seconds is not None else None,
            ended_ns=ended_ns,
            tags={"imported_from": self.name, "time_from": "modification time of the file"} | _facts(state),
        )


def _later(path: Path) -> str:
    """Return a later state next to this one's folder that has all of this one's values; empty when there is none."""
    folder = path.resolve().parent
    match = CHECKPOINT.fullmatch(folder.name)
    if not match:
        return ""
    steps = [
        int(checkpoint[1]) for sibling in folder.parent.iterdir() if (checkpoint := CHECKPOINT.fullmatch(sibling.name))
    ]
    candidates = [folder.parent / path.name, folder.parent / f"checkpoint-{max(steps)}" / path.name]
    later = [candidate for candidate in candidates if candidate.is_file() and candidate.parent != folder]
    return str(later[0]) if later else ""


def _state(path: Path, report: Report) -> Mapping[str, object]:
    try:
        state = json.loads(whole_text(path, report, limit=FILE_LIMIT))
    except (ValueError, RecursionError) as error:
        raise MalformedError(f"{path}: no JSON: {error}") from error
    if not isinstance(state, dict) or not isinstance(state.get("log_history"), list):
        raise MalformedError(f"{path}: expected an object with a list log_history")
    return state


def _facts(state: Mapping[str, object]) -> dict[str, str]:
    named = state.get("trial_name")
    return {"trial": storable(str(named))} if named else {}


def _values(history: list[dict[str, object]], ts_ns: int, report: Report) -> Iterator[Value]:
    """Yield the values of each entry's step."""
    for number, entry in enumerate(history, 1):
        step = entry.get("step")
        if isinstance(step, bool) or not isinstance(step, int):
            report.skip(number, json.dumps(entry)[:200], f"entry {number} of log_history has no step")
            continue
        for name, logged in entry.items():
            if name == "step" or isinstance(logged, bool) or not isinstance(logged, int | float):
                continue
            value = Value(ts_ns, step, name, _real(logged))
            if fault := fault_of(value):
                report.skip(number, name, fault)
            else:
                yield value


def _real(value: float) -> float:
    """Return the number as a float; infinite for a larger whole number."""
    try:
        return float(value)
    except OverflowError:
        return float("inf")
