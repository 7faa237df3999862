"""The spool: segments of rows and records on node-local disk, their writers and readers."""
