"""The slowdown expected: of a system now and in the next hours, and of the rest of a run."""
