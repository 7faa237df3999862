"""What the benchmark of readers wants to know of a format."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from crosswind.ingest.readers.reader import Reader


@dataclass(frozen=True)
class Format:
    """A format, how to make a file of it, and who else could read that."""

    name: str
    unit: str  # of work: rows, samples, lines
    reader: Reader
    make: Callable[[Path, int], None]  # writes so many units
    units: int  # of the small file; the large one has LARGER times as many
    peer_name: str
    peer: Callable[[Path, Path], object]  # turns the file into Parquet in a folder, whatever it means
