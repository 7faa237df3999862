"""Figures of nodes, and of what was measured on them."""
