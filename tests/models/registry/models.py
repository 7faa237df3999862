"""A model, its evidence and its later runs, small enough for tests."""

import numpy as np
import pandas as pd

from crosswind.data.schema.model import Evidence, Learned
from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.data.store.store import Store
from crosswind.models.registry.drift import LaterRuns
from crosswind.models.registry.evidence import evidence_of
from crosswind.models.registry.trainer import Trained
from crosswind.models.surrogate import LEVELS, XgboostQuantileSurrogate
from crosswind.models.surrogate.conformal import ConformalSurrogate

TRAINED_ROWS, VALIDATED_ROWS = 160, 60
LEARNED = Learned(TRAINED_ROWS + VALIDATED_ROWS, 0, TRAINED_ROWS + VALIDATED_ROWS - 1, ("batch",), {"system": "lab"})


def rows(count: int, seed: int, slower: float = 1.0) -> tuple[pd.DataFrame, Floats]:
    """Runs whose seconds are in proportion to their batch, with 5 % of noise."""
    random = np.random.default_rng(seed)
    batch = random.integers(1, 9, count)
    return pd.DataFrame({"batch": batch}), slower * batch * random.lognormal(0, 0.05, count)


def trained(seed: int = 0) -> Trained:
    """A surrogate that beats the median of all rows by far."""
    X, seconds = rows(TRAINED_ROWS, seed)
    later_X, later_seconds = rows(VALIDATED_ROWS, seed + 1000)
    model = ConformalSurrogate(XgboostQuantileSurrogate(seed=seed, n_rounds=30)).fit(X, seconds)
    median = Prediction(LEVELS, np.tile(np.quantile(seconds, LEVELS), (VALIDATED_ROWS, 1)))
    return Trained(model, evidence_of(LEARNED, model.predict(later_X), later_seconds, {"always_median": median}))


def train(_: Store) -> Trained:
    """Return the trained model, as a trainer does."""
    return trained()


def poor(evidence: Evidence) -> Evidence:
    """The same, as if a baseline had been better."""
    return Evidence(**{**vars(evidence), "baselines": {"last": evidence.loss / 2}})


def later_runs(model: ConformalSurrogate, count: int = 60, slower: float = 1.0) -> LaterRuns:
    """Runs after the training, so many times slower than those before."""
    X, seconds = rows(count, 77, slower)
    return LaterRuns(LEARNED.to_ns + 1 + np.arange(count), model.predict(X), seconds)
