"""The parts of `make bench NAME=scale`."""
