"""Holds what a check measured against what is usual, and says which nodes to leave out."""
