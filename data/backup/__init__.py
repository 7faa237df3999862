"""Backup and restore of a store, also while servers write to it."""
