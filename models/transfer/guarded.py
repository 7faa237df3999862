"""Ways of transfer, weighted by their errors on the target's own runs."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.data.schema.prediction import Floats, Prediction, monotone
from crosswind.models.surrogate.surrogate import LEVELS, NotFittedError, Surrogate
from crosswind.models.surrogate.xgboost_quantile import XgboostQuantileSurrogate
from crosswind.models.transfer.anchored import AnchoredTransfer
from crosswind.models.transfer.fine_tuned_network import FineTunedNetwork
from crosswind.models.transfer.multi_task_gp import MultiTaskGp
from crosswind.models.transfer.ranking import chance_of_agreement
from crosswind.models.transfer.stacked_sources import StackedSources, target_only
from crosswind.models.transfer.transfer import Transfer, by_source, check_tables

WEIGHED_RUNS_MIN = 3  # with fewer, leaving one out leaves too little to learn a ratio and check it
CHANCE_MAX = 1 / 6  # three runs in the right order; one in six useless sources passes, but has large errors
ERROR_MIN = 1e-3  # of log seconds: no way is taken to be better than 0.1 %
ANCHORED, STACKED, MULTI_TASK, NETWORK, TARGET_ONLY = "anchored", "stacked", "multi_task", "network", "target_only"


@dataclass
class GuardedTransfer:
    """A weighted mean of the ways whose leave-one-out errors are no larger than target-only's and anchored sources'.

    Each way's weight falls with the k-th power of its mean absolute log error on the k runs left out (its likelihood
    under Laplace errors: pseudo-BMA, Geisser and Eddy 1979). The left-out error of a weighted mean is no larger than
    the weighted mean of the errors, hence no larger than either guard's.

    Sources are screened first: one has weight 0 when ranks as good as its own are likely by luck, or when, anchored,
    its error is no smaller than that of the median of the other runs. Below WEIGHED_RUNS_MIN runs nothing can be
    checked, and the anchored sources predict alone.
    """

    model: Surrogate = field(default_factory=XgboostQuantileSurrogate)  # learns the sources
    source_column: str | None = None
    seed: int = 0
    network: FineTunedNetwork | None = None  # one more way, where torch is installed and sources have many rows
    _ways: dict[str, Transfer] = field(default_factory=dict, init=False, repr=False)
    _weights: dict[str, float] = field(default_factory=dict, init=False, repr=False)
    _errors: dict[str, float] = field(default_factory=dict, init=False, repr=False)
    _source_weights: dict[str, float] = field(default_factory=dict, init=False, repr=False)
    _held_out: Floats | None = field(default=None, init=False, repr=False)

    @property
    def weights(self) -> Mapping[str, float]:
        """Way -> weight; they sum to 1. Raises: NotFittedError."""
        if not self._weights:
            raise NotFittedError("GuardedTransfer.weights came before fit")
        return dict(self._weights)

    @property
    def source_weights(self) -> Mapping[str, float]:
        """Source -> its share among the sources used, times the weight of the ways that use sources.

        Raises: NotFittedError.
        """
        used = 1.0 - self.weights.get(TARGET_ONLY, 0.0)
        return {name: share * used for name, share in self._source_weights.items()}

    @property
    def errors(self) -> Mapping[str, float]:
        """Way -> mean absolute log error on the runs left out; none below WEIGHED_RUNS_MIN runs."""
        return dict(self._errors)

    def fit(self, source: pd.DataFrame, source_seconds: Floats, target: pd.DataFrame, target_seconds: Floats) -> Self:
        """Screens the sources, learns each way, and weighs them. Raises: InvalidInputError."""
        check_tables(source, source_seconds, target, target_seconds)
        runs = (target, np.array(target_seconds, dtype=np.float64))
        names = list(by_source(source, source_seconds, self.source_column))
        if len(runs[1]) < WEIGHED_RUNS_MIN:
            self._ways = {ANCHORED: self._anchored().fit(source, source_seconds, *runs)}
            self._weights, self._errors = {ANCHORED: 1.0}, {}
            self._source_weights = dict.fromkeys(names, 1.0 / len(names))
        else:
            self._weigh(self._learned(source, source_seconds, *runs), runs[1])
        self._held_out = self._middle([way.held_out()[:, None] for way in self._ways.values()])[:, 0]
        return self

    def predict(self, X: pd.DataFrame) -> Prediction:
        """Quantiles at LEVELS, averaged level by level. Raises: NotFittedError, InvalidInputError."""
        if not self._weights:
            raise NotFittedError("GuardedTransfer.predict came before fit")
        return monotone(LEVELS, self._middle([way.predict(X).values for way in self._ways.values()]))

    def held_out(self) -> Floats:
        """Medians of the target's runs, (k,), without each of them; weights are the same. Raises: NotFittedError."""
        if self._held_out is None:
            raise NotFittedError("GuardedTransfer.held_out came before fit")
        return self._held_out

    def _anchored(self) -> AnchoredTransfer:
        return AnchoredTransfer(deepcopy(self.model), self.source_column)

    def _learned(
        self, source: pd.DataFrame, source_seconds: Floats, target: pd.DataFrame, target_seconds: Floats
    ) -> dict[str, Transfer]:
        own = target_only(target, target_seconds, self.source_column)
        assert own is not None  # noqa: S101  # there are WEIGHED_RUNS_MIN runs
        ways: dict[str, Transfer] = {TARGET_ONLY: own}
        stacked = StackedSources(deepcopy(self.model), self.source_column, self.seed)
        stacked.fit(source, source_seconds, target, target_seconds)
        self._source_weights = _screened(stacked.members, target_seconds)
        kept = [name for name, weight in self._source_weights.items() if weight > 0]
        if not kept:
            return ways
        rows = _rows_of(kept, source, self.source_column)
        useful = (source[rows], source_seconds[rows], target, target_seconds)
        ways[ANCHORED] = self._anchored().fit(*useful)
        ways[STACKED] = stacked.only(kept)
        ways[MULTI_TASK] = MultiTaskGp(self.source_column, self.seed).fit(*useful)
        if self.network is not None:
            ways[NETWORK] = deepcopy(self.network).fit(*useful)
        return ways

    def _weigh(self, ways: Mapping[str, Transfer], measured: Floats) -> None:
        self._errors = {name: _error(way.held_out(), measured) for name, way in ways.items()}
        limit = min(self._errors.get(name, np.inf) for name in (TARGET_ONLY, ANCHORED))
        self._weights = likelihood_shares(
            {name: error for name, error in self._errors.items() if error <= limit}, len(measured)
        )
        self._ways = {name: ways[name] for name in self._weights}

    def _middle(self, answers: list[Floats]) -> Floats:
        weighed = [weight * np.log(answer) for weight, answer in zip(self._weights.values(), answers, strict=True)]
        return np.asarray(np.exp(np.sum(weighed, axis=0)), dtype=np.float64)


