"""Spaces of configurations: parameters, expressions over them, and the points that meet all constraints."""
