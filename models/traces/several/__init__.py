"""Traces of several ranks, of which one at a time is whole in memory."""
