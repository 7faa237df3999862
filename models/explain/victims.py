"""Graph of a run's culprits and victims, by how long ranks waited for each other, and comparison of pipeline stages.

In a step the rank that waits least arrived last; another rank's wait beyond that is a wait for this rank. Sums over
steps give the seconds that each rank cost each other. In a pipeline, ranks of one stage do the same work and stages do
not: there a stage whose own time is longest, step after step, is out of balance, whichever rank arrived last.

Source: Lin et al., "Understanding Stragglers in Large Model Training Using What-if Analysis", OSDI 2025; POP metrics
definitions, for load balance = mean / largest.
"""

from collections.abc import Mapping

import numpy as np

from crosswind.data.lake.steps_summary import time_of
from crosswind.data.schema.answers.explanations import PipelineStage, Wait, Waits
from crosswind.data.schema.prediction import Floats
from crosswind.data.store.features import WARM_UP_STEPS
from crosswind.data.store.store import Store
from crosswind.models.explain.evidence.step_grid import grid_of
from crosswind.models.stragglers.stages import stages_of

MOST_EDGES = 100  # of an answer, the largest
DURATION, WAITED = "duration_seconds", "comm_seconds"
_STEPS = f"select rank, step, {DURATION}, {WAITED} from step where run_id = ? and step >= {WARM_UP_STEPS}"  # noqa: S608


def victims_of(store: Store, run_id: str) -> Waits:
    """Return the waits in the steps after warm-up that all ranks recorded. Raises: NotFoundError, MalformedError."""
    with store.catalog.read() as session:
        run = session.runs.get(run_id)
    within = time_of([run])
    rows = store.lake.arrays(_STEPS, [run_id], within=within)
    _, ranks, grid = grid_of(rows, (DURATION, WAITED))
    whole = ~np.isnan(grid[DURATION] + grid[WAITED]).any(axis=1)
    waited, own = grid[WAITED][whole], (grid[DURATION] - grid[WAITED])[whole]
    stages = _stages(stages_of(store, run), ranks, own, waited) if len(own) else ()
    longest = max((stage.own_seconds for stage in stages), default=0.0)
    balance = float(np.mean([stage.own_seconds for stage in stages])) / longest if longest > 0 else None
    edges = _edges(ranks, waited) if len(own) else []
    lost = sum(edge.seconds for edge in edges)
    return Waits(run_id, len(own), lost, tuple(edges[:MOST_EDGES]), stages, balance)


def _edges(ranks: Floats, waited: Floats) -> list[Wait]:
    """Return every pair of which one waited for the other, the most seconds first.

    ranks: shape (n_ranks,); waited: seconds, shape (n_steps, n_ranks).
    """
    culprit = np.argmin(waited, axis=1)
    lost = waited - waited[np.arange(len(waited)), culprit][:, None]
    seconds = np.zeros((len(ranks), len(ranks)))
    steps = np.zeros_like(seconds)
    np.add.at(seconds, culprit, lost)
    np.add.at(steps, culprit, lost > 0)
    pairs = np.argwhere(seconds > 0)
    order = np.argsort(-seconds[pairs[:, 0], pairs[:, 1]], kind="stable")
    return [
        Wait(int(ranks[last]), int(ranks[other]), float(seconds[last, other]), int(steps[last, other]))
        for last, other in pairs[order]
    ]


def _stages(names: Mapping[int, str], ranks: Floats, own: Floats, waited: Floats) -> tuple[PipelineStage, ...]:
    """Return the stages, where every rank has one and there are two at least; own and waited: (n_steps, n_ranks)."""
    of_rank = [names.get(int(rank), "") for rank in ranks]
    if "" in of_rank or len(set(of_rank)) < 2:
        return ()
    stages = []
    for name in sorted(set(of_rank), key=lambda label: (len(label), label)):
        members = np.array([stage == name for stage in of_rank])
        numbers = tuple(int(rank) for rank in ranks[members])
        stages.append(PipelineStage(name, numbers, float(own[:, members].mean()), float(waited[:, members].mean())))
    return tuple(stages)
