"""The difference of two recorded runs without traces, by the probe's records of their steps.

The phases of a step sum to it. Of its communication, what the rank that waits least still spends is the transfer.
"""

import numpy as np

from crosswind.data.schema.answers.trace_difference import RunsDifference
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.data.store.features import WARM_UP_STEPS
from crosswind.data.store.store import Store
from crosswind.models.explain.cohort.step_rows import spans_of, step_rows
from crosswind.models.explain.evidence.step_grid import Rows, grid_of
from crosswind.models.traces.difference.difference import difference_of_steps
from crosswind.models.traces.difference.owners import Part
from crosswind.models.traces.difference.paths import NOTHING, Paths
from crosswind.models.traces.difference.step_parts import PARTS, StepParts

DURATION, COMMUNICATION = "duration_seconds", "comm_seconds"
PHASES = {  # of the loop itself
    "compute": Part.WORK,
    "input": Part.HOST,
    "checkpoint": Part.HOST,
    "other": Part.HOST,
}
SECOND_NS = 1e9


def difference_of_runs(store: Store, first_id: str, second_id: str) -> RunsDifference:
    """Return by what the steps of the second run differ from those of the first one, after their warm-up.

    Raises: NotFoundError; InvalidInputError for one run twice, or a run without steps; MalformedError.
    """
    if first_id == second_id:
        raise InvalidInputError(f"run {first_id} is compared with itself: expected two runs")
    with store.catalog.read() as session:
        runs = [session.runs.get(run_id) for run_id in (first_id, second_id)]
    rows, paths = dict(step_rows(store, runs, spans_of(store, runs))), Paths()
    missing = [run_id for run_id in (first_id, second_id) if run_id not in rows or not len(rows[run_id]["step"])]
    if missing:
        raise InvalidInputError(
            f"run {missing[0]} has no steps after {WARM_UP_STEPS} of warm-up: expected one at least"
        )
    return difference_of_steps(recorded_steps(rows[first_id], paths), recorded_steps(rows[second_id], paths), paths)


def recorded_steps(rows: Rows, paths: Paths) -> StepParts:
    """Return the steps that all ranks recorded, from rows with the columns step, rank and those of the phases, seconds.

    Raises: InvalidInputError without such a step.
    """
    columns = [DURATION, COMMUNICATION, *(f"{name}_seconds" for name in PHASES)]
    _, ranks, grid = grid_of(rows, columns)
    is_whole = ~np.isnan(grid[DURATION]).any(axis=1)
    if not is_whole.any():
        raise InvalidInputError("no step was recorded by all ranks: expected one at least")
    seconds = {name: np.nan_to_num(values[is_whole]) for name, values in grid.items()}
    parts = {paths.of(NOTHING, name) * PARTS + part: seconds[f"{name}_seconds"] for name, part in PHASES.items()}
    parts |= _communication(seconds[COMMUNICATION], paths.of(NOTHING, "collectives") * PARTS)
    keys = sorted(parts)
    values = np.stack([parts[key] for key in keys], axis=2) * SECOND_NS
    notes = (f"the first {WARM_UP_STEPS} steps are warm-up, and left out",)
    numbers = tuple(ranks.astype(int).tolist())
    return StepParts(numbers, np.array(keys), values, seconds[DURATION] * SECOND_NS, "probe", notes=notes)


def _communication(seconds: Floats, key: int) -> dict[int, Floats]:
    transfer = np.broadcast_to(seconds.min(axis=1, keepdims=True), seconds.shape)
    return {key + Part.WAIT: seconds - transfer, key + Part.TRANSFER: transfer}
