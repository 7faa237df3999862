"""Models learned from stored runs: baselines, surrogates, explanations and the tuner."""
