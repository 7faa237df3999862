"""Estimates of a split as an answer gives them: in seconds over the steps of a run, with intervals."""

from collections.abc import Mapping

import numpy as np

from crosswind.data.schema.answers.explanations import CauseShare, Interval
from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes import BY_NAME
from crosswind.models.explain.causes.cause import Observed
from crosswind.models.explain.split import MEASURABLE, UNEXPLAINED, Split

# Of a share, and a step, that stay uncertain: caches grow cold meanwhile, a sleep lasts longer than asked for.
DOUBT, DOUBT_SECONDS = 0.03, 0.0003
LOW, HIGH = 0.05, 0.95  # of the replicates, the ends of a 90 % interval


def shares_of(parts: Split, steps: int, masked: Mapping[str, Floats] | None = None) -> list[CauseShare]:
    """Return the share of every cause over so many steps, the largest first; causes without one are left out.

    `masked` are the masked seconds of each of them, shape (REPLICATES,): an interval begins at the time that would be
    saved without its cause alone.
    """
    observed = Observed(parts.measured, parts.expected)
    shares = []
    for cause in BY_NAME.values():
        value, replicates = parts.shares[cause.name], parts.replicates[cause.name]
        if value > 0:
            saved = replicates if masked is None else np.maximum(replicates - masked[cause.name], 0.0)
            doubt = max(DOUBT * value, DOUBT_SECONDS)
            low, high = float(np.quantile(saved, LOW)) - doubt, float(np.quantile(replicates, HIGH)) + doubt
            high = max(min(high, parts.measured_time), value)
            seconds = Interval(value * steps, max(low, 0.0) * steps, high * steps)
            shares.append(CauseShare(cause.name, seconds, cause.evidence(observed)))
    return sorted(shares, key=lambda share: share.seconds.value, reverse=True)


def excess_of(parts: Split, steps: int) -> Interval:
    """Return the excess over so many steps; neither what was expected nor what was measured can be less than 0."""
    return _interval(parts, parts.excess, parts.replicates["excess"], steps)


def unexplained_of(parts: Split, steps: int) -> Interval:
    """Return the unexplained part of it, exactly 0 where it is too small to be measured."""
    return _interval(parts, parts.shares[UNEXPLAINED], parts.replicates[UNEXPLAINED], steps)


def _interval(parts: Split, value: float, replicates: Floats, steps: int) -> Interval:
    bounds = np.clip(np.quantile(replicates, (LOW, HIGH)), -parts.expected_time, parts.measured_time)
    low, high = np.where(np.abs(bounds) < MEASURABLE, 0.0, bounds)
    return Interval(value * steps, float(low) * steps, float(high) * steps)
