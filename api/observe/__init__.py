"""Observation of requests: logs, ids and traces."""
