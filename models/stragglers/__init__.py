"""Stragglers: ranks, devices, nodes and switches slower than their peers, over all runs and in one in progress."""
