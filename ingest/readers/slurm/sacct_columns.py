"""Jobs of a block of Slurm's accounting by columns: those whose lines are all as expected; the other lines are left.

A job's lines are those from its own up to the next job's: its steps, and any lines among them. When one of them is not
as expected, all of them are left; so are the last job's, unless nothing more of it comes in the next block.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crosswind.ingest.readers.clock import Clock
from crosswind.ingest.readers.slurm.cells import Cells, Flags, Ints, sliced
from crosswind.ingest.readers.slurm.json_texts import json_objects
from crosswind.ingest.readers.slurm.sacct_jobs import TEXTS, Layout, facts_of
from crosswind.ingest.readers.slurm.sacct_steps import Folded, Steps, fold, steps_of
from crosswind.ingest.readers.slurm.slurm_values import JOB_ID

LONGEST_NUMBER = 18  # digits


@dataclass(frozen=True)
class Identified:
    """Rows of cells that are jobs or steps by their identifiers, and those identifiers."""

    jobs: Ints
    job_ids: pa.Array
    steps: Ints
    step_job_ids: pa.Array
    step_names: pa.Array

    def with_jobs(self, places: Ints) -> "Identified":
        """Return the same with only some of the jobs."""
        ids = _some(self.job_ids, places)
        return Identified(self.jobs[places], ids, self.steps, self.step_job_ids, self.step_names)


@dataclass(frozen=True)
class BlockJobs:
    """Jobs whose lines are all as expected."""

    cells: Cells
    layout: Layout
    rows: Ints  # of cells
    facts: pa.Table
    left: Flags  # a mask of the lines that belong to none of these jobs

    def total(self, fact: str) -> int:
        """Return the sum of a fact over all of them."""
        return int(pc.sum(self.facts[fact]).as_py() or 0)

    def table(self, system: str, number: int) -> pa.Table:
        """Return their rows, with the numbers of their lines; `number` is the block's first one."""
        facts = {name: self.facts[name] for name in self.facts.column_names}
        texts = {name: self.layout.column(self.cells, column, self.rows).texts() for name, column in TEXTS.items()}
        owners = {name: _known(texts[name]) for name in ("user", "account", "partition")}
        lines = pa.array(self.cells.lines[self.rows].astype(np.int64) + number)
        system_texts = pa.repeat(pa.scalar(system, pa.string()), len(self.rows))
        others = {"system": system_texts, "fields": self._fields(), "line": lines}
        return pa.table(facts | texts | owners | others)

    def _fields(self) -> pa.Array:
        columns = {name: self.layout.column(self.cells, name, self.rows) for name in self.layout.as_written}
        named = [(name, column.texts()) for name, column in columns.items() if not column.is_empty]
        named.append(("State", self.facts["said"]))
        if self.total("steps"):
            steps = pc.if_else(pc.equal(self.facts["steps"], 0), "", self.facts["steps"].cast(pa.string()))
            rss = self.facts["max_rss_bytes"].cast(pa.string()).fill_null("")
            named += [("steps", steps), ("energy_from", self.facts["energy_from"]), ("max_rss_bytes", rss)]
        are_plain = b'"' not in self.cells.data and b"\\" not in self.cells.data
        return json_objects(named, len(self.rows), are_plain=are_plain)


def jobs_in(cells: Cells, layout: Layout, clock: Clock, *, is_complete: bool) -> BlockJobs:
    """Return the jobs of a block, the last one only when it `is_complete`."""
    identified = _identified(cells, layout)
    facts = facts_of(cells, layout, identified.jobs, clock)
    sure = np.flatnonzero(~facts.doubtful).astype(np.int32)
    identified, columns = identified.with_jobs(sure), _some(pa.table(facts.columns), sure)
    firsts = cells.lines[identified.jobs]
    steps, is_theirs = _followers(cells, layout, identified)
    folded = fold(steps, columns["joules"].combine_chunks())
    is_left = _left(cells, firsts, cells.lines[identified.steps][is_theirs])
    is_left[1:] |= folded.doubtful
    is_left[-1] |= not is_complete
    columns = _with_steps(columns.append_column("job_id", identified.job_ids), folded)
    kept = np.flatnonzero(~is_left[1:]).astype(np.int32)
    line_counts = np.diff(firsts, prepend=0, append=len(cells.line_ends))
    return BlockJobs(cells, layout, identified.jobs[kept], _some(columns, kept), np.repeat(is_left, line_counts))


