"""Power of a node under load, learned by workload, device, nodes and utilisation, and the energy of runs."""

from dataclasses import dataclass, field
from itertools import product
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.data.schema.carbon import Energy, Origin
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.models.surrogate.log_normal import log_normal
from crosswind.models.surrogate.surrogate import NotFittedError, check_rows

# Deviations of normal priors on log dynamic watts; the pair with the largest evidence is taken.
CATEGORY_DEVIATIONS = (0.01, 0.03, 0.1, 0.3)  # of a workload or a device from their mean
NOISE_DEVIATIONS = (0.01, 0.02, 0.04, 0.08)  # of a configuration's median from the sum of its terms
DOUBLING_DEVIATION = 0.1  # a doubling of nodes: more waiting, less power
NUMBER_DEVIATION = 0.1  # a standard deviation of any other number
LEVEL_DEVIATION = 0.3
NODES = "nodes"
MEDIAN_WATTS = "_watts"


@dataclass(frozen=True)
class Term:
    """One column's part in log dynamic watts: per category, or per unit of a number."""

    column: str
    categories: tuple[str, ...] | None  # None for a number
    centre: float = 0.0
    scale: float = 1.0

    def design(self, table: pd.DataFrame) -> Floats:
        """The design of the term's coefficients, shape (n_rows, n_coefficients); missing is 0."""
        values = table[self.column]
        if self.categories is None:
            distance = np.nan_to_num((self._number(values) - self.centre) / self.scale)
            return np.asarray(distance[:, None], dtype=np.float64)
        texts = values.astype("string").fillna("").to_numpy(dtype=str)
        return np.asarray(texts[:, None] == np.array(self.categories)[None, :], dtype=np.float64)

    def strange(self, table: pd.DataFrame) -> NDArray[np.bool_]:
        """Return the rows, (n_rows,), whose category was never seen or is missing; none for a number."""
        if self.categories is None:
            return np.zeros(len(table), dtype=np.bool_)
        return np.asarray(self.design(table).sum(axis=1) == 0, dtype=np.bool_)

    def deviations(self, category: float) -> list[float]:
        """The priors' deviations of its coefficients; `category` is that of each category."""
        if self.categories is None:
            return [DOUBLING_DEVIATION if self.column == NODES else NUMBER_DEVIATION]
        return [category] * len(self.categories)

    @classmethod
    def of(cls, table: pd.DataFrame, column: str) -> Self:
        """Make the term of a column of the training table."""
        if not pd.api.types.is_numeric_dtype(table[column]):
            return cls(column, tuple(sorted(table[column].dropna().astype(str).unique())))
        numbers = cls(column, None)._number(table[column])
        finite = numbers[np.isfinite(numbers)]
        if column == NODES:
            return cls(column, None, float(finite.mean()))
        spread = float(finite.std()) if len(finite) else 0.0
        return cls(column, None, float(finite.mean()) if len(finite) else 0.0, spread if spread > 0 else 1.0)

    def _number(self, values: "pd.Series[float]") -> Floats:
        numbers: Floats = pd.to_numeric(values).to_numpy(dtype=np.float64)
        return np.log2(numbers) if self.column == NODES else numbers


@dataclass(frozen=True)
class Priors:
    """Deviations of the coefficients (n,), of a category among them, and of the noise."""

    deviations: Floats
    category: float
    noise: float


@dataclass(frozen=True)
class Posterior:
    """Coefficients of a linear model with normal priors: mean (n,), covariance (n, n), and the noise' deviation."""

    mean: Floats
    covariance: Floats
    category: float  # deviation of a category that was not seen
    noise: float
    log_evidence: float  # of the rows learned from, up to a constant


