"""Predictions for a system, workload or scale that has hardly run, from those that have."""
