"""Ranks of runs in the catalog."""

from collections.abc import Collection
from dataclasses import asdict

from msgspec.json import decode
from sqlalchemy import ColumnElement, Connection, and_, bindparam, func, select

from crosswind.data.catalog import rows, tables
from crosswind.data.catalog.seen import of_seen_runs
from crosswind.data.catalog.verdicts import Verdicts
from crosswind.data.schema.access import ALL_ROWS, RowRule
from crosswind.data.schema.run import Rank

PROCESS = ("node", "pid", "started_ns")  # a process with another of these is another one
LAST, EARLIER = tables.ranks.alias("last").c, tables.ranks.alias("earlier").c
IS_PAIR = and_(LAST.run_id == EARLIER.run_id, LAST.rank == -1 - EARLIER.rank)
OF_ONE = and_(EARLIER.run_id == bindparam("run_id"), EARLIER.rank < 0)
WRITTEN_TWICE = select(LAST.rank, EARLIER.pid, LAST.pid).where(OF_ONE, IS_PAIR)  # ranks that were two processes


class Ranks:
    """Ranks, over one connection; whatever is read are those of runs that the rule lets be seen."""

    def __init__(self, connection: Connection, rule: RowRule = ALL_ROWS) -> None:
        self._connection = connection
        self._rule = rule
        self._verdicts = Verdicts(connection)

    def merge(self, rank: Rank) -> None:
        """Stores a rank; fields that are None keep what was known of the same process.

        Two processes that were one rank become a tag of the run, in whatever order they come: the earlier one is kept
        under a number below zero.
        """
        rows.hold(self._connection, rank.run_id)
        row = asdict(rank)
        stored = rows.fetch(self._connection, tables.ranks, run_id=rank.run_id, rank=rank.rank)
        if stored is None:
            rows.upsert(self._connection, tables.ranks, row)
            self._verdicts.want_again([rank.run_id])
        elif all(stored[name] == row[name] for name in PROCESS):
            merged = {name: stored[name] if value is None else value for name, value in row.items()}
            rows.upsert(self._connection, tables.ranks, merged)
        else:
            rows.upsert(self._connection, tables.ranks, {**stored, "rank": -1 - rank.rank})
            rows.upsert(self._connection, tables.ranks, row)
            self._tag(rank.run_id)
            self._verdicts.want_again([rank.run_id])

    def _tag(self, run_id: str) -> None:
        stored = rows.fetch(self._connection, tables.runs, run_id=run_id)
        if stored is not None:
            tags = {**stored["tags"], **written_twice(self._connection, run_id)}
            rows.change(self._connection, tables.runs, {"run_id": run_id}, tags=tags)

    def of(self, run_id: str) -> list[Rank]:
        """The run's ranks in order."""
        of_run = and_(tables.ranks.c.run_id == run_id, tables.ranks.c.rank >= 0, self._is_of_seen)
        query = select(tables.ranks).where(of_run).order_by(tables.ranks.c.rank)
        return [Rank(**row) for row in self._connection.execute(query).mappings()]

    def nodes_of(self, run_ids: Collection[str]) -> tuple[list[str], list[int], list[str]]:
        """Run, rank and node of every rank of these runs, a column each: tuples would take longer."""
        table = tables.ranks
        is_wanted = and_(rows.among(self._connection, table.c.run_id, run_ids), table.c.rank >= 0, self._is_of_seen)
        ranks, nodes = (rows.gathered(self._connection, column) for column in (table.c.rank, table.c.node))
        query = select(table.c.run_id, ranks, nodes).where(is_wanted).group_by(table.c.run_id)
        columns: tuple[list[str], list[int], list[str]] = ([], [], [])
        for run_id, of_run, on_nodes in self._connection.execute(query).all():
            numbers = decode(of_run, type=list[int])
            columns[0].extend([run_id] * len(numbers))
            columns[1].extend(numbers)
            columns[2].extend(decode(on_nodes, type=list[str]))
        return columns

    def clock_offsets(self, run_ids: Collection[str]) -> dict[str, int]:
        """Return by node by how many ns at most the clock of a rank of these runs was off, as far as any are known."""
        table = tables.ranks
        is_wanted = and_(
            rows.among(self._connection, table.c.run_id, run_ids),
            table.c.clock_offset_ns.is_not(None),
            self._is_of_seen,
        )
        query = select(table.c.node, func.max(func.abs(table.c.clock_offset_ns))).where(is_wanted)
        return {str(node): int(ns) for node, ns in self._connection.execute(query.group_by(table.c.node))}

    @property
    def _is_of_seen(self) -> ColumnElement[bool]:
        return of_seen_runs(self._rule, tables.ranks.c.run_id)


def written_twice(connection: Connection, run_id: str) -> dict[str, str]:
    """Return a tag for each rank of a run that was two processes."""
    pairs = connection.execute(WRITTEN_TWICE, {"run_id": run_id})
    return {f"rank{rank}_written_twice": f"by {one} and {other}" for rank, one, other in pairs}
