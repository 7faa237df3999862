"""Figures of a run to come."""
