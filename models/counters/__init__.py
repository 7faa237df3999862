"""Counters and gauges of nodes that go with slow runs."""
