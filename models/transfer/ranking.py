"""Agreement of predicted and measured ranks of runs, and the weights of sources by it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau

from crosswind.data.schema.prediction import Floats

Rows = NDArray[np.int64]  # places of rows

RESAMPLES = 256
GUARD_LEVEL = 0.95
RANKED_RUNS_MIN = 3  # two runs have one pair, right half the time by luck


def misranked(predicted: Floats, measured: Floats) -> Floats:
    """Return 1 for each pair of runs that a prediction puts in the wrong order, else 0, ties 0.5; shape (n_pairs,)."""
    first, second = np.triu_indices(len(measured), k=1)
    signs = np.sign(predicted[first] - predicted[second]) * np.sign(measured[first] - measured[second])
    return np.asarray((1 - signs) / 2, dtype=np.float64)


def agreement(predicted: Floats, measured: Floats) -> float:
    """Return Kendall's tau: 1 all pairs in order, -1 all reversed, 0 by luck; 0 for fewer than two runs."""
    wrong = misranked(predicted, measured)
    return float(1 - 2 * wrong.mean()) if len(wrong) else 0.0


def ranking_weights(sources: Sequence[Floats], own: Floats, measured: Floats, seed: int) -> Floats:
    """Weights of the sources and, last, of the target's own model, (n_sources + 1,); they sum to 1.

    sources: predictions of the k runs; own: the target's model's, each without that run. A weight is the share of
    bootstrap resamples of the runs in which that model misranks the fewest pairs (ties are shared). A source is left
    out when its median loss is above the 95 % quantile of the own model's, so that many poor sources cannot crowd
    it out, and when it ranks no better than luck. Below RANKED_RUNS_MIN runs, ranks say nothing: sources share alike.

    Source: Feurer, Letham, Bakshy 2018, "Scalable meta-learning for Bayesian optimization" (RGPE); the bootstrap
    replaces its posterior samples.
    """
    n_sources = len(sources)
    if len(measured) < RANKED_RUNS_MIN:
        return np.append(np.full(n_sources, 1.0 / n_sources), 0.0) if n_sources else np.ones(1)
    losses = _resampled_losses([*sources, own], measured, seed)
    limit = np.quantile(losses[-1], GUARD_LEVEL)
    useful = [
        np.median(loss) <= limit and agreement(source, measured) > 0
        for loss, source in zip(losses, sources, strict=False)
    ]
    losses[:-1][~np.array(useful, dtype=np.bool_)] = np.inf
    best = losses == losses.min(axis=0)
    return np.asarray((best / best.sum(axis=0)).mean(axis=1), dtype=np.float64)


def chance_of_agreement(predicted: Floats, measured: Floats) -> float:
    """Return the chance that random ranks agree at least as well (Kendall's tau, one-sided); 1 if all are alike."""
    if len(measured) < 2 or np.ptp(predicted) == 0 or np.ptp(measured) == 0:
        return 1.0
    return float(kendalltau(predicted, measured, alternative="greater").pvalue)


def _resampled_losses(predictions: Sequence[Floats], measured: Floats, seed: int) -> Floats:
    """Misranked pairs, shape (n_models, RESAMPLES)."""
    n_runs = len(measured)
    drawn = np.random.default_rng(seed).integers(n_runs, size=(RESAMPLES, n_runs))
    times = np.stack([np.bincount(sample, minlength=n_runs) for sample in drawn])
    first, second = np.triu_indices(n_runs, k=1)
    pairs = times[:, first] * times[:, second]
    return np.stack([pairs @ misranked(predicted, measured) for predicted in predictions])
