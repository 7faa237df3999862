"""Evidence for a model: its losses and coverage on rows later than those it was fitted to."""

from collections.abc import Mapping

import numpy as np

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.model import ROW_LOSSES_MAX, Evidence, Learned, ModelRecord, ModelState
from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.models.scores import pinball

VALIDATED_MIN = 8  # with fewer validated rows a model's lead is luck


def evidence_of(learned: Learned, prediction: Prediction, y: Floats, baselines: Mapping[str, Prediction]) -> Evidence:
    """The evidence of a model that predicted y: (n_rows,) positive seconds, in the order of time; likewise baselines.

    Add the predictions of the promoted version to the baselines for the model to be promoted only if it beats that.
    Raises: InvalidInputError.
    """
    losses = row_losses(prediction, y)
    shares = np.mean(y[:, None] <= prediction.values, axis=0)
    return Evidence(
        learned=learned,
        validated_rows=len(y),
        loss=float(np.mean(losses)),
        baselines={name: float(np.mean(row_losses(naive, y))) for name, naive in baselines.items()},
        coverage=tuple((level, float(share)) for level, share in zip(prediction.levels, shares, strict=True)),
        row_losses=tuple(map(float, losses[-ROW_LOSSES_MAX:])),
    )


def row_losses(prediction: Prediction, y: Floats) -> Floats:
    """Pinball loss of log seconds, mean over the levels, shape (n_rows,). Raises: InvalidInputError.

    Source: Koenker and Bassett 1978. In logarithms, 0.01 is 1 % whatever the unit and the size of a run.
    """
    if y.shape != (len(prediction.values),) or y.size == 0:
        raise InvalidInputError(f"y has shape {y.shape}, expected ({len(prediction.values)},) and at least one row")
    if not (np.all(np.isfinite(y) & (y > 0)) and np.all(np.isfinite(prediction.values) & (prediction.values > 0))):
        raise InvalidInputError("a measured or predicted value is not a positive number of seconds")
    errors = np.log(y)[:, None] - np.log(prediction.values)
    return np.asarray(np.mean(pinball(errors, prediction.levels), axis=1))


def objection(record: ModelRecord) -> str | None:
    """Return the reason not to promote this version unless forced; None without one."""
    evidence = record.evidence
    if record.state is ModelState.DEMOTED:
        return f"it was taken back: {record.note}"
    if not evidence.baselines:
        return "no naive baseline stands beside it"
    if evidence.validated_rows < VALIDATED_MIN:
        return f"it was validated on {evidence.validated_rows} rows, expected at least {VALIDATED_MIN}"
    best = min(evidence.baselines, key=lambda name: evidence.baselines[name])
    if evidence.loss >= evidence.baselines[best]:
        return f"its loss is {evidence.loss:.4g}, expected less than {best}'s {evidence.baselines[best]:.4g}"
    return None


def skill_of(evidence: Evidence) -> float | None:
    """Return 1 - loss / loss of the best baseline: 0 is no better, negative is worse; None without a baseline."""
    best = min(evidence.baselines.values(), default=0.0)
    return 1 - evidence.loss / best if best > 0 else None
