"""Job steps of a block of Slurm's accounting, folded into their jobs all at once."""

import re
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from crosswind.ingest.readers.slurm import slurm_values as slurm
from crosswind.ingest.readers.slurm.cells import Column, Flags
from crosswind.ingest.readers.slurm.text_values import Values, Words, whole_numbers

Numbers = npt.NDArray[np.int64]
OTHER, EXTERN, NUMBERED, UNCERTAIN = range(4)  # kinds of steps, by their names
SOURCES = ["", "batch", "steps", "extern"]
EXACT = 1 << 53  # joules; whole numbers up to here add up exactly in any order


@dataclass(frozen=True)
class Steps:
    """Steps in the order of their lines; `jobs` has the number of each step's job."""

    jobs: Numbers
    kinds: Numbers
    places: Numbers  # numbers of the numbered ones
    rss: Values
    joules: Values

    @property
    def doubtful(self) -> Flags:
        """Return a mask of the steps to be read line by line."""
        flags: Flags = self.rss.doubtful | self.joules.doubtful | (self.kinds == UNCERTAIN)
        return flags


@dataclass(frozen=True)
class Folded:
    """The figures of each job's steps."""

    counts: Numbers
    max_rss: pa.Array
    joules: pa.Array
    sources: pa.Array  # whose joules these are; empty when there are none
    doubtful: Flags


def steps_of(names: pa.Array, jobs: Numbers, rss: Column, joules: Column) -> Steps:
    """Make steps from their names and columns."""
    words = Words(names)
    kinds, places = words.mapped(_kind, pa.int64()), words.mapped(_place, pa.int64())
    sizes = whole_numbers(rss, partial(slurm.size_bytes, "MaxRSS"))
    return Steps(jobs, kinds.values.to_numpy(), places.values.to_numpy(), sizes, joules_of(joules))


def joules_of(column: Column) -> Values:
    """Return whole joules; null for Slurm's values when nothing measures."""
    joules = whole_numbers(column, slurm.energy_joules)
    return Values(pc.if_else(pc.equal(joules.values, 0), pa.scalar(None, pa.int64()), joules.values), joules.doubtful)


def _kind(name: str) -> int:
    if not re.fullmatch(slurm.STEP_NAME, name):
        return UNCERTAIN
    if name == "extern":
        return EXTERN
    if not name[0].isdigit():
        return OTHER
    return NUMBERED if name.isdigit() and len(name) <= 18 else UNCERTAIN


def _place(name: str) -> int:
    return int(name) if _kind(name) == NUMBERED else 0


def fold(steps: Steps, job_joules: pa.Array) -> Folded:
    """Fold steps into jobs, whose own joules come first."""
    jobs = len(job_joules)
    counts = np.bincount(steps.jobs, minlength=jobs)
    is_metered = steps.joules.values.is_valid().to_numpy(zero_copy_only=False)
    is_metered &= job_joules.is_null().to_numpy(zero_copy_only=False)[steps.jobs]
    joules, sources, doubtful = _energy(steps, np.flatnonzero(is_metered), jobs)
    energy = pc.coalesce(job_joules.cast(pa.float64(), safe=False), pa.array(joules, mask=sources == 0))
    return Folded(counts, _largest(steps, jobs), energy, pa.array(SOURCES).take(pa.array(sources)), doubtful)


def _largest(steps: Steps, jobs: int) -> pa.Array:
    """Return the largest memory of a job's steps."""
    largest = np.full(jobs, -1, np.int64)
    measured = np.flatnonzero(steps.rss.values.is_valid().to_numpy(zero_copy_only=False))
    sizes = steps.rss.values.fill_null(0).to_numpy()[measured]
    np.maximum.at(largest, steps.jobs[measured], sizes)
    return pa.array(largest, mask=largest < 0)


def _energy(steps: Steps, metered: Numbers, jobs: int) -> tuple[npt.NDArray[np.float64], Numbers, Flags]:
    """Return joules of jobs by their steps, their source (place in SOURCES), and jobs to read line by line."""
    joules, sources = np.zeros(jobs), np.zeros(jobs, np.int64)
    doubtful = np.zeros(jobs, np.bool_)
    values, kinds = steps.joules.values.fill_null(0).to_numpy(), steps.kinds
    for source, kind in enumerate((OTHER, NUMBERED, EXTERN), 1):  # the later one counts
        rows = metered[kinds[metered] == kind]
        owners = steps.jobs[rows]
        sums = np.bincount(owners, values[rows], minlength=jobs)
        metered_jobs = np.unique(owners)
        joules[metered_jobs], sources[metered_jobs] = sums[metered_jobs], source
        is_again = owners[1:] == owners[:-1]
        if kind == NUMBERED:  # the same step twice would count once
            is_again &= steps.places[rows][1:] <= steps.places[rows][:-1]
        doubtful[owners[1:][is_again]] = True
    return joules, sources, doubtful | (joules > EXACT)
