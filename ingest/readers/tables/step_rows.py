"""Rows of a table as steps of ranks, one each; they become rows of the set `step`, and a run for each that is named."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pyarrow as pa

from crosswind.data.lake.lake import arrow_schema
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.imported import imported_id
from crosswind.data.schema.metric import MetricSet
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.steps import PHASES, STEP
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.tables.numbers import RANK_MAX, Columns, Ints
from crosswind.ingest.readers.tables.table_file import Chunk
from crosswind.ingest.readers.tables.table_map import TableMap

RUNS_MAX = 100_000
RANKS_MAX = 1 << 20  # of one run, whose steps have no start


@dataclass
class TableRun:
    """One run of a table as far as it is read."""

    run_id: str
    workload: str
    system: str
    ranks: int = 0
    started_ns: int | None = None
    ended_ns: int = 0
    tags: dict[str, str] = field(default_factory=dict)

    def seen(self, ranks: int, started_ns: int, ended_ns: int) -> None:
        """Take the extent of some of its rows."""
        self.ranks = max(self.ranks, ranks)
        self.started_ns = started_ns if self.started_ns is None else min(self.started_ns, started_ns)
        self.ended_ns = max(self.ended_ns, ended_ns)

    def run(self) -> Run:
        """Return the run."""
        return Run(
            self.run_id,
            self.workload,
            self.system,
            RunState.COMPLETED,
            world_size=self.ranks,
            started_ns=self.started_ns,
            ended_ns=self.ended_ns,
            tags={"imported_from": "table"} | self.tags,
        )


@dataclass
class TableRuns:
    """The runs that a table of their rows names; without a name the table is one run, named as its file."""

    table_map: TableMap
    context: Context
    stem: str
    first: str  # the first row, which tells tables of one name apart
    by_name: dict[str, TableRun] = field(default_factory=dict)

    def of(self, columns: Columns) -> pd.Series:
        """Return the id of each row's run, (n,). Raises: MalformedError for too many runs."""
        names, workloads, systems = (columns.texts(name) for name in ("run", "workload", "system"))
        codes, keys = pd.factorize(names + "\x1f" + workloads + "\x1f" + systems)
        for key in map(str, keys):
            if key not in self.by_name:
                self.by_name[key] = self._new(*key.split("\x1f"))
        if len(self.by_name) > RUNS_MAX:
            raise MalformedError(f"{self.stem}: more than {RUNS_MAX} runs; expected a table of fewer: split it")
        ids = np.array([self.by_name[str(key)].run_id for key in keys], dtype=object)
        return pd.Series(ids[codes] if len(ids) else [], dtype=object)

    def rows(self, columns: Columns) -> pd.DataFrame:
        """Return the run, rank, step and duration of each row. Raises: MalformedError."""
        return pd.DataFrame(
            {
                "run_id": self.of(columns),
                "rank": columns.counts("rank", RANK_MAX),
                "step": columns.counts("step"),
                "duration_seconds": columns.durations("seconds"),
            }
        )

    def _new(self, name: str, workload: str, system: str) -> TableRun:
        system = system or self.context.system
        # Rows are never changed once stored: read by another map they are another run's.
        run_id = imported_id("table", system, self.stem, self.first, name, workload, self.table_map.text)
        tags = {"table_run": name} if name else {}
        return TableRun(run_id, workload or self.context.workload or self.stem, system, tags=tags)

    def records(self) -> Iterator[Run]:
        """Yield the runs."""
        yield from (run.run() for run in self.by_name.values())

    def take(self, rows: pd.DataFrame) -> None:
        """Take the extent of rows with the columns run_id, rank, ts_ns, end_ns."""
        by_id = {run.run_id: run for run in self.by_name.values()}
        extents = rows.groupby("run_id", sort=False).agg(
            ranks=("rank", "max"), first=("ts_ns", "min"), last=("end_ns", "max")
        )
        for run_id, ranks, first, last in extents.itertuples():
            by_id[str(run_id)].seen(int(ranks) + 1, int(first), int(last))


@dataclass
class StepRows:
    """Turns rows into steps. Steps without a start follow each other on their rank."""

    table_map: TableMap
    report: Report
    runs: TableRuns
    base_ns: int
    _ends: dict[tuple[str, int], int] = field(default_factory=dict)  # of each rank's last step, without starts

    def records(self, chunk: Chunk) -> Iterator[pa.Table]:
        """Yield the steps of some rows. Raises: MalformedError."""
        columns = Columns(self.table_map, chunk, self.runs.context.zone)
        frame = self.runs.rows(columns)
        frame["ts_ns"] = columns.moments("start", self.base_ns) if columns.has("start") else np.int64(self.base_ns)
        _add_phases(frame, columns)
        frame = frame[columns.kept(self.report)]
        if frame.empty:
            return
        if not columns.has("start"):
            frame = frame.assign(ts_ns=self._placed(frame))
        self.runs.take(frame.assign(end_ns=frame["ts_ns"] + frame["duration_seconds"]))
        self.report.read += len(frame)
        yield table_of(STEP, frame)

    def end(self) -> Iterator[Run]:
        """Yield the runs, once all rows are read."""
        self.report.read += len(self.runs.by_name)
        yield from self.runs.records()

    def _placed(self, frame: pd.DataFrame) -> Ints:
        """Return the start of each step: the end of the one before it on its rank."""
        by_rank = frame.groupby(["run_id", "rank"], sort=False)["duration_seconds"]
        before, group = by_rank.cumsum() - frame["duration_seconds"], by_rank.ngroup().to_numpy(np.int64)
        totals = by_rank.sum()
        keys = [(str(run_id), int(rank)) for run_id, rank in totals.index]
        begins = np.array([self._ends.get(key, self.base_ns) for key in keys], np.int64)
        self._ends.update(zip(keys, (begins + totals.to_numpy(np.int64)).tolist(), strict=True))
        if len(self._ends) > RANKS_MAX:
            raise MalformedError(f"more than {RANKS_MAX} ranks whose steps have no start; expected `start` in the map")
        return np.asarray(begins[group] + before.to_numpy(np.int64), np.int64)


def _add_phases(frame: pd.DataFrame, columns: Columns) -> None:
    """Add phases where the map names one: what the others leave of the step is `compute`, or else `other`."""
    given = [name for name in PHASES if columns.has(name)]
    if not given:
        return
    phases = {name: columns.durations(name) if name in given else np.zeros(len(frame), np.int64) for name in PHASES}
    rest = frame["duration_seconds"].to_numpy() - sum(phases.values())
    longer = rest < -frame["duration_seconds"].to_numpy() // 1000  # beyond rounding
    for row in np.flatnonzero(longer).tolist():
        columns.reasons.setdefault(row, "its phases are longer than the step; expected them to sum to it at most")
    phases["compute" if "compute" not in given else "other"] += np.maximum(rest, 0)
    for name, values in phases.items():
        frame[f"{name}_seconds"] = values


def table_of(metric_set: MetricSet, frame: pd.DataFrame) -> pa.Table:
    """Return rows of the set; columns that are not in the frame are null."""
    schema = arrow_schema(metric_set)
    arrays = [
        pa.array(frame[column.name], column.type, from_pandas=True)
        if column.name in frame
        else pa.nulls(len(frame), column.type)
        for column in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)
