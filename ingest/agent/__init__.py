"""The agent: one process a node that sweeps the sources into the spool."""
