"""Predictions for the next run of any workload on any system, with their evidence and their distance from past runs."""
