"""Files of a lake in an object store, as the catalog names them."""

from dataclasses import dataclass
from enum import StrEnum


class LakeFileKind(StrEnum):
    """The use of a file; a landing holds the rows of several batches, and is due for compaction as a part is."""

    DEFINITION = "definition"
    PART = "part"
    LANDING = "landing"
    COMPACTED = "compacted"
    MANIFEST = "manifest"


WITH_ROWS = frozenset({LakeFileKind.PART, LakeFileKind.LANDING, LakeFileKind.COMPACTED})
FRESH = frozenset({LakeFileKind.PART, LakeFileKind.LANDING})


@dataclass(frozen=True)
class LakeFile:
    """An object, which never changes. `key` and `name` are paths below the lake; times are ns UTC.

    Of several objects of one name one counts at any time. A definition has the date "" and no rows.
    """

    key: str
    name: str
    kind: LakeFileKind
    set_name: str
    date: str
    first_ns: int
    last_ns: int
    rows: int
    columns: str  # digest of their names
    bytes: int
    checksum: str  # SHA-256 of the content
    added_ns: int
