"""Early stopping of a running trial that is surely worse than the best one so far, by the steps it has recorded."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from crosswind.cli.verbs.tune.execution.run_outcomes import step_seconds
from crosswind.cli.verbs.tune.judging import judged
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.trial import Configuration, Study, TrialRecord
from crosswind.models.tuner.evidence.early_stop import Incumbent, stop_of

OF_LEVEL = ("step_p50_seconds", "step_mean_seconds")  # outcomes that follow the typical step


def surely_worse(
    study: Study, best: TrialRecord | None, record: TrialRecord, *, spool: Path, run_id: str
) -> Callable[[], str | None]:
    """Asked again and again, it says why the trial should be stopped, or None.

    Raises: InvalidInputError for a study whose objective the step times alone do not tell.
    """
    configuration = record.trial.configuration
    try:
        _objectives(study, configuration, np.ones(1))
    except InvalidInputError as error:
        raise InvalidInputError(f"--stop-early: step times do not tell this study's objective: {error}") from error
    if best is None or best.trial.objective is None:
        return lambda: None
    incumbent = Incumbent(best.trial.objective)

    def ask() -> str | None:
        seen = np.array(step_seconds(spool, run_id)[:-1], np.float64)  # of the last one ranks may be missing
        stop = stop_of(seen[seen > 0], lambda levels: _objectives(study, configuration, levels), incumbent)
        return None if stop is None else f"stopped after {stop.steps} steps: {stop.reason}"

    return ask


def _objectives(study: Study, configuration: Configuration, levels: Floats) -> Floats:
    """Return what the trial's objective would be with steps that typically take so long."""
    return np.array([judged(study, configuration, dict.fromkeys(OF_LEVEL, float(level))) for level in levels])
