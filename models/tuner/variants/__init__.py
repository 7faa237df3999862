"""Choices of a code's variant for an input: by the features of a context, from what other contexts showed."""
