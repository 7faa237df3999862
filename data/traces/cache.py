"""Traces once read, kept as Parquet, so that they open again in a fraction of a second.

A file per rank, in which the columns are those of `Events`; all else stands in the file's metadata as JSON. A file's
last change is its last use: what was not used for longest goes first. All of it can be read again from the traces.
"""

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from threading import get_ident
from typing import get_type_hints

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.paths import TRACE_CACHE_BYTES
from crosswind.data.traces.trace import Events, RankTrace

FORM = 2  # raised whenever the columns or their meaning change: what was kept before is read anew
PART_SECONDS = 3600.0  # after which a file that is being written counts as left behind
EDGE_BYTES = 1 << 20  # of a file's beginning and end that its key covers
MEMBER = b"crosswind.trace"
HINTS = {name: hint for name, hint in get_type_hints(RankTrace).items() if name != "events"}


@dataclass(frozen=True)
class TraceCache:
    """A folder of traces, by key, for any number of processes and threads."""

    folder: Path
    limit_bytes: int = TRACE_CACHE_BYTES

    def get(self, key: str) -> list[RankTrace] | None:
        """Return the traces of a key; None where they are not kept, or damaged."""
        paths = sorted(self.folder.glob(f"{key}.*.parquet"))
        if not paths or paths[0].name.split(".")[1] != f"0of{len(paths)}":
            return None
        try:
            traces = [_read(path) for path in sorted(paths, key=_number)]
        except (pa.ArrowException, OSError, msgspec.MsgspecError, KeyError, ValueError, InvalidInputError):
            return None
        with suppress(OSError):  # another's files, or removed meanwhile: what was read is good all the same
            for path in paths:
                os.utime(path)
        return traces

    def put(self, key: str, traces: Sequence[RankTrace]) -> None:
        """Keep a key's traces, each file at once or not at all, and let go what is too much. Raises: OSError."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for old in self.folder.glob(f"{key}.*.parquet"):
            old.unlink(missing_ok=True)
        for number, trace in enumerate(traces):
            path = self.folder / f"{key}.{number}of{len(traces)}.parquet"
            partial = path.with_name(f"{path.name}.{os.getpid()}-{get_ident()}.part")
            try:
                _write(partial, trace)
                partial.replace(path)
            finally:
                partial.unlink(missing_ok=True)
        self._let_go()

    @property
    def size_bytes(self) -> int:
        """Return the bytes that are kept."""
        return sum(size for _, size, _ in self._files())

    def _files(self) -> Iterator[tuple[Path, int, float]]:
        """Yield the files with their sizes and last uses, seconds; those that others remove meanwhile are left out."""
        for path in self.folder.glob("*.p*"):  # .parquet, and .part of what is being written
            with suppress(FileNotFoundError):
                facts = path.stat()
                yield path, facts.st_size, facts.st_mtime

    def _let_go(self) -> None:
        """Remove the keys that were not used for longest, until the others are few enough."""
        size, used, paths = 0, dict[str, float](), dict[str, list[tuple[Path, int]]]()
        for path, bytes_, seconds in self._files():
            key = path.name.split(".")[0]
            if path.suffix == ".part":
                if seconds < time.time() - PART_SECONDS:
                    path.unlink(missing_ok=True)
                continue
            size, used[key] = size + bytes_, max(seconds, used.get(key, 0.0))
            paths.setdefault(key, []).append((path, bytes_))
        for key in sorted(used, key=used.__getitem__):
            if size <= self.limit_bytes:
                return
            for path, bytes_ in paths[key]:
                path.unlink(missing_ok=True)
                size -= bytes_


def key_of(paths: Sequence[Path], reader: str) -> str:
    """Return the key of files as a reader, with its version, reads them: by size, last change, beginning and end.

    Raises: OSError.
    """
    digest = hashlib.blake2b(f"{FORM} {reader}".encode(), digest_size=20)
    for path in paths:
        with path.open("rb") as stream:
            facts = os.fstat(stream.fileno())
            digest.update(f"\n{facts.st_size} {facts.st_mtime_ns}\n".encode())
            digest.update(stream.read(EDGE_BYTES))
            stream.seek(max(0, facts.st_size - EDGE_BYTES))
            digest.update(stream.read(EDGE_BYTES))
    return digest.hexdigest()


def _number(path: Path) -> int:
    return int(path.name.split(".")[1].split("of")[0])


def _write(path: Path, trace: RankTrace) -> None:
    facts = {name: getattr(trace, name) for name in HINTS}
    metadata = {MEMBER: msgspec.json.encode(facts)}
    table = pa.table({name: pa.array(column) for name, column in trace.events.columns.items()})
    pq.write_table(table.replace_schema_metadata(metadata), path, compression="zstd")


def _read(path: Path) -> RankTrace:
    table = pq.read_table(path, memory_map=False, partitioning=None)
    facts = msgspec.json.decode((table.schema.metadata or {})[MEMBER])
    columns = {column.name: table[column.name].to_numpy() for column in fields(Events)}
    return RankTrace(Events(**columns), **{name: msgspec.convert(facts[name], hint) for name, hint in HINTS.items()})
