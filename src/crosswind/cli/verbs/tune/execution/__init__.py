"""Evaluation of trials by `crosswind tune exec`: the program runs, is watched and judged, and its result reported."""
