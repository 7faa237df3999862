"""Conditions before a run begins, by which its time may differ from its cohort's usual one."""

from crosswind.models.conditions.conditions import conditions_at_start, conditions_now

__all__ = ["conditions_at_start", "conditions_now"]
