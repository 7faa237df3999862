"""Pages of runs, one by one."""
