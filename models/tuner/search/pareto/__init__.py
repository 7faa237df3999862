"""SearchCache for several objectives at once."""
