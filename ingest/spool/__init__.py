"""The spool: segments of rows and records on node-local disk, how they are written and how they are read back."""
