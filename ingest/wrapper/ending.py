"""The end of a program: completed, stopped or failed, of what, and why it has recorded no steps if it has none."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any

from crosswind.data.schema.errors import ProjectError
from crosswind.data.schema.failure import Failure, failure_words, failures_in
from crosswind.data.schema.run import RunState
from crosswind.data.schema.steps import STEP
from crosswind.ingest.probe.crash import STOPPED_CODES, STOPPING_ERRORS, exit_words
from crosswind.ingest.probe.place import node_name
from crosswind.ingest.spool.notes import taken_notes
from crosswind.ingest.spool.segment import RowsFrame
from crosswind.ingest.spool.segment_reader import read_segment
from crosswind.ingest.wrapper.described import on_one_line

NO_STEPS = "no_steps"  # tag
BY_HAND = "with crosswind.run() as run: for batch in run.steps(loader)"
CALLBACKS = {"jax": BY_HAND, "mpi4py": BY_HAND, "tensorflow": "callbacks=[crosswind.keras.CrosswindCallback()]"}
MOST_FAILURES = 16  # of a run of thousands of ranks, those that tell most


@dataclass(frozen=True)
class Watched:
    """The ways in which steps of a command could be seen."""

    command: Sequence[str]
    injects: bool = True
    reads_lines: bool = False


@dataclass(frozen=True)
class Ending:
    """The end of a run, with the tags that keep it."""

    state: RunState
    tags: Mapping[str, str] = field(default_factory=dict)
    failure_words: str | None = None
    no_steps: str | None = None


def ending_of(spool: Path, run_id: str, exit_code: int, *, stopped_ns: int | None, watched: Watched) -> Ending:
    """Return the end of a program from its exit code, the time of a signal to end, and its processes' notes.

    A run that Ctrl-C or SIGTERM ended has not failed, unless one of its processes had failed before.
    """
    notes = taken_notes(spool, run_id)
    failures = _failures(notes, exit_code, stopped_ns)
    state = _state(exit_code, stopped_ns, failures)
    kept = [_with_step(failure, spool, run_id) for failure in failures] if state is RunState.FAILED else []
    tags = dict(failure.tag() for failure in reversed(kept))
    is_whole = state is RunState.COMPLETED
    no_steps = _why_no_steps(notes, watched) if is_whole and not _has_steps(spool, run_id, notes, watched) else None
    if no_steps:
        tags[NO_STEPS] = no_steps
    return Ending(state, tags, failure_words(kept) if kept else None, no_steps)


def _state(exit_code: int, stopped_ns: int | None, failures: Sequence[Failure]) -> RunState:
    if exit_code == 0:
        return RunState.COMPLETED
    had_failed = any(failure.ended_ns and (stopped_ns is None or failure.ended_ns < stopped_ns) for failure in failures)
    is_told = stopped_ns is not None or exit_code in STOPPED_CODES
    return RunState.STOPPED if is_told and not had_failed else RunState.FAILED


def _failures(notes: Sequence[Mapping[str, Any]], exit_code: int, stopped_ns: int | None) -> list[Failure]:
    """Return the failures in the notes, the first one first; the program's exit code where no process says why."""
    tags: dict[str, str] = {}
    for note in sorted(notes, key=lambda note: not note.get("is_secondhand")):  # what a rank itself says comes later
        if failure := _failure(note):
            name, text = failure.tag()
            tags[name] = text
    failures = failures_in(tags)[:MOST_FAILURES]
    if not failures and exit_code and stopped_ns is None:
        return [Failure(exit_words(exit_code), node=node_name())]
    return failures


def _failure(note: Mapping[str, Any]) -> Failure | None:
    reason, rank, ended, steps = (note.get(name) for name in ("error", "rank", "ended_ns", "steps"))
    if not isinstance(reason, str) or reason.partition(":")[0] in STOPPING_ERRORS or not _is_number(rank, ended, steps):
        return None
    node = note.get("node")
    return Failure(on_one_line(reason), rank, ended or 0, steps, node if isinstance(node, str) else None)


def _with_step(failure: Failure, spool: Path, run_id: str) -> Failure:
    """Return the failure of a rank that could not say it with the step after the last one that it has written."""
    if failure.rank is None or failure.step is not None:
        return failure
    steps = [step for path in sorted(spool.glob(f"*.{run_id}-rank{failure.rank}.*"))[-1:] for step in _steps_in(path)]
    return replace(failure, step=max(steps) + 1) if steps else failure


def _steps_in(path: Path) -> Iterator[int]:
    with suppress(ProjectError, OSError):
        for frame in read_segment(path):
            if isinstance(frame, RowsFrame) and frame.metric_set.name == STEP.name:
                yield from (step for step in frame.columns["step"] if isinstance(step, int))


def _is_number(*values: object) -> bool:
    return all(value is None or type(value) is int for value in values)


def _has_steps(spool: Path, run_id: str, notes: Sequence[Mapping[str, Any]], watched: Watched) -> bool:
    """Return whether any process recorded steps: a rank that was killed has left its file, and no note."""
    if any(type(note.get("steps")) is int and note["steps"] > 0 for note in notes):
        return True
    if watched.reads_lines and any(spool.glob(f"*.{run_id}-lines.*")):
        return True
    ranks = sum(1 for _ in spool.glob(f"*.{run_id}*-rank*"))
    return ranks > sum(1 for note in notes if note.get("steps") == 0)


def _why_no_steps(notes: Sequence[Mapping[str, Any]], watched: Watched) -> str:
    """Return why, and what to do."""
    if watched.reads_lines:
        return "no line of the output matched --step-lines: try the expression on a few lines of it"
    if not watched.injects:
        return f"Python programs were not watched (--no-inject): leave that out, or use {BY_HAND}"
    if not notes:
        name = PurePath(watched.command[0]).name
        return (
            f"{name} has run no Python that could be watched (another language, python -I or -E, a container or "
            "ranks elsewhere without PYTHONPATH, CROSSWIND_RUN_ID and CROSSWIND_SPOOL): read steps from its output "
            "with --step-lines PATTERN"
        )
    return _why_of_python(notes)


def _why_of_python(notes: Sequence[Mapping[str, Any]]) -> str:
    note = max(notes, key=lambda note: (note.get("saw") == "torch", bool(note.get("saw"))))
    program, saw, python = (str(note.get(name) or "") for name in ("program", "saw", "python"))
    if saw == "torch":
        return (
            f"{program} used PyTorch, but no torch.optim.Optimizer has stepped in its main thread "
            f"(torch.compile around step, a fork without a rank, or an engine of its own hides it): use {BY_HAND}"
        )
    if saw:
        return f"{program} used {saw}, whose loops are not seen from outside: use {CALLBACKS.get(saw, BY_HAND)}"
    if tuple(int(part) for part in python.split(".") if part.isdigit()) < (3, 11) and python:
        return f"{program} ran on Python {python}, and 3.11 or newer can be watched: use --step-lines PATTERN"
    return f"{program} has imported no PyTorch: use {BY_HAND}, or --step-lines PATTERN"
