"""Effects of several crossed factors on observations, each shrunken by how little is known of it.

    y = level of its group + sum over factors of the effects it has + noise

The groups' levels (a run's, a cohort's) are free; the effects of a factor are drawn from N(0, tau2), so that one which
was observed twice is almost 0, and one observed a hundred times nearly its mean: effect = sum / (n + sigma2 / tau2)
without crossing. Crossed factors are solved together, by Henderson's mixed-model equations. The variances come by
MacKay's fixed point, which is REML's where the standard errors are exact. Observations more than CLIPPED deviations off
the fit are clipped to that: one pause of one run makes no slow node.

Sources: Henderson 1975 (Biometrics 31); Robinson 1991, "That BLUP is a good thing"; MacKay 1992 (Neural Computation
4) for the variances; Huber 1981, pseudo-values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg
from scipy.stats import norm

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats

CLIPPED = 3.0  # robust deviations of the noise
CONSISTENCY = 1.4826  # median absolute deviation -> standard deviation of a normal distribution
TAU2_MIN, SIGMA2_MIN = 1e-8, 1e-8  # of logarithms: a ten thousandth
ROUNDS = (8, 4, 4, 4)  # of the variances, before what is far off is clipped and each time after
EXACT = 400  # effects, up to which standard errors are exact; beyond, from each one's own equation
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Factor:
    """The effects of one factor in the observations: `incidence` has shape (n_observations, n_effects)."""

    name: str
    incidence: sparse.csr_matrix

    @classmethod
    def of(cls, name: str, codes: Codes, count: int) -> "Factor":
        """Make a factor of `count` effects from the code of each observation, (n,); below 0 it has none."""
        rows = np.flatnonzero(codes >= 0)
        ones = np.ones(len(rows))
        return cls(name, sparse.csr_matrix((ones, (rows, codes[rows])), shape=(len(codes), count)))


@dataclass(frozen=True)
class Effects:
    """Effects and standard errors by factor, shape (n_effects,); variances by factor; and the noise's deviation.

    `informative` is the contrast of each effect to others, in observations. `partial` has shape (n_observations,): y
    less the group's level and nothing else; `fitted` is the sum of the effects there.
    """

    values: Mapping[str, Floats]
    errors: Mapping[str, Floats]
    informative: Mapping[str, Floats]
    variances: Mapping[str, float]
    noise: float
    partial: Floats
    fitted: Floats

    def chance_above(self, name: str, least: float, rows: Codes, centre: Floats) -> Floats:
        """The probability that each of these effects is above its centre by more than `least`; shapes (n_rows,)."""
        return np.asarray(norm.sf((least + centre - self.values[name][rows]) / self.errors[name][rows]))


@dataclass
class _Equations:
    """The normal equations Z'MZ, where M centres within groups, and their solution."""

    incidence: sparse.csr_matrix  # of all factors, side by side
    groups: Codes
    sizes: Floats
    factor: Codes  # of each effect
    normal: sparse.csr_matrix
    squared: sparse.csr_matrix  # its entries squared
    own: Floats  # its diagonal

    def centred(self, values: Floats) -> Floats:
        return values - (np.bincount(self.groups, values, len(self.sizes)) / self.sizes)[self.groups]

    def solved(self, y: Floats, sigma2: float, tau2: Floats, start: Floats) -> Floats:
        ridge = sigma2 / tau2[self.factor]
        right = np.asarray(self.incidence.T @ self.centred(y))
        if len(ridge) <= EXACT:
            return np.asarray(np.linalg.solve(self.normal.toarray() + np.diag(ridge), right))
        system = LinearOperator(self.normal.shape, matvec=lambda effects: self.normal @ effects + ridge * effects)
        solution, _ = cg(system, right, x0=start, rtol=1e-5, maxiter=500, M=sparse.diags(1 / (self.own + ridge)))
        return np.asarray(solution)

    def variances(self, sigma2: float, tau2: Floats) -> Floats:
        """Of each effect, given all observations; shape (n_effects,)."""
        prior = 1 / tau2[self.factor]
        if len(prior) <= EXACT:
            whole = self.normal.toarray() / sigma2
            whole[np.diag_indices(len(prior))] += prior
            return np.asarray(np.diag(np.linalg.inv(whole)))
        precision = self.own / sigma2 + prior
        shared = np.asarray(self.squared @ (1 / precision)) - self.own**2 / precision  # with all other effects
        return np.asarray(1 / np.maximum(precision - shared / sigma2**2, prior))


