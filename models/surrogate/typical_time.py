"""The product's recipe for the typical time of a configuration that never ran."""

from crosswind.models.surrogate.gaussian_process import GaussianProcessSurrogate
from crosswind.models.surrogate.log_linear import LogLinearSurrogate
from crosswind.models.surrogate.nearest_cohort import NearestCohortSurrogate
from crosswind.models.surrogate.ratio_to_prior import RatioToPrior
from crosswind.models.surrogate.stack import Stack
from crosswind.models.surrogate.surrogate import Surrogate
from crosswind.models.surrogate.validation import LeaveGroupOut, SmallToLarge, Split, TimeOrdered
from crosswind.models.surrogate.xgboost_quantile import XgboostQuantileSurrogate

N_FOLDS = 3
DEVICE_DEVIATION = 1.0  # of log seconds on a device of which nothing is known: a factor of e


def typical_time(seed: int, *, scale: str, device: str, site: str, accelerator: str | None = None) -> Stack:
    """A stack of a Gaussian process, the nearest cohorts, a power law and trees on the power law.

    `scale`, `device` and `site` name the columns of the ranks (a number), of the device or system, and of the owner (a
    text, which no member sees); `accelerator`, where one is known, that of the accelerators, of which a new one is
    harder than a new system. Rows are in the order of time. The members' weights are learned from the training rows
    for each kind of extrapolation: a larger scale, an unseen device, another site, a later run.
    """
    law, trees = LogLinearSurrogate(seed=seed), XgboostQuantileSurrogate(seed=seed, n_rounds=30, max_depth=3)
    members: tuple[Surrogate, ...] = (
        GaussianProcessSurrogate(seed=seed, n_learned=300, n_steps=30),
        NearestCohortSurrogate(seed=seed),
        RatioToPrior(LogLinearSurrogate(seed=seed), trees),
        law,
    )
    devices = [device] if accelerator is None else [accelerator, device]
    splits: tuple[Split, ...] = (
        SmallToLarge(scale),
        *(LeaveGroupOut(column, N_FOLDS, DEVICE_DEVIATION) for column in devices),
        LeaveGroupOut(site, N_FOLDS),
        TimeOrdered(N_FOLDS + 1),
    )
    return Stack(members, splits, hidden=(site,))
