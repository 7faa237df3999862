"""Traces of runs in one columnar form, whatever tool recorded them."""
