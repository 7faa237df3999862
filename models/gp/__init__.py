"""Gaussian processes for tuner, surrogates, transfer and the analytic correction: one arithmetic, in `gp`."""
