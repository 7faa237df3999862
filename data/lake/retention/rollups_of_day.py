"""Roll-ups of a day, each published by one change: made of its raw rows, or of itself and of rows that came later."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import duckdb
import pyarrow as pa

from crosswind.data.lake.instance import new_connection
from crosswind.data.lake.lake import Lake
from crosswind.data.lake.parts import Manifest
from crosswind.data.lake.removal import remove_replaced
from crosswind.data.lake.retention.days import DayFiles, covers
from crosswind.data.lake.retention.rolled_set import rolled_set
from crosswind.data.lake.retention.rolling import nodes_in, read_rows, rolled, together, without_growth
from crosswind.data.lake.retention.staging import DayFile, Origin, day_file
from crosswind.data.lake.storage import Filed
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.keeping import rollup_name
from crosswind.data.schema.metric import Column, MetricSet


@dataclass(frozen=True)
class SetToRoll:
    """A set of a lake whose rows are rolled up."""

    lake: Lake
    name: str

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        """Its columns by name, as they were last defined."""
        return self.lake.columns(self.name)

    def source(self, files: Sequence[Filed]) -> str:
        """Return files of the set in SQL, every one of which counts. Raises: MalformedError naming a damaged one."""
        self.lake.storage.fetch(files)
        paths = [file.path for file in files]
        if self.lake.skipped is not None and (damaged := set(paths) - set(self.lake.skipped.whole(paths))):
            raise MalformedError(f"{min(damaged)} is damaged")
        return self.lake.source(self.name, paths)

    def rollup(self, seconds: int, day: DayFiles) -> Sequence[Filed]:
        """Return the roll-ups of a day that count, which the storage can replace then: one, or none yet."""
        return tuple(self.lake.storage.day(self.rollup_folder(seconds, day)).live)

    def rollup_folder(self, seconds: int, day: DayFiles) -> Path:
        """Return the folder of a day's roll-up."""
        return self.lake.root / f"set={rollup_name(self.name, seconds)}" / f"date={day.date}"

    @contextmanager
    def new_rollup(
        self, seconds: int, day: DayFiles, made_of: Sequence[str], names: frozenset[str]
    ) -> Iterator[DayFile]:
        """Yield the file of a roll-up, which is published at the end, in place of the one that was there."""
        of, storage = rolled_set(self.name, self.columns, seconds), self.lake.storage
        path = self.lake.define(of) / f"date={day.date}" / day.named(made_of)
        older = frozenset(file.path.name for file in self.rollup(seconds, day))
        with day_file(path, of, Origin(made_of, names | older, older)) as file:
            yield file
        replaced = [one.path for one in self.rollup(seconds, day)]
        storage.replace(replaced, file.merged)
        remove_replaced(self.lake.root, storage.day(path.parent).replaced)


def roll_up(of: SetToRoll, day: DayFiles, before: DayFiles | None, seconds: Sequence[int]) -> None:
    """Make the roll-ups of a day that has its raw rows, within `changing`. Raises: MalformedError, OSError."""
    made_of = covers(day, before)
    source = of.source([*(() if before is None else before.files), *day.fresh])
    with ExitStack() as stack, new_connection() as connection:
        files = [stack.enter_context(of.new_rollup(one, day, made_of, frozenset(made_of))) for one in seconds]
        for nodes in nodes_in(connection, source, len(of.columns)):
            rows = read_rows(connection, source, nodes, of.columns)
            sets = [file.of for file in files]
            for file, table in zip(files, rolled(rows, sets, of.columns, day.span), strict=True):
                file.add(table)


def uncovered(of: SetToRoll, day: DayFiles, rollup: Filed) -> list[Filed]:
    """Return the files of a day, once it was retired, whose rows its roll-up lacks."""
    held = of.lake.storage.made_of(rollup) if day.fresh else ()
    return [file for file in day.fresh if file.path.name not in held]


def add_late(of: SetToRoll, day: DayFiles, seconds: int) -> None:
    """Make the roll-up of a day that was retired of itself and of what came later. Raises: as `roll_up`."""
    [rollup] = of.rollup(seconds, day)
    late = uncovered(of, day, rollup)
    of.lake.storage.fetch([rollup])
    names = Manifest.read(rollup.path).names | {file.path.name for file in late}
    made_of = [rollup.path.name, *(file.path.name for file in late)]
    with of.new_rollup(seconds, day, made_of, names) as file, new_connection() as connection:
        for tables in _both(connection, of, file.of, (rollup, late)):
            file.add(together(*tables, file.of, of.columns))


def _both(
    connection: duckdb.DuckDBPyConnection, of: SetToRoll, rolled: MetricSet, both: tuple[Filed, Sequence[Filed]]
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Yield the rows of a roll-up, and those of a roll-up of later rows, some nodes after others."""
    stored, late = of.lake.source(rolled.name, [both[0].path]), of.source(both[1])
    columns = {column.name: column for column in rolled.columns}
    every = f"(select node from {stored} union all by name select node from {late})"  # noqa: S608 - our own files
    for nodes in nodes_in(connection, every, len(columns)):
        rows = read_rows(connection, late, nodes, of.columns)
        yield read_rows(connection, stored, nodes, columns), without_growth(rows, rolled, of.columns)
