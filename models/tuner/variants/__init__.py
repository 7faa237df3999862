"""Choices of a code's variant for an input, by the features of its context and trials in other contexts."""
