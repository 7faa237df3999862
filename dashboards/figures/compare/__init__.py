"""Figures that compare two things."""
