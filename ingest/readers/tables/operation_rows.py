"""Rows of a table as operations of ranks, one each: set `operation`, and the steps that they make up.

A step of a rank lasts from the beginning of its first operation to the end of its last one; what its operations without
others (computation) leave of it is exposed communication: the rank worked on nothing else.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pyarrow as pa

from crosswind.data.schema.run import Run
from crosswind.data.schema.steps import OPERATION, STEP
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.tables.numbers import Columns
from crosswind.ingest.readers.tables.step_rows import TableRuns, table_of
from crosswind.ingest.readers.tables.table_file import Chunk
from crosswind.ingest.readers.tables.table_map import TableMap

COMMUNICATION = re.compile(
    r"send|recv|receive|reduce|gather|broadcast|all.?to.?all|barrier|clip-main-grad|nccl|rccl|mpi_", re.IGNORECASE
)
OPTIONAL = ("stage", "replica", "micro_batch", "chunk")
STEP_KEYS = ["run_id", "rank", "step"]
STEPS_AT_ONCE = 500_000  # steps of ranks that are summed up before they are put together


@dataclass
class OperationRows:
    """Turns rows into operations, and sums them up into steps."""

    table_map: TableMap
    report: Report
    runs: TableRuns
    base_ns: int
    _parts: list[pd.DataFrame] = field(default_factory=list)

    def records(self, chunk: Chunk) -> Iterator[pa.Table]:
        """Yield the operations of some rows. Raises: MalformedError."""
        columns = Columns(self.table_map, chunk, self.runs.context.zone)
        frame = self.runs.rows(columns).assign(
            operation=columns.texts("operation"), ts_ns=columns.moments("start", self.base_ns)
        )
        for name in OPTIONAL:
            if columns.has(name):
                numbers = columns.counts(name, missing=-1)
                frame[name] = pd.Series(numbers, dtype="Int64").mask(numbers < 0).to_numpy()
        frame["number"] = columns.counts("number") if columns.has("number") else chunk.lines
        if columns.has("meeting"):
            frame["meeting"] = columns.texts("meeting").replace("", None)
        frame = frame[columns.kept(self.report)]
        if frame.empty:
            return
        self._sum_up(frame)
        self.report.read += len(frame)
        yield table_of(OPERATION, frame)

    def end(self) -> Iterator[pa.Table | Run]:
        """Yield the steps and the runs, once all rows are read."""
        if self._parts:
            steps = _placed(_combined(self._parts))
            self.runs.take(steps.assign(end_ns=steps["ts_ns"] + steps["duration_seconds"]))
            self.report.read += len(steps)
            yield table_of(STEP, steps)
        self.report.read += len(self.runs.by_name)
        yield from self.runs.records()

    def _sum_up(self, frame: pd.DataFrame) -> None:
        meets = frame["operation"].str.contains(COMMUNICATION)
        if "meeting" in frame:
            meets |= frame["meeting"].notna()
        alone = frame["duration_seconds"].where(~meets, 0)
        rows = frame.assign(end_ns=frame["ts_ns"] + frame["duration_seconds"], alone=alone)
        self._parts.append(_summed(rows))
        if sum(map(len, self._parts[1:])) > STEPS_AT_ONCE:
            self._parts = [_combined(self._parts)]


def _summed(rows: pd.DataFrame) -> pd.DataFrame:
    by = rows.groupby(STEP_KEYS, sort=False)
    return by.agg(ts_ns=("ts_ns", "min"), end_ns=("end_ns", "max"), alone=("alone", "sum")).reset_index()


def _combined(parts: list[pd.DataFrame]) -> pd.DataFrame:
    return parts[0] if len(parts) == 1 else _summed(pd.concat(parts, ignore_index=True))


def _placed(steps: pd.DataFrame) -> pd.DataFrame:
    """Return rows of steps. Where each step's times begin anew, its steps follow each other in their order."""
    steps = steps.sort_values(STEP_KEYS, ignore_index=True)
    duration = steps["end_ns"] - steps["ts_ns"]
    extents = steps.groupby(["run_id", "step"], sort=True).agg(first=("ts_ns", "min"), last=("end_ns", "max"))
    by_run = extents.groupby(level="run_id", sort=False)
    is_anew = (extents["first"] < by_run["last"].shift(1)).groupby(level="run_id").transform("any")
    length = extents["last"] - extents["first"]
    before = length.groupby(level="run_id").cumsum() - length
    begin = (by_run["first"].transform("min") + before).where(is_anew, extents["first"])
    shift = (begin - extents["first"]).rename("shift").reset_index()
    moved = steps.merge(shift, on=["run_id", "step"], how="left")["shift"].to_numpy(np.int64)
    compute = np.minimum(steps["alone"], duration)
    phases = {"compute_seconds": compute, "comm_seconds": duration - compute}
    none = dict.fromkeys(("input_seconds", "checkpoint_seconds", "other_seconds"), 0)  # operations are all there is
    return steps.assign(ts_ns=steps["ts_ns"] + moved, duration_seconds=duration, **phases, **none)
