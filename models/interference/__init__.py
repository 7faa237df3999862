"""Interference: which neighbours' presence goes with slow runs."""
