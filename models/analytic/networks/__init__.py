"""Networks by the work and the memory that a sample costs."""
