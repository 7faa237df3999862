"""The protocol of readers of traces."""

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Protocol

from crosswind.data.traces.trace import RankTrace
from crosswind.ingest.reader.reader import Report

LIMIT = 1 << 34  # bytes of one trace, unpacked: 16 GiB; a small file must not unpack for ever
WHOLE_LIMIT = 1 << 32  # bytes of a file that is read in memory, unpacked


class TraceReader(Protocol):
    """One format of traces."""

    name: ClassVar[str]
    description: ClassVar[str]
    version: ClassVar[int]  # raised whenever it makes something else of a file: what was kept before is read anew

    companions: ClassVar[tuple[str, ...]]  # endings of the files next to it that it reads too, such as ".pcf"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Return whether a file that begins with `head` (at most 64 KiB, as stored) is of this format; never raises."""
        ...

    def read(self, path: Path, report: Report) -> Iterator[RankTrace]:
        """Yield the trace of each rank in the file; what is not understood goes to the report.

        Raises: MalformedError, UnavailableError.
        """
        ...


def beside(path: Path, ending: str) -> Path:
    """Return the file next to it whose name ends otherwise: of `run.prv.gz` and ".pcf", `run.pcf`."""
    packed = path.with_suffix("") if path.suffix in (".gz", ".zst") else path
    return packed.with_suffix(ending)
