"""A stack of surrogates, weighted by their accuracy out of fold for the kind of extrapolation that a row is."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import combinations
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.models.surrogate.log_errors import quantiles_of_groups, spread
from crosswind.models.surrogate.surrogate import LEVELS, HoldoutSurrogate, NotFittedError, Surrogate, check_rows
from crosswind.models.surrogate.validation import Memory, Split, TimeOrdered

TIE = 1e-9  # of log seconds
TESTED_ROWS_MIN = 8  # fewer say nothing about weights
MIDDLE = 0.5


@dataclass(frozen=True)
class HeldOut:
    """The accuracy of a blend on rows of which neither weights nor quantiles were learned."""

    rows: int
    median_error: float  # of |predicted / actual - 1|
    coverage_90: float  # share of rows inside the 90 % interval


@dataclass(frozen=True)
class Blend:
    """The result of one split out of fold: the members' weights, which sum to one, and the quantiles of the errors."""

    weights: Floats  # (n_members,), none negative
    log_quantiles: Floats  # (n_levels,)
    held_out: HeldOut | None = None  # None with too few rows


@dataclass(frozen=True)
class Tested:
    """Rows that a split tested: members' log medians out of fold, the truth, the fold and the group of each row."""

    answers: Floats  # (n_tested, n_members)
    truth: Floats  # (n_tested,)
    folds: NDArray[np.int64]  # (n_tested,)
    groups: NDArray[np.int64]  # (n_tested,)

    def take(self, rows: NDArray[np.bool_]) -> "Tested":
        """The rows of this mask."""
        return Tested(self.answers[rows], self.truth[rows], self.folds[rows], self.groups[rows])


@dataclass
class Stack:
    """The members' log medians, weighted; the weights are those with the least absolute error out of fold.

    A split is a kind of extrapolation (a new site, an unseen device, a larger scale), and a new row is predicted by the
    blend of the first split that it is novel to, or of the last. So the same stack trusts members that extrapolate
    where a row lies outside and members that interpolate where it lies inside. The band is the widest of all splits
    that the row is novel to; that it is later than all others widens nothing. Weights are searched on a grid of
    `n_steps`; of equally good ones, those that favour earlier members are taken. A split that tests too few rows takes
    the weights of the next one that tests enough.
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
        self._blends = self._of_splits([self._tested(unfitted, split, X, y) for split in self.splits])
        return self

    def predict(self, X: pd.DataFrame) -> Prediction:
        """Quantiles at LEVELS. Raises: NotFittedError, InvalidInputError."""
        if not self._blends:
            raise NotFittedError("Stack.predict came before fit")
        novel = self._novel(X)
        chosen = np.where(novel.any(axis=0), np.argmax(novel, axis=0), len(self.splits) - 1)
        medians, values = np.log(self._medians(X, chosen)), np.empty((len(X), len(LEVELS)))
        for kinds in np.unique(novel, axis=1).T:
            rows = (novel == kinds[:, None]).all(axis=0)
            weights = self._blends[int(chosen[rows][0])].weights
            values[rows] = spread(np.exp(medians[rows] @ weights), self._band(kinds, int(chosen[rows][0]))).values
        return Prediction(LEVELS, values)

    def _novel(self, X: pd.DataFrame) -> NDArray[np.bool_]:
        """Return to which splits the rows are novel, (n_splits, n_rows)."""
        pairs = zip(self.splits, self._memories, strict=True)
        return np.stack([split.is_novel(memory, X) for split, memory in pairs])

    def _band(self, kinds: NDArray[np.bool_], chosen: int) -> Floats:
        """The widest of the quantiles of errors, (n_levels,), of the chosen split and others that a row is novel to."""
        widening = kinds & np.array([not isinstance(split, TimeOrdered) for split in self.splits])
        places = {chosen, *np.flatnonzero(widening).tolist()}
        every = np.array([self._blends[place].log_quantiles for place in sorted(places)])
        is_low, is_high = np.array(LEVELS) < MIDDLE, np.array(LEVELS) > MIDDLE
        middle = self._blends[chosen].log_quantiles
        return np.where(is_low, every.min(axis=0), np.where(is_high, every.max(axis=0), middle))

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

    def _of_splits(self, tested: Sequence[Tested]) -> list[Blend]:
        """A blend a split; the weights of one that tested too few rows are those of the next, or else equal."""
        weights, blends = np.full(len(self.members), 1 / len(self.members)), []
        for split, rows in reversed(list(zip(self.splits, tested, strict=True))):
            if len(rows.truth) >= TESTED_ROWS_MIN:
                weights = _best_weights(rows, self.n_steps)
            quantiles = _error_quantiles(rows, weights, split.deviation)
            blends.append(Blend(weights, quantiles, _held_out(rows, split.deviation, self.n_steps)))
        return blends[::-1]

    def _tested(self, unfitted: tuple[Surrogate, ...], split: Split, X: pd.DataFrame, y: Floats) -> Tested:
        pairs = list(zip(self.members, unfitted, strict=True))
        answers = np.log(np.column_stack([self._out_of_fold(pair, split, X, y) for pair in pairs]))
        folds = np.full(len(y), -1, dtype=np.int64)
        for place, (_, test) in enumerate(split.pairs(X)):
            folds[test] = place
        whole = Tested(answers, np.log(y), folds, split.groups(X))
        return whole.take(np.all(np.isfinite(answers), axis=1))

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


def _best_weights(tested: Tested, n_steps: int) -> Floats:
    """The shares of the grid with the least mean absolute error, (n_members,)."""
    grid = list(_simplex(tested.answers.shape[1], n_steps))
    losses = [float(np.abs(tested.truth - tested.answers @ weights).mean()) for weights in grid]
    return grid[int(np.argmax(np.array(losses) <= min(losses) + TIE))]


def _error_quantiles(tested: Tested, weights: Floats, deviation: float) -> Floats:
    errors = tested.truth - tested.answers @ weights
    centre = np.median(errors) if len(errors) else 0.0
    return quantiles_of_groups(errors - centre, tested.groups, deviation)


def _held_out(tested: Tested, deviation: float, n_steps: int) -> HeldOut | None:
    """The accuracy of each fold with what the others teach; of a single fold, of each half with the other."""
    folds = tested.folds if len(np.unique(tested.folds)) > 1 else np.arange(len(tested.truth)) % 2
    misses: list[Floats] = []
    inside: list[NDArray[np.bool_]] = []
    for fold in np.unique(folds):
        learned, asked = tested.take(folds != fold), tested.take(folds == fold)
        if len(learned.truth) < TESTED_ROWS_MIN:
            continue
        weights = _best_weights(learned, n_steps)
        band = _error_quantiles(learned, weights, deviation)
        misses.append(asked.truth - asked.answers @ weights)
        inside.append((band[LEVELS.index(0.05)] <= misses[-1]) & (misses[-1] <= band[LEVELS.index(0.95)]))
    if sum(map(len, misses)) < TESTED_ROWS_MIN:
        return None
    errors = np.abs(np.expm1(-np.concatenate(misses)))  # predicted / actual - 1
    return HeldOut(len(errors), float(np.median(errors)), float(np.concatenate(inside).mean()))


def _simplex(n_members: int, n_steps: int) -> Iterator[Floats]:
    """Yield all ways to share 1 among the members in `n_steps` steps, (n_members,) each, most for the first first."""
    places = n_steps + n_members - 1
    for bars in reversed(list(combinations(range(places), n_members - 1))):
        edges = np.array([-1, *bars, places])
        yield (np.diff(edges) - 1) / n_steps
