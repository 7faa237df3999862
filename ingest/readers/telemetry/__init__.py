"""Readers of other collectors' samples."""
