"""Callbacks for frameworks that run the loop themselves and tell what happens in it."""
