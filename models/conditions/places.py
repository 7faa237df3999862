"""Places of samples: nodes in look-backs, the time from which a sample is fresh, and nodes that share a kernel."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self, TypedDict

import duckdb
import pandas as pd
import pyarrow as pa

from crosswind.data.lake.lake import Lake
from crosswind.data.lake.parts import Span

# Sets of which every sweep has rows of every node, those of few rows first.
SWEPT = ("memory", "pressure", "cpu", "network", "gpu")

# Rows of the nodes within any look-back, each once.
WITHIN = """exists (
    select 1 from (select unnest(?) as at_node, unnest(?::bigint[]) as from_ns, unnest(?::bigint[]) as until_ns)
    where at_node = node and ts_ns >= from_ns and ts_ns < until_ns
)"""

# Of each place the time halfway between its newest two sweeps.
_SWEEPS = """
with times as (
    select distinct moment, at_node, ts_ns from places join samples on node = at_node
    where ts_ns >= from_ns and ts_ns < until_ns
), newest as (select moment, at_node, max(ts_ns, 2) as two from times group by all)
select moment, at_node, two[1] - (two[1] - coalesce(two[2], two[1])) // 2 as fresh_ns from newest
"""
_BOOTS = "select distinct node, boot_id from {} where ts_ns between ? and ? and boot_id is not null"


class RowFilter(TypedDict):
    """Keywords of `Lake.counters` for the rows of WITHIN."""

    parameters: list[object]
    within: Span


def rows_within(places: pd.DataFrame) -> RowFilter:
    """The parameters of WITHIN for places, and the time span of them all."""
    columns: list[object] = [places["at_node"].tolist(), places["from_ns"].tolist(), places["until_ns"].tolist()]
    return {"parameters": columns, "within": (int(places["from_ns"].min()), int(places["until_ns"].max()) - 1)}


@dataclass(frozen=True)
class MemoryDatabase:
    """A DuckDB connection over two tables that are given with each query."""

    connection: duckdb.DuckDBPyConnection

    @classmethod
    @contextmanager
    def opened(cls) -> Iterator[Self]:
        """An empty database."""
        with duckdb.connect(":memory:", config={"threads": 1}) as connection:
            yield cls(connection)

    def answer(self, sql: str, samples: pd.DataFrame | pa.Table, places: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of a query over `samples` and `places`."""
        self.connection.register("samples", samples)
        self.connection.register("places", places)
        table: pd.DataFrame = self.connection.execute(sql).df()
        return table


def swept_set(stored: Collection[str]) -> str | None:
    """The stored set from which the times of sweeps are read."""
    return next((name for name in SWEPT if name in stored), None)


def with_sweeps(lake: Lake, database: MemoryDatabase, places: pd.DataFrame, swept: str | None) -> pd.DataFrame:
    """The places with `fresh_ns`: samples from then on are of the node's newest sweep."""
    if swept is None:
        return places.assign(fresh_ns=places["from_ns"])
    rows = lake.counters(swept, ["node"], where=WITHIN, **rows_within(places))
    fresh = database.answer(_SWEEPS, rows.select(["node", "ts_ns"]), places)
    joined = places.merge(fresh, on=["moment", "at_node"], how="left")
    return joined.assign(fresh_ns=joined["fresh_ns"].astype("Int64").fillna(joined["from_ns"]).astype("int64"))


def of_kernels(lake: Lake, places: pd.DataFrame, swept: str | None) -> pd.DataFrame:
    """The places and, for every moment, the other nodes of the same boot: containers on one machine."""
    if swept is None:
        return places
    within = rows_within(places)["within"]
    boots = lake.frame(_BOOTS.format(swept), within, within=within)
    mates = boots.merge(boots, on="boot_id", suffixes=("", "_mate"))[["node", "node_mate"]].drop_duplicates()
    joined = places.merge(mates, left_on="at_node", right_on="node")
    both = pd.concat([places, joined.assign(at_node=joined["node_mate"])[places.columns]])
    return both.drop_duplicates(["moment", "at_node"], ignore_index=True)
