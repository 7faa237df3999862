"""Computed data in, figures and pages out."""
