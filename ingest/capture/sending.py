"""Captured traces on their way into the store: each goes with the records of its run, once."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from crosswind.data.schema.errors import ProjectError
from crosswind.ingest.capture.record import RECORD, CapturedTrace
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
        left = [self._left(path, reason) for path in files if (reason := self._sent(path))]
        count = len(files) - len(left)
        sent = [f"{count} traces are stored with the run: crosswind trace --run {self.run_id}"] if count else []
        return "; ".join(sent + left) or None

    def _sent(self, path: Path) -> str | None:
        """Return why a trace was not sent."""
        try:
            trace = CapturedTrace.of_file(path, self.run_id, self.started_ns, self.ended_ns)
            self.writer.append_record(RECORD, trace.record())
        except ProjectError as error:
            return str(error)
        except OSError as error:
            return error.strerror or str(error)
        return None

    def _left(self, path: Path, reason: str) -> str:
        return f"{path.name} is not stored ({reason}): crosswind ingest {path} --run {self.run_id}"
