"""Readers of other tuners' histories."""
