"""Description of a format for the benchmark of readers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from crosswind.ingest.reader.reader import Reader

Peer = Callable[[Path, Path], object]  # turns the file into Parquet in a folder, whatever it means


@dataclass(frozen=True)
class Format:
    """A format, how to make a file of it, and who else could read that."""

    name: str
    unit: str  # of work: rows, samples, lines
    reader: Reader
    make: Callable[[Path, int], None]  # writes so many units
    units: int  # of the small file; the large one has LARGER times as many
    peer_name: str
    peer: Peer
    other_peers: Mapping[str, Peer] = field(default_factory=dict)

    @property
    def peers(self) -> dict[str, Peer]:
        """Everybody else, by name, the one that we are held against first."""
        return {self.peer_name: self.peer, **self.other_peers}
