"""Captures: the ranks and steps of a run that are profiled, decided beside it from the steps that its ranks record."""
