"""A captured trace as a record of the spool: the packed file itself, and the run, rank and time that it is of."""

import base64
import binascii
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.ingest.capture.files import NAME, PACKED
from crosswind.ingest.spool.plain_file import open_plain

RECORD = "trace"
MOST_BYTES = 15 << 20  # of a packed file: with its record, as sent, less than a server takes at once
MOST_PLAIN_BYTES = 1 << 28  # of it unpacked, which whoever stores it has to read
TEXTS, NUMBERS = ("run_id", "name", "content"), ("rank", "started_ns", "ended_ns")


@dataclass(frozen=True)
class CapturedTrace:
    """The trace of one rank; `run_id` is that of its part where the run was restarted, the time is the whole run's."""

    run_id: str
    name: str  # of the file
    rank: int
    started_ns: int
    ended_ns: int
    content: str  # base64

    @classmethod
    def of_file(cls, path: Path, run_id: str, started_ns: int, ended_ns: int) -> Self:
        """Return the trace in a file of the run's. Raises: OSError; UnavailableError where it is too large to be sent.

        Source: RFC 1952 (the last four bytes are the size of what was packed).
        """
        named = NAME.fullmatch(path.name.removesuffix(PACKED))
        if named is None:
            raise UnavailableError(f"{path.name}: expected a name such as rank0.step10-12{PACKED}")
        with open_plain(path) as file:
            packed = file.read(MOST_BYTES + 1)
        plain = struct.unpack("<I", packed[-4:])[0] if len(packed) >= 4 else 0
        if len(packed) > MOST_BYTES:
            raise UnavailableError(f"larger than the {MOST_BYTES >> 20} MiB that are sent")
        if plain > MOST_PLAIN_BYTES:
            raise UnavailableError(f"larger than the {MOST_PLAIN_BYTES >> 20} MiB, unpacked, that are sent")
        content = base64.b64encode(packed).decode()
        return cls(run_id_of(path.name, run_id), path.name, int(named["rank"]), started_ns, ended_ns, content)

    def record(self) -> dict[str, object]:
        """Return its record for the spool."""
        return asdict(self)

    @classmethod
    def of_record(cls, value: Mapping[str, Any]) -> Self:
        """Return the trace of a record. Raises: MalformedError naming field and value."""
        if value.keys() != {*TEXTS, *NUMBERS}:
            raise MalformedError(f"trace record of {sorted(value)!s:.200}: expected {', '.join((*TEXTS, *NUMBERS))}")
        for name in (*TEXTS, *NUMBERS):
            is_good = type(value[name]) is str if name in TEXTS else _is_whole(value[name])
            if not is_good:
                raise MalformedError(f"trace record: {name} is {value[name]!r:.80}, expected text or a whole number")
        trace = cls(**value)
        if not (0 < len(trace.run_id) <= 64 and trace.run_id.isprintable() and trace.rank < 2**31):
            raise MalformedError(f"trace record: run {trace.run_id!r:.80}, rank {trace.rank}: expected those of a run")
        if not trace.name.endswith(PACKED) or NAME.fullmatch(trace.name.removesuffix(PACKED)) is None:
            raise MalformedError(f"trace record: name is {trace.name!r:.80}, expected rank0.step10-12{PACKED}")
        return trace

    def packed(self) -> bytes:
        """Return the content of the file. Raises: MalformedError."""
        try:
            return base64.b64decode(self.content, validate=True)
        except (binascii.Error, ValueError) as error:
            raise MalformedError(f"trace record: content of {self.name}: expected base64: {error}") from error


def run_id_of(name: str, run_id: str) -> str:
    """Return the run that a file of this name is of: a restart of a run is one of its own."""
    named = NAME.fullmatch(name.removesuffix(PACKED))
    return f"{run_id}-{named['part'].rstrip('.')}" if named and named["part"] else run_id


def _is_whole(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**63
