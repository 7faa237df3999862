"""Figures of a run's traces: the report of the traces in, small dataclasses out."""