def crossed_effects(y: Floats, groups: Codes, factors: Sequence[Factor]) -> Effects:
    """The effects of all factors on y (n,), whose groups (n,) are numbered from 0.

    Raises: InvalidInputError for no observations, numbers that are not finite, or shapes that do not fit.
    """
    if not len(y) or not np.isfinite(y).all():
        raise InvalidInputError(f"observations of shape {y.shape}: expected one at least, all finite")
    if len(groups) != len(y) or any(factor.incidence.shape[0] != len(y) for factor in factors):
        raise InvalidInputError(f"{len(y)} observations: expected as many groups and rows of every factor")
    equations = _equations(groups, factors)
    fit = _Fit(equations, y, factors)
    fit.vary(ROUNDS[0])
    for rounds in ROUNDS[1:]:
        fit.clip()
        fit.vary(rounds)
    return fit.solution()


class _Fit:
    """Effects, variances and pseudo-values, updated in turns."""

    def __init__(self, equations: _Equations, y: Floats, factors: Sequence[Factor]) -> None:
        self.equations, self.y, self.pseudo, self.factors = equations, y, y, factors
        self.effects = np.zeros(len(equations.factor))
        spread = CONSISTENCY * float(np.median(np.abs(equations.centred(y))))
        self.sigma2 = max(spread**2, SIGMA2_MIN)
        self.tau2 = np.full(len(factors), max(self.sigma2 / 4, TAU2_MIN))

    def vary(self, rounds: int) -> None:
        """Update the effects and their variances in turns, for so many rounds."""
        factor, freedom = self.equations.factor, len(self.y) - len(self.equations.sizes)
        for _ in range(rounds):
            self.effects = self.equations.solved(self.pseudo, self.sigma2, self.tau2, self.effects)
            determined = 1 - self.equations.variances(self.sigma2, self.tau2) / self.tau2[factor]
            squares = np.bincount(factor, self.effects**2, len(self.tau2))
            effective = np.bincount(factor, np.maximum(determined, 1e-9), len(self.tau2))
            self.tau2 = np.maximum(squares / effective, TAU2_MIN)
            rest = self._rest(self.pseudo)
            self.sigma2 = max(float(rest @ rest) / max(freedom - float(effective.sum()), 1.0), SIGMA2_MIN)

    def clip(self) -> None:
        """Clip the observations to CLIPPED deviations off the fit."""
        rest = self._rest(self.pseudo)
        level = self.pseudo - rest
        limit = CLIPPED * np.sqrt(self.sigma2)
        self.pseudo = level + np.clip(self.y - level, -limit, limit)

    def _rest(self, y: Floats) -> Floats:
        return self.equations.centred(y - self.equations.incidence @ self.effects)

    def solution(self) -> Effects:
        variances = self.equations.variances(self.sigma2, self.tau2)
        parts = [np.flatnonzero(self.equations.factor == number) for number in range(len(self.factors))]
        names = [factor.name for factor in self.factors]
        fitted = np.asarray(self.equations.incidence @ self.effects)
        level = self.pseudo - self._rest(self.pseudo) - fitted
        return Effects(
            {name: self.effects[part] for name, part in zip(names, parts, strict=True)},
            {name: np.sqrt(variances[part]) for name, part in zip(names, parts, strict=True)},
            {name: self.equations.own[part] for name, part in zip(names, parts, strict=True)},
            dict(zip(names, self.tau2.tolist(), strict=True)),
            float(np.sqrt(self.sigma2)),
            self.y - level,
            fitted,
        )


def _equations(groups: Codes, factors: Sequence[Factor]) -> _Equations:
    incidence = sparse.hstack([crossed.incidence for crossed in factors], format="csr")
    count = int(groups.max()) + 1
    sizes = np.maximum(np.bincount(groups, minlength=count), 1).astype(np.float64)
    member = sparse.csr_matrix((np.ones(len(groups)), (groups, np.arange(len(groups)))), shape=(count, len(groups)))
    sums = sparse.diags(1 / np.sqrt(sizes)) @ (member @ incidence)
    normal = (incidence.T @ incidence - sums.T @ sums).tocsr()
    factor = np.repeat(np.arange(len(factors)), [crossed.incidence.shape[1] for crossed in factors])
    squared = normal.multiply(normal).tocsr()
    return _Equations(incidence, groups, sizes, factor, normal, squared, np.maximum(normal.diagonal(), 0.0))
