"""Forecasts: the slowdown of a system now and in the next hours, and the rest of a run in progress."""
