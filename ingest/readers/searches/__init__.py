"""Searches over configurations that other tuners made."""
