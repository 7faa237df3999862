"""Comparison of a check's measurements with usual values, and the nodes to exclude."""
