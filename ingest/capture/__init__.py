"""Captures: which ranks and steps of a run are profiled, decided beside the run from the steps that its ranks record."""
