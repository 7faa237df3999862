"""Tables of runs, steps, operations and trials, read as a map says: which column is which fact, in which unit."""
