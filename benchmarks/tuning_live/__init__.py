"""Studies of a real training on this machine, beside the best of every configuration."""
