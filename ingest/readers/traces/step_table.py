"""Tables of steps as StragglerAnalysis publishes them (Parquet): operations of each rank in each step, in seconds.

Steps begin at 0 each; here they follow one another without a gap. `NAME.meta.yaml` next to it states the parallelism.
Source: ByteDance-Seed/StragglerAnalysis; "Understanding Stragglers in Large Model Training", OSDI 2025.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.traces.trace import NONE, Group, Integers, Kind, Place, RankTrace
from crosswind.data.yaml_text import parsed
from crosswind.ingest.reader.lines import whole_text
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.traces.rank_rows import RankRows
from crosswind.ingest.readers.traces.reader import beside

NEEDED = {"rank", "step", "optype", "start_ts", "duration"}
LARGEST_S = 1e9
COMPUTE, COMMUNICATION, HOST = Place("compute", 0, 0), Place("communication", 0, 1), Place("host")


@dataclass(frozen=True)
class StepTableReader:
    """One file is a run."""

    name: ClassVar[str] = "step_table"
    version: ClassVar[int] = 1
    companions: ClassVar[tuple[str, ...]] = (".meta.yaml",)
    description: ClassVar[str] = "a table of steps of StragglerAnalysis (Parquet)"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Return whether it is Parquet with the columns of such a table."""
        try:
            return head.startswith(b"PAR1") and set(pq.read_schema(path).names) >= NEEDED
        except (pa.ArrowException, OSError):
            return False

    def read(self, path: Path, report: Report) -> Iterator[RankTrace]:
        """Yield a trace for each rank. Raises: MalformedError, UnavailableError."""
        table = _Table(path)
        facts = _facts(beside(path, ".meta.yaml"), report)
        for rank in np.unique(table.rank):
            yield table.trace(int(rank), facts, report)


class _Table:
    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            table = pq.read_table(path, partitioning=None)
            if lacking := [name for name in sorted(NEEDED) if table[name].null_count]:
                raise ValueError(f"{lacking[0]} lacks values")
            self.rank, self._step = (_numbers(table, name) for name in ("rank", "step"))
            begin_s, length_s = (table[name].to_numpy().astype(np.float64) for name in ("start_ts", "duration"))
            self._names = table["optype"].to_numpy().astype(str)
            self._stage, self._line, self._sequence, self._batch = (
                _numbers(table, name) if name in table.column_names else np.full(len(begin_s), NONE)
                for name in ("stage", "dp_rank", "seq_id", "mb_id")
            )
        except (pa.ArrowException, OSError, ValueError, TypeError) as error:
            raise MalformedError(f"{path}: {error}; expected numbers in {', '.join(sorted(NEEDED))}") from error
        if not len(begin_s) or not ((np.abs(begin_s) < LARGEST_S) & (length_s >= 0) & (length_s < LARGEST_S)).all():
            raise MalformedError(f"{path}: no rows, or begins or durations that are none; expected seconds")
        if self.rank.min() < 0:
            raise MalformedError(f"{path}: rank {self.rank.min()}; expected ranks from 0 on")
        self._begin_ns, self._end_ns = (np.rint(s * 1e9).astype(np.int64) for s in (begin_s, begin_s + length_s))
        self._place_steps()

    def _place_steps(self) -> None:
        """Move steps one after another."""
        steps, codes = np.unique(self._step, return_inverse=True)
        lengths = np.zeros(len(steps), np.int64)
        np.maximum.at(lengths, codes, self._end_ns)
        begins = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        self._steps = list(zip(steps.tolist(), begins.tolist(), (begins + lengths).tolist(), strict=True))
        self._begin_ns += begins[codes]
        self._end_ns += begins[codes]

    def trace(self, rank: int, facts: dict[str, object], report: Report) -> RankTrace:
        """Return a rank's trace."""
        rows = RankRows(str(self._path))
        is_here = self.rank == rank
        for kind, place in ((Kind.KERNEL, COMPUTE), (Kind.COLLECTIVE, COMMUNICATION), (Kind.FRAME, HOST)):
            chosen = np.flatnonzero(is_here & (self._kinds() == kind))
            names = self._names[chosen].tolist()
            groups = [rows.groups.of([self._group(row)])[0] for row in chosen.tolist()]
            more = {"group": groups, "sequence": self._sequence[chosen], "operator": self._batch[chosen]}
            edges = self._begin_ns[chosen], self._end_ns[chosen]
            rows.add(kind, edges, names, [place] * len(names), **more)
        numbers, begins, ends = zip(*self._steps, strict=True)
        names = [f"step {number}" for number in numbers]
        rows.add(Kind.STEP, (begins, ends), names, [HOST] * len(names))
        report.read += rows.count
        size, run = facts.get("world_size"), facts.get("trial_name", "")
        return rows.trace(
            is_stated=True,
            rank=rank,
            world_size=size if isinstance(size, int) else int(self.rank.max()) + 1,
            run=str(run)[:200],
            format="step_table",
            notes=("steps follow one another without the gaps that the table leaves out",),
        )

    def _kinds(self) -> np.ndarray:
        names, codes = np.unique(self._names, return_inverse=True)
        return np.array([_kind(name) for name in names], np.uint8)[codes]

    def _group(self, row: int) -> Group:
        """Return the ranks of a stage, or for messages between stages those of a pipeline."""
        is_between = self._names[row].endswith(("-send", "-recv"))
        column, name = (self._line, "pipeline") if is_between else (self._stage, "stage")
        ranks = tuple(np.unique(self.rank[column == column[row]]).tolist())
        return Group(f"{name} {column[row]}", ranks, len(ranks))


def _numbers(table: pa.Table, name: str) -> Integers:
    """Return whole numbers, NONE where there is none. Raises: ArrowInvalid for others."""
    numbers: Integers = pc.fill_null(table[name], NONE).cast(pa.int64()).to_numpy()
    return numbers


def _kind(name: str) -> Kind:
    if name == "gc":
        return Kind.FRAME
    return Kind.KERNEL if name.endswith("-compute") or name.startswith("optimizer") else Kind.COLLECTIVE


def _facts(path: Path, report: Report) -> dict[str, object]:
    try:
        facts = parsed(whole_text(path, Report(str(path), report.format), limit=1 << 20))
    except (UnavailableError, MalformedError, ValueError) as error:
        report.notes.append(f"the parallelism is not stated: {error}")
        return {}
    return facts if isinstance(facts, dict) else {}