@dataclass
class NodePower:
    """Power = static + dynamic, with log dynamic watts a sum of terms, each shrunk towards none.

    Columns are free: texts (`workload`, `device`) are categories, `nodes` counts in doublings, other numbers
    (`utilisation`, `batch`, `clock_hertz`) in standard deviations. Repeats of a configuration count once, by their
    median. A category never seen is the mean one, so that a new workload is answered by its scale and device.
    """

    static_watts: float = 0.0  # of an idle node; with 0 all power is dynamic
    _terms: tuple[Term, ...] = field(default=(), init=False, repr=False)
    _centre: float = field(default=0.0, init=False, repr=False)  # log dynamic watts
    _posterior: Posterior | None = field(default=None, init=False, repr=False)
    _rows: Floats = field(
        default_factory=lambda: np.empty((0, 0)), init=False, repr=False
    )  # the configurations' design
    _errors: Floats = field(default_factory=lambda: np.empty(0), init=False, repr=False)  # of their log dynamic watts

    def fit(self, runs: pd.DataFrame, watts: Floats) -> Self:
        """Learns from metered runs: (n_runs,) mean watts a node. Raises: InvalidInputError."""
        check_rows(runs, watts, least=1)
        _check_nodes(runs)
        if not 0 <= self.static_watts < float(np.min(watts)):
            raise InvalidInputError(
                f"static_watts is {self.static_watts}, expected from 0 to below the runs' least {np.min(watts)}"
            )
        middles = configurations(runs, watts)
        self._terms = tuple(Term.of(middles, str(column)) for column in runs.columns)
        log_dynamic = np.log(middles[MEDIAN_WATTS].to_numpy(dtype=np.float64) - self.static_watts)
        self._centre = float(np.median(log_dynamic))
        design = self._design(middles)
        candidates = [
            _posterior(Priors(self._deviations(category), category, noise), design, log_dynamic - self._centre)
            for category, noise in product(CATEGORY_DEVIATIONS, NOISE_DEVIATIONS)
        ]
        self._posterior = max(candidates, key=lambda candidate: candidate.log_evidence)
        self._rows, self._errors = design, log_dynamic - self._centre - design @ self._posterior.mean
        return self

    def without(self, is_left_out: NDArray[np.bool_]) -> Floats:
        """Errors of log dynamic watts, (n_configurations,), had it not learned from the configurations of a mask.

        They are in the order of `configurations`. Constants, such as the noise, remain those learned from all.
        Source: Rasmussen and Williams 2006, equation 5.12, block by block. Raises: NotFittedError.
        """
        if self._posterior is None:
            raise NotFittedError("NodePower.without came before fit")
        influence = self._rows @ self._posterior.covariance @ self._rows.T / self._posterior.noise**2
        own = np.eye(int(is_left_out.sum())) - influence[np.ix_(is_left_out, is_left_out)]
        left = np.linalg.solve(own, self._errors[is_left_out])
        errors = self._errors + influence[:, is_left_out] @ left
        errors[is_left_out] = left
        return np.asarray(errors, dtype=np.float64)

    def predict(self, runs: pd.DataFrame) -> Prediction:
        """Quantiles at LEVELS of the mean watts a node. Raises: NotFittedError, InvalidInputError."""
        if self._posterior is None:
            raise NotFittedError("NodePower.predict came before fit")
        _check_nodes(runs)
        design, posterior = self._design(runs), self._posterior
        variance = np.einsum("ij,jk,ik->i", design, posterior.covariance, design) + posterior.noise**2
        strangers = np.sum([term.strange(runs) for term in self._terms], axis=0)
        variance = variance + strangers * posterior.category**2
        dynamic = log_normal(self._centre + design @ posterior.mean, np.sqrt(variance))
        return Prediction(dynamic.levels, self.static_watts + dynamic.values)

    def energy(self, run: pd.DataFrame, seconds: float, busy_seconds: float | None = None) -> Energy:
        """Energy of one run (a table of one row with its nodes): static power all the time, dynamic while busy.

        busy_seconds: None when the run was busy throughout, as the metered ones. Raises: InvalidInputError.
        """
        busy = seconds if busy_seconds is None else busy_seconds
        if len(run) != 1 or NODES not in run:
            raise InvalidInputError(
                f"the run is {len(run)} rows of {', '.join(map(str, run.columns))}, expected one with {NODES}"
            )
        if not 0 <= busy <= seconds < np.inf:
            raise InvalidInputError(f"busy_seconds is {busy} of {seconds} seconds, expected from 0 to all of them")
        dynamic = float(self.predict(run).at(0.5)[0]) - self.static_watts
        joules = float(run[NODES].iloc[0]) * (self.static_watts * seconds + dynamic * busy)
        return Energy(joules, Origin.ESTIMATED)

    def _design(self, table: pd.DataFrame) -> Floats:
        if missing := [term.column for term in self._terms if term.column not in table.columns]:
            raise InvalidInputError(f"the table of runs has no column {', '.join(missing)}, expected it as in fit")
        return np.column_stack([np.ones((len(table), 1)), *(term.design(table) for term in self._terms)])

    def _deviations(self, category: float) -> Floats:
        deviations = [deviation for term in self._terms for deviation in term.deviations(category)]
        return np.array([LEVEL_DEVIATION, *deviations], dtype=np.float64)


def configurations(runs: pd.DataFrame, watts: Floats) -> pd.DataFrame:
    """One row for runs that agree in all columns, in the order of these, with the median of their watts (n_runs,)."""
    columns = [str(column) for column in runs.columns]
    named = runs.set_axis(columns, axis=1).assign(**{MEDIAN_WATTS: watts})
    return named.groupby(columns, dropna=False, sort=True)[MEDIAN_WATTS].median().reset_index()


def _posterior(priors: Priors, design: Floats, y: Floats) -> Posterior:
    """Solve the linear model. Source: Bishop 2006, equations 3.53, 3.54 and 3.86, with a deviation a coefficient."""
    deviations, noise = priors.deviations, priors.noise
    precision = design.T @ design / noise**2 + np.diag(deviations**-2.0)
    covariance = np.asarray(np.linalg.inv(precision), dtype=np.float64)
    mean = np.asarray(covariance @ design.T @ y / noise**2, dtype=np.float64)
    misfit = float(np.sum((y - design @ mean) ** 2)) / noise**2 + float(np.sum((mean / deviations) ** 2))
    volume = np.linalg.slogdet(precision)[1] + 2 * float(np.sum(np.log(deviations))) + 2 * len(y) * np.log(noise)
    return Posterior(mean, covariance, priors.category, noise, -0.5 * float(misfit + volume))


def _check_nodes(runs: pd.DataFrame) -> None:
    if NODES in runs and not (pd.to_numeric(runs[NODES], errors="coerce") > 0).all():
        wrong = runs[NODES][~(pd.to_numeric(runs[NODES], errors="coerce") > 0)].iloc[0]
        raise InvalidInputError(f"{NODES} is {wrong}, expected a positive number")
