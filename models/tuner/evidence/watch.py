"""The decision to stop a running trial, from the steps that are stored of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.trial import Configuration
from crosswind.data.store.store import Store
from crosswind.models.forecast.stored_runs import steps_so_far
from crosswind.models.tuner.evidence.early_stop import Incumbent, Patience, Stop, stop_of
from crosswind.models.tuner.evidence.run_outcomes import OF_STEPS, OF_WHOLE_RUN, objective_of, outcomes_of, value_at
from crosswind.models.tuner.space.expression import Expression

STEPS = "steps"  # the parameter that gives the number of a run's steps
POINTS = 101  # at which the objective is computed, and read between
TIMES = frozenset(OF_STEPS) - {"step_cov_ratio"}


@dataclass(frozen=True)
class Watched:
    """The facts of a study's trials.

    Args:
        objective: As in `RunQuery`.
        fixed: Parameters of the runs that the study does not tune.
        total_steps: Steps of a run; None for the run's parameter `steps`, if it has one.
        patience: When a trial is given up.
    """

    objective: str = "step_p50_seconds"
    fixed: Configuration | None = None
    total_steps: int | None = None
    patience: Patience = field(default_factory=Patience)


@dataclass(frozen=True)
class _RunSoFar:
    """The run so far: its outcomes, at `typical` seconds a step."""

    objective: Expression
    values: Configuration
    outcomes: Mapping[str, float]
    typical: float
    total_steps: int | None

    def objective_at(self, levels: Floats) -> Floats:
        """Return the objective at other typical seconds, all times of steps in proportion; NaN where it has none."""
        points = np.geomspace(max(levels[0], 1e-300), levels[-1], POINTS)
        objectives = np.array([self._at(float(point)) for point in points])
        return np.asarray(np.interp(np.log(levels), np.log(points), objectives))

    def _at(self, level: float) -> float:
        ratio = level / self.typical
        scaled = {name: value * (ratio if name in TIMES else 1.0) for name, value in self.outcomes.items()}
        whole = {} if self.total_steps is None else {"steps": self.total_steps, "run_seconds": level * self.total_steps}
        outcomes = {name: value for name, value in scaled.items() if name not in OF_WHOLE_RUN} | whole
        value, _ = value_at(self.objective, self.values, outcomes)
        return float("nan") if value is None else value


def watch(store: Store, run_id: str, incumbent: Incumbent, watched: Watched = Watched()) -> Stop | None:
    """Return the stop of a running trial, None to let it go on; also None once it has ended.

    Raises: NotFoundError; InvalidInputError for an objective that runs cannot have.
    """
    with store.catalog.read() as session:
        run = session.runs.get(run_id)
    values = {**(watched.fixed or {}), **run.configuration}
    objective = objective_of(watched.objective, values.keys())
    seconds = steps_so_far(store, run).seconds
    if run.state is not RunState.RUNNING or len(seconds) <= watched.patience.warm_up_steps:
        return None
    total = watched.total_steps if watched.total_steps is not None else _planned_steps(run)
    if total is not None and total < len(seconds):
        total = None  # it goes on beyond its plan
    [outcomes] = outcomes_of(store, [run])
    so_far = _RunSoFar(objective, values, outcomes, _typical(seconds, watched.patience), total)
    return stop_of(seconds, so_far.objective_at, incumbent, total_steps=total, patience=watched.patience)


def _typical(seconds: Floats, patience: Patience) -> float:
    return float(np.median(seconds[patience.warm_up_steps :]))


def _planned_steps(run: Run) -> int | None:
    steps = run.configuration.get(STEPS)
    return steps if isinstance(steps, int) and not isinstance(steps, bool) and steps > 0 else None
