"""Explanation of slow runs: the excess over the expected time, split into causes that sum to it."""
