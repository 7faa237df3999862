"""Tuners raced over stored tables of measurements."""
