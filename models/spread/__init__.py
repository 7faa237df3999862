"""Spread: how a cohort's next run will lie around the cohort's usual time, given what is known before it begins."""

from crosswind.models.spread.spread import TELLING, CohortSpread

__all__ = ["TELLING", "CohortSpread"]
