"""Whether a trial that runs is surely worse than the best one so far, from the steps that it has recorded."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from crosswind.cli.tune.judging import judged
from crosswind.cli.tune.run_outcomes import step_seconds
from crosswind.data.errors import InvalidInputError
from crosswind.data.prediction import Floats
from crosswind.data.trial import Configuration, Study, TrialRecord
from crosswind.models.tuner.evidence.early_stop import Incumbent, stop_of

OF_LEVEL = ("step_p50_seconds", "step_mean_seconds")  # outcomes that follow the typical step


def surely_worse(
    study: Study, best: TrialRecord | None, told: TrialRecord, *, spool: Path, run_id: str
) -> Callable[[], str | None]:
    """Asked again and again, it says why the trial should be stopped, or None.

    Raises: InvalidInputError for a study whose objective the step times alone do not tell.
    """
    configuration = told.trial.configuration
    try:
        _objectives(study, configuration, np.ones(1))
    except InvalidInputError as error:
        raise InvalidInputError(f"--stop-early: step times do not tell this study's objective: {error}") from error
    if best is None or best.trial.objective is None:
        return lambda: None
    incumbent = Incumbent(best.trial.objective)

    def ask() -> str | None:
        seen = np.array(step_seconds(spool, run_id)[:-1], np.float64)  # of the last one ranks may be missing
        found = stop_of(seen[seen > 0], lambda levels: _objectives(study, configuration, levels), incumbent)
        return None if found is None else f"stopped after {found.steps} steps: {found.reason}"

    return ask


def _objectives(study: Study, configuration: Configuration, levels: Floats) -> Floats:
    """What the trial's objective would be with steps that typically take so long."""
    return np.array([judged(study, configuration, dict.fromkeys(OF_LEVEL, float(level))) for level in levels])
