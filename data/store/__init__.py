"""The store, catalog and lake in one folder, and what is read out of both together."""
