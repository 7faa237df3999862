"""The Predict page."""
