"""Spread of a cohort's next run around the cohort's usual time, given the conditions before it begins."""

from crosswind.models.spread.spread import PREDICTIVE, CohortSpread

__all__ = ["PREDICTIVE", "CohortSpread"]
