"""A stack of surrogates, weighted by their accuracy out of fold for the kind of extrapolation that a row is."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import combinations
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.models.surrogate.log_errors import quantiles_of, spread
from crosswind.models.surrogate.surrogate import LEVELS, HoldoutSurrogate, NotFittedError, Surrogate, check_rows
from crosswind.models.surrogate.validation import Memory, Split

TIE = 1e-9  # of log seconds
TESTED_ROWS_MIN = 8  # with fewer, weights are equal


@dataclass(frozen=True)
class Blend:
    """The result of one split out of fold: the members' weights, which sum to one, and the quantiles of the errors."""

    weights: Floats  # (n_members,), none negative
    log_quantiles: Floats  # (n_levels,)


@dataclass
class Stack:
    """The members' log medians, weighted; the weights are those with the least absolute error out of fold.

    A split is a kind of extrapolation (a new site, an unseen device, a larger scale), and a new row is predicted by the
    blend of the first split that it is novel to, or of the last. So the same stack trusts members that extrapolate
    where a row lies outside and members that interpolate where it lies inside. Weights are searched on a grid of
    `n_steps`; of equally good ones, those that favour earlier members are taken.
    Source: Wolpert 1992; non-negative weights: Breiman 1996.
    """

    members: tuple[Surrogate, ...]
    splits: tuple[Split, ...]
    hidden: tuple[str, ...] = ()  # columns that splits see, but no member
    n_steps: int = 10
    _memories: list[Memory] = field(default_factory=list, init=False, repr=False)
    _blends: list[Blend] = field(default_factory=list, init=False, repr=False)

    @property
    def blends(self) -> list[Blend]:
        """A blend a split. Raises: NotFittedError."""
        if not self._blends:
            raise NotFittedError("Stack.blends came before fit")
        return self._blends

    def fit(self, X: pd.DataFrame, y: Floats) -> Self:
        """Learns the members on all rows, and the blends out of fold. Raises: InvalidInputError."""
        check_rows(X, y, least=2)
        if not self.members or not self.splits:
            raise InvalidInputError(f"{len(self.members)} members and {len(self.splits)} splits, expected one at least")
        unfitted = deepcopy(self.members)
        for member in self.members:
            member.fit(self._seen(X), y)
        self._memories = [split.memory(X) for split in self.splits]
        self._blends = [self._blend(unfitted, split, X, y) for split in self.splits]
        return self

    def predict(self, X: pd.DataFrame) -> Prediction:
        """Quantiles at LEVELS. Raises: NotFittedError, InvalidInputError."""
        if not self._blends:
            raise NotFittedError("Stack.predict came before fit")
        chosen = self._chosen(X)
        medians, values = np.log(self._medians(X, chosen)), np.empty((len(X), len(LEVELS)))
        for place, blend in enumerate(self._blends):
            rows = chosen == place
            values[rows] = spread(np.exp(medians[rows] @ blend.weights), blend.log_quantiles).values
        return Prediction(LEVELS, values)

    def _medians(self, X: pd.DataFrame, chosen: NDArray[np.int64]) -> Floats:
        """Medians by every member, (n_rows, n_members); 1 where it has no weight in the row's blend, uncomputed."""
        seen, medians = self._seen(X), np.ones((len(X), len(self.members)))
        for place, member in enumerate(self.members):
            weighs = np.array([blend.weights[place] > 0 for blend in self._blends])
            if (rows := weighs[chosen]).any():
                medians[rows, place] = _medians_of(member, seen if rows.all() else seen[rows])
        return medians

    def _seen(self, X: pd.DataFrame) -> pd.DataFrame:
        return X[[name for name in X.columns if name not in self.hidden]]

    def _chosen(self, X: pd.DataFrame) -> NDArray[np.int64]:
        chosen = np.full(len(X), len(self.splits) - 1, dtype=np.int64)
        for place in reversed(range(len(self.splits))):
            chosen[self.splits[place].is_novel(self._memories[place], X)] = place
        return chosen

    def _blend(self, unfitted: tuple[Surrogate, ...], split: Split, X: pd.DataFrame, y: Floats) -> Blend:
        pairs = list(zip(self.members, unfitted, strict=True))
        answers = np.log(np.column_stack([self._out_of_fold(pair, split, X, y) for pair in pairs]))
        tested = np.all(np.isfinite(answers), axis=1)
        if tested.sum() < TESTED_ROWS_MIN:
            equal = np.full(len(pairs), 1 / len(pairs))
            medians = np.column_stack([_medians_of(member, self._seen(X)) for member in self.members])
            return Blend(equal, quantiles_of(np.log(y) - np.log(medians) @ equal))
        answers, truth = answers[tested], np.log(y[tested])
        grid = list(_simplex(len(pairs), self.n_steps))
        losses = [float(np.abs(truth - answers @ weights).mean()) for weights in grid]
        weights = grid[int(np.argmax(np.array(losses) <= min(losses) + TIE))]
        errors = truth - answers @ weights
        return Blend(weights, quantiles_of(errors - np.median(errors)))

    def _out_of_fold(self, member: tuple[Surrogate, Surrogate], split: Split, X: pd.DataFrame, y: Floats) -> Floats:
        """Medians of the split's test rows, NaN of others, (n_rows,); `member`: fitted, and not fitted yet."""
        fitted, fresh = member
        medians, seen = np.full(len(y), np.nan), self._seen(X)
        for training, test in split.pairs(X):
            if training.sum() < 2:
                continue
            if isinstance(fitted, HoldoutSurrogate):
                medians[test] = fitted.held_out(training, test)
            else:
                model = deepcopy(fresh).fit(seen[training], y[training])
                medians[test] = model.predict(seen[test]).at(0.5)
        return medians


def _medians_of(member: Surrogate, X: pd.DataFrame) -> Floats:
    return member.medians(X) if isinstance(member, HoldoutSurrogate) else member.predict(X).at(0.5)


def _simplex(n_members: int, n_steps: int) -> Iterator[Floats]:
    """Yield all ways to share 1 among the members in `n_steps` steps, (n_members,) each, most for the first first."""
    places = n_steps + n_members - 1
    for bars in reversed(list(combinations(range(places), n_members - 1))):
        edges = np.array([-1, *bars, places])
        yield (np.diff(edges) - 1) / n_steps
