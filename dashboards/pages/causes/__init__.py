"""Pages of what makes runs slow or variable."""
