"""Interference of neighbours: presences that go with slow runs."""
