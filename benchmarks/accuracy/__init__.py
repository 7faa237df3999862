"""Accuracy on real data, a file a source of data: each row states its split, its baselines and what was asked."""
