"""The product's recipe for the typical time of a configuration that never ran."""

from collections.abc import Sequence

from crosswind.models.surrogate.gaussian_process import GaussianProcessSurrogate
from crosswind.models.surrogate.log_linear import LogLinearSurrogate
from crosswind.models.surrogate.nearest_cohort import NearestCohortSurrogate
from crosswind.models.surrogate.ratio_to_prior import RatioToPrior
from crosswind.models.surrogate.stack import Stack
from crosswind.models.surrogate.validation import LeaveGroupOut, SmallToLarge, Split, TimeOrdered
from crosswind.models.surrogate.xgboost_quantile import XgboostQuantileSurrogate

N_FOLDS = 3


def typical_time(seed: int, *, scale: str, groups: Sequence[str], hidden: Sequence[str] = ()) -> Stack:
    """A stack of a Gaussian process, the nearest cohorts, a power law and trees on the power law.

    `scale` names the column of the ranks (a number), `groups` those of texts of which a new one is another kind of
    extrapolation, the hardest first: device, system or site, cohort; no member sees the columns of `hidden`. Rows are
    in the order of time. The members' weights are learned from the training rows for each kind: a larger scale, a new
    group, a later run.
    """
    law, trees = LogLinearSurrogate(seed=seed), XgboostQuantileSurrogate(seed=seed, n_rounds=30, max_depth=3)
    members = (
        GaussianProcessSurrogate(seed=seed, n_learned=300, n_steps=30),
        NearestCohortSurrogate(seed=seed),
        RatioToPrior(LogLinearSurrogate(seed=seed), trees),
        law,
    )
    splits: tuple[Split, ...] = (
        SmallToLarge(scale),
        *(LeaveGroupOut(group, N_FOLDS) for group in groups),
        TimeOrdered(N_FOLDS + 1),
    )
    return Stack(members, splits, hidden=tuple(hidden))
