"""Searches of configurations that other tuners made."""
