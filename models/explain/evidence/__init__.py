"""Kinds of evidence for causes, and how each is measured in the samples and steps of a run."""
