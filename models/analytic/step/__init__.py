"""A plan of parallelism, and the time and memory of one stage under it."""
