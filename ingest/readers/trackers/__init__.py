"""Readers of experiment trackers' runs."""
