"""Accounting of the other schedulers."""
