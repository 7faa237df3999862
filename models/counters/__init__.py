"""Counters that matter: which of the nodes' counters and gauges go with slow runs."""
