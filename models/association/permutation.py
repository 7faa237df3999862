"""P-values of many columns at once, by permutation within blocks of time."""

import numpy as np
import scipy.stats

from crosswind.data.schema.prediction import Floats
from crosswind.models.association.design import Design

PRODUCTS = 2e10  # multiplications that one ranking may take: a second or two
DRAWS_A_COLUMN = 200  # the least p is then a tenth of what the first discovery at q = 0.05 needs
ENOUGH_A_COLUMN = 20  # below, the least p would forbid any discovery, and moments are used
DRAWS_MIN, DRAWS_MAX = 2_000, 200_000
ENOUGH_EXCEEDED = 100  # draws beyond a column: its p is then sure to a tenth
NUMBERS_AT_ONCE = 10_000_000


def deviations(design: Design, columns: Floats, outcome: Floats) -> Floats:
    """The standard deviation of each column's product with the outcome over all permutations within blocks, (m,).

    Both are centred within blocks; it is exact: sum over blocks of Sxx Syy / (n - 1). Source: Hoeffding 1951. The
    variance that trends and cohorts took from the outcome is added back, or deviations would be too small.
    """
    spread = design.block_sums(columns**2) * design.block_sums(outcome[:, None] ** 2)
    deviation: Floats = np.sqrt((spread / np.maximum(design.sizes - 1, 1)[:, None]).sum(axis=0) / design.freedom)
    return deviation


def draws_for(rows: int, columns: int) -> int:
    """Return the number of permutations to draw; 0 where too few for any discovery are affordable."""
    wanted = min(max(DRAWS_A_COLUMN * columns, DRAWS_MIN), DRAWS_MAX)
    drawn = int(min(wanted, PRODUCTS / max(rows * columns, 1)))
    return drawn if drawn >= max(ENOUGH_A_COLUMN * columns, DRAWS_MIN) else 0


def by_moments(products: Floats, spread: Floats) -> Floats:
    """Two-sided p by the normal distribution of the permutations' own deviation, (m,); NaN where that is 0.

    Products of ranks are bounded, so the tails of few exposed runs are lighter than this says.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.abs(products) / spread
    p: Floats = np.where(spread > 0, 2 * scipy.stats.norm.sf(score), np.nan)
    return p


def by_draws(design: Design, columns: Floats, outcome: Floats, draws: int, *, seed: int) -> Floats:
    """Two-sided p, (m,), by permuting the outcome within blocks; a column that is often exceeded needs fewer draws.

    Source: Phipson and Smyth 2010, for the added 1; Besag and Clifford 1991, "Sequential Monte Carlo p-values".
    """
    random = np.random.default_rng(seed)
    reached = np.abs(columns.T @ outcome) * np.sqrt(design.freedom) * (1 - 1e-9)
    exceeded, drawn = np.zeros(columns.shape[1]), np.zeros(columns.shape[1])
    asked = np.arange(columns.shape[1])
    while len(asked) and (left := draws - int(drawn[asked[0]])) > 0:
        count = min(left, DRAWS_MIN, max(NUMBERS_AT_ONCE // len(outcome), 1))
        permuted = np.tile(outcome, (count, 1))
        for start, size in zip(design.starts, design.sizes, strict=True):
            random.permuted(permuted[:, start : start + size], axis=1, out=permuted[:, start : start + size])
        exceeded[asked] += (np.abs(permuted @ columns[:, asked]) >= reached[asked]).sum(axis=0)
        drawn[asked] += count
        asked = asked[exceeded[asked] < ENOUGH_EXCEEDED]
    return np.asarray((1 + exceeded) / (1 + drawn), np.float64)
