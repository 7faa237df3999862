"""Stored operations of a run's ranks, with what meets what, and whether its micro-batches are of unequal lengths.

Kinds of operations have the names of StragglerAnalysis, the published traces of Lin et al.: transfers between pipeline
stages meet the neighbour's, reductions and gatherings of a stage those of its replicas.

Source: readme.md of ByteDance-Seed/StragglerAnalysis; Lin et al., "Understanding Stragglers in Large Model Training
Using What-if Analysis", OSDI 2025, section 5.3 for sequence lengths.
"""

import numpy as np
import pandas as pd

from crosswind.data.lake.steps_summary import window_of
from crosswind.data.schema.answers.stragglers import SAME_LENGTHS, SequenceImbalance
from crosswind.data.schema.run import Run
from crosswind.data.schema.steps import OPERATION
from crosswind.data.store.store import Store

FORWARD, BACKWARD = "forward-compute", "backward-compute"
BOUNDARIES = {"forward-send": 1, "forward-recv": 0, "backward-send": -1, "backward-recv": 0}  # from the rank's stage
BY_STAGE = ("params-all-gather", "grads-reduce-scatter")
OF_ALL = ("optimizer-clip-main-grad",)
OF_REPLICA = ("embedding-grads-all-reduce",)  # between the first and the last stage
PAIRS_MIN = 30  # micro-batches of a stage, from which on a correlation says something
_STEPS = "select step, count(*) as operations from operation where run_id = ? group by step order by step desc"
_ROWS = """
select step, rank, coalesce(stage, 0) as stage, coalesce(replica, 0) as replica, coalesce(chunk, 0) as chunk,
    micro_batch, operation, number, meeting, (ts_ns - min(ts_ns) over (partition by step)) * 1e-9 as start,
    duration_seconds as duration
from operation where run_id = ? and step >= ?
"""


def has_operations(store: Store) -> bool:
    """Return whether operations of any run are stored."""
    return OPERATION.name in store.lake.sets()


def operations_per_step(store: Store, run: Run) -> pd.Series:
    """Count the operations of each step of a run, by step, the newest first. Raises: MalformedError."""
    if not has_operations(store):
        return pd.Series(dtype=np.int64)
    frame = store.lake.frame(_STEPS, [run.run_id], within=window_of(run).within)
    return pd.Series(frame["operations"].to_numpy(np.int64), index=frame["step"].to_numpy(np.int64))


def operations_of(store: Store, run: Run, first_step: int) -> pd.DataFrame:
    """Operations from a step on, with the columns of `replay.COLUMNS` and more; seconds. Raises: MalformedError."""
    rows = store.lake.frame(_ROWS, [run.run_id, first_step], within=window_of(run).within)
    return rows.assign(meeting=rows["meeting"].astype(object).where(rows["meeting"].notna(), meetings_of(rows)))


def has_chunks(operations: pd.DataFrame) -> bool:
    """Return whether ranks hold several parts of the model, so that transfers cannot be matched by their number."""
    return bool((operations["chunk"] > 0).any())


def sequence_imbalance(operations: pd.DataFrame) -> SequenceImbalance | None:
    """Compare forward and backward times of micro-batches, whether they go together; None with too few of them."""
    keys = ["step", "rank", "stage", "chunk", "micro_batch"]
    forward, backward = (
        operations[operations["operation"] == kind].dropna(subset="micro_batch").set_index(keys)["duration"]
        for kind in (FORWARD, BACKWARD)
    )
    both = pd.DataFrame({"forward": forward, "backward": backward}).dropna() if _are_unique(forward, backward) else None
    if both is None or len(both) < PAIRS_MIN:
        return None
    by_stage = both.groupby(level="stage")
    correlations = [float(np.corrcoef(one["forward"], one["backward"])[0, 1]) for _, one in by_stage if _varies(one)]
    if not correlations:
        return None
    both_times = both.sum(axis=1).groupby(level="stage")
    spread = float((both_times.std() / both_times.mean()).median())
    correlation = float(np.median(correlations))
    return SequenceImbalance(correlation, spread, correlation >= SAME_LENGTHS, len(both))


def _are_unique(*series: pd.Series) -> bool:
    return all(one.index.is_unique for one in series)


def _varies(times: pd.DataFrame) -> bool:
    return len(times) >= PAIRS_MIN and bool((times.std() > 0).all())


def meetings_of(rows: pd.DataFrame) -> pd.Series:
    """Name what each operation meets, by its kind; null for the rank's own and transfers between its parts."""
    kind, number, replica = rows["operation"], rows["number"].astype(str), rows["replica"].astype(str)
    stage = rows["stage"].astype(np.int64)
    meetings = pd.Series(None, index=rows.index, dtype=object)
    if not has_chunks(rows):
        boundary = (stage + kind.map(BOUNDARIES).fillna(0).astype(np.int64)).astype(str)
        way = kind.str.partition("-")[0]
        meetings = meetings.mask(kind.isin(BOUNDARIES), way + " " + replica + " " + boundary + " " + number)
    meetings = meetings.mask(kind.isin(BY_STAGE), kind + " " + stage.astype(str) + " " + number)
    if len(rows) and stage.max() > 0:
        meetings = meetings.mask(kind.isin(OF_REPLICA), kind + " " + replica + " " + number)
    return meetings.mask(kind.isin(OF_ALL), kind + " " + number)
