"""Surrogates: cheap predictions of an objective from configurations, with their uncertainty."""

from collections.abc import Callable

from crosswind.models.surrogate.gaussian_process import GaussianProcessSurrogate
from crosswind.models.surrogate.log_linear import LogLinearSurrogate
from crosswind.models.surrogate.nearest_cohort import NearestCohortSurrogate
from crosswind.models.surrogate.ratio_to_prior import RatioToPrior
from crosswind.models.surrogate.stack import Stack
from crosswind.models.surrogate.surrogate import LEVELS, NotFittedError, Surrogate
from crosswind.models.surrogate.validation import TimeOrdered
from crosswind.models.surrogate.xgboost_quantile import XgboostQuantileSurrogate

__all__ = [
    "LEVELS",
    "SURROGATES",
    "GaussianProcessSurrogate",
    "LogLinearSurrogate",
    "NearestCohortSurrogate",
    "NotFittedError",
    "RatioToPrior",
    "Stack",
    "Surrogate",
    "XgboostQuantileSurrogate",
]


def _trees_on_law(seed: int) -> RatioToPrior:
    return RatioToPrior(LogLinearSurrogate(seed=seed), XgboostQuantileSurrogate(seed=seed))


def _stack_in_time(seed: int) -> Stack:
    return Stack((LogLinearSurrogate(seed=seed), NearestCohortSurrogate(seed=seed)), (TimeOrdered(),))


# Every surrogate of ours, made from a seed.
SURROGATES: tuple[Callable[[int], Surrogate], ...] = (
    XgboostQuantileSurrogate,
    GaussianProcessSurrogate,
    NearestCohortSurrogate,
    LogLinearSurrogate,
    _trees_on_law,
    _stack_in_time,
)
