"""Figures of a study: its parameters, its front, its trials over time."""
