"""Runs, steps, jobs, nodes and trials as tables: of a store here or of a server, in Arrow or pandas."""
