"""Corrections of the formulas, learned as log ratios that fade to zero away from all runs."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Protocol, Self

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.gp.gp import Priors, Solution, distances, rough_matern_with_slope, square_gaps
from crosswind.models.surrogate.surrogate import NotFittedError
from crosswind.models.surrogate.trees import Trees

if TYPE_CHECKING:  # heavy
    import xgboost as xgb

SPREAD_MIN = 1e-3  # of log ratios
HYPER_ROWS_MAX = 250  # enough rows to learn lengths; time grows with their cube
PROCESS_ROWS_MAX = 1500
# Log-normal priors (mean and standard deviation of the logarithm), bounds, of standardised ratios and features.
LENGTH_PRIOR, LENGTH_BOUNDS = (1.0, 1.5), (0.05, 50.0)
VARIANCE_PRIOR, VARIANCE_BOUNDS = (0.0, 1.0), (0.05, 20.0)
NOISE_PRIOR, NOISE_BOUNDS, NOISE_START = (-5.0, 2.0), (1e-5, 1.0), 0.01
STEPS_MAX = 40


@dataclass(frozen=True)
class Corrected:
    """Log ratio of measured to formula, its spread, and the distance from all runs (0 to 1), (n_rows,) each."""

    log_ratio: Floats
    spread: Floats
    openness: Floats


class Correction(Protocol):
    """Learns log ratios from standardised features, and predicts 0 far from all runs."""

    name: ClassVar[str]

    def fit(self, features: Floats, log_ratios: Floats) -> Self:
        """Learns from features (n_rows, n_features) and log_ratios (n_rows,)."""
        ...

    def refit(self, features: Floats, log_ratios: Floats) -> Self:
        """Learns from these rows alone, with the constants that `fit` learned where learning them takes long."""
        ...

    def predict(self, features: Floats) -> Corrected:
        """The correction of each row, after `fit`."""
        ...


@dataclass
class NoCorrection:
    """The formulas alone."""

    name: ClassVar[str] = "none"
    seed: int = 0  # of no use here
    _spread: float = field(default=1.0, init=False, repr=False)

    def fit(self, features: Floats, log_ratios: Floats) -> Self:  # noqa: ARG002
        """Learns the spread of the log ratios."""
        self._spread = _spread(log_ratios)
        return self

    def refit(self, features: Floats, log_ratios: Floats) -> Self:
        """As `fit`."""
        return self.fit(features, log_ratios)

    def predict(self, features: Floats) -> Corrected:
        """A log ratio of zero everywhere."""
        n = len(features)
        return Corrected(np.zeros(n), np.full(n, self._spread), np.ones(n))


@dataclass
class ProcessCorrection:
    """A Gaussian process of mean zero: Matern 3/2, one length a feature, by marginal likelihood with priors.

    Source: Rasmussen and Williams 2006, chapters 2 and 5.
    """

    name: ClassVar[str] = "process"
    seed: int = 0
    _scale: float = field(default=1.0, init=False, repr=False)
    _theta: Floats = field(default_factory=lambda: np.empty(0), init=False, repr=False)
    _features: Floats = field(default_factory=lambda: np.empty((0, 0)), init=False, repr=False)
    _factor: Floats = field(default_factory=lambda: np.empty((0, 0)), init=False, repr=False)
    _weights: Floats = field(default_factory=lambda: np.empty(0), init=False, repr=False)

    def fit(self, features: Floats, log_ratios: Floats) -> Self:
        """Learns hyper-parameters from up to HYPER_ROWS_MAX rows, and the posterior from up to PROCESS_ROWS_MAX."""
        few = np.random.default_rng(self.seed).permutation(len(features))[:HYPER_ROWS_MAX]
        self._scale = max(float(np.sqrt(np.mean(log_ratios**2))), SPREAD_MIN)
        self._theta = _most_likely(features[few], log_ratios[few] / self._scale)
        return self.refit(features, log_ratios)

    def refit(self, features: Floats, log_ratios: Floats) -> Self:
        """Learns the posterior of these rows, with the hyper-parameters of `fit`."""
        order = np.random.default_rng(self.seed).permutation(len(features))
        rows = np.sort(order[:PROCESS_ROWS_MAX])
        self._features = features[rows]
        noise = np.eye(len(rows)) * (np.exp(self._theta[-1]) + 1e-8)
        solution = Solution.of(self._covariance(self._features) + noise, log_ratios[rows] / self._scale)
        self._factor, self._weights = solution.factor, solution.weights
        return self

    def predict(self, features: Floats) -> Corrected:
        """The posterior of a new run: far away, zero with the spread of the log ratios."""
        from scipy.linalg import cho_solve  # noqa: PLC0415 - heavy, and few answers need it

        across = self._covariance(features)
        explained = np.einsum("nm,mn->n", across, cho_solve((self._factor, True), across.T))
        whole, noise = float(np.exp(self._theta[0])), float(np.exp(self._theta[-1]))
        left = np.clip(1 - explained / whole, 0.0, 1.0)
        # A smooth fit may have a small variance; far away, the spread is that of the log ratios at least.
        spread = self._scale * np.sqrt(left * max(whole, 1.0) + noise)
        return Corrected(self._scale * (across @ self._weights), np.maximum(spread, SPREAD_MIN), left)

    def _covariance(self, features: Floats) -> Floats:
        apart = distances(features, self._features, np.exp(self._theta[1:-1]))
        return float(np.exp(self._theta[0])) * rough_matern_with_slope(apart)[0]


@dataclass
class TreeCorrection:
    """Boosted trees, whose prediction fades with the distance to the nearest run beyond the usual one between runs."""

    name: ClassVar[str] = "trees"
    seed: int = 0
    n_rounds: int = 300
    max_depth: int = 6
    _booster: "Trees | xgb.Booster | None" = field(default=None, init=False, repr=False)
    _features: Floats = field(default_factory=lambda: np.empty((0, 0)), init=False, repr=False)
    _reach: float = field(default=1.0, init=False, repr=False)
    _spreads: tuple[float, float] = field(default=(1.0, 1.0), init=False, repr=False)

    def fit(self, features: Floats, log_ratios: Floats) -> Self:
        """Squared error on the log ratio; the spread is that of a fifth of the rows that were held out first."""
        held = np.arange(len(log_ratios)) % 5 == 4
        trial = self._train(features[~held], log_ratios[~held])
        misses = log_ratios[held] - trial.inplace_predict(features[held])
        self._spreads = (_spread(misses), _spread(log_ratios))
        self._booster = self._train(features, log_ratios)
        self._features = features
        self._reach = _reach(features)
        return self

    def refit(self, features: Floats, log_ratios: Floats) -> Self:
        """As `fit`."""
        return self.fit(features, log_ratios)

    def predict(self, features: Floats) -> Corrected:
        """The trees' prediction within reach of runs, zero far from them. Raises: NotFittedError."""
        if self._booster is None:
            raise NotFittedError("TreeCorrection.predict came before fit")
        from scipy.spatial import KDTree  # noqa: PLC0415 - heavy, and few answers need it

        distances = KDTree(self._features).query(features)[0]
        beyond = np.maximum(distances - self._reach, 0.0) / self._reach
        near = np.asarray(np.exp(-0.5 * beyond**2), np.float64)
        log_ratio = np.asarray(self._booster.inplace_predict(features), np.float64)
        inner, outer = self._spreads
        spread = np.sqrt(near * inner**2 + (1 - near) * outer**2)
        return Corrected(near * log_ratio, np.asarray(spread, np.float64), 1 - near)

    def _train(self, features: Floats, log_ratios: Floats) -> Trees:
        import xgboost as xgb  # noqa: PLC0415 - heavy, and needed only to learn

        parameters = {
            "max_depth": self.max_depth,
            "learning_rate": 0.1,
            "min_child_weight": 2,
            "subsample": 0.8,
            "base_score": 0.0,
            "nthread": 1,
            "seed": self.seed,
        }
        booster = xgb.train(parameters, xgb.DMatrix(features, label=log_ratios), num_boost_round=self.n_rounds)
        return Trees.of(booster, features.shape[1])


