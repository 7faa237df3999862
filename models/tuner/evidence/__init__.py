"""Evidence of runs for a tuner: earlier ones as sources and trials, disturbed ones, and hopeless ones as they go on."""
