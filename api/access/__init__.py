"""Access: who makes a request, and whether that principal may make it."""