def _identified(cells: Cells, layout: Layout) -> Identified:
    column = layout.columns.index(layout.identifier)
    begins, ends = cells.begins(column), cells.ends[column]
    texts = sliced(cells.data, begins, ends)
    dots = begins + pc.find_substring(texts, ".").to_numpy()
    is_plain = ~np.isin(cells.lines, cells.with_control_characters())
    steps, jobs = (np.flatnonzero(is_plain & kind).astype(np.int32) for kind in (dots >= begins, dots < begins))
    job_ids, step_job_ids = _some(texts, jobs), sliced(cells.data, begins[steps], dots[steps])
    are_jobs, are_steps = _are_job_ids(job_ids), _are_job_ids(step_job_ids)
    jobs, job_ids = jobs[are_jobs], _some(job_ids, np.flatnonzero(are_jobs))
    steps = steps[are_steps]
    names = sliced(cells.data, dots[steps] + np.int32(1), ends[steps])
    return Identified(jobs, job_ids, steps, _some(step_job_ids, np.flatnonzero(are_steps)), names)


def _are_job_ids(texts: pa.Array) -> Flags:
    is_number = pc.and_(pc.ascii_is_decimal(texts), pc.less_equal(pc.binary_length(texts), LONGEST_NUMBER))
    flags: Flags = np.array(is_number)
    others = np.flatnonzero(~flags)
    flags[others] = np.array(pc.match_substring_regex(texts.take(pa.array(others)), f"^(?:{JOB_ID})$"))
    return flags


def _followers(cells: Cells, layout: Layout, identified: Identified) -> tuple[Steps, Flags]:
    """Return the steps that follow a job, and a mask of all steps that are certainly that one's."""
    owners = np.searchsorted(cells.lines[identified.jobs], cells.lines[identified.steps], side="right") - 1
    places = np.flatnonzero(owners >= 0)
    owners, rows = owners[places], identified.steps[places]
    rss, joules = (layout.column(cells, column, rows) for column in ("MaxRSS", "ConsumedEnergyRaw"))
    steps = steps_of(_some(identified.step_names, places), owners, rss, joules)
    named = pc.equal(identified.job_ids.take(pa.array(owners)), _some(identified.step_job_ids, places))
    is_theirs = np.zeros(len(identified.steps), np.bool_)
    is_theirs[places] = np.array(named) & ~steps.doubtful
    return steps, is_theirs


def _left(cells: Cells, firsts: Ints, step_lines: Ints) -> Flags:
    """Return a mask of the jobs with unexpected lines; the first flag is for the lines before all jobs."""
    is_odd = cells.line_ends > cells.line_begins
    is_odd[firsts] = is_odd[step_lines] = False
    is_left = np.zeros(len(firsts) + 1, np.bool_)
    is_left[np.searchsorted(firsts, np.flatnonzero(is_odd), side="right")] = True
    is_left[0] = True
    return is_left


def _with_steps(columns: pa.Table, folded: Folded) -> pa.Table:
    figures = {"steps": folded.counts, "max_rss_bytes": folded.max_rss, "energy_from": folded.sources}
    figures |= {"energy_joules": folded.joules}
    for name, values in figures.items():
        columns = columns.append_column(name, pa.array(values))
    return columns


def _known(texts: pa.Array) -> pa.Array:
    """Return the texts, null if empty."""
    if not pc.any(pc.equal(pc.binary_length(texts), 0)).as_py():
        return texts
    return pc.if_else(pc.equal(pc.binary_length(texts), 0), pa.scalar(None, pa.string()), texts)


def _some(
    values: "pa.Array | pa.Table", places: "np.ndarray[tuple[int], np.dtype[np.signedinteger]]"
) -> "pa.Array | pa.Table":
    """Return the values at these places, which are in order."""
    if not len(places) or int(places[-1]) == len(places) - 1:
        return values.slice(0, len(places))
    return values.take(pa.array(places))
