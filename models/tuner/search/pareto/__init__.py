"""Search for several objectives at once, and within limits."""
