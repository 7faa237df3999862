"""Readers of training programs' logs."""
