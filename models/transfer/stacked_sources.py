"""A surrogate a source, weighted by their ranking of the target's runs."""

from collections.abc import Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pandas as pd

from crosswind.data.schema.prediction import Floats, Prediction, monotone
from crosswind.models.surrogate.surrogate import LEVELS, NotFittedError, Surrogate
from crosswind.models.surrogate.xgboost_quantile import XgboostQuantileSurrogate
from crosswind.models.transfer.anchored import AnchoredTransfer
from crosswind.models.transfer.multi_task_gp import MultiTaskGp
from crosswind.models.transfer.ranking import Rows, ranking_weights
from crosswind.models.transfer.transfer import by_source, check_tables

TARGET = "target"


@dataclass
class StackedSources:
    """The weighted mean in log seconds of the anchored prediction of each source and of the target's own model.

    Quantiles are averaged level by level (Vincent 1912). A source that ranks the runs no better than luck has weight 0.
    """

    model: Surrogate = field(default_factory=XgboostQuantileSurrogate)  # learns each source
    source_column: str | None = None
    seed: int = 0
    _members: dict[str, AnchoredTransfer] = field(default_factory=dict, init=False, repr=False)
    _own: MultiTaskGp | None = field(default=None, init=False, repr=False)
    _weights: dict[str, float] = field(default_factory=dict, init=False, repr=False)
    _measured: Floats | None = field(default=None, init=False, repr=False)

    @property
    def weights(self) -> Mapping[str, float]:
        """Source -> its weight, and `TARGET` -> the own model's; they sum to 1. Raises: NotFittedError."""
        if not self._weights:
            raise NotFittedError("StackedSources.weights came before fit")
        return dict(self._weights)

    def fit(self, source: pd.DataFrame, source_seconds: Floats, target: pd.DataFrame, target_seconds: Floats) -> Self:
        """Learns each source, the target's own model, and the weights. Raises: InvalidInputError."""
        check_tables(source, source_seconds, target, target_seconds)
        self._measured = np.array(target_seconds, dtype=np.float64)
        self._members = {
            name: AnchoredTransfer(deepcopy(self.model), self.source_column).fit(*rows, target, target_seconds)
            for name, rows in by_source(source, source_seconds, self.source_column).items()
        }
        self._own = target_only(target, target_seconds, self.source_column)
        return self._weigh()

    def only(self, names: Collection[str]) -> "StackedSources":
        """Return the stack of these sources only. Raises: NotFittedError."""
        if self._measured is None:
            raise NotFittedError("StackedSources.only came before fit")
        fewer = StackedSources(self.model, self.source_column, self.seed)
        fewer._members = {name: member for name, member in self._members.items() if name in names}
        fewer._own, fewer._measured = self._own, self._measured
        return fewer._weigh()

    def _weigh(self) -> Self:
        assert self._measured is not None  # noqa: S101  # set by fit
        shares = self._shares(np.arange(len(self._measured)))
        self._weights = dict(zip([*self._members, TARGET], map(float, shares), strict=True))
        return self

    def predict(self, X: pd.DataFrame) -> Prediction:
        """Quantiles at LEVELS. Raises: NotFittedError, InvalidInputError."""
        weights = self.weights
        used = [(weights[name], member) for name, member in self._members.items() if weights[name] > 0]
        logs = [weight * np.log(member.predict(X).values) for weight, member in used]
        if self._own is not None and weights[TARGET] > 0:
            logs.append(weights[TARGET] * np.log(self._own.predict(X).values))
        return monotone(LEVELS, np.exp(np.sum(logs, axis=0)))

    def held_out(self) -> Floats:
        """Medians of the target's runs, (k,), with weights and ratios from the others. Raises: NotFittedError."""
        if self._measured is None:
            raise NotFittedError("StackedSources.held_out came before fit")
        answers = np.log(np.stack([*[member.held_out() for member in self._members.values()], self._own_held_out()]))
        rows = np.arange(len(self._measured))
        shares = [self._shares(rows[rows != row]) for row in rows]
        return np.array([float(np.exp(share @ answers[:, row])) for row, share in zip(rows, shares, strict=True)])

    @property
    def members(self) -> Mapping[str, AnchoredTransfer]:
        """Anchored predictions by source."""
        return dict(self._members)

    def _own_held_out(self) -> Floats:
        return self._own.held_out() if self._own is not None else np.empty(0)

    def _shares(self, rows: Rows) -> Floats:
        """Weights from these rows of the target's runs."""
        assert self._measured is not None  # noqa: S101  # set by fit
        ranked = [member.log_source[rows] for member in self._members.values()]
        own = self._own_held_out()
        return ranking_weights(ranked, own[rows] if len(own) else own, self._measured[rows], self.seed)


def target_only(target: pd.DataFrame, seconds: Floats, source_column: str | None) -> MultiTaskGp | None:
    """A process on the target's runs alone; None without any."""
    if len(target) == 0:
        return None
    return MultiTaskGp(source_column).fit(target.iloc[:0], np.empty(0), target, seconds)
