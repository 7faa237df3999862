"""Runs from MLflow's file store: `mlruns/<experiment>/<run>/`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.schema.imported import imported_id
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.trial import Parameter
from crosswind.ingest.reader.lines import head_of, numbered_lines
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.scalars import PARAMETERS_MAX, scalar_of, storable
from crosswind.ingest.readers.trackers.progress_rows import Value, fault_of, progress
from crosswind.ingest.readers.trackers.yaml_file import mapping_in

META = "meta.yaml"
PARTS = ("metrics", "params", "tags")
STATES = {  # mlflow.entities.RunStatus; files have the number, some versions the word
    **dict.fromkeys((1, 2, "RUNNING", "SCHEDULED"), RunState.RUNNING),
    **dict.fromkeys((3, "FINISHED"), RunState.COMPLETED),
    **dict.fromkeys((4, 5, "FAILED", "KILLED"), RunState.FAILED),
}
MILLISECOND_NS = 1_000_000
FIELDS = (2, 3, 5)  # time and value; with the step; with a data set's name and digest


@dataclass(frozen=True)
class MlflowReader:
    """One run per folder of a run: its metrics as progress, its parameters as configuration."""

    name: ClassVar[str] = "mlflow"
    description: ClassVar[str] = "folder of a run in MLflow's file store, mlruns/<experiment>/<run>"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  a run is a folder
        """Return False: no single file is a run."""
        return False

    def recognises_folder(self, path: Path) -> bool:
        """Return whether a meta.yaml in the folder names a run, and one of its parts is there."""
        try:
            head = head_of(path / META)
            return (b"run_id:" in head or b"run_uuid:" in head) and any((path / part).is_dir() for part in PARTS)
        except (OSError, UnavailableError):
            return False

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Run | pa.Table]:
        """Yield the values, one metric after another, then the run. Raises: MalformedError, UnavailableError.

        Source: mlflow/store/tracking/file_store.py.
        """
        meta = mapping_in(path / META)
        tracker_id = meta.get("run_id") or meta.get("run_uuid")
        if not isinstance(tracker_id, str):
            raise MalformedError(f"{path / META}: run_id {tracker_id!r:.80}; expected a text")
        if meta.get("lifecycle_stage") == "deleted":
            report.notes.append("was deleted in MLflow: left out")
            return
        run_id = imported_id(self.name, context.system, tracker_id)
        yield from progress(run_id, _values(path / "metrics", report), report)
        report.read += 1
        yield Run(
            run_id,
            _experiment(path, report) or context.workload or "unknown",
            context.system,
            state_of(meta, report),
            configuration=_configuration(path / "params", report),
            started_ns=time_of(meta, "start_time", report),
            ended_ns=time_of(meta, "end_time", report),
            tags={"imported_from": self.name, "imported_id": storable(tracker_id)} | _tags(path / "tags", meta, report),
        )


def _experiment(path: Path, report: Report) -> str:
    """Return the name of the run's experiment; empty if it is not given."""
    try:
        name = mapping_in(path.resolve().parent / META).get("name")
    except UnavailableError:
        return ""
    except MalformedError as error:
        report.skip(0, META, str(error))
        return ""
    return storable(name, 200) if isinstance(name, str) else ""


def state_of(meta: Mapping[object, object], report: Report) -> RunState:
    """Return the state of a run. Raises: MalformedError."""
    status = meta.get("status")
    if isinstance(status, int | str) and status in STATES:
        return STATES[status]
    report.skip(0, "status", f"status {status!r:.80}; expected one of 1 to 5")
    return RunState.LOST


def time_of(meta: Mapping[object, object], name: str, report: Report) -> int | None:
    """Return a time of a run in ns; None if there is none."""
    ms = meta.get(name)
    if ms is None:
        return None
    if isinstance(ms, int) and not isinstance(ms, bool) and not fault_of(Value(ms * MILLISECOND_NS, 0, name, 0)):
        return ms * MILLISECOND_NS
    report.skip(0, name, f"{name} {ms!r:.80}; expected milliseconds since 1970")
    return None


def _files(folder: Path, report: Report) -> Iterator[tuple[str, Path]]:
    """Yield names, which may contain a /, and files below a folder, without links."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            report.skip(0, path.name, "is a link")
        elif path.is_file():
            yield path.relative_to(folder).as_posix(), path


def _values(folder: Path, report: Report) -> Iterator[Value]:
    for name, path in _files(folder, report):
        for number, text in numbered_lines(path, report):
            try:
                yield _value(name, text)
            except MalformedError as error:
                report.skip(number, f"{name}: {text}", str(error))


def _value(name: str, text: str) -> Value:
    fields = text.split(" ")
    try:
        step = int(fields[2]) if len(fields) > 2 else 0
        value = Value(int(fields[0]) * MILLISECOND_NS, step, name, float(fields[1]))
    except (ValueError, IndexError, OverflowError) as error:
        raise MalformedError(f"expected time, value and step: {error}") from error
    if len(fields) not in FIELDS or (fault := fault_of(value)):
        raise MalformedError(f"{len(fields)} fields; expected 2, 3 or 5" if len(fields) not in FIELDS else fault)
    return value


def _texts(folder: Path, report: Report) -> Iterator[tuple[str, str]]:
    """Yield names and contents of small files of one text each."""
    for count, (name, path) in enumerate(_files(folder, report)):
        if count == PARAMETERS_MAX:
            report.skip(0, name, f"more than {PARAMETERS_MAX} files in {folder.name}")
            return
        yield storable(name), storable(head_of(path).decode(errors="replace"))


def _configuration(folder: Path, report: Report) -> dict[str, Parameter]:
    return {name: scalar_of(text) for name, text in _texts(folder, report)}


def _tags(folder: Path, meta: Mapping[object, object], report: Report) -> dict[str, str]:
    """Return tags that users set, and the run's name; the user's name is left out."""
    named = {"name": storable(str(meta["run_name"]))} if meta.get("run_name") else {}
    return named | {name: text for name, text in _texts(folder, report) if not name.startswith("mlflow.")}
