"""Conditions: what was known before a run began that may tell how it will differ from its cohort's usual time."""

from crosswind.models.conditions.conditions import conditions_at_start, conditions_now

__all__ = ["conditions_at_start", "conditions_now"]
