"""Gaussian processes, shared by tuner, surrogates and transfer."""
