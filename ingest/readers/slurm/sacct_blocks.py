"""Blocks of Slurm's accounting as rows of jobs: by columns if a job's lines are as expected, else line by line."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crosswind.data.lake.lake import arrow_schema
from crosswind.data.store.jobs import FACTS, JOB
from crosswind.ingest.reader.lines import Block
from crosswind.ingest.readers.slurm.cells import Cells, Flags, cells_of
from crosswind.ingest.readers.slurm.sacct_columns import jobs_in
from crosswind.ingest.readers.slurm.sacct_jobs import Layout
from crosswind.ingest.readers.slurm.sacct_lines import Allocation, LineReading, allocations_table, is_header
from crosswind.ingest.readers.slurm.sacct_remarks import Remarks

FEW_BYTES = 30_000  # fewer are faster line by line
KEPT_BYTES = 1 << 16  # of the last job's lines, for the next block
NOTHING = Block(0, b"")
JOB_COLUMNS = arrow_schema(JOB).names
LOOKED_AT = [*FACTS, "nodes_named", "line", "energy_from"]


@dataclass
class BlockReading:
    """One pass over blocks after the header; unexpected lines go to `lines`, which keeps the open job."""

    lines: LineReading
    remarks: Remarks
    few_bytes: int = FEW_BYTES
    kept: Block = NOTHING  # the last job's own line, and the lines after it

    def tables(self, block: Block) -> Iterator[pa.Table]:
        """Yield the jobs that are complete with the lines of a block, in their order."""
        if self.kept.data:
            block, self.kept = Block(self.kept.number, self.kept.data + block.data), NOTHING
        number, begin = block.number, 0
        cut = self._last_job(block.data)
        cells = self._cells(block.data[:cut])
        if cells is not None and not cells.first_letters().any():
            self._keep(block.data[cut:], number + len(cells.line_ends))
            yield from self._looked_at(self._by_columns(cells, number, is_complete=cut < len(block.data)))
            return
        for end, after in _headers(block.data):
            yield from self._looked_at(self._rows(number, block.data[begin:end]))
            number += block.data.count(b"\n", begin, end)
            self._by_line(number, [block.data[end:after].decode().rstrip("\n")])
            number, begin = number + 1, after
        yield from self._looked_at(self._rows(number, block.data[begin:]))

    def _last_job(self, data: bytes) -> int:
        """Return the begin of the last line that certainly begins a job; the end if that is too far from it."""
        end = len(data)
        while end > max(0, len(data) - KEPT_BYTES):
            begin = data.rfind(b"\n", 0, end - 1) + 1
            if self.lines.begins_job(data[begin:end].decode().rstrip("\r\n")):
                return begin
            end = begin
        return len(data)

    def _keep(self, data: bytes, number: int) -> None:
        if data:
            self.kept = Block(number, data)

    def rest(self) -> Iterator[pa.Table]:
        """Yield the job that was still open, when nothing more comes."""
        jobs = self._by_line(self.kept.number, self.kept.data.decode().split("\n"))
        yield from self._looked_at(allocations_table(jobs + self.lines.ended()))

    def _looked_at(self, rows: pa.Table) -> Iterator[pa.Table]:
        if len(rows):
            self.remarks.look_at(rows)
            self.lines.report.read += len(rows)
            times = pa.array(np.arange(len(rows)))  # the loader has its own
            yield rows.append_column("ts_ns", times).select(JOB_COLUMNS).cast(arrow_schema(JOB))

    def _cells(self, data: bytes) -> Cells | None:
        """Return the cells, if reading by columns is worth it and the columns are as expected."""
        if not data or len(data) < self.few_bytes or not Layout(tuple(self.lines.columns)).is_plain:
            return None
        return cells_of(data, len(self.lines.columns))

    def _rows(self, number: int, data: bytes) -> pa.Table:
        cells = self._cells(data)
        if cells is None:
            return allocations_table(self._by_line(number, data.decode().split("\n")))
        return self._by_columns(cells, number, is_complete=False)

    def _by_line(self, number: int, texts: list[str]) -> list[Allocation]:
        numbered = enumerate(texts, number)
        return list(
            self.lines.finished((line_number, text.rstrip("\r")) for line_number, text in numbered if text.strip())
        )

    def _by_columns(self, cells: Cells, number: int, *, is_complete: bool) -> pa.Table:
        jobs = jobs_in(cells, Layout(tuple(self.lines.columns)), self.lines.clock, is_complete=is_complete)
        allocations: list[Allocation] = []
        for begin, end, is_left in _stretches(jobs.left):
            if is_left:
                allocations += self._by_line(number + begin, [cells.line(line) for line in range(begin, end)])
            else:
                allocations += self.lines.ended()
        self.lines.steps += jobs.total("steps")
        self.lines.clock.local += jobs.total("local_times")
        rows = jobs.table(self.lines.system, number).select(LOOKED_AT)
        if not allocations:
            return rows
        both = pa.concat_tables([rows, allocations_table(allocations)])
        return both.take(pc.sort_indices(both["line"]))


def _stretches(flags: Flags) -> Iterator[tuple[int, int, bool]]:
    """Yield the begin and end of each stretch of like flags, with their value."""
    edges = [0, *(np.flatnonzero(flags[1:] != flags[:-1]) + 1).tolist(), len(flags)]
    for begin, end in itertools.pairwise(edges):
        yield begin, end, bool(flags[begin])


def _headers(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the begin and end of each line that names columns."""
    place = data.find(b"State")
    while place >= 0:
        begin, after = data.rfind(b"\n", 0, place) + 1, data.find(b"\n", place) + 1
        if is_header(data[begin:after].decode().rstrip("\r\n").split("|")):
            yield begin, after
        place = data.find(b"State", after)
