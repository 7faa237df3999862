"""Steps of a run's ranks, read off the spool's files while they grow."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.steps import NANOSECOND, STEP
from crosswind.ingest.capture.steps import RankStep
from crosswind.ingest.spool.plain_file import open_plain
from crosswind.ingest.spool.segment import HEADER, MAX_FRAME_BYTES

STEP_ROWS = f'{{"kind":"rows","set":"{STEP.name}"'.encode()
COLUMNS = ("run_id", "rank", "step", "duration_seconds", "comm_seconds")
MOST_BYTES = 16 * 1024 * 1024  # of one file at one look; MAX_FRAME_BYTES for a larger frame
GONE_LOOKS = 3  # a file that was sealed or removed has no more to say after so many looks without news


@dataclass
class _Followed:
    """A file that was open when it was seen: it is read on whatever becomes of its name."""

    file: BinaryIO
    offset: int = 0
    quiet: int = 0


@dataclass
class Follower:
    """Follows the files of all ranks of one run in a spool, those of its restarts as well."""

    spool: Path
    run_id: str
    _files: dict[str, _Followed] = field(default_factory=dict)
    _done: set[str] = field(default_factory=set)

    def news(self) -> Iterator[tuple[str, RankStep]]:
        """Yield the run id and the row of each step recorded since the last look."""
        self._open_new()
        for name, followed in list(self._files.items()):
            yield from self._read(name, followed)

    def close(self) -> None:
        """Close all files."""
        for followed in self._files.values():
            followed.file.close()
        self._files.clear()

    def _open_new(self) -> None:
        for path in sorted(self.spool.glob(f"*.{self.run_id}*-rank*")):
            name = path.name.rpartition(".")[0]  # the same while it is written and once it is sealed
            if name not in self._files and name not in self._done:
                with suppress(OSError, UnavailableError):
                    self._files[name] = _Followed(open_plain(path))

    def _read(self, name: str, followed: _Followed) -> Iterator[tuple[str, RankStep]]:
        try:
            for payload in _payloads(followed):
                if payload.startswith(STEP_ROWS):
                    yield from _rows(json.loads(payload))
        except (OSError, ValueError, TypeError, KeyError):  # the rank's own file is garbled: ingest reports it
            followed.quiet = GONE_LOOKS
        if followed.quiet >= GONE_LOOKS and not (self.spool / f"{name}.open").exists():
            followed.file.close()
            del self._files[name]
            self._done.add(name)


def _payloads(followed: _Followed) -> Iterator[bytes]:
    size = os.fstat(followed.file.fileno()).st_size
    followed.quiet = 0 if size > followed.offset else followed.quiet + 1
    until = min(size, followed.offset + MOST_BYTES)
    while followed.offset + HEADER.size <= until:
        followed.file.seek(followed.offset)
        length, _ = HEADER.unpack(followed.file.read(HEADER.size))
        if not 0 < length <= MAX_FRAME_BYTES:
            raise ValueError(f"frame of {length} bytes")
        if followed.offset + HEADER.size + length > size:  # it is being written
            return
        payload = followed.file.read(length)
        followed.offset += HEADER.size + length
        yield payload


def _rows(frame: Mapping[str, Any]) -> Iterator[tuple[str, RankStep]]:
    columns = frame["columns"]
    for run_id, rank, step, duration, waited in zip(*(columns[name] for name in COLUMNS), strict=True):
        yield run_id, RankStep(rank, step, (duration - waited) * NANOSECOND, waited * NANOSECOND)
