"""Pages of studies and of models."""
