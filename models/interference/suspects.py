"""Candidates ranked by significance and size of the slowdown of the runs beside them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.stats

from crosswind.data.schema.prediction import Floats
from crosswind.models.association.associate import Association, Outcome, associate
from crosswind.models.association.bootstrap import stability
from crosswind.models.association.design import Ints
from crosswind.models.association.permutation import by_moments, deviations
from crosswind.models.interference.dose import Dose, dose_response
from crosswind.models.interference.exposure import Candidate, Exposures

Q_MAX = 0.05
RIDES_ALONG_P = 0.05  # a candidate that adds no more than luck to surer ones is not blamed
EXAMINED_MAX = 50  # of those below Q_MAX, for what they add to the others


@dataclass(frozen=True)
class Suspect:
    """The effect that goes with a candidate's presence; intervals are of 90 %.

    `slowdown_ratio` is the time of runs beside it over that of runs without it at the same time (1.1 = 10 % slower).
    `rho` is the partial rank correlation of its share with the excess, `q` the Benjamini-Hochberg value over all
    candidates, `stability` the share of bootstrap replicates in which it is among the first ten. `rides_with` names a
    surer candidate that explains it. `is_blamed`: slower, q below 0.05, and nobody explains it.
    """

    candidate: Candidate
    exposed_runs: int
    mean_share: float
    slowdown_ratio: float
    slowdown_low_ratio: float
    slowdown_high_ratio: float
    rho: float
    rho_low: float
    rho_high: float
    p: float
    q: float
    stability: float
    dose: Dose | None = None
    rides_with: Candidate | None = None

    @property
    def is_blamed(self) -> bool:
        """Return whether it is held to slow runs down."""
        return self.q < Q_MAX and self.rho > 0 and self.rides_with is None


@dataclass(frozen=True)
class Ranked:
    """Suspects, surest first; `inseparable` candidates came and went with the drift or with a cohort alone."""

    suspects: tuple[Suspect, ...]
    inseparable: int


def suspects(outcome: Outcome, exposures: Exposures, *, seed: int = 0) -> Ranked:
    """Rank the candidates; exposures are in the order of time."""
    if not exposures.candidates:
        return Ranked((), 0)
    association = associate(outcome, exposures.chunks(), len(exposures.candidates), seed=seed)
    testable = np.flatnonzero(~np.isnan(association.p))
    q = np.full(len(association.p), np.nan)
    if len(testable):
        q[testable] = scipy.stats.false_discovery_control(association.p[testable])
    order = testable[np.lexsort((-np.nan_to_num(association.rho[testable]), association.p[testable]))]
    steady = stability(association.replicates)
    ranked = [_suspect(exposures, association, (float(q[place]), float(steady[place])), place) for place in order]
    return Ranked(tuple(_examined(outcome, exposures, ranked, order)), len(association.p) - len(testable))


def _suspect(exposures: Exposures, association: Association, sureness: tuple[float, float], place: int) -> Suspect:
    share = exposures.share(place)
    exposed = share > 0
    beside = (int(exposed.sum()), float(share[exposed].mean()))
    effect = (*association.ratios(place), *association.rhos(place), float(association.p[place]))
    return Suspect(exposures.candidates[place], *beside, *effect, *sureness)


def _examined(outcome: Outcome, exposures: Exposures, ranked: Sequence[Suspect], order: Ints) -> list[Suspect]:
    """The suspects with their doses and, of those below Q_MAX, who explains them."""
    examined = list(ranked)
    sure = [number for number, suspect in enumerate(examined) if suspect.q < Q_MAX][:EXAMINED_MAX]
    residuals = _residuals(outcome, exposures, order[sure])
    accepted: list[int] = []
    for place, number in enumerate(sure):
        dose = dose_response(exposures.share(order[number]), outcome.log)
        explained = _explained_by(outcome, residuals, place, accepted)
        if explained is None:
            accepted.append(place)
        surer = None if explained is None else examined[sure[explained]].candidate
        examined[number] = replace(examined[number], dose=dose, rides_with=surer)
    return examined


def _residuals(outcome: Outcome, exposures: Exposures, columns: Ints) -> Floats:
    if not len(columns):
        return np.empty((len(outcome.log), 0))
    ranks = np.concatenate([ranks for ranks, _ in exposures.chosen(columns).chunks()], axis=1)
    return outcome.design.without(ranks)


def _explained_by(outcome: Outcome, residuals: Floats, place: int, accepted: Sequence[int]) -> int | None:
    """Return the accepted column that explains a candidate: with all of them taken out, it adds no more than luck."""
    if not accepted:
        return None
    theirs, own = residuals[:, accepted], residuals[:, [place]]
    basis = np.linalg.qr(theirs)[0]
    alone, outcome_rest = own - basis @ (basis.T @ own), outcome.ranks - basis @ (basis.T @ outcome.ranks)
    is_nothing = (alone**2).sum() <= 1e-8 * (own**2).sum()
    spread = deviations(outcome.design, alone, outcome_rest)
    if not is_nothing and by_moments(alone.T @ outcome_rest, spread)[0] < RIDES_ALONG_P:
        return None
    return accepted[int(np.argmax(np.abs(theirs.T @ own[:, 0]) / np.linalg.norm(theirs, axis=0)))]
