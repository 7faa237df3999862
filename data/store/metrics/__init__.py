"""Stored metrics over time: which there are, whose samples are wanted, and their values by step."""
