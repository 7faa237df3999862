"""Callbacks for frameworks that run the loop themselves."""
