"""Advice on what to ask the scheduler for: limits, scales and their price, from predicted distributions."""
