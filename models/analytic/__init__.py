"""Closed-form times, energies and memory of training steps; their few constants are calibrated from runs."""
