"""Step times by formulas alone, with constants calibrated from runs: the prior of other models."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pandas as pd

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.models.analytic.machine.constants import Constants
from crosswind.models.analytic.prior.calibrate import DIFFERENCE, Calibration, calibrate, prior
from crosswind.models.analytic.prior.case import Case, case_of
from crosswind.models.surrogate.log_normal import log_normal
from crosswind.models.surrogate.surrogate import check_rows


@dataclass
class AnalyticPrior:
    """A surrogate that needs no runs; `docs/models/analytic.md` names the columns that it reads, others are ignored.

    Each row takes the most exact formula for which it has columns. Before `fit` the constants are their priors.
    """

    n_rows_max: int = 250  # enough for so few constants; rows are drawn by `seed`
    seed: int = 0
    _calibration: Calibration | None = field(default=None, init=False, repr=False)

    @property
    def calibration(self) -> Calibration:
        """The constants with their intervals."""
        return self._calibration or prior()

    def fit(self, X: pd.DataFrame, y: Floats) -> Self:
        """Calibrates the constants to step times y in seconds, (n_rows,), none or more. Raises: InvalidInputError."""
        y = np.asarray(y, np.float64)
        check_rows(X, y, least=0)
        cases = cases_of(X)
        chosen = self._chosen(len(cases))
        kept = [cases[row] for row in chosen]
        self._calibration = calibrate(lambda constants: _seconds(kept, constants), y[chosen])
        return self

    def seconds(self, X: pd.DataFrame) -> Floats:
        """The step time of each row, (n_rows,). Raises: InvalidInputError."""
        return _seconds(cases_of(X), self.calibration.constants)

    def predict(self, X: pd.DataFrame) -> Prediction:
        """Quantiles at LEVELS: log-normal, from the uncertainty of the constants and the residuals of the formulas.

        Raises: InvalidInputError.
        """
        centre, constants = self.log_moments(X)
        spread = np.sqrt(constants**2 + self.calibration.residual_spread**2)
        return log_normal(centre, spread)

    def log_moments(self, X: pd.DataFrame) -> tuple[Floats, Floats]:
        """Log seconds, and their standard deviation by the uncertainty of the constants alone, (n_rows,) each."""
        calibration, cases = self.calibration, cases_of(X)
        centre = np.log(_seconds(cases, calibration.constants))
        slopes = _slopes(cases, calibration.logs, centre)
        variance = np.einsum("ni,ij,nj->n", slopes, calibration.log_covariance, slopes)
        return centre, np.asarray(np.sqrt(variance), np.float64)

    def _chosen(self, n_rows: int) -> list[int]:
        if n_rows <= self.n_rows_max:
            return list(range(n_rows))
        drawn = np.random.default_rng(self.seed).choice(n_rows, self.n_rows_max, replace=False)
        return sorted(int(row) for row in drawn)


def cases_of(X: pd.DataFrame) -> list[Case]:
    """Return one case a row. Raises: InvalidInputError naming the row's place and the column."""
    names = [str(name) for name in X.columns]
    cases = []
    for place, row in enumerate(X.itertuples(index=False, name=None)):
        try:
            cases.append(case_of(dict(zip(names, row, strict=True))))
        except InvalidInputError as error:
            raise InvalidInputError(f"row {place}: {error}") from error
    return cases


def _seconds(cases: Sequence[Case], constants: Constants) -> Floats:
    return np.array([case.seconds(constants) for case in cases], np.float64)


def _slopes(cases: Sequence[Case], logs: Floats, centre: Floats) -> Floats:
    """Derivatives of log seconds by log constants, (n_rows, n_constants)."""
    columns = []
    for place in range(len(logs)):
        stepped = logs.copy()
        stepped[place] += DIFFERENCE
        columns.append((np.log(_seconds(cases, Constants.of_logs(stepped))) - centre) / DIFFERENCE)
    return np.column_stack(columns)
