"""The jobs and ranks on this node."""
