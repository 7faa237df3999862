"""The sources' predictions, times a ratio learned from a few runs of the target."""

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pandas as pd

from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.models.surrogate.log_normal import robust_deviation, widened
from crosswind.models.surrogate.surrogate import NotFittedError, Surrogate
from crosswind.models.surrogate.xgboost_quantile import XgboostQuantileSurrogate
from crosswind.models.transfer.transfer import check_tables, described

RATIO_DEVIATION = 1.0  # of the log ratio of two systems before any anchor: a factor of e
SLOPE_DEVIATION = 0.15  # of the exponent of the sources' seconds: close to 1 until many anchors differ
NOISE_DEVIATION_MIN = 0.05  # of log seconds: one anchor is trusted to 5 %
HUBER_WIDTH = 1.345  # deviations; 95 % efficient on normal errors (Huber 1981)
REWEIGHTINGS = 20


@dataclass(frozen=True)
class Line:
    """log target = shift + (1 + bend) * log source, around a centre, with the uncertainty of the shift."""

    shift: float = 0.0
    bend: float = 0.0
    centre: float = 0.0
    shift_deviation: float = RATIO_DEVIATION

    def __call__(self, log_source: Floats) -> Floats:
        """Log seconds on the target, shape (n,)."""
        return log_source + self.shift + self.bend * (log_source - self.centre)


def robust_line(log_source: Floats, log_target: Floats) -> Line:
    """The most probable line under normal priors around "no difference"; outliers weigh less. Shapes (k,).

    Source: Huber's M-estimate by iteratively reweighted least squares, with the priors as two more rows.
    """
    if len(log_source) == 0:
        return Line()
    centre = float(np.median(log_source))
    design = np.column_stack([np.ones_like(log_source), log_source - centre])
    difference = log_target - log_source
    precision = np.diag([RATIO_DEVIATION**-2, SLOPE_DEVIATION**-2])
    weights, deviation = np.ones_like(difference), NOISE_DEVIATION_MIN
    beta = np.array([float(np.median(difference)), 0.0])
    for _ in range(REWEIGHTINGS):
        errors = difference - design @ beta
        deviation = max(robust_deviation(errors), NOISE_DEVIATION_MIN)
        weights = np.minimum(1.0, HUBER_WIDTH * deviation / np.maximum(np.abs(errors), 1e-12))
        weighted = design.T * (weights / deviation**2)
        beta = np.linalg.solve(weighted @ design + precision, weighted @ difference)
    covariance = np.linalg.inv((design.T * (weights / deviation**2)) @ design + precision)
    return Line(float(beta[0]), float(beta[1]), centre, float(np.sqrt(covariance[0, 0])))


@dataclass
class AnchoredTransfer:
    """A surrogate of all sources together, scaled to the target by k anchors; without any, the sources' prediction.

    Where `source_column` names sources, their median levels are taken out first, and the mean of these is the level
    without anchors: leave it unset where other columns explain why a source is slower. The ratio is shrunk: one anchor
    decides it almost alone, and anchors that disagree count for less.
    """

    model: Surrogate = field(default_factory=XgboostQuantileSurrogate)  # learns the sources
    source_column: str | None = None
    _line: Line | None = field(default=None, init=False, repr=False)
    _log_source: Floats | None = field(default=None, init=False, repr=False)  # of the target's runs, (k,)
    _log_target: Floats | None = field(default=None, init=False, repr=False)  # (k,)

    def fit(self, source: pd.DataFrame, source_seconds: Floats, target: pd.DataFrame, target_seconds: Floats) -> Self:
        """Learns the sources, then the ratio. Raises: InvalidInputError."""
        check_tables(source, source_seconds, target, target_seconds)
        levelled = _levelled(source, source_seconds, self.source_column)
        self.model = deepcopy(self.model).fit(described(source, self.source_column), levelled)
        return self.anchor(target, target_seconds)

    def anchor(self, target: pd.DataFrame, target_seconds: Floats) -> Self:
        """Learns the ratio alone, for a model that has learned the sources already."""
        rows = described(target, self.source_column)
        self._log_source = np.log(self.model.predict(rows).at(0.5)) if len(rows) else np.empty(0)
        self._log_target = np.log(target_seconds)
        self._line = robust_line(self._log_source, self._log_target)
        return self

    def predict(self, X: pd.DataFrame) -> Prediction:
        """The sources' quantiles times the ratio, widened by its uncertainty. Raises: NotFittedError."""
        if self._line is None:
            raise NotFittedError("AnchoredTransfer.predict came before fit")
        shape = self.model.predict(described(X, self.source_column))
        middle = self._line(np.log(shape.at(0.5)))
        return widened(middle, shape, np.full(len(middle), np.hypot(self._line.shift_deviation, self._misfit())))

    def held_out(self) -> Floats:
        """Medians of the target's runs, (k,), from the ratio of the others. Raises: NotFittedError."""
        if self._log_source is None or self._log_target is None:
            raise NotFittedError("AnchoredTransfer.held_out came before fit")
        return np.exp(_one_left_out(self._log_source, self._log_target))

    @property
    def log_source(self) -> Floats:
        """The sources' predictions of the target's runs, log seconds, shape (k,). Raises: NotFittedError."""
        if self._log_source is None:
            raise NotFittedError("AnchoredTransfer.log_source came before fit")
        return self._log_source

    def _misfit(self) -> float:
        """Return the deviation of the target's runs from the line of the others."""
        if self._log_source is None or self._log_target is None or len(self._log_target) < 2:
            return 0.0
        return robust_deviation(_one_left_out(self._log_source, self._log_target) - self._log_target)


def _levelled(source: pd.DataFrame, seconds: Floats, source_column: str | None) -> Floats:
    """Seconds scaled so that all sources have one median, for their levels would hide what they have in common."""
    if source_column is None or source_column not in source.columns:
        return seconds
    logs = pd.Series(np.log(seconds))
    medians = logs.groupby(source[source_column].astype("string").fillna("unnamed").to_numpy(dtype=str))
    level = float(medians.median().mean())
    return np.asarray(np.exp(logs - medians.transform("median") + level), dtype=np.float64)


def _one_left_out(log_source: Floats, log_target: Floats) -> Floats:
    others = ~np.eye(len(log_source), dtype=bool)
    left_out = [
        float(robust_line(log_source[keep], log_target[keep])(log_source[[row]])[0]) for row, keep in enumerate(others)
    ]
    return np.array(left_out, dtype=np.float64)
