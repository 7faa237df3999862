"""Which solver and preconditioner for which sparse system: measured with SciPy and PyAMG on generated matrices."""
