"""Measurements of speed beside a peer (`make bench`) and of accuracy beside baselines (`make accuracy`)."""
