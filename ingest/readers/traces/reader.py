"""The protocol of readers of traces."""

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Protocol

from crosswind.data.traces.trace import RankTrace
from crosswind.ingest.reader.reader import Report

LIMIT = 1 << 34  # bytes of one trace, unpacked: 16 GiB; a small file must not unpack for ever


class TraceReader(Protocol):
    """One format of traces."""

    name: ClassVar[str]
    description: ClassVar[str]

    def recognises(self, path: Path, head: bytes) -> bool:
        """Return whether a file that begins with `head` (at most 64 KiB, as stored) is of this format; never raises."""
        ...

    def read(self, path: Path, report: Report) -> Iterator[RankTrace]:
        """Yield the trace of each rank in the file; what is not understood goes to the report.

        Raises: MalformedError, UnavailableError.
        """
        ...
