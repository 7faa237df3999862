"""Captured traces on their way into the store: each goes with the records of its run, once."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from crosswind.data.schema.errors import ProjectError
from crosswind.ingest.capture.record import RECORD, CapturedTrace, run_id_of
from crosswind.ingest.spool.spool import SpoolWriter


@dataclass(frozen=True)
class Sending:
    """The run that traces are of, and the spool that they leave through."""

    writer: SpoolWriter
    run_id: str
    started_ns: int
    ended_ns: int

    def send(self, files: Sequence[Path]) -> str | None:
        """Write the traces into the spool. Return a sentence about them for people; None if there are none."""
        left, counts = [], Counter[str]()
        for path in files:
            run_id = run_id_of(path.name, self.run_id)
            if reason := self._refusal(path):
                left.append(f"{path.name} is not stored ({reason}): crosswind ingest {path} --run {run_id}")
            else:
                counts[run_id] += 1
        return "; ".join([*(_stored(run_id, count) for run_id, count in counts.items()), *left]) or None

    def _refusal(self, path: Path) -> str | None:
        """Send a trace. Return why it could not be; None if it was."""
        try:
            trace = CapturedTrace.of_file(path, self.run_id, self.started_ns, self.ended_ns)
            self.writer.append_record(RECORD, trace.record())
        except ProjectError as error:
            return str(error)
        except OSError as error:
            return error.strerror or str(error)
        return None


def _stored(run_id: str, count: int) -> str:
    what = "1 trace is" if count == 1 else f"{count} traces are"
    return f"{what} stored with the run: crosswind trace --run {run_id}"
