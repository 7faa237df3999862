"""The ways in over HTTP, where store, models and pages are wired together."""
