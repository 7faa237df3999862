"""Answers as a terminal shows them."""
