"""Made-up runs that scale."""

import numpy as np
import pandas as pd

from crosswind.data.schema.prediction import Floats


def scaling_runs(count: int, *, noise: float = 0.02, ranks_max: int = 32) -> tuple[pd.DataFrame, Floats]:
    """Seconds 1000 / ranks, twice as many on the slow device."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "ranks": 2.0 ** rng.integers(0, int(np.log2(ranks_max)) + 1, count),
            "device": rng.choice(["fast", "slow"], count),
        }
    )
    seconds = 1000 / X["ranks"].to_numpy() * np.where(X["device"] == "slow", 2.0, 1.0)
    return X, seconds * np.exp(noise * rng.standard_normal(count))
