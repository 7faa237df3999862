"""Baselines to compare with: what anyone would try first on MLPerf's configurations."""

from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pandas as pd
import xgboost as xgb

from crosswind.data.schema.prediction import Floats
from crosswind.models.surrogate.columns import Columns

LAW = ("ranks", "global_batch", "flops_16bit", "memory_bytes_per_second", "per_node")


def _logs(X: pd.DataFrame, columns: tuple[str, ...], fill: Floats) -> Floats:
    logs = np.log(X[list(columns)].to_numpy(np.float64))
    return np.asarray(np.where(np.isnan(logs), fill, logs), np.float64)


@dataclass
class LogLinear:
    """Least squares of log minutes on the logarithms of scale, batch and device, the date, and workload levels."""

    _workloads: list[str] = field(default_factory=list)
    _fill: Floats = field(default_factory=lambda: np.empty(0))
    _solution: Floats = field(default_factory=lambda: np.empty(0))

    def fit(self, X: pd.DataFrame, y: Floats) -> Self:
        self._workloads = sorted(X["workload"].unique())
        self._fill = np.nanmedian(np.log(X[list(LAW)].to_numpy(np.float64)), axis=0)
        design = self._design(X)
        self._solution = np.asarray(np.linalg.lstsq(design, np.log(y))[0], np.float64)
        return self

    def minutes(self, X: pd.DataFrame) -> Floats:
        return np.exp(self._design(X) @ self._solution)

    def _design(self, X: pd.DataFrame) -> Floats:
        hot = X["workload"].to_numpy()[:, None] == np.array(self._workloads)[None, :]
        return np.column_stack([_logs(X, LAW, self._fill), X["published"] - 2022, hot])


@dataclass
class NearestWithScalingLaw:
    """Five nearest of the same workload, each carried over by one power law in scale and peak; weights 1 / distance."""

    n_nearest: int = 5
    weights: tuple[float, ...] = (1.0, 0.5, 2.0, 1.0, 0.3)  # of LAW's columns in the distance
    _X: pd.DataFrame = field(default_factory=pd.DataFrame)
    _y: Floats = field(default_factory=lambda: np.empty(0))
    _fill: Floats = field(default_factory=lambda: np.empty(0))
    _powers: Floats = field(default_factory=lambda: np.empty(0))

    def fit(self, X: pd.DataFrame, y: Floats) -> Self:
        self._X, self._y = X, np.log(y)
        self._fill = np.nanmedian(np.log(X[list(LAW)].to_numpy(np.float64)), axis=0)
        within = pd.DataFrame(self._scale(X)).assign(y=self._y)
        within -= within.groupby(X["workload"].to_numpy()).transform("mean")
        self._powers = np.linalg.lstsq(within[[0, 1]].to_numpy(), within["y"].to_numpy())[0]
        return self

    def minutes(self, X: pd.DataFrame) -> Floats:
        rows, learned = (_logs(table, LAW, self._fill) * self.weights for table in (X, self._X))
        scale, known_scale = self._scale(X), self._scale(self._X)
        result = np.full(len(X), float(np.median(self._y)))
        for place, workload in enumerate(X["workload"]):
            same = np.flatnonzero((self._X["workload"] == workload).to_numpy())
            if len(same):
                far = np.linalg.norm(learned[same] - rows[place], axis=1)
                near = np.argsort(far, kind="stable")[: self.n_nearest]
                carried = self._y[same[near]] + (scale[place] - known_scale[same[near]]) @ self._powers
                result[place] = np.average(carried, weights=1 / (far[near] + 0.1))
        return np.asarray(np.exp(result), np.float64)

    def _scale(self, X: pd.DataFrame) -> Floats:
        return _logs(X, LAW, self._fill)[:, [0, 2]]


@dataclass
class Xgboost:
    """300 trees of depth 6 on the squared error of log minutes, on all the features but the site."""

    _columns: Columns | None = None
    _booster: xgb.Booster | None = None
    _centre: float = 0.0

    def fit(self, X: pd.DataFrame, y: Floats) -> Self:
        X = X.drop(columns="site")
        self._columns, self._centre = Columns.of(X), float(np.median(np.log(y)))
        rows = xgb.QuantileDMatrix(self._columns.matrix(X), label=np.log(y) - self._centre, nthread=1)
        parameters = {"max_depth": 6, "learning_rate": 0.05, "subsample": 0.8, "nthread": 1, "seed": 0}
        self._booster = xgb.train(parameters, rows, num_boost_round=300)
        return self

    def minutes(self, X: pd.DataFrame) -> Floats:
        assert self._columns is not None
        assert self._booster is not None
        answer = self._booster.inplace_predict(self._columns.matrix(X.drop(columns="site")))
        return np.exp(np.asarray(answer, np.float64) + self._centre)
