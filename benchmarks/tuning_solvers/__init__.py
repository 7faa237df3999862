"""Choice of a solver and preconditioner for a sparse system: measured with SciPy and PyAMG on generated matrices."""
