"""Saved cohorts: how the runs of a selection differ from the others."""
