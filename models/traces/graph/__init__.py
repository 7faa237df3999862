"""A run's activities with their dependencies: its critical path, and its replay with something changed."""
