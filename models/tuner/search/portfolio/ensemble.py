"""Trust in sources: how well they rank the measurements of the target."""

import numpy as np
from scipy.stats import norm

from crosswind.data.schema.prediction import Floats

SAMPLES = 128
ROWS_MAX = 60  # pairs grow with the square; the newest rows decide
DILUTION_PERCENTILE = 95

# How often sources of the same program order two rows of a target as they lie there, by the difference that the source
# expects: fitted to 40 tables, of which none is raced as held out.
RANK_NOISE = 1.5
LAPSES = 0.07
COMPARISONS_MAX = 7  # that count: later trials are chosen by what they are judged by


def shares(expected: Floats, own: Floats, deviation: Floats, y: Floats, *, seed: int) -> Floats:
    """Return the share of bootstraps in which each source, and last the own model, ranks best, (n_sources + 1,).

    A source whose median loss exceeds the 95th percentile of the target's own gets nothing.
    Source: Feurer, Letham, Hutter, Bakshy 2018, "Practical transfer learning for Bayesian optimization".

    Args:
        expected: By the sources, shape (n_sources, n).
        own: Expected by the target's model without the row, shape (n,).
        deviation: Of `own`, shape (n,).
        y: Measured, shape (n,).
        seed: Of the bootstrap.
    """
    expected, own, deviation, y = expected[:, -ROWS_MAX:], own[-ROWS_MAX:], deviation[-ROWS_MAX:], y[-ROWS_MAX:]
    rng = np.random.default_rng(seed)
    draws = rng.integers(len(y), size=(SAMPLES, len(y)))
    counts = np.array([np.bincount(draw, minlength=len(y)) for draw in draws], np.float64)
    source_losses = np.array([_losses(_wrong(prediction, y)[None], counts) for prediction in expected]).reshape(
        len(expected), SAMPLES
    )
    guesses = own + deviation * rng.normal(size=(SAMPLES, len(y)))
    own_losses = _losses(np.array([_wrong(guess, y) for guess in guesses]), counts)
    dropped = np.median(source_losses, axis=1) > np.percentile(own_losses, DILUTION_PERCENTILE)
    losses = np.vstack([np.where(dropped[:, None], np.inf, source_losses), own_losses])
    winners = losses == losses.min(axis=0)
    return np.asarray((winners / winners.sum(axis=0)).mean(axis=1), np.float64)


def evidence(expected: Floats, y: Floats) -> Floats:
    """Return for each source the logarithm of how much likelier the order of y is with it than by chance, (n_sources,).

    Every pair of measurements is a guess that the source gets right more often the further it expects them apart; pairs
    of which it expects the same say nothing. n measurements count as n - 1 independent comparisons.

    Args:
        expected: By the sources, standardised, shape (n_sources, n).
        y: Measured, shape (n,).
    """
    if len(y) < 2:
        return np.zeros(len(expected))
    first, second = np.triu_indices(len(y), 1)
    gaps = (expected[:, second] - expected[:, first]) * np.sign(y[second] - y[first])
    right = LAPSES + (1 - 2 * LAPSES) * norm.cdf(gaps / RANK_NOISE)
    return np.asarray(np.log(2 * right).mean(axis=1) * min(len(y) - 1, COMPARISONS_MAX), np.float64)


def _wrong(guess: Floats, y: Floats) -> Floats:
    """Return 1 where a pair is ranked the other way round, shape (n, n)."""
    return np.asarray((guess[:, None] < guess[None]) != (y[:, None] < y[None]), np.float64)


def _losses(wrong: Floats, counts: Floats) -> Floats:
    """Return the misranked pairs of each bootstrap sample, whose rows count `counts` (SAMPLES, n) times."""
    return np.asarray(np.sum(np.matmul(counts[:, None], wrong)[:, 0] * counts, axis=1))
