"""Users of jobs: the lake has their pseudonyms, the catalog knows whose they are."""

import hashlib
import os
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from sqlalchemy import Connection, select

from crosswind.data.catalog import rows, tables

if TYPE_CHECKING:
    import pyarrow as pa

KEY = "pseudonyms"
DIGEST_BYTES = 8  # a cluster has thousands of users: two alike are not to be expected


class People:
    """Users and their pseudonyms, over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def hidden(self, table: "pa.Table") -> "pa.Table":
        """A table whose column `user` has pseudonyms for names, which it notes; in a session that writes."""
        import pyarrow as pa  # noqa: PLC0415 - heavy, and of a catalog's users few have tables
        import pyarrow.compute as pc  # noqa: PLC0415

        place = table.column_names.index("user")
        encoded = table["user"].combine_chunks().dictionary_encode()
        pseudonyms = self.pseudonyms([name for name in encoded.dictionary.to_pylist() if name])
        texts = pa.array([pseudonyms.get(name) for name in encoded.dictionary.to_pylist()], pa.string())
        users = pc.take(texts, encoded.indices) if len(texts) else encoded.cast(pa.string())
        return table.set_column(place, table.schema.field(place), users)

    def pseudonyms(self, names: Collection[str]) -> Mapping[str, str]:
        """The pseudonym of each name; of the same installation always the same, and known by nobody else."""
        if not names:
            return {}
        key = self._key()
        pseudonyms = {name: f"u-{_digest(key, name)}" for name in names}
        stored = self.names(pseudonyms.values())
        fresh = [
            {"pseudonym": pseudonym, "name": name} for name, pseudonym in pseudonyms.items() if pseudonym not in stored
        ]
        rows.add_those_not_there(self._connection, tables.pseudonyms, fresh)
        return pseudonyms

    def pseudonym(self, name: str) -> str | None:
        """The pseudonym that this name would have; None where nobody has one yet. Nothing is noted."""
        stored = rows.fetch(self._connection, tables.secrets, name=KEY)
        return None if stored is None else f"u-{_digest(bytes.fromhex(stored['value']), name)}"

    def names(self, pseudonyms: Collection[str]) -> Mapping[str, str]:
        """Whose pseudonyms these are, where that is known."""
        table = tables.pseudonyms
        query = select(table).where(rows.among(self._connection, table.c.pseudonym, pseudonyms))
        return {row.pseudonym: row.name for row in self._connection.execute(query)}

    def _key(self) -> bytes:
        fresh = {"name": KEY, "value": os.urandom(32).hex()}
        rows.add_unless_there(self._connection, tables.secrets, fresh)
        stored = rows.fetch(self._connection, tables.secrets, name=KEY) or fresh
        return bytes.fromhex(stored["value"])


def _digest(key: bytes, name: str) -> str:
    return hashlib.blake2b(name.encode(), key=key, digest_size=DIGEST_BYTES).hexdigest()
