"""The folder that `crosswind run` puts first on PYTHONPATH."""
