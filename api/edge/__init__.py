"""The server's edge: what a connection may hold, and for how long, before any route sees a request."""