def _most_likely(features: Floats, ratios: Floats) -> Floats:
    """Most probable logarithms of variance, lengths and noise, (n_features + 2,)."""
    from crosswind.models.gp.gaussian_process import misfit  # noqa: PLC0415 - heavy, and needed only to learn

    n, gaps = features.shape[1], square_gaps(features)
    bounds = np.log([VARIANCE_BOUNDS, *[LENGTH_BOUNDS] * n, NOISE_BOUNDS])
    priors = Priors.of([VARIANCE_PRIOR, *[LENGTH_PRIOR] * n, NOISE_PRIOR], bounds)
    start = np.append(priors.means[:-1], np.log(NOISE_START))
    return priors.most_probable(
        lambda theta: misfit(theta, gaps, ratios, correlation=rough_matern_with_slope), steps=STEPS_MAX, starts=[start]
    )


def _reach(features: Floats) -> float:
    """Return the 0.9 quantile of the distances of runs to their nearest other run; 1 where all coincide."""
    from scipy.spatial import KDTree  # noqa: PLC0415 - heavy, and needed only to learn

    if len(features) < 2:
        return 1.0
    distances = KDTree(features).query(features, k=2)[0][:, 1]
    reach = float(np.quantile(distances, 0.9))
    return reach if reach > 0 else 1.0


def _spread(misses: Floats) -> float:
    return max(float(np.sqrt(np.mean(misses**2))), SPREAD_MIN) if len(misses) else 1.0
