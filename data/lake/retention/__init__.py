"""Roll-ups of samples of nodes, and the removal of raw rows that were rolled up."""