def _error(predicted: Floats, measured: Floats) -> float:
    return float(np.mean(np.abs(np.log(predicted) - np.log(measured))))


def _screened(members: Mapping[str, AnchoredTransfer], measured: Floats) -> dict[str, float]:
    """The share of each source; 0 where it hurts."""
    naive = _error(_median_of_others(measured), measured)
    errors = {name: _error(member.held_out(), measured) for name, member in members.items()}
    kept = {
        name: errors[name]
        for name, member in members.items()
        if errors[name] < naive and chance_of_agreement(member.log_source, measured) <= CHANCE_MAX + 1e-9
    }
    return dict.fromkeys(errors, 0.0) | likelihood_shares(kept, len(measured))


def _median_of_others(measured: Floats) -> Floats:
    others = ~np.eye(len(measured), dtype=np.bool_)
    return np.array([float(np.exp(np.median(np.log(measured[kept])))) for kept in others], dtype=np.float64)


def likelihood_shares(errors: Mapping[str, float], n_runs: int) -> dict[str, float]:
    """Likelihoods under Laplace errors of their own widths, as shares of 1."""
    if not errors:
        return {}
    floored = {name: max(error, ERROR_MIN) for name, error in errors.items()}
    likelihood = {name: (min(floored.values()) / error) ** n_runs for name, error in floored.items()}
    return {name: weight / sum(likelihood.values()) for name, weight in likelihood.items()}


def _rows_of(kept: list[str], source: pd.DataFrame, source_column: str | None) -> NDArray[np.bool_]:
    if source_column is None:
        return np.ones(len(source), dtype=bool)
    return np.isin(source[source_column].astype("string").fillna("unnamed").to_numpy(dtype=str), kept)
