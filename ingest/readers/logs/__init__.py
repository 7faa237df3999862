"""Readers of what training programs print."""
