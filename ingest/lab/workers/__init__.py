"""Warm workers that train in the hosts of the lab: their orders, their replies, and the watch over a run."""
