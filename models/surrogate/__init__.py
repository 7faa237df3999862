"""Surrogates: cheap predictions of an objective from configurations, with their uncertainty."""

from collections.abc import Callable

from crosswind.models.surrogate.surrogate import LEVELS, NotFittedError, Surrogate
from crosswind.models.surrogate.xgboost_quantile import XgboostQuantileSurrogate

__all__ = ["LEVELS", "SURROGATES", "NotFittedError", "Surrogate", "XgboostQuantileSurrogate"]

# Every surrogate of ours, made from a seed.
SURROGATES: tuple[Callable[[int], Surrogate], ...] = (XgboostQuantileSurrogate,)
