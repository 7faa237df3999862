"""Runs as experiment trackers keep them."""
