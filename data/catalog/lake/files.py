"""The files of a lake in an object store: which objects are in it, since when, and which were.

One transaction makes files appear and others go, so that every reader sees the lake before it or after it.
"""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Select, and_, case, delete, func, or_, select, update

from crosswind.data.catalog import rows
from crosswind.data.catalog.lake.tables import lake_files, lake_turns
from crosswind.data.schema.errors import ConflictError, UnavailableError
from crosswind.data.schema.lake_file import FRESH, WITH_ROWS, LakeFile, LakeFileKind

STALE_NS = 12 * 3_600_000_000_000  # objects that nothing names for a day are removed: none as old as this is named
TABLE = lake_files
IS_LIVE = TABLE.c.retired_ns.is_(None)
COLUMNS = [column for column in TABLE.c if column.name != "retired_ns"]


class LakeFiles:
    """Rows of objects, over one connection."""

    def __init__(self, connection: Connection, clock: Callable[[], int] = time.time_ns) -> None:
        self._connection = connection
        self._clock = clock

    def add(self, files: Sequence[LakeFile]) -> None:
        """Let files be found, each in place of the one of its name; a definition that is there stays.

        Raises: UnavailableError for files that were uploaded too long ago.
        """
        if not files:
            return
        if min(file.added_ns for file in files) < self._clock() - STALE_NS:
            raise UnavailableError(f"{files[0].key} was uploaded half a day ago and may be removed: store it again")
        names = [file.name for file in files if file.kind is not LakeFileKind.DEFINITION]
        self._retire(rows.among(self._connection, TABLE.c.name, names))
        rows.add_those_not_there(self._connection, TABLE, [asdict(file) for file in files])

    def replace(self, keys: Collection[str], files: Sequence[LakeFile]) -> None:
        """Let files be found in place of others. Raises: ConflictError when one of those counts no more."""
        if self._retire(rows.among(self._connection, TABLE.c.key, keys)) != len(keys):
            raise ConflictError(f"{min(keys)}, or another of {len(keys)} files, was replaced by others meanwhile")
        self.add(files)

    def _retire(self, which: Any) -> int:
        statement = update(TABLE).where(IS_LIVE, which).values(retired_ns=self._clock())
        return self._connection.execute(statement.execution_options(preserve_rowcount=True)).rowcount

    def sets(self) -> list[str]:
        """Return the names of the sets that have rows."""
        one = TABLE.alias()
        has_rows = select(one.c.key).where(
            one.c.retired_ns.is_(None), one.c.set_name == TABLE.c.set_name, one.c.kind.in_(sorted(WITH_ROWS))
        )
        query = select(TABLE.c.set_name).distinct().where(IS_LIVE, TABLE.c.date == "", has_rows.exists())
        return sorted(self._connection.execute(query).scalars())

    def definitions(self, set_name: str) -> list[LakeFile]:
        """Return the files that define a set, by name."""
        return self._files(_live(set_name).where(TABLE.c.date == ""))

    def between(self, set_name: str, first_date: str, last_date: str) -> list[LakeFile]:
        """Return the files of a set's days, both ends included, by name."""
        return self._files(_live(set_name).where(TABLE.c.date >= first_date, TABLE.c.date <= last_date))

    def live(self) -> list[LakeFile]:
        """Return every file that counts, by name."""
        return self._files(select(*COLUMNS).where(IS_LIVE))

    def of_key(self, key: str) -> list[LakeFile]:
        """Return the file that is this object, if it counts."""
        return self._files(select(*COLUMNS).where(IS_LIVE, TABLE.c.key == key))

    def sizes(self) -> dict[str, tuple[int | None, bool]]:
        """Return by object, replaced ones too, its bytes and whether it counts."""
        listed = self._connection.execute(select(TABLE.c.key, TABLE.c.bytes, TABLE.c.retired_ns))
        return {key: (size, retired_ns is None) for key, size, retired_ns in listed}

    def dates(self, set_name: str) -> list[str]:
        """Return the dates of which a set has rows, in order."""
        query = select(TABLE.c.date).distinct().where(IS_LIVE, TABLE.c.set_name == set_name, TABLE.c.date != "")
        return sorted(self._connection.execute(query).scalars())

    def dates_with_several(self, set_name: str) -> dict[str, tuple[int, int]]:
        """Return the dates of which a set has several files with rows, or one that was never compacted, in order.

        With each comes how many there are, and when the last of them was added, ns UTC.
        """
        fresh = func.sum(case((TABLE.c.kind.in_(sorted(FRESH)), 1), else_=0))
        of_set = and_(IS_LIVE, TABLE.c.set_name == set_name, TABLE.c.kind.in_(sorted(WITH_ROWS)))
        columns = TABLE.c.date, func.count(), func.max(TABLE.c.added_ns)
        query = select(*columns).where(of_set).group_by(TABLE.c.date).having(or_(func.count() > 1, fresh > 0))
        rows_of_dates = self._connection.execute(query.order_by(TABLE.c.date))
        return {date: (count, added_ns) for date, count, added_ns in rows_of_dates}

    def live_among(self, keys: Collection[str]) -> set[str]:
        """Return those of the objects that count."""
        return self._among(keys, IS_LIVE)

    def named_among(self, keys: Collection[str]) -> set[str]:
        """Return those of the objects that are in the catalog, whether they count or not."""
        return self._among(keys, TABLE.c.key.is_not(None))

    def _among(self, keys: Collection[str], where: Any) -> set[str]:
        query = select(TABLE.c.key).where(rows.among(self._connection, TABLE.c.key, keys), where)
        return set(self._connection.execute(query).scalars())

    def retired_before(self, moment_ns: int, limit: int) -> list[str]:
        """Return objects that have not counted since then, oldest first."""
        query = select(TABLE.c.key).where(TABLE.c.retired_ns < moment_ns).order_by(TABLE.c.retired_ns).limit(limit)
        return list(self._connection.execute(query).scalars())

    def forget(self, keys: Collection[str]) -> None:
        """Remove the rows of objects that do not count and are gone."""
        gone = rows.among(self._connection, TABLE.c.key, keys)
        self._connection.execute(delete(TABLE).where(gone, TABLE.c.retired_ns.is_not(None)))

    def is_empty(self) -> bool:
        """Return whether no object was ever noted."""
        return self._connection.execute(select(TABLE.c.key).limit(1)).first() is None

    def take_turn(self, work: str, owner: str, seconds: float) -> bool:
        """Return whether work is the owner's for so long from now: nobody else's turn lasts."""
        rows.hold(self._connection, f"lake {work}")
        turn, now_ns = rows.fetch(self._connection, lake_turns, work=work), self._clock()
        if turn is not None and turn["owner"] != owner and turn["until_ns"] > now_ns:
            return False
        row = {"work": work, "owner": owner, "until_ns": now_ns + int(seconds * 1e9)}
        rows.upsert(self._connection, lake_turns, row)
        return True

    def end_turn(self, work: str, owner: str) -> None:
        """Let others have the work."""
        self._connection.execute(delete(lake_turns).where(lake_turns.c.work == work, lake_turns.c.owner == owner))

    def _files(self, query: Select[Any]) -> list[LakeFile]:
        listed = self._connection.execute(query.order_by(TABLE.c.name)).mappings()
        return [LakeFile(**{**row, "kind": LakeFileKind(row["kind"])}) for row in listed]


def _live(set_name: str) -> Select[Any]:
    return select(*COLUMNS).where(IS_LIVE, TABLE.c.set_name == set_name)
