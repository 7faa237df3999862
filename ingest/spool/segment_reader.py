"""Reading segments from a file or from memory, frame by frame, up to the end or the first bad frame."""

import os
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Generic, Literal, Protocol, Self, TypeVar

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.schema.metric import MetricSet
from crosswind.ingest.spool.plain_file import open_plain
from crosswind.ingest.spool.segment import HEADER, MAX_FRAME_BYTES, Frame, SetFrame, parse_payload

Parsed = TypeVar("Parsed")


class Readable(Protocol):
    """A sealed segment: the path of its file, or content received over the network."""

    @property
    def name(self) -> str:
        """The file's name."""
        ...

    def open(self, mode: Literal["rb"]) -> BinaryIO:
        """Its content. Raises: OSError."""
        ...


@dataclass(frozen=True, slots=True)
class Unpacked:
    """A segment in memory."""

    name: str
    content: bytes

    def open(self, mode: Literal["rb"]) -> BinaryIO:  # noqa: ARG002 - as a path has it
        """Its content."""
        return BytesIO(self.content)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class SegmentReport:
    """The readable part of a segment: the number of whole frames, the bytes after them, and why reading ended there."""

    path: Path
    frames: int
    torn_bytes: int
    reason: str | None

    def require_whole(self) -> None:
        """Check that the segment was readable to its end.

        Raises: MalformedError naming file and offset otherwise.
        """
        if self.reason is not None:
            raise MalformedError(self.reason)


class SegmentReader(Generic[Parsed]):
    """Iterates over the frames of one segment up to its end or its first bad frame; see `report` afterwards."""

    def __init__(self, path: Readable, parse: Callable[[bytes, Mapping[str, MetricSet]], Parsed]) -> None:
        self.report = SegmentReport(Path(str(path)), 0, 0, None)
        self.whole_bytes = 0
        self._sets: dict[str, MetricSet] = {}
        self._parse_payload = parse
        self._frames = self._read(path)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Parsed:
        return next(self._frames)

    def close(self) -> None:
        """Read no further, and let go of the content, which reader and frames would otherwise keep for each other."""
        self._frames.close()

    def _read(self, path: Readable) -> Generator[Parsed, None, None]:
        count, reason = 0, None
        with opened(path) as file:
            try:
                for payload in _payloads(file):
                    frame = self._parse(payload)
                    self.whole_bytes += HEADER.size + len(payload)
                    count += 1
                    yield frame
            except MalformedError as error:
                reason = f"{path} at byte {self.whole_bytes}: {error}"
            torn_bytes = file.seek(0, os.SEEK_END) - self.whole_bytes
        self.report = SegmentReport(Path(str(path)), count, torn_bytes, reason)

    def _parse(self, payload: bytes) -> Parsed:
        frame = self._parse_payload(payload, self._sets)
        if isinstance(frame, SetFrame):
            self._sets[frame.metric_set.name] = frame.metric_set
        return frame


def read_segment(path: Readable) -> SegmentReader[Frame]:
    """Return an iterator over the whole frames of a segment; it ends at a torn or garbled frame, see `.report`.

    Raises: UnavailableError, on the first frame, when the file cannot be opened.
    """
    return SegmentReader(path, parse_payload)


def read_frames(path: Path) -> Iterator[Frame]:
    """Yield every frame of a segment that must be whole.

    Raises: MalformedError naming file and offset at the first bad frame; UnavailableError when it cannot be opened.
    """
    reader = read_segment(path)
    yield from reader
    reader.report.require_whole()


def opened(path: Readable) -> BinaryIO:
    """Open a segment's content; a path must be that of a plain file.

    Raises: UnavailableError, for a link, a pipe and the like as NotPlainError.
    """
    try:
        return open_plain(path) if isinstance(path, Path) else path.open("rb")
    except OSError as error:
        raise UnavailableError(f"segment {path}: {error.strerror}") from error


def _payloads(file: BinaryIO) -> Iterator[bytes]:
    left = file.seek(0, os.SEEK_END)
    file.seek(0)
    while header := file.read(HEADER.size):
        if len(header) < HEADER.size:
            raise MalformedError(f"torn frame header of {len(header)} bytes, expected {HEADER.size}")
        length, crc = HEADER.unpack(header)
        left -= len(header)
        if not 0 < length <= MAX_FRAME_BYTES:
            raise MalformedError(f"frame length {length}, expected 1 to {MAX_FRAME_BYTES}")
        if length > left:
            raise MalformedError(f"torn frame: {left} bytes left of {length}")
        payload = file.read(length)
        left -= length
        if zlib.crc32(payload) != crc:
            raise MalformedError(f"frame checksum {zlib.crc32(payload):08x}, expected {crc:08x}")
        yield payload
