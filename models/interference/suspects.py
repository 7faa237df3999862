"""Candidates ranked by significance and size of the slowdown of the runs beside them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.stats

from crosswind.data.schema.answers.effects import NeighbourEffect
from crosswind.data.schema.prediction import Floats
from crosswind.models.association.associate import Association, Outcome, associate
from crosswind.models.association.bootstrap import stability
from crosswind.models.association.design import Ints
from crosswind.models.association.permutation import by_moments, deviations
from crosswind.models.interference.dose import dose_response
from crosswind.models.interference.exposure import Exposures

Q_MAX = 0.05
RIDES_ALONG_P = 0.05  # a candidate that adds no more than luck to surer ones is not blamed
EXAMINED_MAX = 50  # of those below Q_MAX, for what they add to the others


@dataclass(frozen=True)
class Ranked:
    """Suspects, surest first; `inseparable` candidates came and went with the drift or with a cohort alone."""

    suspects: tuple[NeighbourEffect, ...]
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


def _suspect(
    exposures: Exposures, association: Association, sureness: tuple[float, float], place: int
) -> NeighbourEffect:
    share = exposures.share(place)
    exposed = share > 0
    beside = (int(exposed.sum()), float(share[exposed].mean()))
    effect = (*association.ratios(place), *association.rhos(place), float(association.p[place]))
    return NeighbourEffect(exposures.candidates[place], *beside, *effect, *sureness)


def _examined(
    outcome: Outcome, exposures: Exposures, ranked: Sequence[NeighbourEffect], order: Ints
) -> list[NeighbourEffect]:
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
