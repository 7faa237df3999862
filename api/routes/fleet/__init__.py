"""Routes of systems, their nodes and what was measured there, and of saved cohorts."""
