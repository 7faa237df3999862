"""State of the server, as its administrators see it."""
