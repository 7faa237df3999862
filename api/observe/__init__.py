"""Observation of the server itself: logs, request ids, traces and its state."""
