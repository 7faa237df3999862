"""Formulas with corrections as one of the surrogates that learn from cohorts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pandas as pd

from crosswind.data.devices.computing import ACCELERATOR
from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.models.analytic.prior.corrected import ROWS_MIN, CorrectedPrior
from crosswind.models.next_run.describe import NODES, SCALE, SETTING, SYSTEM, WORKLOAD
from crosswind.models.next_run.fact_columns import MODEL
from crosswind.models.next_run.formulas import formula_columns, network_in, steps_in
from crosswind.models.surrogate.log_linear import LogLinearSurrogate
from crosswind.models.surrogate.surrogate import check_rows
from crosswind.models.surrogate.validation import Mask

GROUPS = ("ranks",)  # whose new values the correction is chosen for


@dataclass(frozen=True)
class Described:
    """Rows whose configuration describes their network: where they stand, their columns, and the steps of each."""

    mask: Mask  # (n_rows,)
    columns: pd.DataFrame  # n_described rows
    steps: Floats  # (n_described,); 1 where steps are what is predicted


@dataclass
class FormulaSurrogate:
    """Calibrated formulas times a learned correction where a row describes its network, and a law elsewhere.

    `is_step`: what is learned are seconds of a step, else of a run, which takes its configuration's `steps` as long.
    Rows are those of `describe.described`.
    """

    is_step: bool
    seed: int = 0
    _law: LogLinearSurrogate = field(default_factory=LogLinearSurrogate, init=False, repr=False)
    _corrected: CorrectedPrior | None = field(default=None, init=False, repr=False)
    _mask: list[bool] = field(default_factory=list, init=False, repr=False)  # of the fitted rows, those with a network
    _steps: Floats = field(default_factory=lambda: np.empty(0), init=False, repr=False)

    def fit(self, X: pd.DataFrame, y: Floats) -> Self:
        """Learns from two rows or more; without ROWS_MIN networks only the law. Raises: InvalidInputError."""
        check_rows(X, y, least=2)
        self._law = LogLinearSurrogate(seed=self.seed).fit(X, y)
        networks = self._described(X)
        self._mask, self._steps = networks.mask.tolist(), networks.steps
        if len(networks.steps) >= ROWS_MIN:
            self._corrected = CorrectedPrior(GROUPS, self.seed).fit(networks.columns, y[networks.mask] / networks.steps)
        return self

    def predict(self, X: pd.DataFrame) -> Prediction:
        """Quantiles at LEVELS. Raises: NotFittedError, InvalidInputError."""
        prediction = self._law.predict(X)
        networks = self._described(X)
        if self._corrected is None or not len(networks.steps):
            return prediction
        values = prediction.values.copy()
        values[networks.mask] = self._corrected.predict(networks.columns).values * networks.steps[:, None]
        return Prediction(prediction.levels, values)

    def medians(self, X: pd.DataFrame) -> Floats:
        """Medians of new rows, shape (n_rows,). Raises: NotFittedError, InvalidInputError."""
        medians = self._law.medians(X)
        networks = self._described(X)
        if self._corrected is not None and len(networks.steps):
            medians[networks.mask] = self._corrected.seconds(networks.columns) * networks.steps
        return medians

    def held_out(self, training: Mask, test: Mask) -> Floats:
        """Medians of the test rows predicted from the training rows, (n_test,). Raises: NotFittedError."""
        medians = self._law.held_out(training, test)
        mask = np.array(self._mask, dtype=np.bool_)
        asked = test[mask]
        if self._corrected is not None and asked.any() and (training & mask).sum() >= ROWS_MIN:
            medians[mask[test]] = self._corrected.held_out(training[mask], asked) * self._steps[asked]
        return medians

    def _described(self, X: pd.DataFrame) -> Described:
        rows = [self._columns(row) for row in X.to_dict("records")]
        columns = [row for row in rows if row is not None]
        steps = [1.0 if self.is_step else steps_in(row) or 1.0 for row in columns]
        mask = np.array([row is not None for row in rows], dtype=np.bool_)
        return Described(mask, pd.DataFrame(columns), np.array(steps, dtype=np.float64))

    def _columns(self, row: Mapping[Any, Any]) -> dict[str, Any] | None:
        """The row's columns for the formulas; None where it describes no network, or not how many steps a run has."""
        present = {str(name): value for name, value in row.items() if not pd.isna(value)}
        settings = {name.removeprefix(SETTING): value for name, value in present.items() if name.startswith(SETTING)}
        columns = formula_columns(settings, int(present.get(SCALE, 1)), present.get(NODES))
        if MODEL in present:
            columns.setdefault(ACCELERATOR, present[MODEL])
        if network_in(columns) is None or not (self.is_step or steps_in(columns)):
            return None
        return columns | {name: present[name] for name in (SYSTEM, WORKLOAD) if name in present}
