"""Allocations and placements in the catalog: who was on which node, and when."""

from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, or_, select

from crosswind.data.catalog import rows, tables
from crosswind.data.catalog.keyset import part_of
from crosswind.data.schema.occupancy import (
    ALLOCATION_KEY,
    PLACEMENT_KEY,
    Allocation,
    Place,
    Placement,
    Source,
    merge_places,
)
from crosswind.data.schema.part import Part

ALLOCATION_ORDER = ("system", "node", "restart_count")


class Places:
    """Allocations and placements, over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def merge(self, place: Allocation | Placement) -> None:
        """Stores what is now known of a job or rank on a node; what was known stays, and the order never matters."""
        is_job = isinstance(place, Allocation)
        table, names = (tables.allocations, ALLOCATION_KEY) if is_job else (tables.placements, PLACEMENT_KEY)
        keys = {name: getattr(place, name) for name in names}
        rows.hold(self._connection, f"{table.name} {sorted(keys.items())}")
        row = rows.fetch(self._connection, table, **keys)
        stored = None if row is None else _place(type(place), row)
        merged = place if stored is None else merge_places(stored, place)
        if merged != stored:
            rows.upsert(self._connection, table, asdict(merged))

    def allocations(self, job_id: str, *, system: str | None = None) -> list[Allocation]:
        """The job's allocations, by system, node and restart."""
        table = tables.allocations
        query = select(table).where(table.c.job_id == job_id).order_by(*(table.c[name] for name in ALLOCATION_ORDER))
        if system is not None:
            query = query.where(table.c.system == system)
        return self._allocations(query)

    def page(
        self,
        job_id: str,
        part: Part,
        *,
        systems: Collection[str] | None = None,
    ) -> list[Allocation]:
        """Return a part of the job's allocations on these systems, in the order of (system, node, restart_count)."""
        table = tables.allocations
        of_job = select(table).where(table.c.job_id == job_id)
        query = part_of(of_job, part, *(table.c[name] for name in ALLOCATION_ORDER))
        if systems is not None:
            query = query.where(table.c.system.in_(sorted(systems)))
        return self._allocations(query)

    def allocations_on(self, nodes: Collection[str], begin_ns: int, end_ns: int) -> list[Allocation]:
        """Every job's allocations on nodes that are sampled under these names and overlap [begin_ns, end_ns)."""
        table = tables.allocations
        overlap = and_(
            or_(table.c.started_ns.is_(None), table.c.started_ns < end_ns),
            or_(table.c.ended_ns.is_(None), table.c.ended_ns > begin_ns),
        )
        query = select(table).where(rows.among(self._connection, table.c.sampled_as, nodes), overlap)
        return self._allocations(query)

    def sampled_as(self, nodes: Collection[str]) -> set[str]:
        """Return the names by which the samples of these nodes go."""
        names = [
            select(table.c.sampled_as).where(rows.among(self._connection, table.c.node, nodes)).distinct()
            for table in (tables.allocations, tables.placements)
        ]
        return {str(name) for query in names for name in self._connection.execute(query).scalars()}

    def sampled_names(self, nodes: Collection[str]) -> dict[str, set[str]]:
        """Return by node the other names by which its samples go, as far as any are known."""
        names: dict[str, set[str]] = {}
        for table in (tables.allocations, tables.placements):
            pair = select(table.c.node, table.c.sampled_as).where(rows.among(self._connection, table.c.node, nodes))
            for node, name in self._connection.execute(pair.where(table.c.node != table.c.sampled_as).distinct()):
                names.setdefault(node, set()).add(name)
        return names

    def names_of(self, node: str) -> set[str]:
        """Return all names by which a node goes, at schedulers and in samples, this one included."""
        names = {node}
        for table in (tables.allocations, tables.placements):
            is_it = or_(table.c.node == node, table.c.sampled_as == node)
            for pair in self._connection.execute(select(table.c.node, table.c.sampled_as).where(is_it).distinct()):
                names.update(pair)
        return names

    def placements_of_job(self, job_id: str, *, system: str | None = None) -> list[Placement]:
        """The processes that were ranks of this job."""
        where = tables.placements.c.job_id == job_id
        return self._placements(where if system is None else and_(where, tables.placements.c.system == system))

    def placements_of_run(self, run_id: str) -> list[Placement]:
        """The processes that were ranks of this run."""
        return self._placements(tables.placements.c.run_id == run_id)

    def gpus_of_ranks(self, run_ids: Collection[str]) -> dict[tuple[str, int], tuple[str, ...]]:
        """The GPUs of the ranks of these runs, by run and rank, as far as any are known."""
        table = tables.placements
        is_wanted = and_(rows.among(self._connection, table.c.run_id, run_ids), table.c.rank.is_not(None))
        placements = self._connection.execute(select(table.c.run_id, table.c.rank, table.c.gpus).where(is_wanted))
        return {(str(run_id), int(rank)): tuple(gpus) for run_id, rank, gpus in placements if gpus}

    def _placements(self, where: ColumnElement[bool]) -> list[Placement]:
        table = tables.placements
        query = select(table).where(where).order_by(table.c.rank, *(table.c[name] for name in PLACEMENT_KEY))
        return [_place(Placement, row) for row in self._connection.execute(query).mappings()]

    def _allocations(self, query: Select[Any]) -> list[Allocation]:
        return [_place(Allocation, row) for row in self._connection.execute(query).mappings()]


def _place(kind: type[Place], row: Mapping[Any, Any]) -> Place:
    return kind(**{**row, "gpus": tuple(row["gpus"]), "source": Source(row["source"])})
