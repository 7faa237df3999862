"""The work on one partition of the runs: which columns it has, its features, and what trees need to know of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np
import pandas as pd

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.answers.predictions import Outcome
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.run_facts import facts_of_runs
from crosswind.data.store.store import Store
from crosswind.models.next_run.cases import comparable_runs, of_runs, outcomes_of, valid
from crosswind.models.next_run.cohort_store import questions_of
from crosswind.models.next_run.describe import Kinds, described, numbers_in, with_columns
from crosswind.models.next_run.fit import ends_of
from crosswind.models.training.cluster.address import StoreAddress
from crosswind.models.training.cluster.columns import ColumnsSeen
from crosswind.models.training.cluster.partitions import Partition

ANY_NUMBER = 2**31 - 1
LOG_SECONDS, BEGAN, ENDED, SHARE = "_log_seconds", "_began_ns", "_ended_ns", "_share"
SHARES = 10  # of the cohorts, by a digest of their keys; trees are tried on the runs of the first
TRIED = 0

Seconds: TypeAlias = "pd.Series[float]"


@dataclass(frozen=True)
class Source:
    """The store, the outcome, and the run whose nodes' samples say which accelerators nodes have."""

    address: StoreAddress
    outcome: Outcome
    sampled_in: Run | None = None


@dataclass(frozen=True)
class Survey:
    """The seconds of a partition's runs by their ids, and the columns that describe them."""

    seconds: Seconds = field(repr=False)
    columns: ColumnsSeen


def survey(source: Source, partition: Partition) -> Survey:
    """Read a partition once, the lake included. Raises: MalformedError for a damaged file, UnavailableError."""
    with source.address.open() as store:
        rows = _cases(store, source, partition, None)
    return Survey(rows.set_index("run_id")["seconds"], ColumnsSeen.of(questions_of(rows)))


def features(source: Source, partition: Partition, seconds: Seconds, kinds: Kinds) -> pd.DataFrame:
    """Describe each run of a partition, one row each by run id: the columns of `kinds`, LOG_SECONDS and three more."""
    with source.address.open() as store:
        rows = _cases(store, source, partition, seconds)
    table = with_columns(described(questions_of(rows), kinds), list(kinds))
    numbers = numbers_in(table)
    table = table.astype({name: "category" for name in table.columns if name not in numbers})
    own = {
        LOG_SECONDS: np.log(rows["seconds"].to_numpy(np.float64)),
        BEGAN: rows["started_ns"].to_numpy(np.int64),
        ENDED: ends_of(rows),
        SHARE: np.array([crc32(str(key).encode()) % SHARES for key in rows["cohort"]], dtype=np.int8),
    }
    return table.assign(**own).set_index(pd.Index(rows["run_id"], name="run_id"))


def _cases(store: Store, source: Source, partition: Partition, seconds: "Seconds | None") -> pd.DataFrame:
    since_ns, until_ns = partition
    wanted = RunFilter(state=RunState.COMPLETED, since_ns=since_ns, until_ns=until_ns)
    runs = comparable_runs(store, wanted, limit=ANY_NUMBER)
    if seconds is None:
        outcomes = outcomes_of(store, source.outcome, runs)
    else:
        runs = [run for run in runs if run.run_id in seconds.index]  # others ended since
        outcomes = seconds.loc[[run.run_id for run in runs]].reset_index(drop=True)
    facts = facts_of_runs(store, runs, sampled_in=source.sampled_in, jobs_max=ANY_NUMBER)
    return valid(of_runs(runs, facts, outcomes))


def learned(frame: pd.DataFrame, until_ns: int | None, *, is_tried: bool = False) -> pd.DataFrame:
    """Return the rows that trees learn from, of runs that ended by `until_ns`; or those that they are tried on."""
    rows = (frame[SHARE] == TRIED) == is_tried
    return frame[rows if until_ns is None else rows & (frame[ENDED] <= until_ns)]


def plain_columns(frame: pd.DataFrame) -> Mapping[str, Any]:
    """Return the columns that describe a run."""
    return {str(name): frame[name] for name in frame.columns if not str(name).startswith("_")}
