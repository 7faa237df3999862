"""Analyses of traces: pure functions over data.traces, each listing what it could not classify."""
