"""Later parts of a text file, for logs that begin with what a launcher, an installer or a module system wrote."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.reader.lines import GZIP_MAGIC, HEAD_BYTES, head_of

SEARCHED_BYTES = 1 << 24  # unpacked: a log that says nothing for longer is not recognised
LONGEST_LINE = 1 << 14  # bytes that begin a part with the rest of a line


def later_parts(path: Path) -> Iterator[bytes]:
    """Yield the unpacked text after the first HEAD_BYTES in parts of that size, cut at line ends, up to SEARCHED_BYTES.

    Ends at the first part that is no text. Raises: UnavailableError.
    """
    packed = head_of(path).startswith(GZIP_MAGIC)
    try:
        with gzip.open(path) if packed else path.open("rb") as stream:
            yield from _parts(stream)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return  # the text until the damage was searched
    except OSError as error:
        raise UnavailableError(f"{path}: {error.strerror}") from error


def _parts(stream: "IO[bytes] | gzip.GzipFile") -> Iterator[bytes]:
    rest, searched = b"", 0
    while searched < SEARCHED_BYTES and (block := stream.read(HEAD_BYTES)):
        if b"\0" in block:
            return
        whole, end, begun = block.rpartition(b"\n")
        if searched:
            yield rest + whole + end
        rest = begun[-LONGEST_LINE:] if end else (rest + begun)[-LONGEST_LINE:]
        searched += len(block)
