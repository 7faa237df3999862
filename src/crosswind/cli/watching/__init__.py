"""A run in progress, watched in a terminal: its events, looks at it, and the screen."""
