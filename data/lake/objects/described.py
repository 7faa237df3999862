"""Facts of a file that is about to become an object: its key, and what the catalog says of it."""

import hashlib
import re
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from crosswind.data.lake.parquet import times_in
from crosswind.data.lake.parts import DEFINITION, Span, compacted_span, digest_of_columns
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.lake_file import LakeFile, LakeFileKind

PLACE = re.compile(r"set=([^/]+)/(?:date=([^/]+)/)?(?:[0-9a-f]{16}/)?([^/]+)")


def name_of(root: Path, path: Path) -> str:
    """Return the name of a file below the lake, which its later versions have as well."""
    folders, _, file = path.relative_to(root).as_posix().rpartition("/")
    return f"{re.sub('/[0-9a-f]{16}$', '', folders)}/{file}"


def described(name: str, token: str, content: Path) -> LakeFile:
    """Return what the catalog says of a file, whose key has the token. Raises: OSError, MalformedError."""
    folder, _, file = name.rpartition("/")
    match = PLACE.fullmatch(name)
    if match is None:
        raise MalformedError(f"{name}: expected a file of a set")
    kind, (first, last), rows, columns = _facts(file, content)
    return LakeFile(
        key=f"{folder}/{token}/{file}",
        name=name,
        kind=kind,
        set_name=match[1],
        date=match[2] or "",
        first_ns=first,
        last_ns=last,
        rows=rows,
        columns=columns,
        bytes=content.stat().st_size,
        checksum=hashlib.sha256(content.read_bytes()).hexdigest(),
        added_ns=time.time_ns(),
    )


def _facts(file: str, content: Path) -> tuple[LakeFileKind, Span, int, str]:
    if DEFINITION.fullmatch(file):
        return LakeFileKind.DEFINITION, (0, 0), 0, ""
    span = compacted_span(f"{file.removeprefix('_held-').removesuffix('.json')}.parquet")
    if span is not None and file.startswith("_held-"):
        return LakeFileKind.MANIFEST, span, 0, ""
    try:
        parquet = pq.ParquetFile(content)
        names = parquet.schema_arrow.names
        kind = LakeFileKind.PART if compacted_span(file) is None else LakeFileKind.COMPACTED
        span = compacted_span(file) or times_in(parquet) or (0, 0)
    except pa.ArrowException as error:
        raise MalformedError(f"{file}: {error!s:.200}") from error
    return kind, span, parquet.metadata.num_rows, digest_of_columns(names)
