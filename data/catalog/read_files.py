"""Files of others that were read, and how far: so a file that grew since gives only what is new."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, select

from crosswind.data.catalog import rows, tables


@dataclass(frozen=True)
class ReadFile:
    """The beginning of a file that was read: its digest, its size, and the rows of each set that came of it.

    `context` is a digest of what else decides what is read from it: format, system, time zone. With `parts`, it was
    begun: these parts of the lake may be there, and are not noted.
    """

    context: str
    content: str
    path: str
    size_bytes: int
    rows: Mapping[str, int]
    parts: tuple[str, ...] = ()


class ReadFiles:
    """The files that were read before, over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def of_path(self, context: str, path: str) -> list[ReadFile]:
        """Return what stood at this path when it was read, longest first."""
        table = tables.read_files
        query = select(table).where(table.c.context == context, table.c.path == path)
        stored = self._connection.execute(query.order_by(table.c.size_bytes.desc())).mappings()
        return [ReadFile(**{**row, "parts": tuple(row["parts"])}) for row in stored]

    def put(self, file: ReadFile) -> None:
        """Notes what was read, or is about to be stored."""
        rows.upsert(self._connection, tables.read_files, vars(file))
