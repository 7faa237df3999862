"""Which jobs and ranks are on this node."""
