"""Evidence of runs for a tuner: past ones as sources and trials, disturbed ones, and running ones without a chance."""
